"""The runner with a virtual clock: weeks of asynchronous tuning in seconds.

The objective is called when its trial starts. How long the trial then takes, and whether it fails,
is scripted. Only `wait` moves the clock, so what the driver does in between takes no time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from tradewind.checks import whole
from tradewind.interrupts import Interruptible, Stop, check
from tradewind.runners.clocks import TIMERS
from tradewind.runners.evaluate import evaluate
from tradewind.runners.run import Objective
from tradewind.runners.runner import (
    OUT_OF_TIME,
    TOO_LATE,
    Done,
    Failure,
    Lost,
    Result,
    Stopped,
    TrialLimits,
    overtime,
)
from tradewind.types import Outcome, Trial, Usage

Scripted: TypeAlias = str | Failure | Lost | Stopped
Duration: TypeAlias = Callable[[Trial], float]
Script: TypeAlias = Callable[[Trial], Scripted | tuple[float, Scripted] | None]


class SimulatedRunner:
    """`n_workers` workers on a clock that starts at 0 and jumps from event to event.

    `duration(trial)` returns the seconds that a trial takes. Without it, each training of a trial
    takes as many seconds as the objective reports as its cost, and a trial whose objective raises
    takes none. The cost of an outcome is the reported one, or else the duration of one training.

    `failure(trial)` returns None, or the result that replaces the outcome: a `Failure` or its text,
    `Lost` or `Stopped`. With a pair `(seconds, result)`, this happens after that many seconds if
    the trial is still running. `workers` are those of the last `open`.

    >>> runner = tw.runners.SimulatedRunner(4)  # a trial takes as many seconds as it costs
    >>> study.optimize(objective, n_trials=8, runner=runner)
    >>> runner.workers.now() > 0.0
    True
    """

    def __init__(
        self,
        n_workers: int = 1,
        *,
        duration: Duration | None = None,
        failure: Script | None = None,
        synchronous: bool = False,
    ) -> None:
        self.n_workers = whole("n_workers", n_workers, 1)
        self.duration, self.failure = duration, failure
        self.synchronous = synchronous
        self.workers: SimulatedWorkers | None = None

    def open(self, objective: Objective, limits: TrialLimits) -> SimulatedWorkers:
        if limits.memory is not None:
            raise ValueError(
                "a SimulatedRunner cannot limit memory: use failure=... to make trials fail instead"
            )
        self.workers = SimulatedWorkers(self, objective, limits.timeout)
        return self.workers


@dataclass(frozen=True)
class _Waiting:
    trial: Trial
    deadline: float


@dataclass(frozen=True)
class _Running:
    trial: Trial
    began: float
    ends: float
    result: Result
    usage: Usage
    busy: float  # the busy seconds of all workers when it began


class SimulatedWorkers:
    """Virtual workers. A trial that finds no free worker waits for one. Results come in the order
    of virtual time, and those of the same moment in the order of their numbers."""

    def __init__(self, runner: SimulatedRunner, objective: Objective, timeout: float | None):
        self._objective, self._timeout = objective, timeout
        self._duration, self._failure = runner.duration, runner.failure
        self.slots, self.synchronous = runner.n_workers, runner.synchronous
        self._clock = self._busy = 0.0
        self._waiting: list[_Waiting] = []
        self._running: list[_Running] = []
        self._done: list[Done] = []
        self._now: tuple[int, Interruptible[object]] | None = None  # what is being evaluated
        self._reason = ""  # why it is interrupted

    @property
    def free(self) -> int:
        return max(0, self.slots - len(self._running) - len(self._waiting))

    @property
    def utilization(self) -> float:
        """The share of the time so far that the workers were busy; 0 at the start."""
        return self._busy / (self.slots * self._clock) if self._clock else 0.0

    def submit(self, trial: Trial, *, within: float | None = None) -> None:
        deadline = math.inf if within is None else self._clock + within
        self._waiting.append(_Waiting(trial, deadline))
        self._start()

    def wait(self, timeout: float | None = None) -> list[Done]:
        until = math.inf if timeout is None else self._clock + timeout
        while not self._done:
            ends = [run.ends for run in self._running]
            upcoming = min([*ends, *(w.deadline for w in self._waiting)], default=math.inf)
            if upcoming > until or not ends:
                self._advance(until if ends else self._clock)
                return []
            self._advance(upcoming)
            self._finish_running([r for r in self._running if r.ends <= self._clock])
            self._start()
        done, self._done = self._done, []
        return sorted(done, key=lambda d: d.trial.number)

    def stop(self, numbers: Iterable[int], reason: str) -> None:
        wanted, result = set(numbers), Stopped(reason)
        self._finish_waiting([w for w in self._waiting if w.trial.number in wanted], result)
        self._finish_running([r for r in self._running if r.trial.number in wanted], result)
        self._start()

    def interrupt(self, numbers: Iterable[int], reason: str) -> None:
        evaluated = self._now  # read once: it may end meanwhile
        if evaluated is not None and evaluated[0] in numbers:
            self._reason = reason
            evaluated[1].stop()

    def now(self) -> float:
        return self._clock

    def close(self) -> None:
        self._waiting, self._running, self._done = [], [], []

    def _advance(self, to: float) -> None:
        self._busy += len(self._running) * (to - self._clock)
        self._clock = to

    def _finish_waiting(self, waiting: list[_Waiting], result: Stopped) -> None:
        self._waiting = [w for w in self._waiting if w not in waiting]
        self._done += [Done(w.trial, result) for w in waiting]

    def _finish_running(self, runs: list[_Running], result: Result | None = None) -> None:
        running = float(len(self._running))  # the concurrency of a trial that takes no time
        self._running = [r for r in self._running if r not in runs]
        for run in runs:
            wall = self._clock - run.began
            load = (self._busy - run.busy) / wall if wall else running
            final = result or run.result
            clock = run.usage.clock if isinstance(final, Outcome) else "wall"
            usage = Usage(wall, concurrency=load, clock=clock, data=run.usage.data)
            self._done.append(Done(run.trial, final, usage))

    def _start(self) -> None:
        late = [w for w in self._waiting if w.deadline <= self._clock]
        self._finish_waiting(late, TOO_LATE)
        while self._waiting and len(self._running) < self.slots:
            entry = self._waiting.pop(0)
            seconds, result, usage = self._simulate(entry.trial, entry.deadline - self._clock)
            ends = min(
                self._clock + seconds, entry.deadline
            )  # exactly the deadline, without rounding
            began, busy = self._clock, self._busy
            self._running.append(_Running(entry.trial, began, ends, result, usage, busy))

    def _simulate(self, trial: Trial, left: float) -> tuple[float, Result, Usage]:
        """After how many seconds the trial ends, its result (whatever ends it first), and what its
        evaluation took."""
        result: Result
        result, seconds, usage = self._call_objective(trial)
        if isinstance(result, Stopped):
            return seconds, result, usage
        failure = self._scripted_failure(trial, seconds)
        if failure is not None:
            seconds, result = failure
        if self._timeout is not None and seconds > self._timeout:
            result, seconds = Failure(overtime(self._timeout)), self._timeout
        if seconds > left:
            result, seconds = OUT_OF_TIME, left
        if isinstance(result, Outcome) and result.cost is None:
            result = replace(result, cost=seconds / result.trainings)
        if isinstance(result, Failure) and result.seconds is None:
            result = replace(result, seconds=seconds)
        return seconds, result, usage

    def _scripted_failure(self, trial: Trial, duration: float) -> tuple[float, Result] | None:
        """When the trial fails, and how; None if it ends before."""
        scripted = None if self._failure is None else self._failure(trial)
        if scripted is None:
            return None
        after, what = scripted if isinstance(scripted, tuple) else (duration, scripted)
        if _check_seconds("the moment of a failure", after) > duration:
            return None
        result = Failure(what) if isinstance(what, str) else what
        if not isinstance(result, (Failure, Lost, Stopped)):
            raise TypeError(
                "failure must return None, text, Failure, Lost or Stopped, or a pair of seconds "
                f"and one of these, but got {scripted!r}"
            )
        return after, result

    def _call_objective(self, trial: Trial) -> tuple[Outcome | Failure | Stopped, float, Usage]:
        """The objective's result, without the time that the call really took, the duration, and
        what the call took."""
        call = Interruptible(self._objective)
        self._now = trial.number, call
        result, usage = evaluate(call, trial)
        self._now = None
        if call.was_interrupted:
            check()
            if call.told is Stop:
                return Stopped(self._reason), 0.0, usage
        if isinstance(result, Failure):
            result = replace(result, seconds=None)
        elif usage.clock in TIMERS:
            result = replace(result, cost=None)
        if self._duration is not None:
            return result, _check_seconds("a duration", self._duration(trial)), usage
        if isinstance(result, Failure):
            return result, 0.0, usage
        if result.cost is None:
            raise ValueError(
                "a simulated trial needs a duration, but the objective reported no cost: "
                'return {"value": ..., "cost": ...}, or give the runner a duration'
            )
        return result, result.cost * result.trainings, usage


def _check_seconds(what: str, seconds: float) -> float:
    if not 0.0 <= seconds < math.inf:
        raise ValueError(f"{what} must be a finite number of seconds ≥ 0, but got {seconds!r}")
    return float(seconds)
