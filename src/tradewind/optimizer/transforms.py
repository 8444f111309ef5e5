"""Units and scales of quality. `log_error.py` has one more transform.

A transform is a frozen value: `forward` takes numbers to the scale of a model, and `natural` brings
normal marginals back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from tradewind.types import Array, Normal

Scaling: TypeAlias = Literal["std", "range"]


@dataclass(frozen=True)
class Standardize:
    """y -> (y − shift) / scale, with mean 0 and standard deviation 1 on the data it was made of; by
    their `"range"`, their smallest value is 0 and their largest 1."""

    shift: float
    scale: float

    @classmethod
    def of(cls, y: Array, by: Scaling = "std") -> Standardize:
        """For values (n,) of any magnitude: neither 1e-300 nor 1e300 under- or overflows."""
        largest = float(np.abs(y).max(initial=0.0))
        if largest == 0.0:
            return cls(0.0, 1.0)
        unit = y / largest
        shift, scale = float(unit.mean()), float(unit.std())
        if by == "range":
            shift, scale = float(unit.min()), float(np.ptp(unit))
        if scale < 1e-12:  # constant up to rounding
            scale = 1.0
        return cls(shift * largest, max(scale * largest, np.finfo(float).tiny))

    def forward(self, y: Array) -> Array:
        return (y / self.scale) - (self.shift / self.scale)

    def inverse(self, t: Array) -> Array:
        return t * self.scale + self.shift

    def natural(self, t: Normal) -> Normal:
        return Normal(self.inverse(t.mean), t.std * self.scale)


@dataclass(frozen=True)
class Clip:
    """A value below `floor` counts as `floor`, which is median − reach·(best − median).

    A handful of collapsed models must not flatten the good end. (A log or rank transform, which
    would bend the good end too, measured worse.) If most values tie with the best, the median is
    that of the others: clipping at the best would leave nothing to learn from."""

    floor: float
    scaling: Scaling = "std"

    @classmethod
    def of(cls, y: Array, *, reach: float = 3.0) -> Clip:
        if not len(y):
            return cls(-np.inf)
        middle, best = float(np.median(y)), float(y.max())
        if middle == best and (y < best).any():
            middle = float(np.median(y[y < best]))
        # halves first: best − middle may overflow when values reach 1e308
        floor = middle - 2.0 * reach * (best / 2.0 - middle / 2.0)
        return cls(floor if np.isfinite(floor) else -np.inf)

    def forward(self, y: Array) -> Array:
        return np.maximum(y, self.floor)

    def natural(self, y: Normal) -> Normal:
        return y

    def slope(self, y: Array) -> Array:
        return np.ones_like(y)
