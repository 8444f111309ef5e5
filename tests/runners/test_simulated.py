"""The simulated runner: time is virtual, and what happens in it is what was scripted."""

from __future__ import annotations

import math
import signal
import threading
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runners.trials import NO_LIMITS, trial
from tradewind.runners.run import Run
from tradewind.runners.runner import Done, Failure, Lost, Stopped, TrialLimits
from tradewind.runners.simulated import SimulatedRunner, SimulatedWorkers
from tradewind.types import Outcome, Trial, Usage

WEEK = 7 * 24 * 3600.0


def costly(run: Run) -> dict[str, Any]:
    """Trial n takes n hours."""
    return {"value": float(run.number), "cost": 3600.0 * run.number}


def opened(
    n_workers: int = 1, objective: Any = costly, timeout: float | None = None, **options: Any
) -> SimulatedWorkers:
    return SimulatedRunner(n_workers, **options).open(objective, TrialLimits(timeout=timeout))


def numbers(done: list[Done]) -> list[int]:
    return [d.trial.number for d in done]


def test_results_come_in_the_order_of_virtual_time() -> None:
    workers = opened(3)
    for number in (3, 1, 2):
        workers.submit(trial(number))
    seen = [(numbers(workers.wait()), workers.now()) for _ in range(3)]
    assert seen == [([1], 3600.0), ([2], 7200.0), ([3], 10800.0)]
    assert workers.wait() == []


def test_results_of_the_same_moment_come_together_by_number() -> None:
    workers = opened(3, duration=lambda trial: 5.0)
    for number in (2, 0, 1):
        workers.submit(trial(number))
    assert numbers(workers.wait()) == [0, 1, 2]


def test_waiting_with_a_timeout_moves_the_clock_so_far_and_no_further() -> None:
    workers = opened()
    workers.submit(trial(1))
    assert workers.wait(600.0) == []
    assert workers.now() == 600.0
    assert numbers(workers.wait(3000.0)) == [1]
    assert workers.now() == 3600.0


def test_with_nothing_running_no_time_passes() -> None:
    workers = opened()
    assert workers.wait() == []
    assert workers.wait(10.0) == []
    assert workers.now() == 0.0


def test_a_trial_beyond_the_free_workers_waits_for_one() -> None:
    workers = opened(1)
    workers.submit(trial(2))
    workers.submit(trial(1))
    assert workers.free == 0
    assert (numbers(workers.wait()), workers.now()) == ([2], 7200.0)
    assert (numbers(workers.wait()), workers.now()) == ([1], 10800.0)
    assert workers.free == 1


def test_a_trial_takes_the_time_of_all_its_trainings() -> None:
    workers = opened(1, lambda run: {"folds": [1.0, 2.0, 3.0], "cost": 60.0})
    workers.submit(trial(0))
    (done,) = workers.wait()
    assert (workers.now(), done.result) == (180.0, Outcome(2.0, 60.0, (1.0, 2.0, 3.0), trainings=3))
    workers = opened(1, lambda run: {"folds": [1.0, 2.0, 3.0]}, duration=lambda trial: 180.0)
    workers.submit(trial(0))
    (done,) = workers.wait()
    assert (workers.now(), done.result.cost, done.usage.clock) == (180.0, 60.0, "wall")


def test_the_objective_is_called_when_its_trial_starts() -> None:
    called = []

    def objective(run: Run) -> dict[str, float]:
        called.append(run.number)
        return {"value": 1.0, "cost": 1.0}

    workers = opened(1, objective)
    workers.submit(trial(0))
    workers.submit(trial(1))
    assert called == [0]
    workers.wait()
    assert called == [0, 1]


def test_the_cost_is_the_reported_one_or_else_the_duration() -> None:
    workers = opened(2, lambda run: 1.0 if run.number else {"value": 1.0, "cost": 3.0})
    with pytest.raises(ValueError, match="give the runner a duration"):
        workers.submit(trial(1))
    workers = opened(
        2, lambda run: 1.0 if run.number else {"value": 1.0, "cost": 3.0}, duration=lambda t: WEEK
    )
    workers.submit(trial(0))
    workers.submit(trial(1))
    assert [d.result for d in workers.wait()] == [Outcome(1.0, 3.0), Outcome(1.0, WEEK)]


