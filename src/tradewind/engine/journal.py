"""A log with the state that it implies.

Every write is decided from the state at one position of the log and appended at exactly that
position. If another driver was faster, the append is refused, and the decision is made again from
the newer state. So whatever the state does not allow never gets into the log.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TypeVar

from tradewind.engine.propose import Proposer
from tradewind.errors import StudyPaused, TrialError
from tradewind.log.events import Event
from tradewind.log.log import Conflict, Log
from tradewind.log.state import StudyState

T = TypeVar("T")


class Journal:
    """Reads and writes one log. Only one thread may use it at a time; all may `peek`.

    `seen_at` is when the state was last up to date, by the clock `time.monotonic`."""

    def __init__(self, log: Log, state: StudyState) -> None:
        self.log, self.seen_at = log, -math.inf
        self._proposer: Proposer | None = Proposer(state)

    def latest(self) -> Proposer:
        """The state as it was last read."""
        return self._proposer or self.read()

    def peek(self) -> StudyState | None:
        """The state as it was last read; None while it is being changed."""
        proposer = self._proposer
        return None if proposer is None else proposer.state

    def read(self) -> Proposer:
        """The state, up to date with the log."""
        proposer = self._proposer
        if proposer is None:
            proposer = Proposer(StudyState.read(self.log))
        else:
            events = self.log.read(proposer.state.position)
            self._proposer = None  # in case applying the events is interrupted
            proposer.state.apply(events)
        self._proposer, self.seen_at = proposer, time.monotonic()
        return proposer

    def reopened(self) -> Journal:
        """A journal of the log as the store has it now, whatever was read before."""
        log = self.log.reopen()
        return Journal(log, StudyState.read(log))

    def append(
        self, events: list[Event], *, at: int, lease: tuple[int, float] | None = None
    ) -> bool:
        """Append events that were decided from the first `at` events of the log, and lease a trial
        for so many seconds in the same step. False if the log has grown since."""
        proposer = self.latest()
        if proposer.state.position != at:
            return False
        try:
            self.log.append(events, expected=at, lease=lease)
        except Conflict:
            return False
        self._proposer = None  # in case applying the events is interrupted
        proposer.state.apply(events)
        self._proposer, self.seen_at = proposer, time.monotonic()
        return True

    def write(self, decide: Callable[[StudyState], tuple[T, list[Event]]]) -> T:
        """Append the events that `decide` makes of the state, and return its result.

        The state is first taken as it was last read. If that makes `decide` fail or do nothing,
        or if another driver wrote meanwhile, the log is read and `decide` is asked again."""
        state, is_fresh = self.latest().state, False
        while True:
            at = state.position
            try:
                result, events = decide(state)
            except (TrialError, StudyPaused):
                if is_fresh:
                    raise
            else:
                if self.append(events, at=at) if events else is_fresh:
                    return result
            state, is_fresh = self.read().state, True
