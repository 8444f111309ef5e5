"""The manners of TextCNN: what it is given, says, keeps and refuses."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import KFold

from tests.models import needs
from tests.models.reviews import reviews, small, vectors
from tradewind.models import TextCNN, WordVectors
from tradewind.models.textcnn import estimator
from tradewind.models.vectors import embedding


@pytest.fixture(scope="module")
def fitted() -> TextCNN:
    return small().fit(*reviews())


def test_the_defaults_are_those_of_kim() -> None:
    """Kim (2014), section 3.1, and the 300 numbers of the Google News vectors; what he leaves open
    is as in the thesis (window, early stopping) or switched off."""
    kim = {
        "channels": "nonstatic",
        "filter_sizes": (3, 4, 5),
        "filters": 100,
        "activation": "relu",
        "d1": 0.5,
        "l2_max": 3.0,
        "batch_size": 50,
        "optimizer": "adadelta",
        "validation_fraction": 0.1,
        "dimensions": 300,
        "bias": True,
    }
    thesis = {"window": 10, "max_epochs": 150, "patience": 15}
    off = {"d0": 0.0, "d2": 0.0, "hidden": 0, "balance": False, "unknown": "random"}
    unset = {"vectors": None, "learning_rate": None, "random_state": None}
    ours = {"device": "auto", "verbose": False}
    assert TextCNN().get_params() == kim | thesis | off | unset | ours


@needs.gensim
def test_the_window_is_that_of_word2vec() -> None:
    texts, labels = reviews(60)
    narrow, wide = (
        small(unknown="word2vec", channels="static", window=window, max_epochs=1).fit(texts, labels)
        for window in (1, 10)
    )
    words, tokens = narrow.vocabulary_, [text.split() for text in texts]
    for model, window in ((narrow, 1), (wide, 10)):
        expected = embedding(
            words, vectors(), unknown="word2vec", texts=tokens, window=window, seed=0
        )
        np.testing.assert_array_equal(model.weights_["static"], expected)
    assert not np.allclose(narrow.weights_["static"], wide.weights_["static"])


def test_clone_and_params_round_trip() -> None:
    model = small(hidden=3)
    again = clone(model)
    assert again.get_params() == model.get_params()
    assert again.vectors is model.vectors  # never copied
    assert "filter_sizes" in repr(TextCNN(filter_sizes=(2,)))


def test_a_fit_that_fails_and_settings_that_change_leave_the_old_model_alone(
    fitted: TextCNN,
) -> None:
    texts, _ = reviews(20)
    model = pickle.loads(pickle.dumps(fitted))
    expected = model.predict_proba(texts)
    with pytest.raises(ValueError, match="two classes"):
        model.fit(texts, ["same"] * 20)
    model.set_params(activation="tanh", hidden=5, filter_sizes=(9,))
    np.testing.assert_array_equal(model.predict_proba(texts), expected)


OTHER_VECTORS = WordVectors(("goodish", "good"), np.ones((2, 3), dtype=np.float32))


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize(
    "changes",
    [
        {"dimensions": 3},
        {"vectors": OTHER_VECTORS},
        {"vectors": None},
        {"channels": "multichannel"},
        pytest.param({"unknown": "word2vec", "window": 2}, marks=needs.gensim),
        {"random_state": 5},
    ],
)
def test_words_not_seen_are_read_as_they_were_when_it_was_fitted(
    given: bool, changes: dict[str, Any], tmp_path: Path
) -> None:
    texts = ["goodish", "badish w3", "a word nobody knows"]
    model = small(max_epochs=2, **({} if given else {"vectors": None, "dimensions": 6}))
    expected = model.fit(*reviews(30)).predict_proba(texts)
    model.set_params(**changes)
    np.testing.assert_array_equal(model.predict_proba(texts), expected)
    model.save(tmp_path / "model.npz")
    again = TextCNN.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.predict_proba(texts), expected)
    fresh = clone(model).fit(*reviews(30)).predict_proba(texts)  # and they count from then on
    np.testing.assert_array_equal(model.fit(*reviews(30)).predict_proba(texts), fresh)


@pytest.mark.parametrize(
    "changes",
    [
        {"optimizer": "adam", "learning_rate": 1e38},
        {"learning_rate": 1e30, "batch_size": 50},  # one step, before which the loss was fine
        {"learning_rate": 1e30, "batch_size": 50, "validation_fraction": 0, "max_epochs": 1},
        {"optimizer": "adam", "learning_rate": 1e20, "validation_fraction": 0, "max_epochs": 1},
        {"learning_rate": 1e30, "channels": "static", "l2_max": None, "batch_size": 50},
    ],
)
def test_what_ends_in_no_numbers_is_said(changes: dict[str, Any]) -> None:
    texts, labels = reviews(20)
    with pytest.warns(ConvergenceWarning, match="learning_rate") as said:
        model = small(**{"max_epochs": 3, **changes}).fit(texts, labels)
    assert len(said) == 1
    found = model.predict_proba(texts)
    assert not ((found > 0) & (found < 1)).any()  # NaN, or infinitely sure


def test_of_folds_those_that_end_in_no_numbers_are_said_one_by_one() -> None:
    texts, labels = reviews(60)
    with pytest.warns(ConvergenceWarning, match="learning_rate") as said:
        small(learning_rate=1e30, max_epochs=1).fit_folds(texts, labels, KFold(3).split(texts))
    assert len(said) == 3


def test_a_word_vector_that_is_no_number_is_said_though_all_losses_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The word need not be among those that it stopped on, nor in the texts that are looked at."""
    texts, labels = reviews(60)
    real = estimator.train

    def broken(*args: Any) -> Any:
        (one,), seconds = real(*args)
        one.table[-1] = np.inf
        return [one], seconds

    monkeypatch.setattr(estimator, "train", broken)
    with pytest.warns(ConvergenceWarning, match="learning_rate"):
        model = small(max_epochs=1, batch_size=1).fit(texts, labels)
    assert np.isfinite(model.history_[0]["valid_loss"])


