"""Which trials run, and when they should end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tradewind.study.running import expected_seconds, running_trials, worker_name
from tradewind.types import FinishedTrial, Origin, State, Trial, Usage


def finished(number: int, *, cost: float, wall: float, cost_name: str = "wall") -> Trial:
    trial = FinishedTrial(
        number, {}, State.FINISHED, Origin.MODEL, 0, value=0.5, cost=cost, cost_name=cost_name
    )
    return replace(trial, usage=Usage(wall), trainings=5)


def running(number: int, *, started: float | None = 100.0, driver: str = "host:12:abcd") -> Trial:
    state, origin = State.RUNNING, Origin.MODEL
    return Trial(number, {"x": number}, state, origin, 0, started=started, driver=driver)


def test_a_running_trial_ends_when_its_expected_seconds_have_passed() -> None:
    (found,) = running_trials([running(3), finished(0, cost=1.0, wall=5.0)], {3: 60.0})
    assert (found.trial, found.worker, found.started, found.expected_end) == (
        *(3, "host:12"),
        *(100.0, 160.0),
    )


def test_the_end_is_unknown_without_a_start_or_an_expectation() -> None:
    trials = [running(0, started=None), running(1), running(2)]
    found = running_trials(trials, {0: 60.0, 1: None, 2: float("inf")})
    assert [(t.trial, t.expected_end) for t in found] == [(1, None), (2, None), (0, None)]


def test_trials_are_listed_by_their_start() -> None:
    found = running_trials([running(0, started=9.0), running(1, started=5.0)], {})
    assert [t.trial for t in found] == [1, 0]


def test_a_predicted_cost_in_seconds_counts_with_all_folds_and_the_rest_of_the_trial() -> None:
    ended = [finished(n, cost=2.0, wall=12.0) for n in range(3)]  # five folds of 2 s, and 2 s more
    assert expected_seconds([running(3)], ended, {3: 10.0}) == {3: pytest.approx(60.0)}


@pytest.mark.parametrize("cost_name", ["memory", "money"])
def test_a_cost_that_is_no_time_says_nothing_about_the_duration(cost_name: str) -> None:
    ended = [finished(n, cost=7.0, wall=w, cost_name=cost_name) for n, w in enumerate((1, 3, 50))]
    assert expected_seconds([running(3)], ended, {3: 10.0}) == {3: 3.0}


def test_nothing_is_expected_before_a_trial_has_finished() -> None:
    assert expected_seconds([running(0)], [], {0: 10.0}) == {0: None}


def test_a_worker_is_named_by_its_host_and_process() -> None:
    assert [worker_name(running(0, driver=d)) for d in ("h:1:t", "h:1", "mine", "")] == [
        *("h:1", "h:1"),
        *("mine", ""),
    ]
