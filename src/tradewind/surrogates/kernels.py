"""The covariance of the Gaussian process: Matérn-5/2 over an embedding of the mixed space.

Numeric columns embed as themselves. A categorical column embeds as a one-hot block scaled so
that two different categories are at squared distance 1: the exchangeable (Hamming) kernel. An
inactive coordinate embeds at the centre of its range, so that it tells configurations of its own
branch apart and is neutral everywhere else. Every parameter has one length-scale ℓ, hence one
weight w = ℓ⁻² for all its embedded columns: r² = Σ_j w_j (z_j − z'_j)².
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tradewind.types import Array, Columns

_SQRT5 = float(np.sqrt(5.0))
_CENTRE = 0.5


@dataclass(frozen=True)
class Embedding:
    """Snapped rows (n, d) -> features (n, p); feature q belongs to parameter `owner[q]`."""

    owner: NDArray[np.int64]
    numeric: NDArray[np.int64]  # the columns that embed as themselves, in order
    categories: tuple[tuple[int, int], ...]  # (column, cells) of the one-hot blocks, in order

    @classmethod
    def of(cls, columns: Columns) -> Embedding:
        numeric = np.flatnonzero(~columns.categorical)
        blocks = tuple((int(j), int(columns.cells[j])) for j in np.flatnonzero(columns.categorical))
        owner = np.concatenate([numeric, *(np.full(k, j) for j, k in blocks)])
        return cls(owner.astype(np.int64), numeric, blocks)

    def __call__(self, X: Array) -> Array:
        Z = np.zeros((len(X), len(self.owner)))
        m = len(self.numeric)
        Z[:, :m] = X[:, self.numeric]
        Z[:, :m][np.isnan(Z[:, :m])] = _CENTRE
        for j, k in self.categories:
            active = np.flatnonzero(~np.isnan(X[:, j]))
            index = np.minimum((X[active, j] * k).astype(np.int64), k - 1)
            Z[active, m + index] = np.sqrt(0.5)
            m += k
        return Z


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
