"""Loops with scripted workers, and what somebody who watches them has seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tradewind.engine.failures import Policy
from tradewind.engine.limits import Limits
from tradewind.engine.loop import Loop
from tradewind.engine.session import Session
from tradewind.engine.signals import Signals
from tradewind.log.events import Event
from tradewind.runners.runner import Failure
from tradewind.types import Outcome, Trial


@dataclass
class Watched:
    """What a watcher of a loop has seen."""

    on_done: Callable[[Trial], object] = lambda trial: None
    running: list[int] = field(default_factory=list)
    trials: list[Trial] = field(default_factory=list)

    def started(self, running: int) -> None:
        self.running.append(running)

    def done(self, trial: Trial, running: int) -> None:
        self.trials.append(trial)
        self.on_done(trial)


def loop(
    session: Session,
    workers: Any,
    *,
    stopped: Callable[[], bool] = lambda: False,
    on_done: Callable[[Trial], object] = lambda trial: None,
    policy: Policy | None = None,
    **limits: Any,
) -> Watched:
    watched = Watched(on_done)
    with Signals() as signals:
        limited = Limits(**limits)
        Loop(session, workers, limited, policy or Policy(), stopped, watched, signals=signals).run()
    return watched


def good(trial: Trial) -> Outcome:
    return Outcome(trial.params["x"], 1.0)  # type: ignore[arg-type]


def raising(error: BaseException) -> Failure:
    where = 'Traceback (most recent call last):\n  File "train.py", line 1, in objective'
    return Failure(f"{where}\n{type(error).__name__}: {error}", raised=error)


def kinds(session: Session, kind: type[Event]) -> list[Any]:
    return [e for e in session.log.read(0) if isinstance(e, kind)]


class Pauses:
    """Stands in for the module `time`: pauses between attempts to reach a store take no time."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.taken: list[float] = []
        patch.setattr("tradewind.engine.loop.time", self)
        patch.setattr("tradewind.interrupts.pause", self.sleep)

    def sleep(self, seconds: float) -> None:
        self.taken.append(seconds)

    def monotonic(self) -> float:
        return sum(self.taken)
