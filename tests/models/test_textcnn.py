"""TextCNN as a classifier of scikit-learn."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning, NotFittedError
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score

import tradewind as tw
from tradewind.models import TextCNN, WordVectors
from tradewind.models.textcnn import estimator
from tradewind.models.textcnn.training import Fold
from tradewind.models.vectors import embedding

GOOD, BAD = ("good", "great", "fine", "superb"), ("bad", "awful", "poor", "dull")
OTHERS = tuple(f"w{i}" for i in range(30))


def reviews(n: int = 120, classes: int = 2, seed: int = 0) -> tuple[list[str], NDArray[Any]]:
    """Texts in which one word tells the class."""
    rng = np.random.default_rng(seed)
    texts, labels = [], []
    for i in range(n):
        words = list(rng.choice(OTHERS, rng.integers(1, 10)))
        telling = ((), GOOD, BAD)[i % classes + (classes == 2)]
        if telling:
            words.insert(int(rng.integers(len(words) + 1)), str(rng.choice(telling)))
        texts.append(" ".join(words))
        labels.append(["pos", "neg"][i % 2] if classes == 2 else ["none", "pos", "neg"][i % 3])
    return texts, np.array(labels)


def vectors() -> WordVectors:
    """Good words and bad words are near each other."""
    rng = np.random.default_rng(0)
    base = {"good": rng.normal(size=8), "bad": rng.normal(size=8)}
    words, rows = [], []
    for kind, group in (("good", GOOD), ("bad", BAD)):
        for word in (*group, f"{kind}ish"):
            words.append(word)
            rows.append(base[kind] + 0.1 * rng.normal(size=8))
    return WordVectors(tuple(words), np.array(rows))


def small(**changes: Any) -> TextCNN:
    settings = {
        "vectors": vectors(),
        "filter_sizes": (1, 2),
        "filters": 8,
        "batch_size": 10,
        "max_epochs": 15,
        "random_state": 0,
    }
    return TextCNN(**{**settings, **changes})


@pytest.fixture(scope="module")
def fitted() -> TextCNN:
    return small().fit(*reviews())


# ---- learning and predicting ----


@pytest.mark.parametrize("channels", ["static", "nonstatic", "multichannel"])
def test_it_learns(channels: Any) -> None:
    model = small(channels=channels, max_epochs=40).fit(*reviews())
    texts, labels = reviews(60, seed=1)
    assert model.score(texts, labels) > 0.9


def test_it_learns_many_classes_without_vectors() -> None:
    model = small(vectors=None, dimensions=16, max_epochs=60, optimizer="adam", learning_rate=0.01)
    model.fit(*reviews(300, classes=3))
    texts, labels = reviews(60, classes=3, seed=1)
    assert model.score(texts, labels) > 0.9
    probabilities = model.predict_proba(texts)
    assert probabilities.shape == (60, 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert (model.classes_[probabilities.argmax(axis=1)] == model.predict(texts)).all()


def test_a_word_that_training_has_not_seen_has_its_given_vector(fitted: TextCNN) -> None:
    assert "goodish" not in fitted.vocabulary_
    assert fitted.predict(["goodish", "badish"]).tolist() == ["pos", "neg"]


def test_what_it_says_of_a_text_does_not_depend_on_the_others(fitted: TextCNN) -> None:
    texts, _ = reviews(40, seed=2)
    together = fitted.predict_proba([*texts, "xyzzy " * 700])[:40]
    alone = np.concatenate([fitted.predict_proba([text]) for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-6)


def test_windows_that_begin_before_a_text_count() -> None:
    """With windows of two words, the first word alone can be the second of a window."""
    model = small(filter_sizes=(2,), filters=1, bias=False, max_epochs=1, l2_max=None)
    model.fit(*reviews(30))
    vector = vectors()["good"]
    model.weights_["learned"][:] = 0.0
    model.weights_["learned"][1 + model.vocabulary_.index("good")] = vector
    model.weights_["filter0"] = np.stack([-vector, vector], axis=1)  # first place, second place
    model.weights_["output"][:] = 1.0
    model.weights_["output.bias"][:] = -float(vector @ vector)
    unseen = OTHERS[0]
    assert model.predict_proba(["good"])[0, 1] == pytest.approx(0.5, abs=1e-5)
    assert model.predict_proba([f"good {unseen}"])[0, 1] == pytest.approx(0.5, abs=1e-5)
    assert model.predict_proba([unseen])[0, 1] < 0.4


@pytest.mark.parametrize("texts", [[""], ["..."], ["", "good", ""], []])
def test_texts_without_words_are_no_trouble(fitted: TextCNN, texts: list[str]) -> None:
    found = fitted.predict_proba(texts)
    assert found.shape == (len(texts), 2)
    assert np.isfinite(found).all()
    assert len(fitted.predict(texts)) == len(texts)


def test_training_texts_may_be_empty() -> None:
    texts, labels = reviews(30)
    model = small(max_epochs=2).fit(["", *texts, "?!"], ["pos", *labels, "neg"])
    assert model.n_iter_ == 2
    blank = small(max_epochs=1).fit([""] * 6, [0, 1] * 3)
    assert np.isfinite(blank.predict_proba(["a"])).all()


def test_the_same_seed_gives_the_same_model_and_another_does_not() -> None:
    texts, labels = reviews(60)
    one, two, other = (
        small(random_state=seed, max_epochs=3, d0=0.2).fit(texts, labels).predict_proba(texts)
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, two)
    assert not np.allclose(one, other)


def test_columns_arrays_and_lists_are_the_same() -> None:
    texts, labels = reviews(60)
    expected = small(max_epochs=2).fit(texts, labels).predict_proba(texts)
    for X in (pd.Series(texts, index=range(100, 160)), np.array(texts), np.array(texts, object)):
        model = small(max_epochs=2).fit(X, pd.Series(labels))
        np.testing.assert_array_equal(model.predict_proba(X), expected)


# ---- stopping ----


def test_it_stops_on_a_tenth_of_the_training_texts_by_default(fitted: TextCNN) -> None:
    assert TextCNN().validation_fraction == 0.1
    assert (TextCNN().patience, TextCNN().max_epochs) == (15, 150)
    best = fitted.history_[fitted.best_epoch_ - 1]
    assert best["valid_loss"] == min(epoch["valid_loss"] for epoch in fitted.history_)
    assert round(best["valid_accuracy"] * 12, 6) == round(best["valid_accuracy"] * 12)  # 12 texts


def test_it_stops_on_the_texts_that_are_given() -> None:
    texts, labels = reviews(60)
    others, theirs = reviews(20, seed=5)
    model = small(patience=2, max_epochs=50).fit(texts, labels, validation=(others, theirs))
    accuracy = model.history_[model.best_epoch_ - 1]["valid_accuracy"]
    assert model.score(others, theirs) == pytest.approx(accuracy)
    wrong = np.where(theirs == "pos", "neg", "pos")
    early = small(patience=2, max_epochs=50).fit(texts, labels, validation=(others, wrong))
    assert early.n_iter_ < model.n_iter_


def test_all_texts_are_used_where_none_are_to_stop_on() -> None:
    model = small(validation_fraction=0, max_epochs=4).fit(*reviews(60))
    assert [epoch["valid_loss"] for epoch in model.history_] == [None] * 4
    assert model.best_epoch_ == model.n_iter_ == 4


def seen_folds(monkeypatch: pytest.MonkeyPatch, model: TextCNN, y: Any) -> list[Fold]:
    """What `fit` gives to the training."""
    seen: list[Fold] = []
    real = estimator.train

    def spy(network: Any, plan: Any, texts: Any, labels: Any, folds: Any) -> Any:
        seen.extend(folds)
        return real(network, plan, texts, labels, folds)

    monkeypatch.setattr(estimator, "train", spy)
    model.fit([f"w{i}" for i in range(len(y))], y)
    return seen


def test_what_it_stops_on_is_stratified_and_not_learned_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    y = np.repeat([0, 1, 2], [60, 30, 10])
    (fold,) = seen_folds(monkeypatch, small(max_epochs=1), y)
    assert sorted([*fold.train, *fold.valid]) == list(range(100))
    assert np.bincount(y[fold.valid]).tolist() == [6, 3, 1]
    (other,) = seen_folds(monkeypatch, small(max_epochs=1, random_state=1), y)
    assert set(fold.valid) != set(other.valid)
    np.testing.assert_array_equal(fold.class_weights, [1, 1, 1])


def test_rare_classes_weigh_more_when_balanced(monkeypatch: pytest.MonkeyPatch) -> None:
    y = np.repeat([0, 1], [75, 25])
    model = small(max_epochs=1, balance=True, validation_fraction=0)
    (fold,) = seen_folds(monkeypatch, model, y)
    np.testing.assert_allclose(fold.class_weights, [100 / 150, 2.0])


def test_what_it_stops_on_has_no_part_in_the_weights_of_classes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    y = np.repeat([0, 1], [7, 2])
    model = small(max_epochs=1, balance=True, validation_fraction=0.34)
    (fold,) = seen_folds(monkeypatch, model, y)
    counts = np.bincount(y[fold.train])
    assert counts.sum() == 6
    assert counts[0] / counts[1] != 7 / 2
    np.testing.assert_allclose(fold.class_weights, 6 / 2 / counts)


def test_classes_of_a_single_text_are_no_trouble() -> None:
    texts = [f"w{i}" for i in range(40)]
    model = small(max_epochs=1).fit(texts, [*range(20), *[0] * 20])
    assert len(model.classes_) == 20
    assert len(small(max_epochs=1, validation_fraction=0).fit(texts[:10], range(10)).classes_) == 10


@pytest.mark.parametrize(
    ("y", "fraction"),
    [([0, 1] * 2, 0.1), ([0, 1], 0.5), (range(10), 0.5), ([0, 1] * 20, 0.01)],
)
def test_where_no_text_is_left_to_stop_on_that_is_said(y: Any, fraction: float) -> None:
    texts = [f"w{i}" for i in range(len(y))]
    model = small(max_epochs=2, validation_fraction=fraction)
    with pytest.warns(UserWarning, match=f"validation_fraction={fraction} .* is none") as said:
        model.fit(texts, y)
    assert len(said) == 1
    assert [epoch["valid_loss"] for epoch in model.history_] == [None, None]
    assert model.best_epoch_ == 2
    model.fit(texts, y, validation=(texts[:1], y[:1]))  # and there is nothing to say
    assert model.history_[0]["valid_loss"] is not None


# ---- folds at once ----


@pytest.fixture(params=["as on a CPU", "as on a GPU"])
def stacking(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folds are trained one by one, or as one stack."""
    if request.param == "as on a GPU":
        monkeypatch.setattr(TextCNN, "_stacks", lambda self, folds, device: [folds])


