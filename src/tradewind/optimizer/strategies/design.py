"""Points chosen without a model: initial designs, and fresh random points.

The points of a design depend only on its size, the space and the study's seed, so its i-th point is
the same whoever asks for it and whenever.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

import numpy as np

from tradewind.checks import freeze_wholes
from tradewind.optimizer.history import History
from tradewind.seeds import design_rng
from tradewind.space import Space
from tradewind.types import Array

MOST_POINTS = 100_000  # of an initial design, which is drawn anew for each of its trials


class Sampling(Enum):
    """How the unit cube is filled.

    >>> [sampling.name for sampling in tw.strategies.Sampling]
    ['SOBOL', 'LATIN', 'RANDOM']
    """

    SOBOL = "sobol"  # scrambled; a power of two is drawn and the first k are taken
    LATIN = "latin"
    RANDOM = "random"


@dataclass(frozen=True)
class Design:
    """`size` initial points. With `centre`, the first one is the middle of the space.

    >>> strategy = tw.strategies.Bayes(design=tw.strategies.Design(8, tw.strategies.Sampling.LATIN))
    """

    size: int
    sampling: Sampling = Sampling.SOBOL
    centre: bool = False

    def __post_init__(self) -> None:
        freeze_wholes(self, size=(1, MOST_POINTS))
        try:
            object.__setattr__(self, "sampling", Sampling(self.sampling))  # accepts its value, too
        except ValueError:
            names = ", ".join(repr(s.value) for s in Sampling)
            raise ValueError(
                f"sampling must be one of {names}, but got {self.sampling!r}"
            ) from None

    def points(self, space: Space, seed: int) -> Array:
        """All points, as snapped allowed rows (size, d)."""
        rng = design_rng(seed)
        rows = space.snap(_unit_cube(self.sampling, self.size, len(space), rng))
        if self.centre:
            rows = np.vstack([space.snap(np.full((1, len(space)), 0.5)), rows[:-1]])
        bad = ~space.allowed(rows)
        if bad.any():
            rows[bad] = space.sample(int(bad.sum()), rng=rng)
        return rows

    def point(self, space: Space, history: History, rng: np.random.Generator) -> Array:
        """The next point (d,) that no trial has tried, or a random one if the design is over."""
        points = self.points(space, history.seed)[history.designed :]
        rows = space.encode(space.decode(points))  # rounded, as the log returns them
        new = np.flatnonzero(history.tried.times(rows) == 0)
        return rows[new[0]] if len(new) else fresh_point(space, history, rng)


def fresh_point(space: Space, history: History, rng: np.random.Generator) -> Array:
    """A random row (d,) that no trial has tried. If all have been, one of the least tried."""
    rows = space.sample(64, rng=rng)
    new = np.flatnonzero(history.tried.times(rows) == 0)
    if len(new):
        return np.asarray(rows[new[0]])
    grid = space.grid()
    rows = rows if grid is None else grid
    times = history.tried.times(rows)
    return np.asarray(rows[rng.choice(np.flatnonzero(times == times.min()))])


def _unit_cube(sampling: Sampling, n: int, d: int, rng: np.random.Generator) -> Array:
    if sampling is Sampling.RANDOM:
        return rng.random((n, d))
    from scipy.stats import qmc  # heavy: only where it is needed

    if sampling is Sampling.LATIN:
        return np.asarray(qmc.LatinHypercube(d, rng=rng).random(n))
    return np.asarray(qmc.Sobol(d, rng=rng).random_base2(math.ceil(math.log2(n)))[:n])
