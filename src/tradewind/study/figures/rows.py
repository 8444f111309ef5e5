"""The table of all trials: columns for a page, with their formats and full values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from tradewind.space.parameters import Float, Int
from tradewind.study.figures.facts import Cost, Facts
from tradewind.study.figures.failures import message_of
from tradewind.study.forecast import wall_seconds
from tradewind.study.running import worker_name
from tradewind.study.words import unit_of_cost
from tradewind.types import Trial

Column: TypeAlias = tuple[str, str, str, Callable[[Trial], Any]]  # key, title, format, entry


def table(facts: Facts) -> dict[str, Any]:
    """The columns, and a row for each trial. Columns in which nothing stands are left out."""
    found = [*_results(facts), *_circumstances(facts)]
    kept: list[tuple[Column, list[Any], bool]] = []
    for column in found:
        entries = [_entry(column[3](t)) for t in facts.trials]
        if column[0] in _ALWAYS or any(entry is not None for entry in entries):
            kept.append((column, entries, False))
    place = next((i for i, it in enumerate(kept) if it[0][0] == "duration"), len(kept))
    parameters = [(column, [column[3](t) for t in facts.trials], True) for column in _params(facts)]
    kept[place:place] = parameters
    columns = [
        {"key": key, "title": title, "format": format_, "parameter": is_parameter}
        for (key, title, format_, _), _, is_parameter in kept
    ]
    rows = [list(row) for row in zip(*(entries for _, entries, _ in kept), strict=True)]
    return {"columns": columns, "rows": rows}


_ALWAYS = ("number", "state", "value")


def _results(facts: Facts) -> list[Column]:
    scores = _scores(facts)
    believed = dict(zip(facts.numbers, facts.value.tolist(), strict=True)) if facts.is_noisy else {}
    cost = facts.cost
    columns: list[Column] = [
        ("number", "trial", "number", lambda t: t.number),
        ("state", "state", "state", lambda t: t.state.value),
        ("value", facts.scale.name, "number", lambda t: t.value),
        ("believed", f"believed {facts.scale.name}", "number", lambda t: believed.get(t.number)),
        ("cost", cost.title, cost.format, lambda t: t.cost_of(cost.name) if t.finished else t.cost),
        ("score", "score", "number", lambda t: scores.get(t.number)),
    ]
    names = dict.fromkeys(name for t in facts.trials for name in t.costs if name != cost.name)
    for name in names:
        other = Cost.of(name, unit_of_cost(facts.trials[0], name))
        columns.append((f"cost_{name}", other.title, other.format, _item("costs", name)))
    if facts.space.size_name is None and any(t.train_size < 1.0 for t in facts.trials):
        columns.append(("train_size", "training size", "percent", lambda t: t.train_size))
    return columns


def _scores(facts: Facts) -> dict[int, float]:
    """What the goal maximizes, if that is something else than the value."""
    if facts.known is None or not (facts.goal.has_score and facts.goal.needs_cost):
        return {}
    seen = facts.known.history
    score = facts.goal.utility(seen.quality, seen.cost, seen.noise)
    return dict(zip(facts.numbers, np.asarray(score).tolist(), strict=True))


def _circumstances(facts: Facts) -> list[Column]:
    names = dict.fromkeys(name for t in facts.trials for name in t.attributes)
    attributes: list[Column] = [
        (f"attr_{name}", name, "text", _item("attributes", name)) for name in names
    ]
    return [
        ("duration", "duration", "seconds", wall_seconds),
        ("started", "started", "clock", lambda t: t.started),
        ("worker", "worker", "text", lambda t: worker_name(t) or None),
        ("origin", "origin", "text", lambda t: t.origin.value),
        ("folds", "folds", "number", lambda t: len(t.folds) or None),
        *attributes,
        ("error", "error", "text", lambda t: None if t.error is None else message_of(t.error)),
    ]


def _params(facts: Facts) -> list[Column]:
    return [
        (f"params_{name}", name, _format(facts, name), _item("params", name))
        for name in facts.space
    ]


def _item(field: str, name: str) -> Callable[[Trial], Any]:
    """One entry of a mapping that trials have."""
    return lambda trial: getattr(trial, field).get(name)


def _format(facts: Facts, name: str) -> str:
    if name == facts.space.size_name:
        return "percent"
    p = facts.space[name]
    if isinstance(p, (Float, Int)):
        return "number"
    choices = p.choices  # type: ignore[attr-defined]
    numbers = all(isinstance(it, (int, float)) and not isinstance(it, bool) for it in choices)
    return "number" if numbers else "text"


def _entry(value: Any) -> Any:
    """What can stand in a cell: a number, a text, or nothing."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, (list, dict)):
        return f"{len(value)} entries"
    return value