def test_usage_is_virtual_and_concurrency_is_a_mean_over_time() -> None:
    workers = opened(2)
    workers.submit(trial(1))  # alone for its first half
    workers.wait(1800.0)
    workers.submit(trial(2))  # shares its first quarter
    assert [d.usage for d in workers.wait()] == [Usage(3600.0, concurrency=1.5, clock="reported")]
    assert [d.usage for d in workers.wait()] == [Usage(7200.0, concurrency=1.25, clock="reported")]


def test_utilization_is_the_share_of_the_workers_time_in_trials() -> None:
    runner = SimulatedRunner(2)
    workers = runner.open(costly, NO_LIMITS)
    assert runner.workers is workers
    assert workers.utilization == 0.0
    workers.submit(trial(1))
    workers.wait()
    assert workers.utilization == 0.5
    workers.submit(trial(2))
    workers.submit(trial(2))
    workers.wait()
    assert workers.utilization == pytest.approx(5 / 6)


def test_an_objective_that_raises_has_failed_after_its_duration() -> None:
    def objective(run: Run) -> float:
        raise OSError("as scripted")

    for duration, seconds in ((None, 0.0), (lambda trial: 60.0, 60.0)):
        workers = opened(1, objective, duration=duration)
        workers.submit(trial(1))
        (done,) = workers.wait()
        assert workers.now() == seconds
        assert isinstance(done.result, Failure)
        assert isinstance(done.result.raised, OSError)
        assert done.result.seconds == seconds


@pytest.mark.parametrize(
    ("script", "ends", "result"),
    [
        (None, 7200.0, Outcome(2.0, 7200.0)),
        ("out of memory", 7200.0, Failure("out of memory", 7200.0)),
        (Failure("diverged", 5.0), 7200.0, Failure("diverged", 5.0)),
        (Lost("the node went away"), 7200.0, Lost("the node went away")),
        ((60.0, Lost("preempted")), 60.0, Lost("preempted")),
        ((60.0, "crashed"), 60.0, Failure("crashed", 60.0)),
        ((60.0, Stopped("by hand")), 60.0, Stopped("by hand")),
        ((1e9, "too late to happen"), 7200.0, Outcome(2.0, 7200.0)),
    ],
)
def test_a_scripted_failure_happens_at_its_moment(script: Any, ends: float, result: Any) -> None:
    workers = opened(failure=lambda trial: script)
    workers.submit(trial(2))
    (done,) = workers.wait()
    assert (workers.now(), done.result) == (ends, result)
    assert done.usage == Usage(ends, clock="reported" if isinstance(result, Outcome) else "wall")


def test_a_script_can_tell_a_trial_that_is_tried_again() -> None:
    workers = opened(failure=lambda trial: None if trial.retries else Lost("once"))
    results = []
    for retries in (0, 1):
        workers.submit(trial(1, retries=retries))
        results += [type(done.result) for done in workers.wait()]
    assert results == [Lost, Outcome]


def test_a_trial_that_takes_longer_than_the_limit_has_failed_then() -> None:
    workers = opened(timeout=600.0)
    workers.submit(trial(1))
    (done,) = workers.wait()
    assert workers.now() == 600.0
    assert isinstance(done.result, Failure)
    assert done.result.seconds == 600.0


def test_a_trial_that_is_not_done_within_its_time_is_stopped_then() -> None:
    workers = opened()
    workers.submit(trial(1), within=600.0)
    workers.submit(trial(2), within=300.0)  # never begins
    first, second = workers.wait(), workers.wait()
    assert (numbers(first), first[0].usage) == ([2], None)
    assert (numbers(second), workers.now()) == ([1], 600.0)
    assert {type(d.result) for d in first + second} == {Stopped}


def test_a_trial_that_ends_just_in_time_has_ended() -> None:
    workers = opened(timeout=3600.0)
    workers.submit(trial(1), within=3600.0)
    assert isinstance(workers.wait()[0].result, Outcome)


