"""What a row is worth: the models of one proposal, and the score that a maximizer climbs.

Quality is modelled standardized, after an output transform. Cost is modelled (costs.py) only if
the goal or a limit asks for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from tradewind.optimizer.history import History, TriedRows, alike
from tradewind.optimizer.log_error import LogError
from tradewind.optimizer.strategies.costs import Charge, Price, slope_by_cost
from tradewind.optimizer.strategies.target import Target
from tradewind.optimizer.surrogates.surrogate import Differentiable, Predictor, Surrogate
from tradewind.optimizer.transforms import Clip, Scaling, Standardize
from tradewind.types import Array, Columns


class Output(Enum):
    """How quality is transformed before it is modelled: without its bad tail (CLIP), as
    log(1 − accuracy) (LOG_ERROR), or not at all (IDENTITY).

    >>> strategy = tw.strategies.Bayes(output=tw.strategies.Output.CLIP)
    """

    CLIP = "clip"  # cut off the bad tail: transforms.Clip
    LOG_ERROR = "log_error"  # H eq. 15
    IDENTITY = "identity"

    def transform(
        self, quality: Array, scaling: Scaling = "std", *, matters_above: float
    ) -> Clip | LogError:
        """The transform for these qualities, which are scaled afterwards. It clips nothing above
        `matters_above`: under a trade-off, a bad but cheap trial may be the best."""
        if self is Output.LOG_ERROR:
            return LogError(scaling=scaling)
        least = min(Clip.of(quality).floor, matters_above)
        return Clip(-np.inf if self is Output.IDENTITY else least, scaling)


@dataclass(frozen=True)
class Models:
    """The fitted models of one proposal, in the units in which they are scored.

    `quality` predicts standardized quality: `transform` and then `units` lead there from natural
    quality. `cost` predicts the cost that the goal weighs, and `price` what a trial will cost. Both
    are None if nothing asks for them. `suspected`: results look noisy, but no trial was repeated
    yet (doubt.py)."""

    quality: Predictor
    transform: Clip | LogError
    units: Standardize
    handover: Mapping[str, Any]
    cost: Predictor | None = None
    price: Price | None = None
    suspected: bool = False

    def standard(self, quality: Array | float) -> Array:
        """Natural quality in the units of the model."""
        return self.units.forward(self.transform.forward(np.asarray(quality, dtype=float)))

    def median_cost(self, row: Array) -> float | None:
        """The median cost of a trial of this row (d,), if cost is modelled."""
        return None if self.price is None else self.price.median(row)


def fit_quality(
    surrogate: Surrogate,
    history: History,
    transform: Clip | LogError,
    *,
    columns: Columns,
    start: Mapping[str, Any] | None = None,
    rng: np.random.Generator,
) -> tuple[Standardize, Predictor]:
    """The units of transformed quality, and its model in these units. A failed trial counts as bad
    as the worst finished one. `start` is the handover of an earlier model of this kind."""
    X = np.vstack([history.X, history.failed])
    y = np.concatenate([history.quality, np.full(len(history.failed), history.quality.min())])
    noise = np.concatenate([history.noise, np.zeros(len(history.failed))])
    t = transform.forward(y)
    units = Standardize.of(t, transform.scaling)
    model = surrogate.fit(
        X,
        units.forward(t),
        columns=columns,
        # noise of a thousand times the spread of all values says nothing; larger would not say less
        noise=np.square(np.minimum(np.sqrt(noise) * transform.slope(y) / units.scale, 1e3)),
        start=start,
        rng=rng,
    )
    return units, model


@dataclass(frozen=True)
class ModelScore:
    """How much snapped rows are worth trying. Rows that were tried, or are almost the same as a
    `pending` one, score −inf."""

    models: Models
    target: Target
    charge: Charge | None
    tried: TriedRows
    pending: Array
    columns: Columns

    def __call__(self, X: Array) -> Array:
        models, charge = self.models, self.charge
        cost = None if models.cost is None else models.cost.predict(X)
        value = self.target.partials(models.quality.predict(X), cost).value
        if charge is not None:
            same = cost if charge.model is models.cost else None
            value = charge(value, same or charge.model.predict(X))
        again = self.tried.times(X) > 0
        if len(self.pending):
            again |= alike(X, self.pending, self.columns)
        return np.where(again, -np.inf, value)


class SmoothModelScore(ModelScore):
    """The same for models with gradients."""

    def gradient(self, X: Array) -> tuple[Array, Array]:
        models, charge = self.models, self.charge
        quality, d_mean, d_std = _smooth(models.quality).predict_gradient(X)
        cost = None if models.cost is None else _smooth(models.cost).predict_gradient(X)
        worth = self.target.partials(quality, None if cost is None else cost[0])
        value = worth.value
        slope = worth.by_mean[:, None] * d_mean + worth.by_std[:, None] * d_std
        if cost is not None:
            slope += slope_by_cost(worth, cost)
        if charge is not None:
            same = cost if charge.model is models.cost else None
            price = same or _smooth(charge.model).predict_gradient(X)
            charged = charge.partials(value, price[0])
            value, slope = charged.value, slope + slope_by_cost(charged, price)
        return value, slope


def _smooth(model: Predictor) -> Differentiable:
    assert isinstance(model, Differentiable)
    return model


def model_score(
    models: Models, target: Target, *, cost_power: float, history: History, columns: Columns
) -> ModelScore:
    """The score of a row for the next trial. It has a gradient if all models have one.

    The score is divided by cost^`cost_power`, and `history.max_cost` limits the cost."""
    charge = None if models.price is None else models.price.charge(cost_power, history.max_cost)
    parts = (models.quality, models.cost, None if charge is None else charge.model)
    smooth = all(isinstance(part, Differentiable) for part in parts if part is not None)
    kind = SmoothModelScore if smooth else ModelScore
    return kind(models, target, charge, history.tried, history.pending, columns)
