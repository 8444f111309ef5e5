"""Are results exact or noisy? A search that does not know has two models of quality and compares.

A model for exact results follows every result, and explains noise by structure that is not there.
A model for noisy results smooths, and blurs the best of exact ones. So each has its place, and
which one is right is a question for the data: folds and repeats answer it (repeats.py). Before
there are any, the model under which the results are more probable is used. If that is the one for
noisy results, the suspicion is worth one trial: the best one, again.
"""

from __future__ import annotations

from dataclasses import dataclass
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
_CLEAR = 3.0  # how much larger the log density under noise must be


@dataclass(frozen=True)
class QualityModel:
    """The model of quality to use, in `units`. `noise` says what it takes results for; if that is
    `suspected` only, no trial has confirmed it yet."""

    model: Predictor
    units: Standardize
    handover: dict[str, Any]
    noise: Noise
    suspected: bool = False


def fit_in_doubt(
    exact: Surrogate,
    noisy: Surrogate | None,
    history: History,
    transform: Clip | LogError,
    *,
    noise: Noise,
    columns: Columns,
    rng: np.random.Generator,
) -> QualityModel:
    """The model that suits the noise of the results. Without a `noisy` surrogate it is the `exact`
    one."""
    handover = {name: it for name, it in history.handover.items() if name == "noisy"}

    def fit(surrogate: Surrogate, name: str) -> tuple[Standardize, Predictor]:
        start = history.handover.get(name)
        units, model = fit_quality(
            surrogate, history, transform, columns=columns, start=start, rng=rng
        )
        handover[name] = dict(model.handover)
        return units, model

    if noisy is not None and noise is Noise.PRESENT:
        units, model = fit(noisy, "noisy")
        return QualityModel(model, units, handover, noise)
    units, model = fit(exact, "quality")
    if noisy is None or noise is Noise.ABSENT or not _is_time(len(history.X)):
        return QualityModel(model, units, handover, noise)
    _, other = fit(noisy, "noisy")
    if _log_density(other) > _log_density(model) + _CLEAR:
        return QualityModel(other, units, handover, Noise.PRESENT, suspected=True)
    return QualityModel(model, units, handover, noise)


def _is_time(n: int) -> bool:
    """Whether the models are compared after n finished trials."""
    return n >= _FEWEST and (n <= _EARLY or n % _EVERY == 0)


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
