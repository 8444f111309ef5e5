"""The one loop: propose -> submit -> wait -> record. All that is written to a log is written here.

A proposal is a pure function of the space, the goal, the strategy, the seed, the trial number and
the log that it saw. `Driver.claim` writes the number down first, so that any number of drivers on
one log never compute the same trial.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tradewind.errors import TrialError
from tradewind.events import Claimed, Enqueued, Event, Failed, Finished, Proposed
from tradewind.goals import Goal
from tradewind.history import Record, proposal_rng
from tradewind.log.memory import Conflict, Log
from tradewind.runners.run import Failure
from tradewind.runners.serial import Runner
from tradewind.space import Space
from tradewind.strategies.strategy import Strategy
from tradewind.types import Origin, Outcome, Proposal, State, Trial


@lru_cache(maxsize=1)
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def one_blas_thread() -> AbstractContextManager[Any]:
    """Linear algebra on one thread: quicker at this size, and the same to the bit on replay."""
    limit: AbstractContextManager[Any] = _blas().limit(limits=1)
    return limit


class Driver:
    """A writer of one study's log, with the state that the log implies."""

    def __init__(
        self, log: Log, space: Space, *, goal: Goal, strategy: Strategy, seed: int, maximize: bool
    ) -> None:
        self.log, self.space, self.goal, self.strategy = log, space, goal, strategy
        self._record = Record(space, seed=seed, maximize=maximize)

    @property
    def record(self) -> Record:
        """The state, up to date with the log."""
        self._record.apply(self.log.read(self._record.position))
        return self._record

    def ask(self) -> Trial:
        """Claim the next number, propose its configuration, and write both down."""
        number, enqueued = self._claim()
        record = self.record
        seen = record.position
        proposal = self._proposal(record, number, enqueued)
        self._append(
            Proposed(number, proposal.params, proposal.origin, seen, dict(proposal.handover))
        )
        return self.record.trials[number]

    def _claim(self) -> tuple[int, Mapping[str, Any] | None]:
        while True:
            record = self.record
            number = record.claims
            place = min(record.queue, default=None)
            enqueued = None if place is None else record.queue[place]
            try:
                self.log.append([Claimed(number, place)], expected=record.position)
            except Conflict:  # another driver was quicker: look again
                continue
            return number, enqueued

    def _proposal(
        self, record: Record, number: int, enqueued: Mapping[str, Any] | None
    ) -> Proposal:
        rng = proposal_rng(record.seed, number)
        if enqueued is not None:
            return Proposal(self.space.complete(enqueued, rng=rng), Origin.ENQUEUED)
        with one_blas_thread():
            return self.strategy.propose(self.space, self.goal, record.history(number), rng=rng)

    def enqueue(self, params: Mapping[str, Any]) -> None:
        self._append(Enqueued(dict(params)))

    def add(self, params: Mapping[str, Any], outcome: Outcome) -> Trial:
        """A trial that is finished already."""
        config = self.space.validate(params)
        while True:
            record = self.record
            number = record.claims
            done: list[Event] = [
                Claimed(number),
                Proposed(number, config, Origin.ADDED, record.position),
                Finished(number, outcome),
            ]
            try:
                self.log.append(done, expected=record.position)
            except Conflict:
                continue
            return self.record.trials[number]

    def finish(self, number: int, result: Outcome | Failure) -> Trial:
        """Record what became of a running trial."""
        trial = self.record.trials.get(number)
        if trial is None:
            raise TrialError(f"there is no trial {number} in this study")
        if trial.state is not State.RUNNING:
            raise TrialError(
                f"a trial is told once, but trial {number} is already {trial.state.value}"
            )
        if isinstance(result, Outcome):
            self._append(Finished(number, result))
        else:
            self._append(Failed(number, result.error, result.cost))
        return self.record.trials[number]

    def _append(self, event: Event) -> None:
        self.log.append([event])


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
            for trial, result in runner.wait():
                running -= 1
                done = driver.finish(trial.number, result)
                limits.spend(done)
                on_done(done)
                raised = result.raised if isinstance(result, Failure) else None
                if raised is not None and not isinstance(raised, catch):
                    raise raised
    finally:
        runner.close()
