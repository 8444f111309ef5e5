"""What a page shows of one study, and how it follows the log between two computations of it all.

A picture is what `page_data` returns, with `live` beside it: what only a live page shows. Pictures
are never changed: whoever holds one may send it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Protocol, TypeAlias

from tradewind.dashboard.stream import encode
from tradewind.errors import TradewindError
from tradewind.plain import plain
from tradewind.space.conditions import AtLeast
from tradewind.study.figures.facts import Facts
from tradewind.study.figures.failures import message_of
from tradewind.study.figures.frontier import frontier
from tradewind.study.figures.page_data import answer, page_data
from tradewind.study.following import Follower
from tradewind.study.forecast import wall_seconds
from tradewind.study.running import CLOCKS, worker_name
from tradewind.study.study import Study
from tradewind.types import Trial

Picture: TypeAlias = dict[str, Any]


class Paint(Protocol):
    """Computes everything that a page shows of a study; without `models`, what needs none."""

    def __call__(self, study: Study, *, models: bool) -> Picture: ...


def painter(where: str) -> Paint:
    """Computes pictures of studies; `where` names their store, without a password."""

    def paint(study: Study, *, models: bool) -> Picture:
        picture = page_data(study, storage=where, models=models)
        for parameter in picture["parameters"]:
            parameter["active"] = conditions(study, parameter["name"])
        return _as_json(picture)

    return paint


def _as_json(data: Picture) -> Picture:
    """The same data as a page receives it, with lists instead of tuples."""
    same: Picture = json.loads(encode(data))
    return same


def conditions(study: Study, name: str) -> list[dict[str, Any]]:
    """When a parameter is active, for a form: all of these must hold."""
    found: list[dict[str, Any]] = []
    for parent, condition in study.space[name].when.items():
        if isinstance(condition, AtLeast):
            found.append({"parent": parent, "low": condition.low})
        else:
            found.append({"parent": parent, "values": list(condition.values)})
    return found


def with_status(
    picture: Picture,
    follower: Follower,
    away: str | None = None,
    *,
    painting: bool = False,
    lost: Sequence[int] = (),
) -> Picture:
    """The picture with counts, running trials and the like as they are now. `away` says why the
    store cannot be read, and `painting` that the figures that need models are still missing.
    `lost` are trials that no driver holds any more."""
    state = follower.state
    study = {
        **picture["study"],
        "counts": follower.counts(),
        "queued": len(state.queue),
        "paused": None
        if state.paused is None
        else {"reason": state.paused.reason, "at": state.paused.at},
        "stopped": state.stopped,
    }
    running = [plain(asdict(trial)) for trial in follower.running()]
    live = {
        "away": away,
        "waiting": follower.waiting(),
        "lost": [trial["trial"] for trial in running if trial["trial"] in lost],
        "painting": painting,
    }
    return {**picture, "study": study, "running": running, "live": live}


def with_choice(picture: Picture, study: Study) -> Picture:
    """The picture with the best trial, the choices, the frontier and the goal as they are now."""
    facts = Facts.of(study)
    found = {
        "study": {**picture["study"], "goal": facts.goal_in_words},
        "charts": {**picture["charts"], "frontier": _as_json(frontier(facts).to_dict())},
        **answer(facts),
        "frontier": [facts.numbers[i] for i in facts.efficient],
    }
    return {**picture, **found}


def with_choice_of(picture: Picture, newer: Picture) -> Picture:
    """The picture with what `with_choice` computed for a newer one."""
    kept = {key: newer[key] for key in ("best", "unanswered", "choices", "frontier")}
    study = {**picture["study"], "goal": newer["study"]["goal"]}
    charts = {**picture["charts"], "frontier": newer["charts"]["frontier"]}
    return {**picture, **kept, "study": study, "charts": charts}


def with_rows(picture: Picture, trials: Sequence[Trial]) -> Picture:
    """The picture with the rows of these trials as they are now. What only a painting can tell,
    such as a score, stays until the next one."""
    if not trials:
        return picture
    table, cost = picture["trials"], picture["study"]["cost"]["name"]
    rows = {row[0]: row for row in table["rows"]}
    for trial in trials:
        before = rows.get(trial.number)
        rows[trial.number] = [
            _cell(trial, column, cost, None if before is None else before[place])
            for place, column in enumerate(table["columns"])
        ]
    ordered = [rows[number] for number in sorted(rows)]
    return {**picture, "trials": {**table, "rows": ordered}}


def _cell(trial: Trial, column: Mapping[str, Any], cost: str, before: Any) -> Any:
    """What the log says of a trial in this column; `before` where it does not say it."""
    key = column["key"]
    if column["parameter"]:
        return trial.params.get(column["title"])
    if key == "cost":
        return trial.cost_of(cost) if trial.finished else trial.cost
    return plain(_COLUMNS[key](trial)) if key in _COLUMNS else before


def _duration(trial: Trial) -> float | None:
    seconds = wall_seconds(trial)
    return seconds if math.isfinite(seconds) else None


_COLUMNS: dict[str, Callable[[Trial], Any]] = {
    "number": lambda trial: trial.number,
    "state": lambda trial: trial.state.value,
    "value": lambda trial: trial.value,
    "train_size": lambda trial: trial.train_size,
    "duration": _duration,
    "started": lambda trial: trial.started,
    "worker": lambda trial: worker_name(trial) or None,
    "origin": lambda trial: trial.origin.value,
    "folds": lambda trial: len(trial.folds) or None,
    "error": lambda trial: None if trial.error is None else message_of(trial.error),
}


def predicted_costs(study: Study, trials: Sequence[Trial]) -> dict[int, float | None]:
    """The predicted costs of these trials by number; nothing if there is too little to learn
    from."""
    if not trials or study.cost_name not in CLOCKS:
        return {}
    try:
        predicted = study.predict(list(trials))
    except TradewindError:  # too few trials have finished
        return {}
    return {trial.number: each.cost for trial, each in zip(trials, predicted, strict=True)}
