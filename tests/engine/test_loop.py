"""The loop: it keeps the workers busy, records everything, and knows what failures mean."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tradewind as tw
from tests.studies import (
    Clock,
    Opened,
    ScriptedWorkers,
    Unreachable,
    check_whole,
    create,
    drive,
    score,
    states,
    study_of,
)
from tradewind.engine.limits import Limits
from tradewind.engine.loop import Loop, Policy
from tradewind.engine.session import LOSSES, Driver
from tradewind.errors import FormatError, NoSuchStudy, StorageError, TrialFailed, WorkerError
from tradewind.goals import Goal
from tradewind.log.events import Abandoned, Event, Failed, Finished, Proposed, Requeued, Started
from tradewind.log.memory import MemoryLog
from tradewind.log.state import Record
from tradewind.optimizer.history import proposal_rng
from tradewind.runners.runner import Done, Failure, Lost, Result, Stopped
from tradewind.runners.simulated import SimulatedRunner
from tradewind.strategies import Bayes, Design
from tradewind.types import Origin, Outcome, Proposal, State, Trial, Usage


@dataclass
class Watched:
    """What somebody who looks on has seen."""

    on_done: Callable[[Trial], object] = lambda trial: None
    running: list[int] = field(default_factory=list)
    trials: list[Trial] = field(default_factory=list)

    def started(self, running: int) -> None:
        self.running.append(running)

    def done(self, trial: Trial, running: int) -> None:
        self.trials.append(trial)
        self.on_done(trial)


def loop(
    driver: Driver,
    workers: Any,
    *,
    stopped: Callable[[], bool] = lambda: False,
    on_done: Callable[[Trial], object] = lambda trial: None,
    policy: Policy | None = None,
    **limits: Any,
) -> Watched:
    watched = Watched(on_done)
    Loop(driver, workers, Limits(**limits), policy or Policy(), stopped, watched).run()
    return watched


def good(trial: Trial) -> Outcome:
    return Outcome(trial.params["x"], 1.0)  # type: ignore[arg-type]


def raising(error: BaseException) -> Failure:
    where = 'Traceback (most recent call last):\n  File "train.py", line 1, in objective'
    return Failure(f"{where}\n{type(error).__name__}: {error}", raised=error)


def kinds(driver: Driver, kind: type[Event]) -> list[Any]:
    return [e for e in driver.log.read(0) if isinstance(e, kind)]


class Pauses:
    """The pauses between attempts to reach a store, which take no time here."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.taken.append(seconds)

    def monotonic(self) -> float:
        return sum(self.taken)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Pauses:
    made = Pauses()
    monkeypatch.setattr("tradewind.engine.loop.time", made)
    return made


# ---- how many run ----


def test_as_many_trials_run_at_once_as_the_workers_have_room_for() -> None:
    workers = ScriptedWorkers(3, good)
    running = []

    def answer(trial: Trial) -> Result:
        running.append(sum(t.state is State.RUNNING for t in driver.trials()))
        return good(trial)

    workers.answer, driver = answer, drive()
    loop(driver, workers, n_trials=7)
    assert running == [3, 3, 3, 3, 3, 3, 1]


def test_the_loop_ends_after_its_number_of_trials_and_closes_the_workers() -> None:
    driver, workers = drive(), ScriptedWorkers(2, good)
    loop(driver, workers, n_trials=5)
    assert len(driver.trials()) == 5
    assert all(t.finished for t in driver.trials())
    assert workers.closed == 1


def test_every_trial_is_started_by_the_driver_under_a_lease() -> None:
    driver = drive()
    loop(driver, ScriptedWorkers(3, good), n_trials=7)
    started = kinds(driver, Started)
    assert sorted(e.number for e in started) == list(range(7))
    assert all(e.leased and e.driver == started[0].driver for e in started)


def test_who_looks_on_sees_how_many_run_and_every_trial_once() -> None:
    watched = loop(drive(), ScriptedWorkers(3, good), n_trials=5)
    assert watched.running == [1, 2, 3, 1, 2]
    assert [t.number for t in watched.trials] == [2, 1, 0, 4, 3]


