"""Goals, training sizes, stages, races, and choosing again."""

from __future__ import annotations

import copy
import pickle
import time
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import stats

import tradewind as tw
from tests.sklearn.models import Known, Learner, X, y
from tradewind.errors import SpaceError
from tradewind.sklearn import Candidate, TradeoffSearchCV
from tradewind.strategies import MultiFidelity, RandomSearch, Staged


class Priced(Known):
    """Costs as much as it is good: fits take a time that is known."""

    clock = 0.0

    def fit(self, X: Any, y: Any = None, **params: Any) -> Priced:
        Priced.clock += self.quality**2 * self.rows_of(X)
        super().fit(X, y, **params)
        return self

    @staticmethod
    def rows_of(X: Any) -> int:
        return len(X)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time stands still while nothing is fitted."""
    Priced.clock = 0.0
    monkeypatch.setattr(time, "perf_counter", lambda: Priced.clock)


def search(estimator: Any, space: Any, **options: Any) -> TradeoffSearchCV:
    options = {"n_iter": 8, "cv": 2, "random_state": 0} | options
    return TradeoffSearchCV(estimator, space, **options)


qualities = {"quality": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]}


# ---- goals ----


@pytest.mark.usefixtures("clock")
def test_a_tradeoff_weighs_the_score_against_the_time_of_one_fit() -> None:
    fitted = search(Priced(), qualities, goal=tw.Tradeoff(0.5, reference=10.0)).fit(X, y)
    by_hand = {q: q - 0.5 * min(1.0, q**2 * 10 / 10.0) for q in qualities["quality"]}
    assert fitted.best_params_["quality"] == pytest.approx(max(by_hand, key=by_hand.__getitem__))
    costs = fitted.cv_results_["mean_fit_time"]
    assert costs == pytest.approx(10 * fitted.cv_results_["param_quality"].astype(float) ** 2)
    assert [trial.cost for trial in fitted.study_.trials] == pytest.approx(costs)
    assert {trial.usage and trial.usage.clock for trial in fitted.study_.trials} == {"wall"}


@pytest.mark.usefixtures("clock")
def test_the_frontier_has_the_efficient_candidates_cheapest_first() -> None:
    fitted = search(Priced(), qualities | {"other": ["a", "b"]}, n_iter=10).fit(X, y)
    assert all(isinstance(candidate, Candidate) for candidate in fitted.frontier_)
    assert fitted.frontier_ == sorted(fitted.frontier_, key=lambda candidate: candidate.cost)
    scores = [candidate.score for candidate in fitted.frontier_]
    assert scores == sorted(set(scores))
    assert fitted.frontier_[-1].score == fitted.best_score_
    for candidate in fitted.frontier_:
        assert fitted.cv_results_["params"][candidate.index] == candidate.params
        assert fitted.cv_results_["mean_fit_time"][candidate.index] == candidate.cost
        assert fitted.cv_results_["train_size"][candidate.index] == candidate.train_size


@pytest.mark.usefixtures("clock")
def test_another_goal_selects_another_candidate_without_a_search() -> None:
    fitted = search(Priced(), qualities).fit(X, y)
    assert fitted.best_params_ == {"quality": 0.8}
    trials = fitted.study_.trials
    assert fitted.select(tw.Tradeoff(5.0, reference=10.0)) is fitted
    assert fitted.best_params_ == {"quality": 0.1}
    assert fitted.best_estimator_.quality == 0.1
    assert fitted.best_score_ == pytest.approx(0.1)
    assert fitted.cv_results_["params"][fitted.best_index_] == fitted.best_params_
    assert fitted.best_estimator_.rows_ == 20
    assert fitted.study_.trials == trials
    assert fitted.select(tw.Quality()).best_params_ == {"quality": 0.8}


@pytest.mark.usefixtures("clock")
def test_a_goal_without_a_reference_takes_that_of_the_search() -> None:
    own = tw.Tradeoff(0.001, reference=1e9)
    fitted = search(Priced(), qualities, goal=own).fit(X, y)
    assert fitted.select("tradeoff:5").best_params_ == {"quality": 0.8}
    fitted = search(Priced(), qualities).fit(X, y)
    assert fitted.select(tw.Tradeoff(5.0)).best_params_ == {"quality": 0.1}


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_the_data_do_not_travel_with_a_search(copied: Any) -> None:
    fitted = search(Known(), qualities).fit(X, y, weights=np.arange(20))
    other = copied(fitted)
    with pytest.raises(ValueError, match=r"give them again, as in select\(goal, X, y\)"):
        other.select(tw.Quality())
    other.select(tw.Quality(), X, y, weights=np.ones(20))
    assert_array_equal(other.best_estimator_.params_["weights"], np.ones(20))
    fitted.select(tw.Quality())
    assert_array_equal(fitted.best_estimator_.params_["weights"], np.arange(20))


def test_selecting_takes_new_data_if_they_are_given() -> None:
    fitted = search(Known(), qualities).fit(X, y)
    assert fitted.select(tw.Quality(), X[:6], y[:6]).best_estimator_.rows_ == 6
    with pytest.raises(ValueError, match="X is missing"):
        fitted.select(tw.Quality(), weights=np.ones(20))
    with pytest.raises(TypeError, match="goal must be an object such as"):
        fitted.select(3)  # type: ignore[arg-type]


def test_without_refit_only_the_choice_changes() -> None:
    fitted = search(Known(), qualities, refit=False).fit(X, y)
    copied = pickle.loads(pickle.dumps(fitted))
    assert copied.select(tw.Quality()).best_params_ == {"quality": 0.8}
    assert not hasattr(copied, "best_estimator_")


def test_an_unfitted_search_has_nothing_to_select_from() -> None:
    with pytest.raises(ValueError, match="not fitted yet"):
        search(Known(), qualities).select(tw.Quality())


# ---- training sizes ----


@pytest.mark.usefixtures("clock")
def test_under_a_tradeoff_the_training_size_is_part_of_the_choice() -> None:
    fitted = search(
        Priced(),
        {"quality": [0.7, 0.8]},
        goal=tw.Tradeoff(1.0, reference=10.0),
        train_sizes=[0.2, 0.6, 1.0],
        n_iter=6,
    ).fit(X, y)
    assert fitted.best_params_ == {"quality": 0.8}
    assert fitted.best_train_size_ == 0.2
    assert fitted.best_estimator_.rows_ == 4
    assert_array_equal(fitted.best_estimator_.X_, X[fitted.best_rows_])
    assert_array_equal(np.bincount(y[fitted.best_rows_]), [2, 2])
    sizes = fitted.cv_results_["train_size"]
    assert set(sizes) == {0.2, 0.6, 1.0}
    assert_array_equal(fitted.cv_results_["n_train_rows"], 10 * sizes)
    assert "param_train_size" not in fitted.cv_results_
    fitted.select(tw.Tradeoff(0.0))
    assert fitted.best_estimator_.quality == 0.8


def test_under_quality_small_sizes_tell_about_the_largest() -> None:
    fitted = search(
        Learner(), {"quality": stats.uniform(0, 1)}, train_sizes=[0.25, 0.5, 1.0], n_iter=12
    ).fit(X, y)
    assert isinstance(fitted.study_.strategy, MultiFidelity)
    assert min(fitted.cv_results_["train_size"]) == 0.25
    assert fitted.best_train_size_ == 1.0
    assert fitted.best_estimator_.n_ == 20
    assert fitted.best_params_["quality"] == fitted.study_.recommend().params["quality"]
    assert fitted.cv_results_["params"][fitted.best_index_] == fitted.best_params_


def test_what_small_sizes_recommend_is_evaluated_at_the_largest() -> None:
    class Small(MultiFidelity):
        def recommend(self, *args: Any) -> Any:
            chosen = super().recommend(*args)
            smallest = int(np.argmin(args[2].sizes.finished))
            return type(chosen)(smallest, chosen.quality, chosen.cost, 1.0)

    options: dict[str, Any] = {"train_sizes": [0.25, 1.0], "n_iter": 6, "strategy": Small()}
    fitted = search(Learner(), {"quality": stats.uniform(0, 1)}, **options).fit(X, y)
    first, last = fitted.cv_results_["params"][0], fitted.cv_results_["params"][-1]
    assert first == last
    assert fitted.cv_results_["train_size"][-1] == 1.0
    assert fitted.cv_results_["train_size"][fitted.best_index_] == 1.0
    assert fitted.best_train_size_ == 1.0
    assert fitted.best_estimator_.n_ == 20


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("sizes", [{"train_sizes": [0.2, 1.0]}, {"stages": [0.2, 1.0]}])
def test_what_is_selected_is_on_the_frontier(sizes: dict[str, Any]) -> None:
    fitted = search(Priced(), {"quality": stats.uniform(0, 1)}, n_iter=12, **sizes).fit(X, y)
    assert min(fitted.cv_results_["train_size"]) == 0.2
    assert {candidate.train_size for candidate in fitted.frontier_} == {1.0}
    for alpha in (0.0, 0.5, 1.0, 100.0):
        fitted.select(tw.Tradeoff(alpha, reference=10.0))
        assert fitted.best_index_ in [candidate.index for candidate in fitted.frontier_]


def test_another_goal_selects_from_the_last_stage_too() -> None:
    options: dict[str, Any] = {"stages": [0.25, 1.0], "n_iter": 8, "goal": tw.Tradeoff(0.3)}
    fitted = search(Learner(), {"quality": stats.uniform(0, 1)}, **options).fit(X, y)
    fitted.select(tw.Tradeoff(0.9, 1.0))
    assert fitted.best_train_size_ == 1.0
    chosen = fitted.study_.best_for(tw.Tradeoff(0.9, 1.0))
    assert fitted._index[chosen.number] == fitted.best_index_


def test_a_training_size_may_come_with_the_space() -> None:
    space = tw.Space({"quality": tw.Float(0, 1), "part": tw.TrainSize([0.5, 1.0])})
    fitted = search(Learner(), space, n_iter=5, goal=tw.Tradeoff(0.0)).fit(X, y)
    assert set(fitted.cv_results_["params"][0]) == {"quality"}
    assert set(fitted.cv_results_["train_size"]) == {0.5, 1.0}
    with pytest.raises(ValueError, match="the space already has the training size 'part'"):
        search(Learner(), space, train_sizes=[0.5]).fit(X, y)


def test_an_estimator_may_have_a_parameter_called_train_size() -> None:
    class Own(Learner):
        def __init__(self, quality: float = 0.0, train_size: int = 1) -> None:
            super().__init__(quality)
            self.train_size = train_size

    fitted = search(Own(), {"train_size": [1, 2, 3]}, train_sizes=[0.5], n_iter=3).fit(X, y)
    assert sorted(fitted.cv_results_["param_train_size"]) == [1, 2, 3]
    assert list(fitted.cv_results_["train_size"]) == [0.5, 0.5, 0.5]


def test_smaller_parts_are_contained_in_larger_ones() -> None:
    seen: dict[int, set[float]] = {}

    class Spy(Learner):
        def fit(self, X: Any, y: Any) -> Spy:
            super().fit(X, y)
            seen.setdefault(self.n_, set(self.first_))
            return self

    one = [(np.arange(16), np.arange(16, 20))]
    search(Spy(), {"quality": [0.1]}, train_sizes=[0.25, 0.5, 1.0], n_iter=3, cv=one).fit(X, y)
    assert seen[4] < seen[8] < seen[16]


# ---- stages ----


def test_stages_begin_with_little_data_and_carry_the_best_over() -> None:
    fitted = search(Learner(), {"quality": stats.uniform(0, 1)}, stages=[0.5, 1.0]).fit(X, y)
    sizes, tried = fitted.cv_results_["train_size"], fitted.cv_results_["param_quality"]
    assert list(sizes) == [0.5] * 4 + [1.0] * 4
    assert set(tried[4:7]) == set(sorted(tried[:4])[1:])  # three of four are carried over
    assert fitted.best_train_size_ == 1.0
    assert isinstance(fitted.study_.strategy, Staged)


def test_stages_may_be_described_in_full() -> None:
    stages = Staged(RandomSearch(), fractions=(0.25, 1.0), trials=2, carried=1)
    fitted = search(Learner(), {"quality": stats.uniform(0, 1)}, stages=stages, n_iter=5).fit(X, y)
    assert list(fitted.cv_results_["train_size"]) == [0.25, 0.25, 1.0, 1.0, 1.0]


def test_the_stages_of_a_small_space_try_it_again() -> None:
    fitted = search(Learner(), {"quality": [0.1, 0.2]}, stages=[0.5, 1.0], n_iter=4).fit(X, y)
    results = fitted.cv_results_
    tried = set(zip(results["train_size"], results["param_quality"], strict=True))
    assert tried == {(0.5, 0.1), (0.5, 0.2), (1.0, 0.1), (1.0, 0.2)}


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"stages": [0.5, 1.0], "train_sizes": [0.5, 1.0]}, ValueError, "give one of them"),
        ({"stages": [1.0, 0.5]}, ValueError, "fractions must be numbers that grow"),
        ({"stages": [0.1] * 9}, ValueError, "one trial in each of the 9 stages"),
        ({"stages": 0.5}, TypeError, "stages must be a list of fractions or a Staged"),
        ({"stages": Staged(), "strategy": "random"}, ValueError, "a Staged has its own strategy"),
        ({"stages": [0.5, 1.0], "n_iter": None, "timeout": 1}, ValueError, "share n_iter"),
        ({"train_sizes": [0.5, 1.5]}, SpaceError, "fractions in"),
        ({"train_sizes": 0.5}, TypeError, "train_sizes must be a list"),
        ({"train_sizes": "0.5"}, TypeError, "train_sizes must be a list"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        search(Learner(), {"quality": stats.uniform(0, 1)}, **options).fit(X, y)


# ---- races ----


class Noisy(Known):
    """Differs from fold to fold, a little."""

    def score(self, X: Any, y: Any = None) -> float:
        return float(self.quality + 0.001 * X[0, 0])


def test_what_is_clearly_behind_is_given_up() -> None:
    options: dict[str, Any] = {"cv": 10, "n_iter": 10}
    space = {"quality": [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]}
    fitted = search(Noisy(), space, racing=0.05, **options).fit(X, y)
    results = fitted.cv_results_
    raced = np.array([trial.raced for trial in fitted.study_.trials])
    assert 3 <= raced.sum() < 10
    assert_array_equal(np.isnan(results["mean_test_score"]), raced)
    assert_array_equal(np.isnan(results["split9_test_score"]), raced)
    assert np.isfinite(results["split1_test_score"]).all()
    assert np.isfinite(results["mean_fit_time"]).all()
    assert fitted.best_params_ == {"quality": 0.9}
    assert not raced[fitted.best_index_]
    assert not any(raced[candidate.index] for candidate in fitted.frontier_)
    in_full = search(Noisy(), space, **options).fit(X, y).cv_results_
    assert np.isfinite(in_full["split9_test_score"]).all()


@pytest.mark.usefixtures("clock")
def test_what_was_given_up_is_never_chosen() -> None:
    class Cheap(Priced):
        def score(self, X: Any, y: Any = None) -> float:
            return float(self.quality + 0.001 * X[0, 0])

    fitted = search(Cheap(), qualities, racing=0.05, cv=10).fit(X, y)
    raced = [trial.raced for trial in fitted.study_.trials]
    cheapest = int(np.argmin(fitted.cv_results_["mean_fit_time"]))
    assert raced[cheapest]
    fitted.select(tw.Tradeoff(100.0, reference=100.0))
    assert not raced[fitted.best_index_]


@pytest.mark.parametrize(("limit", "power"), [({}, 0.0), ({"timeout": "1h"}, 1.0)])
def test_a_search_is_frugal_only_if_time_or_cost_limits_it(
    limit: dict[str, Any], power: float
) -> None:
    options: dict[str, Any] = {"train_sizes": [0.25, 1.0], "n_iter": 8, **limit}
    fitted = search(Learner(), {"quality": stats.uniform(0, 1)}, **options).fit(X, y)
    strategy = fitted.study_.strategy
    assert isinstance(strategy, MultiFidelity)
    assert strategy.cost_power == power
    if not limit:  # n_iter counts a small candidate like a large one
        assert set(fitted.cv_results_["train_size"][5:]) == {1.0}


# ---- every goal, and what a cost is ----


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(
    "goal",
    [
        tw.Quality(),
        tw.Tradeoff(0.3),
        tw.BestUnder(5.0),
        tw.CheapestWithin("1se"),
        tw.CheapestWithin(0.2),
        tw.Knee(),
        tw.Frontier(),
    ],
    ids=lambda goal: goal.describe(),
)
def test_a_search_selects_the_best_result_which_is_on_its_frontier(goal: Any) -> None:
    class Uneven(Priced):
        def score(self, X: Any, y: Any = None) -> float:
            return float(self.quality * (1.0 + X.mean() / 1000))  # differs between folds

    fitted = search(Uneven(), {"quality": stats.uniform(0, 1)}, n_iter=8).fit(X, y)
    best = fitted.study_.best_result_for(goal)
    fitted.select(goal)
    assert fitted._index[best.number] == fitted.best_index_
    assert fitted.best_index_ in [candidate.index for candidate in fitted.frontier_]
    assert fitted.best_estimator_.quality == fitted.best_params_["quality"]


@pytest.mark.usefixtures("clock")
def test_the_cost_of_a_candidate_is_that_of_one_training() -> None:
    fitted = search(Priced(), {"quality": [0.1, 0.5, 0.9]}, n_iter=3, cv=4).fit(X, y)
    for trial, mean in zip(fitted.study_.trials, fitted.cv_results_["mean_fit_time"], strict=True):
        assert trial.cost == mean
        assert trial.trainings == 4
    efficient = fitted.study_.frontier(believed=False)
    assert [c.cost for c in fitted.frontier_] == [t.cost for t in efficient]
