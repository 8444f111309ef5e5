"""Which of the candidates of a study to take, under one goal or another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tradewind.goals import Goal, best_of, efficient
from tradewind.search_cv.evaluation import Fit
from tradewind.strategies.fidelity import MultiFidelity
from tradewind.study import Study
from tradewind.types import Array, Trial


@dataclass(frozen=True)
class Candidate:
    """A candidate of a search: its place in `cv_results_`, its parameters, the fraction of the
    training rows, its mean test score, and its cost: the mean time of a fit, in seconds."""

    index: int
    params: Mapping[str, Any]
    train_size: float
    score: float
    cost: float


def best(study: Study) -> tuple[Trial, float]:
    """The best candidate under the study's own goal, and the fraction of the rows to refit it
    with."""
    if not isinstance(study.strategy, MultiFidelity):
        return study.best, study.best.train_size
    advice = study.recommend()  # at full size, which the candidate may not have been tried at
    trial = _largest(study, advice.params) if advice.trial is None else advice.trial
    return trial, advice.train_size


def best_for(study: Study, goal: Goal) -> Trial:
    """The best candidate under another goal, of whatever training size. A reference that the goal
    leaves open is the study's, or else the largest cost."""
    trials = _evaluated(study)
    value, cost = _outcomes(trials)
    reference = getattr(study.goal, "reference", None)
    settled = goal.settle(cost if reference is None else np.array([reference]))
    return trials[best_of(settled.utility(value, cost))]


def frontier(study: Study) -> list[Trial]:
    """The efficient candidates, cheapest first."""
    trials = _evaluated(study)
    return [trials[i] for i in efficient(*_outcomes(trials))]


def _largest(study: Study, params: Mapping[str, Any]) -> Trial:
    """The trial with these parameters and the most data."""
    name = study.space.size_name

    def rest(given: Mapping[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in given.items() if key != name}

    alike = [t for t in study.trials if t.finished and rest(t.params) == rest(params)]
    return max(alike, key=lambda trial: trial.train_size)


def _evaluated(study: Study) -> list[Trial]:
    """The candidates that went through all folds."""
    return [trial for trial in study.trials if trial.finished and not trial.raced]


def _outcomes(trials: Sequence[Trial]) -> tuple[Array, Array]:
    values = np.array([trial.value for trial in trials], dtype=float)
    return values, np.array([trial.cost for trial in trials], dtype=float)  # NaN for None


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
