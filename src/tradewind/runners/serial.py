"""The runner that evaluates in the calling process, one trial after the other."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tradewind.interrupts import Interruptible, Stop
from tradewind.runners.evaluate import evaluate
from tradewind.runners.messages import describe
from tradewind.runners.run import Objective
from tradewind.runners.runner import (
    OUT_OF_TIME,
    TOO_LATE,
    Done,
    Failure,
    Result,
    Stopped,
    TrialLimits,
    overtime,
)
from tradewind.types import Trial, Usage


@dataclass(frozen=True)
class SerialRunner:
    """Trials in this process, one at a time.

    >>> study.optimize(objective, n_trials=2, runner=tw.runners.SerialRunner())
    """

    def open(self, objective: Objective, limits: TrialLimits) -> SerialWorkers:
        if limits.memory is not None:
            raise ValueError(
                "a memory limit needs worker processes, but a SerialRunner evaluates in the "
                "calling process: give n_workers or a ProcessRunner"
            )
        return SerialWorkers(objective, limits.timeout)


class SerialWorkers:
    """The calling process as the only worker: a trial runs inside `wait`, whatever its timeout."""

    slots = 1
    synchronous = False

    def __init__(self, objective: Objective, timeout: float | None) -> None:
        self._objective, self._timeout = objective, timeout
        self._waiting: list[tuple[Trial, float | None]] = []  # trials and their deadlines
        self._stopped: list[Done] = []
        self._now: tuple[int, Interruptible[Any]] | None = None  # what is being evaluated
        self._reason = ""  # why it is interrupted

    @property
    def free(self) -> int:
        return max(0, 1 - len(self._waiting))

    def submit(self, trial: Trial, *, within: float | None = None) -> None:
        self._waiting.append((trial, None if within is None else self.now() + within))

    def wait(self, timeout: float | None = None) -> list[Done]:
        if self._stopped or not self._waiting:
            done, self._stopped = self._stopped, []
            return done
        trial, deadline = self._waiting.pop(0)
        left = None if deadline is None else deadline - self.now()
        if left is not None and left <= 0.0:
            return [Done(trial, TOO_LATE)]
        limits = [limit for limit in (left, self._timeout) if limit is not None]
        call = Interruptible(partial(evaluate, self._objective), min(limits, default=None))
        self._now, begin = (trial.number, call), self.now()
        try:  # the user's code may also run while its answer or its exception is read
            result, usage = call(trial)
        except BaseException as error:
            result, usage = Failure(describe(error), raised=error), Usage(self.now() - begin)
        self._now = None
        if call.was_interrupted:  # whatever it then answered
            usage = replace(usage, wall=self.now() - begin)
            return [Done(trial, self._why_interrupted(call, result, left, usage.wall), usage)]
        return [Done(trial, result, usage)]

    def _why_interrupted(
        self, call: Interruptible[Any], result: Result, left: float | None, wall: float
    ) -> Result:
        """The result of a trial that was told to end."""
        if call.told is None:
            return Failure("it was interrupted", wall)
        if call.told is Stop:
            return Stopped(self._reason)
        if self._timeout is None or (left is not None and left <= self._timeout):
            return OUT_OF_TIME
        where = f"\n{result.error}" if isinstance(result, Failure) else ""
        return Failure(f"{overtime(self._timeout)}{where}", wall)

    def stop(self, numbers: Iterable[int], reason: str) -> None:
        """Stop trials that have not begun. `interrupt` ends the one that has."""
        wanted = set(numbers)
        for entry in [entry for entry in self._waiting if entry[0].number in wanted]:
            self._waiting.remove(entry)
            self._stopped.append(Done(entry[0], Stopped(reason)))

    def interrupt(self, numbers: Iterable[int], reason: str) -> None:
        running = self._now  # read once: the trial may end meanwhile
        if running is not None and running[0] in numbers:
            self._reason = reason
            running[1].stop()

    def now(self) -> float:
        return time.monotonic()

    def close(self) -> None:
        self._waiting, self._stopped = [], []