def ahead(workers: Any, n: int = 8) -> list[int]:
    """How many trials wait for a worker, at each moment that one of them works."""
    waiting: list[int] = []

    def answer(trial: Trial) -> Result:
        waiting.append(sum(t.state is State.WAITING for t in driver.trials()))
        return good(trial)

    driver, workers.answer = drive(), answer
    loop(driver, workers, n_trials=n)
    assert [t.number for t in driver.trials()] == list(range(n))
    assert all(t.finished for t in driver.trials())
    return waiting


def test_with_several_workers_one_trial_is_proposed_ahead_but_none_too_many() -> None:
    # the last two of eight run when there is no other left to propose
    assert ahead(ScriptedWorkers(3, good)) == [1, 1, 1, 1, 1, 1, 0, 0]


def test_with_one_worker_nothing_is_proposed_ahead() -> None:
    assert set(ahead(ScriptedWorkers(1, good))) == {0}


def test_synchronous_workers_get_a_round_when_all_are_free_and_nothing_ahead() -> None:
    assert set(ahead(ScriptedWorkers(3, good, synchronous=True))) == {0}


def test_a_synchronous_round_waits_for_its_slowest_trial() -> None:
    study = create()
    runner = SimulatedRunner(3, duration=lambda t: 1.0 + t.number % 3, synchronous=True)
    study.optimize(lambda t: 1.0, n_trials=9, runner=runner)
    pending = [e.seen for e in study._driver.log.read(0) if isinstance(e, Proposed)]
    ends = [i for i, e in enumerate(study._driver.log.read(0)) if isinstance(e, Finished)]
    # no proposal between the first and the last end of a round
    for i in range(0, 9, 3):
        assert not any(ends[i] < seen < ends[i + 2] for seen in pending)
    assert runner.workers is not None
    assert runner.workers.now() == 9.0


def test_asynchronous_workers_do_not_wait_for_each_other() -> None:
    study = create()
    runner = SimulatedRunner(3, duration=lambda t: 1.0 + t.number % 3)
    study.optimize(lambda t: 1.0, n_trials=30, runner=runner)
    assert runner.workers is not None
    assert runner.workers.utilization > 0.9


def test_a_trial_that_was_proposed_ahead_and_taken_by_another_is_replaced() -> None:
    log = MemoryLog()
    driver, other = drive(log), drive(log)

    def steal(trial: Trial) -> Result:
        waiting = [t.number for t in other.trials() if t.state is State.WAITING]
        if waiting and trial.number == 0:
            other.requeue(waiting[0], "mine now", retry=False)
            assert other.ask().number == waiting[0]
        return good(trial)

    loop(driver, ScriptedWorkers(2, steal), n_trials=6)
    trials = driver.trials()
    assert [t.state for t in trials].count(State.RUNNING) == 1  # the other's
    assert sum(t.finished for t in trials) == 6
    assert not driver.working


@pytest.mark.parametrize("goal", [tw.Quality(), tw.Tradeoff(alpha=0.3)], ids=repr)
def test_every_proposal_of_a_parallel_run_follows_from_the_log_it_saw(goal: Goal) -> None:
    log, strategy = MemoryLog(), Bayes(design=Design(4))
    driver = drive(log, goal=goal, strategy=strategy, seed=5)
    loop(driver, ScriptedWorkers(3, good), n_trials=12)
    events = log.read(0)
    proposals = [e for e in events if isinstance(e, Proposed)]
    assert {p.origin for p in proposals} == {Origin.DESIGN, Origin.MODEL}
    for event in proposals:
        record = Record(driver.space, seed=5, maximize=True)
        record.apply(events[: event.seen])
        again = strategy.propose(
            driver.space, goal, record.history(event.number), rng=proposal_rng(5, event.number)
        )
        assert again == Proposal(event.params, event.origin, event.handover, event.expected_cost)


# ---- when it ends ----


def test_no_trial_starts_once_the_cost_is_spent() -> None:
    driver = drive()
    loop(driver, ScriptedWorkers(1, lambda t: Outcome(1.0, 2.5)), max_cost=5.0)
    assert len(driver.trials()) == 2


def test_trials_that_fail_at_no_known_cost_use_up_a_limit_all_the_same() -> None:
    driver = drive()
    loop(driver, ScriptedWorkers(1, lambda t: Failure("boom", 2.0)), max_cost=5.0)
    assert [t.state for t in driver.trials()] == [State.FAILED] * 10
    assert {t.cost for t in driver.trials()} == {None}  # seconds are no cost


