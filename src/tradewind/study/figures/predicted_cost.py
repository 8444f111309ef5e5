"""Predicted against measured cost: can the limits of a search be trusted?"""

from __future__ import annotations

import numpy as np

from tradewind.charts.chart import Axis, Band, Chart, Line, Panel, Points
from tradewind.study.figures.draw import (
    counted,
    figures,
    notes,
    nothing,
    scale_for,
    thinned,
    thinning_note,
)
from tradewind.study.figures.facts import NOTHING_FINISHED, Facts
from tradewind.study.words import number, percent
from tradewind.types import Array

NAME, TITLE = "predicted_cost", "Predicted against measured cost"
_FACTOR = 2.0
_NONE = (
    "No finished trial has both a predicted and a measured cost. The first trials of a search have "
    "no prediction, nor have those of a search that ignores costs."
)


def predicted_cost(facts: Facts) -> Chart:
    """The cost that each trial was expected to have, and the cost it had."""
    if not facts.finished:
        return nothing(NAME, TITLE, NOTHING_FINISHED)
    if facts.goal.by is not None:
        why = "The goal looks at a named cost, for which proposals hold no prediction."
        return nothing(NAME, TITLE, why)
    expected = np.array(
        [np.nan if t.expected_cost is None else t.expected_cost for t in facts.finished]
    )
    cost = facts.history.cost
    known = np.flatnonzero((expected > 0.0) & (cost > 0.0) & np.isfinite(cost))
    if not len(known):
        return nothing(NAME, TITLE, _NONE)
    both = np.concatenate([expected[known], cost[known]])
    scale = scale_for(both)
    ends = np.array([both.min(), both.max()])
    if scale == "log":
        ends = np.geomspace(ends[0], ends[1], 2)
    shown = thinned(known)
    title, unit = facts.cost.title, facts.cost.format
    layers = (
        Band(
            figures(ends),
            figures(ends / _FACTOR),
            figures(ends * _FACTOR),
            "within a factor of 2",
            "muted",
        ),
        Line(figures(ends), figures(ends), "as predicted", "muted", dashed=True),
        Points(
            figures(expected[shown]),
            figures(cost[shown]),
            "each trial",
            "main",
            [facts.numbers[i] for i in shown],
            facts.texts(shown),
        ),
    )
    panel = Panel(
        Axis(f"predicted {title}", scale, unit), Axis(f"measured {title}", scale, unit), layers
    )
    summary = _summary(cost[known] / expected[known])
    return Chart(NAME, TITLE, summary, (panel,), notes(thinning_note(len(shown), len(known))))


def _summary(ratio: Array) -> str:
    """What `ratio`, the measured by the predicted costs, says."""
    median = number(float(np.median(ratio)))
    times = "" if median == "1" else f"{median} times "
    near = float(np.mean((ratio <= _FACTOR) & (ratio >= 1.0 / _FACTOR)))
    return (
        f"{percent(round(near, 2))} of {counted(len(ratio), 'trial')} cost within a factor of 2 of "
        f"the prediction; the median trial cost {times}what was predicted."
    )
