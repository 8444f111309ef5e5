"""Parallel coordinates: every finished trial as a strand across its parameters, cost and value."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tradewind.charts.chart import Axis, Chart, Format, Panel, Strands
from tradewind.goals import best_first
from tradewind.study.figures.draw import (
    counted,
    notes,
    nothing,
    scale_for,
    thinned,
    thinning_note,
)
from tradewind.study.figures.facts import NOTHING_FINISHED, Facts
from tradewind.study.figures.values import Mark, round_ticks, spaced, ticks
from tradewind.types import Array, Indices

NAME, TITLE = "parallel", "All parameters at once"
_MOST = 16  # parameters: more do not fit beside each other


def parallel(facts: Facts) -> Chart:
    """One strand per finished trial, darker the better it is under the goal."""
    if not facts.finished:
        return nothing(NAME, TITLE, NOTHING_FINISHED)
    names = _names(facts)
    columns = [facts.history.X[:, facts.space.names.index(name)] for name in names]
    axes, labels = list(names), [ticks(facts.space[name]) for name in names]
    plain: Format = "number"
    for title, amounts, form, say in (
        (facts.cost.title, facts.history.cost, facts.cost.format, facts.cost.say),
        (facts.scale.name, facts.measured, plain, facts.say_value),
    ):
        if np.isfinite(amounts).any():
            column, marks = _scaled(amounts, form, say)
            columns.append(column)
            axes.append(title)
            labels.append(marks)
    best = best_first(_worth(facts), facts.paid)
    rank = np.empty(len(best))
    rank[best] = np.linspace(1.0, 0.0, len(best)) if len(best) > 1 else 1.0
    rows = thinned(np.arange(len(best)), best[:200].tolist())
    rows = rows[np.argsort(rank[rows], kind="stable")]  # the best ones last, on top
    strands = Strands(
        axes,
        labels,
        _cells(np.column_stack(columns)[rows]),
        [round(float(r), 3) for r in rank[rows]],
        [facts.numbers[i] for i in rows],
        facts.texts(rows),
    )
    more = len(facts.space) - len(names)
    note = notes(
        thinning_note(len(rows), len(best)),
        f"The {len(names)} most important of {len(facts.space)} parameters." * (more > 0),
    )
    blank = Axis("")
    return Chart(NAME, TITLE, _summary(facts, best[:10]), (Panel(blank, blank, (strands,)),), note)


def _names(facts: Facts) -> list[str]:
    if len(facts.space) <= _MOST:
        return list(facts.space.names)
    ranked = [it.name for it in facts.importances] or list(facts.space.names)
    kept = set(ranked[:_MOST])
    return [name for name in facts.space.names if name in kept]


def _worth(facts: Facts) -> Array:
    """How good the finished trials are under the goal (n,); NaN where that is unknown."""
    if facts.known is None:
        return facts.history.quality
    seen = facts.known.believed
    return facts.goal.utility(seen.quality, seen.cost, seen.noise)


def _scaled(amounts: Array, form: Format, say: Callable[[float], str]) -> tuple[Array, list[Mark]]:
    """Amounts in [0, 1], on a log scale if they span more than a decade, with ticks."""
    scale = scale_for(amounts)
    least, most = float(np.nanmin(amounts)), float(np.nanmax(amounts))
    between = round_ticks(Axis("", scale, form), least, most)
    values = np.array([*amounts, *(tick.value for tick in between)])
    seen = np.log(values) if scale == "log" else values / 2.0  # half: the width may overflow
    low, high = float(np.nanmin(seen)), float(np.nanmax(seen))
    if not low < high:
        return np.where(np.isfinite(amounts), 0.5, np.nan), [(0.5, say(most))]
    places = (seen - low) / (high - low)
    n = len(amounts)
    inner = [(float(u), it.text) for u, it in zip(places[n:], between, strict=True)]
    return places[:n], spaced((0.0, say(least)), inner, (1.0, say(most)))


def _cells(rows: Array) -> list[list[float | None]]:
    return [
        [None if cell != cell else round(cell, 4) for cell in row]  # NaN: inactive
        for row in rows.tolist()
    ]


def _summary(facts: Facts, best: Indices) -> str:
    n = counted(len(facts.finished), "finished trial")
    said = f"{n} across {counted(len(facts.space), 'parameter')}."
    if len(facts.finished) < 20:
        return said
    narrow = _narrow(facts, best)
    return f"{said} The ten best agree most on {narrow}." if narrow else said


def _narrow(facts: Facts, best: Indices) -> str:
    """The parameter whose coordinates vary least among the best, compared with all trials."""
    X = facts.history.X
    with np.errstate(invalid="ignore"):
        active = ~np.isnan(X[best]).any(axis=0)
        spread = np.where(active, X[best].std(axis=0), np.nan)
        usual = np.array([np.std(c[~np.isnan(c)]) if (~np.isnan(c)).any() else 0.0 for c in X.T])
        ratio = np.where(usual > 0.0, spread / np.maximum(usual, 1e-300), np.nan)
    if np.isnan(ratio).all() or float(np.nanmin(ratio)) > 0.5:
        return ""
    return facts.space.names[int(np.nanargmin(ratio))]
