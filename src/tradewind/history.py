"""Trials -> arrays: the only place where that happens, and where a loss changes sign.

`Rows` grows with a study; `Rows.history()` is what a strategy sees of it. Rows are encoded once: a
trial's configuration never changes.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradewind.errors import ConfigError, FormatError
from tradewind.events import Proposed
from tradewind.space import Space
from tradewind.types import Array, Columns, Config, Mask, Outcome

_ALIKE = 0.01  # of a coordinate's range


@dataclass(frozen=True)
class Sizes:
    """The fractions of the training set that trials were trained with, as `History` groups them."""

    finished: Array  # (n,)
    failed: Array  # (f,)
    pending: Array  # (p,)
    ignored: Array  # (i,)


@dataclass(frozen=True)
class History:
    """What a strategy may know when it proposes trial `number`. Trials are in order of number.

    Quality is maximized; cost is raw, NaN where unknown; `noise` is the known variance of a
    quality, 0 where unknown. n finished, f failed, p pending and i ignored trials in d columns."""

    seed: int
    number: int
    X: Array  # (n, d)
    quality: Array  # (n,)
    cost: Array  # (n,)
    noise: Array  # (n,)
    raced: Mask  # (n,) whose quality and cost are estimated from some of their folds
    failed: Array  # (f, d)
    pending: Array  # (p, d)
    ignored: Array  # (i, d) what was tried, and is not learned from
    designed: int  # trials that the initial design has made
    initial: Mask  # (n,) what was there before a model first proposed, perhaps still running
    handover: Mapping[str, Any]  # of the latest proposal that has one
    sizes: Sizes
    sign: float = 1.0  # of the user's own number for a quality of 1
    max_cost: float | None = None  # what the trial should stay within
    staged: bool = False  # whether trials of an earlier stage stand in for an initial design

    @property
    def evaluated(self) -> Array:
        """The rows of all trials, whatever became of them."""
        return np.vstack([self.X, self.failed, self.pending, self.ignored])

    def take(self, rows: NDArray[np.intp]) -> History:
        """The history with only these finished trials (indices)."""
        return replace(
            self,
            X=self.X[rows],
            quality=self.quality[rows],
            cost=self.cost[rows],
            noise=self.noise[rows],
            raced=self.raced[rows],
            initial=self.initial[rows],
            sizes=replace(self.sizes, finished=self.sizes.finished[rows]),
        )

    def trained_with(self, size: float) -> History:
        """The history of the trials with this fraction of the training set alone."""
        kept = self.take(np.flatnonzero(self.sizes.finished == size))
        groups = ("failed", "pending", "ignored")
        among = {group: getattr(self.sizes, group) == size for group in groups}
        return replace(
            kept,
            **{group: getattr(self, group)[mask] for group, mask in among.items()},
            sizes=replace(
                kept.sizes, **{g: getattr(self.sizes, g)[mask] for g, mask in among.items()}
            ),
        )


def alike(X: Array, Y: Array, columns: Columns) -> Mask:
    """Which rows of X (n, d) are nearly one of Y (m, d): no coordinate differs by more than 1 %,
    and no category at all."""
    gap = np.abs(X[:, None, :] - Y[None, :, :])
    # not a number: inactive in both, or else as unlike as the parameter that it depends on
    same = np.all((gap <= np.where(columns.categorical, 0.0, _ALIKE)) | np.isnan(gap), axis=2)
    return np.asarray(np.any(same, axis=1))


def trial_seed(seed: int, number: int) -> int:
    """The seed that the objective of this trial gets, a 31-bit number."""
    state = np.random.SeedSequence([seed, number, 1]).generate_state(1)[0]
    return int(state) & 0x7FFFFFFF


def data_seed(seed: int) -> int:
    """The seed that all trials of a study share, a 31-bit number: for subsets and folds."""
    return int(np.random.SeedSequence([seed, 2]).generate_state(1)[0]) & 0x7FFFFFFF


def proposal_rng(seed: int, number: int) -> np.random.Generator:
    """The random stream of one proposal: it depends on the trial number, not on who asks when."""
    return np.random.default_rng(np.random.SeedSequence([seed, number]))


def queue_rng(seed: int, place: int) -> np.random.Generator:
    """The random stream of what was left open in the entry at this place of the queue."""
    return np.random.default_rng(np.random.SeedSequence([seed, place, 3]))


class Mark(IntEnum):
    """What a row is to a model."""

    NONE = 0  # no trial has this number
    PENDING = 1
    FINISHED = 2
    FAILED = 3
    IGNORED = 4


class Rows:
    """The trials as arrays that grow, by number. Configurations are encoded once, many at once."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._X = np.empty((0, len(space)))
        self._value, self._cost, self._size = np.empty(0), np.empty(0), np.empty(0)
        self._mark = np.empty(0, dtype=np.int8)
        self._finished_at = np.empty(0, dtype=np.int64)
        self._raced = np.empty(0, dtype=bool)
        self._folds: dict[int, tuple[float, ...]] = {}
        self._new: dict[int, Config] = {}  # not yet encoded

    def add(self, number: int, config: Config, size: float = 1.0) -> None:
        if number >= len(self._mark):
            self._grow(max(64, 2 * number))
        self._new[number] = config
        self._size[number] = size
        self._mark[number] = Mark.PENDING

    def _grow(self, size: int) -> None:
        more = size - len(self._mark)
        self._X = np.pad(self._X, ((0, more), (0, 0)))
        self._value, self._cost = np.pad(self._value, (0, more)), np.pad(self._cost, (0, more))
        self._mark, self._size = np.pad(self._mark, (0, more)), np.pad(self._size, (0, more))
        self._finished_at = np.pad(self._finished_at, (0, more))
        self._raced = np.pad(self._raced, (0, more))

    def finish(self, number: int, outcome: Outcome, position: int) -> None:
        self._value[number] = outcome.value
        self._cost[number] = np.nan if outcome.cost is None else outcome.cost / outcome.share
        self._finished_at[number] = position
        self._raced[number] = outcome.raced
        if outcome.folds:
            self._folds[number] = outcome.folds
        self.mark(number, Mark.FINISHED)

    def mark(self, number: int, mark: Mark) -> None:
        self._mark[number] = mark

    def of(self, numbers: list[int]) -> Array:
        """The encoded rows of these trials."""
        if self._new:
            try:
                self._X[list(self._new)] = self._space.encode(list(self._new.values()))
            except ConfigError as error:
                raise FormatError(f"the log holds a trial outside of its space: {error}") from error
            self._new = {}
        rows: Array = self._X[numbers]
        return rows

    def history(
        self,
        *,
        seed: int,
        number: int,
        sign: float,
        designed: int,
        handover: Mapping[str, Any],
        first: Proposed | None,
        max_cost: float | None,
    ) -> History:
        self.of([])
        finished = np.flatnonzero(self._mark == Mark.FINISHED)
        failed, pending, ignored = (
            self._mark == mark for mark in (Mark.FAILED, Mark.PENDING, Mark.IGNORED)
        )
        initial = np.ones(len(finished), dtype=bool)
        if first is not None:
            initial = (finished < first.number) | (self._finished_at[finished] < first.seen)
        noise = np.zeros(len(finished))
        if self._folds:
            noise = fold_noise([self._folds.get(n, ()) for n in finished.tolist()])
        return History(
            seed=seed,
            number=number,
            X=self._X[finished],
            quality=sign * self._value[finished],
            cost=self._cost[finished],
            noise=noise,
            raced=self._raced[finished],
            failed=self._X[failed],
            pending=self._X[pending],
            ignored=self._X[ignored],
            designed=designed,
            initial=initial,
            handover=handover,
            sizes=Sizes(*(self._size[which] for which in (finished, failed, pending, ignored))),
            sign=sign,
            max_cost=max_cost,
        )


def fold_noise(folds: Sequence[tuple[float, ...]]) -> Array:
    """The squared standard error of each mean over folds (n,); 0 where it is unknown.

    Folds that all trials share differ in how hard they are, which says nothing about the trials:
    among three or more trials with equally many folds, the median deviation of each fold from its
    trial's mean is taken out first."""
    noise = np.zeros(len(folds))
    counts = np.array([len(f) for f in folds])
    for k in set(counts[counts > 1].tolist()):
        alike = counts == k
        F = np.array([f for f in folds if len(f) == k])
        largest = max(float(np.abs(F).max()), sys.float_info.min)
        F = F / largest  # folds may be as large as 1e300
        F = F - F.mean(axis=1, keepdims=True)
        shrunk = 1.0
        if len(F) > 2:
            F = F - np.median(F, axis=0)
            shrunk = len(F) / (len(F) - 1)
        error = np.sqrt(shrunk * F.var(axis=1, ddof=1) / k) * largest
        noise[alike] = np.square(np.minimum(error, 1e150))
    return noise
