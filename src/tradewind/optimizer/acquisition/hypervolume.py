"""The expected growth of the area that efficient trials dominate between quality and log-cost.

The efficient trials, cheapest first, cut the costs into strips. In the strip that begins at trial
i, a new trial adds an area as high as its quality exceeds that of trial i, and as wide as the part
of the strip that is dearer than the new trial. Quality and log-cost are independent, so the
expectation of each strip is a product of two expected improvements:

    Σ_i  E[max(y − q_i, 0)] · (E[max(u_{i+1} − c, 0)] − E[max(u_i − c, 0)])

All terms are positive, so their logarithms can be added stably.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr

from tradewind.optimizer.acquisition.ei import log_density, log_h
from tradewind.types import Array, Normal, Partials


def log_ehvi(quality: Normal, cost: Normal, floors: Array, edges: Array) -> Partials:
    """The logarithm of the expected growth (n,), and its derivatives.

    `floors` (k + 1,) are the qualities to exceed in the k + 1 strips, ascending: first the worst
    that counts, then those of the efficient trials. `edges` (k + 2,) are the log-costs at which the
    strips begin and end, ascending; the first may be −inf."""
    mean, std = quality.mean[:, None], quality.std[:, None]
    z = (mean - floors) / std
    log_gain = np.log(std) + log_h(z)
    log_width, (by_cost_mean, by_cost_std) = _log_width(cost, edges)
    terms = log_gain + log_width
    top = terms.max(axis=1, keepdims=True)
    share = np.exp(terms - top)
    total = share.sum(axis=1, keepdims=True)
    share /= total
    slope, curve = log_ndtr(z) - log_h(z), log_density(z) - log_h(z)
    return Partials(
        value=(top + np.log(total))[:, 0],
        by_mean=(share * np.exp(np.minimum(slope, 700.0)) / std).sum(axis=1),
        by_std=(share * np.exp(np.minimum(curve, 700.0)) / std).sum(axis=1),
        by_cost_mean=(share * by_cost_mean).sum(axis=1),
        by_cost_std=(share * by_cost_std).sum(axis=1),
    )


def _log_width(cost: Normal, edges: Array) -> tuple[Array, tuple[Array, Array]]:
    """The logarithm of E[max(u_{i+1} − c, 0) − max(u_i − c, 0)] (n, k + 1), and its derivatives by
    the mean and the std of c."""
    std = np.maximum(cost.std, 1e-9)[:, None]
    z = np.maximum((edges - cost.mean[:, None]) / std, -1e150)
    h = log_h(z)
    low, high = h[:, :-1], h[:, 1:]
    gap = np.minimum(low - high, -1e-14)  # a strip without width counts as a very narrow one
    log_difference = high + np.log(-np.expm1(gap))
    # E[max(u − c, 0)] = s·h(z) has the derivatives −Φ(z) by the mean and φ(z) by the std.
    inside = log_difference + np.log(std)
    by_mean = -_difference(log_ndtr(z), inside)
    by_std = _difference(log_density(z), inside)
    return inside, (by_mean, by_std)


def _difference(log_values: Array, log_scale: Array) -> Array:
    """(e^{v_{i+1}} − e^{v_i}) / e^{scale_i}, without overflow."""
    high = np.exp(np.minimum(log_values[:, 1:] - log_scale, 690.0))
    low = np.exp(np.minimum(log_values[:, :-1] - log_scale, 690.0))
    return np.asarray(high - low)
