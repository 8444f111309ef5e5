"""Where Matplotlib writes the name of a point: on the side with the fewest marks."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from tradewind.charts.chart import Line, Panel, Points
from tradewind.charts.scales import Scale
from tradewind.types import Array

_WIDTH, _HEIGHT = 0.1, 0.06  # of a short label, as shares of the panel
_SAMPLES = 24  # of a piece of a line


@dataclass(frozen=True)
class Side:
    """-1 is left or below, 1 is right or above."""

    across: int
    up: int


_SIDES = tuple(Side(across, up) for up, across in product((1, -1), (-1, 1)))


def clearest_side(at: tuple[float, float], marks: Array) -> Side:
    """The side of a place where a label covers the fewest marks (m, 2), within the panel."""

    def covered(side: Side) -> tuple[bool, int]:
        x = at[0] + side.across * np.array([0.01, _WIDTH])
        y = at[1] + side.up * np.array([0.0, _HEIGHT])
        outside = min(x) < 0.0 or max(x) > 1.0 or min(y) < 0.0
        low, high = np.array([min(x), min(y)]), np.array([max(x), max(y)])
        return outside, int(((marks >= low) & (marks <= high)).all(axis=1).sum())

    return min(_SIDES, key=covered)


def marks_of(panel: Panel, x: Scale, y: Scale) -> Array:
    """The places (m, 2) of all points of a panel, and along its lines."""
    found = [np.empty((0, 2))]
    for layer in panel.layers:
        if isinstance(layer, Points | Line):
            places = np.column_stack([x.at(layer.x), y.at(layer.y)])
            found.append(_along(places, layer.steps) if isinstance(layer, Line) else places)
    return np.concatenate(found)


def _along(places: Array, steps: bool) -> Array:
    """Samples of a line through these places."""
    if steps:
        corners = np.column_stack([places[1:, 0], places[:-1, 1]])
        places = np.insert(places, np.arange(1, len(places)), corners, axis=0)
    if len(places) < 2:
        return places
    share = np.linspace(0.0, 1.0, _SAMPLES)[:, None, None]
    return (places[:-1] + share * np.diff(places, axis=0)).reshape(-1, 2)
