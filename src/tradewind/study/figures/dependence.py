"""How quality and cost depend on one parameter, on average."""

from __future__ import annotations

import numpy as np

from tradewind.charts.chart import Axis, Band, Chart, Layer, Line, Panel, Points, Role
from tradewind.study.compare import LEVEL
from tradewind.study.figures.draw import (
    TOO_FEW,
    cost_axis,
    figures,
    nothing,
    value_axis,
    whiskers,
)
from tradewind.study.figures.facts import Facts
from tradewind.study.figures.values import axis_of, label
from tradewind.study.insights import PartialDependence
from tradewind.study.predictions import Interval
from tradewind.study.words import percent
from tradewind.types import Array

_POINTS = 12  # values of a parameter
_ROWS = 40  # configurations that are averaged
_MOST_CHOICES = 40
_SAME = 1.05  # costs within this factor count as the same


def dependence(facts: Facts, name: str) -> Chart:
    """The mean value and cost at each value of a parameter."""
    chart, title = f"dependence_{name}", f"How quality and cost depend on {label(name)}"
    if facts.effects is None:
        return nothing(chart, title, TOO_FEW)
    parameter = facts.space[name]
    if parameter.cells > _MOST_CHOICES and facts.space.columns.categorical[_index(facts, name)]:
        return nothing(chart, title, f"{label(name)} has too many choices to show one by one.")
    try:
        found = facts.effects.dependence(name, points=_POINTS, level=LEVEL, rows=_ROWS)
    except ValueError:  # no configuration allows all its values
        why = f"{label(name)} is so rarely active that its effect cannot be averaged."
        return nothing(chart, title, why)
    axis = axis_of(facts.space, name)
    panels = [Panel(axis, value_axis(facts), _layers(found, found.value, axis, "main"), "Quality")]
    if found.cost is not None:
        highs = np.array([it.high for it in found.cost] + [it.low for it in found.cost])
        y = cost_axis(facts, seen=highs)
        panels.append(Panel(axis, y, _layers(found, found.cost, axis, "second"), "Cost"))
    note = (
        "The mean over random configurations in which the parameter is active, as a model sees it; "
        f"bands hold with a probability of {percent(LEVEL)}."
    )
    return Chart(chart, title, _summary(facts, found), tuple(panels), note)


def _index(facts: Facts, name: str) -> int:
    return facts.space.names.index(name)


def _layers(
    found: PartialDependence, seen: list[Interval], axis: Axis, role: Role
) -> tuple[Layer, ...]:
    mean, low, high = (np.array([getattr(it, e) for it in seen]) for e in ("value", "low", "high"))
    if axis.scale == "category":
        at = [float(i) for i in range(len(found.values))]
        lines = whiskers(at, low, high, "uncertainty", role)
        return (lines, Points(at, figures(mean), "mean", role))
    x = figures(np.array([float(str(v)) for v in found.values]))
    band = Band(x, figures(low), figures(high), "uncertainty", role)
    return (band, Line(x, figures(mean), "mean", role))


def _summary(facts: Facts, found: PartialDependence) -> str:
    values = np.array([it.value for it in found.value])
    best, worst = _ends(values, facts.maximize)
    ends = (
        f"{label(found.values[i])} ({facts.say_value(float(values[i]))})" for i in (best, worst)
    )
    said = f"On average, the {facts.scale.name} is best at {label(found.name)} = "
    said += " and worst at ".join(ends) + "."
    if found.cost is None:
        return said
    costs = np.array([it.value for it in found.cost])
    low, high = int(costs.argmin()), int(costs.argmax())
    if costs[high] <= _SAME * costs[low]:
        return f"{said} The cost hardly depends on it."
    return (
        f"{said} The cost goes from {facts.cost.say(float(costs[low]))} at "
        f"{label(found.values[low])} to {facts.cost.say(float(costs[high]))} at "
        f"{label(found.values[high])}."
    )


def _ends(values: Array, maximize: bool) -> tuple[int, int]:
    """Where the values are best and worst."""
    high, low = int(values.argmax()), int(values.argmin())
    return (high, low) if maximize else (low, high)
