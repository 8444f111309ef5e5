"""Which parameters may drive the cost, and the logarithms of their values.

Models of cost (optimizer/surrogates/trend.py) have a mean that is linear in these logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tradewind.space.parameters import Float, Int, Ordinal, Parameter, TrainSize
from tradewind.types import Array, CostDriver

_KNOTS = 65  # between two of them, the logarithm of a linear scale is off by 0.002 at most


def cost_drivers(parameters: Sequence[Parameter]) -> tuple[CostDriver, ...]:
    """The training size, the parameters that the user named and those on a log scale. The cost is
    expected to be proportional to the first two, and to not depend on the others."""
    return tuple(
        _driver(j, p)
        for j, p in enumerate(parameters)
        if p.cells != 1
        and (
            isinstance(p, TrainSize)
            or (isinstance(p, (Float, Int, Ordinal)) and p.drives_cost)
            or (isinstance(p, (Float, Int)) and p.log)
        )
    )


def _driver(column: int, p: Parameter) -> CostDriver:
    if isinstance(p, TrainSize):
        sizes = np.array(p.fractions)
        logs = -np.log(sizes / sizes[-1])
        # log(size / largest), rounded as in the first versions: a stored study repeats its
        # proposals to the last digit.
        logs = -(1.0 / (1.0 / logs[0])) * (logs / logs[0])
        return CostDriver(column, _centres(p.cells), logs, 1.0)
    if isinstance(p, Ordinal):
        values = np.array(p.choices, dtype=float)
        return CostDriver(column, _centres(p.cells), _relative(np.log(values)), 1.0)
    assert isinstance(p, (Float, Int))
    low, high = math.log(p.low), math.log(p.high)
    ends = np.array([p.to_unit(p.low), p.to_unit(p.high)])
    power = float(p.drives_cost)
    if p.log:
        return CostDriver(column, ends, _relative(np.array([low, high])), power)
    logs = np.linspace(low, high, _KNOTS)
    knots = ends[0] + (ends[1] - ends[0]) * (np.exp(logs) - p.low) / (p.high - p.low)
    return CostDriver(column, np.clip(knots, *ends), _relative(logs), power)


def _centres(cells: int) -> Array:
    return np.asarray((np.arange(cells) + 0.5) / cells)


def _relative(logs: Array) -> Array:
    """Logarithms relative to the middle of their range, where an inactive parameter is."""
    return np.asarray(logs - 0.5 * (logs.min() + logs.max()))
