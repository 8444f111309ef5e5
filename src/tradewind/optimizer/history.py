"""Trials -> arrays: the only place where that happens, and where a loss changes its sign.

A `TrialTable` grows with a study. `TrialTable.history` is what a strategy may know of it. It makes
no array that nobody looks at, so that what a proposal costs need not grow with the study.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

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
class TriedRows:
    """The rows of all trials. `places` has the places of each row among them, and it grows with the
    study: places from `count` on came later and do not count."""

    places: Mapping[bytes, Sequence[int]]
    count: int

    @classmethod
    def of(cls, X: Array) -> TriedRows:
        places: dict[bytes, list[int]] = {}
        add_places(places, X, 0)
        return cls(places, len(X))

    def times(self, X: Array) -> Indices:
        """How often each row of X (n, d) was tried."""
        found = [self.places.get(row.tobytes(), ()) for row in X]
        return np.array([bisect_left(places, self.count) for places in found], dtype=np.intp)


def add_places(places: dict[bytes, list[int]], X: Array, first: int) -> None:
    """Note the places of the rows of X (n, d), of which the first is at `first`. Doing it again,
    after an interruption, changes nothing."""
    for place, row in enumerate(X, first):
        known = places.setdefault(row.tobytes(), [])
        if not known or known[-1] < place:
            known.append(place)


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

    @classmethod
    def deferred(
        cls, arrays: Callable[[], dict[str, Any]], tried: Callable[[], TriedRows], **known: Any
    ) -> History:
        """A history that calls `arrays` for its other fields when one of them is first looked at,
        and `tried` for the rows of all trials."""
        history = object.__new__(cls)
        vars(history).update(known, _arrays=arrays, _tried=tried)
        return history

    if not TYPE_CHECKING:  # mypy would take every name for an attribute

        def __getattr__(self, name: str) -> Any:
            if "_arrays" not in vars(self) or name not in self.__dataclass_fields__:
                raise AttributeError(f"a history has no {name!r}", name=name, obj=self)
            vars(self).update(self._arrays())
            return vars(self)[name]

    def __getstate__(self) -> dict[str, Any]:
        """Copies have the arrays, but not the study from which they were made."""
        return vars(replace(self))

    @cached_property
    def tried(self) -> TriedRows:
        """The rows of all trials, to look up how often one was tried."""
        deferred = vars(self).get("_tried")
        return TriedRows.of(self.evaluated) if deferred is None else deferred()

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


def alike(X: Array, Y: Array, columns: Columns, *, within: float = _ALIKE) -> Mask:
    """Which rows of X (n, d) are almost the same as a row of Y (m, d): equal categories, and no
    other coordinate further apart than this part of its range."""
    gap = np.abs(X[:, None, :] - Y[None, :, :])
    # NaN: inactive in both rows, or in one of two rows that already differ in the parent.
    same = np.all((gap <= np.where(columns.categorical, 0.0, within)) | np.isnan(gap), axis=2)
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
    each is encoded once, and only if somebody asks for rows."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._read = 0  # how many changes were taken over
        self._X = np.empty((0, len(space.columns.cells)))
        self._value, self._cost, self._size = np.empty(0), np.empty(0), np.empty(0)
        self._load = np.empty(0)
        self._mark = np.empty(0, dtype=np.int8)
        self._raced = np.empty(0, dtype=bool)
        self._folds: dict[int, tuple[float, ...]] = {}
        self._finished: dict[int, Trial] = {}
        self._end = self._count = self._designed = 0
        self._not_encoded: dict[int, Config] = {}
        self._places: dict[bytes, list[int]] = {}

    def update(self, trials: Mapping[int, Trial], changed: Sequence[int]) -> None:
        """Take over what has changed since the last update. `changed` are the numbers of the trials
        that were ever added or changed, in order."""
        for number in dict.fromkeys(changed[self._read :]):
            trial = trials[number]
            if number >= self._end or not self._mark[number]:
                self._add(number, trial)
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
        self._read = len(changed)

    def _add(self, number: int, trial: Trial) -> None:
        if number >= len(self._mark):
            more = max(64, 2 * number) - len(self._mark)
            self._X = np.pad(self._X, ((0, more), (0, 0)))
            for name in ("_value", "_cost", "_size", "_load", "_mark", "_raced"):
                setattr(self, name, np.pad(getattr(self, name), (0, more)))
        self._not_encoded[number] = dict(trial.params)
        self._size[number] = trial.train_size
        self._load[number] = 1.0
        self._designed += trial.origin is Origin.DESIGN
        self._count += 1
        self._end = max(self._end, number + 1)

    def rows(self, numbers: list[int]) -> Array:
        """The encoded configurations of these trials."""
        if self._not_encoded:
            X = _encode(self._space, list(self._not_encoded.values()))
            self._X[list(self._not_encoded)] = X
            add_places(self._places, X, self._count - len(X))
            self._not_encoded = {}
        rows: Array = self._X[numbers]
        return rows

    def history(
        self, *, initial: Set[int] | None, sign: float, by: str | None = None, **known: Any
    ) -> History:
        """What is known now; `known` are the other fields. `initial` are the trials that decide the
        reference; None for all. `by` names the cost to use instead of that of the study."""
        marks = self._mark[: self._end].copy()
        return History.deferred(
            partial(self._arrays, marks, initial, sign, by),
            partial(self._tried, self._count),
            designed=self._designed,
            sign=sign,
            **known,
        )

    def _tried(self, count: int) -> TriedRows:
        self.rows([])
        return TriedRows(self._places, count)

    def _arrays(
        self, marks: NDArray[np.int8], initial: Set[int] | None, sign: float, by: str | None
    ) -> dict[str, Any]:
        """The arrays of a history. What they are made of stays as it is: a trial that has ended
        does not change, and `marks` says which had ended."""
        self.rows([])
        finished = np.flatnonzero(marks == _FINISHED)
        failed, pending, ignored = (
            np.flatnonzero(marks == mark) for mark in (_FAILED, _PENDING, _IGNORED)
        )
        counts = np.ones(len(finished), dtype=bool)
        if initial is not None:
            counts = np.isin(finished, list(initial))
        noise = np.zeros(len(finished))
        if self._folds:
            noise = fold_noise([self._folds.get(n, ()) for n in finished.tolist()])
        return {
            "X": self._X[finished],
            "quality": sign * self._value[finished],
            "cost": self._cost[finished] if by is None else self._costs_by(by, finished),
            "noise": noise,
            "raced": self._raced[finished],
            "failed": self._X[failed],
            "pending": self._X[pending],
            "ignored": self._X[ignored],
            "initial": counts,
            "sizes": Sizes(*(self._size[which] for which in (finished, failed, pending, ignored))),
            "load": self._load[finished],
        }

    def _costs_by(self, name: str, finished: Indices) -> Array:
        """The costs of this name; NaN where a trial has none."""
        costs = [self._finished[n].cost_of(name) for n in finished.tolist()]
        return np.array([np.nan if cost is None else cost for cost in costs], dtype=float)
