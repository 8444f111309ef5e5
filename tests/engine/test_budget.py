"""Prices and budgets: what trials cost, and what the limits of a search leave for more."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.studies import Clock
from tradewind.engine.limits import Budget, Limits, Prices, Running
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


def running(expected: float | None, began: float, number: int = 0) -> Running:
    return Running(trial(number=number, state=State.RUNNING, expected=expected), began)


def budget(*known: Trial, now: float = 0.0, **limits: Any) -> Budget:
    """The budget of a search that began at second 0, when these trials were known."""
    return Budget(Limits(**limits), Prices(known), opened=0.0, now=Clock(now))


def timed(walls: list[float], rate: float) -> list[Trial]:
    """Trials that took so many seconds and cost `rate` for each."""
    return [trial(cost=wall * rate, wall=wall) for wall in walls]


def spend(made: Budget, *costs: float | None, wall: float = 1.0) -> Budget:
    for cost in costs:
        made.spend(Outcome(1.0, cost), Usage(wall))
    return made


# ---- what an evaluation costs ----


@given(seconds=st.none() | seconds, rate=rates)
def test_a_failure_costs_its_seconds_at_the_rate_of_the_other_trials(
    seconds: float | None, rate: float
) -> None:
    failure = Failure("boom", seconds)
    cost = Prices(timed([1.0, 2.0, 4.0], rate)).cost_of(failure, None)
    assert cost == (None if seconds is None else pytest.approx(seconds * rate))
    assert Prices().cost_of(failure, None) is None
    assert Prices(timed([1e-9, 2e-9, 4e-9], 1e299)).cost_of(Failure("", 1e3), None) is None


@given(wall=seconds, rate=rates, result=st.sampled_from([Failure("boom"), Lost("x"), Stopped("x")]))
def test_a_result_that_does_not_say_its_seconds_costs_those_of_its_usage(
    wall: float, rate: float, result: Result
) -> None:
    prices = Prices(timed([1.0, 2.0, 4.0], rate))
    assert prices.cost_of(result, Usage(wall)) == pytest.approx(wall * rate)


@given(cost=st.none() | costs, rate=rates)
def test_an_outcome_costs_what_it_says_whatever_a_second_costs(
    cost: float | None, rate: float
) -> None:
    prices = Prices(timed([1.0, 2.0, 4.0], rate))
    assert prices.cost_of(Outcome(1.0, cost), Usage(7.0)) == cost


def test_prices_are_learned_from_finished_trials_only() -> None:
    unfinished = [trial(7.0, 1.0, state=state) for state in State if state is not State.FINISHED]
    assert Prices([*unfinished, trial(3.0, 1.0)]).costs == [3.0]


# ---- what a second costs ----


@given(walls=st.lists(seconds, min_size=3, max_size=20), rate=rates)
def test_if_cost_is_proportional_to_time_the_rate_is_the_cost_of_a_second(
    walls: list[float], rate: float
) -> None:
    assert Prices(timed(walls, rate)).rate == pytest.approx(rate)


@given(walls=st.lists(seconds, min_size=10, max_size=20), rate=rates, odd=seconds)
def test_one_odd_trial_among_many_does_not_change_the_rate(
    walls: list[float], rate: float, odd: float
) -> None:
    prices = Prices([*timed(walls, rate), trial(cost=odd * rate * 1e3, wall=odd)])
    assert prices.rate == pytest.approx(rate)


def test_there_is_no_rate_if_costs_do_not_follow_time() -> None:
    assert Prices(trial(cost=1.0, wall=w) for w in (1.0, 10.0, 100.0)).rate is None


@pytest.mark.parametrize("known", [trial(3.0), trial(None, 3.0), trial(3.0, 0.0)], ids=repr)
def test_there_is_no_rate_without_both_cost_and_time(known: Trial) -> None:
    assert Prices([known] * 3).rate is None


def test_two_trials_are_too_few_for_a_rate() -> None:
    assert Prices(timed([1.0, 2.0], 5.0)).rate is None


def test_if_nothing_costs_anything_time_is_free() -> None:
    made = budget(*timed([1.0, 2.0, 3.0], 0.0), max_cost=1.0, timeout=105.0, now=100.0)
    assert made.prices.rate == 0.0
    assert made.next_deadline([running(None, 0.0)]) == 5.0  # the timeout, not the cost
    assert made.affordable([]) is None


# ---- what a trial will cost ----


@given(known=st.lists(costs, min_size=1), predicted=costs)
def test_a_trial_is_expected_to_cost_what_was_predicted_or_else_what_others_cost(
    known: list[float], predicted: float
) -> None:
    prices = Prices(map(trial, known))
    assert prices.expected(trial(expected=predicted)) == predicted
    assert min(known) <= prices.expected(trial()) <= max(known)


# ---- what is spent ----


@given(spent=st.lists(st.none() | costs), earlier=st.lists(costs))
def test_a_search_has_spent_the_sum_of_what_its_own_trials_cost(
    spent: list[float | None], earlier: list[float]
) -> None:
    made = spend(budget(*map(trial, earlier), max_cost=1.0), *spent)
    assert made.spent == pytest.approx(math.fsum(c or 0.0 for c in spent))


@pytest.mark.parametrize(
    "result",
    [Failure("boom", 3.0), Lost("gone"), Stopped("enough")],
    ids=lambda r: type(r).__name__,
)
def test_a_trial_without_an_outcome_costs_its_time_and_does_not_change_prices(result: Any) -> None:
    made = budget(*timed([1.0, 2.0, 4.0], 2.0), max_cost=100.0)
    made.spend(result, Usage(wall=3.0))
    assert made.spent == 6.0
    assert made.prices.expected(trial()) == 4.0


def test_a_failure_costs_as_much_as_a_typical_trial_if_there_is_no_rate() -> None:
    made = spend(budget(max_cost=100.0), 4.0, 6.0, 50.0, wall=1.0)
    made.spend(Failure("boom", 1e6), Usage(1e6))
    assert made.spent == 60.0 + 6.0


def test_ten_failures_use_up_a_limit_if_nothing_is_known_about_costs() -> None:
    made = budget(max_cost=100.0)
    for _ in range(10):
        assert made.spent < 100.0 * (1.0 - 1e-9)
        made.spend(Failure("boom", 0.001), Usage(0.001))
    assert made.spent == pytest.approx(100.0)


@pytest.mark.parametrize("result", [Lost("gone"), Stopped("enough")], ids=["lost", "stopped"])
def test_a_trial_that_was_cut_short_is_free_if_there_is_no_rate(result: Any) -> None:
    made = budget(max_cost=100.0)
    made.spend(result, Usage(5.0))
    made.spend(result, None)
    assert made.spent == 0.0


@pytest.mark.parametrize(("spent", "used_up"), [(4.0, False), (5.0, True), (6.0, True)])
def test_a_cost_limit_is_used_up_when_it_is_spent(spent: float, used_up: bool) -> None:
    assert spend(budget(max_cost=5.0), spent).is_used_up is used_up


@pytest.mark.parametrize(("now", "used_up"), [(4.0, False), (5.0, True), (6.0, True)])
def test_a_timeout_is_used_up_when_it_has_passed(now: float, used_up: bool) -> None:
    made = budget(timeout=5.0, now=now)
    assert made.is_used_up is used_up
    assert (made.overrun([]) is not None) is used_up


# ---- what is left for one more trial ----


@given(rate=rates, limit=st.floats(0.1, 1e3), spent=st.lists(st.floats(0.0, 1e3), max_size=4))
def test_one_trial_may_run_for_as_long_as_the_rest_of_the_cost_limit_pays_for(
    rate: float, limit: float, spent: list[float]
) -> None:
    made = budget(*timed([1.0] * 20, rate), max_cost=limit)
    for cost in spent:
        made.spend(Outcome(1.0, cost), Usage(cost / rate))
    assert made.seconds_for_one == pytest.approx(max(limit - sum(spent), 0.0) / rate, abs=1e-9)
    assert budget(max_cost=limit).seconds_for_one is None


def test_one_trial_may_run_until_the_nearer_limit_is_reached() -> None:
    known = timed([1.0] * 3, 2.0)
    assert budget(*known, timeout=9.0, now=4.0).seconds_for_one == 5.0
    assert budget(*known, timeout=9.0, max_cost=100.0, now=4.0).seconds_for_one == 5.0
    assert budget(*known, timeout=9.0, max_cost=6.0, now=4.0).seconds_for_one == 3.0


@given(
    known=st.lists(costs, max_size=5),
    spent=st.lists(costs, max_size=5),
    pending=st.lists(st.tuples(st.none() | costs, seconds), max_size=5),
    limit=costs,
    time=st.none() | seconds,
    now=seconds,
)
def test_what_is_affordable_is_never_negative_nor_more_than_what_is_left(
    known: list[float],
    spent: list[float],
    pending: list[tuple[float | None, float]],
    limit: float,
    time: float | None,
    now: float,
) -> None:
    timeout = None if time is None else now + time
    trials = [trial(c, 1.0) for c in known]
    made = spend(budget(*trials, max_cost=limit, timeout=timeout, now=now), *spent)
    runs = [running(expected, max(now - age, 0.0)) for expected, age in pending]
    left = made.affordable(runs)
    if left is not None:
        by_time = (made.seconds_left or 0.0) * (made.prices.rate or 0.0)
        assert 0.0 <= left <= max(limit - made.spent, 0.0) or left <= by_time
        more = made.affordable([*runs, running(1.0, now)])
        assert more is not None
        assert more <= left  # one more running trial never leaves more


def test_running_trials_are_set_aside_by_what_they_will_cost_or_have_cost_already() -> None:
    clock = Clock(0.0)
    prices = Prices(timed([10.0] * 3, 2.0))
    made = Budget(Limits(max_cost=100.0), prices, opened=0.0, now=clock)
    assert made.affordable([]) is None  # not near: 100 is more than four times 20
    spend(made, 40.0, wall=20.0)
    clock.now = 5.0
    assert made.affordable([running(15.0, began=0.0)]) == 45.0  # expected 15, used 10
    clock.now = 20.0
    assert made.affordable([running(15.0, began=0.0)]) == 20.0  # expected 15, used 40


def test_the_time_that_is_left_counts_in_the_unit_of_cost() -> None:
    known = timed([10.0] * 3, 2.0)
    assert budget(*known, timeout=60.0).affordable([]) is None
    assert budget(*known, timeout=60.0, now=30.0).affordable([]) == 60.0
    assert budget(trial(20.0), timeout=60.0, now=59.0).affordable([]) is None  # there is no rate


def test_the_nearer_of_two_limits_decides_what_is_affordable() -> None:
    known = timed([10.0] * 3, 2.0)
    assert budget(*known, timeout=60.0, max_cost=30.0, now=30.0).affordable([]) == 30.0
    assert budget(*known, timeout=60.0, max_cost=30.0, now=55.0).affordable([]) == 10.0


@given(known=st.lists(st.floats(0.01, 1e6), min_size=1), left=st.none() | costs)
def test_no_trial_can_fit_into_less_than_half_of_the_cheapest(
    known: list[float], left: float | None
) -> None:
    made = budget(*map(trial, known), max_cost=1.0)
    assert made.cannot_fit(left) is (left is not None and left < 0.5 * min(known))


def test_any_trial_may_fit_before_anything_is_known() -> None:
    assert not budget(max_cost=1.0).cannot_fit(0.0)


# ---- when running trials reach a limit ----


@given(
    walls=st.lists(seconds, min_size=3, max_size=5),
    rate=rates,
    limit=st.floats(1e-3, 1e6),
    began=st.lists(st.floats(0.0, 1e3), min_size=1, max_size=8),
    after=st.floats(0.0, 1e3),
)
def test_a_cost_limit_is_reached_when_the_running_trials_have_used_it_up(
    walls: list[float], rate: float, limit: float, began: list[float], after: float
) -> None:
    clock = Clock(1e3 + after)
    made = Budget(Limits(max_cost=limit), Prices(timed(walls, rate)), opened=0.0, now=clock)
    runs = [running(None, b, i) for i, b in enumerate(began)]

    def used() -> float:
        return sum(made.prices.rate * (clock.now - b) for b in began)  # type: ignore[operator]

    if made.overrun(runs) is None:
        wait = made.next_deadline(runs)
        assert wait is not None
        before, clock.now = clock.now, clock.now + wait
        assert clock.now > before  # waiting so long moves the clock
        assert used() == pytest.approx(limit)
        soon = made.next_deadline(runs)
        assert made.overrun(runs) is not None or soon == pytest.approx(0.0, abs=1e-6 * wait)
    else:
        assert used() >= limit * (1.0 - 1e-6)
        assert made.next_deadline(runs) == 0.05  # look again soon: trials are being stopped


@pytest.mark.parametrize(
    "made",
    [
        budget(*timed([1.0] * 3, 1.0), n_trials=9, now=5.0),
        budget(trial(1.0), max_cost=9.0, now=5.0),
        budget(max_cost=9.0, now=5.0),
    ],
    ids=["no limit", "no rate", "nothing known"],
)
def test_there_is_no_deadline_for_cost_without_a_limit_and_a_rate(made: Budget) -> None:
    assert made.next_deadline([running(None, 0.0)]) is None
    assert made.overrun([running(None, 0.0)]) is None


def test_there_is_no_deadline_for_cost_if_nothing_runs() -> None:
    assert budget(*timed([1.0] * 3, 1.0), max_cost=9.0, now=5.0).next_deadline([]) is None


# ---- trainings ----


@given(st.lists(st.tuples(seconds, st.integers(1, 10)), min_size=3), rates)
def test_what_was_spent_counts_every_training(
    trainings: list[tuple[float, int]], rate: float
) -> None:
    made = budget(max_cost=1e12)
    for wall, n in trainings:
        made.spend(Outcome(1.0, wall * rate, trainings=n), Usage(wall * n))
    spent = math.fsum(wall * rate * n for wall, n in trainings)
    assert made.spent == pytest.approx(spent)
    assert made.prices.rate == pytest.approx(rate)
    most = max(n for _, n in trainings)
    assert made.prices.expected(trial(expected=2.0)) == 2.0 * most


def test_peak_memory_has_no_rate() -> None:
    made = budget(timeout=10.0)
    for _ in range(5):
        made.spend(Outcome(1.0, 2e9), Usage(1.0, clock="memory"))
    assert made.prices.rate is None
    assert made.affordable([]) is None


@given(st.lists(costs, min_size=1), st.lists(seconds, min_size=3))
def test_prices_are_quantiles_in_whatever_order_they_were_learned(
    known: list[float], walls: list[float]
) -> None:
    assert Prices(map(trial, known)).typical == pytest.approx(float(np.median(known)))
    low, middle, high = np.quantile([1.0 / wall for wall in walls], (0.1, 0.5, 0.9))
    rate = Prices(trial(cost=1.0, wall=wall) for wall in walls).rate
    if abs(high / low - 2.0) > 1e-9:
        assert rate == (pytest.approx(middle) if high < 2.0 * low else None)
