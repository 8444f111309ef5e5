"""What an ascent has learned about curvature, for very many coordinates."""

from __future__ import annotations

import numpy as np

from tradewind.types import Array, Mask


class LeanCurvature:
    """`DenseCurvature` for very many coordinates. The inverse Hessians are products of what was
    learned, and only their factors are kept: L-BFGS with unlimited memory (Nocedal and Wright,
    algorithm 7.4)."""

    def __init__(self, k: int) -> None:
        self.fresh = np.ones(k, dtype=bool)
        self._scale = np.ones(k)
        self._steps: list[tuple[Array, Array, Array]] = []  # s, y and 1 / s·y, 0 if not used

    def times(self, g: Array) -> Array:
        shares = []
        for s, y, rho in reversed(self._steps):
            shares.append(rho * np.einsum("ij,ij->i", s, g))
            g = g - shares[-1][:, None] * y
        g = self._scale[:, None] * g
        for (s, y, rho), share in zip(self._steps, reversed(shares), strict=True):
            g = g + (share - rho * np.einsum("ij,ij->i", y, g))[:, None] * s
        return g

    def learn(self, s: Array, y: Array, use: Mask, sy: Array, yy: Array) -> None:
        first = use & self.fresh
        self._scale[first] = sy[first] / yy[first]
        s, y = np.where(use[:, None], s, 0.0), np.where(use[:, None], y, 0.0)
        self._steps.append((s, y, np.divide(1.0, sy, out=np.zeros_like(sy), where=use)))
        self.fresh[use] = False
