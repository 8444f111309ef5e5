"""What signals mean to a search: Ctrl-C, and the SIGTERM by which batch systems end jobs."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sized
from typing import Any


class Terminated(SystemExit):
    """The process was told to end (SIGTERM). Its trials go back to the queue."""

    def __str__(self) -> str:
        return "its driver was told to end"


class Signals:
    """Handles signals during a search.

    The first Ctrl-C starts nothing more, and the second stops now by a KeyboardInterrupt. SIGTERM
    stops now by `Terminated`. Once the search is `ending`, further signals are ignored. The user's
    own handlers are left alone."""

    def __init__(self, running: Sized) -> None:
        self.interrupts = 0
        self.ending = False
        self._running = running
        self._before: dict[int, Any] = {}

    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before[signal.SIGINT] = signal.signal(signal.SIGINT, self._interrupt)
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            self._before[signal.SIGTERM] = signal.signal(signal.SIGTERM, self._terminate)

    def __exit__(self, *exc: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _terminate(self, *signalled: object) -> None:
        if not self.ending:
            raise Terminated(128 + signal.SIGTERM)

    def _interrupt(self, *signalled: object) -> None:
        self.interrupts += 1
        if self.interrupts > 1 and not self.ending:
            raise KeyboardInterrupt
        running = f"{len(self._running)} running trial{'s' * (len(self._running) != 1)}"
        if self.interrupts == 1:
            print(f"\nfinishing {running}; Ctrl-C again stops now", file=sys.stderr)


def _reset_handlers() -> None:
    """In a forked child, SIGTERM must end the process as usual: pools end their workers by it, and
    an idle worker would not notice a Python handler."""
    for number, default in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGTERM, signal.SIG_DFL),
    ):
        if isinstance(getattr(signal.getsignal(number), "__self__", None), Signals):
            signal.signal(number, default)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_handlers)
