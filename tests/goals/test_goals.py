"""Goals: what trials are worth, and which of them are efficient."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tradewind.goals import (
    Beat,
    BestUnder,
    CheapestWithin,
    Extend,
    Frontier,
    Knee,
    Quality,
    Seen,
    Tradeoff,
    efficient,
    picking,
)
from tradewind.goals.picking import dominated_by
from tradewind.types import Array

RNG = np.random.default_rng(0)


def seen(quality: Array, cost: Array | list[float]) -> Seen:
    return Seen(quality, np.asarray(cost), np.zeros(len(quality)))


# ---- Quality ----


def test_quality_is_worth_itself_whatever_it_costs() -> None:
    quality = np.array([0.1, 0.9])
    np.testing.assert_array_equal(Quality().utility(quality, np.array([np.nan, 1e9])), quality)


def test_quality_asks_for_no_cost_and_leaves_nothing_to_settle() -> None:
    assert not Quality().needs_cost
    assert Quality().settle(np.array([1.0, 2.0])) == Quality()


# ---- Tradeoff: what it accepts ----


@pytest.mark.parametrize("alpha", [-0.1, math.inf, -math.inf, math.nan])
def test_alpha_must_be_a_finite_number_from_0(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha must be a number ≥ 0, but got"):
        Tradeoff(alpha)


@pytest.mark.parametrize("reference", [0.0, -1.0, math.inf, math.nan])
def test_a_reference_must_be_a_positive_cost(reference: float) -> None:
    with pytest.raises(ValueError, match="reference must be a number > 0, but got"):
        Tradeoff(0.5, reference)


@pytest.mark.parametrize("bad", ["half", True, [0.5], np.array([0.5]), 1j])
@pytest.mark.parametrize("name", ["alpha", "reference"])
def test_alpha_and_reference_must_be_numbers(name: str, bad: object) -> None:
    with pytest.raises(ValueError, match=f"{name} must be a number . 0,.* but got"):
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


def test_sigma_is_the_ratio_to_the_reference_and_ends_at_1_only_if_it_is_capped() -> None:
    cost = np.array([0.0, 2.5, 10.0, 40.0, np.nan])
    np.testing.assert_array_equal(Tradeoff(0.5, 10.0).sigma(cost), [0.0, 0.25, 1.0, 4.0, np.nan])
    capped = Tradeoff(0.5, 10.0, capped=True).sigma(cost)
    np.testing.assert_array_equal(capped, [0.0, 0.25, 1.0, 1.0, np.nan])


def test_a_tiny_reference_makes_a_large_cost_infinitely_bad_or_as_bad_as_the_cap() -> None:
    cost = np.array([0.0, 1e300])
    np.testing.assert_array_equal(Tradeoff(0.5, 1e-300).sigma(cost), [0.0, np.inf])
    np.testing.assert_array_equal(Tradeoff(0.5, 1e-300, capped=True).sigma(cost), [0.0, 1.0])


@given(cost=st.floats(0.0, 1e300), reference=st.floats(1e-300, 1e300), alpha=st.floats(0.01, 10.0))
def test_a_capped_sigma_lies_between_0_and_1(cost: float, reference: float, alpha: float) -> None:
    assert 0.0 <= Tradeoff(alpha, reference, capped=True).sigma(np.array([cost]))[0] <= 1.0


def test_a_price_is_a_rate() -> None:
    """A second that is worth ten points is worth them at 40 s, too."""
    goal = Tradeoff.price(points=0.1, cost=1.0)
    quality, cost = np.array([0.95, 0.80]), np.array([40.0, 0.5])
    assert np.argmax(goal.utility(quality, cost)) == 1
    assert goal == Tradeoff(0.1, 1.0)
    assert str(goal) == "quality against cost, where a cost of 1 is worth 0.1"


@pytest.mark.parametrize("bad", [{"points": 0.0, "cost": 1.0}, {"points": 0.1, "cost": -1.0}])
def test_a_price_needs_two_positive_numbers(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be a number > 0, but got"):
        Tradeoff.price(**bad)


def test_sigma_needs_a_reference() -> None:
    with pytest.raises(ValueError, match="no reference yet: give it one"):
        Tradeoff(0.5).sigma(np.array([1.0]))


@pytest.mark.parametrize("log", [False, True])
def test_costs_are_modelled_as_sigma_or_as_the_log_of_their_ratio_to_the_reference(
    log: bool,
) -> None:
    scaled = Tradeoff(0.5, reference=10.0).cost_scale(np.array([1.0, 10.0, 40.0]), log=log)
    np.testing.assert_allclose(scaled, np.log([0.1, 1.0, 4.0]) if log else [0.1, 1.0, 4.0])


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
    np.testing.assert_allclose(utility, [-0.1, 0.55, np.nan])


def test_a_trade_off_without_a_price_is_quality_alone_and_needs_no_cost() -> None:
    goal = Tradeoff(0.0)
    quality = np.array([0.9, 0.8])
    assert not goal.needs_cost
    assert Tradeoff(1e-9).needs_cost
    np.testing.assert_array_equal(goal.utility(quality, np.array([np.nan, 1.0])), quality)
    assert goal.aim(seen(quality, [np.nan, 1.0]), rng=RNG) == Beat(0.9, 0.9)


# ---- the goals with a condition ----


def test_the_best_under_a_cost_is_the_best_of_those_that_meet_it() -> None:
    goal, quality, cost = BestUnder(10.0), np.array([0.7, 0.9, 0.8]), np.array([1.0, 11.0, 10.0])
    assert np.argmax(goal.utility(quality, cost)) == 2
    assert goal.qualifies(quality, cost).tolist() == [True, False, True]
    assert goal.aim(seen(quality, cost), rng=RNG) == Beat(0.8, 0.8, limit=10.0)


def test_a_limit_on_costs_that_vary_is_kept_with_confidence() -> None:
    quality, cost = np.array([0.9, 0.8, 0.7]), np.array([9.9, 9.0, 8.7])
    goal = BestUnder(10.0).with_spread(lambda: 0.1)  # ln(10 / c) > 0.1·1.2816
    assert goal.margin_factor == pytest.approx(math.exp(0.1 * 1.2815516))
    assert goal.qualifies(quality, cost).tolist() == [False, False, True]
    assert np.argmax(goal.utility(quality, cost)) == 2
    assert goal.aim(seen(quality, cost), rng=RNG).quality == 0.7
    assert goal.probability(10.0 / goal.margin_factor) == pytest.approx(0.9)
    assert goal.probability(10.0) == pytest.approx(0.5)
    assert (BestUnder(10.0).probability(10.0), BestUnder(10.0).probability(10.1)) == (1.0, 0.0)
    low = BestUnder(10.0, confidence=0.8).with_spread(lambda: 0.1)
    assert low.qualifies(quality, cost).tolist() == [False, True, True]
    assert "of at most 10, kept by a new training with a probability of 80%" in str(low)
    assert repr(low) == "BestUnder(cost=10.0, confidence=0.8)"


def test_a_limit_without_a_margin_does_not_ask_how_much_costs_vary() -> None:
    goal = BestUnder(10.0, confidence=0.5)
    assert goal.with_spread(lambda: pytest.fail("it asked")) is goal
    with pytest.raises(ValueError, match=r"confidence must be a number from 0\.5 to 0\.999"):
        BestUnder(10.0, confidence=0.4)


@pytest.mark.parametrize(("limit", "cost"), [(1e15, 1e15 + 1), (1e-310, 0.0)])
def test_the_utility_agrees_with_the_limit_to_the_last_digit(limit: float, cost: float) -> None:
    goal, quality, costs = BestUnder(limit), np.array([0.9, 0.8]), np.array([cost, limit])
    within = goal.qualifies(quality, costs)
    np.testing.assert_array_equal(goal.utility(quality, costs) == quality, within)


def test_if_nothing_meets_a_limit_the_cheapest_comes_closest() -> None:
    quality, cost = np.array([0.9, 0.1, -5.0]), np.array([20.0, 12.0, np.nan])
    utility = BestUnder(10.0).utility(quality, cost)
    assert utility[1] > utility[0]
    assert BestUnder(10.0).aim(seen(quality[:2], cost[:2]), rng=RNG).quality == 0.1


@pytest.mark.parametrize(
    ("tolerance", "expected"), [(0.05, 1), (0.2, 0), ("10%", 1), ("1se", 1), (0.0, 2)]
)
def test_the_cheapest_within_a_tolerance_is_picked(tolerance: float | str, expected: int) -> None:
    quality, cost = np.array([0.75, 0.86, 0.9, 0.4]), np.array([1.0, 5.0, 50.0, 0.1])
    noise = np.array([0.0, 0.0, 0.05**2, 0.0])
    utility = CheapestWithin(tolerance).utility(quality, cost, noise)
    assert np.argmax(utility) == expected


def test_below_the_tolerance_the_better_one_comes_first() -> None:
    quality, cost = np.array([0.9, 0.5, 0.6]), np.array([50.0, 1.0, 2.0])
    assert np.argsort(-CheapestWithin(0.1).utility(quality, cost)).tolist() == [0, 2, 1]


def test_a_share_of_a_negative_quality_is_a_tolerance_too() -> None:
    """A loss of 2 is the quality −2: 10 % of it are 0.2."""
    assert CheapestWithin("10%").threshold(np.array([-2.0, -9.0])) == pytest.approx(-2.2)


@pytest.mark.parametrize("bad", [-0.1, math.nan, "2se", "x%", "-1%", None, "nan%", "inf%"])
def test_a_tolerance_is_an_amount_a_share_or_a_standard_error(bad: object) -> None:
    with pytest.raises(ValueError, match="tolerance must be"):
        CheapestWithin(bad)  # type: ignore[arg-type]


def test_the_goals_say_what_they_want_in_words() -> None:
    assert str(BestUnder(10.0)) == "the best quality with a cost of at most 10"
    assert str(CheapestWithin("1se")) == (
        "the cheapest model within one standard error of the best quality"
    )
    assert str(Frontier(cost=(1.0, 60.0))) == "all efficient models that cost from 1 to 60"
    assert "bends" in str(Knee())
    assert repr(Frontier(cost=(1.0, 60.0))) == "Frontier(cost=(1.0, 60.0))"
    assert str(Tradeoff(0.3, by="memory")) == (
        "quality against cost (memory), where the largest cost of the first trials is worth 0.3"
    )


def test_a_goal_may_name_the_cost_that_counts() -> None:
    for goal in (Tradeoff(0.1, by="m"), BestUnder(1.0, by="m"), Frontier(by="m"), Knee(by="m")):
        assert goal.by == "m"
    with pytest.raises(ValueError, match="by must be the name of a cost"):
        BestUnder(1.0, by="")


# ---- the frontier as a goal ----


def test_the_best_of_a_frontier_is_its_knee() -> None:
    quality = np.array([0.5, 0.85, 0.9, 0.2, 0.6])
    cost = np.array([1.0, 10.0, 100.0, 50.0, np.nan])
    utility = Knee().utility(quality, cost)
    assert np.argmax(np.nan_to_num(utility, nan=-9.0)) == 1
    assert np.isnan(utility[4])
    assert utility[3] < utility[[0, 1, 2]].min()


def test_a_frontier_aims_at_all_of_it_or_at_a_range() -> None:
    quality, cost = np.array([0.5, 0.9, 0.4]), np.array([1.0, 10.0, 5.0])
    aim = Frontier(search="hypervolume").aim(seen(quality, cost), rng=RNG)
    assert isinstance(aim, Extend)
    assert aim.trials.tolist() == [0, 1]
    ranged = Frontier(cost=(2.0, 8.0)).aim(seen(quality, cost), rng=RNG)
    assert isinstance(ranged, Extend)
    assert (ranged.low, ranged.high) == (2.0, 8.0)


@pytest.mark.parametrize("goal", [Frontier(), Frontier(alpha=(0.1, 0.9))], ids=repr)
def test_draws_take_another_trade_off_each_time(goal: Frontier) -> None:
    given = seen(np.array([0.5, 0.9, 0.4]), np.array([1.0, 10.0, 5.0]))
    aims = [goal.aim(given, rng=np.random.default_rng(i)) for i in range(20)]
    rates = {aim.alpha for aim in aims if isinstance(aim, Beat)}
    assert len(rates) == 20
    for aim in aims:
        assert isinstance(aim, Beat)
        assert aim.score == (given.quality - aim.alpha * given.cost).max()
    if goal.alpha is not None:
        assert all(0.01 <= rate <= 0.09 for rate in rates)


@pytest.mark.parametrize("goal", [Frontier(alpha=(1e-300, 1e300)), Frontier(search="draws")])
@pytest.mark.parametrize("unit", [1e-300, 1.0, 1e300])
@pytest.mark.parametrize("costs", [[0.0, 0.0], [1e-300, 2e-300], [0.0, 1e300]])
def test_draws_bear_any_magnitude(goal: Frontier, unit: float, costs: list[float]) -> None:
    aim = goal.aim(seen(unit * np.array([-0.5, 0.5]), costs), rng=RNG)
    assert isinstance(aim, Beat)
    assert math.isfinite(aim.score)
    assert 0.0 < aim.alpha < math.inf


@pytest.mark.parametrize(
    "bad",
    [{"cost": (2.0, 1.0)}, {"alpha": (0.0, 1.0)}, {"cost": 3.0}, {"cost": (1.0, math.nan)},
     {"search": "x"}, {"cost": (1.0, 2.0), "alpha": (0.1, 0.2)}, {"reference": -1.0}],
    ids=repr,
)  # fmt: skip
def test_a_frontier_refuses_ranges_that_are_none(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="but got"):
        Frontier(**bad)


# ---- picking the efficient ones ----


def test_a_tolerance_leaves_out_what_is_hardly_better_or_hardly_cheaper() -> None:
    quality = np.array([0.50, 0.505, 0.70, 0.71])
    cost = np.array([1.0, 2.0, 10.0, 10.2])
    assert efficient(quality, cost).tolist() == [0, 1, 2, 3]
    assert efficient(quality, cost, better=0.02).tolist() == [0, 2]
    assert efficient(quality, cost, cheaper=0.05).tolist() == [0, 1, 3]
    assert efficient(quality, cost, better=0.02, cheaper=0.05).tolist() == [0, 3]


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


@given(
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from([1.0, 2.0, 3.0, math.inf, math.nan]))),
    st.sampled_from([1, 3, 1024]),
)
def test_dominating_trials_are_counted_in_blocks_as_in_pairs(
    trials: list[tuple[int, float]], block: int
) -> None:
    quality = np.array([float(q) for q, _ in trials])
    cost = np.array([c for _, c in trials])
    expected = [
        sum((p >= q and d <= c) and (p > q or d < c) for p, d in trials) if c == c else math.nan
        for q, c in trials
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(picking, "_BLOCK", block)
        np.testing.assert_array_equal(dominated_by(quality, cost), expected)
