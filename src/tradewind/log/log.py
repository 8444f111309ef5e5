"""The seams of storage: a log holds one study, a store holds many logs by name.

The functions below are the rules that all logs and stores share. Every failure to read or write is
a `StorageError`. A call that fails has written nothing.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from typing import Protocol

from tradewind.errors import NoSuchStudy, StudyExists
from tradewind.log.events import Created, Event
from tradewind.log.stalls import Stall

LEASE_SLACK = 1e-3  # seconds that rounding may add to a lease


class Conflict(Exception):
    """An append expected another length of the log: somebody else has written to it."""


class Log(Protocol):
    """An append-only list of events, and the leases on its trials.

    Positions count events from 0. Any number of threads, processes and machines may share a log.
    If what a log object has read is no longer in the store, every read and append raises
    `LogDiverged`.

    `id` names the log in its store, whatever the study is called. An imported copy has another one.
    `spool` are the folders for results that could not be recorded, the best one first. A log that
    ends with its process has none."""

    @property
    def id(self) -> int: ...

    @property
    def spool(self) -> tuple[str, ...]: ...

    def append(
        self,
        events: Sequence[Event],
        *,
        expected: int | None = None,
        lease: tuple[int, float] | None = None,
    ) -> int:
        """Append all events or none, and return the new length of the log. With `expected`, raise
        `Conflict` unless the log has exactly this length. With `lease`, a trial and a number of
        seconds, lease the trial in the same step."""
        ...

    def read(self, after: int) -> Sequence[Event]:
        """The events from position `after` on."""
        ...

    def beat(self, trials: Sequence[int], seconds: float) -> Mapping[int, float]:
        """Lease `trials` for so many seconds from now, by the clock of the store. Return all leased
        trials, whoever holds them, and how many seconds each lease has left. With `seconds` 0, end
        these leases. Leases are not events: they take no position in the log.

        After a time in which the store did not answer, a lease that was good before counts for its
        whole time again (see stalls.py)."""
        ...

    def reopen(self) -> Log:
        """The same log as the store has it now, whatever was read before. If the study is gone, it
        is the log of the study that has its name now, or `NoSuchStudy`."""
        ...


class Store(Protocol):
    """Logs by name."""

    def create(self, name: str, first: Created, later: Sequence[Event] = ()) -> Log:
        """Create a log together with its first events; `StudyExists` if the name is taken."""
        ...

    def open(self, name: str) -> Log:
        """The log of this study, or `NoSuchStudy`."""
        ...

    def names(self) -> list[str]:
        """The names of all studies, oldest first."""
        ...

    def rename(self, name: str, new: str) -> None:
        """Give a study another name; `NoSuchStudy` or `StudyExists`. Open logs of the study can
        still be used."""
        ...

    def delete(self, name: str) -> None:
        """Delete a study and everything that belongs to it, or `NoSuchStudy`. After that, open
        logs of the study raise `NoSuchStudy` for every call."""
        ...


def is_leased(until: float, seconds: float, now: float, stalls: Sequence[Stall] = ()) -> bool:
    """Whether a lease of `seconds` that ends at `until` still counts.

    If more time is left than the lease was for, the clock was set back or has restarted since, and
    the lease does not count. If it was good when a stall began, it counts for `seconds` after the
    stall."""
    if until > now + seconds + LEASE_SLACK:
        return False
    return until >= now or any(until >= now - s.began and s.ended < seconds for s in stalls)


def spool_folders(beside: str | None = None) -> tuple[str, ...]:
    """Where to keep results that could not be recorded: in the folder that TRADEWIND_SPOOL names,
    or else beside the study, or in the user's own folder for such files."""
    given = os.environ.get("TRADEWIND_SPOOL")
    if given:
        return (os.path.abspath(given),)
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    own = os.path.join(os.path.abspath(state), "tradewind")
    return (own,) if beside is None else (beside, own)


def random_id() -> int:
    """An id that is unique in every database. If a database is replaced while a log is open, the
    log cannot mistake another study for its own."""
    return secrets.randbits(63)


def already_exists(name: str, where: str) -> StudyExists:
    """The error to raise if the name is taken."""
    return StudyExists(
        f"there is already a study {name!r} in {where}: "
        "choose another name, or open it with load_study"
    )


def gone(name: str, where: str) -> NoSuchStudy:
    """The error to raise if there is no longer the study that was opened."""
    return NoSuchStudy(
        f"there is no longer the study {name!r} in {where} that was opened: it was deleted, or the "
        "store was replaced. study.restore() records what this process knows in the study that has "
        "this name now; if there is none, create it first"
    )


def not_found(name: str, where: str) -> NoSuchStudy:
    """The error to raise if there is no such study."""
    return NoSuchStudy(f"there is no study {name!r} in {where}")
