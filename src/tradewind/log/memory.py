"""The seam of the event log, and the log that lives as long as its process."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Protocol

from tradewind.events import Event


class Conflict(Exception):
    """An append expected a position that another writer had already taken."""


class Log(Protocol):
    """An append-only list of events. Positions count events from 0."""

    def append(self, events: Sequence[Event], *, expected: int | None = None) -> int:
        """Append all or nothing and return the new length; with `expected`, only if the log has
        exactly that length, else `Conflict`."""
        ...

    def read(self, after: int) -> Sequence[Event]:
        """The events from position `after` on."""
        ...


class Lock:
    """A lock that one thread may take several times. A copy of it, pickled or not, is a new one,
    so that what has a lock can be copied."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *exc: object) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type[Lock], tuple[()]]:
        return Lock, ()


class MemoryLog:
    """A log in memory. Threads may share it."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._lock = Lock()

    def append(self, events: Sequence[Event], *, expected: int | None = None) -> int:
        with self._lock:
            if expected is not None and expected != len(self._events):
                raise Conflict(f"expected {expected} events, found {len(self._events)}")
            self._events.extend(events)
            return len(self._events)

    def read(self, after: int) -> Sequence[Event]:
        with self._lock:
            return self._events[after:]
