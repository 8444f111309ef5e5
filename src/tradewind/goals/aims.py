"""What a proposal aims at: the values it has to beat, in natural quality and raw cost.

A goal looks at the finished trials and says what the next trial has to do (`Goal.aim`). How much a
prediction is expected to do of that is the optimizer's business (optimizer/strategies/worth.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tradewind.types import Array, Indices


@dataclass(frozen=True)
class Seen:
    """The n finished trials that a goal looks at. Quality is maximized, and cost is NaN where it is
    unknown. `noise` is the known variance of each quality, 0 where unknown.

    >>> import numpy as np
    >>> from tradewind.goals import Seen
    >>> seen = Seen(np.array([0.8, 0.9]), np.array([10.0, 60.0]), noise=np.zeros(2))
    >>> tw.Quality().aim(seen, rng=np.random.default_rng(0)).score
    0.9
    """

    quality: Array
    cost: Array
    noise: Array


@dataclass(frozen=True)
class Beat:
    """Have a score T = quality − alpha·σ above `score`, with σ = cost / reference, at most 1 if
    `capped`. With a `limit`, the cost must not exceed it.

    `quality` and `sigma` are the best quality and the smallest σ so far.

    >>> from tradewind.goals import Beat
    >>> aim = Beat(score=0.85, quality=0.9, alpha=0.01, reference=60.0)
    """

    score: float
    quality: float
    sigma: float = 0.0
    alpha: float = 0.0
    reference: float = 1.0
    capped: bool = False
    limit: float | None = None


@dataclass(frozen=True)
class Extend:
    """Add to the area that the efficient trials dominate, between quality and the logarithm of
    cost.

    `quality` and `cost` (k,) are those of the efficient trials, cheapest first, and `trials` their
    indices among the finished ones. Only qualities above `worst` and costs below `high` count; a
    cost below `low` counts as `low`. By default, `worst` is what half of all configurations reach,
    and `high` is a cost that most of them stay below.

    >>> import numpy as np
    >>> from tradewind.goals import Extend
    >>> aim = Extend(np.array([0.8, 0.9]), np.array([10.0, 60.0]), trials=np.array([3, 7]))
    """

    quality: Array
    cost: Array
    trials: Indices
    worst: float | None = None
    low: float = 0.0
    high: float | None = None


Aim: TypeAlias = Beat | Extend