@pytest.mark.usefixtures("stacking")
@pytest.mark.parametrize("unknown", ["random", "word2vec"])
@pytest.mark.parametrize("validation", ["train", "test"])
def test_folds_at_once_are_folds_one_by_one(unknown: Any, validation: Any) -> None:
    texts, labels = reviews(61)
    model = small(unknown=unknown, d0=0.1, d1=0.3, hidden=4, d2=0.2, max_epochs=6, patience=2)
    folds = list(KFold(4, shuffle=True, random_state=0).split(texts))
    for at_once, (rows, test) in zip(
        model.fit_folds(texts, labels, folds, validation=validation), folds, strict=True
    ):
        tested = [texts[row] for row in test]
        stop_on = None if validation == "train" else (tested, labels[test])
        single = clone(model).fit([texts[row] for row in rows], labels[rows], validation=stop_on)
        assert set(single.vocabulary_) == set(at_once.vocabulary_)
        assert single.best_epoch_ == at_once.best_epoch_
        np.testing.assert_allclose(
            single.predict_proba(tested), at_once.predict_proba(tested), atol=1e-5
        )


@pytest.mark.usefixtures("stacking")
def test_folds_with_other_numbers_of_batches_or_classes_are_stacks_of_their_own() -> None:
    texts, labels = reviews(60, classes=3)
    folds = [
        (np.arange(60), np.arange(3)),
        (np.arange(30), np.arange(30, 60)),
        (np.flatnonzero(labels != "none"), np.flatnonzero(labels == "pos")),
    ]
    models = small(max_epochs=2).fit_folds(texts, labels, folds)
    assert [len(model.classes_) for model in models] == [3, 3, 2]
    for model, (rows, _) in zip(models, folds, strict=True):
        single = small(max_epochs=2).fit([texts[row] for row in rows], labels[rows])
        np.testing.assert_allclose(
            model.predict_proba(texts), single.predict_proba(texts), atol=1e-5
        )


