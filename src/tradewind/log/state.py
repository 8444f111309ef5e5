"""Events -> trials: the state of a study is a fold over its log."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Set
from typing import Any

from tradewind.errors import FormatError, StudyPaused, TrialError
from tradewind.log.bulk import paused_gc
from tradewind.log.events import (
    Abandoned,
    Claimed,
    Configured,
    Confirming,
    Created,
    Enqueued,
    Event,
    Failed,
    FinalTested,
    FinalTrained,
    Finished,
    Paused,
    PlainData,
    Proposed,
    Requeued,
    Resumed,
    Spent,
    Started,
    Stopped,
)
from tradewind.log.log import Log
from tradewind.seeds import shared_data_seed, trial_seed
from tradewind.space import Space
from tradewind.types import FinishedTrial, Origin, State, Trial

OPEN = frozenset({State.WAITING, State.RUNNING})  # the states of a trial that has not ended


class StudyState:
    """What the log of a study says, as far as it has been read.

    - `trials` by number. Numbers below `claims` are taken, with a trial or without one yet.
    - `changed`: the number of each trial that an event added or changed, in order.
    - `queue`: enqueued configurations that nobody has taken, by place.
    - `holder`: the driver that claimed or started a trial.
    - `leased`: trials that their holder must keep a lease on. Without one they are lost.
    - `returned`: requeued trials that wait for any driver; `requeued`: those that ever were.
    - `stopped`: the stopping rule that ended the last search; None if another has begun.
    - `paused`: why and since when nothing may be started; None if trials may.
    - `confirming`: the latest finalists that were run again; None if there were none.
    - `looks`: every look at the test set, with its result if there is one.
    - `metric`: the name of the quality; None if it has none.
    - `initial`: the trials whose largest cost becomes the reference; None while all count."""

    def __init__(self, space: Space, *, seed: int, maximize: bool) -> None:
        self.space, self.seed = space, seed
        self.sign = 1.0 if maximize else -1.0
        self.data_seed = shared_data_seed(seed)
        self.position = self.claims = self.enqueued = 0
        self.created = 0.0
        self.first: Created | None = None  # the event that created the study
        self.goal: PlainData = {}
        self.strategy: PlainData = {}
        self.cost_name, self.per_training = "wall", False
        self.metric: str | None = None
        self.stopped: str | None = None
        self.paused: Paused | None = None
        self.confirming: Confirming | None = None
        self.looks: list[tuple[FinalTrained, FinalTested | None]] = []
        self.trials: dict[int, Trial] = {}
        self.changed: list[int] = []
        self.queue: dict[int, Enqueued] = {}
        self.holder: dict[int, str] = {}
        self.leased: set[int] = set()
        self.returned: set[int] = set()
        self.requeued: set[int] = set()
        self.handover: tuple[int, Mapping[str, Any]] = (-1, {})  # of the highest trial number
        self.initial: Set[int] | None = None
        self.has_folds = False
        self._design_open: set[int] = set()
        self._counts_late = False  # whether an abandoned trial that finishes may move the reference
        self._blank = self._blank_trial()
        self._taken: dict[int, Enqueued] = {}  # from the queue, until it is proposed
        self._finished_at: dict[int, int] = {}  # positions, until the first model proposal
        self._proposed_at: list[tuple[int, int]] = []  # position and number, in order

    @classmethod
    def of(cls, events: Iterable[Event]) -> StudyState:
        """The state that a log implies."""
        events = iter(events)
        first = next(events, None)
        if not isinstance(first, Created):
            raise FormatError(f"a log must begin with the study's creation, but got {first}")
        if first.seed < 0:
            raise FormatError(f"the seed of a study must be ≥ 0, but got {first.seed}")
        state = cls(Space.from_dict(first.space), seed=first.seed, maximize=first.maximize)
        state.apply([first])
        state.apply(events)
        return state

    @classmethod
    def read(cls, log: Log) -> StudyState:
        """The state that a whole log implies."""
        with paused_gc():
            return cls.of(log.read(0))

    @property
    def provisional(self) -> bool:
        """Whether the reference may still change: a trial of the initial design is open."""
        return self.initial is None or bool(self._design_open)

    def in_order(self) -> list[Trial]:
        """All trials by number."""
        return [self.trials[number] for number in sorted(self.trials)]

    def find(self, number: int, params: Mapping[str, Any] | None = None) -> Trial:
        """The trial with this number. If `params` are given, the trial must have them."""
        if number not in self.trials:
            raise TrialError(f"there is no trial {number} in this study")
        trial = self.trials[number]
        for name, value in (params or {}).items():
            if name not in trial.params or trial.params[name] != value:
                raise TrialError(
                    f"trial {number} of this study has other parameters: {dict(trial.params)}, "
                    f"but got {dict(params or {})}"
                )
        return trial

    def check_not_paused(self) -> None:
        """Raise `StudyPaused` if no trial may be started."""
        if self.paused is not None:
            why = f" ({self.paused.reason})" * bool(self.paused.reason)
            raise StudyPaused(
                f"a paused study starts no trials, and this one is paused{why}: "
                "call study.resume() to go on"
            )

    def proposed_since(self, position: int) -> list[int]:
        """The trials proposed at `position` or later."""
        recent = itertools.takewhile(lambda p: p[0] >= position, reversed(self._proposed_at))
        return [number for _, number in recent]

    def allows_size(self, train_size: Any) -> bool:
        """Whether a trial may have this training size beside its parameters."""
        if train_size is None or self.space.size_name is not None:
            return train_size is None
        number = isinstance(train_size, (int, float)) and not isinstance(train_size, bool)
        return number and 0.0 < train_size <= 1.0

    def apply(self, events: Iterable[Event]) -> None:
        """Apply the next events of the log. After an error this state must not be used any more."""
        for event in events:
            self._apply(event)
            self.position += 1

    def _apply(self, event: Event) -> None:
        match event:  # the most frequent events come first
            case Claimed(number, driver, enqueued):
                trial = self.trials.get(number)
                self._check(event, number <= self.claims and (trial is None or trial.state in OPEN))
                self.claims = max(self.claims, number + 1)
                self._hold(number, driver, leased=True)
                if enqueued is not None:
                    self._check(event, enqueued in self.queue)
                    self._taken[number] = self.queue.pop(enqueued)
            case Proposed():
                self._propose(event)
            case Started(number, driver, leased, at):
                self._change(event, State.RUNNING, {"driver": driver, "started": at})
                self.stopped = None
                self._hold(number, driver, leased=leased)
            case Finished(number, outcome, usage, at):
                changes = {**vars(outcome), "error": None, "usage": usage, "ended": at}
                self._end(event, State.FINISHED, changes, FinishedTrial)
                self.has_folds = self.has_folds or bool(outcome.folds)
                if self.initial is None:
                    self._finished_at[number] = self.position
            case Created():
                self._check(event, self.position == 0)
                self.goal, self.strategy, self.created = event.goal, event.strategy, event.at
                self.first, self.metric = event, event.metric
                self.cost_name, self.per_training = event.cost, event.per_training
                if event.data_seed is None:  # written by version 0.1
                    self._counts_late = True
                else:
                    self.data_seed = event.data_seed
                self._blank = self._blank_trial()
            case Configured(goal, strategy, metric):
                self.goal = self.goal if goal is None else goal
                self.strategy = self.strategy if strategy is None else strategy
                if metric is not None:
                    self.metric = metric
                    self.trials = {
                        n: altered(t, {"metric": metric}, type(t)) for n, t in self.trials.items()
                    }
                    self._blank = self._blank_trial()
            case Enqueued():
                self._check(event, self.allows_size(event.train_size))
                self.queue[self.enqueued] = event
                self.enqueued += 1
            case Failed(number, error, cost, penalize, usage, at):
                changes = {"error": error, "cost": cost, "penalized": penalize, "usage": usage}
                self._end(event, State.FAILED, changes | {"ended": at})
            case Abandoned(number, reason, cost, at):
                self._end(event, State.ABANDONED, {"error": reason, "cost": cost, "ended": at})
                if self.initial and number in self.initial and not self._counts_late:
                    self.initial = self.initial - {number}  # histories may refer to the old set
            case Spent(number, cost):
                trial = self.trials.get(number)
                self._check(event, trial is not None and trial.state is State.ABANDONED)
                assert trial is not None
                self.trials[number] = altered(trial, {"cost": cost})
                self.changed.append(number)
            case Requeued(number, _, retry, lost):
                before = self.trials.get(number, self._blank)
                again = {"retries": before.retries + retry, "losses": before.losses + lost}
                self._change(event, State.WAITING, {"started": None, **again})
                self._release(number)
                self.returned.add(number)
                self.requeued.add(number)
            case Stopped(reason):
                self.stopped = reason
            case Paused():
                self.paused = event
            case Resumed():
                self.paused = None
            case Confirming():
                finalists = [self.trials.get(number) for number in event.trials]
                ended = all(trial is not None and trial.finished for trial in finalists)
                self._check(event, ended and event.first <= self.claims)
                self.confirming = event
            case FinalTrained(number):
                trial = self.trials.get(number)
                self._check(event, trial is not None and trial.finished)
                self.looks.append((event, None))
            case FinalTested(look):
                self._check(event, look < len(self.looks) and self.looks[look][1] is None)
                self.looks[look] = (self.looks[look][0], event)

    def _end(
        self,
        event: Finished | Failed | Abandoned,
        to: State,
        changes: Mapping[str, Any],
        kind: type[Trial] = Trial,
    ) -> None:
        self._change(event, to, changes, kind)
        self._release(event.number)
        self._design_open.discard(event.number)

    def _change(
        self,
        event: Started | Finished | Failed | Abandoned | Requeued,
        to: State,
        changes: Mapping[str, Any],
        kind: type[Trial] = Trial,
    ) -> None:
        """Change a trial. One that has ended stays as it is, except that an abandoned one may still
        finish."""
        trial = self.trials.get(event.number)
        late = trial is not None and trial.state is State.ABANDONED and to is State.FINISHED
        self._check(event, trial is not None and (trial.state in OPEN or late))
        assert trial is not None
        self.trials[event.number] = altered(trial, {**changes, "state": to}, kind)
        self.changed.append(event.number)

    def _check(self, event: Event, possible: bool) -> None:
        if not possible:
            raise FormatError(f"event {self.position} of the log cannot have happened: {event}")

    def _hold(self, number: int, driver: str, *, leased: bool) -> None:
        self.returned.discard(number)
        self.holder[number] = driver
        (self.leased.add if leased else self.leased.discard)(number)

    def _release(self, number: int) -> None:
        self.returned.discard(number)
        self.holder.pop(number, None)
        self.leased.discard(number)

    def _propose(self, event: Proposed) -> None:
        number = event.number
        self._check(event, number < self.claims and number not in self.trials)
        wanted = self._taken.pop(number, None)
        if event.origin is Origin.ENQUEUED:
            asked = (event.params, event.train_size)
            as_wanted = wanted is not None and asked == (wanted.params, wanted.train_size)
            self._check(event, as_wanted)
        size: Any = 1.0 if event.train_size is None else event.train_size
        if self.space.size_name is not None:
            size = event.params.get(self.space.size_name, 1.0)
        self._check(event, self.allows_size(event.train_size))
        self._check(event, isinstance(size, (int, float)) and 0.0 < size <= 1.0)
        proposed = {
            "number": number,
            "params": event.params,
            "origin": event.origin,
            "seed": trial_seed(self.seed, number),
            "train_size": float(size),
            "expected_cost": event.expected_cost,
        }
        self.trials[number] = altered(self._blank, proposed)
        self.changed.append(number)
        self._proposed_at.append((self.position, number))
        if event.handover and number >= self.handover[0]:
            self.handover = (number, event.handover)
        if self.initial is None and event.origin is Origin.MODEL:
            self._close_design(event)

    def _blank_trial(self) -> Trial:
        """What all trials of the study have in common, as a trial."""
        return Trial(
            -1,
            {},
            State.WAITING,
            Origin.DESIGN,
            -1,
            data_seed=self.data_seed,
            size_name=self.space.size_name,
            cost_name=self.cost_name,
            per_training=self.per_training,
            metric=self.metric,
        )

    def _close_design(self, first: Proposed) -> None:
        """A model has made its first proposal: the trials before it are the initial design, whose
        largest cost may become the reference."""
        states = {n: t.state for n, t in self.trials.items()}
        gone = () if self._counts_late else (State.ABANDONED,)
        earlier = {n for n in range(first.number) if states.get(n) not in gone}
        self._design_open = {n for n in earlier if states.get(n, State.WAITING) in OPEN}
        self.initial = earlier | {n for n, at in self._finished_at.items() if at < first.seen}
        self._finished_at = {}


def altered(trial: Trial, changes: dict[str, Any], kind: type[Trial] = Trial) -> Trial:
    """The trial with some changes. `dataclasses.replace` takes ten times as long, and a study with
    many trials makes many copies."""
    copy = object.__new__(kind)
    object.__setattr__(copy, "__dict__", vars(trial) | changes)
    return copy
