"""Studies as files: JSON lines hold everything, CSV is a table of the trials."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from tradewind.errors import ConfigError, FormatError, SpaceError
from tradewind.events import Created, Event
from tradewind.log.log import Log
from tradewind.log.stores import read_lines, write_lines, write_text
from tradewind.record import Record
from tradewind.space import Space
from tradewind.types import Trial, Usage


def write_study(path: str | PathLike[str], log: Log, trials: Sequence[Trial], space: Space) -> None:
    """Write a study as its suffix says, whole or not at all."""
    match Path(path).suffix.lower():
        case ".jsonl":
            write_lines(path, log.read(0))
        case ".csv":
            write_text(path, _table(trials, space))
        case suffix:
            raise ValueError(f"a study is exported to .jsonl or .csv, but got {suffix!r}")


def read_study(path: str | PathLike[str]) -> tuple[Created, list[Event]]:
    """The events of a JSON-lines file: the first, and the others."""
    created, *events = read_lines(path)
    assert isinstance(created, Created)
    try:
        record = Record.of(created)
    except SpaceError as error:
        raise FormatError(f"{path}, line 1: {error}") from error
    record.apply(events)  # a file that contradicts itself is refused here
    known = [trial.params for trial in record.trials.values()]
    for config in (*known, *(wanted.params for wanted in record.queue.values())):
        try:
            record.space.validate(config)
        except ConfigError as error:
            raise FormatError(f"{path} holds {config}, not of its space: {error}") from None
    return created, events


DTYPES = (
    dict.fromkeys(("number", "retries", "seed"), int)
    | dict.fromkeys(("raced",), bool)
    | dict.fromkeys(("state", "origin"), str)
    | dict.fromkeys(("value", "cost", "train_size", "started", "ended"), float)
    | dict.fromkeys(("wall", "cpu", "concurrency"), float)
)


def columns(trials: Sequence[Trial], space: Space) -> dict[str, list[Any]]:
    """The trials as a table, one row each."""
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


def _table(trials: Sequence[Trial], space: Space) -> str:
    table = columns(trials, space)
    out = io.StringIO(newline="")
    write = csv.writer(out).writerow
    write(table)
    for row in zip(*table.values(), strict=True):
        write([None if cell != cell else cell for cell in row])  # NaN: unknown
    return out.getvalue()
