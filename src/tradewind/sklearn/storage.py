"""The stored study of a search: its name, and the results that it already has."""

from __future__ import annotations

import hashlib
from typing import Any

import cloudpickle
import joblib
import numpy as np

from tradewind.sklearn.evaluation import Evaluation, Fit
from tradewind.types import Trial


def study_name(given: str | None, evaluation: Evaluation, scoring: Any) -> str:
    """A name that includes a digest of the estimator, the data, the folds and the scoring, so that
    results of different searches are never mixed. In a nested search, every outer fold gets its
    own study."""
    data, estimator = evaluation.data, evaluation.estimator
    parts = (estimator, data.X, data.y, data.groups, data.fit_params, evaluation.splits, scoring)
    try:
        digest = joblib.hash(parts)
    except Exception:  # pickle cannot write some objects, such as a lambda
        digest = hashlib.md5(cloudpickle.dumps(parts), usedforsecurity=False).hexdigest()
    return f"{given or type(estimator).__name__}-{str(digest)[:12]}"


def fits_in_store(trial: Trial, metric: str, n_splits: int) -> list[Fit]:
    """The fits of a candidate as far as the stored study knows them: the scores of the optimized
    metric, and the mean time of a fit."""
    cost = np.nan if trial.cost is None else trial.cost
    scores = trial.folds
    if trial.finished and not scores:  # the user added this result
        scores = (trial.value or 0.0,) * n_splits
    if len(scores) > n_splits or (trial.finished and not trial.raced and len(scores) < n_splits):
        raise ValueError(
            f"the stored study has candidates with {len(scores)} folds, but cv has {n_splits}: "
            "give another name to a search with another cv"
        )
    return [Fit(cost, np.nan, {metric: score}, {}, np.nan) for score in scores]
