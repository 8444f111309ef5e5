"""What a stored study has to do with a search: under which name it is kept, and what it knows."""

from __future__ import annotations

import hashlib
from typing import Any

import cloudpickle
import joblib
import numpy as np

from tradewind.sklearn.evaluation import Evaluation, Fit
from tradewind.types import Trial


def study_name(given: str | None, evaluation: Evaluation, scoring: Any) -> str:
    """A name that no search has with other data, folds or scores, or another estimator: their
    results must not be mixed. In a nested search every outer fold has its own."""
    data, estimator = evaluation.data, evaluation.estimator
    parts = (estimator, data.X, data.y, data.groups, data.fit_params, evaluation.splits, scoring)
    try:
        digest = joblib.hash(parts)
    except Exception:  # what pickle cannot write, such as a lambda
        digest = hashlib.md5(cloudpickle.dumps(parts), usedforsecurity=False).hexdigest()
    return f"{given or type(estimator).__name__}-{str(digest)[:12]}"


def restored(trial: Trial, metric: str, n_splits: int) -> list[Fit]:
    """What a stored study knows of the fits of a candidate: its scores by the metric that was
    optimized, and their mean time."""
    cost = np.nan if trial.cost is None else trial.cost
    scores = trial.folds
    if trial.finished and not scores:  # added by hand
        scores = (trial.value or 0.0,) * n_splits
    if len(scores) > n_splits or (trial.finished and not trial.raced and len(scores) < n_splits):
        raise ValueError(
            f"the stored study has candidates with {len(scores)} folds, but cv has {n_splits}: "
            "give another name to a search with another cv"
        )
    return [Fit(cost, np.nan, {metric: score}, {}, np.nan) for score in scores]
