"""What moves quality and cost: shares of their variance, and averages along one parameter.

A configuration is a point of the unit cube, and the coordinates of a random one are independent, so
the variance of any function of the space splits into shares (Sobol'). The coordinate of an inactive
parameter has no effect: a conditional parameter counts for what it does where it is active, and
its parent for switching it on or off.

Everything is computed for functions drawn from the fitted models. Their spread is what the trials
leave open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tradewind.optimizer.surrogates.draws import FunctionDraws
from tradewind.optimizer.surrogates.ensemble import EnsemblePredictor
from tradewind.space import Space
from tradewind.types import Array

SETTINGS = 6  # of the hyper-parameters
PRECISION = 0.02  # of a share, which is computed from a sample of rows

_EACH = 10  # functions for each setting
_NODES = 6  # values of a parameter that has more than twice as many
_ROWS = 4_000  # for the shares of all parameters, about
_SPREAD = 2_000  # for the variance as a whole
AVERAGED = 200  # configurations for an average
_ATTEMPTS = 50  # to find them where a parameter is active


@dataclass(frozen=True)
class Shares:
    """For s functions and d parameters: the share of the variance that each parameter explains
    `alone`, and the share in `total` that vanishes if it is held fixed, with its interactions."""

    alone: Array  # (s, d)
    total: Array  # (s, d)


def draw_functions(model: EnsemblePredictor, *, rng: np.random.Generator) -> list[FunctionDraws]:
    """Functions that agree with what a model has learned."""
    return [FunctionDraws.of(member, _EACH, rng=rng) for member in model.members]


def evaluate(functions: Sequence[FunctionDraws], X: Array) -> Array:
    """The values of s functions at rows (m, d), as (s, m)."""
    return np.hstack([draws(X) for draws in functions]).T


def variance_shares(
    space: Space, functions: Sequence[FunctionDraws], *, rng: np.random.Generator
) -> Shares:
    """The shares of every parameter, from m random configurations in which it takes each of its
    values in turn, or the nodes of a quadrature. Forbidden combinations are left out.

    The variance of the averages over the m configurations is what the parameter explains alone, and
    the average of their variances is its total."""
    d = len(space)
    everywhere = space.snap(_stratified(_SPREAD, d, rng))
    variance = evaluate(functions, everywhere[space.allowed(everywhere)]).var(axis=1)
    variance = np.maximum(variance, 1e-300)  # a function may be constant
    m = int(np.clip(_ROWS // (_NODES * d), 32, 128))
    base = _stratified(m, d, rng)
    alone, total = np.empty((len(variance), d)), np.empty((len(variance), d))
    for j in range(d):
        nodes, weights = _quadrature(int(space.columns.cells[j]))
        rows = space.snap(_along(base, j, nodes))
        f = evaluate(functions, rows).reshape(-1, len(nodes), m)
        within, between = _split(f, weights[:, None] * space.allowed(rows).reshape(-1, m))
        total[:, j] = within / variance
        # an average over m configurations still has 1/m of the variance of interactions
        alone[:, j] = (between - within / m) / (1.0 - 1.0 / m) / variance
    return Shares(np.clip(alone, 0.0, 1.0), np.clip(total, 0.0, 1.0))


def _split(f: Array, weight: Array) -> tuple[Array, Array]:
    """For values (s, g, m) with weights (g, m): the mean over m of the variance along g, and the
    variance along g of the mean over m, both (s,)."""
    by_value, by_row = weight.sum(axis=1), weight.sum(axis=0)
    row = (f * weight).sum(axis=1) / np.maximum(by_row, 1e-300)  # (s, m)
    within = (np.square(f - row[:, None, :]) * weight).sum(axis=(1, 2))
    means = (f * weight).sum(axis=2) / np.maximum(by_value, 1e-300)  # (s, g)
    centre = means @ by_value / weight.sum()
    between = np.square(means - centre[:, None]) @ by_value
    return within / weight.sum(), between / weight.sum()


def averages(
    space: Space,
    functions: Sequence[FunctionDraws],
    j: int,
    coordinates: Array,
    *,
    rows: int = AVERAGED,
    rng: np.random.Generator,
) -> Array:
    """The averages (s, g) of s functions over so many random configurations, in which parameter j
    is active and has each of these coordinates (g,) in turn."""
    base = _active(space, j, coordinates, rows, rng)
    X = space.snap(_along(base, j, coordinates))
    f = evaluate(functions, X).reshape(-1, len(coordinates), len(base))
    return np.asarray(f.mean(axis=2))


def _active(
    space: Space, j: int, coordinates: Array, count: int, rng: np.random.Generator
) -> Array:
    """At most `count` points (m, d) at which parameter j is active, and allowed with each of these
    coordinates."""
    found = np.empty((0, len(space)))
    for _ in range(_ATTEMPTS):
        base = rng.random((count, len(space)))
        rows = space.snap(_along(base, j, coordinates))
        fits = (~np.isnan(rows[:, j]) & space.allowed(rows)).reshape(len(coordinates), -1)
        found = np.vstack([found, base[fits.all(axis=0)]])[:count]
        if len(found) == count:
            break
    if not len(found):
        raise ValueError(
            f"{space.names[j]!r} is so rarely active, or so often forbidden, that no configuration "
            "allows all its values: its effect cannot be averaged"
        )
    return found


def _along(base: Array, j: int, coordinates: Array) -> Array:
    """Points (m, d) with each of these coordinates (g,) in column j: (g·m, d)."""
    rows = np.repeat(base[None], len(coordinates), axis=0)
    rows[:, :, j] = coordinates[:, None]
    return rows.reshape(-1, base.shape[1])


def _quadrature(cells: int) -> tuple[Array, Array]:
    """Coordinates (g,) of a parameter with so many values, 0 for a continuous one, and weights:
    each of a few values, or the nodes of Gauss and Legendre."""
    if 0 < cells <= 2 * _NODES:
        return (np.arange(cells) + 0.5) / cells, np.full(cells, 1.0 / cells)
    x, w = np.polynomial.legendre.leggauss(_NODES)
    return (x + 1.0) / 2.0, w / 2.0


def _stratified(n: int, d: int, rng: np.random.Generator) -> Array:
    """n points of the unit cube, one in each of n slices along every coordinate."""
    slices = rng.permuted(np.tile(np.arange(n), (d, 1)), axis=1).T
    return np.asarray((slices + rng.random((n, d))) / n)
