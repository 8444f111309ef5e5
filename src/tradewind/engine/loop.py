"""The one loop: propose -> submit -> wait -> record, until a limit is reached.

Workers never wait for a proposal: if there are several, one trial is proposed ahead. Time is the
workers' own, which may be virtual.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from tradewind import interrupts
from tradewind.engine import failures
from tradewind.engine.contention import this_process, warn_of_others
from tradewind.engine.failures import FailureTally, Policy
from tradewind.engine.limits import Budget, Limits, Prices, Running
from tradewind.engine.lookout import ENDED_ELSEWHERE, LOOK, Lookout
from tradewind.engine.session import Session
from tradewind.engine.signals import Signals
from tradewind.engine.spool import record_spooled, rescue
from tradewind.engine.steering import record_spent
from tradewind.engine.stopping import record_stop, why_stop
from tradewind.errors import StorageError, StudyPaused, TrialError, WorkerError
from tradewind.interrupts import Terminated
from tradewind.log.stalls import FINAL
from tradewind.optimizer.stopping import StoppingRule
from tradewind.output import logger as _logger
from tradewind.runners.messages import checked
from tradewind.runners.runner import Done, Failure, InProcess, Workers
from tradewind.types import Outcome, State, Trial

T = TypeVar("T")

_LONGEST_PAUSE = 30.0  # seconds before a store that does not answer is tried again
_SLICE = LOOK / 2  # seconds of one wait for workers, after which the lookout is asked


class Watch(Protocol):
    """Somebody who watches a search."""

    def started(self, running: int) -> None: ...
    def done(self, trial: Trial, running: int) -> None: ...


@dataclass
class Loop:
    """One search: a session that proposes and records, and workers that evaluate."""

    session: Session
    workers: Workers
    limits: Limits
    policy: Policy
    stopped: Callable[[], bool]
    watch: Watch
    rules: tuple[StoppingRule, ...] = ()
    signals: Signals = field(default_factory=Signals)
    _ended: int = 0
    _tally: FailureTally | None = None  # None while nothing has failed
    _running: dict[int, Running] = field(default_factory=dict)  # by number
    _ahead: Trial | None = None
    _started: int = 0
    _nothing_fits: bool = False
    _paused: bool = False  # when a trial was last wanted
    _ask_again_at: float = 0.0
    _enough: bool = False  # a rule has stopped the search
    _prices: Prices | None = None  # None while nobody has asked what trials cost
    _budget: Budget | None = None
    _unrecorded: list[Done] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lookout = Lookout(self.session, self.policy.lease, self._running, self.workers)

    def run(self) -> None:
        """Evaluate trials until a limit is reached, a rule says enough, or `stopped()`. Every trial
        is recorded."""
        reason, again = "the search ended while it ran", False
        self.session.searches.value.append(this_process() if self.session.log.spool else "")
        try:
            with self._lookout:
                self._search_or_end()
        except KeyboardInterrupt:
            reason = "interrupted"
            raise
        except (WorkerError, Terminated) as error:
            reason, again = str(error), True
            raise
        finally:
            self.signals.end()
            try:
                self.workers.close()
            finally:
                self._leave(reason, again)
                del self.session.searches.value[:1]

    def log_failures(self, *, shown: bool) -> None:
        """Log how many trials failed, and why, unless a bar has shown it."""
        if self._tally is not None and not shown:
            self._tally.log_summary(self._ended)

    def _search_or_end(self) -> None:
        """Search. If it was told to end while the store was away, that is how it ends."""
        try:
            try:
                self._search()
                if self.session.log.spool:
                    self._patiently(lambda: warn_of_others(self.session))
            except BaseException as error:
                self._keep_results(error)
                raise
        except StorageError as error:
            if interrupts.told():
                _logger.error("%s", error)
                interrupts.check()
            raise

    def _search(self) -> None:
        if self.session.log.spool:  # a study in memory has none
            self._patiently(lambda: record_spooled(self.session))
            self._patiently(lambda: warn_of_others(self.session))
        if self.limits.timeout is not None or self.limits.max_cost is not None:
            prices = self._patiently(self._known_prices)
            now = self.workers.now  # they are ready, however long they took to start
            self._budget = Budget(self.limits, prices, opened=now(), now=now)
        while True:
            self._fill()
            interrupts.check()
            if not self._running:
                if self._paused and self._may_start():
                    self._wait_while_paused()
                    continue
                if self._nothing_fits and not self._started and not self.limits.queued:
                    _logger.warning(
                        "no trial was started: none is expected to fit into the time or cost left"
                    )
                return
            self._propose_ahead()
            self._record_all(self._wait())
            self._stop_overdue()
            if over := self._lookout.over():
                self.workers.stop(over, ENDED_ELSEWHERE)

    # ---- starting ----

    def _fill(self) -> None:
        if self.workers.synchronous and self._running:
            return
        while self.workers.free > 0 and self._may_start():
            before = self.workers.now()
            trial = self._unless_paused(self._next)
            if trial is None:
                return
            if self._budget is not None and self._started == 1:  # the first has all the time
                self._budget.opened += self.workers.now() - before
            self._running[trial.number] = Running(trial, self.workers.now())
            within = None if self._budget is None else self._budget.seconds_for_one
            self.workers.submit(self.session.with_rival(trial), within=within)
            self.watch.started(len(self._running))

    def _may_start(self) -> bool:
        """Whether another trial may be started."""
        n = self.limits.n_trials
        return not (
            self.stopped()
            or self.signals.interrupts
            or interrupts.told()
            or self._nothing_fits
            or self._enough
            or (n is not None and self._started >= n)
            or (self._budget is not None and self._budget.is_used_up)
        )

    def _affordable(self) -> float | None:
        running = list(self._running.values())
        return None if self._budget is None else self._budget.affordable(running)

    def _next(self) -> Trial | None:
        """The trial proposed ahead, or a new one; None if the next one would cost too much.

        A trial that has not started yet stays in `_ahead`, so that it is requeued if the search
        ends now."""
        left = self._affordable()
        trial = self._ahead or self._ask(left, start=left is None)
        if trial is None:
            self._nothing_fits = True
            return None
        if trial.state is State.WAITING:
            self._ahead, number = trial, trial.number
            expected = 0.0 if self._budget is None else self._budget.prices.expected(trial)
            if left is not None and expected > left:
                reason = f"it would cost about {expected:.3g}, and {left:.3g} is left"
                self._patiently(lambda: self.session.decline(number, reason))
                self._ahead, self._nothing_fits = None, True
                return None
            try:
                trial = self._patiently(lambda: self.session.start(number, leased=True))
            except TrialError:  # its lease ran out, and another driver has taken it
                self._ahead = None
                self.session.held.pop(number, None)
                return self._next()
        self._ahead = None
        self._started += 1
        return trial

    def _ask(self, left: float | None, *, start: bool) -> Trial | None:
        """A trial that costs at most `left`; None if no trial does, or if only queued ones are
        wanted and there are none."""
        if self._budget is not None and self._budget.cannot_fit(left):
            return None
        lease, each = self.policy.lease, left
        if left is not None and self._budget is not None:
            each = left / self._budget.prices.trainings
        if self.limits.queued:
            ask = self.session.ask_waiting
            return self._patiently(lambda: ask(lease=lease, keep=True, start=start))
        return self._patiently(
            lambda: self.session.ask(max_cost=each, lease=lease, keep=True, start=start)
        )

    def _propose_ahead(self) -> None:
        """Propose one trial ahead while all workers are busy."""
        if self.workers.slots == 1 or self.workers.synchronous or self._ahead is not None:
            return
        if self.workers.free == 0 and self._may_start():
            self._ahead = self._unless_paused(lambda: self._ask(self._affordable(), start=False))

    def _unless_paused(self, ask: Callable[[], Trial | None]) -> Trial | None:
        """What `ask` returns; None if the study is paused."""
        if time.monotonic() < self._ask_again_at:
            return None
        try:
            trial = ask()
        except StudyPaused:
            if not self._paused:
                pause = self.session.state.paused
                why = f" ({pause.reason})" if pause is not None and pause.reason else ""
                _logger.warning("the study is paused%s: the search waits until it is resumed", why)
            self._paused, self._ask_again_at = True, time.monotonic() + LOOK
            return None
        if self._paused:
            _logger.warning("the study has been resumed")
        self._paused = False
        return trial

    def _wait_while_paused(self) -> None:
        interrupts.pause(LOOK if (left := self._next_deadline()) is None else min(left, LOOK))

    # ---- ending ----

    def _wait(self) -> list[Done]:
        """Wait for results. If the search was told to end, a trial without an outcome counts as
        interrupted, whatever its worker says."""
        left = self._next_deadline()
        if not isinstance(self.workers, InProcess):
            left = _SLICE if left is None else min(left, _SLICE)
        results = self._results(left)
        if interrupts.told():
            return [done for done in results if isinstance(done.result, Outcome)]
        return results

    def _results(self, timeout: float | None) -> list[Done]:
        """The results that have come back. A user's own runner may return anything."""
        ours = type(self.workers).__module__.startswith("tradewind.runners.")
        return [done if ours else checked(done) for done in self.workers.wait(timeout)]

    def _next_deadline(self) -> float | None:
        running = list(self._running.values())
        return None if self._budget is None else self._budget.next_deadline(running)

    def _stop_overdue(self) -> None:
        """Stop what still runs when time or money is up."""
        if self._budget is not None:
            reason = self._budget.overrun(list(self._running.values()))
            if reason is not None:
                self.workers.stop(list(self._running), reason)

    def _record_all(self, results: list[Done]) -> None:
        """Record all results before a callback or an objective may end the search."""
        recorded: list[tuple[Done, Trial | None]] = []
        self._unrecorded, came = list(results), self.session.clock()
        for done in results:
            recorded.append((done, self._record(done, came)))
            self._unrecorded.pop(0)
        for done in results:
            self._running.pop(done.trial.number, None)
            if self._budget is not None:
                self._budget.spend(done.result, done.usage)
            elif self._prices is not None and isinstance(done.result, Outcome):
                self._prices.learn(done.result, done.usage)
        if results and self.limits.max_cost is not None:
            self._nothing_fits = False  # less is set aside for running trials now
        for _, trial in recorded:
            if trial is not None:
                self._ended += 1
                self.watch.done(trial, len(self._running))
        for done, trial in recorded:
            if isinstance(done.result, Failure):
                failed = trial is not None and trial.state is State.FAILED
                failures.raise_if_due(self.policy, done.result, failed=failed)
        self._count_failures([trial for _, trial in recorded if trial is not None])
        if recorded and self.rules and not self._enough:
            self._ask_rules()

    def _count_failures(self, ended: list[Trial]) -> None:
        """End the search if the objective seems to be broken."""
        failed = [trial for trial in ended if trial.state is State.FAILED]
        if failed:
            tally = self._tally = self._tally or FailureTally()
            for trial in failed:
                tally.add(trial.error or "")
            self._patiently(lambda: tally.check(self.session, self.policy.give_up_after))

    def _ask_rules(self) -> None:
        """Start nothing more if a rule says that it is enough."""
        reason = self._patiently(lambda: why_stop(self.session, self.rules))
        if reason is not None:
            self._enough = True
            self._patiently(lambda: record_stop(self.session, reason))

    def _record(self, done: Done, came: float) -> Trial | None:
        """Record one result. Returns the trial if it has ended, and None if it will run again or
        if another driver has it."""
        try:
            return self._patiently(lambda: self._report(done, came))
        except TrialError as error:
            self.session.held.pop(done.trial.number, None)
            _logger.info("a result came too late: %s", error)
        with suppress(StorageError):
            cost = self._known_prices().cost_of(done.result, done.usage)
            return record_spent(self.session, done.trial.number, cost)
        return None

    def _report(self, done: Done, came: float) -> Trial | None:
        try:
            if isinstance(done.result, Outcome):
                return self.session.finish(done.trial.number, done.result, done.usage, came=came)
            trial = failures.report(self.session, self.policy, done, self._known_prices)
        except (TypeError, ValueError):  # an objective may write anything into its `Run`
            trial = failures.report(self.session, self.policy, checked(done), self._known_prices)
        if trial.state is State.WAITING:
            self._started -= 1
            return None
        return trial

    def _known_prices(self) -> Prices:
        """What trials have cost."""
        if self._prices is None:
            self._prices = Prices(self.session.read_state().trials.values())
        return self._prices

    def _keep_results(self, error: BaseException) -> None:
        """Keep what could not be recorded before the search ended with `error` in a file."""
        if isinstance(error, StorageError) and self.workers.slots > 1:
            with suppress(WorkerError):  # others may have ended while the store was away
                self._unrecorded += self._results(0.0)
        at = self.session.clock()
        results = failures.results_of(self._unrecorded, self.policy, self._prices, at=at)
        if results:
            for result in results if self.session.log.spool else ():  # do not abandon these
                self._running.pop(result.end.number, None)
            rescue(self.session, results, error)

    def _leave(self, reason: str, again: bool) -> None:
        """Abandon or requeue the trials that this search leaves behind. If that cannot be written,
        their leases run out."""
        ahead = [] if self._ahead is None else [self._ahead.number]
        left = [*ahead, *self._running]
        if again and self._running:
            count = len(self._running)
            which = "1 running trial goes" if count == 1 else f"{count} running trials go"
            _logger.warning("%s back to the queue: %s", which, reason)
        for number in left:
            self.session.held.pop(number, None)
        for number in left:
            try:
                if number in ahead or again:
                    self.session.requeue(number, reason, retry=False, mine=True)
                else:
                    self.session.abandon(number, reason, mine=True)
            except TrialError as error:
                _logger.info("trial %d is left as it is: %s", number, error)
            except StorageError as error:
                _logger.warning("the leases of unfinished trials will run out: %s", error)
                return

    def _patiently(self, work: Callable[[], T]) -> T:
        """Repeat `work` while the store cannot be reached, so that running trials are not lost."""
        pause, until = 0.1, time.monotonic() + self.policy.patience
        while True:
            try:
                return work()
            except FINAL:
                raise
            except StorageError as error:
                if time.monotonic() + pause > min(until, interrupts.give_up_at()):
                    raise
                _logger.warning("trying again in %.2g s: %s", pause, error)
                interrupts.pause(pause)
                pause = min(2.0 * pause, _LONGEST_PAUSE)
