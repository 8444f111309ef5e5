"""Bayesian optimization as a whole: what it searches for, and what it makes of its history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

import tradewind as tw
from tradewind import recipes
from tradewind.goals import Acquisition
from tradewind.optimizer.history import spread
from tradewind.strategies import (
    EI,
    MGFI,
    PI,
    UCB,
    Bayes,
    Design,
    GaussianProcess,
    LogNormal,
    Published,
    RandomForest,
)
from tradewind.types import Origin

SPACE = tw.Space(
    {
        "x": tw.Float(0, 1),
        "kind": tw.Categorical(["a", "b"]),
        "depth": tw.Int(1, 8, when={"kind": "b"}),
    }
)
LINE = tw.Space({"x": tw.Float(0, 1)})

QUICK = Bayes(design=Design(4))


def quality(params: Any) -> float:
    return -((params["x"] - 0.3) ** 2) - 0.02 * abs(params.get("depth", 1) - 5)


def cost(params: Any) -> float:
    return 1.0 + 9.0 * params["x"] ** 2


def run(
    n: int,
    *,
    strategy: Any = QUICK,
    goal: Any = None,
    space: tw.Space = SPACE,
    seed: int = 0,
    direction: Any = "maximize",
    value: Callable[[Any], float] = quality,
    price: Callable[[Any], float] = cost,
) -> tw.Study:
    study = tw.create_study(space, strategy=strategy, goal=goal, seed=seed, direction=direction)
    study.optimize(lambda t: {"value": value(t.params), "cost": price(t.params)}, n_trials=n)
    assert all(t.finished for t in study.trials)
    return study


def params(study: tw.Study) -> list[dict[str, Any]]:
    return [dict(t.params) for t in study.trials]


# ---- the parts in turn ----


def test_the_model_takes_over_after_the_design() -> None:
    assert [t.origin for t in run(6).trials] == [Origin.DESIGN] * 4 + [Origin.MODEL] * 2


def test_results_that_were_added_stand_in_for_the_design() -> None:
    study = tw.create_study(LINE, strategy=QUICK, seed=0)
    for x in (0.1, 0.4, 0.6, 0.9):
        study.add({"x": x}, value=x)
    assert study.ask().origin is Origin.MODEL


def test_a_smooth_function_is_climbed() -> None:
    best = run(20).best
    assert best.params["x"] == pytest.approx(0.3, abs=0.02)
    assert (best.params["kind"], best.params["depth"]) == ("b", 5)


@pytest.mark.parametrize("acquisition", [EI(), PI(), UCB(), MGFI(), MGFI(LogNormal())], ids=repr)
@pytest.mark.parametrize("goal", [tw.Quality(), tw.Tradeoff(alpha=0.3)], ids=repr)
def test_every_acquisition_serves_every_goal(acquisition: Acquisition, goal: Any) -> None:
    study = run(8, strategy=Bayes(design=Design(4), acquisition=acquisition), goal=goal)
    assert len({tuple(p.items()) for p in params(study)}) == 8


@dataclass(frozen=True)
class Best:
    """Looks at these rows only."""

    rows: Any

    def maximize(self, score: Any, space: tw.Space, *, start: Any, rng: Any) -> Any:
        return self.rows[np.argmax(score(self.rows))]


@pytest.mark.parametrize("t", [2.0, 5.0])
def test_mip_ego_chooses_what_the_published_formula_chooses_on_losses_from_0_to_1(t: float) -> None:
    rng = np.random.default_rng(3)
    values = 0.6 + 0.02 * rng.standard_normal(30)
    values[:3] -= 0.4  # a few bad ones make the range many standard deviations
    study = tw.create_study(SPACE, strategy=QUICK, seed=0)
    for x, value in zip(np.linspace(0.01, 0.99, 30), values, strict=True):
        study.add({"x": float(x), "kind": "a"}, float(value))
    history, rows = study._session.history(), SPACE.sample(400, rng=rng)
    loss = (values.max() - values) / np.ptp(values)
    forest = RandomForest(trees=20).fit(
        history.X, loss, columns=SPACE.columns, rng=np.random.default_rng(1)
    )
    mean, std = (getattr(forest.predict(rows), name) for name in ("mean", "std"))
    best, shifted = 0.0, mean - t * std**2  # H eq. 14, where losses are minimized
    mgfi = ndtr((best - shifted) / std) * np.exp((best - mean - 1) * t + std**2 * t**2 / 2)
    acquisition = None if t == 2.0 else MGFI(t)
    strategy = recipes.mip_ego(
        loss="identity", trees=20, acquisition=acquisition, maximizer=Best(rows)
    )
    chosen = strategy.propose(SPACE, tw.Quality(), history, rng=np.random.default_rng(1)).row
    np.testing.assert_array_equal(chosen, rows[np.argmax(mgfi)])


def test_quality_is_scaled_by_its_deviation_or_its_range() -> None:
    with pytest.raises(ValueError, match="scaling must be one of 'std', 'range', but got 'rank'"):
        Bayes(scaling="rank")  # type: ignore[arg-type]


# ---- quality and cost ----


def test_a_trade_off_with_alpha_zero_is_the_search_for_quality() -> None:
    assert params(run(10, goal=tw.Tradeoff(alpha=0.0))) == params(run(10, goal=tw.Quality()))


@pytest.mark.parametrize("published", [True, False])
def test_wang2020_with_alpha_zero_is_standard_optimization(published: bool) -> None:
    strategy = recipes.wang2020(published=published)
    traded = run(9, strategy=strategy, goal=tw.Tradeoff(alpha=0.0))
    assert params(traded) == params(run(9, strategy=strategy, goal=tw.Quality()))


def test_under_quality_the_cost_does_not_matter() -> None:
    assert params(run(9, price=lambda p: 5.0)) == params(run(9))


@pytest.mark.parametrize(
    "strategy",
    [
        pytest.param(QUICK, id="bayes"),
        pytest.param(recipes.wang2020(), id="wang2020"),
    ],
)
def test_a_high_price_of_cost_makes_for_cheaper_trials(strategy: Any) -> None:
    def spent(alpha: float) -> float:
        study = run(
            14,
            strategy=strategy,
            goal=tw.Tradeoff(alpha=alpha),
            value=lambda p: p["x"],
            price=lambda p: 0.1 + p["x"],
            space=LINE,
        )
        return float(np.mean([t.cost for t in study.trials if t.origin is Origin.MODEL]))

    assert spent(10.0) < 0.8 * spent(0.01)


def test_the_reference_is_the_largest_cost_of_the_design_and_then_fixed() -> None:
    study = tw.create_study(SPACE, strategy=QUICK, goal=tw.Tradeoff(alpha=0.3), seed=0)
    references = []
    for i, cost in enumerate([3.0, 7.0, 5.0, 6.0, 100.0, 1000.0]):
        study.tell(study.ask(), value=float(i), cost=cost)
        references.append(study.goal.reference)  # type: ignore[attr-defined]
    assert references == [3.0, 7.0, 7.0, 7.0, 7.0, 7.0]


def test_the_reference_of_wang2020_is_the_largest_cost_so_far() -> None:
    study = tw.create_study(SPACE, strategy=recipes.wang2020(), goal=tw.Tradeoff(alpha=0.3), seed=0)
    references = []
    for i, cost in enumerate([3.0, 7.0, 5.0, 6.0, 100.0, 1000.0]):
        study.tell(study.ask(), value=float(i), cost=cost)
        references.append(study.goal.reference)  # type: ignore[attr-defined]
    assert references == [3.0, 7.0, 7.0, 7.0, 100.0, 1000.0]


def test_a_reference_that_was_given_stays() -> None:
    study = run(6, goal=tw.Tradeoff(alpha=0.3, reference=2.0))
    assert study.goal == tw.Tradeoff(alpha=0.3, reference=2.0)


def test_no_reference_is_shown_before_there_is_a_cost() -> None:
    study = tw.create_study(SPACE, goal=tw.Tradeoff(alpha=0.3), seed=0)
    assert study.goal == tw.Tradeoff(alpha=0.3)


@pytest.mark.parametrize("goal", [tw.Quality(), tw.Tradeoff(alpha=0.3)], ids=repr)
@pytest.mark.parametrize("strategy", [QUICK, recipes.wang2020()], ids=["bayes", "wang2020"])
def test_minimizing_a_loss_is_maximizing_its_negative(strategy: Any, goal: Any) -> None:
    up = run(9, strategy=strategy, goal=goal)
    down = run(9, strategy=strategy, goal=goal, direction="minimize", value=lambda p: -quality(p))
    assert params(down) == params(up)
    assert down.best.number == up.best.number
    assert down.recommend().value == -up.recommend().value
    assert [t.number for t in down.frontier()] == [t.number for t in up.frontier()]


# ---- failures and pending trials ----


def rising() -> tw.Study:
    """Quality rises with x, and is known up to 0.5."""
    study = tw.create_study(LINE, strategy=QUICK, seed=0)
    for x in (0.0, 0.1, 0.2, 0.3, 0.4, 0.5):
        study.add({"x": x}, value=x)
    return study


def test_failed_trials_steer_the_search_away() -> None:
    study, failing = rising(), rising()
    for x in (0.6, 0.7, 0.8, 0.9, 1.0):
        failing.enqueue({"x": x})
        failing.fail(failing.ask())
    assert study.ask().params["x"] > 0.6
    for _ in range(3):
        trial = failing.ask()
        assert trial.params["x"] < 0.6
        failing.fail(trial)


def test_a_running_trial_is_left_alone() -> None:
    study = rising()
    first, second = study.ask(), study.ask()
    assert abs(first.params["x"] - second.params["x"]) > 1e-3


def test_what_a_fit_hands_over_reaches_the_next_one() -> None:
    study = run(6)
    history = study._session.snapshot()[1]
    assert history.handover["quality"]["theta"]


# ---- many trials ----


@given(order=st.permutations(range(40)), count=st.integers(4, 60))
def test_the_subset_is_in_order_and_has_the_best_and_the_latest(
    order: list[int], count: int
) -> None:
    rows = spread(np.array(order), count)
    assert len(rows) == min(count, 40)
    assert (np.diff(rows) > 0).all()
    assert set(order[: count // 4]) <= set(rows)
    assert set(range(40 - count // 4, 40)) <= set(rows)
    np.testing.assert_array_equal(spread(np.array(order), count), rows)


def test_the_rest_of_the_subset_is_spread_over_the_others() -> None:
    rows = spread(np.arange(1000), 100)  # the best are the first
    others = rows[(rows >= 25) & (rows < 975)]
    assert len(others) == 50
    assert np.diff(others).max() < 25


def test_a_subset_of_the_trials_is_enough_to_go_on() -> None:
    strategy = Bayes(design=Design(4), max_points=8)
    first, second = (run(14, strategy=strategy, goal=tw.Tradeoff(alpha=0.3)) for _ in range(2))
    assert params(first) == params(second)
    assert len({tuple(p.items()) for p in params(first)}) == 14


# ---- the edges of the floats ----

EDGES = {
    "tiny": lambda i: (1e-300 * (i % 3), 1.0 + i),
    "small-likelihoods": lambda i: (1e-160 * (i % 3), 1.0 + i),
    "free-then-dear": lambda i: (float(i % 3), 0.0 if i < 5 else 1e10),
}


@pytest.mark.parametrize("name", EDGES)
def test_values_and_costs_may_be_as_small_as_floats_can_be(name: str) -> None:
    study = tw.create_study(SPACE, strategy=QUICK, goal=tw.Tradeoff(alpha=0.3), seed=0)
    for i in range(7):
        value, price = EDGES[name](i)
        study.tell(study.ask(), value=value, cost=price)
    assert len({tuple(p.items()) for p in params(study)}) == 7


# ---- improvement per power of cost ----


def mean_cost(cost_power: float) -> float:
    """Of what is proposed where there are equal peaks at 0, ½ and 1, the first of them cheap."""
    study = run(
        14,
        strategy=Bayes(cost_power=cost_power),
        value=lambda p: float(np.cos(4.0 * np.pi * p["x"])),
        price=lambda p: 0.01 + p["x"] ** 2,
        space=LINE,
    )
    return float(np.mean([t.cost for t in study.trials if t.origin is Origin.MODEL]))


def test_improvement_per_cost_prefers_cheap_trials() -> None:
    assert mean_cost(1.0) < 0.5 * mean_cost(0.0)


def test_improvement_per_cost_without_any_cost_is_plain_improvement() -> None:
    def proposals(power: float) -> list[Any]:
        study = tw.create_study(LINE, strategy=Bayes(cost_power=power), seed=0)
        for _ in range(7):
            trial = study.ask()
            study.tell(trial, trial.params["x"])
        return params(study)

    assert proposals(0.5) == proposals(0.0)


@pytest.mark.parametrize("power", [-1.0, float("nan"), float("inf")])
def test_a_power_of_cost_is_finite_and_not_negative(power: float) -> None:
    with pytest.raises(ValueError, match="cost_power must be a number from 0"):
        Bayes(cost_power=power)


def test_what_has_no_logarithm_cannot_be_divided_by_a_cost() -> None:
    with pytest.raises(ValueError, match="log form"):
        Bayes(cost_power=1.0, acquisition=UCB())


# ---- noise ----


def test_under_noise_neither_the_best_nor_the_recommendation_is_the_luckiest_result() -> None:
    study = tw.create_study(LINE, seed=0)
    for i in range(12):
        x = i / 11
        study.add({"x": x}, folds=[v + 1.0 - x for v in (-0.01, 0.0, 0.01)])
    study.add({"x": 0.95}, folds=[-2.0, 0.0, 6.0])  # the highest mean, and nothing to trust
    assert study.best.params["x"] < 0.2
    assert study.recommend().params["x"] < 0.2
    assert study.recommend().value == pytest.approx(1.0, abs=0.1)


# ---- parts that are none ----


@pytest.mark.parametrize(
    "part", ["design", "surrogate", "cost_surrogate", "acquisition", "rule", "maximizer", "output"]
)
def test_what_is_no_part_is_refused_when_the_strategy_is_made(part: str) -> None:
    with pytest.raises(TypeError, match=part):
        Bayes(**{part: "auto"})  # type: ignore[arg-type]


def test_a_class_in_place_of_an_object_is_refused() -> None:
    with pytest.raises(TypeError, match=r"acquisition must be an object.*write EI\(\)"):
        Bayes(acquisition=EI)  # type: ignore[arg-type]


def test_too_few_points_to_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="max_points must be a whole number from 4"):
        Bayes(max_points=0)


# ---- a reference that the design has to find ----


def test_a_goal_without_a_reference_gets_a_larger_design() -> None:
    def designed(goal: tw.Tradeoff) -> int:
        study = run(12, strategy=recipes.auto(), goal=goal)
        return sum(t.origin is Origin.DESIGN for t in study.trials)

    assert designed(tw.Tradeoff(alpha=0.1)) == 10
    assert designed(tw.Tradeoff(alpha=0.1, reference=1.0)) == 4


def test_a_trial_dearer_than_a_reference_nobody_gave_is_reported_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    study = tw.create_study(LINE, goal=tw.Tradeoff(alpha=0.1, capped=True), seed=0)
    costs = iter([1.0] * 10 + [5.0, 6.0])
    study.optimize(lambda t: {"value": t.params["x"], "cost": next(costs)}, 12)
    assert [r.message for r in caplog.records] == [
        "trial 10 cost 5, but costs above 1, the reference that the first trials decided, "
        "count like that one: to change this, give the goal a reference"
    ]


# ---- what a review found ----


def test_a_collapsed_trial_does_not_spoil_what_is_expected_of_the_others() -> None:
    study = tw.create_study(LINE, seed=0)
    rng = np.random.default_rng(0)
    for i in range(20):
        x = (i + 0.5) / 20
        value = 1.0 - (x - 0.3) ** 2 if i < 19 else -1e6
        study.add({"x": x}, folds=(value + 0.01 * rng.standard_normal(5)).tolist())
    advice = study.recommend()
    assert abs(advice.params["x"] - 0.3) < 0.15
    assert advice.value == pytest.approx(1.0, abs=0.05)


def test_folds_that_are_spread_beyond_all_bounds_are_survived() -> None:
    study = tw.create_study(LINE, seed=0)
    for i in range(5):
        study.add({"x": i / 5}, i / 5, folds=[1e200, -1e200])
    study.ask()


def test_a_bad_but_cheap_winner_is_not_believed_to_be_better_than_it_is() -> None:
    space = tw.Space({name: tw.Float(0, 1) for name in "abcd"})
    study = tw.create_study(space, goal=tw.Tradeoff(1.0, reference=1.0), seed=0)

    def objective(trial: Any) -> dict[str, float]:
        p = trial.params
        if p["a"] < 0.4:
            return {"value": 0.3, "cost": 0.01}
        return {"value": 0.9 - 0.1 * p["b"], "cost": 0.5 + 0.3 * p["c"]}

    study.optimize(objective, 30)
    collapsed = sum(t.params["a"] < 0.4 for t in study.trials)
    assert collapsed < 15


def test_costs_that_are_known_only_later_can_still_be_divided_by() -> None:
    study = tw.create_study(
        LINE, goal=tw.Tradeoff(alpha=0.0), strategy=Bayes(cost_power=0.5), seed=0
    )
    for i in range(5):
        study.add({"x": i / 5}, i / 5)
    study.tell(study.ask(), 0.5, cost=2.0)
    study.ask()


def test_a_space_that_is_mostly_forbidden_is_searched() -> None:
    space = tw.Space(
        {"a": tw.Int(1, 64), "b": tw.Int(1, 64), "c": tw.Float(0, 1)},
        forbid=[{"a": tw.at_least(3)}, {"b": tw.at_least(3)}],
    )
    study = tw.create_study(space, seed=0)
    study.optimize(lambda t: t.params["c"], 8)
    assert all(t.finished and t.params["a"] < 3 for t in study.trials)


@pytest.mark.parametrize("acquisition", [PI(), UCB(), MGFI()], ids=repr)
def test_the_published_rule_is_refused_with_anything_but_expected_improvement(
    acquisition: Acquisition,
) -> None:
    with pytest.raises(ValueError, match=r"Published\(\) cannot work with .*: use EI\(\)"):
        Bayes(rule=Published(), acquisition=acquisition)
    assert Bayes(rule=Published()).acquisition == EI()


def test_a_model_is_not_fitted_to_any_number_of_failures() -> None:
    seen: list[int] = []

    @dataclass(frozen=True)
    class Counting(GaussianProcess):
        def fit(self, X: Any, y: Any, **options: Any) -> Any:
            seen.append(len(X))
            return super().fit(X, y, **options)

    strategy = Bayes(design=Design(2), surrogate=Counting(), max_points=40)
    study = tw.create_study(LINE, strategy=strategy, seed=0)
    for number in range(60):
        trial = study.ask()
        if number < 3:
            study.tell(trial, value=float(number))
        else:
            study.fail(trial)
    assert max(seen) == 3 + 40 // 4
