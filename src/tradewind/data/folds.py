"""Cross-validation inside an objective, with the same folds for all trials of a study.

`Run.folds` makes a `Folds`; the objective iterates over it and reports a score for each fold;
`runners.evaluate` reads the scores. Racing ends the iteration of a trial that is clearly behind.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tradewind import checks
from tradewind.data.fingerprint import fingerprint
from tradewind.data.labels import find_classes
from tradewind.data.racing import ERROR, is_behind, project
from tradewind.data.subsets import subset, take
from tradewind.errors import OutcomeError
from tradewind.plain import shown
from tradewind.seeds import fold_seed
from tradewind.types import Indices, Trial


@dataclass(frozen=True, eq=False)
class Fold:
    """One split. `train` has the rows to train with, already cut to the trial's training size;
    `valid` has the rows to score on."""

    number: int
    train: Indices
    valid: Indices
    _folds: Folds = field(repr=False)

    def report(self, value: Any) -> None:
        """Report the score on the valid rows. Each fold can be reported once."""
        self._folds.record(self.number, value)


class Folds:
    """The folds of one trial, which can be iterated over once.

    The iteration ends early if the trial is clearly behind the best one so far on the same data,
    by their `fingerprint`; `error` bounds the probability that a trial that is truly as good is
    stopped. With `error=None` no trial is stopped, and the folds may be reported later and in any
    order."""

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
        self._error = checks.or_none(checks.probability, "error", error)
        self.raced = False
        self._seed, self._size = trial.data_seed, trial.train_size
        self._y, self._groups = y, groups
        self._time = True if time is None and _is_in_order_of_time(cv) else time
        self._splits = split(X, y, cv, groups=groups, seed=self._seed)
        self._values: dict[int, float] = {}
        self._started = False
        self.fingerprint = fingerprint(X=X, y=y, groups=groups)
        rival = trial.rival
        comparable = (
            rival is not None
            and len(rival.folds) == len(self)
            and rival.data in (None, self.fingerprint)  # unknown, or the same
        )
        self._rival = rival if comparable else None

    def __len__(self) -> int:
        return len(self._splits)

    def __iter__(self) -> Iterator[Fold]:
        if self._started:
            raise OutcomeError(
                "the folds of a trial can be iterated over once, but this is the second time: "
                "use one loop"
            )
        self._started = True
        return self._iterate()

    def _iterate(self) -> Iterator[Fold]:
        for number, (train, valid) in enumerate(self._splits):
            yield Fold(number, self._cut(number, train), valid, self)
            if self._error is None:
                continue
            if number not in self._values:
                raise OutcomeError(
                    f"fold {number} must be reported before the next one: call fold.report(score), "
                    "or use error=None to report them later"
                )
            if self._rival is not None and is_behind(
                self.reported, self._rival, held_out=self._held_out, error=self._error
            ):
                self.raced = True
                return

    def _cut(self, number: int, train: Indices) -> Indices:
        """The training rows of a fold, cut to the trial's training size. All trials of a study draw
        from one order."""
        if self._size >= 1.0:
            return train
        seed = fold_seed(self._seed, number)
        y = len(train) if self._y is None else take(self._y, train)
        if self._time is not None and self._time is not False:
            stamps = True if self._time is True else take(self._time, train)
            return train[subset(y, self._size, time=stamps)]
        return train[subset(y, self._size, seed=seed, groups=take(self._groups, train))]

    @property
    def _held_out(self) -> float:
        """The mean share of the rows that a fold does not train with."""
        return float(np.mean([len(v) / (len(t) + len(v)) for t, v in self._splits]))

    def record(self, number: int, value: Any) -> None:
        if number in self._values:
            raise OutcomeError(
                f"a fold can be reported once, but fold {number} was reported before"
            )
        self._values[number] = checks.finite(f"fold {number}", value)

    @property
    def reported(self) -> tuple[float, ...]:
        """The scores so far, in the order of the folds."""
        return tuple(value for _, value in sorted(self._values.items()))

    @property
    def complete(self) -> bool:
        """Whether no fold is left to report."""
        return self.raced or len(self._values) == len(self)

    @property
    def ahead(self) -> float:
        """For a raced trial: by how much the estimated mean over all folds exceeds the mean of the
        reported ones."""
        assert self._rival is not None
        return project(self.reported, self._rival) - checks.mean(self.reported)


# ---- splitting ----


def split(X: Any, y: Any, cv: Any, *, groups: Any, seed: int) -> list[tuple[Indices, Indices]]:
    """For each fold, the rows to train with and the rows to score on."""
    pairs: Iterable[Any]
    if checks.is_whole(cv):
        pairs = _split_evenly(X, y, checks.whole("cv", cv, 2), groups, seed)
    elif callable(getattr(cv, "split", None)) and not isinstance(cv, str):
        pairs = _with_fixed_seed(cv, seed).split(X, y, groups)
    elif isinstance(cv, Iterable) and not isinstance(cv, str):
        pairs = cv
    else:
        raise TypeError(
            f"cv must be a number of folds, a splitter, or pairs of rows, but got {shown(cv)}"
        )
    folds = [_read_pair(pair) for pair in pairs]
    if not folds:
        raise ValueError(
            "cv must give at least one fold, but gave none; a generator gives its folds only once: "
            "create it inside the objective, or use a list"
        )
    return folds


def _is_in_order_of_time(cv: Any) -> bool:
    """Whether a splitter assumes that the rows are in order of time."""
    return any(kind.__name__ == "TimeSeriesSplit" for kind in type(cv).__mro__)


def _split_evenly(X: Any, y: Any, k: int, groups: Any, seed: int) -> Iterable[Any]:
    from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

    pairs: Iterable[Any]
    if groups is not None:
        pairs = GroupKFold(k).split(X, y, groups)
    elif (classes := _find_classes(y, k)) is not None:
        pairs = StratifiedKFold(k, shuffle=True, random_state=_state(seed)).split(X, classes)
    else:
        pairs = KFold(k, shuffle=True, random_state=_state(seed)).split(X, y)
    return pairs


def _find_classes(y: Any, k: int) -> Indices | None:
    """The classes of y, as subsets have them, if each has on average a row in each of k folds."""
    try:
        classes = None if y is None else find_classes(y)
    except (TypeError, ValueError):  # not a readable column
        return None
    several = classes is not None and 1 < classes.max() + 1 <= len(classes) // k
    return classes if several else None


def _with_fixed_seed(cv: Any, seed: int) -> Any:
    """A copy that splits in the same way each time: without a seed, a splitter draws new folds
    whenever it is asked."""
    fixed = copy.deepcopy(cv)
    if getattr(fixed, "random_state", 0) is None and getattr(fixed, "shuffle", True):
        fixed.random_state = _state(seed)
    return fixed


def _state(seed: int) -> int:
    return seed % 2**32  # the range that scikit-learn takes


def _read_pair(given: Any) -> tuple[Indices, Indices]:
    try:
        train, valid = (_read_rows(part) for part in given)
    except (TypeError, ValueError):
        got = shown(given)
        raise TypeError(f"cv must give pairs of row numbers, but got {got}") from None
    if not len(train) or not len(valid):
        sizes = f"{len(train)} and {len(valid)}"
        raise ValueError(f"a fold needs rows to train with and to score on, but has {sizes}")
    return train, valid


def _read_rows(given: Any) -> Indices:
    rows = np.asarray(given)
    if rows.dtype == bool:
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or not (np.issubdtype(rows.dtype, np.integer) or not rows.size):
        raise TypeError
    return rows.astype(np.intp)
