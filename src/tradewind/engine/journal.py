"""A log with the state that it implies.

Every write is decided from the state at one position of the log and appended at exactly that
position. If another driver was faster, the append is refused, and the decision is made again from
the newer state. So whatever the state does not allow never gets into the log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tradewind.engine.propose import Proposer
from tradewind.errors import TrialError
from tradewind.log.events import Event
from tradewind.log.log import Conflict, Log
from tradewind.log.state import StudyState

T = TypeVar("T")


class Journal:
    """Reads and writes one log. Only one thread may use it at a time."""

    def __init__(self, log: Log, state: StudyState) -> None:
        self.log = log
        self._proposer: Proposer | None = Proposer(state)

    def latest(self) -> Proposer:
        """The state as it was last read."""
        return self._proposer or self.read()

    def read(self) -> Proposer:
        """The state, up to date with the log."""
        proposer = self._proposer
        if proposer is None:
            proposer = Proposer(StudyState.of(self.log.read(0)))
        else:
            events = self.log.read(proposer.state.position)
            self._proposer = None  # in case applying the events is interrupted
            proposer.state.apply(events)
        self._proposer = proposer
        return proposer

    def append(
        self, events: list[Event], *, lease: float | None = None, number: int | None = None
    ) -> bool:
        """Append events decided from the latest state, after leasing trial `number` for `lease`
        seconds. False if another driver wrote first."""
        proposer = self.latest()
        if lease is not None and number is not None:
            self.log.beat([number], lease)
        try:
            self.log.append(events, expected=proposer.state.position)
        except Conflict:
            return False
        self._proposer = None  # in case applying the events is interrupted
        proposer.state.apply(events)
        self._proposer = proposer
        return True

    def write(self, decide: Callable[[StudyState], tuple[T, list[Event]]]) -> T:
        """Append the events that `decide` makes of the state, and return its result.

        The state is first taken as it was last read. If that makes `decide` fail or do nothing,
        or if another driver wrote meanwhile, the log is read and `decide` is asked again."""
        proposer, is_fresh = self.latest(), False
        while True:
            try:
                result, events = decide(proposer.state)
            except TrialError:
                if is_fresh:
                    raise
            else:
                if self.append(events) if events else is_fresh:
                    return result
            proposer, is_fresh = self.read(), True
