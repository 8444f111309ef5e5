"""Fitting the models of one proposal: quality, and cost where the goal asks for it.

Quality is modelled standardized, after an output transform. Where a goal adds quality and cost,
the transform is undone first, because T is formed in natural units.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradewind.goals import Goal
from tradewind.optimizer.history import History
from tradewind.optimizer.surrogates.surrogate import Predictor, Surrogate
from tradewind.optimizer.transforms import Clip, Identity, LogError, Standardize
from tradewind.types import Array, Columns, Incumbent, Normal


class Output(Enum):
    """What is done to quality before it is modelled."""

    CLIP = "clip"  # the bad tail is cut: transforms.Clip
    LOG_ERROR = "log_error"  # H eq. 15
    IDENTITY = "identity"

    def transform(self, quality: Array, *, worth: float) -> Clip | LogError | Identity:
        """The transform for these qualities. What is `worth` as much as the best trial is not
        clipped: under a trade-off, a bad but cheap trial may be the best."""
        if self is Output.CLIP:
            return Clip(min(Clip.of(quality).floor, worth))
        return LogError() if self is Output.LOG_ERROR else Identity()


@dataclass(frozen=True)
class Models:
    """Fitted models, in the units in which they are scored.

    `quality` predicts standardized quality, from which `units` leads back. `cost` is what the goal
    is about, and `price` what a trial costs: both predict log(c / reference) or σ, as `scale`
    says, and are None where nobody asks for them."""

    quality: Predictor
    cost: Predictor | None
    price: Predictor | None
    scale: CostScale | None
    incumbent: Incumbent
    units: Standardize
    handover: Mapping[str, Any]

    def median_price(self, row: Array) -> float | None:
        """What a trial of this row (d,) will cost, as likely more as less."""
        if self.price is None or self.scale is None:
            return None
        return self.scale.natural(float(self.price.predict(row[None, :]).mean[0]))


@dataclass(frozen=True)
class CostScale:
    """The scale of a cost model: that `cost` is `scaled` there fixes it."""

    log: bool
    cost: float
    scaled: float

    @classmethod
    def of(cls, goal: Goal, cost: Array, *, log: bool) -> CostScale:
        """By one of the costs (n,): σ is cut above, the logarithm below."""
        scaled = goal.cost_scale(cost, log=log)
        i = int(np.argmax(cost) if log else np.argmin(cost))
        return cls(log, max(float(cost[i]), 1e-300), float(scaled[i]))

    def of_natural(self, cost: float) -> float:
        if self.log:
            return self.scaled + math.log(max(cost, 1e-300)) - math.log(self.cost)
        return self.scaled * cost / self.cost

    def natural(self, scaled: float) -> float:
        if self.log:
            return self.cost * math.exp(min(scaled - self.scaled, 700.0))
        return max(self.cost * scaled / max(self.scaled, 1e-300), 0.0)


def fit_models(
    surrogate: Surrogate,
    cost_surrogate: Surrogate,
    goal: Goal,
    history: History,
    *,
    rows: NDArray[np.intp],
    output: Output,
    log_cost: bool,
    with_cost: bool,
    columns: Columns,
    rng: np.random.Generator,
) -> Models:
    """Models of the finished trials `rows` and the failed ones, conditioned on the pending ones.

    `with_cost` models the cost although the goal ignores it."""
    utility = goal.utility(history.quality, history.cost)
    fitted = history.take(rows)
    transform = output.transform(fitted.quality, worth=float(np.nanmax(utility)))
    scale, quality = _fit_quality(surrogate, fitted, transform, columns, rng)
    handover = {"quality": dict(quality.handover)}
    believed = quality.condition(history.pending)
    known = np.isfinite(fitted.cost)
    cost = cost_scale = None
    if goal.needs_cost or (with_cost and known.any()):
        cost_scale = CostScale.of(goal, fitted.cost[known], log=log_cost)
        cost = cost_surrogate.fit(
            fitted.X[known],
            goal.cost_scale(fitted.cost[known], log=log_cost),
            columns=columns,
            start=history.handover.get("cost"),
            rng=rng,
        )
        handover["cost"] = dict(cost.handover)
    if not goal.needs_cost:
        best = float(scale.forward(transform.forward(history.quality)).max())
        incumbent = Incumbent(best, best, 0.0)
        return Models(believed, None, cost, cost_scale, incumbent, scale, handover)
    if isinstance(transform, LogError):
        natural = Standardize.of(fitted.quality)
        believed = _Natural(believed, scale, transform, natural)
        scale = natural
    incumbent = Incumbent(
        score=float(np.nanmax(scale.forward(utility))),
        quality=float(scale.forward(history.quality).max()),
        sigma=float(np.nanmin(goal.cost_scale(history.cost, log=False))),
    )
    return Models(believed, cost, cost, cost_scale, incumbent, scale, handover)


def expected_quality(
    surrogate: Surrogate,
    history: History,
    *,
    output: Output,
    columns: Columns,
    rng: np.random.Generator,
) -> Callable[[Array], Array]:
    """A function from snapped rows (m, d) to the quality (m,) that a model expects there."""
    transform = output.transform(history.quality, worth=math.inf)
    scale, model = _fit_quality(surrogate, history, transform, columns, rng)

    def expect(X: Array) -> Array:
        return transform.natural(scale.natural(model.predict(X))).mean

    return expect


def _fit_quality(
    surrogate: Surrogate,
    history: History,
    transform: Clip | LogError | Identity,
    columns: Columns,
    rng: np.random.Generator,
) -> tuple[Standardize, Predictor]:
    """The scale of transformed quality, and its model in that scale. A failed trial is believed
    to be as bad as the worst finished one."""
    X = np.vstack([history.X, history.failed])
    y = np.concatenate([history.quality, np.full(len(history.failed), history.quality.min())])
    noise = np.concatenate([history.noise, np.zeros(len(history.failed))])
    t = transform.forward(y)
    scale = Standardize.of(t)
    predictor = surrogate.fit(
        X,
        scale.forward(t),
        columns=columns,
        # noise a thousand times the spread of all says that nothing is known; more says no more
        noise=np.square(np.minimum(np.sqrt(noise) * transform.slope(y) / scale.scale, 1e3)),
        start=history.handover.get("quality"),
        rng=rng,
    )
    return scale, predictor


@dataclass(frozen=True)
class _Natural:
    """A predictor of transformed quality, brought back to natural quality and standardized."""

    inner: Predictor
    scale: Standardize
    transform: LogError
    units: Standardize

    @property
    def handover(self) -> Mapping[str, Any]:
        return self.inner.handover

    def predict(self, X: Array) -> Normal:
        natural = self.transform.natural(self.scale.natural(self.inner.predict(X)))
        return Normal(self.units.forward(natural.mean), natural.std / self.units.scale)

    def condition(self, X: Array) -> Predictor:
        return _Natural(self.inner.condition(X), self.scale, self.transform, self.units)
