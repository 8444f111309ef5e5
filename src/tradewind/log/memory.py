"""The seam of the event log, and the log that lives as long as its process."""

from __future__ import annotations

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


class MemoryLog:
    """A log in memory."""

    def __init__(self) -> None:
        self._events: list[Event] = []

    def append(self, events: Sequence[Event], *, expected: int | None = None) -> int:
        if expected is not None and expected != len(self._events):
            raise Conflict(f"expected {expected} events, found {len(self._events)}")
        self._events.extend(events)
        return len(self._events)

    def read(self, after: int) -> Sequence[Event]:
        return self._events[after:]
