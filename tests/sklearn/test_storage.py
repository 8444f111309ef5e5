"""Searches that are limited, interrupted and resumed."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import stats
from sklearn.model_selection import cross_validate

import tradewind as tw
from tests.sklearn.models import Fragile, Known, Slow, X, y
from tradewind.errors import NothingFinished, StorageError
from tradewind.sklearn import TradeoffSearchCV

space = {"quality": stats.uniform(0, 1), "other": [(1, 2), (3, 4)]}


class Counted(Known):
    """Counts its fits. No two configurations have the same score: time would decide."""

    fits = 0

    def fit(self, X: Any, y: Any = None, **params: Any) -> Counted:
        Counted.fits += 1
        super().fit(X, y)
        return self

    def score(self, X: Any, y: Any = None) -> float:
        return float(self.quality) + 0.01 * sum(self.other or ())


def search(estimator: Any, given: Any = space, **options: Any) -> TradeoffSearchCV:
    options = {"n_iter": 6, "cv": 3, "random_state": 0} | options
    return TradeoffSearchCV(estimator, given, **options)


# ---- stored ----


def test_an_interrupted_search_goes_on(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    at_once = search(Counted()).fit(X, y)
    begun = search(Counted(), storage=store, n_iter=3).fit(X, y)
    Counted.fits = 0
    fitted = search(Counted(), storage=store).fit(X, y)
    assert Counted.fits == 3 * 3 + 1
    assert fitted.cv_results_["params"] == at_once.cv_results_["params"]
    for key in ("mean_test_score", "split2_test_score", "rank_test_score", "train_size"):
        assert_array_equal(fitted.cv_results_[key], at_once.cv_results_[key])
    assert_array_equal(fitted.cv_results_["mean_fit_time"][:3], begun.cv_results_["mean_fit_time"])
    assert_array_equal(np.isnan(fitted.cv_results_["mean_score_time"]), [True] * 3 + [False] * 3)
    assert_array_equal(np.isnan(fitted.cv_results_["n_train_rows"]), [True] * 3 + [False] * 3)
    assert fitted.best_params_ == at_once.best_params_


def test_a_search_that_is_complete_is_only_refitted(tmp_path: Path) -> None:
    first = search(Counted(), storage=tmp_path / "runs.db").fit(X, y)
    Counted.fits = 0
    again = search(Counted(), storage=tmp_path / "runs.db").fit(X, y)
    assert Counted.fits == 1
    assert again.best_params_ == first.best_params_
    assert again.best_score_ == first.best_score_
    assert again.frontier_ == first.frontier_


def test_of_a_stored_search_only_the_metric_that_counts_is_known(tmp_path: Path) -> None:
    def two(estimator: Any, X: Any, y: Any) -> dict[str, float]:
        return {"up": estimator.quality, "down": -estimator.quality}

    options: dict[str, Any] = {"storage": tmp_path / "runs.db", "scoring": two, "refit": "down"}
    search(Known(), n_iter=2, **options).fit(X, y)
    with pytest.warns(UserWarning, match="One or more of the test scores are non-finite"):
        fitted = search(Known(), n_iter=4, **options).fit(X, y)
    assert_array_equal(np.isnan(fitted.cv_results_["mean_test_up"]), [True] * 2 + [False] * 2)
    assert np.isfinite(fitted.cv_results_["mean_test_down"]).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.filterwarnings("ignore:One or more of the test scores")
def test_failed_candidates_of_a_stored_search_count(tmp_path: Path) -> None:
    options: dict[str, Any] = {"storage": tmp_path / "runs.db"}
    only = {"quality": [0.1, 0.3, 0.6, 0.7]}
    search(Fragile(), only, n_iter=3, **options).fit(X, y)
    fitted = search(Fragile(), only, n_iter=4, **options).fit(X, y)
    results = fitted.cv_results_
    assert len(results["params"]) == 4
    assert_array_equal(np.isnan(results["mean_test_score"]), results["param_quality"] >= 0.5)
    assert fitted.best_params_ == {"quality": 0.3}


def test_searches_of_several_names_share_a_store(tmp_path: Path) -> None:
    options: dict[str, Any] = {"storage": tmp_path / "runs.db", "n_iter": 2}
    search(Known(), **options).fit(X, y)
    search(Known(), {"quality": [0.1, 0.2]}, name="other", **options).fit(X, y)
    names = sorted(s.name.split("-")[0] for s in tw.list_studies(tmp_path / "runs.db"))
    assert names == ["Known", "other"]


def test_another_space_or_seed_needs_another_name(tmp_path: Path) -> None:
    options: dict[str, Any] = {"storage": tmp_path / "runs.db", "n_iter": 2}
    search(Known(), **options).fit(X, y)
    with pytest.raises(StorageError, match=r"'quality' is Float.* there and Ordinal.* here"):
        search(Known(), {"quality": [0.1, 0.2]}, **options).fit(X, y)
    with pytest.raises(StorageError, match="its seed is 0 there and 1 here"):
        search(Known(), random_state=1, **options).fit(X, y)


@pytest.mark.parametrize("change", ["data", "targets", "folds", "scoring", "estimator"])
def test_results_for_other_data_or_scores_are_not_gone_on_with(change: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"storage": tmp_path / "runs.db", "name": "mine", "n_iter": 2}
    first = search(Known(), **options).fit(X, y)
    again = search(Known(), **options).fit(X, y)
    assert again.study_.name == first.study_.name
    assert len(again.study_.trials) == 2
    changed = {"folds": {"cv": 5}, "scoring": {"scoring": "f1_macro"}}.get(change, {})
    estimator = Known(quality=0.123) if change == "estimator" else Known()
    data = np.asarray(X)[::-1] if change == "data" else X
    targets = np.asarray(y)[::-1] if change == "targets" else y
    other = search(estimator, **options, **changed).fit(data, targets)
    assert other.study_.name != first.study_.name
    assert len(other.study_.trials) == 2


def test_the_folds_of_a_nested_search_do_not_share_results(tmp_path: Path) -> None:
    inner = search(Known(), storage=tmp_path / "runs.db", n_iter=2)
    cross_validate(inner, X, y, cv=3)
    assert [s.trials for s in tw.list_studies(tmp_path / "runs.db")] == [2, 2, 2]


def test_a_store_for_all_studies_is_not_for_searches_that_name_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRADEWIND_STORAGE", str(tmp_path / "runs.db"))
    first, second = (search(Known(), n_iter=2, random_state=i).fit(X, y) for i in (0, 1))
    assert len(first.study_.trials) == len(second.study_.trials) == 2
    assert not (tmp_path / "runs.db").exists()


def test_results_that_were_added_by_hand_are_candidates(tmp_path: Path) -> None:
    options: dict[str, Any] = {"storage": tmp_path / "runs.db"}
    made = search(Known(), {"quality": tw.Float(0, 1)}, n_iter=2, **options).fit(X, y)
    made.study_.add({"quality": 0.5}, 3.0, cost=1.0)
    fitted = search(Known(), {"quality": tw.Float(0, 1)}, n_iter=3, **options).fit(X, y)
    assert fitted.best_params_ == {"quality": 0.5}
    assert fitted.best_score_ == 3.0


def test_a_stored_search_is_pickled_with_its_results(tmp_path: Path) -> None:
    fitted = search(Known(), storage=tmp_path / "runs.db", n_iter=2).fit(X, y)
    assert pickle.loads(pickle.dumps(fitted)).study_.best == fitted.study_.best


# ---- limits ----


def test_a_search_ends_when_its_time_is_up() -> None:
    slow = {"quality": stats.uniform(0, 1), "seconds": [0.01]}
    fitted = search(Slow(), slow, n_iter=None, timeout=1.0).fit(X, y)
    n = len(fitted.cv_results_["params"])
    assert 1 <= n <= 1.0 / (3 * 0.01)
    assert fitted.best_score_ == fitted.cv_results_["mean_test_score"].max()


def test_a_search_ends_when_its_fits_have_taken_what_they_may() -> None:
    slow = {"quality": stats.uniform(0, 1), "seconds": [0.05]}
    fitted = search(Slow(), slow, n_iter=None, max_cost=1.0).fit(X, y)
    n = len(fitted.cv_results_["params"])
    assert 1 <= n <= 1 + 1.0 / (3 * 0.05)


def test_without_n_iter_a_finite_space_is_the_limit() -> None:
    fitted = search(Known(), {"quality": [0.1, 0.2, 0.3]}, n_iter=None, timeout=60).fit(X, y)
    assert len(fitted.cv_results_["params"]) == 3


def test_a_search_without_any_time_says_so() -> None:
    with pytest.raises(NothingFinished, match="no candidate was evaluated"):
        search(Known(), timeout=0).fit(X, y)
