"""Parameters on axes: their scales, their ticks, and how their values are written."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tradewind.charts.chart import Axis
from tradewind.space import Space
from tradewind.space.parameters import Float, Int, Parameter, TrainSize
from tradewind.study.words import number, percent
from tradewind.types import Value

_TICKS = 5  # along an axis with numbers
_LABELS = 12  # along an axis with choices
_APART = 0.08  # the least distance of two ticks
_LONGEST = 40  # characters of a label


def label(value: Value) -> str:
    """A value of a parameter on an axis or in a sentence."""
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, int) and abs(value) < 1e6:
        return str(value)
    text = number(float(value)) if isinstance(value, (int, float)) else str(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def axis_of(space: Space, name: str) -> Axis:
    """An axis for the values of a parameter."""
    p = space[name]
    if isinstance(p, (Float, Int)):
        return Axis(name, "log" if p.log else "linear", "count" if isinstance(p, Int) else "number")
    if space.size_name == name:
        return Axis(name, format="percent")
    choices: Sequence[Value] = p.choices  # type: ignore[attr-defined]
    return Axis(name, "category", labels=tuple(map(label, choices)))


def ticks(p: Parameter) -> list[tuple[float, str]]:
    """Positions in [0, 1] and texts along the coordinate of a parameter."""
    if not isinstance(p, (Float, Int)) or (0 < p.cells <= _LABELS and not p.log):
        places = (np.arange(p.cells) + 0.5) / p.cells
        every = math.ceil(p.cells / _LABELS)
        values = [p.from_unit(float(u)) for u in places[::every]]
        texts = [percent(float(str(v))) if isinstance(p, TrainSize) else label(v) for v in values]
        return [(round(float(u), 4), text) for u, text in zip(places[::every], texts, strict=True)]
    found = [(0.0, label(p.from_unit(0.0)))]
    for value in _between(p):
        u = p.to_unit(p.check(value))
        if found[-1][0] + _APART < u < 1.0 - _APART:
            found.append((round(u, 4), label(value)))
    return [*found, (1.0, label(p.from_unit(1.0)))]


def _between(p: Float | Int) -> list[Value]:
    """Round values between the ends where there are any."""
    low, high = float(p.low), float(p.high)
    if not p.log or math.log10(high) - math.log10(low) < 2.0:
        return [p.from_unit(u) for u in (0.25, 0.5, 0.75)]
    powers = range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
    return [10.0**k for k in powers[:: math.ceil(len(powers) / _TICKS)] if low <= 10.0**k <= high]