@pytest.mark.parametrize(("at_once", "share"), [(True, 6.0 / 4), (False, 6.0)])
def test_the_time_of_a_stack_is_shared_out(
    monkeypatch: pytest.MonkeyPatch, at_once: bool, share: float
) -> None:
    """Every stack takes six seconds here; one by one, four folds are four stacks."""
    texts, labels = reviews(60)
    real = estimator.train

    def timed(*args: Any) -> Any:
        trained, seconds = real(*args)
        assert seconds > 0
        return trained, 6.0

    monkeypatch.setattr(estimator, "train", timed)
    if at_once:
        monkeypatch.setattr(TextCNN, "_stacks", lambda self, folds, device: [folds])
    models = small(max_epochs=1).fit_folds(texts, labels, KFold(4).split(texts))
    assert [model.fit_seconds_ for model in models] == pytest.approx([share] * 4)
    assert small(max_epochs=1).fit(texts, labels).fit_seconds_ == 6.0


def test_stacks_that_cannot_be_one_share_out_their_own_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts, labels = reviews(60)
    real, took = estimator.train, iter([8.0, 3.0])
    monkeypatch.setattr(estimator, "train", lambda *args: (real(*args)[0], next(took)))
    monkeypatch.setattr(TextCNN, "_stacks", lambda self, folds, device: [folds])
    rows = np.arange(60)
    folds = [(rows[:40], rows[40:]), (rows[:20], rows[40:]), (rows[20:], rows[:20])]
    models = small(max_epochs=1).fit_folds(texts, labels, folds)
    assert [model.fit_seconds_ for model in models] == [4.0, 3.0, 4.0]


