"""The seams of storage: a log holds one study, a store holds the logs of many by name.

Every failure to read or write is a `StorageError`; what was refused has written nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tradewind.log.events import Created, Event


class Conflict(Exception):
    """An append expected a position that another writer had already taken."""


class Log(Protocol):
    """An append-only list of events, and the leases of those who work on its trials.

    Positions count events from 0. Any number of threads, processes and machines may share a log."""

    def append(self, events: Sequence[Event], *, expected: int | None = None) -> int:
        """Append all or nothing and return the new length; with `expected`, only if the log has
        exactly that length, else `Conflict`."""
        ...

    def read(self, after: int) -> Sequence[Event]:
        """The events from position `after` on."""
        ...

    def beat(self, trials: Sequence[int], seconds: float) -> frozenset[int]:
        """Lease `trials` for so many seconds from now, by the clock of the store, and return the
        numbers of all trials that are under a lease, whoever holds it. Leases are beside the log:
        they take no position. `seconds` of 0 gives leases back."""
        ...


class Store(Protocol):
    """Logs by name."""

    def create(self, name: str, first: Created) -> Log:
        """A new log that holds its first event, both or neither; `StudyExists` if there is one."""
        ...

    def open(self, name: str) -> Log:
        """The log of this name, or `NoSuchStudy`."""
        ...

    def names(self) -> list[str]:
        """The names of all studies, oldest first."""
        ...

    def rename(self, name: str, new: str) -> None:
        """Give a study another name; `NoSuchStudy` or `StudyExists`. Its open logs go on."""
        ...

    def delete(self, name: str) -> None:
        """Remove a study with all that belongs to it, or `NoSuchStudy`. Its open logs then give
        `NoSuchStudy` for everything."""
        ...
