"""What signals say to a search: Ctrl-C, and the SIGTERM by which batch systems end jobs."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sized
from typing import Any


class Terminated(SystemExit):
    """The system wants the process to end (SIGTERM): it does, and what it ran goes back."""

    def __str__(self) -> str:
        return "its driver was told to end"


class Interrupts:
    """Ctrl-C once: start nothing more. Twice: stop now, by a KeyboardInterrupt. SIGTERM, by which
    batch systems end jobs: stop now, by `Terminated`. What comes while that is being done is
    passed over. Handlers of the user's own are left alone."""

    def __init__(self, running: Sized) -> None:
        self.count = 0
        self.ended = False
        self._running = running
        self._before: dict[int, Any] = {}

    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before[signal.SIGINT] = signal.signal(signal.SIGINT, self._on_signal)
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            self._before[signal.SIGTERM] = signal.signal(signal.SIGTERM, self._on_termination)

    def __exit__(self, *exc: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_termination(self, *signalled: object) -> None:
        if not self.ended:
            raise Terminated(128 + signal.SIGTERM)

    def _on_signal(self, *signalled: object) -> None:
        self.count += 1
        if self.count > 1 and not self.ended:
            raise KeyboardInterrupt
        running = f"{len(self._running)} running trial{'s' * (len(self._running) != 1)}"
        if self.count == 1:
            print(f"\nfinishing {running}; Ctrl-C again stops now", file=sys.stderr)


def _forget_handlers() -> None:
    """In a forked child. SIGTERM has to end it as it ends any process: pools end their workers so,
    and one that waits for work would not notice a handler of Python's."""
    for number, usual in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGTERM, signal.SIG_DFL),
    ):
        if isinstance(getattr(signal.getsignal(number), "__self__", None), Interrupts):
            signal.signal(number, usual)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_handlers)
