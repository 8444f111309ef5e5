"""Telling code to end, by a signal or by the clock.

A signal handler runs between any two steps of a program. An exception raised there may leave a lock
held, or may be swallowed. So handlers only take notes, on a `Scope`, and our own code looks at them
where it is safe: `check` raises, `pause` and `wait` return early, and `give_up_at` bounds other
waits. Only code that is not ours is interrupted by an exception, because it may run for hours:
`Interruptible`.

All this concerns the main thread, in which Python runs signal handlers. Code in other threads is
never told to end.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from tradewind.output import fill_standard_streams

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

T = TypeVar("T")

_GRACE = 2.0  # seconds for the last requests to a store, once somebody was told to end
_AGAIN = 1.0  # seconds after which code that swallowed the exception is interrupted again
_CLEANUP = 10.0  # seconds for cleaning up
_CHAIN = 100  # exceptions that are looked at, because chains may be endless
_SOON = 1e-3  # seconds for a timer that is due now: zero would switch it off
_LATE = 1e8  # seconds, the most that every timer takes
_SLICE = 0.5  # seconds of one wait: a signal that another thread received does not end it


class Terminated(SystemExit):
    """The process was told to end (SIGTERM). Its trials go back to the queue."""

    def __init__(self, code: int = 128 + signal.SIGTERM) -> None:
        super().__init__(code)

    def __str__(self) -> str:
        return "the driver was told to end"


class OutOfTime(BaseException):
    """The time of an `Interruptible` is up. Objectives often catch `Exception`, so it is not
    one."""


class Stop(BaseException):
    """Another thread wants an `Interruptible` to end."""


class Scope:
    """A part of the program that can be told to end, with all that runs inside it.

    `told` is what it must raise; None while it may go on. After `end`, it cleans up, and nobody is
    told anything. `was_interrupted` says whether an exception was raised inside it."""

    def __init__(self) -> None:
        self.told: type[BaseException] | None = None
        self.give_up_at = math.inf  # waiting for a store
        self.is_ending = self.was_interrupted = False

    def tell(self, error: type[BaseException]) -> None:
        """Take the note, and wake whatever waits. Signal handlers call this."""
        self.told, self.give_up_at = error, min(self.give_up_at, time.monotonic() + _GRACE)
        _waker.wake()

    def enter(self) -> None:
        """Begin, in the main thread."""
        _waker.prepare()
        _scopes.append(self)

    def end(self) -> None:
        """Begin to clean up."""
        self.is_ending = True
        for scope in _scopes if self in _scopes else ():
            if scope.told is not None:
                scope.give_up_at = time.monotonic() + _CLEANUP

    def leave(self) -> None:
        """End, with everything that runs inside."""
        if self in _scopes:
            del _scopes[_scopes.index(self) :]


_scopes: list[Scope] = []  # those that have begun, the outermost first


def in_main_thread() -> bool:
    return threading.get_ident() == threading.main_thread().ident


# ---- what our own code looks at ----


def told() -> type[BaseException] | None:
    """What the calling code must raise; None while it may go on."""
    if not _scopes or not in_main_thread():
        return None
    return next((scope.told for scope in _told_scopes()), None)


def _told_scopes() -> list[Scope]:
    """The outermost scope that was told to end, with all that runs inside it."""
    begin = max((i + 1 for i, scope in enumerate(_scopes) if scope.is_ending), default=0)
    places = range(begin, len(_scopes))
    return _scopes[next((i for i in places if _scopes[i].told is not None), len(_scopes)) :]


def check() -> None:
    """Raise what the calling code was told, if anything."""
    error = told()
    if error is not None:
        _raise(error())


def give_up_at() -> float:
    """When to give up waiting for a store; infinite if nobody was told to end."""
    if not _scopes or not in_main_thread():
        return math.inf
    return min(scope.give_up_at for scope in _scopes)


def pause(seconds: float) -> None:
    """Sleep, but wake up if somebody is told to end."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0.0:
        if wait((), left):
            return


def wait(sources: Sequence[Connection | int], seconds: float | None) -> bool:
    """Wait until a source is ready, or for so many seconds at most. True if somebody was told to
    end meanwhile. It may return earlier."""
    from multiprocessing.connection import wait as wait_for

    left = _SLICE if seconds is None else min(seconds, _SLICE)
    ends = _waker.ends[:1] if _scopes and in_main_thread() else ()
    if sources or ends:
        wait_for([*sources, *ends], left)
        return bool(ends) and _waker.drain()
    time.sleep(left)
    return told() is not None


def _raise(error: BaseException) -> NoReturn:
    for scope in _told_scopes():  # those around it go on: a trial may run a search of its own
        scope.was_interrupted = True
    raise error


class _Waker:
    """A pipe: a byte in it ends a wait. Without POSIX there is none: waits end later."""

    def __init__(self) -> None:
        self.ends: tuple[int, ...] = ()  # for reading, and for writing

    def prepare(self) -> None:
        if not self.ends and os.name == "posix":
            fill_standard_streams()
            self.ends = os.pipe()
            for end in self.ends:
                os.set_blocking(end, False)

    def wake(self) -> None:
        for end in self.ends[1:]:
            with suppress(OSError):  # it is full, so it wakes; or the user has closed it
                os.write(end, b"!")

    def drain(self) -> bool:
        """Empty the pipe, and say whether there was something in it."""
        for end in self.ends[:1]:
            with suppress(OSError):
                return bool(os.read(end, 4096))
        return False

    def close(self) -> None:
        for end in self.ends:
            os.close(end)
        self.ends = ()


