"""Parameters on axes: their scales, their ticks, and how their values are written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from tradewind.charts.chart import Axis
from tradewind.charts.scales import Scale, Tick
from tradewind.space import Space
from tradewind.space.parameters import Float, Int, Parameter, TrainSize
from tradewind.study.words import number, percent
from tradewind.types import Value

_TICKS = 5  # along an axis with numbers
_LABELS = 12  # along an axis with choices
_APART = 0.08  # the least distance of two ticks
_LONGEST = 40  # characters of a label

Mark: TypeAlias = tuple[float, str]  # a place in [0, 1] and its text


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


def ticks(p: Parameter) -> list[Mark]:
    """Marks along the coordinate of a parameter: both ends, and round values between them."""
    if not isinstance(p, (Float, Int)) or (0 < p.cells <= _LABELS and not p.log):
        places = (np.arange(p.cells) + 0.5) / p.cells
        every = math.ceil(p.cells / _LABELS)
        values = [p.from_unit(float(u)) for u in places[::every]]
        texts = [percent(float(str(v))) if isinstance(p, TrainSize) else label(v) for v in values]
        return [(round(float(u), 4), text) for u, text in zip(places[::every], texts, strict=True)]
    low, high = p.from_unit(0.0), p.from_unit(1.0)
    if p.step not in (None, 1):
        between = [p.from_unit(u) for u in (0.25, 0.5, 0.75)]
    else:
        axis = Axis("", "log" if p.log else "linear", "count" if isinstance(p, Int) else "number")
        between = [p.check(tick.value) for tick in round_ticks(axis, float(low), float(high))]
    inner = [(p.to_unit(value), label(value)) for value in between]
    return spaced((p.to_unit(low), label(low)), inner, (p.to_unit(high), label(high)))


def round_ticks(axis: Axis, low: float, high: float) -> list[Tick]:
    """Round values between two others."""
    if not low < high:
        return []
    return [tick for tick in Scale(axis, low, high).ticks(_TICKS) if low < tick.value < high]


def spaced(low: Mark, between: list[Mark], high: Mark) -> list[Mark]:
    """The marks of both ends, and those between them that touch no other."""
    found = [low]
    for place, text in between:
        if found[-1][0] + _APART < place < high[0] - _APART:
            found.append((round(place, 4), text))
    return [*found, high]
