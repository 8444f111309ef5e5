"""Scripted strategies and logs: stand-ins that decide what happens at which moment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tradewind as tw
from tests.studies import SPACE, drive
from tradewind.engine.session import Session
from tradewind.goals import Goal
from tradewind.log.events import Event
from tradewind.log.memory import MemoryLog
from tradewind.optimizer.history import History
from tradewind.strategies import RandomSearch
from tradewind.types import Array, Origin, Outcome, Proposal, State, Trial


class Scripted(RandomSearch):
    """A strategy that proposes what `answer` returns, or raises it if it is an exception. All
    scripted strategies have the same name in a log."""

    def __init__(self, answer: Callable[[History], Any]) -> None:
        object.__setattr__(self, "answer", answer)

    def propose(
        self, space: tw.Space, goal: Goal, history: History, *, rng: np.random.Generator
    ) -> Proposal:
        answer = self.answer(history)  # type: ignore[attr-defined]
        if isinstance(answer, BaseException):
            raise answer
        return Proposal(answer, Origin.DESIGN)


def row(x: float, k: int = 1) -> Array:
    """A configuration of the usual space as strategies propose it."""
    encoded: Array = SPACE.encode([{"x": x, "k": k}])[0]
    return encoded


def always(answer: Any) -> Scripted:
    return Scripted(lambda history: answer)


def at(x: float) -> Scripted:
    return always(row(x))


class Interrupted:
    """A session whose strategy proposes x = 0.5, or a smaller x if trials are pending. During its
    first proposals, `others` happen, one each. `seen` are the histories that it was given."""

    def __init__(self, log: MemoryLog, *others: Callable[[], object]) -> None:
        self.others, self.seen = list(others), list[History]()
        self.session = drive(log, strategy=Scripted(self._answer))

    def _answer(self, history: History) -> Array:
        self.seen.append(history)
        if self.others:
            self.others.pop(0)()
        return row(0.5 - 0.125 * len(history.pending))


class Afterwards(MemoryLog):
    """A log in which `then` happens right after the next append."""

    then: Callable[[], object] | None = None

    def append(self, events: Sequence[Event], **options: Any) -> int:
        length = super().append(events, **options)
        then, self.then = self.then, None
        if then is not None:
            then()
        return length


def since(log: MemoryLog) -> list[Event]:
    """All events but the first."""
    return list(log.read(1))


# ---- how a trial can end ----


def finish(session: Session, number: int = 0) -> Trial:
    return session.finish(number, Outcome(1.0, 2.0))


def fail(session: Session, number: int = 0) -> Trial:
    return session.fail(number, "boom")


def abandon(session: Session, number: int = 0) -> Trial:
    return session.abandon(number, "enough")


def requeue(session: Session, number: int = 0) -> Trial:
    return session.requeue(number, "again")


ENDS: dict[str, tuple[Callable[..., Trial], State]] = {
    "finish": (finish, State.FINISHED),
    "fail": (fail, State.FAILED),
    "abandon": (abandon, State.ABANDONED),
    "requeue": (requeue, State.WAITING),
}
