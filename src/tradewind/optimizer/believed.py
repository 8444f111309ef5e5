"""How good finished trials are believed to be: the best of many noisy results is the luckiest one.

`study.best` ranks by these beliefs. Where nothing is known about noise, results count as they are.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from tradewind.data.estimates import ResultNoise
from tradewind.data.noise import repeat_noise
from tradewind.optimizer.belief import Belief
from tradewind.optimizer.history import History
from tradewind.optimizer.repeats import Noise, noise_of, repeats, whole_runs, with_repeats
from tradewind.seeds import proposal_rng
from tradewind.space import Space
from tradewind.types import Array

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
    random."""
    history = with_repeats(history)
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
        model, unexplained = _posterior_mean(space, history)
        drawn = within_reach(model, quality, noise)
        own = np.maximum(np.square(unexplained), noise * runs / _OWN)
        drawn += own / np.maximum(own + noise, 1e-300) * (quality - drawn)
        quality = np.where(np.isfinite(drawn) & (noise > 0.0), drawn, quality)
        for rows in groups:  # a model's answers for the same point may differ in the last digit
            quality[rows] = quality[rows[0]]
    return replace(history, quality=quality, cost=cost, noise=noise)


def within_reach(model: Array, quality: Array, noise: Array) -> Array:
    """What a model expects of trials (n,), but no more than three standard errors away from their
    results: more is the fault of the model, and not of the noise."""
    reach = _REACH * np.sqrt(np.maximum(noise, np.median(noise)))
    return np.clip(model, quality - reach, quality + reach)


def _mean(values: Array) -> float:
    """The mean of those that are known; NaN if none is."""
    known = values[np.isfinite(values)]
    return float((known / len(known)).sum()) if len(known) else np.nan


def _posterior_mean(space: Space, history: History) -> tuple[Array, Array]:
    """The mean (n,) of a model's belief about the finished trials, and the standard deviation of
    what it does not explain. Trials of different training sizes are modelled apart, unless the size
    is a column."""
    rng = proposal_rng(history.seed, history.number)
    history = replace(history, cost=np.full_like(history.cost, np.nan))  # no model of it is needed
    sizes = history.sizes.finished
    if space.size_name is not None:
        sizes = np.ones_like(sizes)
    mean, unexplained = np.empty(len(history.X)), np.empty(len(history.X))
    for size in np.unique(sizes):
        rows = np.flatnonzero(sizes == size)
        part = history.take(rows)
        belief = Belief.of(space, part, rng=rng, max_points=_MAX_POINTS)
        mean[rows], unexplained[rows] = belief.quality(part.X).mean, belief.unexplained
    return mean, unexplained


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
    return min(pooled, unexplained, key=lambda it: it.margin(0.9))
