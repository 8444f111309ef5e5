"""The session: the only writer of a study's log. It proposes trials and records what becomes of
them.

Any number of sessions, in any number of processes, may share a log.
"""

from __future__ import annotations

import os
import platform
import secrets
import time
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any, TypeVar

from tradewind.engine import contention
from tradewind.engine.contention import Request
from tradewind.engine.journal import Journal
from tradewind.engine.plan import Plan, in_words
from tradewind.engine.propose import Proposer
from tradewind.engine.rivals import best_at_size, warn_if_data_changed
from tradewind.errors import TrialError
from tradewind.goals import Goal
from tradewind.log.bulk import paused_gc
from tradewind.log.codec import as_stored
from tradewind.log.events import (
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
from tradewind.log.lock import Lock, locked
from tradewind.log.log import Log
from tradewind.log.perprocess import PerProcess
from tradewind.log.state import OPEN, StudyState, altered
from tradewind.optimizer.history import History
from tradewind.optimizer.strategies.strategy import Strategy
from tradewind.output import logger as _logger
from tradewind.runners.messages import shorten
from tradewind.seeds import queue_rng
from tradewind.types import Origin, Outcome, State, Trial, Usage

T = TypeVar("T")


class Session:
    """Proposes and records the trials of one study. Threads may share a session.

    If `goal` or `strategy` differs from the stored one, the study continues with the new one.
    Trials are returned as copies: changing their params changes nothing here.

    `held` are the trials whose leases a `Lookout` (lookout.py) renews. What changes when other
    drivers write to the same log is in contention.py."""

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
        self.plan = Plan.of(goal, strategy)
        goal_data, strategy_data = self.plan.data
        self._new_goal = goal_data != state.goal  # whether it is still to be written
        self._new_strategy = strategy_data != state.strategy
        self._held, self.searches = PerProcess(dict[int, float]), PerProcess(list[str])
        self.journal, self.first = Journal(log, state), state.first
        self._warned = False  # that the data have changed
        self.spooled: list[str] = []  # files in which results of this session wait (spool.py)
        self.clock, self._lock, self._token = clock, Lock(), secrets.token_hex(4)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_token": secrets.token_hex(4)}  # a copy is another

    @property
    def id(self) -> str:
        """The name of this session in the log, which tells its process as long as there are
        `searches` here. A forked process has another one."""
        process = (*self.searches.value, "")[0]
        return f"{platform.node()}:{os.getpid()}:{self._token}{process}"

    @property
    def held(self) -> dict[int, float]:
        """The trials whose leases a `Lookout` renews, and for how many seconds each time. A
        pickled copy or a forked process holds none of them."""
        return self._held.value

    # ---- reading ----

    @property
    @locked
    def state(self) -> StudyState:
        """The state as it was last read. Do not change it."""
        return self.journal.latest().state

    @locked
    def trials(self) -> list[Trial]:
        """All trials by number."""
        return _copies(self.journal.read().state)

    @locked
    def trial(self, number: int) -> Trial:
        return _copy(self.journal.read().state.find(number))

    @locked
    def snapshot(self, *, by: str | None = None) -> tuple[list[Trial], History]:
        """All trials by number, and what a strategy would know of them now. `by` names the cost
        that counts, None for that of the study."""
        proposer = self.journal.read()
        return _copies(proposer.state), _history(proposer, by)

    @locked
    def history(self, *, by: str | None = None) -> History:
        """What a strategy would know now; `by` as in `snapshot`."""
        return _history(self.journal.read(), by)

    @locked
    def read_state(self) -> StudyState:
        """The state, up to date with the log. Do not change it."""
        return self.journal.read().state

    @locked
    def with_rival(self, trial: Trial) -> Trial:
        """The trial with the folds that it has to beat, as far as the log has been read."""
        proposer = self.journal.latest()
        if not proposer.state.has_folds:
            return trial
        rival = best_at_size(proposer, trial.train_size, self.plan.goal, self.plan.strategy)
        return replace(trial, rival=rival)

    @locked
    def use(self, journal: Journal) -> None:
        """Continue with this journal, and hold none of its trials."""
        self.journal, self.log = journal, journal.log
        self.held.clear()

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
        `keep`, a `Lookout` renews it. Without `start`, the trial waits for `start(number)`."""
        trial = self._ask(Request(max_cost, lease, keep, start))
        assert trial is not None
        return trial

    def ask_waiting(self, *, lease: float | None, keep: bool, start: bool) -> Trial | None:
        """The next trial that waits to be run, requeued or enqueued; None if there is none."""
        return self._ask(Request(None, lease, keep, start, new=False))

    @locked
    def _ask(self, request: Request) -> Trial | None:
        number, was_refused = None, False
        while number is None:
            state = self.journal.read().state
            state.check_not_paused()
            if self.change_plan(state):
                continue
            others = state.leased - self.held.keys()
            lost = contention.find_lost(self, state, others) if others else []
            if not lost or contention.requeue(self, state, lost):
                if not (request.new or self._returned(state) or state.queue):
                    return None
                # After a lost race, claim first: otherwise a driver that writes all the time
                # would have every proposal refused.
                number = self._take(state, lost, request, claim_first=was_refused)
                was_refused = True
        return self._trial_now(number)

    def _take(
        self, state: StudyState, lost: list[int], request: Request, *, claim_first: bool
    ) -> int | None:
        """Write the next trial and return its number, or None if another driver was faster."""
        at = state.position  # computing a proposal takes time, and the state may move on meanwhile
        number, events = self._next_waiting(state, request)
        if events is None:
            me = self.id
            unproposed = [*lost, *(n for n, by in state.holder.items() if by == me)]
            number = min((n for n in unproposed if n not in state.trials), default=state.claims)
            if claim_first or any(by != me for by in state.holder.values()):
                return contention.claim_and_propose(self, number, request, at)
            events = [Claimed(number, me), self.propose(number, request)]
        seconds = request.lease if request.lease is not None or request.start else contention.CLAIM
        lease = None if seconds is None else (number, seconds)
        if not self.journal.append(
            [*events, *self.start_events(number, request)], at=at, lease=lease
        ):
            return None
        if request.keep and request.lease is not None:
            self.held[number] = request.lease
        return number

    def _next_waiting(self, state: StudyState, request: Request) -> tuple[int, list[Event] | None]:
        """The trial that waits to be run, and the events that take it; None if there is none."""
        if returned := self._returned(state):
            number = min(returned)
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

    def _returned(self, state: StudyState) -> set[int]:
        """The requeued trials, without those that still run here: another driver requeued them
        because this one did not renew their leases for a while."""
        return state.returned - self.held.keys()

    def propose(self, number: int, request: Request) -> Proposed:
        """Compute the proposal of a trial from the log as it was last read."""
        goal, strategy = self.plan.goal, self.plan.strategy
        proposer = self.journal.latest()
        return proposer.propose(number, goal, strategy, max_cost=request.max_cost)

    @locked
    def start(self, number: int, *, leased: bool) -> Trial:
        """Record that a trial which waits for this session has begun."""

        def begin(state: StudyState) -> tuple[None, list[Event]]:
            state.check_not_paused()
            if state.holder.get(number) != self.id:
                raise TrialError(f"trial {number} is no longer held by this session")
            return None, [Started(number, self.id, leased, self.clock())]

        self.journal.write(begin)
        return self._trial_now(number)

    def start_events(self, number: int, request: Request) -> list[Event]:
        """The event that starts a trial, unless it is to be started later."""
        leased = request.lease is not None
        return [Started(number, self.id, leased, self.clock())] if request.start else []

    @locked
    def change_goal(self, goal: Goal) -> None:
        """Continue the study with this goal, and with whatever strategy the log has."""
        plan = self.plan.with_goal(goal)
        new = plan.data[0]
        self.journal.write(lambda state: (None, [Configured(new)] if state.goal != new else []))
        self.plan, self._new_goal = plan, False

    def change_plan(self, state: StudyState) -> bool:
        """Write a plan that the log has never had, or take over what another driver has changed.
        True if the log must be read again."""
        if self._new_goal or self._new_strategy:
            change = self.plan.change(state, goal=self._new_goal, strategy=self._new_strategy)
            if change is None or self.journal.append([change], at=state.position):
                self._new_goal = self._new_strategy = False
            if change is not None:
                return True
        if self.plan.data == (state.goal, state.strategy):
            return False
        before, self.plan = self.plan.data, self.plan.as_in(state)
        for what, old, new in zip(("goal", "strategy"), before, self.plan.data, strict=True):
            if new != old:
                _logger.warning("the %s of this study is now: %s", what, in_words(new))
        return False

    # ---- reporting ----
    # With `mine`, a report is refused if another driver holds the trial by now. With `params`, it
    # is refused if the trial has other parameters. Repeating a report changes nothing.

    def finish(
        self,
        number: int,
        outcome: Outcome,
        usage: Usage | None = None,
        *,
        params: Mapping[str, Any] | None = None,
        came: float | None = None,
    ) -> Trial:
        """Record the outcome of a trial. An abandoned trial may still finish, once; if `came` says
        when the outcome came, only if it was abandoned later."""
        event = Finished(number, outcome, usage, self.clock() if came is None else came)
        return self._end(event, OPEN | {State.ABANDONED}, params=params, came=came)

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
        event = Failed(number, shorten(error), cost, penalize, usage, self.clock())
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
        event = Abandoned(number, shorten(reason), cost, self.clock())
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
        return self._end(Requeued(number, shorten(reason), retry), mine=mine, params=params)

    def lose(self, number: int, reason: str) -> Trial:
        """Record that the worker of a trial died: the trial is run again, but not forever."""
        event = contention.loss_event(self.trial(number), shorten(reason), self.clock())
        return self._end(event, mine=True)

    @locked
    def _end(
        self,
        event: Finished | Failed | Abandoned | Requeued,
        allowed: frozenset[State] = OPEN,
        *,
        mine: bool = False,
        params: Mapping[str, Any] | None = None,
        came: float | None = None,
    ) -> Trial:
        number = event.number

        def end(state: StudyState) -> tuple[None, list[Event]]:
            trial = state.find(number, params)
            if isinstance(event, Requeued) and number in state.returned:
                return None, []
            if _is_recorded(trial, event):  # told again: perhaps the store's answer was lost
                return None, []
            late = came is not None and trial.ended is not None and came > trial.ended
            if trial.state not in allowed or late:
                raise TrialError(
                    f"a trial ends once, but trial {number} is already {trial.state.value}"
                )
            if mine and state.holder.get(number) != self.id:
                raise TrialError(f"another driver holds trial {number} by now")
            return None, [event]

        self.journal.write(end)
        self.held.pop(number, None)
        if not self._warned and getattr(getattr(event, "usage", None), "data", None) is not None:
            trials = self.journal.latest().state.trials
            self._warned = warn_if_data_changed(trials[number], reversed(trials.values()))
        return self._trial_now(number)

    @locked
    def decline(self, number: int, reason: str) -> None:
        """Do without a trial that waits for this session: abandon it if it is a new proposal, and
        put it back into the queue if somebody else may want it."""

        def end(state: StudyState) -> tuple[None, list[Event]]:
            if state.holder.get(number) != self.id:
                return None, []
            if state.trials[number].origin is Origin.ENQUEUED or number in state.requeued:
                return None, [Requeued(number, reason, retry=False)]
            return None, [Abandoned(number, reason, at=self.clock())]

        self.held.pop(number, None)
        self.journal.write(end)

    def _trial_now(self, number: int) -> Trial:
        return _copy(self.journal.latest().state.find(number))

    # ---- adding ----

    @locked
    def enqueue(self, params: Mapping[str, Any], train_size: float | None = None) -> None:
        """Put a configuration into the queue; parameters left out are drawn at random."""

        def entry(state: StudyState) -> tuple[None, list[Event]]:
            rng = queue_rng(state.seed, state.enqueued)
            return None, [Enqueued(state.space.complete(params, rng=rng), train_size)]

        self.journal.write(entry)

    @locked
    def add(
        self,
        params: Mapping[str, Any],
        result: Outcome | Finished | Failed,
        *,
        train_size: float | None = None,
    ) -> Trial:
        """Record a trial that was evaluated elsewhere. An event gets the number of the trial."""
        config = self.state.space.validate(params)
        new = Finished(0, result, at=self.clock()) if isinstance(result, Outcome) else result
        end = as_stored(new)

        def entry(state: StudyState) -> tuple[int, list[Event]]:
            number, seen = state.claims, state.position
            proposed = Proposed(number, config, Origin.ADDED, seen, train_size=train_size)
            return number, [Claimed(number), proposed, replace(end, number=number)]

        return self._trial_now(self.journal.write(entry))

    @locked
    def record(self, decide: Callable[[StudyState], tuple[T, list[Event]]]) -> T:
        """Append the events that `decide` makes of the state, and return its result."""
        return self.journal.write(decide)


def _is_recorded(trial: Trial, event: Event) -> bool:
    """Whether a trial has ended exactly like this."""
    match event:
        case Finished(_, outcome, usage):
            same = all(getattr(trial, name) == value for name, value in vars(outcome).items())
            return trial.state is State.FINISHED and same and trial.usage == usage
        case Failed(_, error, _, _, usage):
            return trial.state is State.FAILED and trial.error == error and trial.usage == usage
        case Abandoned(_, reason):
            return trial.state is State.ABANDONED and trial.error == reason
    return False


def _history(proposer: Proposer, by: str | None) -> History:
    """The history with all its arrays made: another thread may change the table afterwards."""
    return replace(proposer.history(proposer.state.claims, by=by))


def _copies(state: StudyState) -> list[Trial]:
    with paused_gc():
        return [_copy(trial) for trial in state.in_order()]


def _copy(trial: Trial) -> Trial:
    attributes = deepcopy(trial.attributes) if trial.attributes else {}
    copies = {"params": dict(trial.params), "costs": dict(trial.costs), "attributes": attributes}
    return altered(trial, copies, type(trial))
