"""Time limits inside the calling process.

A trial that is out of time is interrupted by an exception, which a signal handler raises. This
needs a POSIX system and the main thread; elsewhere the trial runs to its end, and its result
counts.
"""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType

from tradewind.runners.evaluate import evaluate
from tradewind.runners.run import Objective, Run
from tradewind.runners.runner import OUT_OF_TIME, Done, Failure, overtime
from tradewind.types import Trial

_AGAIN = 1.0  # seconds after which an objective that caught the exception is interrupted again
_SOON = 1e-3  # seconds for a timer that is due now: zero would switch it off


def evaluate_in_time(
    objective: Objective, trial: Trial, left: float | None, timeout: float | None
) -> Done:
    """Evaluate a trial that must end within the `left` seconds of the search and within the
    `timeout` for one trial."""
    seconds = min(limit for limit in (left, timeout) if limit is not None)
    alarm = _Alarm(objective, seconds if _can_interrupt() else None)
    result, usage = evaluate(alarm.call, trial)
    if not alarm.has_rung:
        return Done(trial, result, usage)
    if timeout is None or left == seconds:
        return Done(trial, OUT_OF_TIME, usage)
    error = overtime(timeout)
    if isinstance(result, Failure):
        return Done(trial, Failure(f"{error}\n{result.error}", result.seconds), usage)
    return Done(trial, Failure(error, usage.wall), usage)  # its outcome came too late


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