def test_failed_trials_cost_what_others_do_where_nobody_knows_better() -> None:
    driver = drive()
    answer = lambda t: Outcome(1.0, 2.0) if t.number == 0 else Failure("boom", 1e9)  # noqa: E731
    loop(driver, ScriptedWorkers(1, answer), max_cost=6.0)
    assert len(driver.trials()) == 3


def test_the_first_limit_that_is_reached_counts() -> None:
    driver = drive()
    loop(driver, ScriptedWorkers(1, lambda t: Outcome(1.0, 2.0)), max_cost=50.0, n_trials=2)
    assert len(driver.trials()) == 2


def test_a_stopped_loop_waits_for_what_is_running_and_gives_back_what_is_not() -> None:
    driver, stop = drive(), []
    loop(
        driver,
        ScriptedWorkers(3, good),
        n_trials=50,
        stopped=lambda: bool(stop),
        on_done=stop.append,
    )
    assert [t.state for t in driver.trials()] == [State.FINISHED] * 3 + [State.WAITING]
    assert [(e.number, e.retry) for e in kinds(driver, Requeued)] == [(3, False)]
    assert driver.ask().number == 3


# ---- failures ----


def test_trials_that_end_with_one_that_raises_are_recorded_all_the_same() -> None:
    interrupt = KeyboardInterrupt()
    driver = drive()
    workers = ScriptedWorkers(3, lambda t: raising(interrupt) if t.number == 2 else good(t))
    watched = Watched()
    with pytest.raises(KeyboardInterrupt) as raised:
        Loop(driver, workers, Limits(n_trials=9), Policy(), lambda: False, watched).run()
    assert raised.value is interrupt
    ended = [State.FINISHED, State.FINISHED, State.FAILED]
    assert [t.state for t in driver.trials()] == [*ended, State.WAITING]
    assert len(watched.trials) == 3
    assert workers.closed == 1


def test_trials_that_end_with_one_whose_callback_raises_are_recorded_all_the_same() -> None:
    def on_done(trial: Trial) -> None:
        raise RuntimeError("callback")

    driver, workers = drive(), ScriptedWorkers(3, good)
    with pytest.raises(RuntimeError, match="callback"):
        loop(driver, workers, n_trials=9, on_done=on_done)
    assert [t.state for t in driver.trials()] == [State.FINISHED] * 3 + [State.WAITING]
    assert workers.closed == 1
    assert not driver.working


def test_what_still_runs_when_a_callback_raises_is_abandoned() -> None:
    study = create()

    def callback(study: tw.Study, trial: Trial) -> None:
        raise RuntimeError("callback")

    runner = SimulatedRunner(3, duration=lambda t: 1.0 + t.number)
    with pytest.raises(RuntimeError, match="callback"):
        study.optimize(lambda t: 1.0, n_trials=9, runner=runner, callbacks=[callback])
    assert states(study) == ["finished", "abandoned", "abandoned", "waiting"]
    assert study.trials[1].error == "the search ended while it ran"
    assert study.ask().number == 3


def test_only_what_is_caught_goes_on() -> None:
    driver = drive()
    workers = ScriptedWorkers(1, lambda t: raising(ValueError("boom")))
    with pytest.raises(ValueError, match="boom"):
        loop(driver, workers, n_trials=3, policy=Policy(catch=(KeyError,)))
    assert len(driver.trials()) == 1
    loop(driver, workers, n_trials=3)
    assert len(driver.trials()) == 4


def test_a_failure_without_an_exception_never_ends_the_loop() -> None:
    driver = drive()
    workers = ScriptedWorkers(1, lambda t: Failure("returned NaN"))
    loop(driver, workers, n_trials=3, policy=Policy(catch=()))
    assert len(driver.trials()) == 3


@pytest.mark.parametrize(("on_error", "believed"), [("penalize", 3), ("ignore", 0)])
def test_failures_are_believed_or_ignored(on_error: Any, believed: int) -> None:
    driver = drive()
    workers = ScriptedWorkers(1, lambda t: Failure("boom"))
    loop(driver, workers, n_trials=3, policy=Policy(on_error=on_error))
    assert [t.state for t in driver.trials()] == [State.FAILED] * 3
    assert len(driver.state()[1].failed) == believed


