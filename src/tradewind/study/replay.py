"""Replay: compute every proposal of a study again from its log, and compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np

from tradewind.engine import plan
from tradewind.engine.propose import Proposer
from tradewind.html import paragraph
from tradewind.log.events import Claimed, Enqueued, Proposed
from tradewind.log.state import StudyState
from tradewind.space import Space
from tradewind.study.study import Study
from tradewind.types import Origin, Value

_CLOSE = 1e-9  # of a coordinate's range


class Verdict(Enum):
    """How a recomputed proposal compares with the recorded one."""

    IDENTICAL = "identical"
    CLOSE = "within 1e-9"
    DIFFERENT = "different"


@dataclass(frozen=True)
class Replayed:
    """One proposal: as recorded, and as computed again."""

    number: int
    verdict: Verdict
    recorded: Mapping[str, Value]
    computed: Mapping[str, Value]


@dataclass(frozen=True)
class Replay:
    """All proposals of a study, by trial number. Trials that the user added are left out.

    >>> tw.replay(study).identical
    True
    """

    proposals: tuple[Replayed, ...]

    @property
    def identical(self) -> bool:
        """Whether every proposal is the same to the last digit."""
        return all(p.verdict is Verdict.IDENTICAL for p in self.proposals)

    def count(self, verdict: Verdict) -> int:
        return sum(p.verdict is verdict for p in self.proposals)

    def __str__(self) -> str:
        counts = ", ".join(f"{self.count(v)} {v.value}" for v in Verdict if self.count(v))
        differing = [p.number for p in self.proposals if p.verdict is Verdict.DIFFERENT]
        which = f" (trials {', '.join(map(str, differing[:10]))})" if differing else ""
        return f"{len(self.proposals)} proposals: {counts or 'none'}{which}"

    def _repr_html_(self) -> str:
        return paragraph(str(self))


def replay(study: Study) -> Replay:
    """Compute every proposal of a study again, each from the events that its driver had read, and
    compare it with the recorded one.

    It takes as long as the proposals took. A goal or strategy of your own is not in the log, so the
    one that the study has now is used.

    >>> print(tw.replay(study))
    8 proposals: 8 identical
    """
    if not isinstance(study, Study):
        raise TypeError(f"study must be a study, such as load_study returns, but got {study!r}")
    session = study._session
    events = session.log.read(0)
    proposer = Proposer(StudyState.of(events[:1]))
    queue = dict(enumerate(e for e in events if isinstance(e, Enqueued)))
    taken = {
        e.number: e.enqueued for e in events if isinstance(e, Claimed) and e.enqueued is not None
    }
    recorded = [event for event in events if isinstance(event, Proposed)]
    replayed = []
    for event in sorted(recorded, key=lambda e: (e.seen, e.number)):
        if event.origin is Origin.ADDED:
            continue
        computed: Enqueued | Proposed
        if event.origin is Origin.ENQUEUED:
            computed = queue.get(taken.get(event.number, -1), Enqueued({}))
        else:
            proposer.state.apply(events[proposer.state.position : event.seen])
            computed = _propose(study, proposer, event)
        verdict = _compare(study.space, event, computed)
        replayed.append(Replayed(event.number, verdict, event.params, computed.params))
    return Replay(tuple(sorted(replayed, key=lambda r: r.number)))


def _propose(study: Study, proposer: Proposer, event: Proposed) -> Proposed:
    """The proposal that the log implies for this trial."""
    state, current = proposer.state, study._session.plan
    goal = current.goal if plan.must_be_supplied(state.goal) else plan.decode(state.goal)
    strategy = current.strategy
    if not plan.must_be_supplied(state.strategy):
        strategy = plan.decode(state.strategy)
    return proposer.propose(event.number, goal, strategy, max_cost=event.max_cost)


def _compare(space: Space, recorded: Proposed, computed: Proposed | Enqueued) -> Verdict:
    if recorded.train_size != computed.train_size:
        return Verdict.DIFFERENT
    if recorded.params == computed.params:
        return Verdict.IDENTICAL
    if recorded.params.keys() != computed.params.keys():
        return Verdict.DIFFERENT
    first, second = space.encode([recorded.params, computed.params])
    if np.nanmax(np.abs(first - second), initial=0.0) <= _CLOSE:
        return Verdict.CLOSE
    return Verdict.DIFFERENT
