"""What the log of a study implies for a trial. Sessions propose with it, and so does replay."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import lru_cache, partial
from typing import Any, ParamSpec, TypeVar

import numpy as np

from tradewind.bounds import LARGEST
from tradewind.errors import ConfigError
from tradewind.goals import Goal
from tradewind.log.events import Proposed
from tradewind.log.lock import Lock
from tradewind.log.state import StudyState
from tradewind.optimizer.belief import usual_costs
from tradewind.optimizer.history import History, TrialTable, alike
from tradewind.optimizer.strategies.strategy import Strategy
from tradewind.seeds import proposal_rng
from tradewind.space import Space
from tradewind.types import Array, Config, Origin, Proposal

P = ParamSpec("P")
T = TypeVar("T")

_blas_lock = Lock()  # the number of BLAS threads belongs to the whole process


@lru_cache(maxsize=1)
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def one_blas_thread() -> AbstractContextManager[Any]:
    """One thread for linear algebra: faster for small matrices, and exact on replay."""
    limit: AbstractContextManager[Any] = _blas().limit(limits=1)
    return limit


def single_threaded(work: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """Call `work` on one BLAS thread. No other thread of this process changes that meanwhile."""

    def call() -> T:
        with one_blas_thread():
            return work(*args, **options)

    return _blas_lock.hold(call)


class Proposer:
    """The state of a study, and its trials as arrays."""

    def __init__(self, state: StudyState) -> None:
        self.state = state
        self._table: TrialTable | None = None

    def history(
        self, number: int, *, max_cost: float | None = None, by: str | None = None
    ) -> History:
        """What is known when trial `number` is proposed, to cost at most `max_cost`. `by` names the
        cost that counts, None for that of the study."""
        state = self.state
        return self._updated_table().history(
            seed=state.seed,
            number=number,
            sign=state.sign,
            handover=state.handover[1],
            initial=state.initial,
            provisional=state.provisional,
            max_cost=max_cost,
            by=by,
        )

    def propose(
        self, number: int, goal: Goal, strategy: Strategy, *, max_cost: float | None = None
    ) -> Proposed:
        """The proposal of trial `number`: a pure function of the log as far as it has been read."""
        # a limit is in the cost of the study, which a goal with another cost does not model
        own_cost = goal.by is None or goal.by == self.state.cost_name
        limit = max_cost if own_cost else None
        history = self.history(number, max_cost=limit, by=goal.by)
        rng = proposal_rng(history.seed, number)
        space = self.state.space
        costs = partial(usual_costs, space, history, self.state.trials.values(), goal.by)
        goal = single_threaded(goal.with_spread, lambda: costs()[0])
        proposal = single_threaded(strategy.propose, space, goal, history, rng=rng)
        if not isinstance(proposal, Proposal) or not isinstance(proposal.origin, Origin):
            raise ConfigError(
                "a strategy's propose() must return a Proposal with a row and an Origin, "
                f"but {strategy!r} returned {proposal!r}"
            )
        if not self.state.allows_size(proposal.train_size):
            raise ConfigError(
                "a strategy must propose a training size in (0, 1], or None if the space has a "
                f"TrainSize, but {strategy!r} proposed {proposal.train_size!r}"
            )
        return Proposed(
            number,
            _decode(space, proposal.row, strategy),
            proposal.origin,
            self.state.position,
            dict(proposal.handover),
            max_cost,
            _possible(proposal.expected_cost) if own_cost else None,
            proposal.train_size,
        )

    def is_like_recent(self, config: Config, since: int) -> bool:
        """Whether a trial proposed at position `since` or later is almost this configuration."""
        recent = self.state.proposed_since(since)
        if not recent:
            return False
        row = self.state.space.encode([config])
        return bool(alike(row, self._updated_table().rows(recent), self.state.space.columns)[0])

    def _updated_table(self) -> TrialTable:
        """The trials as arrays, up to date with the state."""
        table, self._table = self._table, None  # None if updating is interrupted
        table = table or TrialTable(self.state.space)
        table.update(self.state.trials, self.state.changed)
        self._table = table
        return table


def _possible(cost: float | None) -> float | None:
    """The expected cost, or None if no trial can cost that much: a model may predict anything."""
    return cost if cost is not None and 0.0 <= cost <= LARGEST else None


def _decode(space: Space, row: Array, strategy: Strategy) -> Config:
    """The row as a configuration. A strategy may be the user's own, so the row is checked."""
    d = len(space.columns.cells)
    try:
        X = np.atleast_2d(np.asarray(row, dtype=float))
    except (TypeError, ValueError):  # not even numbers
        X = np.empty((1, 0))
    if X.shape != (1, d) or not (np.isnan(X) | (X >= 0) & (X <= 1)).all():
        raise ConfigError(
            f"a strategy must propose a row of the unit cube in {d} dimensions, "
            f"but {strategy!r} proposed {row!r}"
        )
    snapped = space.snap(X)
    if (np.isnan(X) & ~np.isnan(snapped)).any():
        raise ConfigError(
            f"only an inactive parameter may be NaN, but {strategy!r} proposed {row!r}"
        )
    if not space.allowed(snapped)[0]:
        raise ConfigError(f"{strategy!r} proposed a forbidden combination: {space.decode(X)[0]}")
    return space.decode(X)[0]
