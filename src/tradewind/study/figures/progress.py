"""How the search went: each trial's result, and the best under the goal so far."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from tradewind.charts.chart import Axis, Chart, Layer, Line, Panel, Points
from tradewind.goals import best_of
from tradewind.goals.picking import bests_so_far
from tradewind.optimizer.history import spread_evenly
from tradewind.optimizer.strategies.strategy import may_win
from tradewind.study.figures.draw import (
    cost_axis,
    counted,
    figures,
    noise_note,
    notes,
    nothing,
    partial_note,
    thinned,
    thinning_note,
    value_axis,
)
from tradewind.study.figures.facts import NO_COSTS, NOTHING_FINISHED, Facts
from tradewind.study.figures.focus import beyond, limits
from tradewind.study.figures.times import WorkingTime
from tradewind.study.words import spoken
from tradewind.types import Array, Indices, Mask, State

Over: TypeAlias = Literal["trials", "time", "cost"]

_TITLES = {
    "trials": "Progress by trial",
    "time": "Progress over time",
    "cost": "Progress by cost spent",
}
_LOOKS = 200  # at the choice so far, if every look has to compare all trials again


def progress(facts: Facts, over: Over = "trials") -> Chart:
    """Value and cost of every finished trial, and of the best one so far under the goal."""
    name, title = f"progress_{over}", _TITLES[over]
    if not facts.finished:
        return nothing(name, title, NOTHING_FINISHED)
    x, axis, why = _coordinates(facts, over)
    if axis is None:
        return nothing(name, title, why)
    order = np.argsort(x, kind="stable")  # those without a coordinate come last
    order = order[: np.isfinite(x).sum()]
    at, best = _best_so_far(facts, order)
    if len(best) and facts.choice is not None:
        best[-1] = facts.choice  # of several runs of one configuration, the typical one
    shown = thinned(order, [int(i) for i in best])
    values = facts.value[order]
    visible = limits(facts, values, facts.value[best])
    layers = _layers(facts, x, facts.value, shown, at, best, order)
    panels = [Panel(axis, value_axis(facts, limits=visible), layers)]
    if facts.goal.needs_cost and np.isfinite(facts.paid).any():
        layers = _layers(facts, x, facts.paid, shown, at, best, order)
        panels.append(Panel(axis, cost_axis(facts), layers))
    note = notes(
        why,
        noise_note(facts),
        partial_note(facts),
        beyond(facts, values, visible),
        thinning_note(len(shown), len(order)),
    )
    return Chart(name, title, _summary(facts, over, x, best), tuple(panels), note)


def _coordinates(facts: Facts, over: Over) -> tuple[Array, Axis | None, str]:
    """Where each finished trial stands (n,), the axis, and a note; without an axis, why there is
    none."""
    if over == "trials":
        return np.array(facts.numbers, dtype=float), Axis("trial", format="count"), ""
    if over == "time":
        times = WorkingTime.of(facts)
        if times is None:
            return np.empty(0), None, "No finished trial has recorded when it ended."
        ended = [np.nan if t.ended is None else t.ended for t in facts.finished]
        return times.at(np.array(ended)), times.axis, times.note
    if facts.cost.unit == "bytes":
        return np.empty(0), None, "The cost of this study is peak memory, which cannot be added up."
    spent = _spent(facts)
    if not np.isfinite(spent).any():
        return np.empty(0), None, NO_COSTS
    seen = spent[np.isfinite(spent)]
    return (
        spent,
        Axis(f"{facts.cost.title} spent so far", "linear", facts.cost.format),
        ("" if seen[-1] > 0 else "All costs are zero."),
    )


def _spent(facts: Facts) -> Array:
    """What all trials had cost (n,) when each finished one ended, with all their folds."""
    ended = [t for t in facts.trials if t.state in (State.FINISHED, State.FAILED, State.ABANDONED)]
    ended.sort(key=lambda t: (t.ended is None, t.ended or 0.0, t.number))
    by_name = facts.cost.name
    total, reached, any_known = 0.0, {}, False
    for trial in ended:
        cost = trial.cost_of(by_name) if trial.finished else trial.cost
        if cost is not None:
            total += cost * (trial.trainings if trial.finished else 1)
            any_known = True
        reached[trial.number] = total if any_known else np.nan
    return np.array([reached[n] for n in facts.numbers])


def _best_so_far(facts: Facts, order: Indices) -> tuple[Indices, Indices]:
    """The places in `order` at which the best trial under the goal changes, and that trial's index
    from there on."""
    if facts.known is None:
        return np.empty(0, dtype=int), np.empty(0, dtype=int)
    allowed = may_win(facts.strategy, facts.known.believed)
    if facts.goal.has_score:
        places, best = _running_best(facts, order, allowed)
    else:
        places, best = _looks(facts, order, allowed)
    changes = np.flatnonzero(np.append(True, best[1:] != best[:-1])[: len(best)])
    return places[changes], best[changes]


def _running_best(facts: Facts, order: Indices, allowed: Mask) -> tuple[Indices, Indices]:
    """For goals that give every trial a score of its own."""
    assert facts.known is not None
    seen = facts.known.believed
    score = facts.goal.utility(seen.quality, seen.cost, seen.noise)
    counts = allowed & facts.goal.qualifies(seen.quality, seen.cost, seen.noise)
    known = np.flatnonzero((counts & ~np.isnan(score))[order])
    places = known[bests_so_far(score, seen.cost, order[known])]
    return places, order[places]


def _looks(facts: Facts, order: Indices, allowed: Mask) -> tuple[Indices, Indices]:
    """For goals that compare trials with each other: a look after some of the trials."""
    assert facts.known is not None
    places, best = [], []
    for place in spread_evenly(np.arange(len(order)), _LOOKS).tolist():
        rows = np.sort(order[: place + 1])
        rows = rows[allowed[rows]]
        seen = facts.known.believed.take(rows)
        if not len(rows) or not facts.goal.qualifies(seen.quality, seen.cost, seen.noise).any():
            continue
        utility = facts.goal.utility(seen.quality, seen.cost, seen.noise)
        if not np.isnan(utility).all():
            places.append(place)
            best.append(int(rows[best_of(utility, seen.cost)]))
    return np.array(places, dtype=int), np.array(best, dtype=int)


def _layers(
    facts: Facts, x: Array, y: Array, shown: Indices, at: Indices, best: Indices, order: Indices
) -> tuple[Layer, ...]:
    known = shown[np.isfinite(y[shown])]
    points = Points(
        figures(x[known]),
        figures(y[known]),
        "each trial",
        "muted",
        [facts.numbers[i] for i in known],
        facts.texts(known),
    )
    if not len(best):
        return (points,)
    steps_x, steps_y = x[order[at]], y[best]
    steps_x, steps_y = np.append(steps_x, x[order[-1]]), np.append(steps_y, steps_y[-1])
    drawn = np.isfinite(steps_y)
    line = Line(
        figures(steps_x[drawn]), figures(steps_y[drawn]), "best so far", "chosen", steps=True
    )
    return (points, line)


def _summary(facts: Facts, over: Over, x: Array, best: Indices) -> str:
    n, failed = len(facts.finished), facts.count(State.FAILED)
    said = f"{counted(n, 'trial')} finished" + f" and {failed:,} failed" * (failed > 0)
    if not len(best):
        return f"{said}; none of them meets the goal so far."
    final = int(best[-1])
    if over == "time":
        said += f" in {spoken(float(np.nanmax(x)))}"
    elif over == "cost":
        said += f" at a cost of {facts.cost.say(float(np.nanmax(x)))} in all"
    return f"{said}. The best under the goal is {facts.say(final)}."