def test_a_failure_that_is_ignored_is_not_tried_again_at_once() -> None:
    study = tw.create_study({"k": tw.Int(1, 9)}, seed=0)

    def objective(trial: Any) -> float:
        if trial.params["k"] > 6:
            raise ValueError
        return float(trial.params["k"])

    study.optimize(objective, n_trials=9, on_error="ignore")
    assert sorted(t.params["k"] for t in study.trials) == list(range(1, 10))


@pytest.mark.parametrize(
    ("failure", "error"),
    [(raising(ValueError("boom")), ValueError), (Failure("returned NaN"), TrialFailed)],
    ids=["raised", "returned"],
)
def test_a_failure_may_end_the_search_and_is_recorded_first(
    failure: Failure, error: type[Exception]
) -> None:
    driver = drive()
    workers = ScriptedWorkers(2, lambda t: failure if t.number == 1 else good(t))
    with pytest.raises(error):
        loop(driver, workers, n_trials=9, policy=Policy(on_error="raise"))
    assert [t.state for t in driver.trials()][:2] == [State.FINISHED, State.FAILED]
    assert driver.trials()[1].error == failure.error


def failing_until(attempt: int, result: Result) -> Callable[[Trial], Result]:
    """Trial 0 comes to `result` until it is tried for the so-manieth time."""
    return lambda t: result if t.number == 0 and t.retries < attempt else good(t)


@pytest.mark.parametrize("slots", [1, 3])
def test_a_trial_that_fails_is_tried_again_and_counts_once(slots: int) -> None:
    driver = drive()
    workers = ScriptedWorkers(slots, failing_until(2, raising(OSError("disk"))))
    loop(driver, workers, n_trials=5, policy=Policy(max_retries=2))
    assert [t.state for t in driver.trials()] == [State.FINISHED] * 5
    assert [t.retries for t in driver.trials()] == [2, 0, 0, 0, 0]
    assert [t.number for t in workers.submitted].count(0) == 3
    assert [e.reason for e in kinds(driver, Requeued) if e.number == 0] == ["OSError: disk"] * 2


def test_a_trial_that_keeps_failing_has_failed_in_the_end() -> None:
    driver = drive()
    workers = ScriptedWorkers(1, failing_until(99, Failure("boom")))
    loop(driver, workers, n_trials=3, policy=Policy(max_retries=2))
    first, *others = driver.trials()
    assert (first.state, first.retries) == (State.FAILED, 2)
    assert all(t.finished for t in others)
    assert len(others) == 2


def test_what_is_not_caught_is_not_tried_again() -> None:
    driver = drive()
    workers = ScriptedWorkers(1, failing_until(1, raising(KeyError("x"))))
    with pytest.raises(KeyError):
        loop(driver, workers, n_trials=3, policy=Policy(catch=(OSError,), max_retries=5))
    assert [t.state for t in driver.trials()] == [State.FAILED]


def test_retries_come_before_a_failure_ends_the_search() -> None:
    driver = drive()
    workers = ScriptedWorkers(1, failing_until(1, Failure("boom")))
    loop(driver, workers, n_trials=3, policy=Policy(on_error="raise", max_retries=1))
    assert all(t.finished for t in driver.trials())


def test_a_trial_that_runs_again_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    workers = ScriptedWorkers(1, failing_until(1, Lost("the machine went away")))
    loop(drive(), workers, n_trials=1)
    assert [r.message for r in caplog.records] == ["trial 0 runs again: the machine went away"]


@pytest.mark.parametrize("max_retries", [0, 5])
def test_a_lost_trial_runs_again_and_is_given_up_after_so_many_losses(max_retries: int) -> None:
    driver = drive()
    workers = ScriptedWorkers(2, failing_until(99, Lost("gone")))
    watched = loop(driver, workers, n_trials=4, policy=Policy(max_retries=max_retries))
    first, *others = driver.trials()
    assert (first.state, first.losses) == (State.ABANDONED, LOSSES)
    assert first.error == "gone, 4 times"
    assert all(t.finished for t in others)
    assert sorted(t.number for t in watched.trials) == [0, 1, 2, 3]


