"""Are results exact or noisy, smooth or rough? A search that does not know has several models of
quality and compares.

A model for exact results follows every result, and explains noise by structure that is not there.
A model for noisy results smooths, and blurs the best of exact ones. So each has its place, and
which one is right is a question for the data: folds and repeats answer it (repeats.py). Before
there are any, the model for exact results is used unless the results are clearly more probable
under the other one. Then the suspicion is worth one trial: the best one, again.

Among noisy results, a model that expects long trends finds an optimum at the edge of the space
soon, and it looks there in vain if the optimum is inside. So it gives way to one that expects short
trends while the results are clearly more probable under that one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tradewind.optimizer.history import History
from tradewind.optimizer.log_error import LogError
from tradewind.optimizer.repeats import Noise, row_keys
from tradewind.optimizer.strategies.worth import fit_quality
from tradewind.optimizer.surrogates.gp import GaussianProcess, GPPredictor
from tradewind.optimizer.surrogates.surrogate import Predictor, Surrogate
from tradewind.optimizer.transforms import Clip, Standardize
from tradewind.types import Array, Columns, Indices

_FEWEST = 8  # trials that can tell noise from structure
_EARLY = 40  # up to so many trials, every proposal compares the models
_EVERY = 5  # after that one in so many: a second fit takes time
_UNUSUAL = 9.0  # times the usual variance: luck alone does not make five folds scatter so much
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
        finished: int,
        columns: Columns,
        rng: np.random.Generator,
    ) -> QualityModel:
        """The model that suits the results. `history` has those that are fitted, a part of all
        `finished` trials if these are many.

        The noise of noisy results is learned: few folds say little about the noise of their own
        trial, and a model that believed them would follow trials that look precise by luck. Only
        trials that were raced, and so have fewer folds, or whose folds scatter much more than
        usual are taken to be as noisy as their folds say."""
        compare = _is_time(finished)
        if self.noisy is not None and noise is Noise.PRESENT:
            unusual = history.raced | (history.noise > _UNUSUAL * np.median(history.noise))
            history = replace(history, noise=np.where(unusual, history.noise, 0.0))
            fits = _Fits(history, transform, columns, rng)
            _, model = fits.choose("noisy", self.noisy, "rough", self.rough, compare=compare)
            return fits.answer(model, noise)
        other = None if noise is Noise.ABSENT else self.noisy
        fits = _Fits(history, transform, columns, rng)
        chosen, model = fits.choose("quality", self.exact, "noisy", other, compare=compare)
        if chosen == "noisy":
            return fits.answer(model, Noise.PRESENT, suspected=True)
        return fits.answer(model, noise)


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

    def choose(
        self, name: str, usual: Surrogate, rival: str, other: Surrogate | None, *, compare: bool
    ) -> tuple[str, Predictor]:
        """The usual model, or the other one if results are clearly more probable under it. Between
        comparisons the last choice stays."""
        if other is None:
            return name, self._fit(usual, name)
        chosen = rival if self.history.handover.get("chosen") == rival else name
        models = {}
        if compare:
            models = {
                name: self._fit(self._steady(usual), name),
                rival: self._fit(self._steady(other), rival),
            }
            chosen = rival if _clearly(models[rival], models[name]) else name
        self.handover["chosen"] = chosen
        surrogate = other if chosen == rival else usual
        if models and self._steady(surrogate) is surrogate:
            return chosen, models[chosen]
        return chosen, self._fit(surrogate, chosen)

    def _steady(self, surrogate: Surrogate) -> Surrogate:
        """The surrogate without draws: how probable results are must not depend on luck."""
        many = len(self.columns.cells)
        if isinstance(surrogate, GaussianProcess) and surrogate.spread_of_draws(many) > 0.0:
            return replace(surrogate, length_draw=0.0)
        return surrogate

    def _fit(self, surrogate: Surrogate, name: str) -> Predictor:
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
    """Whether the results are clearly more probable under the other model. Only Gaussian processes
    tell how probable they are."""
    if not isinstance(other, GPPredictor) or not isinstance(model, GPPredictor):
        return False
    return other.log_density > model.log_density + _CLEAR


def repeat_of(history: History, best_first: Indices) -> Array | None:
    """The row (d,) of the best trial, to be run again; None if a repeat is running or has failed,
    or if it costs too much."""
    others = np.vstack([history.failed, history.pending, history.ignored])
    if len(others) and not set(row_keys(history.X)).isdisjoint(row_keys(others)):
        return None
    best, limit = best_first[0], history.max_cost
    if limit is not None and not history.cost[best] <= limit:
        return None
    return np.asarray(history.X[best])
