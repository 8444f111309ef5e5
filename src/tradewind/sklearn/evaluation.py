"""What a search does with one candidate: fit it on the training rows of each fold, cut to the
trial's size, and score it on the test rows.

Nothing here warns: what happened is in the `Fit`s, in whatever process they were made.
"""

from __future__ import annotations

import math
import numbers
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import _safe_split

from tradewind.data.folds import Fold, Folds
from tradewind.data.subsets import subset
from tradewind.runners.run import Run
from tradewind.space.distributions import Translation


class CandidateFailed(Exception):
    """A candidate without a score: its trial has failed, and the search goes on."""


@dataclass(frozen=True)
class Fit:
    """What one fit gave: seconds, scores by metric, and how many rows it was trained with. `error`
    is the traceback of a fit that failed and has no scores, `unscored` that of scorers that did."""

    fit_time: float
    score_time: float
    test: Mapping[str, float]
    train: Mapping[str, float]
    rows: float
    error: str | None = None
    unscored: str | None = None

    @property
    def failed(self) -> str | None:
        """Why there is no score, or not every one."""
        return self.error or self.unscored


@dataclass(frozen=True)
class Data:
    """The rows to learn from, and what there is for each of them."""

    X: Any
    y: Any = None
    groups: Any = None
    fit_params: Mapping[str, Any] = field(default_factory=dict)
    score_params: Mapping[str, Any] = field(default_factory=dict)
    timely: bool = False  # whether the rows are in order of time

    def part(self, size: float, seed: int) -> NDArray[np.intp]:
        """This fraction of the rows."""
        y = length(self.X) if self.y is None else self.y
        if self.timely:
            return subset(y, size, time=True)
        return subset(y, size, seed=seed, groups=self.groups)


@dataclass(frozen=True)
class Evaluation:
    """How candidates are evaluated: all of them on the same `splits`."""

    estimator: Any
    data: Data
    splits: Sequence[tuple[Any, Any]]
    scorer: Callable[..., Any]
    error_score: float | Literal["raise"]
    train_scores: bool = False

    def fit(self, params: Mapping[str, Any], train: Any, test: Any) -> Fit:
        """Fit a candidate on some rows and score it on others."""
        model, data = configured(self.estimator, params), self.data
        X_train, y_train = _safe_split(model, data.X, data.y, train)
        begin = time.perf_counter()
        try:
            fit(model, X_train, y_train, self._of_rows(data.fit_params, train))
        except Exception:
            if self.error_score == "raise":
                raise
            spent = time.perf_counter() - begin
            return Fit(spent, 0.0, {}, {}, len(train), error=traceback.format_exc())
        fit_time = time.perf_counter() - begin
        return self._scored(model, fit_time, train, test)

    @property
    def at_once(self) -> bool:
        """Whether the folds of a candidate can be fitted at once: the estimator has `fit_folds`,
        and `fit` would get nothing but rows and targets."""
        return hasattr(self.estimator, "fit_folds") and not self.data.fit_params

    def fit_folds(self, params: Mapping[str, Any], folds: Sequence[tuple[Any, Any]]) -> list[Fit]:
        """Fit a candidate to all folds in one call, and score each: equal shares of the time."""
        data = self.data
        begin = time.perf_counter()
        try:
            models = configured(self.estimator, params).fit_folds(data.X, data.y, folds)
        except Exception:  # of whichever fold: the others may do
            return [self.fit(params, train, test) for train, test in folds]
        share = (time.perf_counter() - begin) / len(folds)
        return [
            self._scored(model, share, train, test)
            for model, (train, test) in zip(models, folds, strict=True)
        ]

    def _scored(self, model: Any, fit_time: float, train: Any, test: Any) -> Fit:
        data = self.data
        X_test, y_test = _safe_split(model, data.X, data.y, test, train)
        begin = time.perf_counter()
        tested, unscored = self._scores(model, X_test, y_test, test)
        score_time = time.perf_counter() - begin
        trained: Mapping[str, float] = {}
        if self.train_scores:
            X_train, y_train = _safe_split(model, data.X, data.y, train)
            trained, failed = self._scores(model, X_train, y_train, train)
            unscored = unscored or failed
        return Fit(fit_time, score_time, tested, trained, len(train), unscored=unscored)

    def _of_rows(self, params: Mapping[str, Any], rows: Any) -> dict[str, Any]:
        return of_rows(params, rows, length(self.data.X))

    def _scores(self, model: Any, X: Any, y: Any, rows: Any) -> tuple[dict[str, float], str | None]:
        """Scores by metric ("score" where there is one only), and what went wrong."""
        targets = () if y is None else (y,)
        params = self._of_rows(self.data.score_params, rows)
        try:
            given = self.scorer(model, X, *targets, **params)
        except Exception:
            if self.error_score == "raise":
                raise
            return {}, traceback.format_exc()
        if not isinstance(given, dict):
            return {"score": _number(given, self.scorer)}, None
        # in place of a metric that failed, a scorer of several gives the traceback
        failed = [score for score in given.values() if isinstance(score, str)]
        scores = {k: _number(v, k) for k, v in given.items() if not isinstance(v, str)}
        return scores, "\n".join(failed) or None


