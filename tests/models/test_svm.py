"""UnigramSVM: words to features, LIBLINEAR's settings, and its manners as a classifier."""

from __future__ import annotations

import builtins
import pickle
import re
from collections import Counter
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from sklearn.model_selection import cross_val_score
from sklearn.svm import LinearSVC
from snowballstemmer import stemmer

import tradewind as tw
from tradewind.errors import ConfigError
from tradewind.models import UnigramSVM, tokenize
from tradewind.space.parameters import DEFAULT_SIZES

TELLING = {1: "awful horrible inedible", 2: "dull slow cold", 3: "tasty superb friendly"}
OTHERS = ("place", "food", "table", "waiter", "menu", "order", "drink", "street", "lunch")


def reviews(n: int = 90, classes: int = 3, seed: int = 0) -> tuple[list[str], NDArray[Any]]:
    """Texts in which two words tell the stars, among stop words and others."""
    rng = np.random.default_rng(seed)
    stars = 1 + np.arange(n) % classes
    texts = []
    for star in stars.tolist():
        words = [*rng.choice(OTHERS, 5), *rng.choice(TELLING[star].split(), 2), "the", "was"]
        texts.append(" ".join(rng.permutation(words)))
    return texts, stars


@pytest.fixture(scope="module")
def fitted() -> UnigramSVM:
    return UnigramSVM(random_state=0).fit(*reviews())


# ---- learning and predicting ----


@pytest.mark.parametrize(
    "chosen",
    [
        {},
        {"weighting": "binary"},
        {"loss": "hinge", "C": 1},
        {"penalty": "l1", "C": 1},
        {"bias": 0},
        {"bias": -1.0},
        {"balance": True},
        {"remove_stop_words": False},
    ],
)
@pytest.mark.parametrize("classes", [2, 3])
def test_it_learns(chosen: dict[str, Any], classes: int) -> None:
    model = UnigramSVM(**chosen, random_state=0).fit(*reviews(classes=classes))
    texts, stars = reviews(60, classes, seed=1)
    assert model.score(texts, stars) > 0.95
    assert list(model.classes_) == list(range(1, classes + 1))


def test_scores_have_a_column_for_each_class_or_one_where_there_are_two() -> None:
    for classes, shape in ((2, (7,)), (3, (7, 3))):
        model = UnigramSVM().fit(*reviews(classes=classes))
        texts, _ = reviews(7, classes, seed=1)
        scores = model.decision_function(texts)
        assert scores.shape == shape
        best = scores.argmax(axis=1) if classes == 3 else (scores > 0).astype(int)
        assert model.predict(texts).tolist() == model.classes_[best].tolist()


@pytest.mark.parametrize("kind", [list, tuple, np.array, pd.Series])
def test_texts_and_labels_come_in_many_forms(kind: Any, fitted: UnigramSVM) -> None:
    texts, stars = reviews()
    model = UnigramSVM(random_state=0).fit(kind(texts), kind(stars.tolist()))
    assert np.array_equal(model.coef_, fitted.coef_)
    assert np.array_equal(model.predict(kind(texts)), fitted.predict(texts))


def test_a_shuffled_column_of_pandas_keeps_its_rows() -> None:
    texts, stars = reviews()
    frame = pd.DataFrame({"text": texts, "stars": stars}).sample(frac=1, random_state=0)
    model = UnigramSVM().fit(frame["text"], frame["stars"])
    assert model.score(frame["text"], frame["stars"]) > 0.95


def test_labels_may_be_words(tmp_path: Path) -> None:
    texts, stars = reviews()
    for labels in (np.array(["bad", "fair", "good"])[stars - 1], pd.Series(list("abc") * 30)):
        model = UnigramSVM().fit(texts, labels)
        assert model.score(texts, labels) > 0.95
        model.save(tmp_path / "model.npz")
        assert UnigramSVM.load(tmp_path / "model.npz").score(texts, labels) > 0.95


def test_the_seed_decides() -> None:
    a, b = (UnigramSVM(random_state=3).fit(*reviews()) for _ in range(2))
    assert np.array_equal(a.coef_, b.coef_)
    assert a.intercept_.tolist() == b.intercept_.tolist()


def test_balance_lifts_a_rare_class() -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(OTHERS, 4)) for _ in range(300)]
    stars = np.where(rng.random(300) < 0.1, 1, 2)
    plain, balanced = (
        UnigramSVM(balance=b).fit(texts, stars).predict(texts) for b in (False, True)
    )
    assert np.sum(balanced == 1) > np.sum(plain == 1)


