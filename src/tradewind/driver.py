"""The driver: all that is written to a log is written here.

A proposal is a pure function of the space, the goal, the strategy, the seed, the trial number and
the log that it saw. `Driver.ask` writes the number down first, so that any number of drivers on
one log never compute the same trial.
"""

from __future__ import annotations

import logging
import os
import platform
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from tradewind import blueprint
from tradewind.derive import derive
from tradewind.errors import StorageError, TrialError
from tradewind.events import (
    Abandoned,
    Claimed,
    Configured,
    Enqueued,
    Event,
    Failed,
    Finished,
    Proposed,
    Requeued,
    Started,
)
from tradewind.goals import Goal, best_of
from tradewind.history import History, queue_rng
from tradewind.log.log import Log
from tradewind.record import OPEN, Record
from tradewind.strategies.strategy import Strategy
from tradewind.types import Origin, Outcome, Rival, State, Trial, Usage
from tradewind.writer import Writer, known, own

_logger = logging.getLogger("tradewind")

LOSSES = 3  # a trial whose worker has died so often goes back to the queue; then it is abandoned
_CLAIM = 300.0  # seconds that a driver may take to propose, where nobody keeps its lease
_AGAIN = 10  # proposals that are computed anew because another driver made nearly the same


class Driver(Writer):
    """A writer of one study's log that proposes and records its trials. Threads may share it.

    `record` is that state as far as it has been read. A `goal` or a `strategy` that is not what it
    says is what the study goes on with.
    A trial that it gives has params of its own: to change them changes nothing here."""

    def __init__(
        self,
        log: Log,
        record: Record,
        *,
        goal: Goal,
        strategy: Strategy,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(log, record)
        self.space, self.clock = record.space, clock
        self.goal, self.strategy = goal, strategy
        self._read = (blueprint.written(goal), blueprint.written(strategy))
        self._new = self._read != (record.goal, record.strategy)  # the log has not heard of them
        self._token = secrets.token_hex(4)
        self.working: set[int] = set()  # trials that a loop is at work on, and keeps the lease of
        self.proposing: int | None = None  # a trial that `ask` is at work on

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_token": secrets.token_hex(4), "working": set()}  # it is another

    @property
    def _id(self) -> str:
        """Of this driver in this process: a fork of it is another."""
        return f"{platform.node()}:{os.getpid()}:{self._token}"

    # ---- reading ----

    def trials(self) -> list[Trial]:
        """All trials by number."""
        with self._lock:
            return [own(trial) for trial in self._current().in_order()]

    def trial(self, number: int) -> Trial:
        """The trial with this number."""
        with self._lock:
            return own(known(self._current(), number))

    def state(self) -> tuple[list[Trial], History]:
        """All trials by number, and what a strategy would know of them now."""
        with self._lock:
            record = self._current()
            return [own(trial) for trial in record.in_order()], record.history(record.claims)

    def _follow(self, record: Record) -> None:
        """Take the goal and the strategy that the study has now."""
        if (record.goal, record.strategy) == self._read:
            return
        _logger.warning("another driver has changed the goal or the strategy of this study")
        missing = [*blueprint.given_again(record.goal), *blueprint.given_again(record.strategy)]
        if missing:
            raise StorageError(
                f"the study has been given a part of somebody's own, {missing[0]}, which this "
                "process does not have: load the study with it"
            )
        self.goal, self.strategy = blueprint.read(record.goal), blueprint.read(record.strategy)
        self._read = (record.goal, record.strategy)

    def with_rival(self, trial: Trial) -> Trial:
        """The trial with what it has to beat if it reports folds: the best at its training size,
        as far as the log has been read."""
        with self._lock:
            record = self._record or self._current()
            finished = [t for t in record.in_order() if t.finished]
            known = [
                i
                for i, t in enumerate(finished)
                if t.folds and not t.raced and t.train_size == trial.train_size
            ]
            if not known:
                return trial
            history = record.history(record.claims)
        goal = self.strategy.settle(self.goal, history)
        if goal.open:  # nothing has a cost yet
            return trial
        utility = goal.utility(history.quality, history.cost)
        best = known[best_of(utility[known])]
        margin = float(history.quality[best] - utility[best])
        rival = Rival(finished[best].folds, history.sign, margin if margin > 0 else 0.0)
        return replace(trial, rival=rival)

    # ---- proposing ----

    def ask(
        self,
        *,
        max_cost: float | None = None,
        lease: float | None = None,
        kept: bool = False,
        start: bool = True,
    ) -> Trial:
        """What went back to the queue, or was enqueued, or else a proposal under the next number.

        With a `lease` the trial is this driver's for so many seconds, and longer if it beats;
        `kept` says that somebody does so already while it is being proposed. Without `start` the
        trial waits for `start(number)`."""

        def begun(number: int) -> list[Event]:
            return [self._start(number, leased=lease is not None)] if start else []

        with self._lock:
            if self._new:
                self.configure(goal=self.goal, strategy=self.strategy)
            self._follow(self._current())
            try:
                while True:
                    self._recover()
                    claim = lease if kept and lease else _CLAIM
                    number = self.proposing = self._claim(max_cost, begun, claim)
                    if self._propose(number, max_cost, begun):
                        break
            finally:
                self.proposing = None
            if lease is not None:
                with suppress(StorageError):  # that of the claim stands
                    self.log.beat([number], lease)
            return self._written(number)

    def start(self, number: int, *, leased: bool) -> Trial:
        """Say that a trial that waits for this driver has begun."""

        def begin(record: Record) -> tuple[int, list[Event]]:
            if record.holder.get(number) != self._id:
                raise TrialError(f"trial {number} has gone back to the queue meanwhile")
            return number, [self._start(number, leased=leased)]

        with self._lock:
            return self._written(self._write(begin))

    def _start(self, number: int, *, leased: bool) -> Started:
        return Started(number, self._id, leased, self.clock())

    def _claim(
        self, max_cost: float | None, begun: Callable[[int], list[Event]], lease: float
    ) -> int:
        """Take what is first in the queue, a claim that nobody will propose any more (its driver
        has died, or this one was kept from it by an error), or the next number."""

        def claim(record: Record) -> tuple[int, list[Event]]:
            if record.returned:
                number = min(record.returned)
                return number, [Claimed(number, self._id), *begun(number)]
            if record.queue:
                number, place = record.claims, min(record.queue)
                wanted = record.queue[place]
                proposed = Proposed(
                    number,
                    wanted.params,
                    Origin.ENQUEUED,
                    record.position,
                    max_cost=max_cost,
                    train_size=wanted.train_size,
                )
                return number, [Claimed(number, self._id, place), proposed, *begun(number)]
            free = [*self._lost(record), *(n for n, by in record.holder.items() if by == self._id)]
            number = min((n for n in free if n not in record.trials), default=record.claims)
            return number, [Claimed(number, self._id)]

        return self._write(claim, lease=lease)

    def _propose(
        self, number: int, max_cost: float | None, begun: Callable[[int], list[Event]]
    ) -> bool:
        """Compute and write the configuration of a claimed trial, unless it has one; False if it
        took so long that another driver has taken over."""
        made, tries = None, 0
        record = self._record or self._current()  # as it is with the claim
        while True:
            if record.holder.get(number) != self._id:
                return False
            if number in record.trials:
                return True
            if made is not None and tries <= _AGAIN and record.alike_since(made.params, made.seen):
                made = None
            if made is None:
                self._follow(record)
                made = derive(record, number, self.goal, self.strategy, max_cost=max_cost)
                tries += 1
            if self._append(record, [made, *begun(number)]):
                return True
            record = self._current()

    def _lost(self, record: Record) -> list[int]:
        """The numbers whose holder has let its lease run out."""
        others = record.leased - self.working
        return sorted(others - self.log.beat([], 0.0)) if others else []

    def _recover(self) -> None:
        """Put trials whose driver has died back into the queue."""

        def back(record: Record) -> tuple[int, list[Event]]:
            events: list[Event] = []
            for number in self._lost(record):
                trial = record.trials.get(number)
                if trial is None:
                    continue  # only claimed: `_claim` takes it over
                if trial.state is State.WAITING:
                    events.append(Requeued(number, "its driver ended before it began", retry=False))
                else:
                    events.append(self._loss(trial, "its driver ended while it ran"))
            return len(events), events

        self._write(back)

    # ---- what becomes of trials ----

    def enqueue(self, params: Mapping[str, Any], train_size: float | None = None) -> None:
        """Put a configuration, completed where it leaves something open, into the queue."""

        def entry(record: Record) -> tuple[int, list[Event]]:
            place = record.enqueued
            config = self.space.complete(params, rng=queue_rng(record.seed, place))
            return place, [Enqueued(config, train_size)]

        with self._lock:
            self._write(entry)

    def add(
        self, params: Mapping[str, Any], outcome: Outcome, train_size: float | None = None
    ) -> Trial:
        """A trial that is finished already."""
        config = self.space.validate(params)

        def done(record: Record) -> tuple[int, list[Event]]:
            number, seen = record.claims, record.position
            proposed = Proposed(number, config, Origin.ADDED, seen, train_size=train_size)
            return number, [Claimed(number), proposed, Finished(number, outcome, at=self.clock())]

        with self._lock:
            return self._written(self._write(done))

    def finish(self, number: int, outcome: Outcome, usage: Usage | None = None) -> Trial:
        """Record the outcome of a trial. One that was given up for lost may still finish, once."""
        event = Finished(number, outcome, usage, self.clock())
        return self._end(number, event, OPEN | {State.ABANDONED})

    # The following are refused for a trial that is to be `mine` and is with another driver by now.

    def fail(
        self,
        number: int,
        error: str,
        cost: float | None = None,
        usage: Usage | None = None,
        *,
        penalize: bool = True,
        mine: bool = False,
    ) -> Trial:
        """Record that a trial gave no outcome."""
        event = Failed(number, error, cost, penalize, usage, self.clock())
        return self._end(number, event, OPEN, mine=mine)

    def abandon(
        self, number: int, reason: str, cost: float | None = None, *, mine: bool = False
    ) -> Trial:
        """Give a trial up."""
        return self._end(number, Abandoned(number, reason, cost, self.clock()), OPEN, mine=mine)

    def requeue(self, number: int, reason: str, *, retry: bool = True, mine: bool = False) -> Trial:
        """Put a trial back into the queue."""
        return self._end(number, Requeued(number, reason, retry), OPEN, mine=mine)

    def lose(self, number: int, reason: str) -> Trial:
        """Record that a trial of this driver went away with its worker; it runs again, though not
        for ever."""
        return self._end(number, self._loss(self.trial(number), reason), OPEN, mine=True)

    def _loss(self, trial: Trial, reason: str) -> Requeued | Abandoned:
        if trial.losses < LOSSES:
            return Requeued(trial.number, reason, lost=True)
        return Abandoned(trial.number, f"{reason}, {LOSSES + 1} times", at=self.clock())

    def decline(self, number: int, reason: str) -> None:
        """Do without a trial that waits for this driver: what it has proposed itself just now is
        abandoned, anything else is left to others."""

        def end(record: Record) -> tuple[int, list[Event]]:
            if record.holder.get(number) != self._id:
                return number, []
            trial = record.trials[number]
            if trial.origin is Origin.ENQUEUED or trial.retries:
                return number, [Requeued(number, reason, retry=False)]
            return number, [Abandoned(number, reason, at=self.clock())]

        with self._lock:
            self._write(end)

    def _end(
        self,
        number: int,
        event: Finished | Failed | Abandoned | Requeued,
        allowed: frozenset[State],
        *,
        mine: bool = False,
    ) -> Trial:
        def end(record: Record) -> tuple[int, list[Event]]:
            trial = known(record, number)
            if isinstance(event, Requeued) and number in record.returned:
                return number, []
            if trial.state not in allowed:
                raise TrialError(
                    f"a trial is told once, but trial {number} is already {trial.state.value}"
                )
            if mine and record.holder.get(number) != self._id:
                raise TrialError(f"trial {number} is with another driver by now")
            return number, [event]

        with self._lock:
            return self._written(self._write(end))

    def configure(self, *, goal: Goal, strategy: Strategy) -> None:
        """Go on towards this goal, with this strategy."""
        wanted = blueprint.written(goal), blueprint.written(strategy)

        def change(record: Record) -> tuple[int, list[Event]]:
            if wanted == (record.goal, record.strategy):
                return 0, []
            return 0, [
                Configured(
                    None if wanted[0] == record.goal else wanted[0],
                    None if wanted[1] == record.strategy else wanted[1],
                )
            ]

        with self._lock:
            self._write(change)
            self.goal, self.strategy, self._read, self._new = goal, strategy, wanted, False

    # ---- leases ----

    def beat(self, number: int, lease: float, *, driver: str | None = None) -> None:
        """Keep a leased trial for so many seconds from now, if it is still with `driver`."""
        with self._lock:
            record = self._current()
            state = known(record, number).state.value
            if number not in record.leased:
                raise TrialError(
                    f"trial {number} has no lease that could be renewed: it is {state}"
                )
            if driver is not None and record.holder.get(number) != driver:
                raise TrialError(f"trial {number} is with another driver by now")
        self.log.beat([number], lease)
