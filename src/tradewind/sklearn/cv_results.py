"""The results of a search as a table: `cv_results_`, in scikit-learn's form."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import FitFailedWarning

from tradewind.errors import warn
from tradewind.sklearn.evaluation import Fit
from tradewind.types import Array


@dataclass(frozen=True)
class Row:
    """One candidate: its parameters, the fraction of the training rows, and a fit for each fold.
    A candidate that was raced or failed may have fewer."""

    params: Mapping[str, Any]
    train_size: float
    fits: Sequence[Fit]


def build_cv_results(
    rows: Sequence[Row], n_splits: int, *, error_score: float, train_scores: bool
) -> dict[str, Any]:
    """The table as columns, with one entry per candidate."""
    results: dict[str, Any] = {}

    def table(of: Callable[[Fit], float]) -> Array:
        """An array (candidates, folds). NaN marks folds that did not run."""
        values = np.full((len(rows), n_splits), np.nan)
        for i, row in enumerate(rows):
            values[i, : len(row.fits)] = [of(fit) for fit in row.fits]
        return values

    def scores(part: str, metric: str) -> Array:
        """Scores of one metric. A failed fit has the error score. A stored fit has NaN unless the
        metric is the optimized one."""
        return table(
            lambda fit: getattr(fit, part).get(metric, error_score if fit.failure else np.nan)
        )

    times = {"fit_time": table(lambda f: f.fit_time), "score_time": table(lambda f: f.score_time)}
    for key, seconds in times.items():
        known = [line[np.isfinite(line)] for line in seconds]
        results[f"mean_{key}"] = np.array([x.mean() if len(x) else np.nan for x in known])
        results[f"std_{key}"] = np.array([x.std() if len(x) else np.nan for x in known])
    for name in dict.fromkeys(name for row in rows for name in row.params):
        results[f"param_{name}"] = _param_column([row.params for row in rows], name)
    results["params"] = [dict(row.params) for row in rows]
    results["train_size"] = np.array([row.train_size for row in rows])
    counts = [[fit.rows for fit in row.fits] or [np.nan] for row in rows]
    results["n_train_rows"] = np.array([np.mean(count) for count in counts])
    for metric in metric_names(rows):
        for part in ("test", "train") if train_scores else ("test",):
            key, values = f"{part}_{metric}", scores(part, metric)
            results |= {f"split{i}_{key}": values[:, i] for i in range(n_splits)}
            with np.errstate(invalid="ignore"):  # a score may be infinite
                results[f"mean_{key}"], results[f"std_{key}"] = values.mean(1), values.std(1)
            _warn_about_scores(part, rows, results[f"mean_{key}"])
            if part == "test":
                results[f"rank_{key}"] = _ranks(results[f"mean_{key}"])
    return results


def metric_names(rows: Sequence[Row]) -> list[str]:
    """The names of all scores."""
    found = dict.fromkeys(name for row in rows for fit in row.fits for name in fit.test)
    return list(found) or ["score"]


def _ranks(means: Array) -> NDArray[np.int32]:
    """Ranks from 1 for the best. Equal means share a rank, and candidates without a score come
    last."""
    known = np.where(np.isnan(means), -math.inf, means)
    return np.array([1 + int((known > mean).sum()) for mean in known], dtype=np.int32)


def _param_column(params: Sequence[Mapping[str, Any]], name: str) -> Any:
    """The values of one parameter, masked for candidates that do not have it."""
    values = [given[name] for given in params if name in given]
    try:
        kind = np.array(values)
    except ValueError:  # sequences of different lengths
        kind = np.empty((0, 0))
    plain = kind.ndim == 1 and kind.dtype.kind not in "US"
    column = np.ma.MaskedArray(np.empty(len(params), kind.dtype if plain else object), mask=True)
    for i, given in enumerate(params):
        if name in given:
            column[i] = given[name]  # this also removes the mask
    return column


# ---- warnings ----


def _warn_about_scores(part: str, rows: Sequence[Row], means: Array) -> None:
    """Warn about scores that are not finite. Candidates that were stopped early do not count."""
    n = max(len(row.fits) for row in rows)
    complete = [len(row.fits) == n for row in rows]
    if not np.isfinite(means[complete]).all():
        warn(f"One or more of the {part} scores are non-finite: {means}")


def report_failures(rows: Sequence[Row], error_score: float) -> None:
    """Warn about fits and scores that failed. If every fit failed, raise an error."""
    fits = [fit for row in rows for fit in row.fits]
    errors = Counter(fit.error for fit in fits if fit.error is not None)
    failed = errors.total()
    details = "\n".join(
        f"{'-' * 80}\n{n} fits failed with the following error:\n{error}"
        for error, n in errors.items()
    )
    if fits and failed == len(fits):
        raise ValueError(
            f"\nAll the {failed} fits failed.\nIt is very likely that your model is misconfigured."
            "\nYou can try to debug the error by setting error_score='raise'.\n\n"
            f"Below are more details about the failures:\n{details}"
        )
    if failed:
        warn(
            f"\n{failed} fits failed out of a total of {len(fits)}.\nThe score on these train-test "
            f"partitions for these parameters will be set to {error_score}.\nIf these failures are "
            "not expected, you can try to debug them by setting error_score='raise'.\n\n"
            f"Below are more details about the failures:\n{details}",
            FitFailedWarning,
        )
    for text, n in Counter(fit.unscored for fit in fits if fit.unscored is not None).items():
        warn(
            f"Scoring failed {n} times. The score on such a train-test partition for these "
            f"parameters will be set to {error_score}. Details:\n{text}"
        )
