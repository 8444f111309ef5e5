"""Evaluating one candidate: fit it on the training rows of each fold, cut to the trial's training
size, and score it on the test rows.

This may run in a worker process, so nothing here warns. Each `Fit` says what went wrong, and
`cv_results.report_failures` warns in the process of the search.
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

import sklearn
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import _safe_split

from tradewind.data.folds import Fold, Folds
from tradewind.data.subsets import subset
from tradewind.runners.run import Run
from tradewind.sklearn.callbacks import Task
from tradewind.space.distributions import Translation
from tradewind.types import Indices


class CandidateFailed(Exception):
    """A candidate has no score. Its trial fails, and the search continues."""


@dataclass(frozen=True)
class Fit:
    """The result of one fit: seconds, scores by metric, and the number of training rows.

    `error` is the traceback if the fit failed; then there are no scores. `unscored` is the
    traceback if a scorer failed."""

    fit_time: float
    score_time: float
    test: Mapping[str, float]
    train: Mapping[str, float]
    rows: float
    error: str | None = None
    unscored: str | None = None

    @property
    def failure(self) -> str | None:
        """Why some or all scores are missing, or None."""
        return self.error or self.unscored


@dataclass(frozen=True)
class TrainingData:
    """The data given to `fit`: the rows, and the parameters that belong to them."""

    X: Any
    y: Any = None
    groups: Any = None
    fit_params: Mapping[str, Any] = field(default_factory=dict)
    score_params: Mapping[str, Any] = field(default_factory=dict)
    in_time_order: bool = False  # then a subset has the latest rows

    def subset(self, size: float, seed: int) -> Indices:
        """The rows of this fraction of the data."""
        y = count_rows(self.X) if self.y is None else self.y
        if self.in_time_order:
            return subset(y, size, time=True)
        return subset(y, size, seed=seed, groups=self.groups)


@dataclass(frozen=True)
class Evaluation:
    """How to evaluate candidates. All of them are evaluated on the same `splits`."""

    estimator: Any
    data: TrainingData
    splits: Sequence[tuple[Any, Any]]
    scorer: Callable[..., Any]
    error_score: float | Literal["raise"]
    train_scores: bool = False
    task: Task = field(default_factory=Task)  # the search, for scikit-learn's callbacks

    def fit(self, params: Mapping[str, Any], train: Any, test: Any, *, number: int) -> Fit:
        """Fit a candidate on the training rows and score it on the test rows. `number` tells the
        fits of a search apart."""
        model, data = configure(self.estimator, params), self.data
        X_train, y_train = _safe_split(model, data.X, data.y, train)
        fit_params = self._select_rows(data.fit_params, train)
        task = self.task.fit(number, X_train, y_train, fit_params)
        begin = time.perf_counter()
        try:
            with task.begun_for(model):
                fit(model, X_train, y_train, fit_params)
        except Exception:
            task.end()
            if self.error_score == "raise":
                raise
            spent = time.perf_counter() - begin
            return Fit(spent, 0.0, {}, {}, len(train), error=traceback.format_exc())
        fit_time = time.perf_counter() - begin
        try:
            return self._score(model, fit_time, train, test)
        finally:
            task.end()

    @property
    def can_fit_folds(self) -> bool:
        """Whether all folds of a candidate can be fitted in one call: the estimator has
        `fit_folds`, there are no parameters for `fit`, and no callbacks want to hear of each."""
        return (
            hasattr(self.estimator, "fit_folds")
            and not self.data.fit_params
            and not self.task.has_callbacks
        )

    def fit_folds(
        self, params: Mapping[str, Any], folds: Sequence[tuple[Any, Any]], *, number: int
    ) -> list[Fit]:
        """Fit a candidate to all folds in one call and score each. Folds share the time equally.
        `number` is that of the first fit."""
        data = self.data
        begin = time.perf_counter()
        try:
            models = configure(self.estimator, params).fit_folds(data.X, data.y, folds)
        except Exception:  # one fold failed; the others may succeed on their own
            return [self.fit(params, *fold, number=number + i) for i, fold in enumerate(folds)]
        share = (time.perf_counter() - begin) / len(folds)
        return [
            self._score(model, share, train, test)
            for model, (train, test) in zip(models, folds, strict=True)
        ]

    def _score(self, model: Any, fit_time: float, train: Any, test: Any) -> Fit:
        """Score a fitted model on the test rows and, if asked for, on the training rows."""
        data = self.data
        X_test, y_test = _safe_split(model, data.X, data.y, test, train)
        begin = time.perf_counter()
        tested, unscored = self._call_scorer(model, X_test, y_test, test)
        score_time = time.perf_counter() - begin
        trained: Mapping[str, float] = {}
        if self.train_scores:
            X_train, y_train = _safe_split(model, data.X, data.y, train)
            trained, failed = self._call_scorer(model, X_train, y_train, train)
            unscored = unscored or failed
        return Fit(fit_time, score_time, tested, trained, len(train), unscored=unscored)

    def _select_rows(self, params: Mapping[str, Any], rows: Any) -> dict[str, Any]:
        return select_rows(params, rows, count_rows(self.data.X))

    def _call_scorer(
        self, model: Any, X: Any, y: Any, rows: Any
    ) -> tuple[dict[str, float], str | None]:
        """Scores by metric (a single one is called "score"), and the traceback of a failure."""
        targets = () if y is None else (y,)
        params = self._select_rows(self.data.score_params, rows)
        try:
            given = self.scorer(model, X, *targets, **params)
        except Exception:
            if self.error_score == "raise":
                raise
            return {}, traceback.format_exc()
        if not isinstance(given, dict):
            return {"score": _check_score(given, self.scorer)}, None
        # a multi-metric scorer returns the traceback in place of a metric that failed
        failed = [score for score in given.values() if isinstance(score, str)]
        scores = {k: _check_score(v, k) for k, v in given.items() if not isinstance(v, str)}
        return scores, "\n".join(failed) or None


def configure(estimator: Any, params: Mapping[str, Any]) -> Any:
    """A new estimator with these parameters. Parameters that are estimators themselves, such as
    the steps of a pipeline, are cloned too."""
    return clone(estimator).set_params(**clone(dict(params), safe=False))


def fit(model: Any, X: Any, y: Any, params: Mapping[str, Any]) -> None:
    """Fit a model, without targets if there are none."""
    if y is None:
        model.fit(X, **params)
    else:
        model.fit(X, y, **params)


def count_rows(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def select_rows(params: Mapping[str, Any], rows: Any, n: int) -> dict[str, Any]:
    """The parameters of a method for some of the n rows. A parameter with a value for each row is
    cut to these rows; any other stays as it is."""
    return {
        name: _safe_indexing(value, rows) if _has_rows(value, n) else value
        for name, value in params.items()
    }


def _has_rows(value: Any, n: int) -> bool:
    if isinstance(value, (str, bytes, Mapping)) or getattr(value, "shape", None) == ():
        return False
    return (hasattr(value, "shape") or hasattr(value, "__len__")) and count_rows(value) == n


def _check_score(score: Any, scorer: Any) -> float:
    if hasattr(score, "item"):
        with suppress(ValueError):
            score = score.item()
    if not isinstance(score, numbers.Real):
        raise ValueError(
            f"scoring must return a number, got {score} ({type(score)}) instead. (scorer={scorer})"
        )
    return float(score)


def _discard(number: int, fits: list[Fit]) -> None:
    """Keep nothing."""


@dataclass(frozen=True)
class CrossValidatedObjective:
    """The objective of the study behind a search. It reports the score by `metric` of each fold,
    and the time of the fits as the cost.

    `keep` receives the number of a trial and all its fits. With `racing`, the evaluation of a
    candidate stops as soon as it is clearly behind."""

    evaluation: Evaluation
    translation: Translation
    metric: str
    racing: float | None = None
    keep: Callable[[int, list[Fit]], None] = _discard
    # scikit-learn's configuration, which other processes and threads do not inherit
    config: Mapping[str, Any] = field(default_factory=sklearn.get_config)

    def __call__(self, run: Run) -> None:
        data, splits = self.evaluation.data, self.evaluation.splits
        params = self.translation.params(run.params)
        folds = run.folds(
            data.X, data.y, splits, groups=data.groups, time=data.in_time_order, error=self.racing
        )
        fits: list[Fit] = []
        with sklearn.config_context(**self.config):
            for fold, fit in self._fits(params, folds, run.number * len(splits)):
                fits.append(fit)
                score = self._optimized_score(fit)
                if math.isfinite(score):
                    fold.report(score)
                elif self.racing is not None:  # a fold without a score cannot be compared
                    break
        self.keep(run.number, fits)
        if len(folds.reported) < len(fits):
            why = next((fit.failure for fit in fits if fit.failure), None)
            raise CandidateFailed(
                why or f"scores must be finite, but got {[fit.test for fit in fits]}"
            )
        run.timed = sum(fit.fit_time for fit in fits)

    def _fits(
        self, params: Mapping[str, Any], folds: Folds, number: int
    ) -> Iterator[tuple[Fold, Fit]]:
        """A fit for each fold; `number` is that of the first. Without racing, all folds are fitted
        in one call if possible."""
        if self.racing is None and self.evaluation.can_fit_folds:
            every = list(folds)
            pairs = [(fold.train, fold.valid) for fold in every]
            fits = self.evaluation.fit_folds(params, pairs, number=number)
            yield from zip(every, fits, strict=True)
        else:
            for i, fold in enumerate(folds, number):
                yield fold, self.evaluation.fit(params, fold.train, fold.valid, number=i)

    def _optimized_score(self, fit: Fit) -> float:
        """The score that the study sees. It is not finite if there is none."""
        if fit.failure is None and self.metric not in fit.test:
            return next(
                iter(fit.test.values())
            )  # the scorer returned several metrics: the first counts
        error_score = self.evaluation.error_score
        otherwise = math.nan if error_score == "raise" else float(error_score)
        return fit.test.get(self.metric, otherwise)