def test_a_loss_is_no_failed_attempt() -> None:
    driver = drive()

    def answer(trial: Trial) -> Result:
        return [Lost("gone"), Failure("boom"), Lost("gone"), good(trial)][trial.retries]

    loop(driver, ScriptedWorkers(1, answer), n_trials=1, policy=Policy(max_retries=1))
    (trial,) = driver.trials()
    assert (trial.state, trial.retries, trial.losses) == (State.FINISHED, 3, 2)


def test_a_stopped_trial_is_abandoned_with_what_it_cost() -> None:
    driver = drive()
    for wall in (1.0, 3.0, 9.0):  # 2 for a second
        driver.finish(driver.ask().number, Outcome(1.0, cost=2.0 * wall), Usage(wall))

    @dataclass
    class Stopping(ScriptedWorkers):
        def wait(self, timeout: float | None = None) -> list[Done]:
            done, self.running = self.running, []
            return [Done(t, Stopped("no more time"), Usage(wall=5.0)) for t in done]

    loop(driver, Stopping(1, good), n_trials=1, max_cost=1e9)
    trial = driver.trials()[3]
    assert (trial.state, trial.cost) == (State.ABANDONED, 10.0)
    assert trial.error == "stopped: no more time"


def test_a_result_that_comes_too_late_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tradewind")
    log = MemoryLog()
    driver, other = drive(log), drive(log)

    def answer(trial: Trial) -> Result:
        if trial.number == 0:
            other.finish(0, Outcome(0.25))
        return Outcome(0.75, 1.0)

    watched = loop(driver, ScriptedWorkers(1, answer), n_trials=2)
    assert [t.value for t in driver.trials()] == [0.25, 0.75]
    assert [t.number for t in watched.trials] == [1]
    assert "a result came too late" in caplog.text


# ---- a store that cannot be reached ----


class Weather:
    """A driver of a log that cannot be reached now and then, and workers whose trial 1 fails once.

    A trial takes longer than a lease, so that whatever nobody works on is taken up again."""

    def __init__(self, slots: int, **faults: Any) -> None:
        self.clock = Clock()
        self.log = Unreachable(MemoryLog(clock=self.clock))
        self.driver = drive(self.log)
        self.log.asked = 0
        for name, value in faults.items():
            setattr(self.log, name, value)
        self.workers = ScriptedWorkers(slots, self.answer)
        self.given: set[int] = set()  # trials that gave an outcome

    def answer(self, trial: Trial) -> Result:
        self.clock.now += 100.0
        if trial.number == 1 and not trial.retries:
            return Failure("boom")
        self.given.add(trial.number)
        return good(trial)

    def run(self, n_trials: int = 6, **options: Any) -> Watched:
        policy = Policy(max_retries=1)
        return loop(self.driver, self.workers, n_trials=n_trials, policy=policy, **options)


@pytest.fixture(
    scope="module",
    params=[(1, 1, False), (1, 3, True), (3, 3, False), (3, 1, True)],
    ids=["refused", "unanswered", "refused, 3 workers", "unanswered, 3 workers"],
)
def storms(request: pytest.FixtureRequest) -> list[tuple[Weather, Watched]]:
    """Searches in which the store goes away so many times, at every place where it can."""
    slots, times, late = request.param
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tradewind.engine.loop.time", Pauses())
        calm = Weather(slots)
        calm.run()
        stormy = [Weather(slots, after=i, times=times, late=late) for i in range(calm.log.asked)]
        return [(weather, weather.run()) for weather in stormy]


def test_no_result_is_lost_to_a_store_that_comes_back(
    storms: list[tuple[Weather, Watched]],
) -> None:
    for weather, _ in storms:
        finished = {t.number for t in weather.driver.trials() if t.finished}
        assert finished == weather.given
        assert len(finished) == 6
        assert not weather.driver.working


def test_who_looks_on_hears_of_every_trial_once_though_the_store_went_away(
    storms: list[tuple[Weather, Watched]],
) -> None:
    for weather, watched in storms:
        assert sorted(t.number for t in watched.trials) == sorted(weather.given)


