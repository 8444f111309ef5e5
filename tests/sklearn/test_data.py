"""What a search is fitted to, and what goes with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.metrics.pairwise import linear_kernel
from sklearn.model_selection import GroupKFold, LeaveOneGroupOut, RandomizedSearchCV
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from tests.sklearn.models import Known, X, y
from tradewind.sklearn import TradeoffSearchCV

flowers, kinds = load_iris(return_X_y=True)
space = {"quality": [0.2, 0.9]}


def search(estimator: Any = None, given: Any = None, **options: Any) -> TradeoffSearchCV:
    model = Known() if estimator is None else estimator
    options = {"n_iter": 2, "cv": 2, "random_state": 0} | options
    return TradeoffSearchCV(model, space if given is None else given, **options)


# ---- kinds of X and y ----


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.coo_array, sparse.csc_matrix])
def test_sparse_rows_are_learned_from(kind: Any) -> None:
    fitted = search(SVC(), {"C": [0.1, 1.0]}).fit(kind(flowers), kinds)
    dense = search(SVC(), {"C": [0.1, 1.0]}).fit(flowers, kinds)
    assert fitted.best_params_ == dense.best_params_
    assert fitted.score(kind(flowers), kinds) == pytest.approx(dense.score(flowers, kinds))


def test_the_names_of_columns_are_kept() -> None:
    frame = pd.DataFrame(flowers, columns=list("abcd"))
    fitted = search(SVC(), {"C": [0.1, 1.0]}).fit(frame, pd.Series(kinds, index=frame.index + 7))
    assert list(fitted.feature_names_in_) == list("abcd")
    fitted.fit(flowers, kinds)
    assert not hasattr(fitted, "feature_names_in_")


@pytest.mark.parametrize(
    "rows",
    [
        ["some", "rows", "of", "text", "and", "more"] * 3,
        [[1, 2], [3], [4, 5, 6]] * 6,
        np.zeros((18, 3, 4)),
        np.array([f"word {i}" for i in range(18)]),
    ],
    ids=["texts", "ragged", "3-d", "array of texts"],
)
def test_rows_may_be_anything_that_an_estimator_takes(rows: Any) -> None:
    fitted = search().fit(rows, [0, 1] * 9)
    assert fitted.best_score_ == 0.9
    assert len(fitted.best_estimator_.X_) == 18


def test_targets_may_have_several_columns() -> None:
    fitted = search(train_sizes=[0.5], cv=3).fit(X, np.column_stack([y, y]))
    assert fitted.best_estimator_.y_.shape == (10, 2)


def test_estimators_without_targets_are_searched() -> None:
    fitted = search(KernelDensity(), {"bandwidth": [0.01, 1.0]}, cv=3).fit(flowers)
    assert fitted.best_params_ == {"bandwidth": 1.0}
    assert fitted.score_samples(flowers).shape == (150,)
    assert fitted.score(flowers) == fitted.best_estimator_.score(flowers)
    clusters = search(KMeans(n_init=1, random_state=0), {"n_clusters": [2, 5]}, train_sizes=[0.5])
    assert clusters.fit(flowers).best_estimator_.labels_.shape == (75,)


def test_both_axes_of_a_kernel_are_cut() -> None:
    kernel = linear_kernel(flowers)
    model, values = SVC(kernel="precomputed"), {"C": [0.001, 1.0]}
    fitted = search(model, values, cv=3).fit(kernel, kinds)
    theirs = RandomizedSearchCV(model, values, n_iter=2, cv=3, random_state=0).fit(kernel, kinds)
    assert fitted.best_params_ == theirs.best_params_
    assert fitted.best_score_ == pytest.approx(theirs.best_score_)


def test_the_rows_that_a_kernel_was_cut_to_are_known() -> None:
    kernel = linear_kernel(flowers)
    fitted = search(SVC(kernel="precomputed"), {"C": [1.0, 2.0]}, train_sizes=[0.5])
    fitted.fit(kernel, kinds)
    assert len(fitted.best_rows_) == 75
    assert fitted.score(kernel[:, fitted.best_rows_], kinds) > 0.9


def test_rows_and_targets_must_be_as_many() -> None:
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        search().fit(X, y[:-1])


# ---- what goes with the rows ----


def test_what_has_a_value_for_each_row_is_cut_with_the_rows() -> None:
    class Strict(Known):
        def fit(self, X: Any, y: Any = None, **params: Any) -> Strict:
            assert_array_equal(params["first"], X[:, 0])
            assert_array_equal(params["series"], X[:, 0])
            assert params["word"] == "a word of twenty chr"
            assert params["number"] == 3
            super().fit(X, y, **params)
            return self

    given = {"first": X[:, 0], "series": pd.Series(X[:, 0]), "number": 3}
    fitted = search(Strict(), train_sizes=[0.5], error_score="raise").fit(
        X, y, word="a word of twenty chr", **given
    )
    assert len(fitted.best_estimator_.params_["first"]) == 10


def test_parameters_reach_the_step_of_a_pipeline() -> None:
    model = make_pipeline(StandardScaler(), Known())
    fitted = search(model, {"known__quality": [0.2, 0.9]}).fit(X, y, known__weights=np.arange(20))
    assert_array_equal(fitted.best_estimator_[-1].params_["weights"], np.arange(20))


def test_groups_go_to_the_splitter_and_not_to_the_estimator() -> None:
    groups = np.repeat(np.arange(4), 5)
    fitted = search(cv=LeaveOneGroupOut()).fit(X, y, groups=groups)
    assert fitted.n_splits_ == 4
    assert fitted.best_estimator_.params_ == {}
    with pytest.raises(ValueError, match="groups"):
        search(cv=GroupKFold(2)).fit(X, y)


def test_a_fraction_of_the_rows_keeps_groups_whole() -> None:
    groups = np.repeat(np.arange(10), 2)
    fitted = search(cv=GroupKFold(2), train_sizes=[0.5]).fit(X, y, groups=groups)
    assert len(fitted.best_rows_) == 10
    assert set(np.bincount(groups[fitted.best_rows_])) <= {0, 2}


class Weighed(Known):
    """Its score is the sum of the weights that it is scored with."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Weighed:
        super().fit(X, y)
        self.weights_ = sample_weight
        return self

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        return 0.0 if sample_weight is None else float(np.sum(sample_weight))


