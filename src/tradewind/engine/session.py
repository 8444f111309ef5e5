"""The session: the only writer of a study's log. It proposes trials and records what becomes of
them.

Any number of sessions, in any number of processes, may share a log.
"""

from __future__ import annotations

import logging
import os
import platform
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from tradewind.engine.journal import Journal
from tradewind.engine.plan import Plan
from tradewind.engine.rivals import best_at_size
from tradewind.errors import StorageError, TrialError
from tradewind.goals import Goal
from tradewind.log.events import (
    Abandoned,
    Claimed,
    Enqueued,
    Event,
    Failed,
    Finished,
    Proposed,
    Requeued,
    Started,
)
from tradewind.log.lock import Lock
from tradewind.log.log import Log
from tradewind.log.state import OPEN, StudyState
from tradewind.optimizer.history import History
from tradewind.optimizer.strategies.strategy import Strategy
from tradewind.seeds import queue_rng
from tradewind.types import Origin, Outcome, State, Trial, Usage

_logger = logging.getLogger("tradewind")

MAX_LOSSES = 3  # a trial whose worker or driver dies more often than this is abandoned
_CLAIM = 300.0  # seconds for a proposal whose lease nobody renews
_MAX_REPEATS = 10  # times a proposal is repeated because another driver proposed almost the same


@dataclass(frozen=True)
class _Request:
    """What somebody wants who asks for a trial."""

    max_cost: float | None
    lease: float | None
    keep: bool
    start: bool


