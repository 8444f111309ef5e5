"""What every goal must do. A new one is one more line in `GOALS`."""

from __future__ import annotations

import numpy as np
import pytest

from tradewind import checks
from tradewind.engine import plan
from tradewind.goals import Goal, Quality, Tradeoff
from tradewind.strategies import EI, PI, UCB, Improvement
from tradewind.types import Array, Incumbent, Normal

GOALS: list[Goal] = [
    Quality(),
    Tradeoff(0.0),
    Tradeoff(0.3),
    Tradeoff(0.3, 20.0),
    Tradeoff(5.0, 1e-3),
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


def test_a_higher_quality_at_the_same_cost_is_better(settled: Goal) -> None:
    better = settled.utility(QUALITY + 0.05, COST)
    assert (better > settled.utility(QUALITY, COST)).all()


def test_a_higher_cost_at_the_same_quality_is_never_better(settled: Goal) -> None:
    assert (settled.utility(QUALITY, COST * 2.0) <= settled.utility(QUALITY, COST)).all()


def test_a_goal_that_needs_costs_cannot_judge_a_trial_without_one(settled: Goal) -> None:
    utility = settled.utility(QUALITY, np.full(4, np.nan))
    assert np.isnan(utility).all() == settled.needs_cost


@pytest.mark.parametrize("log", [True, False])
def test_the_scale_of_costs_keeps_their_order(settled: Goal, log: bool) -> None:
    scaled = settled.cost_scale(np.sort(COST), log=log)
    assert np.isfinite(scaled).all()
    assert (np.diff(scaled) >= 0.0).all()


@pytest.mark.parametrize("acquisition", [EI(), PI(), UCB()], ids=repr)
def test_scores_come_with_their_derivatives(settled: Goal, acquisition: EI | PI | UCB) -> None:
    def score(mean: Array, cost: Array) -> Array:
        return partials(mean, cost).value

    def partials(mean: Array, cost: Array):  # type: ignore[no-untyped-def]
        return settled.score(
            Normal(mean, np.full(3, 0.4)),
            Normal(cost, np.full(3, 0.3)) if settled.needs_cost else None,
            incumbent=Incumbent(score=0.1, quality=0.3, sigma=0.05),
            acquisition=acquisition,
            rule=Improvement(24),
            unit=0.5,
        )

    mean, cost, h = np.array([-0.5, 0.2, 1.0]), np.array([-3.0, -1.0, -0.2]), 1e-5
    found = partials(mean, cost)
    assert np.isfinite(found.value).all()
    by_mean = (score(mean + h, cost) - score(mean - h, cost)) / (2 * h)
    np.testing.assert_allclose(found.by_mean, by_mean, rtol=1e-3)
    if settled.needs_cost:
        by_cost = (score(mean, cost + h) - score(mean, cost - h)) / (2 * h)
        np.testing.assert_allclose(found.by_cost_mean, by_cost, rtol=2e-2, atol=1e-3)
