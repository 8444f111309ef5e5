"""Value and cost by training size: how much data is enough?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tradewind.charts.chart import Axis, Chart, Layer, Line, Panel, Points, Role
from tradewind.engine.propose import single_threaded
from tradewind.plain import write_json
from tradewind.study.figures.draw import (
    cost_axis,
    figures,
    noise_note,
    notes,
    nothing,
    thinned,
    thinning_note,
    value_axis,
)
from tradewind.study.figures.facts import NOTHING_FINISHED, Facts
from tradewind.study.figures.focus import beyond, limits
from tradewind.study.words import share
from tradewind.types import Array, Indices

NAME, TITLE = "learning_curves", "How much data is enough"
_MOST = 100  # configurations that are drawn as lines


def learning_curves(facts: Facts) -> Chart:
    """Every finished trial by its training size; configurations that ran at several sizes are
    joined by lines."""
    if not facts.finished:
        return nothing(NAME, TITLE, NOTHING_FINISHED)
    sizes = np.array([t.train_size for t in facts.finished])
    if len(np.unique(sizes)) < 2:
        why = f"All trials were trained on {share(float(sizes[0]))}, so nothing can be compared."
        return nothing(NAME, TITLE, why)
    shown = thinned(np.arange(len(sizes)))
    curves = _curves(facts, sizes)
    axis = Axis("training size", format="percent")
    model = _model(facts)
    visible = limits(facts, facts.value, _best_values(facts, sizes))
    layers = _layers(facts, sizes, facts.value, shown, curves, model)
    panels = [Panel(axis, value_axis(facts, limits=visible), layers)]
    if np.isfinite(facts.paid).any():
        cost = _layers(facts, sizes, facts.paid, shown, curves, model, of_cost=True)
        panels.append(Panel(axis, cost_axis(facts), cost))
    note = notes(
        noise_note(facts),
        beyond(facts, facts.value, visible),
        thinning_note(len(shown), len(sizes)),
        "The dashed line is what a model expects of the best configuration at every size."
        if model is not None
        else "",
    )
    return Chart(NAME, TITLE, _summary(facts, sizes, len(curves)), tuple(panels), note)


def _curves(facts: Facts, sizes: Array) -> list[list[int]]:
    """The trials of each configuration that ran at several sizes, by size; the best last."""
    groups: dict[str, dict[float, int]] = {}
    for i, trial in enumerate(facts.finished):
        key = write_json(sorted(trial.settings.items()))
        groups.setdefault(key, {})[float(sizes[i])] = i
    curves = [[i for _, i in sorted(group.items())] for group in groups.values() if len(group) > 1]
    quality = facts.history.quality
    return sorted(curves, key=lambda rows: float(quality[rows].max()))[-_MOST:]


def _best_values(facts: Facts, sizes: Array) -> Array:
    """The best value of each training size."""
    best = np.max if facts.maximize else np.min
    return np.array([best(facts.value[sizes == size]) for size in np.unique(sizes)])


def _layers(
    facts: Facts,
    sizes: Array,
    y: Array,
    shown: Indices,
    curves: Sequence[Sequence[int]],
    model: tuple[Array, Array, Array | None] | None,
    *,
    of_cost: bool = False,
) -> tuple[Layer, ...]:
    known = shown[np.isfinite(y[shown])]
    layers: list[Layer] = (
        [_joined(sizes, y, curves, "one configuration", "second")] if curves else []
    )
    layers.append(_points(facts, sizes, y, known, "each trial", "muted"))
    if model is not None:
        x, value, cost = model
        seen = cost if of_cost else value
        if seen is not None:
            layers.append(Line(figures(x), figures(seen), "expected", "chosen", dashed=True))
    if facts.choice is not None and np.isfinite(y[facts.choice]):
        best = np.array([facts.choice])
        layers.append(_points(facts, sizes, y, best, "best under the goal", "chosen"))
    return tuple(layers)


def _points(facts: Facts, sizes: Array, y: Array, rows: Indices, name: str, role: Role) -> Points:
    numbers = [facts.numbers[i] for i in rows]
    return Points(figures(sizes[rows]), figures(y[rows]), name, role, numbers, facts.texts(rows))


def _joined(sizes: Array, y: Array, curves: Sequence[Sequence[int]], name: str, role: Role) -> Line:
    """All curves as one line with gaps."""
    xs: list[float | None] = []
    ys: list[float | None] = []
    for rows in curves:
        kept = [i for i in rows if np.isfinite(y[i])]
        xs += [*figures(sizes[kept]), None]
        ys += [*figures(y[kept]), None]
    return Line(xs, ys, name, role)


def _model(facts: Facts) -> tuple[Array, Array, Array | None] | None:
    """Training sizes, and the value and cost that a model expects of the chosen configuration at
    each; None if no parameter is the size, or there is no model."""
    name = facts.space.size_name
    if name is None or facts.choice is None or facts.effects is None:
        return None
    fractions = facts.space.columns.fractions
    params = facts.finished[facts.choice].params
    X = facts.space.encode([{**params, name: size} for size in fractions])
    belief = facts.effects.belief
    value = single_threaded(belief.quality, X).mean
    log_cost = single_threaded(belief.log_cost, X)
    cost = None if log_cost is None else np.exp(np.minimum(log_cost.mean, 700.0))
    return np.array(fractions), facts.history.sign * value, cost


def _summary(facts: Facts, sizes: Array, curves: int) -> str:
    quality = facts.history.quality
    said = []
    for size in np.unique(sizes)[[0, -1]]:
        rows = np.flatnonzero(sizes == size)
        best = int(rows[np.argmax(quality[rows])])
        said.append(f"{facts.say_value(float(facts.measured[best]))} on {share(float(size))}")
    joined = f" {curves} configurations ran at several sizes." if curves > 1 else ""
    return f"The best value is {said[0]} and {said[1]}.{joined}"
