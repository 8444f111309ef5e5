"""Fitting the models of one proposal: quality, and cost where the goal asks for it.

Quality is modelled standardized, after an output transform. Where a goal adds quality and cost,
the transform is undone first, because T is formed in natural units.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from tradewind.goals import Goal, Tradeoff
from tradewind.history import History
from tradewind.surrogates.surrogate import Predictor, Surrogate
from tradewind.tradeoff import Incumbent
from tradewind.transforms import Clip, Identity, LogError, Standardize, log_ratio
from tradewind.types import Array, Columns, Normal


class Output(Enum):
    """What is done to quality before it is modelled."""

    CLIP = "clip"  # the bad tail is cut: transforms.Clip
    LOG_ERROR = "log_error"  # H eq. 15
    IDENTITY = "identity"

    def transform(self, quality: Array) -> Clip | LogError | Identity:
        if self is Output.CLIP:
            return Clip.of(quality)
        return LogError() if self is Output.LOG_ERROR else Identity()


@dataclass(frozen=True)
class Models:
    """Fitted models, in the units in which they are scored.

    `quality` predicts standardized quality; one of its units is `unit` of natural quality.
    `cost` predicts log(c / reference) or σ, or is None where the goal ignores cost."""

    quality: Predictor
    cost: Predictor | None
    incumbent: Incumbent
    unit: float
    handover: Mapping[str, Any]


def fit_models(
    surrogate: Surrogate,
    goal: Goal,
    history: History,
    *,
    output: Output,
    log_cost: bool,
    columns: Columns,
    rng: np.random.Generator,
) -> Models:
    """Models of the finished and failed trials, conditioned on the pending ones."""
    start = history.handover
    X = np.vstack([history.X, history.failed])
    worst = np.full(len(history.failed), history.quality.min())  # what a failure is believed to be
    y = np.concatenate([history.quality, worst])
    noise = np.concatenate([history.noise, np.zeros(len(worst))])
    transform = output.transform(history.quality)
    t = transform.forward(y)
    scale = Standardize.of(t)
    quality = surrogate.fit(
        X,
        scale.forward(t),
        columns=columns,
        noise=np.square(np.sqrt(noise) * transform.slope(y) / scale.scale),
        start=start.get("quality"),
        rng=rng,
    )
    handover = {"quality": dict(quality.handover)}
    believed = quality.condition(history.pending)
    if not goal.needs_cost:
        best = float(scale.forward(transform.forward(history.quality)).max())
        return Models(believed, None, Incumbent(best, best, 0.0), scale.scale, handover)
    assert isinstance(goal, Tradeoff) and goal.reference is not None
    if output is Output.LOG_ERROR:
        natural = Standardize.of(history.quality)
        believed = _Natural(believed, scale, transform, natural)
        scale = natural
    known = np.isfinite(history.cost)
    cost = surrogate.fit(
        history.X[known],
        log_ratio(history.cost[known], goal.reference)
        if log_cost
        else goal.sigma(history.cost[known]),
        columns=columns,
        start=start.get("cost"),
        rng=rng,
    )
    handover["cost"] = dict(cost.handover)
    utility = goal.utility(history.quality[known], history.cost[known])
    incumbent = Incumbent(
        score=float(scale.forward(utility).max()),
        quality=float(scale.forward(history.quality).max()),
        sigma=float(goal.sigma(history.cost[known]).min()),
    )
    return Models(believed, cost, incumbent, scale.scale, handover)


@dataclass(frozen=True)
class _Natural:
    """A predictor of transformed quality, brought back to natural quality and standardized."""

    inner: Predictor
    scale: Standardize
    transform: Clip | LogError | Identity
    units: Standardize

    @property
    def handover(self) -> Mapping[str, Any]:
        return self.inner.handover

    def predict(self, X: Array) -> Normal:
        natural = self.transform.natural(self.scale.natural(self.inner.predict(X)))
        return Normal(self.units.forward(natural.mean), natural.std / self.units.scale)

    def condition(self, X: Array) -> Predictor:
        return _Natural(self.inner.condition(X), self.scale, self.transform, self.units)
