"""TextCNN as a classifier of scikit-learn: learning, stopping, and its search space."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import tradewind as tw
from tests.models.reviews import OTHERS, reviews, small, vectors
from tradewind.models import TextCNN
from tradewind.models.textcnn import estimator
from tradewind.models.textcnn.training import NetworkData


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


def seen_folds(monkeypatch: pytest.MonkeyPatch, model: TextCNN, y: Any) -> list[NetworkData]:
    """What `fit` gives to the training."""
    seen: list[NetworkData] = []
    real = estimator.train

    def spy(network: Any, settings: Any, texts: Any, labels: Any, folds: Any) -> Any:
        seen.extend(folds)
        return real(network, settings, texts, labels, folds)

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
    with pytest.warns(
        UserWarning, match=f"validation_fraction={fraction} .* is less than one text"
    ) as said:
        model.fit(texts, y)
    assert len(said) == 1
    assert [epoch["valid_loss"] for epoch in model.history_] == [None, None]
    assert model.best_epoch_ == 2
    model.fit(texts, y, validation=(texts[:1], y[:1]))  # and there is nothing to say
    assert model.history_[0]["valid_loss"] is not None


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
        model._settings()  # all of it is allowed
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
        ({"k0": 3, "f0": 2, "filter_sizes": (1,)}, "by k0, f0 or by filter_sizes, but not by both"),
        ({"s": 1, "filters": 9, "filter_sizes": (1,)}, "by filter_sizes and filters, but not"),
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