def test_a_retry_counts_once_though_the_store_went_away(
    storms: list[tuple[Weather, Watched]],
) -> None:
    for weather, _ in storms:
        assert [e.reason for e in kinds(weather.driver, Requeued)].count("boom") <= 1


def test_what_was_begun_when_the_store_went_away_is_taken_up_in_time(
    storms: list[tuple[Weather, Watched]],
) -> None:
    for weather, _ in copy.deepcopy(storms[::3]):
        weather.clock.now += 1000.0
        weather.run(n_trials=3)
        trials = weather.driver.trials()
        assert [t.number for t in trials] == list(range(9))
        assert all(t.finished for t in trials)


def test_what_a_driver_could_not_say_about_a_trial_is_taken_up_when_its_lease_is_over(
    pauses: Pauses,
) -> None:
    clock = Clock()
    log = Unreachable(MemoryLog(clock=clock))
    driver = drive(log)

    def answer(trial: Trial) -> Result:
        log.times = 10**6
        return good(trial)

    with pytest.raises(StorageError, match=r"trial 0 gave Outcome\(.*"):
        loop(driver, ScriptedWorkers(1, answer), n_trials=5)
    log.times = 0
    assert [t.state for t in driver.trials()] == [State.RUNNING]
    clock.now += 61.0
    loop(driver, ScriptedWorkers(1, good), n_trials=2)
    assert [(t.state, t.retries) for t in driver.trials()] == [
        (State.FINISHED, 1),
        (State.FINISHED, 0),
    ]


def test_a_study_that_was_deleted_is_not_waited_for(pauses: Pauses) -> None:
    log = MemoryLog()
    driver = drive(log)

    def answer(trial: Trial) -> Result:
        log.delete("study")
        return good(trial)

    workers = ScriptedWorkers(1, answer)
    with pytest.raises(StorageError) as raised:
        loop(driver, workers, n_trials=3)
    assert isinstance(raised.value.__cause__, NoSuchStudy)
    assert pauses.taken == []
    assert workers.closed == 1


def test_a_store_that_stays_away_is_waited_for_half_a_minute(pauses: Pauses) -> None:
    weather = Weather(2, times=10**6)
    with pytest.raises(StorageError, match="the network is down"):
        weather.run()
    assert 15.0 < sum(pauses.taken) <= 30.0
    assert pauses.taken == sorted(pauses.taken)
    assert weather.workers.closed == 1


def test_a_store_that_is_away_when_the_search_begins_is_waited_for(pauses: Pauses) -> None:
    weather = Weather(2, times=2)
    weather.run(timeout=1e9)
    assert len(weather.given) == 6


def test_the_workers_are_closed_when_nothing_could_be_read(pauses: Pauses) -> None:
    log = Unreachable(MemoryLog())
    drive(log)
    study, workers = study_of(log), ScriptedWorkers(2, good)
    log.times = 10**6
    with pytest.raises(StorageError):
        study.optimize(score, n_trials=3, max_cost=10.0, runner=Opened(workers))
    assert workers.closed >= 1


def test_all_results_that_could_not_be_recorded_are_shown(pauses: Pauses) -> None:
    log = Unreachable(MemoryLog())
    driver = drive(log)

    def answer(trial: Trial) -> Result:
        log.times = 10**6
        return good(trial)

    with pytest.raises(StorageError) as raised:
        loop(driver, ScriptedWorkers(3, answer), n_trials=5)
    for number in range(3):
        assert f"trial {number} gave Outcome(value=" in str(raised.value)


def test_what_ran_on_workers_that_broke_goes_back_to_the_queue() -> None:
    @dataclass
    class Breaking(ScriptedWorkers):
        def wait(self, timeout: float | None = None) -> list[Done]:
            raise WorkerError("the cluster has gone")

    driver = drive()
    with pytest.raises(WorkerError, match="the cluster has gone"):
        loop(driver, Breaking(2, good), n_trials=9)
    assert [(t.state, t.retries) for t in driver.trials()] == [
        (State.WAITING, 1),
        (State.WAITING, 1),
        (State.WAITING, 0),  # it had not begun
    ]
    loop(driver, ScriptedWorkers(2, good), n_trials=3)
    assert [t.state for t in driver.trials()] == [State.FINISHED] * 3