def test_the_search_fits_folds_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    texts, labels = reviews(60)
    calls = []
    real = TextCNN.fit_folds

    def spy(self: TextCNN, X: Any, y: Any, folds: Any) -> Any:
        calls.append(len(folds))
        return real(self, X, y, folds)

    monkeypatch.setattr(TextCNN, "fit_folds", spy)
    search = tw.TradeoffSearchCV(
        small(max_epochs=2), TextCNN.space(), n_iter=3, cv=StratifiedKFold(4), random_state=0
    )
    search.fit(texts, labels)
    assert calls == [4, 4, 4]
    best = search.best_estimator_
    assert len(best.filter_sizes) == search.best_params_["s"]
    one_by_one = cross_val_score(
        clone(search.estimator).set_params(**search.best_params_), texts, labels, cv=4
    )
    at_once = [search.cv_results_[f"split{i}_test_score"][search.best_index_] for i in range(4)]
    assert at_once == pytest.approx(one_by_one.tolist())


def test_a_search_that_races_goes_fold_by_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*args: Any) -> None:
        raise AssertionError("a race looks at one fold after the other")

    monkeypatch.setattr(TextCNN, "fit_folds", never)
    texts, labels = reviews(60)
    search = tw.TradeoffSearchCV(
        small(max_epochs=1), TextCNN.space(s=1), n_iter=2, cv=3, racing=0.05, random_state=0
    )
    assert search.fit(texts, labels).best_score_ > 0


def test_where_one_fold_fails_the_others_count() -> None:
    texts, labels = reviews(30)
    folds = [(np.arange(20), np.arange(20, 30)), (np.arange(0, 20, 2), np.arange(20, 30))]
    space = tw.Space({"d1": tw.Categorical([0.1])})
    search = tw.TradeoffSearchCV(
        small(max_epochs=2), space, n_iter=1, cv=folds, error_score=0.0, random_state=0
    )
    with pytest.warns(FitFailedWarning, match="two classes"):
        search.fit(texts, labels)
    assert search.cv_results_["split0_test_score"][0] > 0
    assert search.cv_results_["split1_test_score"][0] == 0.0


def test_folds_that_fail_at_once_are_a_failed_candidate() -> None:
    texts, labels = reviews(30)
    space = tw.Space({"d1": tw.Categorical([0.5, 7.0])})
    search = tw.TradeoffSearchCV(small(max_epochs=1), space, n_iter=2, cv=2, random_state=0)
    with (
        pytest.warns(FitFailedWarning, match=r"d1 must be .*in \[0, 1\)"),
        pytest.warns(UserWarning, match="non-finite"),
    ):
        search.fit(texts, labels)
    assert search.best_params_ == {"d1": 0.5}


