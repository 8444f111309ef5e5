"""The runner that evaluates in the calling process, one trial after the other.

A trial that is out of time is interrupted by an exception, which a signal handler raises. This
needs a POSIX system and the main thread; elsewhere the trial runs to its end, and its result
counts.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from types import FrameType

from tradewind.runners.evaluate import evaluate
from tradewind.runners.run import Objective, Run
from tradewind.runners.runner import (
    OUT_OF_TIME,
    TOO_LATE,
    Done,
    Failure,
    Stopped,
    TrialLimits,
    overtime,
)
from tradewind.types import Trial

_AGAIN = 1.0  # seconds after which an objective that caught the exception is interrupted again
_SOON = 1e-3  # seconds for a timer that is due now: zero would switch it off


@dataclass(frozen=True)
class SerialRunner:
    """Trials in this process, one at a time."""

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
        self.opened = self.now()
        self._waiting: list[tuple[Trial, float | None]] = []  # trials and their deadlines
        self._stopped: list[Done] = []

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
        if deadline is None and self._timeout is None:
            return [Done(trial, *evaluate(self._objective, trial))]
        left = None if deadline is None else deadline - self.now()
        if left is not None and left <= 0.0:
            return [Done(trial, TOO_LATE)]
        return [self._evaluate_with_alarm(trial, left)]

    def _evaluate_with_alarm(self, trial: Trial, left: float | None) -> Done:
        """Evaluate a trial that must end after `left` seconds or after the timeout."""
        seconds = min(limit for limit in (left, self._timeout) if limit is not None)
        alarm = _Alarm(self._objective, seconds if _can_interrupt() else None)
        result, usage = evaluate(alarm.call, trial)
        if not alarm.has_rung:
            return Done(trial, result, usage)
        if self._timeout is None or left == seconds:
            return Done(trial, OUT_OF_TIME, usage)
        error = overtime(self._timeout)
        if isinstance(result, Failure):
            return Done(trial, Failure(f"{error}\n{result.error}", result.seconds), usage)
        return Done(trial, Failure(error, usage.wall), usage)  # its outcome came too late

    def stop(self, numbers: Iterable[int], reason: str) -> None:
        """Stop trials that have not begun. No trial can be running when this is called."""
        wanted = set(numbers)
        for entry in [entry for entry in self._waiting if entry[0].number in wanted]:
            self._waiting.remove(entry)
            self._stopped.append(Done(entry[0], Stopped(reason)))

    def now(self) -> float:
        return time.monotonic()

    def close(self) -> None:
        self._waiting, self._stopped = [], []


class _OutOfTime(BaseException):
    """The alarm raises this in an objective. Objectives often catch `Exception`, so it is not
    one."""


class _Alarm:
    """Calls an objective and interrupts it after so many seconds; None for never."""

    def __init__(self, objective: Objective, seconds: float | None) -> None:
        self._objective, self._seconds = objective, seconds
        self.has_rung = False

    def call(self, run: Run) -> object:
        """Call the objective. Then restore the caller's own timer and signal handler."""
        if self._seconds is None:
            return self._call_objective(run)
        began = time.monotonic()
        handler = signal.signal(signal.SIGALRM, self._ring)
        due, interval = signal.setitimer(signal.ITIMER_REAL, max(self._seconds, _SOON), _AGAIN)
        try:
            return self._call_objective(run)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, handler)
            if due:
                left = max(_SOON, due - (time.monotonic() - began))
                signal.setitimer(signal.ITIMER_REAL, left, interval)

    def _call_objective(self, run: Run) -> object:
        return self._objective(run)

    def _ring(self, number: int, frame: FrameType | None) -> None:
        """Interrupt the objective, but never the code around it, which must clean up."""
        while frame is not None:
            if frame.f_code is _Alarm._call_objective.__code__:
                self.has_rung = True
                raise _OutOfTime
            frame = frame.f_back


def _can_interrupt() -> bool:
    return (
        hasattr(signal, "SIGALRM")
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGALRM) is not None  # Python could not restore such a handler
    )
