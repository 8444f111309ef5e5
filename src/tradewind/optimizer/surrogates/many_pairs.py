"""Distances along very many parameters."""

from __future__ import annotations

import numpy as np

from tradewind.optimizer.surrogates.kernels import Embedding, squared_distances
from tradewind.types import Array


class ManyPairs:
    """`Pairs` for very many parameters, for which the table would be too large."""

    def __init__(self, embedding: Embedding, Z: Array) -> None:
        self._embedding, self._Z = embedding, Z
        self._upper = np.triu_indices(len(Z), k=1)

    def distances(self, w: Array) -> Array:
        F = self._Z * np.sqrt(w)[self._embedding.owner]
        return squared_distances(F, F)[self._upper]

    def total(self, factors: Array) -> Array:
        P = np.zeros((len(self._Z), len(self._Z)))
        P[self._upper] = factors
        P += P.T
        # Σ_{i<j} P_ij (z_i − z_j)² = Σ_i z_i² Σ_j P_ij − Σ_ij z_i P_ij z_j
        by_feature = P.sum(axis=0) @ np.square(self._Z)
        by_feature -= np.einsum("iq,iq->q", self._Z, P @ self._Z)
        owner, d = self._embedding.owner, self._embedding.d
        return np.bincount(owner, by_feature, minlength=d).astype(float)
