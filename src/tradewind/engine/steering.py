"""Pausing and resuming a study, and what a trial has spent that somebody else stopped.

Any session can pause and resume; every driver obeys (see loop.py and lookout.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from tradewind.engine.session import Session
from tradewind.log.events import Event, Paused, Resumed, Spent
from tradewind.log.state import StudyState
from tradewind.runners.messages import shorten
from tradewind.types import State, Trial


@dataclass(frozen=True)
class Pause:
    """Why a study is paused, and since when, in seconds since 1970 (None if it is not known)."""

    reason: str
    at: float | None


def pause(session: Session, reason: str) -> None:
    """Let no driver start anything more. A study that is paused already stays as it is."""
    event = Paused(shorten(reason), session.clock())

    def begin(state: StudyState) -> tuple[None, list[Event]]:
        return None, [event] if state.paused is None else []

    session.record(begin)


def resume(session: Session) -> None:
    """Let all drivers go on. A study that is not paused stays as it is."""
    event = Resumed(session.clock())

    def end(state: StudyState) -> tuple[None, list[Event]]:
        return None, [event] if state.paused is not None else []

    session.record(end)


def paused(session: Session) -> Pause | None:
    """The pause of a study, by what its log says now; None if trials may be started."""
    event = session.read_state().paused
    return None if event is None else Pause(event.reason, event.at)


def record_spent(session: Session, number: int, cost: float | None) -> Trial | None:
    """Record what a trial has cost that somebody else abandoned while it ran here, if that is
    known, and return the trial; None if it was not abandoned."""

    def note(state: StudyState) -> tuple[None, list[Event]]:
        trial = state.find(number)
        if trial.state is not State.ABANDONED or trial.cost is not None or cost is None:
            return None, []
        return None, [Spent(number, cost, session.clock())]

    session.record(note)
    trial = session.trial(number)
    return trial if trial.state is State.ABANDONED else None
