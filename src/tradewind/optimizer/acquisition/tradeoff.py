"""What a prediction is worth under T = L − α·σ: the improvement of T, and W20's published rule.

Both rules take normal marginals of the quality L. `Improvement` takes log(c / reference) as normal,
because cost is positive and spans decades; `Published` takes σ as normal. All costs here are in
units of the reference: σ = c, or σ = min(1, c) if the trade-off is capped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr, ndtr

from tradewind.checks import freeze_wholes
from tradewind.goals import Acquisition, Beat
from tradewind.optimizer.acquisition.ei import EI, log_density, log_h
from tradewind.types import Array, Normal, Partials

_REACH = 6.5  # stds from the peak to where the integrand is e^(-6.5²/2), 1e-9 of its peak
_LINEAR = 6.0  # if the threshold is this many stds below the mean, EI is linear to 1e-10


@dataclass(frozen=True)
class Improvement:
    """The acquisition of T itself: E_c[a(L; T* + α·σ(c))], in logs: I_T (docs/notation.md).

    With EI this is E[max(T − T*, 0)]. PI and MGFI extend in the same way, because T > T* means
    L > T* + α·σ. An acquisition without a log form gets the first two moments of T. Each of two
    panels has `nodes` Gauss-Legendre nodes: 24 are exact to about 1e-8, 8 to about 1 %, even where
    I_T underflows.

    >>> strategy = tw.strategies.Bayes(rule=tw.strategies.Improvement())
    """

    nodes: int = 8
    log_cost = True

    def __post_init__(self) -> None:
        freeze_wholes(self, nodes=(1, 100))  # NumPy has tested its nodes up to 100

    def accepts(self, acquisition: Acquisition) -> bool:
        return True

    def partials(
        self, acquisition: Acquisition, quality: Normal, cost: Normal, *, beat: Beat
    ) -> Partials:
        if not acquisition.log_form:
            return _by_moments(acquisition, quality, cost, beat)
        best, alpha = beat.score, beat.alpha
        m, v = cost.mean[:, None], _positive(cost.std)[:, None]
        x, log_weight = cost_nodes(quality, cost, beat, nodes=self.nodes)
        sigma, below = np.exp(m + v * x), x.shape[1]
        if beat.capped:  # all costs above the reference together
            sigma = np.hstack([sigma, np.ones_like(m)])
            log_weight = np.hstack([log_weight, log_ndtr(m / v)])
        wide = Normal(quality.mean[:, None], quality.std[:, None])
        inner = acquisition.partials(wide, best + alpha * sigma)
        terms = log_weight + inner.value
        top = terms.max(axis=1)
        share = np.exp(terms - top[:, None])
        total = share.sum(axis=1)
        share /= total[:, None]
        by_mean = share * inner.by_mean
        # a cost c = exp(m + v·x) lowers T as it grows, unless it is cut off
        by_log_cost = -alpha * by_mean[:, :below] * sigma[:, :below]
        return Partials(
            value=top + np.log(total),
            by_mean=by_mean.sum(axis=1),
            by_std=np.einsum("ij,ij->i", share, inner.by_std),
            by_cost_mean=by_log_cost.sum(axis=1),
            by_cost_std=np.einsum("ij,ij->i", by_log_cost, x),
        )


@dataclass(frozen=True)
class Published:
    """a_T = a_L − α·a_σ (W20 eq. 2–3): the expected gain over the best quality seen, minus α times
    the expected cost above the smallest cost seen. It can be negative and has no log form.

    >>> strategy = tw.strategies.Bayes(rule=tw.strategies.Published())
    """

    log_cost = False

    def accepts(self, acquisition: Acquisition) -> bool:
        """The rule is made of expected improvements."""
        return isinstance(acquisition, EI)

    def partials(
        self, acquisition: Acquisition, quality: Normal, cost: Normal, *, beat: Beat
    ) -> Partials:
        alpha = beat.alpha
        gain = _expected_excess(quality, beat.quality)
        price = _expected_excess(cost, beat.sigma)
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


def cost_nodes(quality: Normal, cost: Normal, beat: Beat, *, nodes: int) -> tuple[Array, Array]:
    """Nodes x = (log c − m) / v and log weights, both (n, 2·nodes). If the trade-off is capped,
    they only cover the costs below the reference.

    The integrand φ(x)·EI_L(T* + α·c) is log-concave in x. The nodes cover it from its peak, which
    may lie many standard deviations below m, to where it vanishes. The two panels meet where EI
    stops being linear: if the quality is known well, the integrand has a kink there, which a single
    panel cannot resolve."""
    m, v = cost.mean, _positive(cost.std)
    ceiling = 0.0 if beat.capped else np.inf  # of log c
    z = (quality.mean - beat.score) / quality.std  # of the threshold at cost 0
    slope = np.maximum(beat.alpha / quality.std, 1e-290)  # how fast z falls with the cost
    reach = min(_REACH, 1.5 * math.sqrt(nodes))  # few nodes do better on a shorter interval
    u = _peak(z, slope, m, v, ceiling)
    x, w = (u - m) / v, slope * np.exp(u)
    depth = np.maximum(w - z, 0.0)
    curvature = 1.0 + v**2 * w * depth + np.where(depth > 0.0, (v * w) ** 2, 0.0)
    # Left of the peak, φ falls at least as fast as e^(-x²/2), and EI grows by at most e^(depth²/2).
    # Right of it, the curvature grows, φ grows by at most e^(x²/2), and EI falls like e^(-z²/2).
    low = np.maximum(x - reach, -np.sqrt(reach**2 + x**2 + depth**2))
    fall = reach**2 + x**2
    top = np.maximum(w, z) + fall / (np.sqrt(depth**2 + fall) + depth)
    high = np.minimum(x + reach / np.sqrt(curvature), (np.log(top / slope) - m) / v)
    high = np.maximum(np.minimum(high, (ceiling - m) / v), low)
    knee = (np.log(np.maximum(z - _LINEAR, top / 4.0) / slope) - m) / v
    smooth = (knee <= low) | (knee >= high) | (depth > 3.0)
    edges = np.stack([low, np.where(smooth, 0.5 * (low + high), knee), high], axis=1)
    width = np.maximum(np.diff(edges, axis=1), 1e-290)  # (n, 2)
    share, log_share = _legendre(nodes)
    x = (edges[:, :2, None] + width[:, :, None] * share).reshape(len(m), 2 * nodes)
    log_weight = (np.log(width)[:, :, None] + log_share).reshape(len(m), 2 * nodes)
    return x, log_weight + log_density(x)


def _peak(z: Array, slope: Array, m: Array, v: Array, ceiling: float) -> Array:
    """The u ≤ ceiling that maximizes φ((u − m)/v)·EI_L(T* + α·eᵘ), taking log EI ≈
    −½·min(z − w, 0)² with w = slope·eᵘ.

    It solves m − u = v²·w·max(w − z, 0), a concave equation: Newton's steps from the right never
    overshoot. Dropping terms bounds w by Lambert functions, W(y) ≤ log(1 + y)."""
    log_w = m + np.log(slope)  # at u = m
    rate = v**2 * np.maximum(-z, 1e-30)
    quadratic = np.sqrt(0.5 * np.logaddexp(0.0, 2.0 * (log_w + np.log(v)) + math.log(2.0))) / v
    linear = np.logaddexp(0.0, log_w + np.log(rate)) / rate
    w = np.maximum(np.minimum(np.maximum(z, 0.0) + quadratic, linear), 1e-300)
    u = np.minimum(np.log(w / slope), np.minimum(m, ceiling))
    for _ in range(3):
        w = slope * np.exp(u)
        pull = v**2 * w * np.maximum(w - z, 0.0)
        u += (m - u - pull) / (1.0 + pull + np.where(w > z, (v * w) ** 2, 0.0))
        u = np.minimum(u, ceiling)
    return u


def _positive(std: Array) -> Array:
    return np.maximum(std, 1e-9)


@dataclass(frozen=True)
class _SigmaMoments:
    """Mean and variance of σ for log c ~ N(m, v²), and the derivatives of E[σ] and E[σ²] by m and
    v, in closed form."""

    mean: Array
    variance: Array
    mean_by_m: Array
    mean_by_v: Array
    square_by_m: Array
    square_by_v: Array


def sigma_moments(cost: Normal, *, capped: bool) -> _SigmaMoments:
    m, v = cost.mean, _positive(cost.std)
    if capped:  # E[c; c < 1], E[c²; c < 1], P(c > 1), and v times the density of log c at 0
        first = np.exp(m + 0.5 * v**2 + log_ndtr(-m / v - v))
        second = np.exp(2.0 * m + 2.0 * v**2 + log_ndtr(-m / v - 2.0 * v))
        above, edge = np.asarray(ndtr(m / v)), np.exp(log_density(m / v))
    else:
        first = np.exp(np.minimum(m + 0.5 * v**2, 300.0))
        second = np.exp(np.minimum(2.0 * m + 2.0 * v**2, 600.0))
        above = edge = np.zeros_like(m)
    mean, square = first + above, second + above
    return _SigmaMoments(
        mean=mean,
        variance=np.maximum(square - mean**2, 0.0),
        mean_by_m=first,
        mean_by_v=v * first - edge,
        square_by_m=2.0 * second,
        square_by_v=2.0 * (2.0 * v * second - edge),
    )


def _by_moments(acquisition: Acquisition, quality: Normal, cost: Normal, beat: Beat) -> Partials:
    """The acquisition at the normal distribution with the first two moments of T."""
    alpha, sigma = beat.alpha, sigma_moments(cost, capped=beat.capped)
    std = np.sqrt(quality.std**2 + alpha**2 * sigma.variance)
    worth = acquisition.partials(Normal(quality.mean - alpha * sigma.mean, std), beat.score)
    by_mean, by_variance = -worth.by_mean * alpha, 0.5 * worth.by_std * alpha**2 / std  # of σ
    by_m = sigma.square_by_m - 2.0 * sigma.mean * sigma.mean_by_m  # of the variance
    by_v = sigma.square_by_v - 2.0 * sigma.mean * sigma.mean_by_v
    return Partials(
        value=worth.value,
        by_mean=worth.by_mean,
        by_std=worth.by_std * quality.std / std,
        by_cost_mean=by_variance * by_m + by_mean * sigma.mean_by_m,
        by_cost_std=by_variance * by_v + by_mean * sigma.mean_by_v,
    )
