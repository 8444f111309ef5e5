"""The covariance of the Gaussian process: Matérn-5/2 over an embedding of the mixed space.

Numeric columns embed as themselves, categorical ones as a one-hot block scaled so that two
different categories are at squared distance 1: the exchangeable (Hamming) kernel. A numeric
parameter that is inactive is neutral in one of two ways: at the centre of its range, so that
branches resemble each other where their own parameters are in the middle; or *apart*, at the
centre of an arc on which its values lie, equally far from all of them. (Quality is better modelled
the first way and cost the second: see docs/decisions.) Every parameter has one length-scale ℓ,
hence one weight w = ℓ⁻² for all its features: r² = Σ_q w_q (z_q − z'_q)².

More training data helps smoothly: with ρ(s) falling from 1 at the smallest size to 0 at the
largest, y(x, s) = f(x, s) − ρ(s)·(δ + δ(x)), all three of them Gaussian, so the covariance is
k·(a + b·ρρ') + v·ρρ'. ρ is a power law, a learning curve; of the logarithm of a cost it is the
logarithm, because a cost is a power of the size. What follows no such curve is left to f, for which
the size is one more feature, its logarithm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tradewind.types import Array, Columns

_SQRT5 = float(np.sqrt(5.0))
_CENTRE = 0.5
_ARC = 2.0  # radians; with radius 1/_ARC, nearby values are as far apart as on the line


@dataclass(frozen=True)
class SizeCurve:
    """ρ(s) = (s^−p − 1) / (s₁^−p − 1), or its limit log s / log s₁ at p = 0, with s relative to the
    largest size and s₁ the smallest. `values` are those of the cells of column `column`, and
    `logs` those of the logarithm; a factor of e in the size is `step` of these."""

    column: int
    values: Array
    logs: Array
    step: float

    @classmethod
    def of(cls, columns: Columns, power: float | None) -> SizeCurve | None:
        """None where the size is not to be seen so, or there is but one."""
        if power is None or len(columns.fractions) < 2:
            return None
        logs = -np.log(np.array(columns.fractions) / columns.fractions[-1])
        rho = np.expm1(power * logs) if power > 0 else logs
        column = int(np.flatnonzero(columns.size)[0])
        return cls(column, rho / rho[0], logs / logs[0], 1.0 / float(logs[0]))

    def __call__(self, X: Array) -> Array:
        return np.asarray(self.values[self.cells(X)])

    def cells(self, X: Array) -> NDArray[np.int64]:
        """The numbers of the sizes of rows X."""
        cell = (X[:, self.column] * len(self.values)).astype(np.int64)
        return np.clip(cell, 0, len(self.values) - 1)


@dataclass(frozen=True)
class Embedding:
    """Snapped rows (n, d) -> features (n, p): plain columns, the two coordinates of the arcs, and
    one-hot blocks, in this order. Feature q belongs to parameter `owner[q]`."""

    plain: NDArray[np.int64]
    arcs: NDArray[np.int64]
    categories: tuple[tuple[int, int], ...]  # (column, cells)
    owner: NDArray[np.int64]
    d: int
    size: SizeCurve | None = None

    @classmethod
    def of(cls, columns: Columns, *, apart: bool, size_power: float | None = None) -> Embedding:
        """With a `size_power`, the training size has a curve of its own."""
        bent = columns.conditional & apart
        plain = np.flatnonzero(~columns.categorical & ~bent)
        arcs = np.flatnonzero(~columns.categorical & bent)
        blocks = tuple((int(j), int(columns.cells[j])) for j in np.flatnonzero(columns.categorical))
        owner = np.concatenate([plain, arcs, arcs, *(np.full(k, j) for j, k in blocks)])
        size = SizeCurve.of(columns, size_power)
        return cls(plain, arcs, blocks, owner.astype(np.int64), len(columns.cells), size)

    @property
    def smooth(self) -> int:
        """How many features, counted from the first, vary smoothly with their parameter."""
        return len(self.plain) + 2 * len(self.arcs)

    def __call__(self, X: Array) -> Array:
        Z = np.zeros((len(X), len(self.owner)))
        a, b, m = len(self.plain), len(self.arcs), self.smooth
        Z[:, :a] = X[:, self.plain]
        Z[:, :a][np.isnan(Z[:, :a])] = _CENTRE
        if self.size is not None:
            Z[:, self.plain.searchsorted(self.size.column)] = self.size.logs[self.size.cells(X)]
        if b:
            cos, sin = self._arcs(X)
            Z[:, a : a + b], Z[:, a + b : m] = cos / _ARC, sin / _ARC
        for j, k in self.categories:
            active = np.flatnonzero(~np.isnan(X[:, j]))
            index = np.minimum((X[active, j] * k).astype(np.int64), k - 1)
            Z[active, m + index] = np.sqrt(0.5)
            m += k
        return Z

    def shortfall(self, X: Array) -> Array | None:
        """ρ of the training sizes of rows X, (n,); None where the size has no curve."""
        return None if self.size is None else self.size(X)

    def slopes(self, X: Array) -> Array:
        """The derivatives of the smooth features by their parameters, (n, smooth)."""
        cos, sin = self._arcs(X)
        active = ~np.isnan(X[:, self.plain])
        if self.size is not None:  # its values are apart: there is nothing between them
            active[:, self.plain.searchsorted(self.size.column)] = False
        return np.hstack([active.astype(float), -sin, cos])

    def _arcs(self, X: Array) -> tuple[Array, Array]:
        """Cosine and sine of the angle of each active value; both 0 where it is inactive."""
        u = X[:, self.arcs]
        active = ~np.isnan(u)
        angle = _ARC * np.where(active, u, 0.0)
        return np.where(active, np.cos(angle), 0.0), np.sin(angle)

    def gather(self, along: Array, d: int) -> Array:
        """Sum what belongs to the smooth features (n, smooth) over their parameters: (n, d)."""
        a, b = len(self.plain), len(self.arcs)
        full = np.zeros((len(along), d))
        full[:, self.plain] = along[:, :a]
        full[:, self.arcs] = along[:, a : a + b] + along[:, a + b :]
        return full


@dataclass(frozen=True)
class Variances:
    """a of the level f, b of each configuration's own shortfall, v of the one that all share."""

    level: float
    own: float = 0.0
    shared: float = 0.0

    def factor(self, rho: Array | None, other: Array | None) -> Array | float:
        """What k is multiplied by, for shortfalls ρ (n,) and ρ' (m,)."""
        if rho is None or other is None:
            return self.level
        return self.level + self.own * np.outer(rho, other)

    def between(self, k: Array, rho: Array | None, other: Array | None) -> Array:
        """The covariance, for k (n, m)."""
        K = k * self.factor(rho, other)
        if rho is not None and other is not None:
            K += self.shared * np.outer(rho, other)
        return K

    def alone(self, rho: Array | None, n: int) -> Array:
        """The variance of n points."""
        if rho is None:
            return np.full(n, self.level)
        return self.level + (self.own + self.shared) * np.square(rho)


def squared_distances(A: Array, B: Array) -> Array:
    """‖a − b‖² for all rows of A (n, p) and B (m, p), shape (n, m)."""
    D = A @ B.T
    D *= -2.0
    D += np.einsum("ij,ij->i", A, A)[:, None]
    D += np.einsum("ij,ij->i", B, B)
    return np.maximum(D, 0.0, out=D)


def parameter_distances(Z: Array, embedding: Embedding, d: int) -> Array:
    """Squared distances of every pair i < j along every parameter: (d, n(n−1)/2)."""
    i, j = np.triu_indices(len(Z), k=1)
    D = np.zeros((d, len(i)))
    for q, parameter in enumerate(embedding.owner):
        z = Z[:, q]
        D[parameter] += np.square(z[i] - z[j])
    return D


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
