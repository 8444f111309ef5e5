"""The candidates of a search as users see them, and how much data to refit one with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tradewind.optimizer.strategies.fidelity import MultiFidelity
from tradewind.study.study import Study
from tradewind.types import Trial


@dataclass(frozen=True)
class Candidate:
    """A candidate of a search.

    `index` is its place in `cv_results_`, `train_size` the fraction of the training rows it was
    fitted with, `score` its mean test score, and `cost` the mean time of a fit in seconds."""

    index: int
    params: Mapping[str, Any]
    train_size: float
    score: float
    cost: float


def refit_size(study: Study, trial: Trial) -> float:
    """The fraction of the rows to refit a candidate with: its own, or the largest one if the small
    sizes were only there to learn from."""
    if isinstance(study.strategy, MultiFidelity):
        return study.space.columns.fractions[-1]
    return trial.train_size
