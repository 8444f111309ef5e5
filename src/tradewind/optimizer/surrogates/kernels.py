"""The kernel of the Gaussian process: Matérn-5/2 over an embedding of the mixed space.

Numeric columns embed as themselves. Categorical ones become a one-hot block, scaled so that two
different categories have the squared distance 1: the exchangeable (Hamming) kernel. An inactive
numeric parameter has one of two neutral places. By default it is at the centre of its range, so
that branches of the space resemble each other where their parameters are in the middle. If
inactive values are `apart`, the values of the parameter lie on an arc and the inactive one at its
centre, equally far from all of them. (The default models quality better, `apart` models cost
better: see docs/decisions.) Every parameter has one length-scale ℓ, hence one weight w = ℓ⁻² for
all its features: r² = Σ_q w_q (z_q − z'_q)².
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tradewind.types import Array, Columns

_SQRT5 = float(np.sqrt(5.0))
_CENTRE = 0.5
MANY = 100  # with more parameters than this, computations take short cuts
_ARC = 2.0  # radians; with radius 1/_ARC, nearby values are as far apart as on the line


@dataclass(frozen=True)
class Embedding:
    """Snapped rows (n, d) -> features (n, p): plain columns, the two coordinates of the arcs, and
    one-hot blocks, in this order. Feature q belongs to parameter `owner[q]`."""

    plain: NDArray[np.int64]
    arcs: NDArray[np.int64]
    categories: tuple[tuple[int, int], ...]  # (column, cells)
    owner: NDArray[np.int64]
    d: int

    @classmethod
    def of(cls, columns: Columns, *, apart: bool) -> Embedding:
        bent = columns.conditional & apart
        plain = np.flatnonzero(~columns.categorical & ~bent)
        arcs = np.flatnonzero(~columns.categorical & bent)
        blocks = tuple((int(j), int(columns.cells[j])) for j in np.flatnonzero(columns.categorical))
        owner = np.concatenate([plain, arcs, arcs, *(np.full(k, j) for j, k in blocks)])
        return cls(plain, arcs, blocks, owner.astype(np.int64), len(columns.cells))

    @property
    def smooth(self) -> int:
        """The number of features that vary smoothly with their parameter. They come first."""
        return len(self.plain) + 2 * len(self.arcs)

    def __call__(self, X: Array) -> Array:
        Z = np.zeros((len(X), len(self.owner)))
        a, b, m = len(self.plain), len(self.arcs), self.smooth
        Z[:, :a] = X[:, self.plain]
        Z[:, :a][np.isnan(Z[:, :a])] = _CENTRE
        if b:
            cos, sin = self._arcs(X)
            Z[:, a : a + b], Z[:, a + b : m] = cos / _ARC, sin / _ARC
        if self.categories:
            columns, cells = np.transpose(self.categories)
            rows, which = np.nonzero(~np.isnan(X[:, columns]))
            k = cells[which]
            index = np.minimum((X[rows, columns[which]] * k).astype(np.int64), k - 1)
            first = m + np.cumsum(cells) - cells
            Z[rows, first[which] + index] = np.sqrt(0.5)
        return Z

    def slopes(self, X: Array) -> Array:
        """The derivatives of the smooth features by their parameters, (n, smooth)."""
        cos, sin = self._arcs(X)
        active = ~np.isnan(X[:, self.plain])
        return np.hstack([active.astype(float), -sin, cos])

    def _arcs(self, X: Array) -> tuple[Array, Array]:
        """Cosine and sine of the angle of each active value; both 0 where it is inactive."""
        u = X[:, self.arcs]
        active = ~np.isnan(u)
        angle = _ARC * np.where(active, u, 0.0)
        return np.where(active, np.cos(angle), 0.0), np.sin(angle)

    def gather(self, by_feature: Array) -> Array:
        """Derivatives by the smooth features (n, smooth), summed over those of each parameter:
        (n, d)."""
        a, b = len(self.plain), len(self.arcs)
        full = np.zeros((len(by_feature), self.d))
        full[:, self.plain] = by_feature[:, :a]
        full[:, self.arcs] = by_feature[:, a : a + b] + by_feature[:, a + b :]
        return full


class Pairs:
    """The squared distances of all pairs i < j of features Z (n, p) along each of d parameters, as
    a table."""

    def __init__(self, embedding: Embedding, Z: Array) -> None:
        i, j = np.triu_indices(len(Z), k=1)
        self._D = np.zeros((embedding.d, len(i)))
        for q, parameter in enumerate(embedding.owner):
            z = Z[:, q]
            self._D[parameter] += np.square(z[i] - z[j])

    def distances(self, w: Array) -> Array:
        """r² of each pair, with the weights w (d,)."""
        return w @ self._D

    def total(self, factors: Array) -> Array:
        """The sum over pairs of squared distances times `factors`, for each parameter (d,)."""
        return self._D @ factors


def squared_distances(A: Array, B: Array) -> Array:
    """‖a − b‖² for all rows of A (n, p) and B (m, p), shape (n, m)."""
    D = A @ B.T
    D *= -2.0
    D += np.einsum("ij,ij->i", A, A)[:, None]
    D += np.einsum("ij,ij->i", B, B)
    return np.maximum(D, 0.0, out=D)


def matern52(r2: Array) -> tuple[Array, Array]:
    """k = (1 + √5 r + 5r²/3) exp(−√5 r), and its slope dk/d(r²) = −5/6 (1 + √5 r) exp(−√5 r)."""
    a = np.sqrt(r2)
    a *= _SQRT5
    decay = np.exp(-a)
    a += 1.0
    slope = a * decay
    k = slope + decay * r2 * (5.0 / 3.0)
    slope *= -5.0 / 6.0
    return k, slope
