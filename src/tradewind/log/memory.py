"""The log that lives as long as its process."""

from __future__ import annotations

from collections.abc import Sequence

from tradewind.events import Event
from tradewind.lock import Lock
from tradewind.log.log import Conflict


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