class Session:
    """Proposes and records the trials of one study. Threads may share a session.

    If `goal` or `strategy` differs from the stored one, the study continues with the new one.
    Trials are returned as copies: changing their params changes nothing here.

    `held` are the trials whose leases `keep_leases` (leases.py) renews."""

    def __init__(
        self,
        log: Log,
        state: StudyState,
        *,
        goal: Goal,
        strategy: Strategy,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.log = log
        self.plan = Plan(goal, strategy, state)
        self.held: set[int] = set()
        self._journal = Journal(log, state)
        self._clock, self._lock, self._token = clock, Lock(), secrets.token_hex(4)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_token": secrets.token_hex(4), "held": set()}  # a copy is another

    @property
    def id(self) -> str:
        """The name of this session in the log. A forked process has another one."""
        return f"{platform.node()}:{os.getpid()}:{self._token}"

    # ---- reading ----

    @property
    def state(self) -> StudyState:
        """The state as it was last read. Do not change it."""
        return self._journal.latest().state

    def trials(self) -> list[Trial]:
        """All trials by number."""
        with self._lock:
            return [_copy(trial) for trial in self._journal.read().state.in_order()]

    def trial(self, number: int) -> Trial:
        with self._lock:
            return _copy(self._journal.read().state.find(number))

    def snapshot(self) -> tuple[list[Trial], History]:
        """All trials by number, and what a strategy would know of them now."""
        with self._lock:
            proposer = self._journal.read()
            trials = [_copy(trial) for trial in proposer.state.in_order()]
            return trials, proposer.history(proposer.state.claims)

    def with_rival(self, trial: Trial) -> Trial:
        """The trial with the folds that it has to beat, as far as the log has been read."""
        with self._lock:
            proposer = self._journal.latest()
            if not proposer.state.has_folds:
                return trial
            rival = best_at_size(proposer, trial.train_size, self.plan.goal, self.plan.strategy)
            return replace(trial, rival=rival)

    # ---- proposing ----

    def ask(
        self,
        *,
        max_cost: float | None = None,
        lease: float | None = None,
        keep: bool = False,
        start: bool = True,
    ) -> Trial:
        """The next trial: a requeued one, an enqueued one, or a new proposal.

        With a `lease`, the trial is lost if the lease is not renewed within so many seconds; with
        `keep`, `keep_leases` renews it. Without `start`, the trial waits for `start(number)`."""
        request = _Request(max_cost, lease, keep, start)
        with self._lock:
            number = None
            while number is None:
                state = self._journal.read().state
                if self.plan.is_new(state):
                    self._journal.append([self.plan.change(state)])
                    continue
                self.plan.follow(state)
                lost = self._lost(state)
                requeued = self._requeue_lost(state, lost)
                number = self._take(state, lost, request) if requeued else None
            return self._written(number)

    def _take(self, state: StudyState, lost: list[int], request: _Request) -> int | None:
        """Write the next trial and return its number, or None if another driver was faster."""
        number, events = self._waiting(state, request)
        if events is None:
            unproposed = [*lost, *(n for n, by in state.holder.items() if by == self.id)]
            number = min((n for n in unproposed if n not in state.trials), default=state.claims)
            if any(by != self.id for by in state.holder.values()):
                return self._claim_and_propose(number, request)
            events = [Claimed(number, self.id), self._propose(number, request)]
        seconds = request.lease if request.lease is not None or request.start else _CLAIM
        events += self._started(number, request)
        if not self._journal.append(events, lease=seconds, number=number):
            return None
        if request.keep:
            self.held.add(number)
        return number

    def _waiting(self, state: StudyState, request: _Request) -> tuple[int, list[Event] | None]:
        """The trial that waits to be run, and the events that take it; None if there is none."""
        if state.returned:
            number = min(state.returned)
            return number, [Claimed(number, self.id)]
        if state.queue:
            place = min(state.queue)
            wanted, number = state.queue[place], state.claims
            proposed = Proposed(
                number,
                wanted.params,
                Origin.ENQUEUED,
                state.position,
                max_cost=request.max_cost,
                train_size=wanted.train_size,
            )
            return number, [Claimed(number, self.id, place), proposed]
        return state.claims, None

    def _propose(self, number: int, request: _Request) -> Proposed:
        goal, strategy = self.plan.goal, self.plan.strategy
        proposer = self._journal.latest()
        return proposer.propose(number, goal, strategy, max_cost=request.max_cost)

    def _claim_and_propose(self, number: int, request: _Request) -> int | None:
        """Claim the number before computing the proposal, so that several drivers never compute
        the same trial. None if another driver was faster, or took the claim over."""
        seconds = request.lease if request.keep and request.lease else _CLAIM
        if not self._journal.append([Claimed(number, self.id)], lease=seconds, number=number):
            return None
        proposed = False
        if request.keep:
            self.held.add(number)
        try:
            proposed = self._propose_claimed(number, request)
        finally:
            if not proposed:
                self.held.discard(number)
        if proposed and request.lease is not None and not request.keep:
            with suppress(StorageError):  # the lease of the claim still stands
                self.log.beat([number], request.lease)
        return number if proposed else None

    def _propose_claimed(self, number: int, request: _Request) -> bool:
        """Compute and write the proposal of a claimed trial; False if the claim was taken over."""
        proposed, attempts = None, 0
        while True:
            proposer = self._journal.latest()
            if proposer.state.holder.get(number) != self.id:
                return False
            if number in proposer.state.trials:
                return True
            if proposed is not None and attempts <= _MAX_REPEATS:
                if proposer.is_like_recent(proposed.params, proposed.seen):
                    proposed = None
            if proposed is None:
                self.plan.follow(proposer.state)
                proposed, attempts = self._propose(number, request), attempts + 1
            if self._journal.append([proposed, *self._started(number, request)]):
                return True
            self._journal.read()

    def start(self, number: int, *, leased: bool) -> Trial:
        """Record that a trial which waits for this session has begun."""

        def begin(state: StudyState) -> tuple[None, list[Event]]:
            if state.holder.get(number) != self.id:
                raise TrialError(f"trial {number} is no longer held by this session")
            return None, [Started(number, self.id, leased, self._clock())]

        with self._lock:
            self._journal.write(begin)
            return self._written(number)

    def _started(self, number: int, request: _Request) -> list[Event]:
        leased = request.lease is not None
        return [Started(number, self.id, leased, self._clock())] if request.start else []

    def _lost(self, state: StudyState) -> list[int]:
        """The trials and claims of others whose lease has run out."""
        others = state.leased - self.held
        return sorted(others - self.log.beat([], 0.0)) if others else []

    def _requeue_lost(self, state: StudyState, lost: list[int]) -> bool:
        """Put lost trials back into the queue; False if another driver wrote first."""
        events: list[Event] = []
        for trial in (state.trials[number] for number in lost if number in state.trials):
            if trial.state is State.WAITING:
                reason = "its driver ended before starting it"
                events.append(Requeued(trial.number, reason, retry=False))
            else:
                events.append(self._loss(trial, "its driver ended while it ran"))
        return not events or self._journal.append(events)

    def configure(self, *, goal: Goal, strategy: Strategy) -> None:
        """Continue the study with this goal and this strategy."""
        with self._lock:
            self.plan = Plan(goal, strategy, self._journal.latest().state)
            self._journal.write(lambda s: (None, [self.plan.change(s)] * self.plan.is_new(s)))

    # ---- reporting ----
    # With `mine`, a report is refused if another driver holds the trial by now. With `params`, it
    # is refused if the trial has other parameters.

    def finish(
        self,
        number: int,
        outcome: Outcome,
        usage: Usage | None = None,
        *,
        params: Mapping[str, Any] | None = None,
    ) -> Trial:
        """Record the outcome of a trial. An abandoned trial may still finish, once."""
        event = Finished(number, outcome, usage, self._clock())
        return self._end(event, OPEN | {State.ABANDONED}, params=params)

    def fail(
        self,
        number: int,
        error: str,
        cost: float | None = None,
        usage: Usage | None = None,
        *,
        penalize: bool = True,
        mine: bool = False,
        params: Mapping[str, Any] | None = None,
    ) -> Trial:
        """Record that a trial gave no outcome."""
        event = Failed(number, error, cost, penalize, usage, self._clock())
        return self._end(event, mine=mine, params=params)

    def abandon(
        self,
        number: int,
        reason: str,
        cost: float | None = None,
        *,
        mine: bool = False,
        params: Mapping[str, Any] | None = None,
    ) -> Trial:
        """Give a trial up."""
        event = Abandoned(number, reason, cost, self._clock())
        return self._end(event, mine=mine, params=params)

    def requeue(
        self,
        number: int,
        reason: str,
        *,
        retry: bool = True,
        mine: bool = False,
        params: Mapping[str, Any] | None = None,
    ) -> Trial:
        """Put a trial back into the queue; with `retry` it counts as one more attempt."""
        return self._end(Requeued(number, reason, retry), mine=mine, params=params)

    def lose(self, number: int, reason: str) -> Trial:
        """Record that the worker of a trial died: the trial is run again, but not forever."""
        return self._end(self._loss(self.trial(number), reason), mine=True)

    def _loss(self, trial: Trial, reason: str) -> Requeued | Abandoned:
        if trial.losses < MAX_LOSSES:
            return Requeued(trial.number, reason, lost=True)
        return Abandoned(trial.number, f"{reason}, {MAX_LOSSES + 1} times", at=self._clock())

    def _end(
        self,
        event: Finished | Failed | Abandoned | Requeued,
        allowed: frozenset[State] = OPEN,
        *,
        mine: bool = False,
        params: Mapping[str, Any] | None = None,
    ) -> Trial:
        number = event.number

        def end(state: StudyState) -> tuple[None, list[Event]]:
            trial = state.find(number, params)
            if isinstance(event, Requeued) and number in state.returned:
                return None, []
            if trial.state not in allowed:
                raise TrialError(
                    f"a trial is reported once, but trial {number} is already {trial.state.value}"
                )
            if mine and state.holder.get(number) != self.id:
                raise TrialError(f"another driver holds trial {number} by now")
            return None, [event]

        with self._lock:
            self._journal.write(end)
            self.held.discard(number)
            return self._written(number)

    def decline(self, number: int, reason: str) -> None:
        """Do without a trial that waits for this session: abandon it if it is a new proposal, and
        put it back into the queue if somebody else may want it."""

        def end(state: StudyState) -> tuple[None, list[Event]]:
            if state.holder.get(number) != self.id:
                return None, []
            if state.trials[number].origin is Origin.ENQUEUED or number in state.requeued:
                return None, [Requeued(number, reason, retry=False)]
            return None, [Abandoned(number, reason, at=self._clock())]

        with self._lock:
            self.held.discard(number)
            self._journal.write(end)

    def _written(self, number: int) -> Trial:
        return _copy(self._journal.latest().state.find(number))

    # ---- adding ----

    def enqueue(self, params: Mapping[str, Any], train_size: float | None = None) -> None:
        """Put a configuration into the queue; parameters left out are drawn at random."""

        def entry(state: StudyState) -> tuple[None, list[Event]]:
            rng = queue_rng(state.seed, state.enqueued)
            return None, [Enqueued(state.space.complete(params, rng=rng), train_size)]

        with self._lock:
            self._journal.write(entry)

    def add(
        self,
        params: Mapping[str, Any],
        result: Outcome | Failed,
        usage: Usage | None = None,
        *,
        train_size: float | None = None,
    ) -> Trial:
        """Record a trial that was evaluated elsewhere."""
        config = self._journal.latest().state.space.validate(params)

        def entry(state: StudyState) -> tuple[int, list[Event]]:
            number, seen = state.claims, state.position
            proposed = Proposed(number, config, Origin.ADDED, seen, train_size=train_size)
            if isinstance(result, Failed):
                return number, [Claimed(number), proposed, replace(result, number=number)]
            done = Finished(number, result, usage, at=self._clock())
            return number, [Claimed(number), proposed, done]

        with self._lock:
            return self._written(self._journal.write(entry))

    # ---- leases ----

    def renew(
        self,
        number: int,
        lease: float,
        *,
        driver: str | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> None:
        """Keep a leased trial for so many seconds from now, if `driver` still holds it."""
        with self._lock:
            state = self._journal.read().state
            trial = state.find(number, params)
            if number not in state.leased:
                raise TrialError(f"trial {number} has no lease to renew: it is {trial.state.value}")
            if driver is not None and state.holder.get(number) != driver:
                raise TrialError(f"another driver holds trial {number} by now")
        self.log.beat([number], lease)


def _copy(trial: Trial) -> Trial:
    return replace(trial, params=dict(trial.params))
