"""Trials -> arrays: the only place where that happens, and where a loss changes its sign.

A `TrialTable` grows with a study. `TrialTable.history` is what a strategy may know of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tradewind.data.noise import fold_noise
from tradewind.errors import ConfigError, FormatError
from tradewind.space import Space
from tradewind.types import Array, Columns, Config, Indices, Mask, Origin, State, Trial

_ALIKE = 0.01  # of a coordinate's range


@dataclass(frozen=True)
class Sizes:
    """The training sizes of trials, grouped as in `History`."""

    finished: Array  # (n,)
    failed: Array  # (f,)
    pending: Array  # (p,)
    ignored: Array  # (i,)


@dataclass(frozen=True)
class History:
    """What a strategy may know when it proposes trial `number`. Trials are in order of number.

    There are n finished, f failed, p pending and i ignored trials in d columns. Quality is
    maximized. Cost is raw, and NaN where unknown. `noise` is the known variance of a quality, 0
    where unknown."""

    seed: int
    number: int
    X: Array  # (n, d)
    quality: Array  # (n,)
    cost: Array  # (n,)
    noise: Array  # (n,)
    raced: Mask  # (n,) quality and cost are estimates from some of the folds
    failed: Array  # (f, d)
    pending: Array  # (p, d)
    ignored: Array  # (i, d) tried, but not learned from
    designed: int  # how many trials the initial design has proposed
    initial: Mask  # (n,) trials whose cost may decide the reference
    handover: Mapping[str, Any]  # from the latest proposal that has one
    sizes: Sizes
    load: Array  # (n,) how many trials ran at the same time, on average
    sign: float = 1.0  # -1 if the user minimizes
    max_cost: float | None = None  # what the proposed trial may cost
    staged: bool = False  # trials of an earlier stage replace the initial design
    provisional: bool = False  # trials of the initial design are still running

    @property
    def evaluated(self) -> Array:
        """The rows of all trials."""
        return np.vstack([self.X, self.failed, self.pending, self.ignored])

    @property
    def has_costs(self) -> bool:
        """Whether any finished trial has a cost."""
        return bool(np.isfinite(self.cost).any())

    def take(self, rows: Indices) -> History:
        """The history with only these finished trials."""
        return replace(
            self,
            X=self.X[rows],
            quality=self.quality[rows],
            cost=self.cost[rows],
            noise=self.noise[rows],
            raced=self.raced[rows],
            initial=self.initial[rows],
            load=self.load[rows],
            sizes=replace(self.sizes, finished=self.sizes.finished[rows]),
        )


def alike(X: Array, Y: Array, columns: Columns) -> Mask:
    """Which rows of X (n, d) are almost the same as a row of Y (m, d): equal categories, and no
    other coordinate further apart than 1 % of its range."""
    gap = np.abs(X[:, None, :] - Y[None, :, :])
    # NaN: inactive in both rows, or in one of two rows that already differ in the parent.
    same = np.all((gap <= np.where(columns.categorical, 0.0, _ALIKE)) | np.isnan(gap), axis=2)
    return np.asarray(np.any(same, axis=1))


def spread(best_first: Indices, count: int) -> Indices:
    """At most `count` of n trials, as sorted indices: a quarter are the best, a quarter the latest,
    and the rest are spread evenly over the others."""
    n = len(best_first)
    if n <= count:
        return np.arange(n)
    keep = np.zeros(n, dtype=bool)
    keep[best_first[: count // 4]] = True
    keep[n - count // 4 :] = True
    keep[spread_evenly(np.flatnonzero(~keep), count - int(keep.sum()))] = True
    return np.flatnonzero(keep)


def spread_evenly(indices: Indices, count: int) -> Indices:
    """At most `count` of these, the first and the last among them."""
    if len(indices) <= count:
        return indices
    return np.asarray(indices[np.linspace(0, len(indices) - 1, count).astype(int)])


# What a row means to a model. A row is 0 as long as no trial has its number.
_PENDING, _FINISHED, _FAILED, _IGNORED = 1, 2, 3, 4
_MARKS = {
    State.WAITING: _PENDING,
    State.RUNNING: _PENDING,
    State.FINISHED: _FINISHED,
    State.FAILED: _FAILED,
    State.ABANDONED: _IGNORED,
}


def _encode(space: Space, configs: list[Config]) -> Array:
    """Stored configurations as rows. `FormatError` if one of them is outside the space."""
    try:
        X = space.encode(configs)
        snapped = space.snap(X)
        doubtful = np.flatnonzero(
            ~np.all((snapped == X) | (np.isnan(X) & np.isnan(snapped)), axis=1)
        )
    except (ArithmeticError, LookupError, TypeError, ValueError):
        doubtful = np.arange(len(configs))
    try:
        for i in doubtful:
            space.validate(configs[i])
    except ConfigError as error:
        raise FormatError(f"the log holds a trial outside its space: {error}") from error
    return X


class TrialTable:
    """The trials of a study as arrays indexed by trial number. A configuration never changes, so
    each is encoded once."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._seen: set[int] = set()
        self._may_change: set[int] = set()
        self._X = np.empty((0, len(space.columns.cells)))
        self._value, self._cost, self._size = np.empty(0), np.empty(0), np.empty(0)
        self._mark = np.empty(0, dtype=np.int8)
        self._raced = np.empty(0, dtype=bool)
        self._folds: dict[int, tuple[float, ...]] = {}
        self._load: dict[int, float] = {}
        self._finished: dict[int, Trial] = {}
        self._designed = 0
        self._not_encoded: dict[int, Config] = {}

    def update(self, trials: Mapping[int, Trial]) -> None:
        """Take over what has changed since the last update."""
        added = trials.keys() - self._seen
        for number in added:
            self._add(number, trials[number])
        self._seen |= added
        # A trial that has finished or failed never changes again.
        for number in added | self._may_change:
            trial = trials[number]
            if trial.state in (State.FINISHED, State.FAILED):
                self._may_change.discard(number)
            else:
                self._may_change.add(number)
            self._mark[number] = _MARKS[trial.state]
            if trial.state is State.FAILED and not trial.penalized:
                self._mark[number] = _IGNORED
            if trial.state is State.FINISHED:
                self._value[number] = trial.value
                self._cost[number] = np.nan if trial.cost is None else trial.cost / trial.share
                self._raced[number] = trial.raced
                self._finished[number] = trial
                if trial.folds:
                    self._folds[number] = trial.folds
                if trial.usage is not None:
                    self._load[number] = trial.usage.concurrency

    def _add(self, number: int, trial: Trial) -> None:
        if number >= len(self._mark):
            more = max(64, 2 * number) - len(self._mark)
            self._X = np.pad(self._X, ((0, more), (0, 0)))
            for name in ("_value", "_cost", "_size", "_mark", "_raced"):
                setattr(self, name, np.pad(getattr(self, name), (0, more)))
        self._not_encoded[number] = dict(trial.params)
        self._size[number] = trial.train_size
        self._designed += trial.origin is Origin.DESIGN

    def rows(self, numbers: list[int]) -> Array:
        """The encoded configurations of these trials."""
        if self._not_encoded:
            numbers_, configs = list(self._not_encoded), list(self._not_encoded.values())
            self._X[numbers_] = _encode(self._space, configs)
            self._not_encoded = {}
        rows: Array = self._X[numbers]
        return rows

    def history(
        self,
        *,
        seed: int,
        number: int,
        sign: float,
        handover: Mapping[str, Any],
        initial: Collection[int] | None,
        provisional: bool,
        max_cost: float | None,
        by: str | None = None,
    ) -> History:
        """What is known now. `initial` are the trials that decide the reference; None for all. `by`
        names the cost to use instead of that of the study."""
        self.rows([])
        finished = np.flatnonzero(self._mark == _FINISHED)
        failed, pending, ignored = (self._mark == mark for mark in (_FAILED, _PENDING, _IGNORED))
        counts = np.ones(len(finished), dtype=bool)
        if initial is not None:
            counts = np.isin(finished, list(initial))
        noise = np.zeros(len(finished))
        if self._folds:
            noise = fold_noise([self._folds.get(n, ()) for n in finished.tolist()])
        return History(
            seed=seed,
            number=number,
            X=self._X[finished],
            quality=sign * self._value[finished],
            cost=self._cost[finished] if by is None else self._costs_by(by, finished),
            noise=noise,
            raced=self._raced[finished],
            failed=self._X[failed],
            pending=self._X[pending],
            ignored=self._X[ignored],
            designed=self._designed,
            initial=counts,
            handover=handover,
            sizes=Sizes(*(self._size[which] for which in (finished, failed, pending, ignored))),
            load=np.array([self._load.get(n, 1.0) for n in finished.tolist()]),
            sign=sign,
            max_cost=max_cost,
            provisional=provisional,
        )

    def _costs_by(self, name: str, finished: Indices) -> Array:
        """The costs of this name; NaN where a trial has none."""
        costs = [self._finished[n].cost_of(name) for n in finished.tolist()]
        return np.array([np.nan if cost is None else cost for cost in costs], dtype=float)
