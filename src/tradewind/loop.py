"""The one loop: propose -> submit -> wait -> record, until a limit is reached.

Workers never wait for a proposal: where there are several, one trial is proposed ahead. All time
here is the workers' own, which may be virtual.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeVar

from tradewind.budget import Budget, Limits, Running
from tradewind.driver import Driver
from tradewind.errors import (
    FormatError,
    NoSuchStudy,
    StorageError,
    TrialError,
    TrialFailed,
    WorkerError,
)
from tradewind.heart import Heart
from tradewind.interrupts import Interrupts, Terminated
from tradewind.runners.run import Failure, cause
from tradewind.runners.runner import Done, Lost, Stopped, Workers
from tradewind.types import Outcome, State, Trial

_logger = logging.getLogger("tradewind")

T = TypeVar("T")

_ENDING = 0.05  # seconds between looks at trials that are being stopped
_PATIENCE = 30.0  # seconds in which a store is tried again


@dataclass(frozen=True)
class Policy:
    """What to do about failures, and how long a trial belongs to a driver that says nothing."""

    catch: tuple[type[BaseException], ...] = (Exception,)
    on_error: Literal["penalize", "ignore", "raise"] = "penalize"
    max_retries: int = 0
    lease: float = 30.0


class Watch(Protocol):
    """Somebody who looks on."""

    def started(self, running: int) -> None: ...
    def done(self, trial: Trial, running: int) -> None: ...


@dataclass
class Loop:
    """One search: a driver that proposes and records, and the workers that evaluate."""

    driver: Driver
    workers: Workers
    limits: Limits
    policy: Policy
    stopped: Callable[[], bool]
    watch: Watch
    _running: dict[int, Running] = field(default_factory=dict)  # by number
    _ahead: Trial | None = None
    _started: int = 0
    _nothing_fits: bool = False

    def __post_init__(self) -> None:
        self._budget = Budget(self.limits)
        self._interrupts = Interrupts(self._running)

    def run(self) -> None:
        """Evaluate trials until a limit is reached or `stopped()`, and record every one."""
        reason, again = "the search ended while it ran", False
        with self._interrupts:
            try:
                with Heart(self.driver.log, self._held, self.policy.lease):
                    self._search()
            except KeyboardInterrupt:
                reason = "interrupted"
                raise
            except (WorkerError, Terminated) as error:
                reason, again = str(error), True
                raise
            finally:
                self._interrupts.ended = True
                try:
                    self.workers.close()
                finally:
                    self._leave(reason, again)

    def _search(self) -> None:
        if self.limits.timeout is not None or self.limits.max_cost is not None:
            self._budget.learn(_patiently(self.driver.trials))
        while True:
            self._fill()
            if not self._running:
                if self._nothing_fits and not self._started:
                    _logger.warning("no trial was started: none fits into what is left")
                return
            self._prepare()
            self._take(self.workers.wait(self._patience()))
            self._enforce()

    def _held(self) -> list[int]:
        ahead, proposing = self._ahead, self.driver.proposing
        others = [] if ahead is None else [ahead.number]
        return [*list(self._running), *others, *([] if proposing is None else [proposing])]

    # ---- starting ----

    def _fill(self) -> None:
        if self.workers.synchronous and self._running:
            return
        while self.workers.free > 0 and self._goes_on():
            trial = self._next()
            if trial is None:
                return
            self._running[trial.number] = Running(trial, self.workers.now())
            self.driver.working.add(trial.number)
            self.workers.submit(self.driver.with_rival(trial), within=self._within())
            self.watch.started(len(self._running))

    def _goes_on(self) -> bool:
        """Whether another trial may be started."""
        n, seconds, cost = self.limits.n_trials, self._seconds(), self.limits.max_cost
        return not (
            self.stopped()
            or self._interrupts.count
            or self._nothing_fits
            or (n is not None and self._started >= n)
            or (seconds is not None and seconds <= 0)
            or (cost is not None and self._budget.spent >= cost)
        )

    def _seconds(self) -> float | None:
        """How many are left."""
        if self.limits.timeout is None:
            return None
        left = self.workers.opened + self.limits.timeout - self.workers.now()
        return left if left > 1e-9 * self.limits.timeout else 0.0  # less would not move a clock

    def _within(self) -> float | None:
        """How many seconds a trial has at most."""
        bounds = [b for b in (self._seconds(), self._budget.seconds) if b is not None]
        return min(bounds, default=None)

    def _left(self) -> float | None:
        running = list(self._running.values())
        return self._budget.left(running, self._seconds(), self.workers.now())

    def _lasts(self) -> float | None:
        """How many seconds the money lasts."""
        return self._budget.lasts(list(self._running.values()), self.workers.now())

    def _next(self) -> Trial | None:
        """The trial proposed ahead, or a new one; None if the next one would cost too much."""
        left, lease, trial, self._ahead = self._left(), self.policy.lease, self._ahead, None
        if trial is None and self._budget.hopeless(left):
            self._nothing_fits = True
            return None
        if trial is None:
            trial = _patiently(
                lambda: self.driver.ask(max_cost=left, lease=lease, kept=True, start=left is None)
            )
        number = trial.number
        if trial.state is State.WAITING:
            expected = self._budget.expected(trial)
            if left is not None and expected > left:
                reason = f"it would cost about {expected:.3g}, and {left:.3g} is left"
                self.driver.working.discard(number)
                _patiently(lambda: self.driver.decline(number, reason))
                self._nothing_fits = True
                return None
            try:
                trial = _patiently(lambda: self.driver.start(number, leased=True))
            except TrialError:  # proposed ahead so long ago that another driver has taken it
                self.driver.working.discard(number)
                return self._next()
        self._started += 1
        return trial

    def _prepare(self) -> None:
        """Propose one trial ahead while all workers are busy."""
        several = self.workers.slots > 1 and not self.workers.synchronous
        n, ahead = self.limits.n_trials, self._ahead is not None
        enough = n is not None and self._started + ahead >= n
        if several and not ahead and not enough and self.workers.free == 0 and self._goes_on():
            left, lease = self._left(), self.policy.lease
            if self._budget.hopeless(left):
                return
            self._ahead = _patiently(
                lambda: self.driver.ask(max_cost=left, lease=lease, kept=True, start=False)
            )
            self.driver.working.add(self._ahead.number)

    # ---- ending ----

    def _patience(self) -> float | None:
        """How long nothing has to be done unless a trial ends."""
        bounds = [b for b in (self._seconds(), self._lasts()) if b is not None]
        return (min(bounds) or _ENDING) if bounds else None

    def _enforce(self) -> None:
        """Stop what still runs when time or money is up."""
        if self._seconds() == 0.0:
            self.workers.stop(list(self._running), f"the timeout of {self.limits.timeout:g} s")
        if self._lasts() == 0.0:
            self.workers.stop(
                list(self._running), f"the limit of max_cost={self.limits.max_cost:g}"
            )

    def _take(self, results: list[Done]) -> None:
        """Record all that is done before a callback or an objective may end the search."""
        recorded: list[tuple[Done, float | None, Trial | None]] = []
        unrecorded: list[tuple[Done, StorageError]] = []
        for done in results:
            cost = self._budget.cost(done.result, done.usage)
            patience = 0.0 if unrecorded else _PATIENCE  # not for each of many
            try:
                recorded.append((done, cost, self._recorded(done, cost, patience)))
            except StorageError as error:
                unrecorded.append((done, error))
        if unrecorded:
            gave = [f"trial {done.trial.number} gave {done.result}" for done, _ in unrecorded]
            why = unrecorded[0][1]
            raise StorageError(f"{'; '.join(gave)}: this could not be recorded. {why}") from why
        for done in results:
            self._running.pop(done.trial.number, None)
            self.driver.working.discard(done.trial.number)
        if results and self.limits.max_cost is not None:  # less may be set aside for them now
            self._nothing_fits = False
        for done, cost, trial in recorded:
            self._budget.spend(done.result, cost, done.usage)
            if trial is not None:
                self.watch.done(trial, len(self._running))
        for done, _, trial in recorded:
            if isinstance(done.result, Failure):
                self._raise(done.result, ended=trial is not None)

    def _recorded(self, done: Done, cost: float | None, patience: float) -> Trial | None:
        """The trial, if it has ended: one that will run again has not."""
        try:
            return _patiently(lambda: self._record(done, cost), patience)
        except TrialError as error:
            trial = _patiently(lambda: self.driver.trial(done.trial.number))
            if _told(trial, done):
                return trial  # it had been written when the store gave no answer
            _logger.info("a result came too late: %s", error)
            return None

    def _record(self, done: Done, cost: float | None) -> Trial | None:
        number, failures = done.trial.number, done.trial.retries - done.trial.losses
        match done.result:
            case Outcome() as outcome:
                return self.driver.finish(number, outcome, done.usage)
            case Failure(error, raised=raised) as failure:
                if isinstance(raised, Terminated):
                    self.driver.requeue(number, str(raised), mine=True)
                    return None
                if isinstance(raised, KeyboardInterrupt) and self._interrupts.count > 1:
                    return self.driver.abandon(number, "interrupted", mine=True)
                if failures < self.policy.max_retries and self._caught(failure):
                    reason = cause(error)
                    return self._again(self.driver.requeue(number, reason, mine=True), reason)
                penalize = self.policy.on_error == "penalize"
                return self.driver.fail(
                    number, error, cost, done.usage, penalize=penalize, mine=True
                )
            case Lost(reason):
                return self._again(self.driver.lose(number, reason), reason)
            case Stopped(reason):
                return self.driver.abandon(number, f"stopped: {reason}", cost, mine=True)

    def _again(self, trial: Trial, reason: str) -> Trial | None:
        """None for a trial that will run again."""
        if trial.state is not State.WAITING:
            return trial
        self._started -= 1
        _logger.warning("trial %d runs again: %s", trial.number, reason)
        return None

    def _caught(self, failure: Failure) -> bool:
        return failure.raised is None or isinstance(failure.raised, self.policy.catch)

    def _raise(self, failure: Failure, *, ended: bool) -> None:
        raised = failure.raised
        if isinstance(raised, Terminated) or (raised and ended and not self._caught(failure)):
            raise raised
        if ended and self.policy.on_error == "raise":
            raise raised or TrialFailed(failure.error)

    def _leave(self, reason: str, again: bool) -> None:
        """Say what becomes of the trials that this search leaves behind: they are abandoned, or
        run `again` some time. Where that cannot be written, their leases run out."""
        ahead = [] if self._ahead is None else [self._ahead.number]
        self.driver.working -= {*ahead, *self._running}
        for number in (*ahead, *self._running):
            try:
                if number in ahead or again:
                    self.driver.requeue(number, reason, retry=number not in ahead, mine=True)
                else:
                    self.driver.abandon(number, reason, mine=True)
            except TrialError as error:
                _logger.info("trial %d is left as it is: %s", number, error)
            except StorageError as error:
                _logger.warning("trials are left to their leases: %s", error)
                return


def _told(trial: Trial, done: Done) -> bool:
    """Whether what is recorded of a trial is this."""
    match done.result:
        case Outcome() as outcome:
            told = Outcome(trial.value or 0.0, trial.cost, trial.folds, trial.raced, outcome.share)
            same = told == outcome
            return trial.finished and same and trial.usage == done.usage
        case Failure(error):
            return trial.error == error and trial.usage == done.usage
        case Lost(reason) | Stopped(reason):
            return trial.error is not None and reason in trial.error


def _patiently(work: Callable[[], T], patience: float = _PATIENCE) -> T:
    """Do it again while the store cannot be reached: trials that run must not be lost to that."""
    pause, until = 0.1, time.monotonic() + patience
    while True:
        try:
            return work()
        except (NoSuchStudy, FormatError):
            raise
        except StorageError as error:
            if time.monotonic() + pause > until:
                raise
            _logger.warning("trying again in %.2g s: %s", pause, error)
            time.sleep(pause)
            pause *= 2
