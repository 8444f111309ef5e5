"""The seam of the event log."""

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