def test_stopped_trials_come_back_once_and_make_room() -> None:
    workers = opened(1)
    for number in (1, 2, 3):
        workers.submit(trial(number))
    workers.wait(60.0)
    workers.stop([1, 2, 9], "enough")
    done = workers.wait()
    assert [(d.trial.number, d.result) for d in done] == [
        (1, Stopped("enough")),
        (2, Stopped("enough")),
    ]
    assert [d.usage for d in done] == [Usage(60.0), None]
    assert (numbers(workers.wait()), workers.now()) == ([3], 60.0 + 3 * 3600.0)


def test_closing_forgets_everything() -> None:
    workers = opened(2)
    workers.submit(trial(1))
    workers.close()
    workers.close()
    assert workers.wait() == []
    assert workers.free == 2


@pytest.mark.parametrize("seconds", [-1.0, math.nan, math.inf])
def test_a_duration_is_a_finite_number_of_seconds(seconds: float) -> None:
    with pytest.raises(ValueError, match="a duration must be"):
        opened(duration=lambda trial: seconds).submit(trial(0))
    with pytest.raises(ValueError, match="the moment of a failure must be"):
        opened(failure=lambda trial: (seconds, "no")).submit(trial(0))


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="n_workers must be a whole number ≥ 1, but got 0"):
        SimulatedRunner(0)
    with pytest.raises(ValueError, match="cannot limit memory"):
        SimulatedRunner().open(costly, TrialLimits(memory=1))


jobs = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), max_size=12)  # gap, duration


@given(jobs=jobs, n_workers=st.integers(1, 4), timeout=st.none() | st.integers(0, 8))
def test_time_adds_up_and_every_trial_comes_back_once(
    jobs: list[tuple[int, int]], n_workers: int, timeout: int | None
) -> None:
    workers = opened(
        n_workers,
        timeout=timeout,
        duration=lambda trial: float(jobs[trial.number][1]),
        failure=lambda trial: (2.0, Lost("gone")) if trial.number % 3 == 2 else None,
    )
    done: list[Done] = []
    clock = [workers.now()]
    for number, (gap, _) in enumerate(jobs):
        done += workers.wait(float(gap))
        workers.submit(trial(number), within=20.0 if number % 4 == 3 else None)
        clock.append(workers.now())
    while more := workers.wait():
        done += more
        clock.append(workers.now())
    assert sorted(numbers(done)) == list(range(len(jobs)))
    assert clock == sorted(clock)
    walls = [d.usage.wall for d in done if d.usage]
    assert all(1.0 <= d.usage.concurrency <= n_workers for d in done if d.usage)
    assert workers.utilization * n_workers * workers.now() == pytest.approx(sum(walls))
    assert 0.0 <= workers.utilization <= 1.0 + 1e-12


@given(jobs=jobs, n_workers=st.integers(1, 4))
def test_a_list_of_trials_takes_as_long_as_the_greedy_schedule(
    jobs: list[tuple[int, int]], n_workers: int
) -> None:
    def duration(trial: Trial) -> float:
        return float(jobs[trial.number][1])

    workers = opened(n_workers, duration=duration)
    for number in range(len(jobs)):
        workers.submit(trial(number))
    while workers.wait():
        pass
    ends = [0.0] * n_workers
    for _, seconds in jobs:
        ends[ends.index(min(ends))] += seconds
    assert workers.now() == max(ends)


@pytest.mark.skipif(not hasattr(signal, "SIGURG"), reason="needs POSIX signals")
def test_another_thread_can_interrupt_an_objective_which_then_takes_no_time() -> None:
    begun, submitted = threading.Event(), threading.Event()

    def objective(run: Run) -> dict[str, float]:
        if run.number == 1:
            begun.set()
            time.sleep(60)
        return {"value": 1.0, "cost": 5.0}

    def interrupt() -> None:
        begun.wait(60)
        while not submitted.wait(0.05):
            workers.interrupt([0, 1], "as scripted")

    workers = opened(2, objective)
    thread = threading.Thread(target=interrupt)
    thread.start()
    for number in range(2):
        workers.submit(trial(number))
    submitted.set()
    thread.join()
    assert workers.wait() == [Done(trial(1), Stopped("as scripted"), Usage(0.0, concurrency=2.0))]
    assert workers.now() == 0.0
    assert numbers(workers.wait()) == [0]
    assert workers.now() == 5.0
    workers.interrupt([0, 1], "nothing runs any more")
