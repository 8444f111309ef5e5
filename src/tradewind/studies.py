"""The doors: studies are created, loaded, listed, renamed, deleted and imported here."""

from __future__ import annotations

import logging
import os
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from tradewind import arguments as check
from tradewind import blueprint
from tradewind.checks import one_of
from tradewind.errors import FormatError, NoSuchStudy, StorageError, StudyExists
from tradewind.events import Created
from tradewind.exports import read_study
from tradewind.goals import Goal, Quality
from tradewind.log.log import Log, Store
from tradewind.log.stores import open_store
from tradewind.record import Record
from tradewind.space import Space
from tradewind.strategies.strategy import Strategy
from tradewind.study import Study
from tradewind.types import State

_logger = logging.getLogger("tradewind")

Storage: TypeAlias = "str | os.PathLike[str] | Store | None"


def create_study(
    space: Space | Mapping[str, Any],
    *,
    goal: Goal | None = None,
    strategy: Strategy | Literal["auto", "random"] | None = None,
    direction: Literal["maximize", "minimize"] = "maximize",
    seed: int | None = None,
    storage: Storage = None,
    name: str = "study",
    load_if_exists: bool = False,
) -> Study:
    """A new study of `space`: a `Space`, or a dictionary that `Space.from_dict` reads.

    `goal` is `Quality()` and `strategy` is "auto" unless given. `direction` says whether the
    objective's number is a quality or a loss. The same `seed` and outcomes give the same trials;
    without one it is drawn and shown as `study.seed`.

    `storage` is where the study is kept: a path (SQLite), `postgresql://…`, or by default what the
    environment variable TRADEWIND_STORAGE says, else the memory of this process. With
    `load_if_exists` a study of this `name` goes on; it must have the same space, direction and
    seed, and takes the goal and the strategy, where they are given."""
    made = _space(space)
    maximize = one_of("direction", direction, ("maximize", "minimize")) == "maximize"
    towards = Quality() if goal is None else check.goal(goal)
    by = check.strategy("auto" if strategy is None else strategy)
    created = Created(
        space=made.to_dict(),
        goal=blueprint.written(towards),
        strategy=blueprint.written(by),
        maximize=maximize,
        seed=check.seed(seed),
        at=time.time(),
    )
    check.suited(by, made)
    store = open_store(storage)
    try:
        log = store.create(name, created)
    except StudyExists:
        if not load_if_exists:
            raise
        log = store.open(name)
        record = _folded(log)
        _must_agree(name, record, made, maximize=maximize, seed=seed)
        return _opened(log, record, name, goal, None if strategy is None else by)
    return Study(log, Record.of(created), goal=towards, strategy=by, name=name)


def load_study(
    storage: Storage = None,
    name: str | None = None,
    *,
    space: Space | Mapping[str, Any] | None = None,
    strategy: Strategy | Literal["auto", "random"] | None = None,
    goal: Goal | None = None,
) -> Study:
    """A study that is in a store; `name` may be left out where there is only one.

    A goal or a strategy that is given here is what the study goes on with. A strategy of your own
    is not in the store, and has to be given; a space is only compared with the one there."""
    store = _existing(storage)
    if name is None:
        names = store.names()
        if len(names) != 1:
            raise NoSuchStudy(f"which study? {store!r} has {_listed(names)}")
        name = names[0]
    log = store.open(name)
    record = _folded(log)
    if space is not None:
        _must_agree(name, record, _space(space), maximize=record.sign > 0, seed=None)
    by = None if strategy is None else check.strategy(strategy)
    return _opened(log, record, name, None if goal is None else check.goal(goal), by)


def _space(given: Space | Mapping[str, Any]) -> Space:
    if not isinstance(given, Mapping):
        raise TypeError(
            f"space must be a Space, or a dict as Space.from_dict reads, but got {given!r}"
        )
    return given if isinstance(given, Space) else Space.from_dict(given)


def _opened(
    log: Log, record: Record, name: str, goal: Goal | None, strategy: Strategy | None
) -> Study:
    """The study in a log, to go on with another goal and strategy where they are given: the log
    hears of that with the next trial, not before, so that looking at a study leaves it alone."""
    kept = _read(record.goal, "goal") if goal is None else goal
    by = _read(record.strategy, "strategy") if strategy is None else strategy
    return Study(log, record, goal=kept, strategy=check.suited(by, record.space), name=name)