_waker = _Waker()


# ---- what is not ours ----


class Interruptible(Scope, Generic[T]):
    """Calls a function that is not ours. It is interrupted by an exception when it, or a scope
    around it, is told to end, when `seconds` have passed, and when another thread calls `stop`.

    An exception may be swallowed: somebody catches it, or it arrives in a `__del__`, where Python
    ignores it. So it is raised again every second until the function ends. While the function
    handles it (`except`, `finally`), it has ten seconds to clean up. Without SIGALRM (Windows), it
    is raised once, and nothing happens when the time is up. In other threads the function runs to
    its end."""

    def __init__(self, function: Callable[..., T], seconds: float | None = None) -> None:
        super().__init__()
        self._function, self._seconds = function, seconds
        self._raised: BaseException | None = None  # the last interruption,
        self._clean_until = 0.0  # and how long the function may handle it
        self._before: tuple[Any, float, float, float] | None = None  # the timer of the caller

    def __call__(self, *args: Any) -> T:
        if not in_main_thread():
            return self._function(*args)
        listening = None
        try:
            self.enter()
            listening = _listen()
            if self._seconds is not None:
                self._set_timer(self._seconds)
            return self._call(args)
        finally:
            self._restore_timer()
            if listening is not None and signal.getsignal(listening) is _on_call:
                signal.signal(listening, signal.SIG_DFL)
            self.leave()

    def _call(self, args: tuple[Any, ...]) -> T:
        """Handlers raise exceptions inside this call, and nowhere else."""
        check()  # it may have been told to end before this call
        return self._function(*args)

    def stop(self) -> None:
        """Interrupt the function. Any thread may call this, and must do so again until the function
        has ended: a signal that arrives just before the function goes to sleep does not wake it.

        Nothing happens if the function runs in another thread than the main one, or if the user
        needs the signal."""
        if self.told is None:
            self.tell(Stop)
        if self._raised is None and _CALL is not None and signal.getsignal(_CALL) is _on_call:
            signal.pthread_kill(threading.main_thread().ident or 0, _CALL)

    def interrupt(self, error: type[BaseException]) -> NoReturn:
        """Raise this exception, and again in a second. Signal handlers call this."""
        self._raised = raised = error()
        self._clean_until = self._clean_until or time.monotonic() + _CLEANUP
        self._set_timer(_AGAIN)
        _raise(raised)

    def _set_timer(self, seconds: float) -> None:
        if hasattr(signal, "SIGALRM"):
            handler = signal.getsignal(signal.SIGALRM)
            if handler is None:  # Python could not restore it
                return
            signal.signal(signal.SIGALRM, self._ring)
            due, every = signal.setitimer(
                signal.ITIMER_REAL, min(max(seconds, _SOON), _LATE), _AGAIN
            )
            self._before = self._before or (handler, due, every, time.monotonic())

    def _restore_timer(self) -> None:
        if self._before is not None:
            handler, due, every, at = self._before
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, handler)
            if due:
                left = max(_SOON, due - (time.monotonic() - at))
                signal.setitimer(signal.ITIMER_REAL, left, every)

    def _ring(self, number: int, frame: FrameType | None) -> None:
        if self._raised is None and self.told is None:
            self.tell(OutOfTime)
        if time.monotonic() > self._clean_until or not _is_handled(self._raised):
            interrupt(frame)


_context_of = vars(BaseException)["__context__"].__get__  # never the user's own code


def _is_handled(error: BaseException | None) -> bool:
    """Whether this exception, or one that it has led to, is being handled just now."""
    seen, handled = 0, sys.exc_info()[1]
    while handled is not None and handled is not error and seen < _CHAIN:
        seen, handled = seen + 1, _context_of(handled)
    return handled is not None and handled is error


def interrupt(frame: FrameType | None) -> None:
    """Raise what was told if `frame` belongs to an `Interruptible`. Our own code is left alone: it
    looks at what was told. Signal handlers call this with the frame that they got."""
    inner, error = (_scopes[-1] if _scopes else None), told()
    if not isinstance(inner, Interruptible) or error is None:
        return
    while frame is not None:
        if frame.f_code is Interruptible._call.__code__:
            if frame.f_locals["self"] is inner:
                inner.interrupt(error)
            return
        frame = frame.f_back


# The signal by which a thread makes the main thread look at what it was told. Usually it is
# ignored, so it does no harm wherever it arrives.
_CALL: signal.Signals | None = getattr(signal, "SIGURG", None)


def _on_call(number: int, frame: FrameType | None) -> None:
    inner = _scopes[-1] if _scopes else None
    if isinstance(inner, Interruptible) and inner._raised is None:  # it may be cleaning up
        interrupt(frame)


def _listen() -> signal.Signals | None:
    """Let other threads interrupt the main thread. Returns the signal that must be given back; None
    if they can already, or if the user needs it."""
    if _CALL is None or signal.getsignal(_CALL) is not signal.SIG_DFL:
        return None
    signal.signal(_CALL, _on_call)
    return _CALL


def _forget_all() -> None:
    """A forked process is not told what its parent is told, and must not take its bytes."""
    _scopes.clear()
    _waker.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
