"""Cross-validation inside an objective: the same folds for all trials of a study, raced.

`Run.folds` makes a `Folds`; an objective goes through it and reports each fold; `evaluate` reads
what was reported.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import numpy as np

from tradewind.checks import finite, mean, shown
from tradewind.data.labels import classes_of
from tradewind.data.racing import ERROR, behind, projected
from tradewind.data.subsets import subset, take
from tradewind.errors import OutcomeError
from tradewind.types import Indices, Trial


@dataclass(frozen=True, eq=False)
class Fold:
    """One split. `train` holds the rows to train with, already cut to the trial's training size,
    `valid` the rows to score on."""

    number: int
    train: Indices
    valid: Indices
    _folds: Folds = field(repr=False)

    def report(self, value: Any) -> None:
        """The score on the valid rows, once."""
        self._folds.record(self.number, value)


class Folds:
    """The folds of one trial, to be gone through once.

    The loop ends early where the trial is clearly behind the best one so far; `error` bounds the
    probability of that for a trial that is truly as good. With `error=None` it never does, and the
    folds may be reported later and in any order."""

    def __init__(
        self,
        trial: Trial,
        X: Any,
        y: Any,
        cv: Any,
        *,
        groups: Any = None,
        time: Any = None,
        error: float | None = ERROR,
    ) -> None:
        if error is not None and not (isinstance(error, Real) and 0.0 < error < 1.0):
            raise ValueError(f"error must be in (0, 1) or None, but got {error!r}")
        self.raced = False
        self._seed, self._size, self._error = trial.data_seed, trial.train_size, error
        self._y, self._groups = y, groups
        self._time = True if time is None and _in_time(cv) else time
        self._splits = splits(X, y, cv, groups=groups, seed=self._seed)
        self._values: dict[int, float] = {}
        self._begun = False
        rival = trial.rival
        self._rival = rival if rival is not None and len(rival.folds) == len(self) else None

    def __len__(self) -> int:
        return len(self._splits)

    def __iter__(self) -> Iterator[Fold]:
        if self._begun:
            raise OutcomeError("the folds of a trial can be gone through once")
        self._begun = True
        return self._walk()

    def _walk(self) -> Iterator[Fold]:
        for number, (train, valid) in enumerate(self._splits):
            yield Fold(number, self._cut(number, train), valid, self)
            if self._error is None:
                continue
            if number not in self._values:
                raise OutcomeError(
                    f"fold {number} must be reported before the next one: call fold.report(score), "
                    "or give error=None to report them later"
                )
            if self._rival is not None and behind(
                self.reported, self._rival, held_out=self._held_out, error=self._error
            ):
                self.raced = True
                return

    def _cut(self, number: int, train: Indices) -> Indices:
        """The rows of this trial's training size, the same for all trials."""
        if self._size >= 1.0:
            return train
        seed = int(np.random.SeedSequence([self._seed, number]).generate_state(1)[0])
        y = len(train) if self._y is None else take(self._y, train)
        if self._time is not None and self._time is not False:
            stamps = True if self._time is True else take(self._time, train)
            return train[subset(y, self._size, time=stamps)]
        return train[subset(y, self._size, seed=seed, groups=take(self._groups, train))]

    @property
    def _held_out(self) -> float:
        """The share of the rows that a fold keeps from training, in the mean."""
        return float(np.mean([len(v) / (len(t) + len(v)) for t, v in self._splits]))

    def record(self, number: int, value: Any) -> None:
        if number in self._values:
            raise OutcomeError(f"a fold can be reported once, but fold {number} was before")
        self._values[number] = finite(f"fold {number}", value)

    @property
    def reported(self) -> tuple[float, ...]:
        """The values so far, in the order of the folds."""
        return tuple(value for _, value in sorted(self._values.items()))

    @property
    def complete(self) -> bool:
        """Whether there is nothing more to report."""
        return self.raced or len(self._values) == len(self)

    @property
    def ahead(self) -> float:
        """What the mean over all folds of a trial that was raced is expected to be more than that
        of its first ones."""
        assert self._rival is not None
        return projected(self.reported, self._rival) - mean(self.reported)


# ---- splitting ----


def splits(X: Any, y: Any, cv: Any, *, groups: Any, seed: int) -> list[tuple[Indices, Indices]]:
    """The rows to train with and those to score on, for each fold."""
    pairs: Iterable[Any]
    if isinstance(cv, Integral) and not isinstance(cv, bool):
        pairs = _folded(X, y, int(cv), groups, seed)
    elif callable(getattr(cv, "split", None)) and not isinstance(cv, str):
        pairs = _settled(cv, seed).split(X, y, groups)
    elif isinstance(cv, Iterable) and not isinstance(cv, str):
        pairs = cv
    else:
        raise TypeError(
            f"cv must be a number of folds, a splitter, or pairs of rows, but got {shown(cv)}"
        )
    found = [_pair(given) for given in pairs]
    if not found:
        raise ValueError(
            "cv must give at least one fold, but gave none; a generator gives its folds once: "
            "make it inside of the objective, or give a list"
        )
    return found


def _in_time(cv: Any) -> bool:
    """Whether a splitter takes the rows to be in order of time."""
    return any(kind.__name__ == "TimeSeriesSplit" for kind in type(cv).__mro__)


def _folded(X: Any, y: Any, cv: int, groups: Any, seed: int) -> Iterator[Any]:
    from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

    if cv < 2:
        raise ValueError(f"cv ≥ 2 must hold, but got {cv}")
    if groups is not None:
        pairs = GroupKFold(cv).split(X, y, groups)
    elif (classes := _classes(y, cv)) is not None:
        pairs = StratifiedKFold(cv, shuffle=True, random_state=_state(seed)).split(X, classes)
    else:
        pairs = KFold(cv, shuffle=True, random_state=_state(seed)).split(X, y)
    yield from pairs


def _classes(y: Any, cv: int) -> Indices | None:
    """The classes of y, as for subsets, where each has a row in each fold in the mean."""
    try:
        classes = None if y is None else classes_of(y)
    except (TypeError, ValueError):  # no column that anyone can read
        return None
    several = classes is not None and 1 < classes.max() + 1 <= len(classes) // cv
    return classes if several else None


def _settled(cv: Any, seed: int) -> Any:
    """A copy that splits as the next copy will: a splitter may draw its folds when it is asked."""
    settled = copy.deepcopy(cv)
    if getattr(settled, "random_state", 0) is None and getattr(settled, "shuffle", True):
        settled.random_state = _state(seed)
    return settled


def _state(seed: int) -> int:
    return seed % 2**32  # what scikit-learn takes


def _pair(given: Any) -> tuple[Indices, Indices]:
    try:
        train, valid = (_rows(part) for part in given)
    except (TypeError, ValueError):
        raise TypeError(f"cv must give pairs of row numbers, but got {shown(given)}") from None
    if not len(train) or not len(valid):
        sizes = f"{len(train)} and {len(valid)}"
        raise ValueError(f"a fold needs rows to train with and to score on, but has {sizes}")
    return train, valid


def _rows(given: Any) -> Indices:
    rows = np.asarray(given)
    if rows.dtype == bool:
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or not (np.issubdtype(rows.dtype, np.integer) or not rows.size):
        raise TypeError
    return rows.astype(np.intp)
