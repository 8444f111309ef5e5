"""Repairing a damaged store: everything before the damage is kept, and so is the original."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from tradewind import checks
from tradewind.errors import FormatError, StorageError
from tradewind.log.files import scan_lines, write_lines
from tradewind.log.log import Store
from tradewind.log.pages import Rows, find_rows, is_newer
from tradewind.log.salvage import SavedStudy, results_in, save_study
from tradewind.log.sqlite import SqliteStore
from tradewind.log.sqlite_safety import SCHEMA
from tradewind.log.state import StudyState
from tradewind.log.stores import open_store
from tradewind.log.write_ahead import read_write_ahead

Saved: TypeAlias = tuple[int, SavedStudy, list[str]]  # the id of a study, what was saved, its lines

_CAUTION = (
    "Nothing in a file shows that the last events of a study are gone: compare the numbers of "
    "trials with what you remember."
)


@dataclass(frozen=True)
class Repair:
    """What `repair` has done: what is kept and lost of each study, and where the damaged original
    is. If nothing was damaged, `original` is None, and nothing was changed."""

    place: str
    original: str | None
    studies: tuple[SavedStudy, ...]

    def __str__(self) -> str:
        studies = map(str, self.studies)
        if self.original is None:
            return "\n".join([f"{self.place} is not damaged, and was not changed", *studies])
        done = f"{self.place} is repaired; the damaged original is kept as {self.original}"
        return "\n".join([done, *studies, _CAUTION])


def repair(storage: str | os.PathLike[str]) -> Repair:
    """Repair a damaged store: a SQLite file, a `.jsonl` file, or a PostgreSQL database. Every study
    keeps what comes before its damage: it can be loaded, continued and replayed. Print the result
    to see what was kept and lost.

    The damaged original is kept: a file as `name.damaged` beside the repaired one, a study in
    PostgreSQL under the name "study (damaged)". Stop all drivers first. One that still runs raises
    `LogDiverged` if it knows more, and `study.restore()` records that again."""
    if os.fspath(storage).endswith(".jsonl"):
        return _repair_lines(os.path.realpath(storage))
    store = open_store(storage)
    if isinstance(store, SqliteStore):
        return _repair_file(os.path.realpath(store.file.path))
    from tradewind.log.repair_postgres import repair_database  # needs an extra

    original, studies = repair_database(store)
    return Repair(repr(store).strip("<>"), original, studies)


def _repair_file(path: str) -> Repair:
    if not os.path.isfile(path):
        raise StorageError(f"{path} cannot be repaired: there is no such file")
    try:
        with closing(SqliteStore(path)) as store:
            return Repair(path, None, tuple(_whole_studies(store)))
    except FormatError as error:
        damage = error
    raw = Path(path).read_bytes()
    if is_newer(raw, SCHEMA):
        raise damage
    rows = find_rows(raw, read_write_ahead(f"{path}-wal", keep=True))
    saved = list(_save_all(rows))
    if not any(lines for *_, lines in saved):
        raise FormatError(f"no study can be saved, and nothing was changed: {damage}")
    with tempfile.TemporaryDirectory(prefix=".repair-", dir=os.path.dirname(path)) as folder:
        new = os.path.join(folder, "repaired.db")
        _write_studies(new, saved)
        shutil.copymode(path, new)
        original = _keep(path)
        os.replace(new, path)
    return Repair(path, original, tuple(study for _, study, _ in saved))


def _whole_studies(store: Store) -> Iterator[SavedStudy]:
    for name in store.names():
        events = store.open(name).read(0)
        yield SavedStudy(name, len(events), len(StudyState.of(events).trials))


def _save_all(rows: Rows) -> Iterator[Saved]:
    """What can be saved of every study, oldest first. A study whose name is lost gets a new one."""
    names: set[str] = set()
    known = dict.fromkeys([*sorted(rows.places, key=rows.places.__getitem__), *rows.names])
    for study in dict.fromkeys([*known, *rows.events]):
        name = rows.names.get(study, "")
        if not _is_name(name) or name in names:
            name = f"recovered {study}"
        saved, lines = save_study(name, rows.events.get(study, {}))
        if lines or study in known:
            names.add(name)
            yield study, saved, lines


def _is_name(name: str) -> bool:
    try:
        return checks.study_name(name) == name
    except ValueError:
        return False


def _write_studies(path: str, studies: Sequence[Saved]) -> None:
    """Write a new SQLite file. Studies keep their ids, so that open logs find them again."""
    with closing(SqliteStore(path, synchronous="FULL")) as store:
        kept = [saved for saved in studies if saved[2]]
        with store.file.connect(write=True, create=True) as db:
            for place, (study, saved, lines) in enumerate(kept):
                db.execute("INSERT INTO studies VALUES (?, ?, ?)", (study, place, saved.name))
                rows = [(study, position, line) for position, line in enumerate(lines)]
                db.executemany("INSERT INTO events VALUES (?, ?, ?)", rows)


def _keep(path: str) -> str:
    """Give a damaged file a second name, and move what belongs to it."""
    number = 0
    while True:
        name = f"{path}.damaged{f'.{number}' if number else ''}"
        try:
            os.link(path, name)  # fails if there is such a file
            break
        except FileExistsError:
            number += 1
        except OSError as error:
            raise StorageError(
                f"{path} was not changed, because it cannot be kept as {name}: {error.strerror}"
            ) from error
    with suppress(FileNotFoundError):
        os.replace(f"{path}-wal", f"{name}-wal")
    with suppress(FileNotFoundError):
        os.unlink(f"{path}-shm")
    return name


def _repair_lines(path: str) -> Repair:
    events, damage = scan_lines(path)
    name, trials = Path(path).stem, 0
    if damage is None:
        trials = len(StudyState.of(events).trials)
        return Repair(path, None, (SavedStudy(name, len(events), trials),))
    lines = Path(path).read_bytes().splitlines()
    saved, _ = save_study(name, {i: [line] for i, line in enumerate(lines[: len(events)])})
    if not saved.events:
        raise FormatError(f"no event can be saved, and nothing was changed: {damage}")
    lost = tuple(sorted({*results_in(lines[saved.events :])}))
    saved = SavedStudy(name, saved.events, saved.trials, saved.damage or str(damage), lost)
    original = _keep(path)
    write_lines(path, events[: saved.events])
    return Repair(path, original, (saved,))
