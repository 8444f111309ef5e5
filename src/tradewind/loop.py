"""The one loop: propose -> submit -> wait -> record. All that is written to a log is written here.

A proposal is a pure function of the space, the goal, the strategy, the seed, the trial number and
the log that it saw. `Driver.ask` writes the number down first, so that any number of drivers on
one log never compute the same trial.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from tradewind.errors import TrialError
from tradewind.events import Claimed, Enqueued, Event, Failed, Finished, Proposed
from tradewind.goals import Goal
from tradewind.history import History, Record, proposal_rng, queue_rng
from tradewind.lock import Lock
from tradewind.log.log import Conflict, Log
from tradewind.runners.run import Failure
from tradewind.runners.runner import Runner
from tradewind.space import Space
from tradewind.strategies.strategy import Strategy
from tradewind.types import Origin, Outcome, State, Trial


@lru_cache(maxsize=1)
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def one_blas_thread() -> AbstractContextManager[Any]:
    """Linear algebra on one thread: quicker at this size, and the same to the bit on replay."""
    limit: AbstractContextManager[Any] = _blas().limit(limits=1)
    return limit


class Driver:
    """A writer of one study's log, with the state that the log implies. Threads may share it.

    A trial that it gives has params of its own: to change them changes nothing here."""

    def __init__(
        self, log: Log, space: Space, *, goal: Goal, strategy: Strategy, seed: int, maximize: bool
    ) -> None:
        self.log, self.space, self.goal, self.strategy = log, space, goal, strategy
        self._record = Record(space, seed=seed, maximize=maximize)
        self._lock = Lock()

    # ---- reading ----

    def trials(self) -> list[Trial]:
        """All trials by number."""
        with self._lock:
            return [_own(trial) for trial in self._current().in_order()]

    def trial(self, number: int) -> Trial:
        """The trial with this number."""
        with self._lock:
            return _own(_known(self._current(), number))

    def state(self) -> tuple[list[Trial], History]:
        """All trials by number, and what a strategy would know of them now."""
        with self._lock:
            return self.trials(), self._record.history(self._record.claims)

    def _current(self) -> Record:
        """The state, up to date with the log."""
        self._record.apply(self.log.read(self._record.position))
        return self._record

    # ---- writing ----

    def ask(self) -> Trial:
        """The next of the queue, or else a proposal, under the next number."""
        with self._lock:
            number = self._write(_claim)
            record = self._current()
            if number not in record.trials:
                self.log.append([self._propose(record, number)])
            return self.trial(number)

    def _propose(self, record: Record, number: int) -> Proposed:
        rng = proposal_rng(record.seed, number)
        with one_blas_thread():
            proposal = self.strategy.propose(self.space, self.goal, record.history(number), rng=rng)
        config = self.space.validate(proposal.params)  # strategies may be the user's own
        handover = dict(proposal.handover)
        return Proposed(number, config, proposal.origin, record.position, handover)

    def enqueue(self, params: Mapping[str, Any]) -> None:
        """Put a configuration, completed where it leaves something open, into the queue."""

        def entry(record: Record) -> tuple[int, list[Event]]:
            place = record.enqueued
            config = self.space.complete(params, rng=queue_rng(record.seed, place))
            return place, [Enqueued(config)]

        with self._lock:
            self._write(entry)

    def add(self, params: Mapping[str, Any], outcome: Outcome) -> Trial:
        """A trial that is finished already."""
        config = self.space.validate(params)

        def done(record: Record) -> tuple[int, list[Event]]:
            number, seen = record.claims, record.position
            proposed = Proposed(number, config, Origin.ADDED, seen)
            return number, [Claimed(number), proposed, Finished(number, outcome)]

        with self._lock:
            return self.trial(self._write(done))

    def finish(self, number: int, result: Outcome | Failure) -> Trial:
        """Record what became of a running trial."""

        def done(record: Record) -> tuple[int, list[Event]]:
            trial = _known(record, number)
            if trial.state is not State.RUNNING:
                raise TrialError(
                    f"a trial is told once, but trial {number} is already {trial.state.value}"
                )
            if isinstance(result, Outcome):
                return number, [Finished(number, result)]
            return number, [Failed(number, result.error, result.cost)]

        with self._lock:
            return self.trial(self._write(done))

    def _write(self, events: Callable[[Record], tuple[int, list[Event]]]) -> int:
        """Append what `events` makes of the state, and return the number that it gives with it."""
        while True:
            record = self._current()
            number, made = events(record)
            try:
                self.log.append(made, expected=record.position)
            except Conflict:  # another driver was quicker: look again
                continue
            return number


def _claim(record: Record) -> tuple[int, list[Event]]:
    """The next number, together with what is first in the queue: that cannot get lost then."""
    number, seen = record.claims, record.position
    if not record.queue:
        return number, [Claimed(number)]
    place = min(record.queue)
    proposed = Proposed(number, record.queue[place], Origin.ENQUEUED, seen)
    return number, [Claimed(number, place), proposed]


def _known(record: Record, number: int) -> Trial:
    if number not in record.trials:
        raise TrialError(f"there is no trial {number} in this study")
    return record.trials[number]


def _own(trial: Trial) -> Trial:
    return replace(trial, params=dict(trial.params))


@dataclass
class Limits:
    """When a call of `optimize` starts no further trial."""

    n_trials: int | None = None
    timeout: float | None = None
    max_cost: float | None = None

    def __post_init__(self) -> None:
        self._deadline = None if self.timeout is None else time.monotonic() + self.timeout
        self._started, self._spent = 0, 0.0

    def start(self) -> None:
        self._started += 1

    def spend(self, trial: Trial) -> None:
        self._spent += trial.cost or 0.0

    @property
    def reached(self) -> bool:
        return (
            (self.n_trials is not None and self._started >= self.n_trials)
            or (self._deadline is not None and time.monotonic() >= self._deadline)
            or (self.max_cost is not None and self._spent >= self.max_cost)
        )


def run(
    driver: Driver,
    runner: Runner,
    limits: Limits,
    *,
    catch: tuple[type[BaseException], ...],
    stopped: Callable[[], bool],
    on_done: Callable[[Trial], None],
) -> None:
    """Evaluate trials until a limit is reached or `stopped()`, and record every one.

    An exception that is not among `catch` is recorded too, and then raised."""
    running = 0
    try:
        while True:
            while runner.free > 0 and not stopped() and not limits.reached:
                runner.submit(driver.ask())
                limits.start()
                running += 1
            if not running:
                return
            results = runner.wait()
            running -= len(results)
            # all are recorded before a callback or an objective may end the loop
            done = [driver.finish(trial.number, result) for trial, result in results]
            for trial in done:
                limits.spend(trial)
                on_done(trial)
            for _, result in results:
                raised = result.raised if isinstance(result, Failure) else None
                if raised is not None and not isinstance(raised, catch):
                    raise raised
    finally:
        runner.close()