def test_seconds_are_kept(fitted: UnigramSVM) -> None:
    assert 0 < fitted.solver_seconds_ < fitted.fit_seconds_


# ---- features ----


def features(model: UnigramSVM, text: str) -> dict[str, float]:
    """The features of a text by stem, read off a model whose weights pick them one by one."""
    probe = clone(model)
    vars(probe).update(vars(model))
    probe.classes_ = np.arange(max(3, len(model.words_)))
    probe.coef_, probe.intercept_ = np.eye(len(model.words_)), np.zeros(len(model.words_))
    (row,) = probe.decision_function([text])
    return {word: x for word, x in zip(model.words_, row, strict=True) if x}


TEXTS = (
    "Running runs, the RUNNER ran!",
    "relational conditional",
    "run generously or not, ponies?",
)


@pytest.mark.parametrize("weighting", ["tfidf", "binary"])
@pytest.mark.parametrize("remove", [True, False])
def test_features_are_weighted_stems_of_length_one(weighting: Any, remove: bool) -> None:
    model = UnigramSVM(weighting=weighting, remove_stop_words=remove).fit(TEXTS, [0, 1, 2])
    stop = ENGLISH_STOP_WORDS if remove else set()
    stem = stemmer("porter").stemWord
    bags = [Counter(stem(t) for t in tokenize(text) if t not in stop) for text in TEXTS]
    assert model.words_ == sorted(set().union(*bags))
    frequency = Counter(word for bag in bags for word in bag)
    for text, bag in zip(TEXTS, bags, strict=True):
        expected = {
            word: (1 + log(n)) * (1 + log(4 / (1 + frequency[word]))) if weighting == "tfidf" else 1
            for word, n in bag.items()
        }
        length = np.sqrt(sum(x * x for x in expected.values()))
        assert features(model, text) == pytest.approx({w: x / length for w, x in expected.items()})


def test_the_stemmer_is_porters_own_and_not_its_successor() -> None:
    model = UnigramSVM().fit(["generously skies", "dying ponies"], [0, 1])
    assert model.words_ == ["dy", "gener", "poni", "ski"]


def test_rare_stems_are_left_out() -> None:
    texts = ["spoon fork", "spoons knife", "spoon spoon plate plate"]
    assert UnigramSVM(min_count=2).fit(texts, [0, 1, 1]).words_ == ["spoon"]
    assert UnigramSVM(min_count=1).fit(texts, [0, 1, 1]).words_ == [
        "fork",
        "knife",
        "plate",
        "spoon",
    ]


def test_texts_without_known_words_get_what_the_bias_says(fitted: UnigramSVM) -> None:
    empty = fitted.decision_function(["", "the of and", "unheard zzzz", ". . ."])
    assert np.array_equal(empty, np.tile(fitted.intercept_, (4, 1)))
    assert fitted.decision_function([]).shape == (0, 3)


def test_empty_texts_can_be_learned_from() -> None:
    texts, stars = reviews()
    model = UnigramSVM().fit([*texts, "", "the"], [*stars, 1, 2])
    assert model.score(texts, stars) > 0.95


@given(texts=st.lists(st.text(max_size=30), min_size=2, max_size=8))
@settings(max_examples=50, deadline=None)
def test_any_text_is_learned_from_or_refused(texts: list[str]) -> None:
    labels = np.arange(len(texts)) % 2
    model = UnigramSVM()
    if any(token not in ENGLISH_STOP_WORDS for text in texts for token in tokenize(text)):
        assert set(model.fit(texts, labels).predict(texts)) <= {0, 1}
    else:
        with pytest.raises(ValueError, match="no words are left"):
            model.fit(texts, labels)


# ---- LIBLINEAR ----


@pytest.mark.parametrize(
    ("bias", "expected"),
    [
        (0, {"fit_intercept": False}),
        (-1, {"fit_intercept": False}),
        (2.5, {"intercept_scaling": 2.5}),
    ],
)
@pytest.mark.parametrize(
    ("penalty", "loss"), [("l2", "hinge"), ("l2", "squared_hinge"), ("l1", "squared_hinge")]
)
def test_weights_are_those_of_liblinear(
    bias: float, expected: dict[str, Any], penalty: Any, loss: Any
) -> None:
    model = UnigramSVM(C=0.7, bias=bias, penalty=penalty, loss=loss, random_state=0)
    model.fit(TEXTS, [0, 1, 2])
    rows = [features(model, text) for text in TEXTS]
    X = np.array([[row.get(word, 0.0) for word in model.words_] for row in rows])
    dual = penalty == "l2"
    exact = LinearSVC(
        C=0.7, penalty=penalty, loss=loss, dual=dual, tol=0.01, random_state=0, **expected
    )
    exact.fit(X, [0, 1, 2])
    assert model.coef_ == pytest.approx(exact.coef_, abs=1e-6)
    assert model.intercept_ == pytest.approx(np.zeros(3) + exact.intercept_, abs=1e-6)


