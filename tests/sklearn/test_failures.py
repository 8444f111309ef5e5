"""Fits and scores that fail."""

from __future__ import annotations

import logging
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import FitFailedWarning

from tests.sklearn.models import Fragile, Known, X, y
from tradewind.sklearn import TradeoffSearchCV
from tradewind.types import State

qualities = [0.1, 0.3, 0.5, 0.7]


def search(estimator: Any, **options: Any) -> TradeoffSearchCV:
    options = {"n_iter": 4, "cv": 2, "random_state": 0} | options
    return TradeoffSearchCV(estimator, options.pop("space", {"quality": qualities}), **options)


def fitted_quietly(made: TradeoffSearchCV) -> TradeoffSearchCV:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return made.fit(X, y)


def test_a_fit_that_fails_has_no_score_and_is_reported() -> None:
    with (
        pytest.warns(FitFailedWarning, match="4 fits failed out of a total of 8") as caught,
        pytest.warns(UserWarning, match="One or more of the test scores are non-finite"),
    ):
        fitted = search(Fragile()).fit(X, y)
    assert "RuntimeError: quality 0.7 is too good to be true" in str(caught[0].message)
    results, bad = fitted.cv_results_, np.array(fitted.cv_results_["param_quality"] >= 0.5)
    assert fitted.best_params_ == {"quality": 0.3}
    assert np.isnan(results["mean_test_score"][bad]).all()
    assert np.isfinite(results["mean_test_score"][~bad]).all()
    assert (results["mean_fit_time"] > 0).all()
    assert list(results["rank_test_score"][bad]) == [3, 3]
    states = [trial.state for trial in fitted.study_.trials]
    assert [state is State.FAILED for state in states] == list(bad)
    failed = next(trial for trial in fitted.study_.trials if not trial.finished)
    assert "too good to be true" in (failed.error or "")


@pytest.mark.parametrize("verbose", [0, 2])
def test_failed_fits_are_logged_to_standard_error_only_if_progress_is_wanted(
    verbose: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logging.getLogger("tradewind"), "propagate", False)  # pytest has handlers
    with pytest.warns(FitFailedWarning), pytest.warns(UserWarning, match="non-finite"):
        search(Fragile(), verbose=verbose).fit(X, y)
    assert ("failed" in capsys.readouterr().err) == bool(verbose)


def test_a_fit_that_fails_may_be_given_a_score() -> None:
    with pytest.warns(FitFailedWarning, match=r"will be set to -3\.0"):
        fitted = search(Fragile(), error_score=-3).fit(X, y)
    bad = fitted.cv_results_["param_quality"] >= 0.5
    assert (fitted.cv_results_["split1_test_score"][bad] == -3).all()
    assert all(trial.finished for trial in fitted.study_.trials)


def test_an_error_may_end_the_search() -> None:
    with pytest.raises(RuntimeError, match="too good to be true"):
        search(Fragile(), error_score="raise").fit(X, y)


def test_when_every_fit_fails_that_is_an_error() -> None:
    with pytest.raises(ValueError, match="All the 8 fits failed") as caught:
        search(Fragile(limit=0.0)).fit(X, y)
    assert "2 fits failed with the following error" in str(caught.value)
    assert "quality 0.1 is too good to be true" in str(caught.value)


class HalfBlind(Known):
    """Cannot be scored in the first fold where its quality is high."""

    def score(self, X: Any, y: Any = None) -> float:
        if self.quality > 0.4 and X[0, 0] == 0:
            raise ZeroDivisionError("nothing to see")
        return super().score(X, y)


def test_a_candidate_without_a_score_in_one_fold_is_never_the_best() -> None:
    with (
        pytest.warns(UserWarning, match="Scoring failed 2 times") as caught,
        pytest.warns(UserWarning, match="One or more of the test scores are non-finite"),
    ):
        fitted = search(HalfBlind()).fit(X, y)
    assert "nothing to see" in str(caught[0].message)
    assert fitted.best_params_ == {"quality": 0.3}
    high = fitted.cv_results_["param_quality"] > 0.4
    assert np.isnan(fitted.cv_results_["split0_test_score"][high]).all()
    assert np.isfinite(fitted.cv_results_["split1_test_score"]).all()


def test_a_scorer_that_fails_may_end_the_search() -> None:
    with pytest.raises(ZeroDivisionError, match="nothing to see"):
        search(HalfBlind(), error_score="raise").fit(X, y)


def test_of_several_metrics_one_may_fail() -> None:
    def fragile(estimator: Any, X: Any, y: Any) -> float:
        if estimator.quality > 0.4:
            raise ZeroDivisionError("nothing to see")
        return float(estimator.quality)

    def robust(estimator: Any, X: Any, y: Any) -> float:
        return float(estimator.quality)

    scoring = {"fragile": fragile, "robust": robust}
    fitted = fitted_quietly(search(Known(), scoring=scoring, refit="robust"))
    assert fitted.best_params_ == {"quality": 0.7}
    assert np.isnan(fitted.cv_results_["mean_test_fragile"]).sum() == 2
    fitted = fitted_quietly(search(Known(), scoring=scoring, refit="fragile"))
    assert fitted.best_params_ == {"quality": 0.3}
    with pytest.raises(ZeroDivisionError):
        search(Known(), scoring=scoring, refit="robust", error_score="raise").fit(X, y)


def test_a_failed_fit_has_the_error_score_in_every_metric_of_a_function() -> None:
    def two(estimator: Any, X: Any, y: Any) -> dict[str, float]:
        return {"up": estimator.quality, "down": -estimator.quality}

    made = search(Fragile(), scoring=two, refit="down", error_score=-9, return_train_score=True)
    results = fitted_quietly(made).cv_results_
    bad = results["param_quality"] >= 0.5
    for column in ("split0_test_up", "mean_test_down", "mean_train_up"):
        assert (results[column][bad] == -9).all()


def test_a_scorer_must_give_a_number() -> None:
    with pytest.raises(ValueError, match=r"scoring must return a number, got \[1, 2\]"):
        search(Known(), scoring=lambda e, X, y: [1, 2]).fit(X, y)
    with pytest.raises(ValueError, match="scoring must return a number, got None"):
        search(Known(), scoring=lambda e, X, y: {"a": None}, refit="a").fit(X, y)


def test_an_infinite_score_is_not_the_best() -> None:
    def score(estimator: Any, X: Any, y: Any) -> float:
        return float("inf") if estimator.quality > 0.6 else float(estimator.quality)

    fitted = fitted_quietly(search(Known(), scoring=score))
    assert fitted.best_params_ == {"quality": 0.5}


def test_where_no_candidate_has_a_score_the_first_is_taken() -> None:
    fitted = fitted_quietly(search(Known(), scoring=lambda e, X, y: float("nan")))
    assert fitted.best_index_ == 0
    assert np.isnan(fitted.best_score_)
    assert fitted.frontier_ == []
    assert list(fitted.cv_results_["rank_test_score"]) == [1, 1, 1, 1]


def test_an_unknown_parameter_is_found_before_anything_is_fitted() -> None:
    class Never(Known):
        def fit(self, X: Any, y: Any = None, **params: Any) -> Never:
            raise AssertionError("it was fitted")

    made = search(Never(), space={"quality": qualities, "depth": [1, 2]}, error_score="raise")
    with pytest.raises(ValueError, match="Invalid parameter 'depth' for estimator"):
        made.fit(X, y)
    spaces = [{"quality": qualities}, {"quality": qualities, "depth": [1, 2]}]
    with pytest.raises(ValueError, match="Invalid parameter 'depth' for estimator"):
        made.set_params(space=spaces).fit(X, y)