def test_weights_reach_the_estimator_cut() -> None:
    def score(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        assert_array_equal(sample_weight, X[:, 0])
        return float(len(estimator.weights_))

    fitted = search(Weighed(), scoring=score, error_score="raise", return_train_score=True)
    fitted.fit(X, y, sample_weight=X[:, 0])
    assert fitted.best_score_ == 10
    assert_array_equal(fitted.best_estimator_.weights_, X[:, 0])


def test_a_scorer_that_takes_no_weights_is_reported() -> None:
    with pytest.warns(UserWarning, match="does not support sample_weight"):
        search(Weighed(), scoring=lambda e, X, y: 1.0).fit(X, y, sample_weight=X[:, 0])


# ---- metadata routing ----


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
def test_metadata_go_where_they_are_asked_for() -> None:
    model = LogisticRegression().set_fit_request(sample_weight="fit_weight")
    scorer = make_scorer(accuracy_score).set_score_request(sample_weight="score_weight")
    groups = np.tile(np.arange(5), 30)
    made = search(model, {"C": [0.1, 1.0]}, cv=GroupKFold(5), scoring=scorer)
    some = np.where(kinds == 2, 0.0, 1.0)
    with pytest.raises(TypeError, match="score_weights"):
        made.fit(flowers, kinds, fit_weight=some, groups=groups, score_weights=some)
    made.fit(flowers, kinds, fit_weight=some, score_weight=some, groups=groups)
    assert made.n_splits_ == 5
    assert made.best_score_ == 1.0  # the third class, never seen with a weight, does not count
    assert not (made.predict(flowers) == 2).any()
    assert made.score(flowers, kinds, score_weight=some) == 1.0
    assert made.score(flowers, kinds) == pytest.approx(2 / 3, abs=0.01)


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_several_scorers_have_their_own_metadata(n_jobs: int | None) -> None:
    scoring = {
        "weighed": make_scorer(accuracy_score).set_score_request(sample_weight=True),
        "plain": make_scorer(accuracy_score).set_score_request(sample_weight=False),
    }
    model = LogisticRegression(C=1e-9).set_fit_request(sample_weight=False)
    made = search(model, {"tol": [0.1, 1.0]}, scoring=scoring, refit="weighed", n_jobs=n_jobs)
    made.fit(flowers, kinds, sample_weight=np.where(kinds == 0, 1.0, 0.0))
    results = made.cv_results_
    assert (results["mean_test_weighed"] != results["mean_test_plain"]).all()


@pytest.mark.usefixtures("routing")
def test_metadata_that_nobody_asked_for_are_an_error() -> None:
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        search(LogisticRegression(), {"C": [0.1, 1.0]}).fit(X, y, sample_weight=X[:, 0])


def test_the_score_takes_no_parameters_without_routing() -> None:
    with pytest.raises(ValueError, match="enable_metadata_routing"):
        search().fit(X, y).score(X, y, sample_weight=X[:, 0])
