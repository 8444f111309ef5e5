"""One SQLite file: checking that it is Tradewind's, connecting to it, and explaining its errors.

Files of other programs are never written to."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tradewind import interrupts
from tradewind.errors import FormatError, NoSuchStudy, StorageError
from tradewind.log.lock import Lock, locked
from tradewind.log.perprocess import PerProcess

T = TypeVar("T")

APPLICATION = 0x54574E44  # "TWND", in the header of every file that Tradewind creates
SCHEMA = 1  # raise it when the tables change
PATIENCE = 60.0  # seconds to wait for another writer,
_SLICE = 0.1  # in waits of so many seconds: SQLite hears no signals while it waits

_TABLES = f"""
CREATE TABLE studies (
    id INTEGER PRIMARY KEY, place INTEGER NOT NULL UNIQUE, name TEXT NOT NULL UNIQUE
);
CREATE TABLE events (
    study INTEGER NOT NULL REFERENCES studies ON DELETE CASCADE,
    position INTEGER NOT NULL, event TEXT NOT NULL,
    PRIMARY KEY (study, position)
) WITHOUT ROWID;
CREATE TABLE leases (
    study INTEGER NOT NULL REFERENCES studies ON DELETE CASCADE,
    trial INTEGER NOT NULL, until REAL NOT NULL, seconds REAL NOT NULL,
    PRIMARY KEY (study, trial)
) WITHOUT ROWID;
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {SCHEMA};
"""


class File:
    """The file at `path`. It is created when it is first written to."""

    def __init__(self, path: str | os.PathLike[str], synchronous: str) -> None:
        text = os.fspath(path)
        if not isinstance(text, str):
            raise TypeError(f"the path of a SQLite file must be text, but got {path!r}")
        if text in ("", ":memory:"):
            raise ValueError(
                f"a SQLite file must have a path, but got {text!r}; for a study in memory use "
                "storage=None"
            )
        if str(synchronous).upper() not in ("NORMAL", "FULL"):
            raise ValueError(f"synchronous must be NORMAL or FULL, but got {synchronous!r}")
        self.path = os.path.abspath(text)  # other processes may have other working directories
        self._synchronous = str(synchronous).upper()
        self._lock = Lock()
        self._handle = PerProcess(_Handle)

    def run(
        self, work: Callable[[sqlite3.Connection], T], *, write: bool = False, create: bool = False
    ) -> T:
        """Call `work` with this process's connection and return its result. With `write`, the call
        is one transaction, which any error rolls back.

        One thread at a time uses the connection. Wherever an exception arrives, no transaction is
        open afterwards. An error of SQLite also closes the connection, because it may have left it
        in any state."""
        deadline = time.monotonic() + PATIENCE
        try:
            while True:
                try:
                    return self._lock.hold(self._run, work, write, create)
                except sqlite3.OperationalError as error:  # SQLite itself would not hear signals
                    give_up = min(deadline, interrupts.give_up_at())
                    if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                        raise
                    time.sleep(0.01)
        except sqlite3.Error as error:
            self.close()
            raise _explain(error, self.path) from error

    def _run(self, work: Callable[[sqlite3.Connection], T], write: bool, create: bool) -> T:
        try:
            try:
                db = self._connection(create=create)
                if write:
                    db.execute("BEGIN IMMEDIATE")
                result = work(db)
                if write:
                    db.execute("COMMIT")
                return result
            finally:
                self._settle()
        finally:  # in case that an exception arrives just before the first call has done it
            self._settle()

    def _settle(self) -> None:
        """Leave nothing half done: no open transaction, and no connection that is not ready."""
        handle = self._handle.value
        if handle.db is not None:
            if not handle.is_ready:
                self.close()
            elif handle.db.in_transaction:
                handle.db.execute("ROLLBACK")

    def _connection(self, *, create: bool) -> sqlite3.Connection:
        """The open connection, or a new one if there is none or the file was replaced."""
        identity = _identity(self.path)
        handle = self._handle.value
        if handle.db is not None and handle.is_ready and handle.identity == identity:
            return handle.db
        self.close()
        _check_path(self.path)
        if identity is None and not create:
            raise NoSuchStudy(f"there is no file {self.path}")
        handle.is_ready = handle.is_intact = False
        handle.db = db = _connect(self.path, create=create)
        _prepare(db, self.path)
        db.execute(f"PRAGMA synchronous = {self._synchronous}")
        db.execute("PRAGMA foreign_keys = ON")
        handle.identity, handle.is_ready = _identity(self.path), True
        return db

    def check_intact(self, db: sqlite3.Connection) -> None:
        """`FormatError` if the file is damaged. It is looked through once per connection."""
        handle = self._handle.value
        if not handle.is_intact:
            _check_intact(db, self.path)
            handle.is_intact = True

    @locked
    def close(self) -> None:
        """Close the connection of this process. The next use opens a new one."""
        handle = self._handle.value
        if handle.db is not None:
            handle.is_ready = False
            handle.db.close()
            handle.db = None

    def __del__(self) -> None:
        if hasattr(self, "_handle"):  # not if __init__ has failed
            self.close()


@dataclass
class _Handle:
    """The connection of one process, which file it is for, whether it is ready to be used, and
    whether the file was found intact."""

    db: sqlite3.Connection | None = None
    identity: tuple[int, int] | None = None
    is_ready: bool = False
    is_intact: bool = False


def _identity(path: str) -> tuple[int, int] | None:
    """Which file is at this path. It may be deleted or replaced while a connection is open."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _check_path(path: str) -> None:
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise StorageError(f"{path} cannot be a SQLite file: there is no folder {folder}")
    if os.path.isdir(path):
        raise StorageError(f"{path} cannot be a SQLite file: it is a folder")
    if os.path.exists(path) and 0 < os.path.getsize(path) < 512:  # SQLite may take it as empty
        raise FormatError(_not_sqlite(path))


