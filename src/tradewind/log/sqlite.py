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
from tradewind.log.chain import START, Head, check_same, seal
from tradewind.log.codec import encode
from tradewind.log.events import Created, Event
from tradewind.log.log import Conflict, Log, already_exists, is_leased, not_found, random_id
from tradewind.log.rows import first_row, read_rows
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

    def create(self, name: str, first: Created, later: Sequence[Event] = ()) -> Log:
        name, study = checks.study_name(name), random_id()
        lines, head = seal(START, [encode(event) for event in (first, *later)])

        def work(db: sqlite3.Connection) -> None:
            if _find_id(db, name) is not None:
                raise already_exists(name, self.file.path)
            db.execute(
                "INSERT INTO studies SELECT ?, coalesce(max(place) + 1, 0), ? FROM studies",
                (study, name),
            )
            _insert(db, study, 0, lines)

        self.file.run(work, write=True, create=True)
        return SqliteLog(self.file, self._clock, study, name, head)

    def open(self, name: str) -> Log:
        name = checks.study_name(name)
        study = self.file.run(lambda db: self._find(db, name))
        return SqliteLog(self.file, self._clock, study, name)

    def names(self) -> list[str]:
        query = "SELECT name FROM studies ORDER BY place"
        try:
            return self.file.run(lambda db: [name for (name,) in db.execute(query)])
        except NoSuchStudy:  # there is no file yet
            return []

    def rename(self, name: str, new: str) -> None:
        name, new = checks.study_name(name), checks.study_name(new)

        def work(db: sqlite3.Connection) -> None:
            study = self._find(db, name)
            if _find_id(db, new) not in (None, study):
                raise already_exists(new, self.file.path)
            db.execute("UPDATE studies SET name = ? WHERE id = ?", (new, study))

        self.file.run(work, write=True)

    def delete(self, name: str) -> None:
        name = checks.study_name(name)

        def work(db: sqlite3.Connection) -> None:
            study = self._find(db, name)
            db.execute("DELETE FROM studies WHERE id = ?", (study,))

        self.file.run(work, write=True)

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

    def __init__(
        self, file: File, clock: Callable[[], float], study: int, name: str, head: Head = START
    ) -> None:
        self._file, self._clock, self._study, self._name = file, clock, study, name
        self._head = head
        self._place = f"study {name!r} in {file.path}"

    def __repr__(self) -> str:
        return f"<log of {self._place}>"

    def append(
        self,
        events: Sequence[Event],
        *,
        expected: int | None = None,
        lease: tuple[int, float] | None = None,
    ) -> int:
        bodies = [encode(event) for event in events]

        def work(db: sqlite3.Connection) -> Head:
            head = self._head
            length, line = self._end(db, head)
            check_same(head, length, line, self._place)
            if expected is not None and expected != length:
                raise Conflict(f"expected {expected} events, but there are {length}")
            if head.length < length:
                _, head = self._read(db, head, length)
            lines, head = seal(head, bodies)
            _insert(db, self._study, length, lines)
            if lease is not None:
                self._lease(db, *checks.lease([lease[0]], lease[1]))
            return head

        self._head = self._file.run(work, write=bool(bodies or lease))
        return self._head.length

    def read(self, after: int) -> Sequence[Event]:
        after, head = checks.position(after), self._head

        def work(db: sqlite3.Connection) -> tuple[list[Event], Head]:
            if head is START:
                self._file.check_intact(db)
            return self._read(db, head, after)

        events, self._head = self._file.run(work)
        return events

    def forget(self) -> None:
        self._head = START

    def _read(self, db: sqlite3.Connection, head: Head, after: int) -> tuple[list[Event], Head]:
        rows = db.execute(
            "SELECT position, CAST(event AS BLOB) FROM events "
            "WHERE study = ? AND position >= ? ORDER BY position",
            (self._study, first_row(head, after)),
        ).fetchall()
        if not rows:
            self._end(db, head)
        return read_rows(rows, head, after, self._place)

    def beat(self, trials: Sequence[int], seconds: float) -> frozenset[int]:
        trials, seconds = checks.lease(trials, seconds)

        def work(db: sqlite3.Connection) -> frozenset[int]:
            self._end(db, START)
            return self._lease(db, trials, seconds)

        return self._file.run(work, write=bool(trials))

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

    def _end(self, db: sqlite3.Connection, head: Head) -> tuple[int, str | None]:
        """The length of the log, and the line that is stored where `head` ends."""
        row = db.execute(
            "SELECT (SELECT coalesce(max(position) + 1, 0) FROM events WHERE study = id), "
            "(SELECT event FROM events WHERE study = id AND position = ?) "
            "FROM studies WHERE id = ?",
            (head.length - 1, self._study),
        ).fetchone()
        if row is None:
            raise not_found(self._name, self._file.path)
        length: int
        length, line = row
        return length, line


def _insert(db: sqlite3.Connection, study: int, at: int, lines: list[str]) -> None:
    db.executemany(
        "INSERT INTO events VALUES (?, ?, ?)",
        [(study, position, line) for position, line in enumerate(lines, at)],
    )


def _find_id(db: sqlite3.Connection, name: str) -> int | None:
    row = db.execute("SELECT id FROM studies WHERE name = ?", (name,)).fetchone()
    return None if row is None else row[0]
