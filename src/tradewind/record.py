"""Events -> trials: the state of a study as a fold over its log."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from tradewind.errors import FormatError
from tradewind.events import (
    Abandoned,
    Claimed,
    Configured,
    Created,
    Data,
    Enqueued,
    Event,
    Failed,
    Finished,
    Proposed,
    Requeued,
    Started,
)
from tradewind.history import History, Mark, Rows, alike, data_seed, trial_seed
from tradewind.space import Space
from tradewind.types import Config, Origin, State, Trial

OPEN = frozenset({State.WAITING, State.RUNNING})  # states of a trial that may still end


class Record:
    """The state of a study as a fold over its log.

    A trial is held by the driver that claimed or started it. `leased` are the numbers whose holder
    must keep a lease on them: claims without a proposal, trials that wait to be started by their
    driver, and running ones that were started so. `returned` are trials that wait for anybody."""

    def __init__(self, space: Space, *, seed: int, maximize: bool) -> None:
        self.space, self.seed = space, seed
        self.sign = 1.0 if maximize else -1.0
        self.position = 0
        self.claims = 0
        self.created = 0.0
        self.goal: Data = {}
        self.strategy: Data = {}
        self.trials: dict[int, Trial] = {}
        self.queue: dict[int, Enqueued] = {}  # by place: what was not yet claimed
        self.enqueued = 0
        self._taken: dict[int, Enqueued] = {}  # from the queue, by number, until it is proposed
        self.holder: dict[int, str] = {}
        self.leased: set[int] = set()
        self.returned: set[int] = set()
        self._rows = Rows(space)
        self._data_seed = data_seed(seed)
        self._handover: tuple[int, Mapping[str, Any]] = (-1, {})  # of the highest number
        self._first: Proposed | None = None  # the first proposal by a model
        self._designed = 0
        self._proposals: list[tuple[int, int]] = []  # position and number, in order

    @classmethod
    def of(cls, created: Created) -> Record:
        """The state of a study of which nothing but this event has been read."""
        if created.seed < 0:
            raise FormatError(f"the seed of a study is at least 0, but got {created.seed}")
        space = Space.from_dict(created.space)
        record = cls(space, seed=created.seed, maximize=created.maximize)
        record.apply([created])
        return record

    def apply(self, events: Iterable[Event]) -> None:
        """Read on. After any error the record is of no more use."""
        for event in events:
            self._apply(event)
            self.position += 1

    def _apply(self, event: Event) -> None:
        match event:
            case Created(_, goal, strategy):
                self.goal, self.strategy, self.created = goal, strategy, event.at
            case Configured(goal, strategy):
                self.goal = self.goal if goal is None else goal
                self.strategy = self.strategy if strategy is None else strategy
            case Enqueued():
                self._check(event, self.fits(event.train_size))
                self.queue[self.enqueued] = event
                self.enqueued += 1
            case Claimed(number, driver, enqueued):
                known = self.trials.get(number)
                self._check(event, number <= self.claims and (known is None or known.state in OPEN))
                self.claims = max(self.claims, number + 1)
                self._hold(number, driver, leased=True)
                if enqueued is not None:
                    self._check(event, enqueued in self.queue)
                    self._taken[number] = self.queue.pop(enqueued)
            case Proposed():
                self._propose(event)
            case Started(number, driver, leased, at):
                self._change(event, State.RUNNING, driver=driver, started=at)
                self._hold(number, driver, leased=leased)
            case Finished(number, outcome, usage, at):
                self._change(
                    event,
                    State.FINISHED,
                    value=outcome.value,
                    cost=outcome.cost,
                    folds=outcome.folds,
                    raced=outcome.raced,
                    error=None,
                    usage=usage,
                    ended=at,
                )
                self._check(event, 0.0 < outcome.share <= 1.0)
                self._let_go(number)
                self._rows.finish(number, outcome, self.position)
            case Failed(number, error, cost, penalize, usage, at):
                self._change(event, State.FAILED, error=error, cost=cost, usage=usage, ended=at)
                self._let_go(number)
                self._rows.mark(number, Mark.FAILED if penalize else Mark.IGNORED)
            case Abandoned(number, reason, cost, at):
                self._change(event, State.ABANDONED, error=reason, cost=cost, ended=at)
                self._let_go(number)
                self._rows.mark(number, Mark.IGNORED)
            case Requeued(number, _, retry, lost):
                self._change(event, State.WAITING, started=None)
                back = self.trials[number]
                self.trials[number] = replace(
                    back, retries=back.retries + retry, losses=back.losses + lost
                )
                self._let_go(number)
                self.returned.add(number)

    def _change(
        self, event: Started | Finished | Failed | Abandoned | Requeued, to: State, **changes: Any
    ) -> None:
        """A trial that was given up may still finish; otherwise, what has ended stays as it is."""
        trial = self.trials.get(event.number)
        late = trial is not None and trial.state is State.ABANDONED and to is State.FINISHED
        self._check(event, trial is not None and (trial.state in OPEN or late))
        assert trial is not None
        self.trials[event.number] = replace(trial, state=to, **changes)

    def _check(self, event: Event, possible: bool) -> None:
        if not possible:
            raise FormatError(f"event {self.position} of the log cannot have happened: {event}")

    def _hold(self, number: int, driver: str, *, leased: bool) -> None:
        self.returned.discard(number)
        self.holder[number] = driver
        (self.leased.add if leased else self.leased.discard)(number)

    def _let_go(self, number: int) -> None:
        self.returned.discard(number)
        self.holder.pop(number, None)
        self.leased.discard(number)

    def _propose(self, event: Proposed) -> None:
        self._check(event, event.number < self.claims and event.number not in self.trials)
        asked = self._taken.pop(event.number, None)
        same = asked is not None and (event.params, event.train_size) == (
            asked.params,
            asked.train_size,
        )
        self._check(event, event.origin is not Origin.ENQUEUED or same)
        size: Any = 1.0 if event.train_size is None else event.train_size
        if self.space.size_name is not None:
            size = event.params.get(self.space.size_name, 1.0)
        self._check(event, self.fits(event.train_size) and isinstance(size, (int, float)))
        self.trials[event.number] = Trial(
            number=event.number,
            params=event.params,
            state=State.WAITING,
            origin=event.origin,
            seed=trial_seed(self.seed, event.number),
            train_size=float(size),
            expected_cost=event.expected_cost,
            data_seed=self._data_seed,
            size_name=self.space.size_name,
        )
        self._rows.add(event.number, event.params, float(size))
        self._proposals.append((self.position, event.number))
        self._designed += event.origin is Origin.DESIGN
        if event.origin is Origin.MODEL and self._first is None:
            self._first = event
        if event.handover and event.number >= self._handover[0]:
            self._handover = (event.number, event.handover)

    def fits(self, train_size: Any) -> bool:
        """Whether a trial may have this training size beside its parameters."""
        if train_size is None or self.space.size_name is not None:
            return train_size is None
        number = isinstance(train_size, (int, float)) and not isinstance(train_size, bool)
        return number and 0.0 < train_size <= 1.0

    def in_order(self) -> list[Trial]:
        """All trials by number."""
        return [self.trials[number] for number in sorted(self.trials)]

    def alike_since(self, config: Config, position: int) -> bool:
        """Whether a trial was proposed at `position` or later that is nearly `config`."""
        recent = [
            number
            for at, number in itertools.takewhile(
                lambda p: p[0] >= position, reversed(self._proposals)
            )
        ]
        if not recent:
            return False
        row = self.space.encode([config])
        return bool(alike(row, self._rows.of(recent), self.space.columns)[0])

    def history(self, number: int, *, max_cost: float | None = None) -> History:
        """What is known when trial `number` is proposed, to cost no more than `max_cost`."""
        return self._rows.history(
            seed=self.seed,
            number=number,
            sign=self.sign,
            designed=self._designed,
            handover=self._handover[1],
            first=self._first,
            max_cost=max_cost,
        )
