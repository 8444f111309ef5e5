"""What signals mean to a search: Ctrl-C, and the SIGTERM by which batch systems end jobs."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import Any

from tradewind.interrupts import Scope, Terminated, in_main_thread, interrupt
from tradewind.output import quietly


class Signals:
    """Hears signals during a search.

    After the first Ctrl-C, `interrupts` is 1: nothing more is started. The second one tells the
    search to end by a KeyboardInterrupt, and SIGTERM tells it to end by `Terminated`. Handlers only
    take notes, so the loop must look. What is heard after `end` is raised when the search has
    ended.

    The user's own handlers are left alone, and so are ignored signals (`nohup`). A search inside a
    trial of another one hears what the other is told to end by."""

    def __init__(self) -> None:
        self.interrupts = 0
        self._scope = Scope()
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Signals:
        if in_main_thread():
            self._scope.enter()
            self.listen()
        return self

    def listen(self) -> None:
        """Hear the signals that nobody else wants to hear. A runner may have set a handler: Ray
        sets one for SIGTERM, which exits wherever the program is."""
        if in_main_thread():
            for number, usual in _USUAL.items():
                handler = signal.getsignal(number)
                if handler is usual or getattr(handler, "__module__", "") == "ray._private.worker":
                    self._before.setdefault(number, handler)
                    signal.signal(number, self._hear)

    def end(self) -> None:
        """The search cleans up. It must not be told to end once more."""
        self._scope.end()

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        for number, usual in reversed(self._before.items()):  # SIGINT last: then it raises again
            if signal.getsignal(number) == self._hear:
                signal.signal(number, usual)
        self._scope.leave()
        told = self._scope.told
        if told is not None and (kind is None or not issubclass(kind, told)):
            raise told

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGTERM:
            self._scope.tell(Terminated)
        else:
            self.interrupts += 1
            if self.interrupts == 1:
                with quietly():  # there may be no stream, or the user is just writing to it
                    sys.stderr.write("\nfinishing the running trials; Ctrl-C again stops now\n")
            elif self._scope.told is None:
                self._scope.tell(KeyboardInterrupt)
        if self._scope.told is not None:
            interrupt(frame)


_USUAL: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}


def _reset_handlers() -> None:
    """In a forked child, SIGTERM must end the process as usual: pools end their workers by it, and
    an idle worker would not notice a Python handler."""
    for number, usual in _USUAL.items():
        if isinstance(getattr(signal.getsignal(number), "__self__", None), Signals):
            signal.signal(number, usual)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_handlers)