def _connect(path: str, *, create: bool) -> sqlite3.Connection:
    uri = Path(path).as_uri()
    if os.path.exists(path):
        try:
            _check_unlocked(uri, path)
        except FormatError:
            _check_unlocked(uri, path)  # another process may have been creating it
    return sqlite3.connect(
        f"{uri}?mode={'rwc' if create else 'rw'}",
        uri=True,
        timeout=_SLICE,
        isolation_level=None,  # transactions begin and end only where this module says
        check_same_thread=False,
    )


def _check_unlocked(uri: str, path: str) -> None:
    """`FormatError` if the file is another program's. Opening it as immutable takes no lock, starts
    no recovery and creates no file beside it. SQLite itself must open it: if anything else in this
    process closes the file, the process loses its locks on it."""
    with closing(sqlite3.connect(f"{uri}?mode=ro&immutable=1", uri=True)) as db:
        try:
            _is_ours(db, path)
        except sqlite3.DatabaseError as error:
            if _code(error) != sqlite3.SQLITE_CORRUPT:  # half created: checked again under a lock
                raise


def _is_ours(db: sqlite3.Connection, path: str) -> bool:
    """True if Tradewind created the database, False if it is empty, `FormatError` otherwise."""
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if application == APPLICATION:
        if version > SCHEMA:
            raise FormatError(
                f"{path} is from a newer version of Tradewind: its tables have version {version}, "
                f"but this version reads {SCHEMA}; update Tradewind"
            )
        return True
    (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application or version or tables:
        raise FormatError(f"{path} is a SQLite file of another program; it was not changed")
    return False


def _prepare(db: sqlite3.Connection, path: str) -> None:
    """Create the tables in a new file. This comes before the write-ahead log is switched on, so
    that the application id can be read without it."""
    (application,) = db.execute("PRAGMA application_id").fetchone()
    if application == 0:
        db.execute("BEGIN IMMEDIATE")
        if not _is_ours(db, path):  # another process may have been faster
            for statement in _TABLES.split(";"):
                db.execute(statement)
        db.execute("COMMIT")
    _is_ours(db, path)
    _switch_to_write_ahead(db, path)


def _check_intact(db: sqlite3.Connection, path: str) -> None:
    """Find damage that hides events. The digests of events cannot show that the last ones are gone:
    a page that counts fewer of them, or an event that belongs to no study."""
    (found,) = db.execute("PRAGMA quick_check(1)").fetchone()
    orphans = "SELECT 1 FROM events WHERE study NOT IN (SELECT id FROM studies) LIMIT 1"
    if found == "ok" and db.execute(orphans).fetchone():
        found = "an event belongs to no study"
    if found != "ok":
        raise FormatError(f"{path} is damaged: {found}; tradewind.repair keeps what can be read")


def _switch_to_write_ahead(db: sqlite3.Connection, path: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
            break
        except sqlite3.OperationalError as error:  # SQLite's own timeout does not apply here
            give_up = min(deadline, interrupts.give_up_at())
            if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                raise
            time.sleep(0.01)
    if mode != "wal":
        raise StorageError(
            f"{path} is in a place where SQLite cannot keep a write-ahead log; use a local disk, "
            "or PostgreSQL"
        )


_REASONS = {
    sqlite3.SQLITE_BUSY: f"another process has kept it locked for {PATIENCE:.0f} seconds",
    sqlite3.SQLITE_FULL: "the disk is full; nothing was written",
    sqlite3.SQLITE_IOERR: "the disk reports an error",
    sqlite3.SQLITE_READONLY: "there is no permission to write to it, which even reading needs",
    sqlite3.SQLITE_PERM: "there is no permission to open it",
    sqlite3.SQLITE_CANTOPEN: "it, or its -wal or -shm file, cannot be opened or created",
}


def _explain(error: sqlite3.Error, path: str) -> StorageError:
    code = _code(error)
    if code == sqlite3.SQLITE_NOTADB:
        return FormatError(_not_sqlite(path))
    if code == sqlite3.SQLITE_CORRUPT:
        return FormatError(f"{path} is damaged: {error}")
    return StorageError(f"{path} cannot be used: {_REASONS.get(code, 'SQLite failed')} ({error})")


def _code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF  # without the extended code


def _not_sqlite(path: str) -> str:
    hint = "; import_study reads .jsonl files" * path.endswith(".jsonl")
    return f"{path} is not a SQLite file; it was not changed{hint}"
