"""Which values a figure shows, so that a few bad trials do not flatten all others."""

from __future__ import annotations

import numpy as np

from tradewind.study.figures.facts import Facts
from tradewind.types import Array

_BELOW = 0.25  # of the height of what matters is shown below it
_GAIN = 1.5  # a part of the values is shown only if all of them are so many times higher
_STEP = 0.8  # of the height of what matters: a first step above this hides all other steps
_KEPT = 3  # steps are shown in any case
_LARGEST = 1e308
_ROOM = 0.01  # of the height, beyond the values that are shown


def limits(
    facts: Facts, values: Array, matters: Array, *, most: float = 0.2
) -> tuple[float, float] | None:
    """The limits of the axis for these values of trials (see `focus`); None if it shows all."""
    sign = facts.history.sign
    chosen = None if facts.choice is None else float(sign * facts.value[facts.choice])
    shown = focus(sign * values, sign * matters, chosen, most=most)
    if shown is None or facts.maximize:
        return shown
    return -shown[1], -shown[0]


def beyond(facts: Facts, values: Array, limits: tuple[float, float] | None) -> str:
    """How many trials the figure does not show, and where they are."""
    if limits is None:
        return ""
    left_out = values[values < limits[0]] if facts.maximize else values[values > limits[1]]
    side, edge = ("below", "lower") if facts.maximize else ("above", "upper")
    first, last = (facts.say_value(float(v)) for v in (left_out.min(), left_out.max()))
    where = f"at {first}" if first == last else f"from {first} to {last}"
    if len(left_out) == 1:
        return f"The triangle at the {edge} edge is a trial {side} this range, {where}."
    number = f"{len(left_out):,} trials"
    return f"Triangles at the {edge} edge are {number} {side} this range, {where}."


def focus(
    quality: Array, matters: Array, chosen: float | None, *, most: float
) -> tuple[float, float] | None:
    """The lowest and the highest quality in the picture; None if it shows all of them. What
    `matters` is in it, but for its first steps if they dwarf the others, and so is the `chosen`. At
    `most` this share of the trials is left out."""
    unit = float(np.abs(quality).max(initial=0.0))
    if not len(matters) or unit == 0.0:
        return None
    q = quality / unit  # differences of huge numbers would overflow
    steps = _without_first(np.sort(matters / unit))
    best = float(steps[-1])
    low = float(steps[0] if chosen is None else min(steps[0], chosen / unit))
    bound = min(low - _BELOW * (best - low), float(np.quantile(q, most, method="lower")))
    lowest = _above_a_gap(np.sort(q), bound)
    height = float(q.max()) - lowest
    if height == 0.0 or float(np.ptp(q)) < _GAIN * height:
        return None
    highest = min(float(q.max()) + _ROOM * height, _LARGEST / unit)
    return (lowest - _ROOM * height) * unit, highest * unit


def _above_a_gap(ascending: Array, bound: float) -> float:
    """The lowest number from the bound on, or below it, after a gap: no cluster is cut in two."""
    at = int(np.searchsorted(ascending, bound))
    while at > 0:
        room = 2.0 * _ROOM * (ascending[-1] - ascending[at])
        if ascending[at] - ascending[at - 1] > room:
            break
        at -= 1
    return float(ascending[at])


def _without_first(steps: Array) -> Array:
    """The steps without the first ones that are so bad that nothing else could be told apart."""
    while len(steps) > _KEPT:
        rises = np.diff(steps)
        at = int(rises.argmax())
        if rises[at] <= _STEP * (steps[-1] - steps[0]) or len(steps) - 1 - at < _KEPT:
            break
        steps = steps[at + 1 :]
    return steps
