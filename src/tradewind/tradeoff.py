"""What a prediction is worth under T = L − α·σ: the improvement of T, and W20's published rule.

Both take the quality L as normal marginals. The improvement models log(c / reference) as normal
(cost is positive and spans decades), the published rule σ itself. Costs here are always in
units of the reference, so that σ = min(1, c).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from scipy.special import log_ndtr, ndtr

from tradewind.acquisition import UCB, Acquisition, Partials, log_density, log_h
from tradewind.types import Array, Normal

_REACH = 6.5  # standard deviations of log c that are integrated; beyond lies a mass of 8e-11


@dataclass(frozen=True)
class Incumbent:
    """The best seen so far: T* under the goal, quality L*, and the smallest σ*."""

    score: float
    quality: float
    sigma: float


class TradeoffRule(Protocol):
    """How two predictions become a score. `log_cost` says what the cost model predicts:
    log(c / reference), or σ."""

    @property
    def log_cost(self) -> bool: ...

    def partials(
        self,
        acquisition: Acquisition,
        quality: Normal,
        cost: Normal,
        *,
        incumbent: Incumbent,
        alpha: float,
    ) -> Partials: ...


@dataclass(frozen=True)
class Improvement:
    """The acquisition of T itself: E_c[a(L; T* + α·σ(c))], in logs (DESIGN: I_T).

    With EI this is E[max(T − T*, 0)]; PI and MGFI extend in the same way, because T > T* says
    L > T* + α·σ. UCB takes the first two moments of T. `nodes` Gauss-Legendre nodes stand on
    each of two panels: 24 are exact to about 1e-8, and 8 rank candidates as well as 24 do."""

    nodes: int = 8
    log_cost = True

    def partials(
        self,
        acquisition: Acquisition,
        quality: Normal,
        cost: Normal,
        *,
        incumbent: Incumbent,
        alpha: float,
    ) -> Partials:
        if isinstance(acquisition, UCB):
            return _moments(acquisition, quality, cost, alpha)
        best = incumbent.score
        u, log_weight = cost_nodes(quality, cost, best=best, alpha=alpha, nodes=self.nodes)
        wide = Normal(quality.mean[:, None], quality.std[:, None])
        inner = acquisition.partials(wide, best + alpha * np.exp(u))
        terms = log_weight + inner.value
        top = terms.max(axis=1)
        share = np.exp(terms - top[:, None])
        total = share.sum(axis=1)
        share /= total[:, None]
        by_m, by_v = _weight_slopes(u, cost)
        return Partials(
            value=top + np.log(total),
            by_mean=np.einsum("ij,ij->i", share, inner.by_mean),
            by_std=np.einsum("ij,ij->i", share, inner.by_std),
            by_cost_mean=np.einsum("ij,ij->i", share, by_m),
            by_cost_std=np.einsum("ij,ij->i", share, by_v),
        )


@dataclass(frozen=True)
class Published:
    """a_T = a_L − α·a_σ (W20 eq. 2–3): expected quality gained over the best quality seen, minus
    α times expected cost above the cheapest seen. It can be negative and has no log form."""

    log_cost = False

    def partials(
        self,
        acquisition: Acquisition,
        quality: Normal,
        cost: Normal,
        *,
        incumbent: Incumbent,
        alpha: float,
    ) -> Partials:
        gain = _expected_excess(quality, incumbent.quality)
        if alpha == 0.0:
            return gain
        price = _expected_excess(cost, incumbent.sigma)
        return Partials(
            value=gain.value - alpha * price.value,
            by_mean=gain.by_mean,
            by_std=gain.by_std,
            by_cost_mean=-alpha * price.by_mean,
            by_cost_std=-alpha * price.by_std,
        )


def _expected_excess(predicted: Normal, threshold: float) -> Partials:
    """E[max(y − threshold, 0)], not in logs."""
    z = (predicted.mean - threshold) / predicted.std
    value = predicted.std * np.exp(log_h(z))
    return Partials(value, np.asarray(ndtr(z)), np.exp(log_density(z)))


@lru_cache(maxsize=8)
def _legendre(nodes: int) -> tuple[Array, Array]:
    x, w = np.polynomial.legendre.leggauss(nodes)
    return (x + 1.0) / 2.0, np.log(w / 2.0)


def cost_nodes(
    quality: Normal, cost: Normal, *, best: float, alpha: float, nodes: int
) -> tuple[Array, Array]:
    """Nodes u = log σ and log weights, both (n, 2·nodes + 1), for averages over the cost.

    The last node is σ = 1 with the exact mass of all costs above the reference. The others stand
    on two panels below it, split where EI_L(T* + α·σ) bends: at the *knee*, EI leaves its linear
    regime; above *top*, it has fallen by e⁻⁴⁰ and is nothing. Without the split, a quality that is
    known well makes the integrand a kink that no fixed rule resolves."""
    m, v = cost.mean, np.maximum(cost.std, 1e-9)
    z = (quality.mean - best) / quality.std
    below = np.minimum(z, 0.0)
    fall = 80.0 / (np.sqrt(below**2 + 80.0) - below)  # z² grows by 80 over this many stds
    unit = np.maximum(quality.std / alpha, 1e-290)
    top = np.log(unit * (np.maximum(z, 0.0) + fall))
    knee = np.log(np.maximum(unit * (z - 9.0), np.exp(top) / 4.0))
    low = m - _REACH * v
    high = np.minimum(0.0, m + _REACH * v)
    high = np.maximum(np.minimum(high, np.maximum(top, low + 0.5 * v)), low)
    outside = (knee <= low) | (knee >= high)
    knee = np.where(outside, np.clip(m - 2.0 * v, low, 0.5 * (low + high)), knee)
    x, log_w = _legendre(nodes)
    edges = np.stack([low, knee, high], axis=1)
    width = np.maximum(np.diff(edges, axis=1), 1e-290)  # (n, 2)
    u = (edges[:, :2, None] + width[:, :, None] * x).reshape(len(m), -1)
    log_weight = (np.log(width)[:, :, None] + log_w).reshape(len(m), -1)
    log_weight += log_density((u - m[:, None]) / v[:, None]) - np.log(v)[:, None]
    tail = np.asarray(log_ndtr(m / v))[:, None]
    return np.hstack([u, np.zeros_like(tail)]), np.hstack([log_weight, tail])


def _weight_slopes(u: Array, cost: Normal) -> tuple[Array, Array]:
    """Derivatives of the log weights by mean and std of log c."""
    m, v = cost.mean[:, None], np.maximum(cost.std, 1e-9)[:, None]
    z = (u - m) / v
    by_m, by_v = z / v, (z * z - 1.0) / v
    ratio = (m / v)[:, 0]
    hazard = np.exp(log_density(ratio) - log_ndtr(ratio))
    by_m[:, -1] = hazard / v[:, 0]
    by_v[:, -1] = -ratio * hazard / v[:, 0]
    return by_m, by_v


def sigma_moments(cost: Normal) -> tuple[Array, Array]:
    """Mean and variance of σ = min(1, c) for log c ~ N(m, v²), in closed form."""
    m, v = cost.mean, np.maximum(cost.std, 1e-9)
    above = ndtr(m / v)
    first = np.exp(m + 0.5 * v**2 + log_ndtr(-m / v - v)) + above
    second = np.exp(2.0 * m + 2.0 * v**2 + log_ndtr(-m / v - 2.0 * v)) + above
    return first, np.maximum(second - first**2, 0.0)


def _moments(acquisition: UCB, quality: Normal, cost: Normal, alpha: float) -> Partials:
    """UCB of T by its first two moments; the gradient follows quality alone."""
    mean, variance = sigma_moments(cost)
    std = np.sqrt(quality.std**2 + alpha**2 * variance)
    value = acquisition(Normal(quality.mean - alpha * mean, std), 0.0)
    by_std = acquisition.beta * quality.std / std
    zero = np.zeros_like(std)
    return Partials(value, np.ones_like(std), by_std, zero, zero)
