"""Studies as files and tables: JSON lines hold everything; CSV and data frames are tables of the
trials."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tradewind.errors import ConfigError, FormatError, SpaceError
from tradewind.goals import Goal
from tradewind.log.events import Created, Event
from tradewind.log.files import read_lines, write_lines, write_text
from tradewind.log.log import Log
from tradewind.log.state import StudyState
from tradewind.optimizer.history import History
from tradewind.space import Space
from tradewind.types import Trial, Usage

if TYPE_CHECKING:
    import pandas as pd


def write_study(path: str | PathLike[str], log: Log, trials: Sequence[Trial], space: Space) -> None:
    """Write a study in the format of the suffix, completely or not at all."""
    match Path(path).suffix.lower():
        case ".jsonl":
            write_lines(path, log.read(0))
        case ".csv":
            write_text(path, _table(trials, space))
        case suffix:
            raise ValueError(f"a study is exported to .jsonl or .csv, but got {suffix!r}")


def read_study(path: str | PathLike[str]) -> tuple[Created, list[Event]]:
    """The first event of a JSON-lines file, and all others. A file that contradicts itself, or
    holds configurations outside its space, is refused."""
    created, *events = read_lines(path)
    assert isinstance(created, Created)
    try:
        state = StudyState.of([created])
    except SpaceError as error:
        raise FormatError(f"{path}, line 1: {error}") from error
    state.apply(events)
    configs = [trial.params for trial in state.trials.values()]
    for config in (*configs, *(wanted.params for wanted in state.queue.values())):
        try:
            state.space.validate(config)
        except ConfigError as error:
            raise FormatError(
                f"{path} holds {config}, which is outside its space: {error}"
            ) from None
    return created, events


_DTYPES = (
    dict.fromkeys(("number", "retries", "seed"), int)
    | dict.fromkeys(("raced",), bool)
    | dict.fromkeys(("state", "origin"), str)
    | dict.fromkeys(("value", "cost", "train_size", "started", "ended"), float)
    | dict.fromkeys(("wall", "cpu", "concurrency"), float)
)


def columns(trials: Sequence[Trial], space: Space) -> dict[str, list[Any]]:
    """The trials as columns, one entry per trial."""
    used = [t.usage or Usage(math.nan, math.nan, math.nan, "") for t in trials]
    table: dict[str, list[Any]] = {
        "number": [t.number for t in trials],
        "state": [t.state.value for t in trials],
        "value": [_number(t.value) for t in trials],
        "cost": [_number(t.cost) for t in trials],
        "seed": [t.seed for t in trials],
        "train_size": [t.train_size for t in trials],
        "raced": [t.raced for t in trials],
        "origin": [t.origin.value for t in trials],
        "retries": [t.retries for t in trials],
        "driver": [t.driver for t in trials],
        "started": [_number(t.started) for t in trials],
        "ended": [_number(t.ended) for t in trials],
        "wall": [u.wall for u in used],
        "cpu": [_number(u.cpu) for u in used],
        "concurrency": [u.concurrency for u in used],
        "device": [u.device or None for u in used],
        "error": [t.error for t in trials],
    }
    return table | {f"params_{name}": [t.params.get(name) for t in trials] for name in space}


def _number(given: float | None) -> float:
    return math.nan if given is None else given


def data_frame(trials: Sequence[Trial], space: Space, history: History, goal: Goal) -> pd.DataFrame:
    """The trials as a data frame, with the `score` that a settled goal gives to finished ones."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("to_frame needs pandas: pip install 'tradewind[pandas]'") from error
    score = np.full(len(trials), np.nan)
    if len(history.X) and not goal.open:
        score[[t.finished for t in trials]] = goal.utility(history.quality, history.cost)
    frame = pd.DataFrame(columns(trials, space)).astype(_DTYPES)
    frame.insert(list(frame).index("cost") + 1, "score", score)
    return frame


def _table(trials: Sequence[Trial], space: Space) -> str:
    table = columns(trials, space)
    out = io.StringIO(newline="")
    write = csv.writer(out).writerow
    write(table)
    for row in zip(*table.values(), strict=True):
        write([None if cell != cell else cell for cell in row])  # NaN: unknown
    return out.getvalue()
