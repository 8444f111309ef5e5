"""How good finished trials are believed to be: the best of many noisy results is the luckiest one.

`study.best` ranks by these beliefs. Where nothing is known about noise, results count as they are.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.special import stdtrit

from tradewind.data.estimates import ResultNoise
from tradewind.data.noise import repeat_noise
from tradewind.goals import best_of, efficient
from tradewind.optimizer.belief import Belief
from tradewind.optimizer.history import History
from tradewind.optimizer.repeats import Noise, noise_of, repeats, whole_runs, with_repeats
from tradewind.seeds import proposal_rng
from tradewind.space import Space
from tradewind.types import Array, Indices, Normal

_REACH = 3.0  # how many standard errors a model may move a result
_OWN = 9.0  # the variance of one result, in units of what is a configuration's own
_ENOUGH = 10.0  # degrees of freedom: with so many, repeats alone tell how noisy results are
_MAX_POINTS = 200  # the model is fitted to at most this many trials, as it is after every one


def believed(space: Space, history: History) -> History:
    """The history with the qualities, costs and noise that the configurations are believed to have.

    Repeats of a configuration count as one result, their mean. Where noise is known, from folds or
    repeats, the posterior mean of a model draws a lucky result towards its neighbours, within reach
    of its noise.

    What the model does not explain is partly the configuration's own, which no neighbour knows: as
    much as results scatter around the model beyond their known noise, but at least a ninth of the
    variance of one run. Otherwise a model to which all results are noise would choose among them at
    random.

    A difference of belief below its standard error decides nothing: a trial with a better result at
    a lower cost is then believed to be as good."""
    history = with_noise(history, noise_of_one_result(space, history))
    groups = repeats(history)
    if not groups and not history.noise.any():
        return history
    quality, cost, noise = history.quality.copy(), history.cost.copy(), history.noise.copy()
    runs = np.ones(len(quality))
    for rows in groups:
        whole = whole_runs(history, rows)
        quality[rows] = _mean(history.quality[whole])
        cost[rows] = _mean(history.cost[whole])
        noise[rows] = _mean(history.noise[whole]) / len(whole)
        runs[rows] = len(whole)
    if noise.any():
        model, unexplained = _posterior(space, history)
        drawn, result = within_reach(model.mean, quality, noise), quality
        own = np.maximum(np.square(unexplained), noise * runs / _OWN)
        weight = own / np.maximum(own + noise, 1e-300)
        drawn += weight * (quality - drawn)
        error = np.hypot(np.sqrt(weight * noise), (1.0 - weight) * model.std)
        quality = np.where(np.isfinite(drawn) & (noise > 0.0), drawn, quality)
        for rows in groups:  # a model's answers for the same point may differ in the last digit
            quality[rows], error[rows] = quality[rows[0]], error[rows[0]]
        for rows in _of_one_size(space, history):
            rows = rows[~history.raced[rows]]
            quality[rows] = _decided(quality[rows], error[rows], result[rows], cost[rows])
    return replace(history, quality=quality, cost=cost, noise=noise)


def with_noise(history: History, noise: ResultNoise | None) -> History:
    """The history with this noise of one result; if folds tell it, each trial keeps its own."""
    if noise is None or noise.known_from == "folds":
        return with_repeats(history)
    return replace(history, noise=np.full(len(history.X), noise.std**2))


def within_reach(model: Array, quality: Array, noise: Array) -> Array:
    """The expectations of a model (n,), moved to within three standard errors of the results: if it
    is further away, that is the fault of the model, and not of the noise."""
    reach = _REACH * np.sqrt(np.maximum(noise, np.median(noise)))
    return np.clip(model, quality - reach, quality + reach)


def _decided(quality: Array, error: Array, result: Array, cost: Array) -> Array:
    """The believed qualities (n,), raised to that of a trial that may be chosen wherever the result
    is at least as good, the cost is lower, and the difference is below its standard error."""
    decided = quality.copy()
    if not len(quality):
        return decided
    for best in {best_of(quality, cost), *efficient(quality, cost).tolist()}:
        beats = (result >= result[best]) & (cost < cost[best])
        beats &= quality[best] - quality <= np.hypot(error, error[best])
        decided[beats] = np.maximum(decided[beats], quality[best])
    return decided


def _mean(values: Array) -> float:
    """The mean of those that are known; NaN if none is."""
    known = values[np.isfinite(values)]
    return float((known / len(known)).sum()) if len(known) else np.nan


def _posterior(space: Space, history: History) -> tuple[Normal, Array]:
    """A model's belief about the finished trials (n,), and the standard deviation of what it does
    not explain."""
    rng = proposal_rng(history.seed, history.number)
    history = replace(history, cost=np.full_like(history.cost, np.nan))  # no model of it is needed
    mean, std, unexplained = np.empty((3, len(history.X)))
    for rows in _of_one_size(space, history):
        part = history.take(rows)
        belief = Belief.of(space, part, rng=rng, max_points=_MAX_POINTS)
        known = belief.quality(part.X)
        mean[rows], std[rows], unexplained[rows] = known.mean, known.std, belief.unexplained
    return Normal(mean, std), unexplained


def _of_one_size(space: Space, history: History) -> list[Indices]:
    """The finished trials of each training size, which are modelled apart unless the size is a
    column."""
    sizes = history.sizes.finished
    if space.size_name is not None:
        sizes = np.ones_like(sizes)
    return [np.flatnonzero(sizes == size) for size in np.unique(sizes)]


def noise_of_one_result(space: Space, history: History) -> ResultNoise | None:
    """How much one result varies: one estimate, pooled over the whole study. None if there are
    neither folds nor repeats.

    Few repeats say little about how much noise there is. A model of all trials leaves no less
    unexplained than the noise, so its estimate counts instead if it is the surer one of the two."""
    known = history.noise[history.noise > 0.0]
    if len(known):
        return ResultNoise(float(np.sqrt(np.median(known))), float(len(known)), "folds")
    groups = repeats(history)
    if not groups:
        return None
    freedom = float(sum(len(rows) - 1 for rows in groups))
    if noise_of(history) is Noise.ABSENT:
        return ResultNoise(0.0, freedom, "repeats")
    pooled = ResultNoise(math.sqrt(repeat_noise(history.quality, groups)), freedom, "repeats")
    if freedom >= _ENOUGH:
        return pooled
    rng = proposal_rng(history.seed, history.number)
    no_costs = replace(history, cost=np.full_like(history.cost, np.nan))  # no model of it is needed
    model = Belief.of(space, no_costs, rng=rng, max_points=_MAX_POINTS)
    unexplained = ResultNoise(model.quality_noise, max(model.trials - 1.0, 1.0), "repeats")
    return min(pooled, unexplained, key=lambda it: it.std * stdtrit(it.freedom, 0.95))