def configured(estimator: Any, params: Mapping[str, Any]) -> Any:
    """A new estimator with these parameters, which may be estimators themselves: steps of a
    pipeline, say. Each has its own."""
    return clone(estimator).set_params(**clone(dict(params), safe=False))


def fit(model: Any, X: Any, y: Any, params: Mapping[str, Any]) -> None:
    """Fit a model, of the kind that takes targets if there are any."""
    if y is None:
        model.fit(X, **params)
    else:
        model.fit(X, y, **params)


def length(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def of_rows(params: Mapping[str, Any], rows: Any, n: int) -> dict[str, Any]:
    """Parameters of a method for some of n rows: those with a value for each row are cut, too."""
    return {
        name: _safe_indexing(value, rows) if _has_rows(value, n) else value
        for name, value in params.items()
    }


def _has_rows(value: Any, n: int) -> bool:
    if isinstance(value, (str, bytes, Mapping)) or getattr(value, "shape", None) == ():
        return False
    return (hasattr(value, "shape") or hasattr(value, "__len__")) and length(value) == n


def _number(score: Any, scorer: Any) -> float:
    if hasattr(score, "item"):
        with suppress(ValueError):
            score = score.item()
    if not isinstance(score, numbers.Real):
        raise ValueError(
            f"scoring must return a number, got {score} ({type(score)}) instead. (scorer={scorer})"
        )
    return float(score)


def _forget(number: int, fits: list[Fit]) -> None:
    """Keep nothing."""


@dataclass(frozen=True)
class Objective:
    """The objective of the study in a search, which sees the scores by `metric` and the mean time
    that a fit took; `keep` is given all that is known of a trial. With `racing`, the folds of what
    is clearly behind end early."""

    evaluation: Evaluation
    translation: Translation
    metric: str
    racing: float | None = None
    keep: Callable[[int, list[Fit]], None] = _forget
    # scikit-learn's own, which other processes and threads do not know
    config: Mapping[str, Any] = field(default_factory=sklearn.get_config)

    def __call__(self, run: Run) -> dict[str, Any]:
        data, splits = self.evaluation.data, self.evaluation.splits
        params = self.translation.params(run.params)
        folds = run.folds(
            data.X, data.y, splits, groups=data.groups, time=data.timely, error=self.racing
        )
        fits: list[Fit] = []
        with sklearn.config_context(**self.config):
            for fold, fit in self._fits(params, folds):
                fits.append(fit)
                score = self._score(fit)
                if math.isfinite(score):
                    fold.report(score)
                elif self.racing is not None:  # without a score there is nothing to compare
                    break
        self.keep(run.number, fits)
        if len(folds.reported) < len(fits):
            why = next((fit.failed for fit in fits if fit.failed), None)
            raise CandidateFailed(why or f"scores must be finite: {[fit.test for fit in fits]}")
        return {"cost": float(np.mean([fit.fit_time for fit in fits]))}

    def _fits(self, params: Mapping[str, Any], folds: Folds) -> Iterator[tuple[Fold, Fit]]:
        """A fit for each fold: one by one, or all at once where they can be and none is raced."""
        if self.racing is None and self.evaluation.at_once:
            every = list(folds)
            pairs = [(fold.train, fold.valid) for fold in every]
            yield from zip(every, self.evaluation.fit_folds(params, pairs), strict=True)
        else:
            for fold in folds:
                yield fold, self.evaluation.fit(params, fold.train, fold.valid)

    def _score(self, fit: Fit) -> float:
        if fit.failed is None and self.metric not in fit.test:
            return next(iter(fit.test.values()))  # of a function that gives several, the first
        error_score = self.evaluation.error_score
        otherwise = math.nan if error_score == "raise" else float(error_score)
        return fit.test.get(self.metric, otherwise)
