"""Gradient ascent in the unit cube for a handful of points at once.

Projected BFGS with one inverse Hessian a point. All points move in lockstep, so that a step
costs one call of the score, however many there are.
"""

from __future__ import annotations

import numpy as np

from tradewind.optimizer.maximizers.maximizer import SmoothScore
from tradewind.types import Array, Mask

_LONGEST = 0.25  # of a step along one coordinate
_ARMIJO = 1e-4
_SETTLED = 1e-4  # scores are logarithms: this is a hundredth of a percent


def ascend(score: SmoothScore, X: Array, *, free: Mask, steps: int) -> tuple[Array, Array]:
    """Climb from rows X (k, d) along the coordinates that are `free` (k, d).

    Returns the rows reached and their scores; no row ends lower than it began. Rows are not
    snapped on the way."""
    k, d = X.shape
    X = X.copy()
    f, g = score.gradient(X)
    H = np.broadcast_to(np.eye(d), (k, d, d)).copy()
    fresh = np.ones(k, dtype=bool)  # no curvature learned yet
    shrink = np.ones(k)
    for _ in range(steps):
        p = _direction(X, g, H, free, fresh) * shrink[:, None]
        target = np.where(free, np.clip(X + p, 0.0, 1.0), X)
        f_new, g_new = score.gradient(target)
        s = np.where(free, target - X, 0.0)
        gain = np.einsum("ij,ij->i", np.where(free, g, 0.0), s)
        better = (f_new >= f + _ARMIJO * gain) & np.isfinite(f_new) & (gain > 0)
        H, fresh = _update(H, s, np.where(free, g - g_new, 0.0), better, fresh)
        rise = np.subtract(f_new, f, out=np.zeros_like(f), where=better)  # both may be -inf
        settled = better & (rise < _SETTLED)
        X = np.where(better[:, None], target, X)
        f, g = np.where(better, f_new, f), np.where(better[:, None], g_new, g)
        shrink = np.where(better, 1.0, shrink * 0.25)
        if np.all(settled | (shrink < 1e-3)):
            break
    return X, f


def _direction(X: Array, g: Array, H: Array, free: Mask, fresh: Mask) -> Array:
    """Quasi-Newton direction with the coordinates at a bound that block it left out."""
    blocked = ~free | ((X <= 0.0) & (g < 0.0)) | ((X >= 1.0) & (g > 0.0))
    g = np.where(blocked, 0.0, g)
    p = np.where(blocked, 0.0, np.einsum("kij,kj->ki", H, g))
    uphill = np.einsum("ij,ij->i", p, g) > 0.0
    p = np.where(uphill[:, None], p, g)
    longest = np.maximum(np.abs(p).max(axis=1), 1e-300)
    length = np.where(fresh | ~uphill, 0.1 / longest, np.minimum(1.0, _LONGEST / longest))
    return np.asarray(p * length[:, None])


def _update(H: Array, s: Array, y: Array, better: Mask, fresh: Mask) -> tuple[Array, Mask]:
    """BFGS update of the inverse Hessian of −score, where the curvature condition holds."""
    sy = np.einsum("ij,ij->i", s, y)
    yy = np.einsum("ij,ij->i", y, y)
    use = better & (yy > 1e-200) & (sy > 1e-12 * yy) & np.isfinite(yy)
    if not use.any():
        return H, fresh
    s, y, sy, yy = s[use], y[use], sy[use], yy[use]
    scaled = np.where(fresh[use], sy / yy, 1.0)[:, None, None] * H[use]  # first guess of scale
    Hy = np.einsum("kij,kj->ki", scaled, y)
    yHy = np.einsum("ij,ij->i", y, Hy)
    cross = np.einsum("ki,kj->kij", Hy, s)
    H = H.copy()
    H[use] = (
        scaled
        - (cross + cross.transpose(0, 2, 1)) / sy[:, None, None]
        + ((1.0 + yHy / sy) / sy)[:, None, None] * np.einsum("ki,kj->kij", s, s)
    )
    return H, fresh & ~use
