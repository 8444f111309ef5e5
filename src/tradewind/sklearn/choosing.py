"""The candidates of a search, as users see them, and with how much data to refit one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tradewind.optimizer.strategies.fidelity import MultiFidelity
from tradewind.study.study import Study
from tradewind.types import Trial


@dataclass(frozen=True)
class Candidate:
    """A candidate of a search: its place in `cv_results_`, its parameters, the fraction of the
    training rows, its mean test score, and its cost: the mean time of a fit, in seconds."""

    index: int
    params: Mapping[str, Any]
    train_size: float
    score: float
    cost: float


def refit_size(study: Study, trial: Trial) -> float:
    """The fraction of the rows to refit a candidate with: its own, or all where sizes are there to
    learn from."""
    if isinstance(study.strategy, MultiFidelity):
        return study.space.columns.fractions[-1]
    return trial.train_size
