"""Regions: the part of a parameter's column where a condition holds.

Only here is a condition judged. A region decides on rows by coordinate, and on values by the
coordinate they are encoded to, so arrays and configurations cannot disagree.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tradewind.errors import ConfigError, SpaceError
from tradewind.plain import listed
from tradewind.space.conditions import AtLeast, Condition, OneOf
from tradewind.space.parameters import Finite, Float, Int, Parameter
from tradewind.types import Array, Value

_BEYOND = math.nextafter(1.0, 2.0)  # regions are half open, and [low, _BEYOND) includes 1


class Region:
    """Where `condition` holds on the column of `parameter`.

    `edges` has the ends of the intervals [a, b) in ascending order; see `encoding.within`."""

    def __init__(self, parameter: Parameter, condition: Condition) -> None:
        self.condition = condition
        self._parameter = parameter
        self.edges: Array = np.array([e for run in _intervals(parameter, condition) for e in run])

    @property
    def width(self) -> float:
        """The share of the column that lies inside."""
        return float((self.edges[1::2] - self.edges[::2]).sum())

    def holds(self, value: Value) -> bool:
        """Whether the condition holds for a valid value."""
        if isinstance(self._parameter, Float):
            below = np.searchsorted(self.edges, self._parameter.to_unit(value), side="right")
            return bool(below % 2 == 1)  # see `encoding.within`
        return self.condition.holds(value)

    def stretch(self, u: float) -> float:
        """The coordinate at the share u of the region: 0 is its beginning, 1 its end."""
        low, high = self.edges[::2], np.minimum(self.edges[1::2], 1.0)
        ends = np.cumsum(high - low)
        i = min(int(np.searchsorted(ends, u * ends[-1], side="right")), len(ends) - 1)
        return float(high[i] - (ends[i] - u * ends[-1]))


def _intervals(parameter: Parameter, condition: Condition) -> list[tuple[float, float]]:
    if isinstance(parameter, Float) and parameter.step is None:
        return [(_first_unit(parameter, condition), _BEYOND)]
    assert isinstance(parameter, Finite)
    runs = _runs(parameter, condition)
    return [(parameter.edge(first), parameter.edge(last + 1)) for first, last in runs]


def _first_unit(parameter: Float, condition: Condition) -> float:
    """The smallest coordinate whose decoded value, with its 12 digits, meets the condition."""
    if not isinstance(condition, AtLeast):
        raise SpaceError("is a Float: compare it by at_least(...), not by equality")
    if condition.low > parameter.high:
        raise SpaceError(f"{condition} can never hold: the largest value is {parameter.high!r}")
    below, first = 0.0, parameter.to_unit(max(condition.low, parameter.low))
    target = parameter.from_unit(first)
    if target == parameter.low:
        return 0.0
    while below < (middle := (below + first) / 2) < first:
        if parameter.from_unit(middle) < target:
            below = middle
        else:
            first = middle
    return first


def _runs(parameter: Finite, condition: Condition) -> list[tuple[int, int]]:
    """The cells whose values meet the condition, as runs (first, last)."""
    if isinstance(condition, OneOf):
        try:
            values: list[Any] = [parameter.check(v) for v in condition.values]
        except ConfigError as error:
            raise SpaceError(str(error)) from None
        return _join(sorted({parameter.cell(v) for v in values}))
    if isinstance(parameter, (Int, Float)):
        first = parameter.first_cell(condition.low)
        if first >= parameter.cells:
            raise SpaceError(f"{condition} can never hold: the largest value is {parameter.high!r}")
        return [(first, parameter.cells - 1)]
    cells = [i for i, v in enumerate(parameter.choices) if condition.holds(v)]
    if not cells:
        raise SpaceError(f"{condition} can never hold: it takes [{listed(parameter.choices)}]")
    return _join(cells)


def _join(cells: list[int]) -> list[tuple[int, int]]:
    """Ascending cells as runs of neighbours."""
    runs: list[tuple[int, int]] = []
    for i in cells:
        if runs and runs[-1][1] == i - 1:
            runs[-1] = (runs[-1][0], i)
        else:
            runs.append((i, i))
    return runs