@pytest.mark.parametrize("which", ["loss", "valid_loss"])
@pytest.mark.parametrize("best", [1, 2])
def test_a_loss_that_is_no_number_is_said_if_it_is_that_of_the_epoch_kept(
    monkeypatch: pytest.MonkeyPatch, which: str, best: int
) -> None:
    texts, labels = reviews(60)
    real = estimator.train

    def broken(*args: Any) -> Any:
        (one,), seconds = real(*args)
        one.history[0] = replace(one.history[0], **{which: float("nan")})
        one.best_epoch = best
        return [one], seconds

    monkeypatch.setattr(estimator, "train", broken)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        small(max_epochs=2).fit(texts, labels)
    assert [warning.category for warning in said] == [ConvergenceWarning] * (best == 1)


def test_precision_chosen_by_the_user_is_no_trouble() -> None:
    code = """
import torch
torch.backends.cuda.matmul.fp32_precision = "tf32"
from tradewind.models import TextCNN
TextCNN(max_epochs=1, dimensions=2, filters=1).fit(["a", "b"] * 5, [0, 1] * 5).predict(["a"])
assert torch.backends.cuda.matmul.fp32_precision == "tf32"
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_nothing_can_be_predicted_before_fit() -> None:
    with pytest.raises(NotFittedError):
        small().predict(["a"])


def test_saved_and_loaded_it_says_the_same(fitted: TextCNN, tmp_path: Path) -> None:
    file = tmp_path / "model.npz"
    fitted.save(file)
    again = TextCNN.load(file)
    texts, _ = reviews(30, seed=3)
    texts.append("goodish")
    np.testing.assert_array_equal(again.predict_proba(texts), fitted.predict_proba(texts))
    assert again.predict(texts).tolist() == fitted.predict(texts).tolist()
    assert again.history_ == fitted.history_
    assert again.get_params().keys() == fitted.get_params().keys()
    assert b"pickle" not in file.read_bytes()
    copied = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copied.predict_proba(texts), fitted.predict_proba(texts))


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        *[("filter_sizes", v) for v in ((), (0,), (1.5,), "345", 3, (True,))],
        *[("filters", v) for v in (0, -1, (5,), (5, 6, 7), "ab", 2.0, np.array(3))],
        *[("d0", v) for v in (-0.1, 1.0, float("nan"), None, "x", True)],
        *[("hidden", v) for v in (-1, 1.5, None)],
        *[("batch_size", v) for v in (0, "10")],
        *[("max_epochs", v) for v in (0, float("inf"))],
        *[("patience", v) for v in (0, -3, 1.5)],
        *[("validation_fraction", v) for v in (1.0, -0.1, float("nan"))],
        *[("l2_max", v) for v in (0, -1.0, float("nan"), float("inf"))],
        *[("learning_rate", v) for v in (0.0, float("nan"), "fast")],
        *[("channels", v) for v in ("both", None, 3)],
        *[("activation", v) for v in ("gelu", None)],
        *[("optimizer", v) for v in ("sgd", None)],
        *[("unknown", v) for v in ("zero", None)],
        *[("bias", v) for v in ("yes", 1)],
        *[("balance", v) for v in ("yes", None)],
        *[("window", v) for v in (0, 1.5)],
        *[("vectors", v) for v in ({"a": [1.0]}, "glove")],
        *[("random_state", v) for v in (-1, "seed", 2**64)],
        *[("device", v) for v in ("gpu", "cuda:99", "meta", 7, None)],
    ],
)
def test_settings_that_cannot_be_say_so(setting: str, value: Any) -> None:
    texts, labels = reviews(20)
    with pytest.raises(ValueError, match=setting.split("_")[0]):
        small(**{setting: value}).fit(texts, labels)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([], [], "at least one text"),
        ("one text", [1], "texts must be a list of strings"),
        (["a", 3], [0, 1], "text 1 is 3"),
        (["a", None], [0, 1], "text 1 is None"),
        (["a", "b"], [0], "every text needs a label"),
        (["a", "b"], [[0], [1]], "every text needs a label"),
        (["a", "b"], [1, 1], "two classes"),
        (["a", "b"], [0.5, 1.7], "continuous"),
        (["a", "b"], [0.0, float("nan")], "NaN|nan"),
        (["a", "b"], np.array(["x", None], dtype=object), "mixed"),
        (["a", "b"], np.array(["x", 1], dtype=object), "mixed"),
        (["a", "b"], np.array(["x", float("nan")], dtype=object), "mixed"),
    ],
)
def test_data_that_cannot_be_say_so(X: Any, y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small().fit(X, y)


@pytest.mark.parametrize(
    ("folds", "message"),
    [
        ([], "at least one fold"),
        ([([0, 1, 99], [2])], "rows must be from 0"),
        ([([0, 1, -1], [2])], "rows must be from 0"),
        ([([], [2])], "a fold needs training rows"),
        ([([0.5, 1.0], [2])], "a fold needs training rows"),
        ([([0, 2, 4], [1])], "two classes"),
        (5, "folds must be"),
        ([[1, 2, 3]], "folds must be"),
        ([([True, False, True], [1])], "mask of rows must have 20"),
    ],
)
def test_folds_that_cannot_be_say_so(folds: Any, message: str) -> None:
    texts, labels = reviews(20)
    with pytest.raises(ValueError, match=message):
        small().fit_folds(texts, labels, folds, validation="test")


def test_validation_that_cannot_be_says_so() -> None:
    texts, labels = reviews(20)
    with pytest.raises(ValueError, match="'odd', which the training labels do not have"):
        small().fit(texts, labels, validation=(["a"], ["odd"]))
    with pytest.raises(ValueError, match="at least one text"):
        small().fit(texts, labels, validation=([], []))
    for odd in (5, (["a"], ["pos"], 3), "ab"):
        with pytest.raises(ValueError, match=r"validation must be"):
            small().fit(texts, labels, validation=odd)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="strings in both"):
        small().fit(texts, np.arange(20) % 2, validation=(["a"], ["0"]))
    with pytest.raises(ValueError, match="validation must be one of"):
        small().fit_folds(texts, labels, [([0, 1], [2])], validation="none")  # type: ignore[arg-type]
