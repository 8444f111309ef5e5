"""Exceptions that arrive anywhere, as Ctrl-C does: at the n-th instruction of the package."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import tradewind

PACKAGE = str(Path(tradewind.__file__).parent)
T = TypeVar("T")


class Injected(BaseException):
    """Arrives where nobody expects it."""


def reaches(call: Callable[[], object], at: int) -> bool:
    """Call, and raise `Injected` before instruction `at` (from 0) that runs inside the package.
    False if the call ends before."""
    left = at

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            frame.f_trace_lines, frame.f_trace_opcodes = False, True
            return trace
        if event == "opcode":
            left -= 1
            if left < 0:
                raise Injected  # Python then stops tracing
            return trace
        return None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with suppress(Injected):
            call()
    finally:
        sys.settrace(before)
    return left < 0


def everywhere(call: Callable[[], object], *, step: int = 1) -> Iterator[int]:
    """Let an exception arrive at every `step`-th instruction of a call, one after the other. Yields
    the instruction after each."""
    at = 0
    while reaches(call, at):
        yield at
        at += step


def in_another_thread(call: Callable[[], T]) -> T:
    """The result of a call in another thread. It fails if the thread waits for a lock for ever."""
    found: list[T] = []
    thread = threading.Thread(target=lambda: found.append(call()), daemon=True)
    thread.start()
    thread.join(timeout=30)
    assert found, "it raised an exception, or it waits for a lock that nobody frees"
    return found[0]
