"""What all figures share: axes, numbers for drawing, and keeping a chart small."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tradewind.charts.chart import Axis, Chart, Line, Role, Scale
from tradewind.optimizer.history import spread_evenly
from tradewind.optimizer.strategies.strategy import may_win
from tradewind.study.figures.facts import Facts
from tradewind.types import Array, Indices

MOST = 2000  # points or strands of one layer; more of them would only cover each other
_DECADE = 10.0

TOO_FEW = "A model needs at least 5 finished trials of the same training size to say this."


def nothing(name: str, title: str, why: str) -> Chart:
    """A chart with nothing to show."""
    return Chart(name, title, why, empty=why)


def figures(values: Array) -> list[float]:
    """Numbers for drawing: six significant digits, or more if the values are close together."""
    known = np.abs(values[np.isfinite(values)])
    largest = float(known.max(initial=0.0))
    width = float(np.ptp(values[np.isfinite(values)])) if len(known) else 0.0
    more = 0
    if 0.0 < width < largest:
        more = min(math.floor(math.log10(largest / width)), 10)
    return [float(f"{value:.{6 + more}g}") for value in values.tolist()]


def thinned(rows: Indices, keep: Sequence[int] = ()) -> Indices:
    """At most `MOST` of these rows, spread evenly, besides those to `keep`."""
    if len(rows) <= MOST:
        return rows
    return np.union1d(
        spread_evenly(rows, MOST), np.intersect1d(rows, np.array(keep, dtype=np.intp))
    )


def thinning_note(shown: int, of: int) -> str:
    """What a reader must know about the points that were left out; nothing if none was."""
    return f"{shown:,} of {of:,} trials are drawn." if shown < of else ""


def noise_note(facts: Facts) -> str:
    """What a reader must know about values that differ from the measured ones."""
    said = "Results are noisy: the figure shows what a model believes of each trial, which decides."
    return said * facts.is_noisy


def partial_note(facts: Facts) -> str:
    """Why trials that look better than the choice were not chosen; nothing if all may be."""
    if facts.known is None:
        return ""
    allowed = may_win(facts.strategy, facts.known.believed)
    out = sum(
        not may and (trial.train_size < 1.0 or trial.raced)
        for may, trial in zip(allowed, facts.finished, strict=True)
    )
    part = "only part of the data or of the folds"
    return f"{counted(out, 'trial')} saw {part} and cannot be chosen." * (out > 0)


def notes(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def value_axis(facts: Facts, *, limits: tuple[float, float] | None = None) -> Axis:
    better = "higher" if facts.maximize else "lower"
    return Axis(f"{facts.scale.name} ({better} is better)", limits=limits)


def cost_axis(facts: Facts, title: str = "", *, seen: Array | None = None) -> Axis:
    """An axis for costs, on a log scale if those seen span more than a decade."""
    costs = facts.paid if seen is None else seen
    return Axis(title or facts.cost.title, scale_for(costs), facts.cost.format)


def scale_for(amounts: Array) -> Scale:
    """A log scale for positive amounts that span more than a decade."""
    known = amounts[np.isfinite(amounts)]
    positive = len(known) > 0 and bool((known > 0.0).all())
    return "log" if positive and known.max() / _DECADE > known.min() else "linear"


def whiskers(at: Sequence[float], low: Array, high: Array, name: str, role: Role) -> Line:
    """A vertical interval at each coordinate."""
    x: list[float | None] = []
    y: list[float | None] = []
    for place, a, b in zip(at, figures(low), figures(high), strict=True):
        x += [place, place, None]
        y += [a, b, None]
    return Line(x, y, name, role)


def counted(n: int, thing: str) -> str:
    """`1 trial`, `12 trials`."""
    return f"{n:,} {thing}{'s' * (n != 1)}"
