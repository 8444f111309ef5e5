"""Studies in a SQLite file: the embedded store, for any number of processes on one machine.

The file is in write-ahead mode: readers never wait, and an append is written completely or not at
all, even if the process is killed.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Sequence

from tradewind import checks
from tradewind.errors import NoSuchStudy
from tradewind.log.codec import decode_rows, encode
from tradewind.log.events import Created, Event
from tradewind.log.log import Conflict, Log, already_exists, is_leased, not_found, random_id
from tradewind.log.sqlite_file import File


class SqliteStore:
    """A store in the SQLite file at `path`. Creating the first study creates the file.

    `synchronous` "NORMAL" survives a killed process. "FULL" also survives a power cut, but waits
    for the disk at every append. Leases end by `clock`, which all processes must share."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        synchronous: str = "NORMAL",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.file = File(path, synchronous)
        self._clock = clock

    def __repr__(self) -> str:
        return f"SqliteStore({self.file.path!r})"

    def create(self, name: str, first: Created) -> Log:
        name, text, study = checks.study_name(name), encode(first), random_id()
        with self.file.connect(write=True, create=True) as db:
            if _find_id(db, name) is not None:
                raise already_exists(name, self.file.path)
            db.execute(
                "INSERT INTO studies SELECT ?, coalesce(max(place) + 1, 0), ? FROM studies",
                (study, name),
            )
            db.execute("INSERT INTO events VALUES (?, 0, ?)", (study, text))
        return SqliteLog(self.file, self._clock, study, name)

    def open(self, name: str) -> Log:
        name = checks.study_name(name)
        with self.file.connect() as db:
            return SqliteLog(self.file, self._clock, self._find(db, name), name)

    def names(self) -> list[str]:
        try:
            with self.file.connect() as db:
                return [name for (name,) in db.execute("SELECT name FROM studies ORDER BY place")]
        except NoSuchStudy:  # there is no file yet
            return []

    def rename(self, name: str, new: str) -> None:
        name, new = checks.study_name(name), checks.study_name(new)
        with self.file.connect(write=True) as db:
            study = self._find(db, name)
            if _find_id(db, new) not in (None, study):
                raise already_exists(new, self.file.path)
            db.execute("UPDATE studies SET name = ? WHERE id = ?", (new, study))

    def delete(self, name: str) -> None:
        name = checks.study_name(name)
        with self.file.connect(write=True) as db:
            study = self._find(db, name)
            db.execute("DELETE FROM studies WHERE id = ?", (study,))

    def close(self) -> None:
        """Close the connection of this process. The next use opens a new one."""
        self.file.close()

    def _find(self, db: sqlite3.Connection, name: str) -> int:
        study = _find_id(db, name)
        if study is None:
            raise not_found(name, self.file.path)
        return study


class SqliteLog:
    """The log of one study in a SQLite file."""

    def __init__(self, file: File, clock: Callable[[], float], study: int, name: str) -> None:
        self._file, self._clock, self._study, self._name = file, clock, study, name

    def __repr__(self) -> str:
        return f"<log of study {self._name!r} in {self._file.path}>"

    def append(
        self,
        events: Sequence[Event],
        *,
        expected: int | None = None,
        lease: tuple[int, float] | None = None,
    ) -> int:
        texts = [encode(event) for event in events]
        with self._file.connect(write=bool(texts or lease)) as db:
            length = self._length(db)
            if expected is not None and expected != length:
                raise Conflict(f"expected {expected} events, but there are {length}")
            db.executemany(
                "INSERT INTO events VALUES (?, ?, ?)",
                [(self._study, position, text) for position, text in enumerate(texts, length)],
            )
            if lease is not None:
                self._lease(db, *checks.lease([lease[0]], lease[1]))
        return length + len(texts)

    def read(self, after: int) -> Sequence[Event]:
        after = checks.position(after)
        with self._file.connect() as db:
            rows = db.execute(
                "SELECT position, CAST(event AS BLOB) FROM events "
                "WHERE study = ? AND position >= ? ORDER BY position",
                (self._study, after),
            ).fetchall()
            if not rows:
                self._length(db)
        return decode_rows(rows, after, f"study {self._name!r} in {self._file.path}")

    def beat(self, trials: Sequence[int], seconds: float) -> frozenset[int]:
        trials, seconds = checks.lease(trials, seconds)
        with self._file.connect(write=bool(trials)) as db:
            self._length(db)
            return self._lease(db, trials, seconds)

    def _lease(self, db: sqlite3.Connection, trials: list[int], seconds: float) -> frozenset[int]:
        now = self._clock()
        rows = db.execute(
            "SELECT trial, until, seconds FROM leases WHERE study = ?", (self._study,)
        )
        leased = {trial: is_leased(until, length, now) for trial, until, length in rows}
        if trials:
            leased |= dict.fromkeys(trials, seconds > 0)
            db.executemany(
                "DELETE FROM leases WHERE study = ? AND trial = ?",
                [(self._study, trial) for trial, holds in leased.items() if not holds],
            )
            db.executemany(
                "INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?)",
                [(self._study, t, now + seconds, seconds) for t in trials if seconds],
            )
        return frozenset(trial for trial, holds in leased.items() if holds)

    def _length(self, db: sqlite3.Connection) -> int:
        row = db.execute(
            "SELECT (SELECT coalesce(max(position) + 1, 0) FROM events WHERE study = id) "
            "FROM studies WHERE id = ?",
            (self._study,),
        ).fetchone()
        if row is None:
            raise not_found(self._name, self._file.path)
        length: int = row[0]
        return length


def _find_id(db: sqlite3.Connection, name: str) -> int | None:
    row = db.execute("SELECT id FROM studies WHERE name = ?", (name,)).fetchone()
    return None if row is None else row[0]
