"""What is left of time and money: whatever was spent, in whatever unit."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tradewind.engine.limits import Budget, Limits, Running
from tradewind.runners.runner import Failure, Lost, Result, Stopped
from tradewind.types import Origin, Outcome, State, Trial, Usage

costs = st.floats(0.0, 1e6)
seconds = st.floats(1e-3, 1e5)
rates = st.floats(1e-3, 1e3)


def trial(
    cost: float | None = None,
    wall: float | None = None,
    *,
    number: int = 0,
    state: State = State.FINISHED,
    expected: float | None = None,
) -> Trial:
    return Trial(
        number,
        {},
        state,
        Origin.DESIGN,
        seed=0,
        cost=cost,
        expected_cost=expected,
        usage=None if wall is None else Usage(wall),
    )


def running(expected: float | None, begun: float, number: int = 0) -> Running:
    return Running(trial(number=number, state=State.RUNNING, expected=expected), begun)


def budget(*known: Trial, **limits: Any) -> Budget:
    made = Budget(Limits(**limits))
    made.learn(list(known))
    return made


def timed(walls: list[float], rate: float) -> list[Trial]:
    return [trial(cost=wall * rate, wall=wall) for wall in walls]


# ---- what is spent ----


def spend(made: Budget, *costs: float | None, wall: float = 1.0) -> Budget:
    for cost in costs:
        made.spend(Outcome(1.0, cost), cost, Usage(wall))
    return made


def end(made: Budget, result: Result, usage: Usage | None) -> None:
    made.spend(result, made.cost(result, usage), usage)


@given(spent=st.lists(st.none() | costs), earlier=st.lists(costs))
def test_what_this_search_has_cost_is_the_sum_of_its_trials(
    spent: list[float | None], earlier: list[float]
) -> None:
    made = spend(budget(*map(trial, earlier), max_cost=1.0), *spent)
    assert made.spent == pytest.approx(math.fsum(c or 0.0 for c in spent))


@pytest.mark.parametrize(
    "result",
    [Failure("boom", 3.0), Lost("gone"), Stopped("enough")],
    ids=lambda r: type(r).__name__,
)
def test_what_came_to_nothing_costs_its_time_and_says_nothing_about_others(result: Any) -> None:
    made = budget(*timed([1.0, 2.0, 4.0], 2.0), max_cost=100.0)
    end(made, result, Usage(wall=3.0))
    assert made.spent == 6.0
    assert made.expected(trial()) == 4.0


def test_where_nobody_knows_what_a_second_costs_a_failure_costs_what_others_do() -> None:
    made = spend(budget(max_cost=100.0), 4.0, 6.0, 50.0, wall=1.0)
    end(made, Failure("boom", 1e6), Usage(1e6))
    assert made.spent == 60.0 + 6.0


def test_where_nothing_is_known_failures_use_up_a_limit_all_the_same() -> None:
    made = budget(max_cost=100.0)
    for _ in range(10):
        assert made.spent < 100.0 * (1.0 - 1e-9)
        end(made, Failure("boom", 0.001), Usage(0.001))
    assert made.spent == pytest.approx(100.0)


@pytest.mark.parametrize("result", [Lost("gone"), Stopped("enough")], ids=["lost", "stopped"])
def test_where_nobody_knows_what_a_second_costs_what_was_cut_short_is_free(result: Any) -> None:
    made = budget(max_cost=100.0)
    end(made, result, Usage(5.0))
    end(made, result, None)
    assert made.spent == 0.0


@given(seconds=st.none() | seconds, rate=rates)
def test_the_price_of_time_is_what_it_costs_by_the_rate(seconds: float | None, rate: float) -> None:
    made = budget(*timed([1.0, 2.0, 4.0], rate), max_cost=1.0)
    failure = Failure("boom", seconds)
    cost = made.cost(failure, None)
    assert cost == (None if seconds is None else pytest.approx(seconds * rate))
    assert budget(max_cost=1.0).cost(failure, None) is None


@given(wall=seconds, rate=rates, result=st.sampled_from([Failure("boom"), Lost("x"), Stopped("x")]))
def test_what_does_not_say_its_seconds_costs_those_of_its_usage(
    wall: float, rate: float, result: Result
) -> None:
    made = budget(*timed([1.0, 2.0, 4.0], rate), max_cost=1.0)
    assert made.cost(result, Usage(wall)) == pytest.approx(wall * rate)


@given(cost=st.none() | costs, rate=rates)
def test_an_outcome_costs_what_it_says_whatever_a_second_costs(
    cost: float | None, rate: float
) -> None:
    made = budget(*timed([1.0, 2.0, 4.0], rate), max_cost=1.0)
    assert made.cost(Outcome(1.0, cost), Usage(7.0)) == cost


@given(rate=rates, limit=st.floats(0.1, 1e3), spent=st.lists(st.floats(0.0, 1e3), max_size=4))
def test_one_trial_has_as_long_as_the_money_that_is_left_lasts_for_it(
    rate: float, limit: float, spent: list[float]
) -> None:
    made = budget(*timed([1.0] * 20, rate), max_cost=limit)
    for cost in spent:
        made.spend(Outcome(1.0, cost), cost, Usage(cost / rate))
    assert made.seconds == pytest.approx(max(limit - sum(spent), 0.0) / rate, abs=1e-9)
    assert budget(max_cost=limit).seconds is None
    assert budget(*timed([1.0] * 3, rate), timeout=9.0).seconds is None


# ---- what a second costs ----


@given(walls=st.lists(seconds, min_size=3, max_size=20), rate=rates)
def test_where_cost_is_proportional_to_time_the_rate_is_what_a_second_costs(
    walls: list[float], rate: float
) -> None:
    assert budget(*timed(walls, rate)).rate == pytest.approx(rate)


@given(walls=st.lists(seconds, min_size=10, max_size=20), rate=rates, odd=seconds)
def test_one_odd_trial_among_many_does_not_change_the_rate(
    walls: list[float], rate: float, odd: float
) -> None:
    made = budget(*timed(walls, rate), trial(cost=odd * rate * 1e3, wall=odd))
    assert made.rate == pytest.approx(rate)


def test_where_costs_are_no_times_there_is_no_rate() -> None:
    assert budget(*(trial(cost=1.0, wall=w) for w in (1.0, 10.0, 100.0))).rate is None


@pytest.mark.parametrize("known", [trial(3.0), trial(None, 3.0), trial(3.0, 0.0)], ids=repr)
def test_without_both_cost_and_time_there_is_no_rate(known: Trial) -> None:
    assert budget(known).rate is None


def test_two_trials_are_too_few_to_say_what_a_second_costs() -> None:
    assert budget(*timed([1.0, 2.0], 5.0)).rate is None


def test_where_nothing_costs_anything_a_second_is_free_and_lasts_for_ever() -> None:
    made = budget(*timed([1.0, 2.0, 3.0], 0.0), max_cost=1.0, timeout=5.0)
    assert made.rate == 0.0
    assert made.lasts([running(None, 0.0)], 100.0) is None
    assert made.left([], 5.0, 0.0) is None


# ---- what a trial will cost ----


@given(known=st.lists(costs, min_size=1), predicted=costs)
def test_a_trial_costs_what_was_predicted_or_else_what_others_did(
    known: list[float], predicted: float
) -> None:
    made = budget(*map(trial, known))
    assert made.expected(trial(expected=predicted)) == predicted
    assert min(known) <= made.expected(trial()) <= max(known)


# ---- what is left ----


@given(
    known=st.lists(costs, max_size=5),
    spent=st.lists(costs, max_size=5),
    pending=st.lists(st.tuples(st.none() | costs, seconds), max_size=5),
    limit=costs,
    time=st.none() | seconds,
    now=seconds,
)
def test_what_is_left_is_never_negative_nor_more_than_the_limit_less_what_was_spent(
    known: list[float],
    spent: list[float],
    pending: list[tuple[float | None, float]],
    limit: float,
    time: float | None,
    now: float,
) -> None:
    made = spend(budget(*(trial(c, 1.0) for c in known), max_cost=limit), *spent)
    runs = [running(expected, max(now - begun, 0.0)) for expected, begun in pending]
    left = made.left(runs, time, now)
    if left is not None:
        assert 0.0 <= left <= max(limit - made.spent, 0.0) or left <= (time or 0) * (made.rate or 0)
    more = made.left([*runs, running(1.0, now)], time, now)
    if left is not None:  # one more that runs never leaves more
        assert more is not None
        assert more <= left


def test_what_runs_is_set_aside_by_what_it_will_cost_or_has_cost_already() -> None:
    made = budget(*timed([10.0] * 3, 2.0), max_cost=100.0)
    assert made.left([], None, 0.0) is None  # not near: 100 is more than four times 20
    spend(made, 40.0, wall=20.0)
    assert made.left([running(15.0, begun=0.0)], None, 5.0) == 45.0  # expected 15, used 10
    assert made.left([running(15.0, begun=0.0)], None, 20.0) == 20.0  # expected 15, used 40


def test_time_that_is_left_counts_in_the_unit_of_cost() -> None:
    made = budget(*timed([10.0] * 3, 2.0), timeout=60.0)
    assert made.left([], 60.0, 0.0) is None
    assert made.left([], 30.0, 30.0) == 60.0
    assert budget(trial(20.0), timeout=60.0).left([], 1.0, 59.0) is None  # nobody knows the rate


def test_the_nearer_of_two_limits_is_what_is_left() -> None:
    made = budget(*timed([10.0] * 3, 2.0), timeout=60.0, max_cost=30.0)
    assert made.left([], 30.0, 30.0) == 30.0
    assert made.left([], 5.0, 55.0) == 10.0


@given(known=st.lists(st.floats(0.01, 1e6), min_size=1), left=st.none() | costs)
def test_only_less_than_half_of_the_cheapest_trial_is_hopeless(
    known: list[float], left: float | None
) -> None:
    made = budget(*map(trial, known), max_cost=1.0)
    assert made.hopeless(left) is (left is not None and left < 0.5 * min(known))


def test_nothing_is_hopeless_before_anything_is_known() -> None:
    assert not budget(max_cost=1.0).hopeless(0.0)


# ---- how long it lasts ----


@given(
    walls=st.lists(seconds, min_size=3, max_size=5),
    rate=rates,
    limit=st.floats(1e-3, 1e6),
    begun=st.lists(st.floats(0.0, 1e3), min_size=1, max_size=8),
    after=st.floats(0.0, 1e3),
)
def test_money_lasts_until_what_runs_has_used_it_up(
    walls: list[float], rate: float, limit: float, begun: list[float], after: float
) -> None:
    made = budget(*timed(walls, rate), max_cost=limit)
    runs = [running(None, b, i) for i, b in enumerate(begun)]
    now = 1e3 + after
    lasts = made.lasts(runs, now)
    assert lasts is not None
    used = sum(made.rate * (now - b) for b in begun)  # type: ignore[operator]
    if lasts:
        end = now + lasts
        at_the_end = sum(made.rate * (end - b) for b in begun)  # type: ignore[operator]
        assert at_the_end == pytest.approx(limit)
        # waiting so long moves every clock, and then there is nothing left
        assert end > now
        assert made.lasts(runs, end) == pytest.approx(0.0, abs=1e-6 * lasts)
    else:
        assert used >= limit * (1.0 - 1e-6)


@pytest.mark.parametrize(
    "made",
    [
        budget(*timed([1.0] * 3, 1.0), timeout=9.0),
        budget(trial(1.0), max_cost=9.0),
        budget(max_cost=9.0),
    ],
    ids=["no limit", "no rate", "nothing known"],
)
def test_nobody_can_say_how_long_money_lasts_without_a_limit_and_a_rate(made: Budget) -> None:
    assert made.lasts([running(None, 0.0)], 5.0) is None


def test_money_that_nobody_uses_lasts() -> None:
    assert budget(*timed([1.0] * 3, 1.0), max_cost=9.0).lasts([], 5.0) is None
