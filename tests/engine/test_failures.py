"""What becomes of trials that fail, are lost or are stopped, and of those that a search leaves."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import tradewind as tw
from tests.engine.loops import Watched, good, kinds, loop, raising
from tests.studies import ScriptedWorkers, create, drive, states
from tradewind.engine.contention import MAX_LOSSES
from tradewind.engine.failures import Policy
from tradewind.engine.limits import Limits
from tradewind.engine.loop import Loop
from tradewind.errors import TrialFailed, WorkerError
from tradewind.interrupts import Terminated
from tradewind.log.events import Requeued
from tradewind.log.memory import MemoryLog
from tradewind.runners.runner import Done, Failure, Lost, Result, Stopped
from tradewind.runners.simulated import SimulatedRunner
from tradewind.types import Outcome, State, Trial, Usage

# ---- failures ----


def test_results_that_arrive_with_one_that_raises_are_recorded() -> None:
    interrupt = KeyboardInterrupt()
    session = drive()
    workers = ScriptedWorkers(3, lambda t: raising(interrupt) if t.number == 2 else good(t))
    watched = Watched()
    with pytest.raises(KeyboardInterrupt) as raised:
        Loop(session, workers, Limits(n_trials=9), Policy(), lambda: False, watched).run()
    assert raised.value is interrupt
    ended = [State.FINISHED, State.FINISHED, State.FAILED]
    assert [t.state for t in session.trials()] == [*ended, State.WAITING]
    assert len(watched.trials) == 3
    assert workers.closed == 1


def test_results_are_recorded_before_a_callback_may_raise() -> None:
    def on_done(trial: Trial) -> None:
        raise RuntimeError("callback")

    session, workers = drive(), ScriptedWorkers(3, good)
    with pytest.raises(RuntimeError, match="callback"):
        loop(session, workers, n_trials=9, on_done=on_done)
    assert [t.state for t in session.trials()] == [State.FINISHED] * 3 + [State.WAITING]
    assert workers.closed == 1
    assert not session.held


def test_trials_that_still_run_when_a_callback_raises_are_abandoned() -> None:
    study = create()

    def callback(study: tw.Study, trial: Trial) -> None:
        raise RuntimeError("callback")

    runner = SimulatedRunner(3, duration=lambda t: 1.0 + t.number)
    with pytest.raises(RuntimeError, match="callback"):
        study.optimize(lambda t: 1.0, n_trials=9, runner=runner, callbacks=[callback])
    assert states(study) == ["finished", "abandoned", "abandoned", "waiting"]
    assert study.trials[1].error == "the search ended while it ran"
    assert study.ask().number == 3


def test_a_search_goes_on_only_after_exceptions_that_it_catches() -> None:
    session = drive()
    workers = ScriptedWorkers(1, lambda t: raising(ValueError("boom")))
    with pytest.raises(ValueError, match="boom"):
        loop(session, workers, n_trials=3, policy=Policy(catch=(KeyError,)))
    assert len(session.trials()) == 1
    loop(session, workers, n_trials=3)
    assert len(session.trials()) == 4


ELSEWHERE = Failure(
    'Traceback (most recent call last):\n  File "train.py", line 1, in objective\nOwn: boom\n',
    kinds=("train.Own", "builtins.KeyError", "builtins.Exception", "builtins.BaseException"),
)


class Own(KeyError):
    """An exception that workers know under the same name."""


Own.__module__ = "train"


@pytest.mark.parametrize("catch", [(Own,), (KeyError,), (Exception,)])
def test_an_exception_of_another_process_is_caught_by_the_name_of_its_class(catch: Any) -> None:
    session = drive()
    loop(session, ScriptedWorkers(1, lambda t: ELSEWHERE), n_trials=3, policy=Policy(catch=catch))
    assert len(session.trials()) == 3


@pytest.mark.parametrize("policy", [Policy(catch=(ValueError,)), Policy(on_error="raise")])
def test_an_exception_of_another_process_is_raised_as_its_text(policy: Policy) -> None:
    session = drive()
    with pytest.raises(TrialFailed) as caught:
        loop(session, ScriptedWorkers(1, lambda t: ELSEWHERE), n_trials=3, policy=policy)
    assert str(caught.value) == f"Own: boom\n\n{ELSEWHERE.error}"
    assert [trial.state for trial in session.trials()] == [State.FAILED]


@pytest.mark.parametrize(
    "result",
    [
        Outcome(0.5, 1.0, attributes={"log": "x" * 32_000}),
        Outcome(0.5, 1.0, attributes={"model": object()}),
        Outcome("0.5", 1.0),  # type: ignore[arg-type]
        Failure(None),  # type: ignore[arg-type]
        Stopped(None),  # type: ignore[arg-type]
        None,
        0.5,
    ],
)
def test_a_result_that_no_log_can_hold_fails_its_trial_with_a_reason(
    result: Any, tmp_path: Path
) -> None:
    study = tw.create_study({"x": (0.0, 1.0)}, seed=0, storage=tmp_path / "runs.db")
    workers = ScriptedWorkers(2, lambda t: result if t.number == 1 else good(t))
    loop(study._session, workers, n_trials=4)
    kept = tw.load_study(tmp_path / "runs.db")
    assert states(kept) == ["finished", "failed", "finished", "finished"]
    assert (kept.trials[1].error or "").startswith("its result cannot be recorded: ")


def test_a_failure_without_an_exception_never_ends_the_loop() -> None:
    session = drive()
    workers = ScriptedWorkers(1, lambda t: Failure("returned NaN"))
    loop(session, workers, n_trials=3, policy=Policy(catch=()))
    assert len(session.trials()) == 3


@pytest.mark.parametrize(("on_error", "penalized"), [("penalize", 3), ("ignore", 0)])
def test_failures_are_penalized_or_ignored(on_error: Any, penalized: int) -> None:
    session = drive()
    workers = ScriptedWorkers(1, lambda t: Failure("boom"))
    loop(session, workers, n_trials=3, policy=Policy(on_error=on_error))
    assert [t.state for t in session.trials()] == [State.FAILED] * 3
    assert len(session.snapshot()[1].failed) == penalized


def test_the_configuration_of_an_ignored_failure_is_not_proposed_again() -> None:
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
    session = drive()
    workers = ScriptedWorkers(2, lambda t: failure if t.number == 1 else good(t))
    with pytest.raises(error):
        loop(session, workers, n_trials=9, policy=Policy(on_error="raise"))
    assert [t.state for t in session.trials()][:2] == [State.FINISHED, State.FAILED]
    assert session.trials()[1].error == failure.error


def failing_until(attempt: int, result: Result) -> Callable[[Trial], Result]:
    """Trial 0 gives `result` until it has been retried `attempt` times; all others are good."""
    return lambda t: result if t.number == 0 and t.retries < attempt else good(t)


@pytest.mark.parametrize("slots", [1, 3])
def test_a_trial_that_fails_is_run_again_and_counts_once(slots: int) -> None:
    session = drive()
    workers = ScriptedWorkers(slots, failing_until(2, raising(OSError("disk"))))
    loop(session, workers, n_trials=5, policy=Policy(max_retries=2))
    assert [t.state for t in session.trials()] == [State.FINISHED] * 5
    assert [t.retries for t in session.trials()] == [2, 0, 0, 0, 0]
    assert [t.number for t in workers.submitted].count(0) == 3
    assert [e.reason for e in kinds(session, Requeued) if e.number == 0] == ["OSError: disk"] * 2


def test_a_trial_that_keeps_failing_has_failed_in_the_end() -> None:
    session = drive()
    workers = ScriptedWorkers(1, failing_until(99, Failure("boom")))
    loop(session, workers, n_trials=3, policy=Policy(max_retries=2))
    first, *others = session.trials()
    assert (first.state, first.retries) == (State.FAILED, 2)
    assert all(t.finished for t in others)
    assert len(others) == 2


def test_a_trial_is_not_run_again_after_an_exception_that_is_not_caught() -> None:
    session = drive()
    workers = ScriptedWorkers(1, failing_until(1, raising(KeyError("x"))))
    with pytest.raises(KeyError):
        loop(session, workers, n_trials=3, policy=Policy(catch=(OSError,), max_retries=5))
    assert [t.state for t in session.trials()] == [State.FAILED]


def test_retries_come_before_a_failure_ends_the_search() -> None:
    session = drive()
    workers = ScriptedWorkers(1, failing_until(1, Failure("boom")))
    loop(session, workers, n_trials=3, policy=Policy(on_error="raise", max_retries=1))
    assert all(t.finished for t in session.trials())


def test_a_trial_that_runs_again_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    workers = ScriptedWorkers(1, failing_until(1, Lost("the machine went away")))
    loop(drive(), workers, n_trials=1)
    assert [r.message for r in caplog.records] == ["trial 0 runs again: the machine went away"]


@pytest.mark.parametrize("max_retries", [0, 5])
def test_a_lost_trial_runs_again_until_it_was_lost_too_often(max_retries: int) -> None:
    session = drive()
    workers = ScriptedWorkers(2, failing_until(99, Lost("gone")))
    watched = loop(session, workers, n_trials=4, policy=Policy(max_retries=max_retries))
    first, *others = session.trials()
    assert (first.state, first.losses) == (State.ABANDONED, MAX_LOSSES)
    assert first.error == "gone, 4 times"
    assert all(t.finished for t in others)
    assert sorted(t.number for t in watched.trials) == [0, 1, 2, 3]


def test_a_loss_does_not_use_up_a_retry() -> None:
    session = drive()

    def answer(trial: Trial) -> Result:
        return [Lost("gone"), Failure("boom"), Lost("gone"), good(trial)][trial.retries]

    loop(session, ScriptedWorkers(1, answer), n_trials=1, policy=Policy(max_retries=1))
    (trial,) = session.trials()
    assert (trial.state, trial.retries, trial.losses) == (State.FINISHED, 3, 2)


def test_a_stopped_trial_is_abandoned_with_what_it_cost() -> None:
    session = drive()
    for wall in (1.0, 3.0, 9.0):  # 2 for a second
        session.finish(session.ask().number, Outcome(1.0, cost=2.0 * wall), Usage(wall))

    @dataclass
    class Stopping(ScriptedWorkers):
        def wait(self, timeout: float | None = None) -> list[Done]:
            done, self.running = self.running, []
            return [Done(t, Stopped("no more time"), Usage(wall=5.0)) for t in done]

    loop(session, Stopping(1, good), n_trials=1, max_cost=1e9)
    trial = session.trials()[3]
    assert (trial.state, trial.cost) == (State.ABANDONED, 10.0)
    assert trial.error == "stopped: no more time"


def test_a_result_that_comes_too_late_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tradewind")
    log = MemoryLog()
    session, other = drive(log), drive(log)

    def answer(trial: Trial) -> Result:
        if trial.number == 0:
            other.finish(0, Outcome(0.25))
        return Outcome(0.75, 1.0)

    watched = loop(session, ScriptedWorkers(1, answer), n_trials=2)
    assert [t.value for t in session.trials()] == [0.25, 0.75]
    assert [t.number for t in watched.trials] == [1]
    assert "a result came too late" in caplog.text


# ---- preemption ----


def preempted(trial: Trial) -> Result:
    """The driver is told to end, and so is the worker of this trial."""
    os.kill(os.getpid(), signal.SIGTERM)
    return Failure("the worker process was killed by SIGTERM")


@pytest.mark.parametrize("slots", [1, 3])
def test_a_preempted_trial_goes_back_to_the_queue_without_using_up_a_retry(slots: int) -> None:
    """Batch systems take machines back by SIGTERM. That is not the fault of the trial."""
    session = drive()
    workers = ScriptedWorkers(slots, lambda t: preempted(t) if t.number == 0 else good(t))
    with pytest.raises(Terminated):
        loop(session, workers, n_trials=3)
    trial = session.trial(0)
    assert (trial.state, trial.retries, trial.losses) == (State.WAITING, 0, 0)
    (event,) = [e for e in kinds(session, Requeued) if e.number == 0]
    assert event == Requeued(0, "the driver was told to end", retry=False)
    assert session.held == {}


def test_a_trial_that_was_preempted_and_then_fails_is_run_again() -> None:
    session = drive()
    policy = Policy(max_retries=1)
    with pytest.raises(Terminated):
        loop(session, ScriptedWorkers(1, preempted), n_trials=1, policy=policy)
    workers = ScriptedWorkers(1, failing_until(1, raising(OSError("disk"))))
    loop(session, workers, n_trials=1, policy=policy)
    assert [t.number for t in workers.submitted] == [0, 0]
    (trial,) = session.trials()
    assert (trial.state, trial.retries) == (State.FINISHED, 1)


def test_a_trial_whose_cluster_was_lost_and_then_fails_is_run_again() -> None:
    @dataclass
    class Breaking(ScriptedWorkers):
        def wait(self, timeout: float | None = None) -> list[Done]:
            raise WorkerError("the cluster has gone")

    session = drive()
    policy = Policy(max_retries=1)
    with pytest.raises(WorkerError):
        loop(session, Breaking(1, good), n_trials=1, policy=policy)
    workers = ScriptedWorkers(1, failing_until(1, raising(OSError("disk"))))
    loop(session, workers, n_trials=1, policy=policy)
    assert [t.number for t in workers.submitted] == [0, 0]
    assert session.trial(0).finished


def test_a_trial_that_runs_while_its_driver_is_told_to_end_is_requeued_without_a_retry() -> None:
    @dataclass
    class Preempted(ScriptedWorkers):
        def wait(self, timeout: float | None = None) -> list[Done]:
            raise Terminated(143)

    session = drive()
    with pytest.raises(Terminated):
        loop(session, Preempted(2, good), n_trials=9)
    assert [(t.state, t.retries) for t in session.trials()] == [(State.WAITING, 0)] * 3


# ---- the price of failures ----


@pytest.mark.parametrize("limits", [{}, {"max_cost": 1e9}], ids=["no limit", "a limit"])
def test_a_failure_is_priced_by_all_finished_trials_of_the_study(limits: dict[str, float]) -> None:
    session = drive()
    for wall in (1.0, 3.0, 9.0):  # a second costs 2; another search ran these trials
        session.finish(session.ask().number, Outcome(1.0, cost=2.0 * wall), Usage(wall))
    workers = ScriptedWorkers(1, lambda t: Failure("boom", 5.0))
    loop(session, workers, n_trials=1, **limits)
    assert (session.trial(3).state, session.trial(3).cost) == (State.FAILED, 10.0)


# ---- workers that break ----


def test_losing_the_cluster_requeues_its_trials_without_using_up_a_retry() -> None:
    @dataclass
    class Breaking(ScriptedWorkers):
        def wait(self, timeout: float | None = None) -> list[Done]:
            raise WorkerError("the cluster has gone")

    session = drive()
    with pytest.raises(WorkerError, match="the cluster has gone"):
        loop(session, Breaking(2, good), n_trials=9)
    assert [(t.state, t.retries) for t in session.trials()] == [
        (State.WAITING, 0),
        (State.WAITING, 0),
        (State.WAITING, 0),
    ]
    loop(session, ScriptedWorkers(2, good), n_trials=3)
    assert [t.state for t in session.trials()] == [State.FINISHED] * 3


@pytest.mark.parametrize("error", [RuntimeError("no worker starts"), KeyboardInterrupt()])
def test_workers_that_break_leave_no_trial_running(error: BaseException) -> None:
    @dataclass
    class Breaking(ScriptedWorkers):
        def wait(self, timeout: float | None = None) -> list[Done]:
            raise error

    session, workers = drive(), Breaking(2, good)
    with pytest.raises(type(error)):
        loop(session, workers, n_trials=9)
    reason = "interrupted" if isinstance(error, KeyboardInterrupt) else "the search ended while"
    assert [(t.state, (t.error or reason)[: len(reason)]) for t in session.trials()] == [
        (State.ABANDONED, reason),
        (State.ABANDONED, reason),
        (State.WAITING, reason),
    ]
    assert workers.closed == 1
    loop(session, ScriptedWorkers(2, good), n_trials=3)
    assert sum(t.finished for t in session.trials()) == 3