# ---- the search space ----


def test_what_lies_beyond_s_is_not_there() -> None:
    space = TextCNN.space()
    seen = set()
    for seed in range(60):
        study = tw.create_study(space, strategy=tw.recipes.random_search(), seed=seed)
        params = study.ask().params
        s = params["s"]
        seen.add(s)
        numbered = {name for name in params if name[0] in "kf" and name[1:].isdigit()}
        assert numbered == {f"{letter}{i}" for letter in "kf" for i in range(s)}
        assert ("d2" in params) == (params["hidden"] > 0)
        model = TextCNN().set_params(**params)
        assert len(model.filter_sizes) == len(model.filters) == s
        model._plan()  # all of it is allowed
    assert len(seen) == 10


def test_the_published_ranges() -> None:
    space = TextCNN.space()
    assert [space[name] for name in ("d0", "d1", "k0", "f0", "s", "hidden")] == [
        tw.Float(0.0, 0.95),
        tw.Float(0.0, 0.95),
        tw.Int(1, 15),
        tw.Int(1, 100),
        tw.Int(1, 10),
        tw.Int(0, 100),
    ]
    assert space["d2"] == tw.Float(0.0, 0.95, when={"hidden": tw.at_least(1)})
    for i in range(1, 10):
        beyond = {"s": tw.at_least(i + 1)}
        assert space[f"k{i}"] == tw.Int(1, 15, when=beyond)
        assert space[f"f{i}"] == tw.Int(1, 100, when=beyond)
    assert set(TextCNN.space(s=3)) == {
        *("channels", "activation", "bias", "balance", "optimizer", "hidden", "d0", "d1", "d2"),
        *("k0", "k1", "k2", "f0", "f1", "f2"),
    }
    assert "train_size" in TextCNN.space(train_sizes=[0.5, 1.0])


def test_filter_sizes_can_be_set_by_the_names_of_the_thesis() -> None:
    model = TextCNN().set_params(s=2, k0=3, f0=10, k1=1, f1=4, hidden=7)
    assert (model.filter_sizes, model.filters, model.hidden) == ((3, 1), (10, 4), 7)
    assert TextCNN().set_params(k0=2, f0=5).filter_sizes == (2,)
    for params, lacking in (
        ({"k99": 3, "f0": 2}, "100 filter sizes need k0"),
        ({"s": 10**8, "k0": 1, "f0": 2}, "s must be a whole number from 1 to 100"),
        ({"k999999999": 3, "f0": 2}, "1 filter sizes need k0"),
        ({"k999999999": 3, "k0": 1, "f0": 2}, "Invalid parameter 'k999999999'"),
        ({"k" + 5000 * "9": 3}, "Invalid parameter 'k999"),
        ({"k0": 3, "f0": 2, "filter_sizes": (1,)}, "by k0, f0 or by filter_sizes, but got both"),
        ({"s": 1, "filters": 9, "filter_sizes": (1,)}, "by filter_sizes and filters, but got both"),
        ({"s": 2, "k0": 3, "f0": 10, "k1": 1}, "need f1"),
        ({"f0": 5}, "need k0"),
        ({"s": 0}, "s must be"),
        ({"s": "2", "k0": 1, "f0": 1}, "s must be"),
    ):
        with pytest.raises(ValueError, match=lacking):
            TextCNN().set_params(**params)
    for s in (0, -1, True, 1.5, 10**8):
        with pytest.raises(ValueError, match="s must be"):
            TextCNN.space(s)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Invalid parameter"):
        TextCNN().set_params(k=3)


# ---- manners ----


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
        {"unknown": "word2vec", "window": 2},
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
        ("one text", [1], "list of texts"),
        (["a", 3], [0, 1], "text 1 is 3"),
        (["a", None], [0, 1], "text 1 is None"),
        (["a", "b"], [0], "as many labels"),
        (["a", "b"], [[0], [1]], "as many labels"),
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
        ([([], [2])], "needs rows"),
        ([([0.5, 1.0], [2])], "needs rows"),
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
    with pytest.raises(ValueError, match="'odd', which training has not"):
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