def _read(data: Mapping[str, Any], what: str) -> Any:
    missing = blueprint.given_again(data)
    if missing:
        raise StorageError(
            f"the {what} of this study has a part of your own, {missing[0]}, which is not in the "
            f"store: give {what}= again"
        )
    try:
        return getattr(check, what)(blueprint.read(data))
    except TypeError as error:
        raise FormatError(f"the {what} of this study is none: {error}") from None


def _folded(log: Log) -> Record:
    """The state that a log implies."""
    events = log.read(0)
    if not events or not isinstance(events[0], Created):
        raise FormatError(f"a log begins with the study's creation, but this one with {events[:1]}")
    record = Record.of(events[0])
    record.apply(events[1:])
    return record


def _must_agree(
    name: str, record: Record, space: Space, *, maximize: bool, seed: int | None
) -> None:
    kept = record.space
    differences = [
        f"{parameter!r} is {kept.get(parameter, 'missing')} there "
        f"and {space.get(parameter, 'missing')} here"
        for parameter in dict.fromkeys([*kept, *space])
        if kept.get(parameter) != space.get(parameter)
    ]
    if not differences and kept != space:
        differences = ["the parameters come in another order or other combinations are forbidden"]
    if maximize != (record.sign > 0):
        differences.append(f"it is {'minimized' if maximize else 'maximized'} there")
    if seed is not None and check.seed(seed) != record.seed:
        differences.append(f"its seed is {record.seed} there and {seed} here")
    if differences:
        raise StorageError(f"the study {name!r} in the store is another: " + "; ".join(differences))


# ---- what is in a store ----


@dataclass(frozen=True)
class StudySummary:
    """A study in a store: how many trials it has, by state, and when it was created (seconds
    since 1970)."""

    name: str
    trials: int
    states: Mapping[str, int]
    created: float


def list_studies(storage: Storage = None) -> list[StudySummary]:
    """All studies of a store, oldest first."""
    store = _existing(storage)
    summaries = []
    for name in store.names():
        try:
            record = _folded(store.open(name))
        except FormatError as error:
            _logger.warning("the study %r cannot be read: %s", name, error)
            continue
        states = [trial.state for trial in record.trials.values()]
        counts = {state.value: states.count(state) for state in State if state in states}
        summaries.append(StudySummary(name, len(states), counts, record.created))
    return summaries


def rename_study(name: str, new: str, *, storage: Storage = None) -> None:
    """Give a study another name; whoever has it open goes on."""
    _existing(storage).rename(name, new)


def delete_study(name: str, *, storage: Storage = None) -> None:
    """Remove a study and all its trials from a store, for good."""
    _existing(storage).delete(name)


def import_study(
    path: str | os.PathLike[str],
    *,
    storage: Storage = None,
    name: str | None = None,
    strategy: Strategy | Literal["auto", "random"] | None = None,
    goal: Goal | None = None,
) -> Study:
    """A study from a `.jsonl` file that `study.export` wrote, under the file's own name unless
    another is given. Either all of it is in the store afterwards, or nothing."""
    name = Path(path).stem if name is None else name
    goal = None if goal is None else check.goal(goal)
    by = None if strategy is None else check.strategy(strategy)
    created, events = read_study(path)
    store = open_store(storage)
    if name in store.names():
        raise StudyExists(f"the store already has a study {name!r}: import it under another name")
    aside = f"{name} (importing {secrets.token_hex(4)})"
    log = store.create(aside, created)
    try:
        log.append(events, expected=1)
        record = _folded(log)
        _opened(log, record, name, goal, by)  # or it says what is missing
        store.rename(aside, name)
    except BaseException:
        store.delete(aside)
        raise
    return _opened(store.open(name), record, name, goal, by)


def _existing(storage: Storage) -> Store:
    if storage is None and not os.environ.get("TRADEWIND_STORAGE"):
        raise StorageError("which store? Give storage=, or set TRADEWIND_STORAGE")
    return open_store(storage)


def _listed(names: list[str]) -> str:
    return ", ".join(map(repr, names)) if names else "none"