@pytest.mark.parametrize("error", [RuntimeError("no worker starts"), KeyboardInterrupt()])
def test_workers_that_break_leave_a_log_that_is_whole(error: BaseException) -> None:
    @dataclass
    class Breaking(ScriptedWorkers):
        def wait(self, timeout: float | None = None) -> list[Done]:
            raise error

    driver, workers = drive(), Breaking(2, good)
    with pytest.raises(type(error)):
        loop(driver, workers, n_trials=9)
    reason = "interrupted" if isinstance(error, KeyboardInterrupt) else "the search ended while"
    assert [(t.state, (t.error or reason)[: len(reason)]) for t in driver.trials()] == [
        (State.ABANDONED, reason),
        (State.ABANDONED, reason),
        (State.WAITING, reason),
    ]
    assert workers.closed == 1
    loop(driver, ScriptedWorkers(2, good), n_trials=3)
    assert sum(t.finished for t in driver.trials()) == 3


def test_a_damaged_log_is_not_read_again_and_again(pauses: Pauses) -> None:
    log = MemoryLog()
    driver = drive(log)
    log.append([Finished(7, Outcome(1.0))])
    with pytest.raises(FormatError):
        loop(driver, ScriptedWorkers(1, good), n_trials=1)
    assert pauses.taken == []


def test_all_that_happened_is_in_the_log_once() -> None:
    """Whatever becomes of trials, each ends once, and numbers have no gap."""
    driver = drive()
    script: dict[int, Result] = {
        1: Failure("boom", 1.0),
        3: Lost("gone"),
        4: Stopped("enough"),
        6: raising(ValueError("x")),
    }
    loop(driver, ScriptedWorkers(3, lambda t: script.get(t.number, good(t))), n_trials=9)
    ends = [e.number for kind in (Finished, Failed, Abandoned) for e in kinds(driver, kind)]
    assert sorted(ends) == list(range(9))


# ---- whatever happens ----


def random_mishap(seed: int) -> Callable[[Trial], Any]:
    def mishap(trial: Trial) -> Any:
        draw = np.random.default_rng([seed, trial.number, trial.retries]).random()
        if draw < 0.1:
            return "boom"
        if draw < 0.2:
            return 0.0, Failure("boom at once")
        if draw < 0.3:
            return 0.5, Lost("gone")
        return (0.2, Stopped("enough")) if draw < 0.35 else None

    return mishap


def random_seconds(seed: int) -> Callable[[Any], float]:
    return lambda t: float(np.random.default_rng([seed, t.number]).lognormal())


searches = st.fixed_dictionaries(
    {
        "n_trials": st.integers(0, 12),
        "on_error": st.sampled_from(["penalize", "ignore"]),
        "max_retries": st.integers(0, 2),
    },
    optional={"timeout": st.floats(0.1, 20.0), "max_cost": st.floats(0.1, 20.0)},
)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    n_workers=st.integers(1, 8),
    synchronous=st.booleans(),
    rounds=st.lists(searches, min_size=1, max_size=3),
    enqueued=st.integers(0, 2),
)
def test_whatever_befalls_trials_searches_end_and_leave_a_log_that_is_whole(
    seed: int, n_workers: int, synchronous: bool, rounds: list[Any], enqueued: int
) -> None:
    study, seconds = create(seed=seed), random_seconds(seed)
    for _ in range(enqueued):
        study.enqueue({})
    runner = SimulatedRunner(
        n_workers, duration=seconds, failure=random_mishap(seed), synchronous=synchronous
    )
    for options in rounds:
        before = sum(t.state is not State.WAITING for t in study.trials)
        study.optimize(
            lambda t: {"value": t.params["x"], "cost": seconds(t)}, runner=runner, **options
        )
        assert State.RUNNING not in {t.state for t in study.trials}
        assert not study._driver.working
        ended = sum(t.state is not State.WAITING for t in study.trials) - before
        declined = sum("it would cost" in (t.error or "") for t in study.trials)
        assert ended <= options["n_trials"] + declined
        assert runner.workers is not None
        assert runner.workers.now() <= options.get("timeout", float("inf"))
    check_whole(study._driver.log, [])
    assert tw.replay(study).identical
