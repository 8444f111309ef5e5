"""Studies in a SQLite file: the embedded store, for any number of processes on one machine.

The file is in write-ahead mode: readers never wait, and an append is written completely or not at
all, even if the process is killed.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import chain

from tradewind import checks
from tradewind.errors import FormatError, NoSuchStudy
from tradewind.log.chain import ADVICE, START, Head, check_same, seal
from tradewind.log.codec import encode
from tradewind.log.events import Created, Event
from tradewind.log.log import (
    Conflict,
    Log,
    already_exists,
    gone,
    is_leased,
    not_found,
    random_id,
    spool_folders,
)
from tradewind.log.perprocess import PerProcess
from tradewind.log.rows import first_row, read_rows
from tradewind.log.sqlite_file import PATIENCE, File
from tradewind.log.stalls import Stalls


class SqliteStore:
    """A store in the SQLite file at `path`. Creating the first study creates the file.

    `synchronous` "NORMAL" survives a killed process. "FULL" also survives a power cut, but waits
    for the disk at every append. If another process keeps the file locked, it is waited for as long
    as `patience` says, in seconds or as text such as "10m". Leases end by `clock`, which all
    processes must share."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        synchronous: str = "NORMAL",
        patience: float | str = PATIENCE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.file = File(path, synchronous, checks.patience("patience", patience))
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
        self._stalls = PerProcess(Stalls)

    def __repr__(self) -> str:
        return f"<log of {self._place}>"

    @property
    def id(self) -> int:
        return self._study

    @property
    def spool(self) -> tuple[str, ...]:
        return spool_folders(f"{self._file.path}-spool")

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

        with self._stalls.value.watch():
            self._head = self._file.run(work, write=bool(bodies or lease))
        return self._head.length

    def read(self, after: int) -> Sequence[Event]:
        after, head = checks.position(after), self._head
        events, self._head = self._file.run(lambda db: self._read(db, head, after))
        return events

    def reopen(self) -> Log:
        def find(db: sqlite3.Connection) -> int | None:
            by_id = db.execute("SELECT 1 FROM studies WHERE id = ?", (self._study,)).fetchone()
            return self._study if by_id else _find_id(db, self._name)

        study = self._file.run(find)
        if study is None:
            raise not_found(self._name, self._file.path)
        return SqliteLog(self._file, self._clock, study, self._name)

    def _read(self, db: sqlite3.Connection, head: Head, after: int) -> tuple[list[Event], Head]:
        rows = db.execute(
            f"{_LINE} AND position >= ? ORDER BY position", (self._study, first_row(head, after))
        )
        first = rows.fetchmany(1)
        if not first:
            self._end(db, head)
        return read_rows(chain(first, rows), head, after, self._place)

    def beat(self, trials: Sequence[int], seconds: float) -> Mapping[int, float]:
        (trials, seconds), head = checks.lease(trials, seconds), self._head
        write = bool(trials)

        def work(db: sqlite3.Connection) -> Mapping[int, float]:
            check_same(head, *self._end(db, head), self._place)
            now, stalls = self._lease(db, trials, seconds), latest_stalls()
            query = "SELECT trial, until, seconds FROM leases WHERE study = ?"
            rows = db.execute(query, (self._study,))
            leases = [(n, until - now, is_leased(until, s, now, stalls)) for n, until, s in rows]
            if trials:
                self._unlease(db, [number for number, _, holds in leases if not holds])
            return {number: max(left, 0.0) for number, left, holds in leases if holds}

        with self._stalls.value.watch(write=write) as latest_stalls:
            return self._file.run(work, write=write)

    def _lease(self, db: sqlite3.Connection, trials: list[int], seconds: float) -> float:
        """Begin or end these leases, and return the time."""
        now = self._clock()
        if seconds:
            leases = [(self._study, trial, now + seconds, seconds) for trial in trials]
            db.executemany("INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?)", leases)
        else:
            self._unlease(db, trials)
        return now

    def _unlease(self, db: sqlite3.Connection, trials: list[int]) -> None:
        ended = [(self._study, trial) for trial in trials]
        db.executemany("DELETE FROM leases WHERE study = ? AND trial = ?", ended)

    def _end(self, db: sqlite3.Connection, head: Head) -> tuple[int, str]:
        """The length of the log, and the line that is stored where `head` ends."""
        last = db.execute(f"{_LINE} ORDER BY position DESC LIMIT 1", (self._study,)).fetchone()
        if last is None:
            raise gone(self._name, self._file.path)
        length = last[0] + 1
        if length > head.length > 0:  # somebody else has written
            at = (self._study, head.length - 1)
            last = db.execute(f"{_LINE} AND position = ?", at).fetchone() or (0, b"")
        return length, last[1].decode(errors="replace")


_LINE = "SELECT position, CAST(event AS BLOB) FROM events WHERE study = ?"


def _insert(db: sqlite3.Connection, study: int, at: int, lines: list[str]) -> None:
    before = db.total_changes
    db.executemany(
        "INSERT INTO events VALUES (?, ?, ?)",
        [(study, position, line) for position, line in enumerate(lines, at)],
    )
    if db.total_changes - before != len(lines):  # a trigger, added since the file was opened
        raise FormatError(f"the file holds a trigger, so nothing was written; {ADVICE}")


def _find_id(db: sqlite3.Connection, name: str) -> int | None:
    row = db.execute("SELECT id FROM studies WHERE name = ?", (name,)).fetchone()
    return None if row is None else row[0]
