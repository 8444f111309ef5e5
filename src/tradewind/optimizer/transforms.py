"""Units and scales: the only place where units change.

A transform is a frozen value. `forward` takes numbers to the scale of a model, `natural` carries
a normal marginal back from there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradewind.types import Array, Normal


@dataclass(frozen=True)
class Standardize:
    """y -> (y − shift) / scale, with mean 0 and standard deviation 1 on the data it was made of."""

    shift: float
    scale: float

    @classmethod
    def of(cls, y: Array) -> Standardize:
        """From values (n,) of any size: neither 1e-300 nor 1e300 under- or overflows."""
        largest = float(np.abs(y).max(initial=0.0))
        if largest == 0.0:
            return cls(0.0, 1.0)
        unit = y / largest
        shift, scale = float(unit.mean()), float(unit.std())
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
    """Bad outcomes count no worse than median − reach·(best − median).

    A handful of collapsed models must not flatten the good end; a log or rank transform, which
    would bend the good end too, measured worse. Where the majority ties at the best, the median
    is that of the others: clipping at the best would leave nothing to learn from."""

    floor: float

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


@dataclass(frozen=True)
class Identity:
    """Quality as it is."""

    def forward(self, y: Array) -> Array:
        return y

    def natural(self, y: Normal) -> Normal:
        return y

    def slope(self, y: Array) -> Array:
        return np.ones_like(y)


@dataclass(frozen=True)
class LogError:
    """y -> −log(1 − y) for an accuracy y: H's loss (eq. 15) in the maximizing sign.

    Accuracies closer to 1 than `smallest` count as that close, so that a perfect one is finite."""

    smallest: float = 1e-6

    def forward(self, y: Array) -> Array:
        if (y > 1.0).any():
            raise ValueError(
                f"log(1 − accuracy) needs values up to 1, but got {float(y.max())!r}; "
                'use loss="identity"'
            )
        return -np.log(np.maximum(1.0 - y, self.smallest))

    def inverse(self, t: Array) -> Array:
        return 1.0 - np.exp(-t)

    def slope(self, y: Array) -> Array:
        """dt/dy, for carrying known noise over."""
        return 1.0 / np.maximum(1.0 - y, self.smallest)

    def natural(self, t: Normal) -> Normal:
        """The normal with the first two moments of 1 − exp(−t): the error is log-normal.

        Exponents end at 200, which is no accuracy any more, so that their product is finite."""
        error = np.exp(np.minimum(-t.mean + 0.5 * t.std**2, 200.0))
        spread = np.sqrt(np.expm1(np.minimum(t.std**2, 200.0)))
        return Normal(1.0 - error, np.maximum(error * spread, 1e-12))
