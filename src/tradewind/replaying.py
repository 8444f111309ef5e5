"""Replay: every proposal of a study derived again from its log, and compared with what was made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from tradewind import blueprint
from tradewind.derive import derive
from tradewind.events import Claimed, Created, Enqueued, Event, Proposed
from tradewind.record import Record
from tradewind.space import Space
from tradewind.study import Study
from tradewind.types import Origin, Value

_CLOSE = 1e-9  # of a coordinate's range


class Verdict(Enum):
    """How a derived proposal compares with the recorded one."""

    IDENTICAL = "identical"
    CLOSE = "within 1e-9"
    DIFFERENT = "different"


@dataclass(frozen=True)
class Replayed:
    """One proposal: what is recorded, and what its log implies."""

    number: int
    verdict: Verdict
    recorded: Mapping[str, Value]
    derived: Mapping[str, Value]


@dataclass(frozen=True)
class Replay:
    """All proposals of a study, in order of number. What the user added is not among them."""

    proposals: tuple[Replayed, ...]

    @property
    def identical(self) -> bool:
        """Whether every proposal is the one that the log implies, to the last digit."""
        return all(p.verdict is Verdict.IDENTICAL for p in self.proposals)

    def count(self, verdict: Verdict) -> int:
        return sum(p.verdict is verdict for p in self.proposals)

    def __str__(self) -> str:
        counts = ", ".join(f"{self.count(v)} {v.value}" for v in Verdict if self.count(v))
        differing = [p.number for p in self.proposals if p.verdict is Verdict.DIFFERENT]
        which = f" (trials {', '.join(map(str, differing[:10]))})" if differing else ""
        return f"{len(self.proposals)} proposals: {counts or 'none'}{which}"


def replay(study: Study) -> Replay:
    """Derive every proposal of a study again, each from the log as far as its maker had read it.

    It takes as long as the proposals took. A strategy of your own is taken as the study has it."""
    driver = study._driver
    events = driver.log.read(0)
    assert isinstance(events[0], Created)
    record = Record.of(events[0])
    queue = dict(enumerate(e for e in events if isinstance(e, Enqueued)))
    taken = {
        e.number: e.enqueued for e in events if isinstance(e, Claimed) and e.enqueued is not None
    }
    made = [event for event in events if isinstance(event, Proposed)]
    replayed = []
    for event in sorted(made, key=lambda e: (e.seen, e.number)):
        if event.origin is Origin.ADDED:
            continue
        derived: Enqueued | Proposed
        if event.origin is Origin.ENQUEUED:
            derived = queue.get(taken.get(event.number, -1), Enqueued({}))
        else:
            derived = _derived(study, record, events, event)
        verdict = _compared(driver.space, event, derived)
        replayed.append(Replayed(event.number, verdict, event.params, derived.params))
    return Replay(tuple(sorted(replayed, key=lambda r: r.number)))


def _derived(study: Study, record: Record, events: Any, event: Proposed) -> Proposed:
    """What the log up to `event.seen` implies; `record` is read on to there."""
    seen: list[Event] = list(events[record.position : event.seen])
    record.apply(seen)
    goal = study._driver.goal if blueprint.given_again(record.goal) else blueprint.read(record.goal)
    own = blueprint.given_again(record.strategy)
    strategy = study.strategy if own else blueprint.read(record.strategy)
    return derive(record, event.number, goal, strategy, max_cost=event.max_cost)


def _compared(space: Space, recorded: Proposed, derived: Proposed | Enqueued) -> Verdict:
    if recorded.train_size != derived.train_size:
        return Verdict.DIFFERENT
    if recorded.params == derived.params:
        return Verdict.IDENTICAL
    if recorded.params.keys() != derived.params.keys():
        return Verdict.DIFFERENT
    first, second = space.encode([recorded.params, derived.params])
    if np.nanmax(np.abs(first - second), initial=0.0) <= _CLOSE:
        return Verdict.CLOSE
    return Verdict.DIFFERENT
