"""Studies as files and tables: JSON lines hold everything; CSV and data frames are tables of the
trials."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tradewind.errors import ConfigError, FormatError, SpaceError, missing
from tradewind.goals import Goal
from tradewind.log.bulk import paused_gc
from tradewind.log.events import Created, Event
from tradewind.log.files import read_lines, write_lines, write_text
from tradewind.log.log import Log
from tradewind.log.state import StudyState
from tradewind.optimizer.history import History
from tradewind.plain import write_json
from tradewind.space import Space
from tradewind.types import Trial, Usage

if TYPE_CHECKING:
    import pandas as pd

Table: TypeAlias = dict[str, list[Any]]  # columns by name, with one entry per trial


def write_study(path: str | PathLike[str], log: Log, table: Callable[[], Table]) -> None:
    """Write a study in the format of the suffix, completely or not at all."""
    match Path(path).suffix.lower():
        case ".jsonl":
            with paused_gc():
                write_lines(path, log.read(0))
        case ".csv":
            write_text(path, _csv(table()))
        case suffix:
            raise ValueError(f"a study is exported to .jsonl or .csv, but got {suffix!r}")


def read_study(path: str | PathLike[str]) -> tuple[Created, list[Event], StudyState]:
    """The first event of a JSON-lines file, all others, and the state they imply. A file that
    contradicts itself, or holds configurations outside its space, is refused."""
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
    return created, events, state


_DTYPES = (
    dict.fromkeys(("number", "retries", "seed", "trainings"), int)
    | dict.fromkeys(("raced",), bool)
    | dict.fromkeys(("state", "origin"), str)
    | dict.fromkeys(("value", "cost", "score", "train_size"), float)
    | dict.fromkeys(("wall", "cpu", "memory", "concurrency"), float)
)
_TIMES = ("started", "ended")
_FORMULA = tuple("=+-@\t\r\n'\uff1d\uff0b\uff0d\uff20")  # the last four are = + - @ in full width


def columns(trials: Sequence[Trial], space: Space, history: History, goal: Goal) -> Table:
    """The trials as columns, with the `score` that a settled goal gives to finished ones. Times are
    in ISO format. There is a column for each fold, named cost, attribute and parameter."""
    used = [t.usage or Usage(math.nan, math.nan, math.nan, "", clock="") for t in trials]
    table: Table = {
        "number": [t.number for t in trials],
        "state": [t.state.value for t in trials],
        "value": [_number(t.value) for t in trials],
        "cost": [_number(t.cost) for t in trials],
        "score": _scores(trials, history, goal),
        "seed": [t.seed for t in trials],
        "train_size": [t.train_size for t in trials],
        "trainings": [t.trainings for t in trials],
        "raced": [t.raced for t in trials],
        "origin": [t.origin.value for t in trials],
        "retries": [t.retries for t in trials],
        "driver": [t.driver for t in trials],
        "started": [iso_time(t.started) for t in trials],
        "ended": [iso_time(t.ended) for t in trials],
        "wall": [u.wall for u in used],
        "cpu": [_number(u.cpu) for u in used],
        "memory": [_number(u.memory) for u in used],
        "clock": [u.clock or None for u in used],
        "concurrency": [u.concurrency for u in used],
        "device": [u.device or None for u in used],
        "error": [t.error for t in trials],
    }
    for i in range(max((len(t.folds) for t in trials), default=0)):
        table[f"fold_{i}"] = [t.folds[i] if i < len(t.folds) else math.nan for t in trials]
    for name in dict.fromkeys(name for t in trials for name in t.costs):
        table[f"cost_{name}"] = [t.costs.get(name, math.nan) for t in trials]
    for name in dict.fromkeys(name for t in trials for name in t.attributes):
        table[f"attr_{name}"] = [t.attributes.get(name) for t in trials]
    return table | {f"params_{name}": [t.params.get(name) for t in trials] for name in space}


def _scores(trials: Sequence[Trial], history: History, goal: Goal) -> list[float]:
    score = np.full(len(trials), np.nan)
    if goal.has_score and len(history.X) and not goal.open:
        score[[t.finished for t in trials]] = goal.utility(
            history.quality, history.cost, history.noise
        )
    return score.tolist()


def _number(given: float | None) -> float:
    return math.nan if given is None else given


def iso_time(seconds: float | None) -> str | None:
    """A time since 1970 such as `2026-11-16T21:24:10.500000+00:00`."""
    try:
        time = None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):  # beyond the calendar
        time = None
    return None if time is None else time.isoformat(timespec="microseconds")


def data_frame(table: Table) -> pd.DataFrame:
    """The table as a data frame, with times as timestamps."""
    try:
        import pandas as pd
    except ImportError as error:
        raise missing("to_frame", "pandas") from error
    frame = pd.DataFrame(table).astype(_DTYPES)
    for name in _TIMES:
        frame[name] = pd.to_datetime(frame[name], utc=True, format="ISO8601")
    return frame


def _csv(table: Table) -> str:
    out = io.StringIO(newline="")
    write = csv.writer(out).writerow
    write(table)
    for row in zip(*table.values(), strict=True):
        write([_cell(entry) for entry in row])
    return out.getvalue()


def _cell(entry: Any) -> Any:
    """An entry as text: nothing for NaN, and JSON for lists and mappings.

    Text that a spreadsheet would take for a formula gets an apostrophe, and so does text that
    begins with one: without its first apostrophe it is what it was."""
    if isinstance(entry, (list, dict)):
        return write_json(entry)
    if isinstance(entry, str) and entry.startswith(_FORMULA):
        return f"'{entry}"
    return None if entry != entry else entry
