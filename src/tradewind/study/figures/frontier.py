"""Quality against cost: the efficient trials, the others, and the choice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tradewind.charts.chart import Axis, Chart, Layer, Line, Panel, Points
from tradewind.goals import BestUnder
from tradewind.study.figures.draw import (
    cost_axis,
    counted,
    figures,
    noise_note,
    notes,
    nothing,
    partial_note,
    scale_for,
    thinned,
    thinning_note,
    value_axis,
)
from tradewind.study.figures.facts import NO_COSTS, NOTHING_FINISHED, Facts
from tradewind.study.figures.focus import beyond, limits
from tradewind.study.words import exact, percent
from tradewind.types import Indices

NAME, TITLE = "frontier", "Quality against cost"


def frontier(facts: Facts) -> Chart:
    """Every finished trial with a cost; the efficient ones on a line, and the choice marked."""
    if not facts.finished:
        return nothing(NAME, TITLE, NOTHING_FINISHED)
    cost = facts.paid
    if scale_for(cost) == "log":
        cost = np.where(cost > 0.0, cost, np.nan)
    known = np.flatnonzero(np.isfinite(cost))
    if not len(known):
        return nothing(NAME, TITLE, f"{NO_COSTS} Without costs there is no frontier.")
    marked = {*facts.efficient, *([] if facts.choice is None else [facts.choice])}
    rest = np.setdiff1d(known, facts.efficient)
    others = thinned(rest, list(marked))
    layers: list[Layer] = [
        _points(facts, others, "other trials", "muted"),
        _staircase(facts, float(cost[known].max())),
        _points(facts, np.array(facts.efficient, dtype=int), "efficient", "frontier"),
    ]
    if facts.choice is not None and np.isfinite(cost[facts.choice]):
        layers.append(_points(facts, np.array([facts.choice]), "best under the goal", "chosen"))
    values = facts.value[known]
    shown = limits(facts, values, facts.value[facts.efficient], most=1 / 3)
    panel = Panel(_costs(facts), value_axis(facts, limits=shown), tuple(layers))
    missing = len(facts.finished) - len(known)
    note = notes(
        "Efficient: no other trial is both better and cheaper.",
        _margin_note(facts),
        noise_note(facts),
        partial_note(facts),
        beyond(facts, values, shown),
        thinning_note(len(others), len(rest)),
        f"{counted(missing, 'trial')} without a cost cannot be shown." * (missing > 0),
    )
    title = TITLE
    if facts.scale.metric is not None:
        title = f"{facts.scale.name[0].upper()}{facts.scale.name[1:]} against {facts.cost.title}"
    return Chart(NAME, title, _summary(facts), (panel,), note)


def _costs(facts: Facts) -> Axis:
    """The axis of costs, with the limit of the goal."""
    axis, goal = cost_axis(facts), facts.goal
    if not isinstance(goal, BestUnder):
        return axis
    return replace(axis, bound=(goal.cost, f"limit: {exact(goal.cost, facts.cost.unit)}"))


def _margin_note(facts: Facts) -> str:
    """Why a trial just within the limit was not chosen."""
    goal = facts.goal
    if not isinstance(goal, BestUnder) or goal.margin_factor == 1.0:
        return ""
    most = facts.cost.say(goal.cost / goal.margin_factor)
    sure = percent(goal.confidence)
    need = f"a model must usually cost at most {most}. One low cost by luck does not count."
    return f"To keep the limit with a probability of {sure}, {need}"


def _points(facts: Facts, rows: Indices, name: str, role: str) -> Points:
    return Points(
        figures(facts.paid[rows]),
        figures(facts.value[rows]),
        name,
        role,  # type: ignore[arg-type]
        [facts.numbers[i] for i in rows],
        facts.texts(rows),
    )


def _staircase(facts: Facts, end: float) -> Line:
    """The best value for at most a given cost."""
    rows = facts.efficient
    x, y = facts.paid[rows], facts.value[rows]
    if len(rows) and x[-1] < end:
        x, y = np.append(x, end), np.append(y, y[-1])
    return Line(figures(x), figures(y), "frontier", "frontier", steps=True)


def _summary(facts: Facts) -> str:
    front = facts.efficient
    n = counted(len(facts.finished), "finished trial")
    if not front:
        said = f"None of {n} can be compared by cost."
    elif len(front) == 1:
        said = f"One of {n} is both the cheapest and the best: {facts.say(front[0])}."
    else:
        said = (
            f"{len(front)} of {n} are efficient, from {facts.say(front[0])} "
            f"to {facts.say(front[-1])}."
        )
    if facts.choice is None:
        return f"{facts.unanswered} {said}"
    return f"{said} The goal chooses {facts.say(facts.choice)}."