def test_the_tolerance_and_the_seed_reach_liblinear() -> None:
    texts, stars = reviews()

    def exact(model: UnigramSVM) -> NDArray[Any]:
        """The weights that LIBLINEAR gives to the features of a model."""
        rows = [features(model, text) for text in texts]
        X = csr_matrix([[row.get(word, 0.0) for word in model.words_] for row in rows])
        solver = LinearSVC(C=1.0, dual=True, tol=model.tol, random_state=model.random_state)
        weights: NDArray[Any] = solver.fit(X, stars).coef_
        return weights

    chosen = [(0.01, 0), (0.01, 1), (1.0, 0)]
    models = [
        UnigramSVM(C=1.0, tol=tol, random_state=seed).fit(texts, stars) for tol, seed in chosen
    ]
    for model in models:
        assert model.coef_ == pytest.approx(exact(model), abs=1e-7)
    for other in models[1:]:
        assert models[0].coef_ != pytest.approx(other.coef_, abs=1e-4)


def test_the_defaults_are_those_that_did_best() -> None:
    assert UnigramSVM().get_params() == {
        "C": 0.1,
        "bias": 1.0,
        "penalty": "l2",
        "loss": "squared_hinge",
        "weighting": "tfidf",
        "remove_stop_words": True,
        "min_count": 1,
        "balance": False,
        "tol": 0.01,
        "max_iter": 10_000,
        "random_state": None,
    }


def test_without_a_bias_nothing_is_added() -> None:
    assert UnigramSVM(bias=0).fit(*reviews()).intercept_.tolist() == [0, 0, 0]


def test_too_few_iterations_are_warned_of() -> None:
    with pytest.warns(ConvergenceWarning):
        UnigramSVM(C=100, max_iter=1).fit(*reviews())


