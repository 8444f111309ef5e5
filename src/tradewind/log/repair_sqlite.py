"""Repairing a SQLite file: what can be read of the damaged one is written to a new one."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeAlias

from tradewind import checks
from tradewind.errors import FormatError, StorageError
from tradewind.log.chain import ADVICE
from tradewind.log.log import Store
from tradewind.log.pages import Rows, find_rows, is_newer
from tradewind.log.salvage import SavedStudy, keep, save_study
from tradewind.log.sqlite import SqliteStore
from tradewind.log.sqlite_safety import SCHEMA
from tradewind.log.state import StudyState
from tradewind.log.write_ahead import read_write_ahead

_LARGEST = 1 << 32  # bytes, which are all read into memory

Saved: TypeAlias = tuple[int, SavedStudy, list[str]]  # the id of a study, what was saved, its lines


def repair_file(store: Store) -> tuple[str, str | None, tuple[SavedStudy, ...]]:
    """Repair the file of a store. Returns its path, the new name of the damaged original if there
    was any damage, and what was saved of each study."""
    if not isinstance(store, SqliteStore):
        raise TypeError(f"repair needs a file or a PostgreSQL database, but got {store!r}")
    path = os.path.realpath(store.file.path)
    if not os.path.isfile(path):
        raise StorageError(f"{path} cannot be repaired: there is no such file")
    try:
        with closing(store):
            return path, None, tuple(_whole_studies(store))
    except FormatError as error:
        damage = error
    if os.path.getsize(path) > _LARGEST:
        raise FormatError(f"{path} is too large to be repaired, and was not changed: {damage}")
    raw = Path(path).read_bytes()
    if is_newer(raw, SCHEMA):
        raise damage
    saved = list(_save_all(find_rows(raw, read_write_ahead(f"{path}-wal", keep=True))))
    if not any(lines for *_, lines in saved):
        reason = str(damage).removesuffix(f"; {ADVICE}")  # which is what failed
        raise FormatError(f"no study can be saved, and nothing was changed: {reason}")
    with tempfile.TemporaryDirectory(prefix=".repair-", dir=os.path.dirname(path)) as folder:
        new = os.path.join(folder, "repaired.db")
        _write_studies(new, saved)
        shutil.copymode(path, new)
        original = keep(path)
        for beside in ("-wal", "-journal"):
            with suppress(FileNotFoundError):
                os.link(f"{path}{beside}", f"{original}{beside}")
        # Whoever is killed here leaves a file that is damaged, missing or repaired, but never the
        # old one without its write-ahead log: that would look like a whole but older study.
        os.unlink(path)
        for beside in ("-wal", "-shm", "-journal"):  # the new file must not meet them
            with suppress(FileNotFoundError):
                os.unlink(f"{path}{beside}")
        os.replace(new, path)
    return path, original, tuple(study for _, study, _ in saved)


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
    kept = [saved for saved in studies if saved[2]]

    def write(db: sqlite3.Connection) -> None:
        for place, (study, saved, lines) in enumerate(kept):
            db.execute("INSERT INTO studies VALUES (?, ?, ?)", (study, place, saved.name))
            rows = [(study, position, line) for position, line in enumerate(lines)]
            db.executemany("INSERT INTO events VALUES (?, ?, ?)", rows)

    with closing(SqliteStore(path, synchronous="FULL")) as store:
        store.file.run(write, write=True, create=True)
