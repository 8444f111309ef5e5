"""The runner with a virtual clock: weeks of asynchronous tuning in seconds.

The objective is called when its trial starts, and answers at once; how long the trial then takes,
and whether something befalls it, is scripted. Only `wait` moves the clock, so whatever the driver
does in between takes no time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from tradewind.checks import whole
from tradewind.runners.evaluate import evaluate
from tradewind.runners.run import Objective, Run
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

Mishap: TypeAlias = str | Failure | Lost | Stopped
Duration: TypeAlias = Callable[[Trial], float]
Script: TypeAlias = Callable[[Trial], Mishap | tuple[float, Mishap] | None]


class SimulatedRunner:
    """`n_workers` workers on a clock that starts at 0 and jumps from event to event.

    `duration(trial)` gives the seconds that a trial takes; without it, they are the cost that the
    objective reports (none for an objective that raises). The outcome's cost is the one reported,
    else the duration. `failure(trial)` gives None, or what the trial comes to instead of its
    outcome: a `Failure` or its text, `Lost` or `Stopped`; as a pair `(seconds, what)` after so
    many seconds, if it still runs then. `workers` are those of the last `open`.
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
            raise ValueError("memory is not simulated: script the failures of trials that need it")
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
    busy: float  # the seconds of all workers when it began


class SimulatedWorkers:
    """Virtual workers. A trial beyond `free` waits for one that is; results come in the order of
    virtual time, those of the same moment by number."""

    def __init__(self, runner: SimulatedRunner, objective: Objective, timeout: float | None):
        self._objective, self._timeout = objective, timeout
        self._duration, self._failure = runner.duration, runner.failure
        self.slots, self.synchronous = runner.n_workers, runner.synchronous
        self.opened = self._clock = self._busy = 0.0
        self._waiting: list[_Waiting] = []
        self._running: list[_Running] = []
        self._stopped: list[Done] = []

    @property
    def free(self) -> int:
        return max(0, self.slots - len(self._running) - len(self._waiting))

    @property
    def utilization(self) -> float:
        """The share of the time so far that the workers spent in trials; 0 before any time."""
        return self._busy / (self.slots * self._clock) if self._clock else 0.0

    def submit(self, trial: Trial, *, within: float | None = None) -> None:
        deadline = math.inf if within is None else self._clock + within
        self._waiting.append(_Waiting(trial, deadline))
        self._start()

    def wait(self, timeout: float | None = None) -> list[Done]:
        until = math.inf if timeout is None else self._clock + timeout
        while not self._stopped:
            ends = [run.ends for run in self._running]
            upcoming = min([*ends, *(w.deadline for w in self._waiting)], default=math.inf)
            if upcoming > until or not ends:
                self._advance(until if ends else self._clock)
                return []
            self._advance(upcoming)
            self._end()
        done, self._stopped = self._stopped, []
        return sorted(done, key=lambda d: d.trial.number)

    def stop(self, numbers: Iterable[int], reason: str) -> None:
        named, result = set(numbers), Stopped(reason)
        self._take([w for w in self._waiting if w.trial.number in named], result)
        self._retire([r for r in self._running if r.trial.number in named], result)
        self._start()

    def now(self) -> float:
        return self._clock

    def close(self) -> None:
        self._waiting, self._running, self._stopped = [], [], []

    def _advance(self, to: float) -> None:
        self._busy += len(self._running) * (to - self._clock)
        self._clock = to

    def _end(self) -> None:
        """Take what ends now from the workers, and start what can begin instead."""
        self._retire([r for r in self._running if r.ends <= self._clock])
        self._start()

    def _take(self, waiting: list[_Waiting], result: Stopped) -> None:
        self._waiting = [w for w in self._waiting if w not in waiting]
        self._stopped += [Done(w.trial, result) for w in waiting]

    def _retire(self, runs: list[_Running], result: Result | None = None) -> None:
        shared = float(len(self._running))  # the concurrency of one that takes no time
        self._running = [r for r in self._running if r not in runs]
        for run in runs:
            wall = self._clock - run.began
            usage = Usage(wall, concurrency=(self._busy - run.busy) / wall if wall else shared)
            self._stopped.append(Done(run.trial, result or run.result, usage))

    def _start(self) -> None:
        late = [w for w in self._waiting if w.deadline <= self._clock]
        self._take(late, TOO_LATE)
        while self._waiting and len(self._running) < self.slots:
            entry = self._waiting.pop(0)
            seconds, result = self._scripted(entry.trial, entry.deadline - self._clock)
            ends = min(self._clock + seconds, entry.deadline)  # exactly, where it is the deadline
            self._running.append(_Running(entry.trial, self._clock, ends, result, self._busy))

    def _scripted(self, trial: Trial, left: float) -> tuple[float, Result]:
        """After how many seconds the trial ends, and how: the first of what could end it."""
        answer: Result
        answer, seconds = self._answer(trial)
        mishap = None if self._failure is None else self._failure(trial)
        if mishap is not None:
            after, what = mishap if isinstance(mishap, tuple) else (seconds, mishap)
            if _checked("the moment of a failure", after) <= seconds:
                what = Failure(what) if isinstance(what, str) else what
                if not isinstance(what, (Failure, Lost, Stopped)):
                    raise TypeError(
                        "failure gives None, text, Failure, Lost or Stopped, or a pair of seconds "
                        f"and one of these, but got {mishap!r}"
                    )
                answer, seconds = what, after
        if self._timeout is not None and seconds > self._timeout:
            answer, seconds = Failure(overtime(self._timeout)), self._timeout
        if seconds > left:
            answer, seconds = OUT_OF_TIME, left
        if isinstance(answer, Outcome) and answer.cost is None:
            answer = replace(answer, cost=seconds)
        if isinstance(answer, Failure) and answer.seconds is None:
            answer = replace(answer, seconds=seconds)
        return seconds, answer

    def _answer(self, trial: Trial) -> tuple[Outcome | Failure, float]:
        """What the objective says, without the time that its call really took, and the duration."""
        reported = False

        def recorded(run: Run) -> object:
            nonlocal reported
            answer = self._objective(run)
            reported = isinstance(answer, Mapping) and answer.get("cost") is not None
            return answer

        result, _ = evaluate(recorded, trial)
        if isinstance(result, Failure):
            result = replace(result, seconds=None)
        elif not reported:
            result = replace(result, cost=None)
        if self._duration is not None:
            return result, _checked("a duration", self._duration(trial))
        if isinstance(result, Failure):
            return result, 0.0
        if result.cost is None:
            raise ValueError(
                "a simulated trial needs a duration, but the objective reported no cost: "
                'return {"value": ..., "cost": ...}, or give the runner a duration'
            )
        return result, result.cost


def _checked(what: str, seconds: float) -> float:
    if not 0.0 <= seconds < math.inf:
        raise ValueError(f"{what} must be a finite number of seconds ≥ 0, but got {seconds!r}")
    return float(seconds)