# ---- what it refuses ----


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"C": 0}, "C must be a number > 0, but got 0"),
        ({"C": np.nan}, "C must be a number"),
        ({"C": "1"}, "C must be a number"),
        ({"bias": np.inf}, "bias must be a finite number"),
        ({"bias": np.nan}, "bias must be a finite number"),
        ({"bias": None}, "bias must be a finite number, but got None"),
        ({"bias": True}, "bias must be a finite number"),
        ({"penalty": "l3"}, "penalty must be one of 'l2', 'l1', but got 'l3'"),
        ({"loss": "log"}, "loss must be one of 'squared_hinge', 'hinge'"),
        ({"penalty": "l1", "loss": "hinge"}, 'penalty="l1" needs loss="squared_hinge"'),
        ({"weighting": "count"}, "weighting must be one of 'tfidf', 'binary'"),
        ({"min_count": 0}, "min_count must be a whole number ≥ 1"),
        ({"min_count": 1.5}, "min_count must be a whole number"),
        ({"min_count": 1000}, "no words are left in 90 texts"),
        ({"remove_stop_words": "english"}, "remove_stop_words must be True or False"),
        ({"balance": 1}, "balance must be True or False"),
        ({"tol": 0}, "tol must be a number > 0"),
        ({"max_iter": 0}, "max_iter must be a whole number ≥ 1"),
        ({"random_state": -1}, "random_state must be"),
    ],
)
def test_wrong_settings_are_named_when_it_is_fitted(chosen: dict[str, Any], message: str) -> None:
    model = UnigramSVM(**chosen)
    with pytest.raises(ValueError, match=re.escape(message)):
        model.fit(*reviews())


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ("one text", [1], "texts must be a list of strings"),
        (None, [1, 2], "texts must be a list of strings, but got None"),
        (3, [1, 2], "texts must be a list of strings, but got 3"),
        (["a", None], [1, 2], "every text must be a string, but text 1 is None"),
        (["a", np.nan], [1, 2], "every text must be a string, but text 1 is nan"),
        ([b"a", b"b"], [1, 2], "every text must be a string"),
        (np.zeros((2, 2)), [1, 2], "texts must have one dimension"),
        ([], [], "at least one text is needed"),
        (["spoon", "fork"], [1], "every text needs a label, but got 2 texts"),
        (["spoon", "fork"], [1, np.nan], "labels must be finite"),
        (["spoon", "fork"], [0.5, 1.5], "Unknown label type"),
        (["spoon", "fork"], [3, 3], "labels must have at least two classes, but all are [3]"),
        (["the", "of", ". ."], [1, 2, 3], "no words are left in 3 texts"),
    ],
)
def test_wrong_data_are_named(X: Any, y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        UnigramSVM().fit(X, y)


@pytest.mark.parametrize("method", ["predict", "decision_function"])
def test_it_must_be_fitted_and_given_texts(method: str, fitted: UnigramSVM) -> None:
    with pytest.raises(NotFittedError):
        getattr(UnigramSVM(), method)(["a"])
    with pytest.raises(ValueError, match="texts must be a list of strings"):
        getattr(fitted, method)("a")
    with pytest.raises(ValueError, match="every text must be a string"):
        getattr(fitted, method)([1])


def test_without_a_stemmer_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def absent(name: str, *rest: Any) -> Any:
        if name == "snowballstemmer":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(ImportError, match=re.escape("pip install snowballstemmer")):
        UnigramSVM().fit(*reviews())


# ---- as an estimator ----


def test_it_is_a_classifier_of_scikit_learn(fitted: UnigramSVM) -> None:
    assert is_classifier(fitted)
    given = {"C": 3.0, "weighting": "binary", "random_state": 1}
    model = UnigramSVM().set_params(**given)
    assert {name: clone(model).get_params()[name] for name in given} == given
    assert not hasattr(clone(fitted), "coef_")
    with pytest.raises(ValueError, match="Invalid parameter"):
        model.set_params(D=1)


def test_settings_are_left_as_they_were_given() -> None:
    model = UnigramSVM(C=np.float32(0.5), bias=np.int64(2), min_count=np.int64(1))
    before = model.get_params()
    model.fit(*reviews())
    assert model.get_params() == before


def test_a_saved_model_predicts_the_same(fitted: UnigramSVM, tmp_path: Path) -> None:
    fitted.save(tmp_path / "model.npz")
    model = UnigramSVM.load(tmp_path / "model.npz")
    texts, _ = reviews(30, seed=1)
    for other in (model, pickle.loads(pickle.dumps(fitted))):
        assert np.array_equal(other.decision_function(texts), fitted.decision_function(texts))
        assert other.get_params() == fitted.get_params()


def test_a_refit_forgets_the_texts_before() -> None:
    model = UnigramSVM(random_state=0).fit(["spoon", "fork"], ["a", "b"])
    texts, stars = reviews()
    again = model.fit(texts, stars)
    assert again is model
    assert "spoon" not in model.words_
    assert model.classes_.tolist() == [1, 2, 3]


def test_it_can_be_cross_validated() -> None:
    assert cross_val_score(UnigramSVM(), *reviews(), cv=3, error_score="raise").mean() > 0.9


# ---- the search ----


def test_the_space_is_that_of_the_paper() -> None:
    space = UnigramSVM.space()
    assert list(space) == ["C", "bias", "penalty", "loss", "train_size"]
    assert space["train_size"].choices == DEFAULT_SIZES
    assert "train_size" not in UnigramSVM.space(train_sizes=None)
    assert UnigramSVM.space([0.5, 1])["train_size"].choices == (0.5, 1.0)
    with pytest.raises(ConfigError, match="forbidden"):
        space.validate({"C": 1, "bias": 1, "penalty": "l1", "loss": "hinge", "train_size": 1})


def test_whatever_is_in_the_space_can_be_fitted() -> None:
    space = UnigramSVM.space(train_sizes=None)
    for config in space.decode(space.sample(12, rng=np.random.default_rng(0))):
        UnigramSVM(**config).fit(*reviews(30))


@pytest.mark.parametrize("goal", [tw.Tradeoff(alpha=0.1), tw.Quality()])
def test_a_search_tunes_it_with_its_training_size(goal: Any) -> None:
    search = tw.TradeoffSearchCV(
        UnigramSVM(random_state=0), UnigramSVM.space(), goal=goal, n_iter=6, cv=2, random_state=0
    )
    texts, stars = reviews()
    search.fit(texts, stars)
    assert search.score(texts, stars) > 0.9
    assert set(search.best_params_) == {"C", "bias", "penalty", "loss"}
    assert set(search.cv_results_["train_size"]) <= set(DEFAULT_SIZES)
    assert search.best_train_size_ in DEFAULT_SIZES
