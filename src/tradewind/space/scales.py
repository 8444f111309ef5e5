"""Scales: values <-> coordinates in the unit interval [0, 1].

A finite scale divides the interval into `cells`, one per value, and puts each value at the centre
of its cell. Uniform sampling therefore makes all choices, and all integers of a linear scale,
equally likely. A continuous scale has `cells = 0`, unless a `step` makes it a grid. The parameters
of parameters.py inherit from these classes and check what users declare; encoding.py calls them for
each value of a row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tradewind.types import Array, Value

_DIGITS = 12  # decoded floats are rounded, so that a replayed proposal is identical to the bit
_EXACT_DIGITS = 14  # of a float's 16: those that survive the way to the unit interval and back
_FEW = 3  # decimal digits: a range with fewer after rounding is not rounded
_ULPS = 1e-12
_TABLE = 2**14  # the most centres of a log scale that are stored


def key(value: Any) -> tuple[bool, Any]:
    """What tells values apart: True is not 1, but 1 is 1.0."""
    return isinstance(value, bool), value


@dataclass(frozen=True, init=False)
class FloatScale:
    """Real numbers from `low` to `high`; with a `step`, only `low`, `low + step`, … and `high`."""

    low: float
    high: float
    log: bool
    step: float | None

    @cached_property
    def cells(self) -> int:
        return 0 if self.step is None else round((self.high - self.low) / self.step) + 1

    def to_unit(self, value: Any) -> float:
        if self.step is not None:
            return (self.cell(value) + 0.5) / self.cells
        a, b = self._ends
        u = ((math.log(value) if self.log else value) - a) / (b - a)
        # Rounding can leave [0, 1] by an ulp. What is further out is no value of this scale.
        return u if 0.0 <= u <= 1.0 or not -_ULPS < u < 1.0 + _ULPS else float(u > 0.5)

    def from_unit(self, u: float) -> float:
        """The value at u, rounded to 12 digits; the two bounds are not rounded.

        Rounding is stable: `from_unit(to_unit(x)) == x` for every x that this method returns."""
        if self.step is not None:
            return self.grid_value(min(max(math.floor(u * self.cells), 0), self.cells - 1))
        if u <= 0.0:
            return self.low
        if u >= 1.0:
            return self.high
        a, b = self._ends
        x = a + u * (b - a)
        x = self._round(math.exp(min(x, b)) if self.log else x)
        near_low, near_high = self._rounded_bounds
        if x <= near_low:
            return self.low
        return self.high if x >= near_high else x

    def grid_value(self, cell: int) -> float:
        """The value of a cell of the grid, rounded to 12 digits; the two bounds are not rounded."""
        if not 0 < cell < self.cells - 1:
            return self.low if cell <= 0 else self.high
        return self._round(self.low + cell * (self.step or 0.0))

    def cell(self, value: float) -> int:
        """The index of the cell of the grid whose value is nearest."""
        return round((value - self.low) / (self.step or 1.0))

    def first_cell(self, least: float) -> int:
        """The index of the first cell of the grid with a value of `least` or more."""
        cell = max(self.cell(least), 0)
        return cell if self.grid_value(cell) >= least else cell + 1

    def edge(self, cell: int) -> float:
        """Where a cell of the grid begins, which is where the previous one ends."""
        return cell / self.cells

    @cached_property
    def _ends(self) -> tuple[float, float]:
        return (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)

    @cached_property
    def _digits(self) -> int | None:
        """Significant digits on a log scale, decimal places on a linear one. None if values are not
        rounded: 1e15 + u * 10 would lose all that lies between the bounds, and rounding has nothing
        to add there, because floats that far from 0 are further apart than its last digit."""
        a, b = self._ends
        exact = _EXACT_DIGITS - math.ceil(math.log10(max(abs(a), abs(b))))
        # On a linear scale the step matters relative to the range: -1e3 + u * 2e3 has lost the
        # last digits of a value near 0.
        if self.log:
            return min(_DIGITS, exact)
        decades = math.log10(b - a)
        return None if decades + exact < _FEW else min(_DIGITS - math.ceil(decades), exact)

    @cached_property
    def _rounded_bounds(self) -> tuple[float, float]:
        return self._round(self.low), self._round(self.high)

    def _round(self, x: float) -> float:
        if self._digits is None:
            return x
        return float(f"{x:.{self._digits}g}") if self.log else round(x, self._digits)


@dataclass(frozen=True, init=False)
class IntScale:
    """Whole numbers from `low` to `high`, both included, in steps of `step`."""

    low: int
    high: int
    log: bool
    step: int

    @property
    def cells(self) -> int:
        return (self.high - self.low) // self.step + 1

    def to_unit(self, value: Any) -> float:
        if self.log:
            a, b = self._ends
            return (math.log(value) - a) / (b - a)
        return (self.cell(value) + 0.5) / self.cells

    def from_unit(self, u: float) -> int:
        if self.log:
            a, b = self._ends
            value = math.floor(math.exp(min(a + u * (b - a), b)) + 0.5)
        else:
            value = self.low + self.step * math.floor(u * self.cells)
        return min(max(value, self.low), self.high)

    def centres(self, u: Array) -> Array:
        """On a log scale, the centres of the cells that contain the coordinates u (n,)."""
        a, b = self._ends
        values = np.clip(np.floor(np.exp(a + u * (b - a)) + 0.5), self.low, self.high)
        # `to_unit` computes them: NumPy's logarithm can differ from `math.log` in the last bit,
        # and rows are compared bit by bit.
        if self.cells <= _TABLE:
            return self._all_centres[values.astype(np.int64) - self.low]
        return np.array([self.to_unit(v) for v in values.tolist()])

    @cached_property
    def _all_centres(self) -> Array:
        return np.array([self.to_unit(v) for v in range(self.low, self.high + 1)])

    def cell(self, value: int) -> int:
        """The index of the cell of a valid value."""
        return (value - self.low) // self.step

    def first_cell(self, least: float) -> int:
        """The index of the first cell with a value of `least` or more."""
        return max(-((self.low - math.ceil(least)) // self.step), 0)

    def edge(self, cell: int) -> float:
        """Where a cell begins, which is where the previous one ends."""
        if self.log:
            a, b = self._ends
            return (math.log(self.low + cell - 0.5) - a) / (b - a)
        return cell / self.cells

    @cached_property
    def _ends(self) -> tuple[float, float]:
        return math.log(self.low - 0.5), math.log(self.high + 0.5)


@dataclass(frozen=True, init=False)
class ChoiceScale:
    """A list of values with cells of equal width."""

    choices: tuple[Value, ...]

    @property
    def cells(self) -> int:
        return len(self.choices)

    @cached_property
    def _cell_of(self) -> dict[tuple[bool, Value], int]:
        return {key(v): i for i, v in enumerate(self.choices)}

    def to_unit(self, value: Any) -> float:
        return (self._cell_of[isinstance(value, bool), value] + 0.5) / len(self.choices)

    def from_unit(self, u: float) -> Value:
        return self.choices[min(max(int(u * self.cells), 0), self.cells - 1)]

    def cell(self, value: Value) -> int:
        """The index of the cell of a valid value."""
        return self._cell_of[key(value)]

    def edge(self, cell: int) -> float:
        """Where a cell begins, which is where the previous one ends."""
        return cell / self.cells
