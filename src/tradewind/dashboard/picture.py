"""What a page shows of one study, and how it follows the log between two computations of it all.

A picture is what `page_data` returns, with `live` beside it: what only a live page shows. Pictures
are never changed: whoever holds one may send it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeAlias

from tradewind.errors import TradewindError
from tradewind.plain import plain
from tradewind.study.following import Follower
from tradewind.study.running import CLOCKS, worker_name
from tradewind.study.study import Study
from tradewind.types import Trial

Picture: TypeAlias = dict[str, Any]


def painter(where: str) -> Callable[[Study], Picture]:
    """Computes the whole picture of a study; `where` names its store, without a password."""

    def paint(study: Study) -> Picture:
        from tradewind.study.figures.page_data import page_data

        picture = page_data(study)
        return {**picture, "study": {**picture["study"], "storage": where}}

    return paint


def with_status(picture: Picture, follower: Follower, away: str | None = None) -> Picture:
    """The picture with counts, running trials and the like as they are now. `away` says why the
    store cannot be read."""
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
    live = {"away": away, "waiting": follower.waiting()}
    return {**picture, "study": study, "running": running, "live": live}


def with_rows(picture: Picture, trials: Sequence[Trial]) -> Picture:
    """The picture with the rows of these trials as they are now. What only a painting can tell,
    such as a score, stays until the next one."""
    if not trials:
        return picture
    table = picture["trials"]
    rows = {row[0]: row for row in table["rows"]}
    for trial in trials:
        before = rows.get(trial.number)
        rows[trial.number] = [
            _cell(trial, column, None if before is None else before[place])
            for place, column in enumerate(table["columns"])
        ]
    ordered = [rows[number] for number in sorted(rows)]
    return {**picture, "trials": {**table, "rows": ordered}}


def _cell(trial: Trial, column: Mapping[str, Any], before: Any) -> Any:
    """What the log says of a trial in this column; `before` where it does not say it."""
    if column["parameter"]:
        return trial.params.get(column["title"])
    read = _COLUMNS.get(column["key"])
    return before if read is None else plain(read(trial))


_COLUMNS: dict[str, Callable[[Trial], Any]] = {
    "trial": lambda trial: trial.number,
    "number": lambda trial: trial.number,
    "state": lambda trial: trial.state.value,
    "value": lambda trial: trial.value,
    "train_size": lambda trial: trial.train_size,
    "cost": lambda trial: trial.cost,
    "started": lambda trial: trial.started,
    "ended": lambda trial: trial.ended,
    "worker": worker_name,
    "origin": lambda trial: trial.origin.value,
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
