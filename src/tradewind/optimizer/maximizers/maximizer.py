"""The seam between strategies and the search for the best score."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from tradewind.space import Space
from tradewind.types import Array


class Score(Protocol):
    """Snapped rows (m, d) -> scores (m,). Larger is better, and −inf must not be proposed."""

    def __call__(self, X: Array) -> Array: ...


@runtime_checkable
class SmoothScore(Protocol):
    """A score with a gradient along the numeric columns."""

    def __call__(self, X: Array) -> Array: ...

    def gradient(self, X: Array) -> tuple[Array, Array]:
        """Scores (m,) and their gradients (m, d), 0 along categorical and inactive columns."""
        ...


class Maximizer(Protocol):
    """A search for the snapped, allowed row (d,) with the highest score.

    `start` (s, d), s ≥ 1, are snapped, allowed rows to begin with. The result scores at least as
    high as the best of them."""

    def maximize(
        self, score: Score, space: Space, *, start: Array, rng: np.random.Generator
    ) -> Array: ...
