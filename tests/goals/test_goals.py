"""Goals: what trials are worth, and which of them are efficient."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tradewind.goals import Acquisition, Goal, Quality, Tradeoff, TradeoffRule, efficient
from tradewind.optimizer.acquisition.ei import EI
from tradewind.optimizer.acquisition.pi import PI
from tradewind.optimizer.acquisition.tradeoff import Improvement, Published
from tradewind.types import Array, Incumbent, Normal, Partials

QUALITY = Normal(np.array([0.2, 1.0]), np.array([0.5, 0.1]))
COST = Normal(np.array([-1.0, 0.3]), np.array([0.4, 0.2]))
INCUMBENT = Incumbent(score=0.4, quality=0.7, sigma=0.1)


def score(
    goal: Goal,
    cost: Normal | None,
    *,
    acquisition: Acquisition | None = None,
    rule: TradeoffRule | None = None,
    unit: float = 1.0,
) -> Partials:
    return goal.score(
        QUALITY,
        cost,
        incumbent=INCUMBENT,
        acquisition=acquisition or EI(),
        rule=rule or Improvement(),
        unit=unit,
    )


# ---- Quality ----


def test_quality_is_worth_itself_whatever_it_costs() -> None:
    quality = np.array([0.1, 0.9])
    np.testing.assert_array_equal(Quality().utility(quality, np.array([np.nan, 1e9])), quality)


def test_quality_asks_for_no_cost_and_leaves_nothing_to_settle() -> None:
    assert not Quality().needs_cost
    assert Quality().settle(np.array([1.0, 2.0])) == Quality()


def test_quality_is_scored_by_the_acquisition_against_the_best_quality() -> None:
    worth = score(Quality(), None, acquisition=PI())
    np.testing.assert_array_equal(worth.value, PI()(QUALITY, INCUMBENT.quality))


# ---- Tradeoff: what it accepts ----


@pytest.mark.parametrize("alpha", [-0.1, math.inf, -math.inf, math.nan])
def test_alpha_must_be_a_finite_number_from_0(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha must be a number ≥ 0, but got"):
        Tradeoff(alpha)


@pytest.mark.parametrize("reference", [0.0, -1.0, math.inf, math.nan])
def test_a_reference_must_be_a_positive_cost(reference: float) -> None:
    with pytest.raises(ValueError, match="reference must be a number > 0, but got"):
        Tradeoff(0.5, reference)


@pytest.mark.parametrize("bad", ["0.5", True, [0.5], np.array([0.5]), 1j])
@pytest.mark.parametrize("name", ["alpha", "reference"])
def test_alpha_and_reference_must_be_numbers(name: str, bad: object) -> None:
    with pytest.raises(ValueError, match=f"{name} must be a number . 0, but got"):
        Tradeoff(**{"alpha": 0.5, name: bad})


def test_alpha_must_be_given() -> None:
    with pytest.raises(ValueError, match="alpha must be a number ≥ 0, but got None"):
        Tradeoff(None)


@pytest.mark.parametrize("number", [2, np.float64(2.0), np.float32(2.0), np.int64(2)], ids=repr)
def test_numbers_of_any_kind_become_plain_floats(number: float) -> None:
    goal = Tradeoff(number, number)
    assert goal == Tradeoff(2.0, 2.0)
    assert type(goal.alpha) is type(goal.reference) is float


# ---- Tradeoff: what it computes ----


def test_sigma_is_the_share_of_the_reference_and_ends_at_1() -> None:
    sigma = Tradeoff(0.5, reference=10.0).sigma(np.array([0.0, 2.5, 10.0, 1e300, np.nan]))
    np.testing.assert_array_equal(sigma, [0.0, 0.25, 1.0, 1.0, np.nan])


def test_sigma_does_not_overflow_when_the_reference_is_tiny() -> None:
    sigma = Tradeoff(0.5, reference=1e-300).sigma(np.array([0.0, 1e300]))
    np.testing.assert_array_equal(sigma, [0.0, 1.0])


@given(cost=st.floats(0.0, 1e300), reference=st.floats(1e-300, 1e300), alpha=st.floats(0.01, 10.0))
def test_sigma_lies_between_0_and_1(cost: float, reference: float, alpha: float) -> None:
    assert 0.0 <= Tradeoff(alpha, reference).sigma(np.array([cost]))[0] <= 1.0


def test_sigma_needs_a_reference() -> None:
    with pytest.raises(ValueError, match="no reference yet: give it one"):
        Tradeoff(0.5).sigma(np.array([1.0]))


@pytest.mark.parametrize("log", [False, True])
def test_costs_are_modelled_as_sigma_or_as_the_log_of_their_ratio_to_the_reference(
    log: bool,
) -> None:
    scaled = Tradeoff(0.5, reference=10.0).cost_scale(np.array([1.0, 10.0, 40.0]), log=log)
    np.testing.assert_allclose(scaled, np.log([0.1, 1.0, 4.0]) if log else [0.1, 1.0, 1.0])


def test_settling_takes_the_largest_known_cost_as_the_reference() -> None:
    goal = Tradeoff(0.5).settle(np.array([3.0, np.nan, 7.0, np.inf, 1.0]))
    assert goal == Tradeoff(0.5, reference=7.0)


def test_settling_keeps_a_reference_that_was_given() -> None:
    goal = Tradeoff(0.5, reference=2.0)
    assert goal.settle(np.array([7.0])) == goal


@pytest.mark.parametrize("costs", [[], [np.nan], [np.inf, np.nan]], ids=str)
def test_settling_waits_while_no_cost_is_known(costs: list[float]) -> None:
    assert Tradeoff(0.5).settle(np.array(costs)) == Tradeoff(0.5)


def test_settling_on_trials_that_cost_nothing_gives_a_reference_still() -> None:
    goal = Tradeoff(0.5).settle(np.zeros(3))
    np.testing.assert_array_equal(goal.sigma(np.zeros(3)), 0.0)


def test_a_trade_off_is_worth_quality_minus_alpha_times_sigma() -> None:
    goal = Tradeoff(0.5, reference=10.0)
    utility = goal.utility(np.array([0.9, 0.8, 0.7]), np.array([20.0, 5.0, np.nan]))
    np.testing.assert_allclose(utility, [0.4, 0.55, np.nan])


def test_a_trade_off_without_a_price_is_quality_alone_and_needs_no_cost() -> None:
    goal = Tradeoff(0.0)
    quality = np.array([0.9, 0.8])
    assert not goal.needs_cost
    assert Tradeoff(1e-9).needs_cost
    np.testing.assert_array_equal(goal.utility(quality, np.array([np.nan, 1.0])), quality)
    np.testing.assert_array_equal(score(goal, None).value, EI()(QUALITY, INCUMBENT.quality))


@pytest.mark.parametrize("rule", [Improvement(), Published()], ids=repr)
def test_a_trade_off_is_scored_by_its_rule_with_alpha_in_standardized_units(
    rule: TradeoffRule,
) -> None:
    worth = score(Tradeoff(0.6), COST, rule=rule, unit=0.2)
    expected = rule.partials(EI(), QUALITY, COST, incumbent=INCUMBENT, alpha=3.0)
    for name in vars(expected):
        np.testing.assert_allclose(getattr(worth, name), getattr(expected, name), rtol=1e-12)


# ---- the frontier ----


def dominated(i: int, quality: Array, cost: Array) -> bool:
    """By another that is no worse in both and better in one, or by an equal that came first."""
    for j in range(len(quality)):
        if j == i or not np.isfinite(cost[j]):
            continue
        no_worse = quality[j] >= quality[i] and cost[j] <= cost[i]
        better = quality[j] > quality[i] or cost[j] < cost[i]
        if no_worse and (better or j < i):
            return True
    return False


few = st.sampled_from([0.0, 1.0, 2.0, 3.0])
costs = st.one_of(few, st.sampled_from([np.nan, np.inf]))


@given(trials=st.lists(st.tuples(few, costs), max_size=12))
def test_the_efficient_trials_are_those_that_no_other_dominates(
    trials: list[tuple[float, float]],
) -> None:
    quality = np.array([q for q, _ in trials])
    cost = np.array([c for _, c in trials])
    expected = {
        i for i in range(len(trials)) if np.isfinite(cost[i]) and not dominated(i, quality, cost)
    }
    assert set(efficient(quality, cost).tolist()) == expected


@given(trials=st.lists(st.tuples(st.floats(-5, 5), st.floats(0, 5)), max_size=30))
def test_the_efficient_trials_come_cheapest_first_and_improve(
    trials: list[tuple[float, float]],
) -> None:
    quality = np.array([q for q, _ in trials])
    cost = np.array([c for _, c in trials])
    chosen = efficient(quality, cost)
    assert (np.diff(cost[chosen]) > 0.0).all()
    assert (np.diff(quality[chosen]) > 0.0).all()


def test_of_equal_trials_the_first_is_efficient() -> None:
    assert efficient(np.array([0.5, 0.9, 0.9]), np.array([2.0, 1.0, 1.0])).tolist() == [1]


def test_trials_without_a_cost_are_never_efficient() -> None:
    assert efficient(np.array([0.9, 0.5]), np.array([np.nan, 1.0])).tolist() == [1]
    assert efficient(np.array([0.9]), np.array([np.nan])).tolist() == []
