"""A mean that is linear in logarithms, beside the kernel of a Gaussian process.

A cost is often close to a product of powers: epochs · units² · size. So log-cost has the mean
Σ_j w_j·log v_j(x) over the columns v_j that may drive the cost, with a normal prior for each power
w_j. The powers are integrated out: their prior means are subtracted from y, and their variances
add a linear kernel. That is why log-cost extrapolates beyond the values that were seen. Whatever
is not a power is left to the rest of the process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tradewind.types import Array, Columns, CostDriver


@dataclass(frozen=True)
class Trend:
    """Powers w_j ~ N(`powers`[j], `std`²) of the values of the `uncertain` drivers, and powers that
    are taken as given for the others; y has this `unit`."""

    uncertain: Logs
    given: Logs
    std: float = 0.0
    unit: float = 1.0

    @classmethod
    def of(cls, columns: Columns, *, size_power: float, std: float | None) -> Trend:
        """All drivers, with this std of their powers; or the training size alone if it is None.

        The training size has the power `size_power`. How uncertain that is, `sizes.py` learns from
        the data."""
        size = [replace(d, power=size_power) for d in columns.drivers if columns.size[d.column]]
        others = [d for d in columns.drivers if not columns.size[d.column]]
        return cls(
            Logs.of(others if std else []), Logs.of(size if size_power else []), std=std or 0.0
        )

    def in_unit(self, unit: float) -> Trend:
        return replace(self, unit=unit)

    def mean(self, X: Array) -> Array | float:
        """The expected y (n,) before any data, up to a constant."""
        parts = [
            logs(X) @ logs.powers for logs in (self.uncertain, self.given) if logs.powers.any()
        ]
        return sum(parts) if parts else 0.0

    def features(self, X: Array) -> Array:
        """The logarithms (n, q) of uncertain powers, scaled so that their kernel is the inner
        product."""
        if not self.uncertain.drivers:
            return np.empty((len(X), 0))
        return self.uncertain(X) * self._weight

    def mean_slopes(self, X: Array) -> Array:
        """The derivatives (n, d) of the mean. They are 0 along the training size: there is nothing
        between two sizes."""
        full = np.zeros(X.shape)
        if self.uncertain.drivers:
            full[:, self.uncertain.columns] = self.uncertain.slopes(X) * self.uncertain.powers
        return full

    def gather(self, X: Array, weight: Array) -> Array:
        """The derivatives (n, d) of Σ_q weight_q·feature_q, for weights (n, q)."""
        full = np.zeros(X.shape)
        if self.uncertain.drivers:
            full[:, self.uncertain.columns] = self.uncertain.slopes(X) * weight * self._weight
        return full

    @property
    def _weight(self) -> float:
        return self.std / self.unit


@dataclass(frozen=True)
class Logs:
    """The logarithms of the values of q drivers, relative to their fixed values. Those on a log
    scale, which have two knots, come first, and are computed together."""

    drivers: tuple[CostDriver, ...]

    @classmethod
    def of(cls, drivers: Sequence[CostDriver]) -> Logs:
        return cls(tuple(sorted(drivers, key=lambda driver: len(driver.knots) > 2)))

    @cached_property
    def columns(self) -> Array:
        return np.array([d.column for d in self.drivers], dtype=np.intp)

    @cached_property
    def powers(self) -> Array:
        return np.array([d.power for d in self.drivers])

    def __call__(self, X: Array) -> Array:
        """The logarithms (n, q); 0 where the parameter is inactive."""
        U = X[:, self.columns]
        low, high, start, rate = self._straight
        m = len(low)
        logs = np.empty_like(U)
        logs[:, :m] = start + rate * (np.clip(U[:, :m], low, high) - low)
        for j, driver in enumerate(self.drivers[m:], m):
            logs[:, j] = np.interp(U[:, j], driver.knots, driver.logs)
        logs[np.isnan(U)] = 0.0
        return logs

    def slopes(self, X: Array) -> Array:
        """The derivatives (n, q) of the logarithms by their own columns; 0 where inactive or beyond
        the knots. At a knot it is that of the piece to the right, if there is one."""
        U = X[:, self.columns]
        low, high, _, rate = self._straight
        m = len(low)
        slopes = np.empty_like(U)
        slopes[:, :m] = rate * ((U[:, :m] >= low) & (U[:, :m] <= high))
        for j, (driver, rates) in enumerate(zip(self.drivers[m:], self._rates, strict=True), m):
            u = U[:, j]
            piece = np.searchsorted(driver.knots, u, side="right")  # NaN is larger than all
            slopes[:, j] = rates[piece - (u == driver.knots[-1])]
        return slopes

    @cached_property
    def _straight(self) -> tuple[Array, Array, Array, Array]:
        """Lower and upper knot, logarithm at the lower one, and slope of those with two knots."""
        two = [d for d in self.drivers if len(d.knots) == 2]
        ends = [(*d.knots, d.logs[0], np.diff(d.logs)[0] / np.diff(d.knots)[0]) for d in two]
        low, high, start, rate = np.array(ends).reshape(-1, 4).T
        return low, high, start, rate

    @cached_property
    def _rates(self) -> list[Array]:
        """The slopes between the knots of each of the others; 0 before the first and after the
        last."""
        many = [d for d in self.drivers if len(d.knots) > 2]
        return [np.pad(np.diff(d.logs) / np.diff(d.knots), 1) for d in many]
