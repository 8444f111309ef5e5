"""Are results exact or noisy, smooth or rough? A search that does not know has several models of
quality and compares.

A model for exact results follows every result, and explains noise by structure that is not there.
A model for noisy results smooths, and blurs the best of exact ones. So each has its place, and
which one is right is a question for the data: folds and repeats answer it (repeats.py). Before
there are any, the model under which the results are more probable is used. If that is the one for
noisy results, the suspicion is worth one trial: the best one, again.

Among noisy results, a model that expects long trends finds an optimum at the edge of the space
soon, and it looks there in vain if the optimum is inside. So it gives way to one that expects short
trends as soon as the results are clearly more probable under that one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tradewind.optimizer.history import History
from tradewind.optimizer.log_error import LogError
from tradewind.optimizer.repeats import Noise, row_keys
from tradewind.optimizer.strategies.worth import fit_quality
from tradewind.optimizer.surrogates.gp import GPPredictor
from tradewind.optimizer.surrogates.surrogate import Predictor, Surrogate
from tradewind.optimizer.transforms import Clip, Standardize
from tradewind.types import Array, Columns, Indices

_FEWEST = 8  # trials that can tell noise from structure
_EARLY = 40  # up to so many trials, every proposal compares the models
_EVERY = 5  # after that one in so many: a second fit takes time
_CLEAR = 3.0  # how much larger the log density under the other model must be


@dataclass(frozen=True)
class QualityModel:
    """The model of quality to use, in `units`. `noise` says what it takes results for; if that is
    `suspected` only, no trial has confirmed it yet."""

    model: Predictor
    units: Standardize
    handover: dict[str, Any]
    noise: Noise
    suspected: bool = False


@dataclass(frozen=True)
class Doubt:
    """The surrogates among which results decide. Without a `noisy` one, `exact` is for all results;
    without a `rough` one, `noisy` is for all noisy results."""

    exact: Surrogate
    noisy: Surrogate | None = None
    rough: Surrogate | None = None

    def fit(
        self,
        history: History,
        transform: Clip | LogError,
        *,
        noise: Noise,
        columns: Columns,
        rng: np.random.Generator,
    ) -> QualityModel:
        """The model that suits the results."""
        fits = _Fits(history, transform, columns, rng)
        if self.noisy is not None and noise is Noise.PRESENT:
            return self._smooth_or_rough(fits, self.noisy)
        model = fits.one(self.exact, "quality")
        if self.noisy is None or noise is Noise.ABSENT or not _is_time(len(history.X)):
            return fits.answer(model, noise)
        other = fits.one(self.noisy, "noisy")
        if _clearly(other, model):
            return fits.answer(other, Noise.PRESENT, suspected=True)
        return fits.answer(model, noise)

    def _smooth_or_rough(self, fits: _Fits, noisy: Surrogate) -> QualityModel:
        """The model of noisy results. Its noise is learned: few folds say little about the noise of
        their own trial, and a model that believed them would follow trials that look precise by
        luck. Only a raced trial, which has fewer folds than others, is as noisy as they say."""
        history = fits.history
        fits.history = replace(history, noise=np.where(history.raced, history.noise, 0.0))
        if self.rough is None:
            return fits.answer(fits.one(noisy, "noisy"), Noise.PRESENT)
        chosen = history.handover.get("chosen", "noisy")
        if _is_time(len(history.X)):
            models = {"noisy": fits.one(noisy, "noisy"), "rough": fits.one(self.rough, "rough")}
            chosen = "rough" if _clearly(models["rough"], models["noisy"]) else "noisy"
            model = models[chosen]
        else:
            model = fits.one(self.rough if chosen == "rough" else noisy, chosen)
        fits.handover["chosen"] = chosen
        return fits.answer(model, Noise.PRESENT)


class _Fits:
    """Fits models to a history, each one starting from the last of its kind."""

    def __init__(
        self,
        history: History,
        transform: Clip | LogError,
        columns: Columns,
        rng: np.random.Generator,
    ) -> None:
        self.history, self.transform, self.columns, self.rng = history, transform, columns, rng
        kept = ("noisy", "rough")  # the next comparison starts from them
        self.handover = {name: it for name, it in history.handover.items() if name in kept}

    def one(self, surrogate: Surrogate, name: str) -> Predictor:
        start = self.history.handover.get(name)
        self.units, model = fit_quality(
            surrogate, self.history, self.transform, columns=self.columns, start=start, rng=self.rng
        )
        self.handover[name] = dict(model.handover)
        return model

    def answer(self, model: Predictor, noise: Noise, *, suspected: bool = False) -> QualityModel:
        return QualityModel(model, self.units, self.handover, noise, suspected)


def _is_time(n: int) -> bool:
    """Whether the models are compared after n finished trials."""
    return n >= _FEWEST and (n <= _EARLY or n % _EVERY == 0)


def _clearly(other: Predictor, model: Predictor) -> bool:
    """Whether the results are clearly more probable under the other model."""
    return _log_density(other) > _log_density(model) + _CLEAR


def _log_density(model: Predictor) -> float:
    """That of the results; only Gaussian processes tell it."""
    return model.log_density if isinstance(model, GPPredictor) else -np.inf


def repeat_of(history: History, best_first: Indices) -> Array | None:
    """The row (d,) of the best trial, to be run again; None if a repeat is running or has failed,
    or if it costs too much."""
    others = np.vstack([history.failed, history.pending, history.ignored])
    if not set(row_keys(history.X)).isdisjoint(row_keys(others)):
        return None
    best, limit = best_first[0], history.max_cost
    if limit is not None and not history.cost[best] <= limit:
        return None
    return np.asarray(history.X[best])
