"""What every goal must do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tradewind.goals import Acquisition, Goal, Seen, best_of
from tradewind.goals.text import read_goal
from tradewind.optimizer.acquisition.ei import EI
from tradewind.optimizer.acquisition.pi import PI
from tradewind.optimizer.acquisition.tradeoff import Improvement
from tradewind.optimizer.acquisition.ucb import UCB
from tradewind.optimizer.strategies.costs import CostScale
from tradewind.optimizer.strategies.target import Target, target_of
from tradewind.optimizer.transforms import Standardize
from tradewind.testing.check import check_all, contract, must
from tradewind.types import Array, Normal, Partials

QUALITY = np.array([0.5, 0.7, 0.9, 0.9])
COST = np.array([1.0, 3.0, 30.0, 10.0])
EXACT = np.zeros(4)


def it_passes_for_a_goal(goal: Goal) -> None:
    """It has all the members of a goal."""
    must(read_goal(goal) is goal, "it does not pass for one")


def settling_closes_it_and_leaves_the_original_alone(goal: Goal) -> None:
    """`settle` returns a goal with a reference, once and for all, and changes nothing."""
    before = repr(goal)
    settled = goal.settle(COST)
    must(not settled.open, "it is still open")
    must(settled.settle(COST * 100.0) == settled, "a reference is decided once, not again")
    must(repr(goal) == before, "the original has changed")


def settling_without_a_cost_changes_nothing(goal: Goal) -> None:
    """`settle` without any known cost returns the goal as it is."""
    for unknown in (np.array([np.nan]), np.array([])):
        must(goal.settle(unknown) == goal, f"it became {goal.settle(unknown)!r}")


def only_a_reference_that_costs_decided_can_be_provisional(goal: Goal) -> None:
    """A goal is provisional if, and only if, costs have decided its reference so far."""
    settled = goal.settle(COST, provisional=True)
    decided = settled.reference != goal.reference
    must(settled.provisional is decided, f"provisional is {settled.provisional}")
    must(not goal.settle(COST).provisional, "it is provisional after the last cost")
    must(not decided or settled.reference == COST.max(), "the reference is not the largest cost")


def a_dominated_trial_is_never_the_best(goal: Goal) -> None:
    """Of two trials with the same quality, the cheaper one is at least as good, and wins."""
    settled = goal.settle(COST)  # the third trial is as good as the last one, which is cheaper
    utility = settled.utility(QUALITY, COST, EXACT)
    must(utility[2] <= utility[3], "the dearer one is better")
    must(best_of(utility, COST) != 2, "the dearer one is the best of all")


def a_trial_that_is_better_and_cheaper_than_all_others_is_the_best(goal: Goal) -> None:
    """A trial that is better and cheaper than all others is the best."""
    settled = goal.settle(COST)
    for i in range(len(COST)):
        quality, cost = QUALITY.copy(), COST.copy()
        quality[i], cost[i] = quality.max() + 0.1, cost.min() / 2.0
        must(best_of(settled.utility(quality, cost, EXACT), cost) == i, "another one is")


def the_best_trial_qualifies_if_any_does(goal: Goal) -> None:
    """If any trial meets the conditions of the goal, the best one does."""
    settled = goal.settle(COST)
    qualifies = settled.qualifies(QUALITY, COST, EXACT)
    must(qualifies.shape == COST.shape, f"qualifies() has the shape {qualifies.shape}")
    best = best_of(settled.utility(QUALITY, COST, EXACT), COST)
    must(not qualifies.any() or qualifies[best], "it does not")


def it_says_what_it_wants_in_words(goal: Goal) -> None:
    """`describe` says in one line what is wanted."""
    text = goal.describe()
    must(text and "\n" not in text, f"it says {text!r}")


def a_goal_that_needs_costs_cannot_judge_a_trial_without_one(goal: Goal) -> None:
    """`utility` is NaN without a cost if the goal needs costs, and a number if it does not."""
    settled = goal.settle(COST)
    utility = settled.utility(QUALITY, np.full(4, np.nan))
    must(np.isnan(utility).all() == settled.needs_cost, f"it is {utility}")


def the_scale_of_costs_keeps_their_order(goal: Goal) -> None:
    """`cost_scale` is finite and keeps the order of costs."""
    settled = goal.settle(COST)
    for log in (True, False):
        scaled = settled.cost_scale(np.sort(COST), log=log)
        must(np.isfinite(scaled).all(), f"it is not finite: {scaled}")
        must((np.diff(scaled) >= 0.0).all(), f"it changes the order: {scaled}")


def target(goal: Goal, acquisition: Acquisition) -> Target:
    aim = goal.aim(Seen(QUALITY, COST, EXACT), rng=np.random.default_rng(0))
    units = Standardize.of(QUALITY)
    there = np.linspace(-1.0, 1.0, 9)
    return target_of(
        aim,
        standard=lambda value: units.forward(np.asarray(value)),
        unit=units.scale,
        scale=CostScale.of(goal, COST, log=True),
        acquisition=acquisition,
        rule=Improvement(24),
        survey=lambda: (Normal(there, there), Normal(there, there)),
    )


def what_it_aims_at_can_be_scored(goal: Goal) -> None:
    """`aim` returns something that predictions can be scored by, with the right derivatives."""
    settled = goal.settle(COST)
    for acquisition in (EI(), PI(), UCB()):
        scores_have_derivatives(settled, acquisition)


def scores_have_derivatives(settled: Goal, acquisition: Acquisition) -> None:
    worth = target(settled, acquisition)
    mean, std = np.array([-0.5, 0.2, 1.0]), np.array([0.3, 0.4, 0.5])
    m, v = np.array([-3.0, -1.0, -0.2]), np.array([0.4, 0.3, 0.5])

    def partials(mean: Array, std: Array, m: Array, v: Array) -> Partials:
        return worth.partials(Normal(mean, std), Normal(m, v) if settled.needs_cost else None)

    at, h = [mean, std, m, v], 1e-5
    found = partials(*at)
    must(np.isfinite(found.value).all(), f"a score is not finite: {found.value}")
    names = ["by_mean", "by_std", "by_cost_mean", "by_cost_std"]
    for k, name in enumerate(names[: 4 if settled.needs_cost else 2]):
        up, down = ([x + s * h * (i == k) for i, x in enumerate(at)] for s in (1, -1))
        slope = (partials(*up).value - partials(*down).value) / (2 * h)
        np.testing.assert_allclose(getattr(found, name), slope, rtol=2e-2, atol=1e-3)


GOAL = contract(
    it_passes_for_a_goal,
    settling_closes_it_and_leaves_the_original_alone,
    settling_without_a_cost_changes_nothing,
    only_a_reference_that_costs_decided_can_be_provisional,
    a_dominated_trial_is_never_the_best,
    a_trial_that_is_better_and_cheaper_than_all_others_is_the_best,
    the_best_trial_qualifies_if_any_does,
    it_says_what_it_wants_in_words,
    a_goal_that_needs_costs_cannot_judge_a_trial_without_one,
    the_scale_of_costs_keeps_their_order,
    what_it_aims_at_can_be_scored,
)


def check_goal(make: Callable[[], Goal]) -> None:
    """Check that a goal keeps its contract. `make` makes one.

    Raises an AssertionError that names the first rule that is broken.

    >>> tw.testing.check_goal(lambda: tw.Tradeoff(alpha=0.3, reference=60.0))
    """
    check_all(GOAL, make)
