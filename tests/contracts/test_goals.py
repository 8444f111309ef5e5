"""What every goal must do. A new one is one more line in `GOALS`."""

from __future__ import annotations

import numpy as np
import pytest

from tradewind import checks
from tradewind.engine import plan
from tradewind.goals import (
    BestUnder,
    CheapestWithin,
    Frontier,
    Goal,
    Knee,
    Quality,
    Seen,
    Tradeoff,
    best_of,
)
from tradewind.optimizer.strategies.costs import CostScale
from tradewind.optimizer.strategies.target import Target, target_of
from tradewind.optimizer.transforms import Standardize
from tradewind.strategies import EI, PI, UCB, Improvement
from tradewind.types import Array, Normal, Partials

GOALS: list[Goal] = [
    Quality(),
    Tradeoff(0.0),
    Tradeoff(0.3),
    Tradeoff(0.3, 20.0),
    Tradeoff(5.0, 1e-3),
    Tradeoff(0.3, 20.0, capped=True, by="memory"),
    Frontier(),
    Frontier(cost=(2.0, 20.0)),
    Frontier(alpha=(0.1, 0.9), reference=5.0),
    Frontier(search="hypervolume"),
    BestUnder(12.0),
    BestUnder(0.5),
    CheapestWithin(0.05),
    CheapestWithin("10%"),
    CheapestWithin("1se"),
    Knee(),
]
QUALITY = np.array([0.5, 0.7, 0.9, 0.9])
COST = np.array([1.0, 3.0, 30.0, 10.0])


@pytest.fixture(params=GOALS, ids=repr)
def goal(request: pytest.FixtureRequest) -> Goal:
    chosen: Goal = request.param
    return chosen


@pytest.fixture
def settled(goal: Goal) -> Goal:
    return goal.settle(COST)


def test_it_passes_for_a_goal(goal: Goal) -> None:
    assert checks.goal(goal) is goal


def test_it_is_stored_as_plain_data(goal: Goal) -> None:
    assert plan.must_be_supplied(plan.encode(goal)) == []
    assert plan.decode(plan.encode(goal)) == goal


def test_settling_closes_it_and_leaves_the_original_alone(goal: Goal) -> None:
    before = repr(goal)
    settled = goal.settle(COST)
    assert not settled.open
    assert settled.settle(COST * 100.0) == settled  # a reference is decided once
    assert repr(goal) == before


def test_settling_without_a_cost_changes_nothing(goal: Goal) -> None:
    assert goal.settle(np.array([np.nan])) == goal
    assert goal.settle(np.array([])) == goal


def test_only_a_reference_that_costs_decided_can_be_provisional(goal: Goal) -> None:
    settled = goal.settle(COST, provisional=True)
    decided = settled.reference != goal.reference
    assert settled.provisional is decided
    assert not goal.settle(COST).provisional
    assert not decided or settled.reference == COST.max()


def test_a_dominated_trial_is_never_the_best(settled: Goal) -> None:
    """The third trial is as good as the last one, which is cheaper."""
    utility = settled.utility(QUALITY, COST, np.zeros(4))
    if settled.needs_cost:
        assert best_of(utility) != 2
    assert utility[2] <= utility[3]


@pytest.mark.parametrize("i", range(4))
def test_a_trial_that_is_better_and_cheaper_than_all_others_is_the_best(
    settled: Goal, i: int
) -> None:
    quality, cost = QUALITY.copy(), COST.copy()
    quality[i], cost[i] = quality.max() + 0.1, cost.min() / 2.0
    assert best_of(settled.utility(quality, cost, np.zeros(4))) == i


def test_no_trial_qualifies_without_being_counted(settled: Goal) -> None:
    qualifies = settled.qualifies(QUALITY, COST, np.zeros(4))
    utility = settled.utility(QUALITY, COST, np.zeros(4))
    assert qualifies.shape == (4,)
    if qualifies.any():
        assert qualifies[best_of(utility)]


def test_it_says_what_it_wants_in_words(goal: Goal) -> None:
    assert goal.describe()
    assert "\n" not in goal.describe()


def test_a_goal_that_needs_costs_cannot_judge_a_trial_without_one(settled: Goal) -> None:
    utility = settled.utility(QUALITY, np.full(4, np.nan))
    assert np.isnan(utility).all() == settled.needs_cost


@pytest.mark.parametrize("log", [True, False])
def test_the_scale_of_costs_keeps_their_order(settled: Goal, log: bool) -> None:
    scaled = settled.cost_scale(np.sort(COST), log=log)
    assert np.isfinite(scaled).all()
    assert (np.diff(scaled) >= 0.0).all()


def target(goal: Goal, acquisition: EI | PI | UCB) -> Target:
    aim = goal.aim(Seen(QUALITY, COST, np.zeros(4)), rng=np.random.default_rng(0))
    units = Standardize.of(QUALITY)
    there = np.linspace(-1.0, 1.0, 9)
    return target_of(
        aim,
        standard=units.forward,
        unit=units.scale,
        scale=CostScale.of(goal, COST, log=True),
        acquisition=acquisition,
        rule=Improvement(24),
        survey=lambda: (Normal(there, there), Normal(there, there)),
    )


@pytest.mark.parametrize("acquisition", [EI(), PI(), UCB()], ids=repr)
def test_scores_come_with_their_derivatives(settled: Goal, acquisition: EI | PI | UCB) -> None:
    worth = target(settled, acquisition)
    mean, std = np.array([-0.5, 0.2, 1.0]), np.array([0.3, 0.4, 0.5])
    m, v = np.array([-3.0, -1.0, -0.2]), np.array([0.4, 0.3, 0.5])

    def partials(mean: Array, std: Array, m: Array, v: Array) -> Partials:
        return worth.partials(Normal(mean, std), Normal(m, v) if settled.needs_cost else None)

    at, h = [mean, std, m, v], 1e-5
    found = partials(*at)
    assert np.isfinite(found.value).all()
    names = ["by_mean", "by_std", "by_cost_mean", "by_cost_std"]
    for k, name in enumerate(names[: 4 if settled.needs_cost else 2]):
        up, down = ([x + s * h * (i == k) for i, x in enumerate(at)] for s in (1, -1))
        slope = (partials(*up).value - partials(*down).value) / (2 * h)
        np.testing.assert_allclose(getattr(found, name), slope, rtol=2e-2, atol=1e-3)
