"""Writing to a log that others write to as well.

Every write is made from the state at a position and appended at that position: what the state does
not allow is never in the log.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tradewind.errors import TrialError
from tradewind.events import Created, Event
from tradewind.lock import Lock
from tradewind.log.log import Conflict, Log
from tradewind.record import Record
from tradewind.types import Trial


class Writer:
    """A log with the state that it implies; `record` is that as far as it has been read."""

    def __init__(self, log: Log, record: Record) -> None:
        self.log = log
        self._record: Record | None = record
        self._lock = Lock()

    def _current(self) -> Record:
        """The state, up to date with the log."""
        record = self._record
        if record is None:  # reading was interrupted
            created = self.log.read(0)[0]
            assert isinstance(created, Created)
            record = Record.of(created)
        self._record = None
        record.apply(self.log.read(record.position))
        self._record = record
        return record

    def _write(
        self, events: Callable[[Record], tuple[int, list[Event]]], *, lease: float | None = None
    ) -> int:
        """Append what `events` makes of the state, and return the number that it gives with it.
        With a `lease` that is the number of a trial, which is leased first."""
        while True:
            record = self._current()
            number, made = events(record)
            if lease is not None:
                self.log.beat([number], lease)
            if not made or self._append(record, made):
                return number

    def _append(self, record: Record, events: list[Event]) -> bool:
        """Append what was made from the state; False if another driver was quicker."""
        try:
            self.log.append(events, expected=record.position)
        except Conflict:
            return False
        self._record = None  # until all is applied
        record.apply(events)
        self._record = record
        return True

    def _written(self, number: int) -> Trial:
        """The trial as of what was written last, without another look at the log."""
        return own(known(self._record or self._current(), number))


def known(record: Record, number: int) -> Trial:
    """The trial with this number, or `TrialError`."""
    if number not in record.trials:
        raise TrialError(f"there is no trial {number} in this study")
    return record.trials[number]


def own(trial: Trial) -> Trial:
    """A copy with params of its own: to change them changes nothing here."""
    return replace(trial, params=dict(trial.params))
