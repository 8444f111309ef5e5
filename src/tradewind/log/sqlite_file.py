"""A SQLite file of ours: whose it is, each process's connection to it, what can go wrong."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tradewind.errors import FormatError, NoSuchStudy, StorageError
from tradewind.log.lock import Lock
from tradewind.log.perprocess import PerProcess

APPLICATION = 0x54574E44  # "TWND", in the header of every file of ours
SCHEMA = 1  # a change of the tables gets the next number
PATIENCE = 60.0  # seconds to wait for the lock of another writer

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
    """The file at `path`, which is created when it is first written to."""

    def __init__(self, path: str | os.PathLike[str], synchronous: str) -> None:
        given = os.fspath(path)
        if not isinstance(given, str):
            raise TypeError(f"the path of a SQLite file must be text, but got {path!r}")
        if given in ("", ":memory:"):
            raise ValueError(f"a SQLite file needs a path, but got {given!r}; for memory give None")
        if str(synchronous).upper() not in ("NORMAL", "FULL"):
            raise ValueError(f"synchronous must be NORMAL or FULL, but got {synchronous!r}")
        self.path = os.path.abspath(given)  # processes may have other working directories
        self._synchronous = str(synchronous).upper()
        self._handle = PerProcess(_Handle)

    @contextmanager
    def session(self, *, write: bool = False, create: bool = False) -> Iterator[sqlite3.Connection]:
        """The connection of this process, for one thread at a time; with `write`, in a transaction
        that is rolled back by any error. An error of SQLite also ends the connection, as what
        state it left it in depends on the error."""
        handle = self._handle.get()
        with handle.lock:
            try:
                db = self._connected(handle, create)
                try:
                    if write:
                        db.execute("BEGIN IMMEDIATE")
                    yield db
                    if write:
                        db.execute("COMMIT")
                except BaseException:
                    if db.in_transaction:
                        db.execute("ROLLBACK")
                    raise
            except sqlite3.Error as error:
                handle.close()
                raise _failure(error, self.path) from error

    def _connected(self, handle: _Handle, create: bool) -> sqlite3.Connection:
        file = _identity(self.path)
        if handle.db is not None and handle.file == file:
            return handle.db
        handle.close()
        _check_place(self.path)
        if file is None and not create:
            raise NoSuchStudy(f"there is no file {self.path}")
        db = _connect(self.path, create)
        try:
            _prepare(db, self.path)
            db.execute(f"PRAGMA synchronous = {self._synchronous}")
            db.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            db.close()
            raise
        handle.db, handle.file = db, _identity(self.path)
        return db

    def close(self) -> None:
        """Close the file in this process; whoever goes on opens it again."""
        handle = self._handle.get()
        with handle.lock:
            handle.close()


class _Handle:
    """The connection of one process to a file, and which file that is."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.db: sqlite3.Connection | None = None
        self.file: tuple[int, int] | None = None
        self._pid = os.getpid()

    def close(self) -> None:
        db, self.db = self.db, None
        if db is not None:
            db.close()

    def __del__(self) -> None:
        if os.getpid() == self._pid:
            self.close()


def _identity(path: str) -> tuple[int, int] | None:
    """Which file is at this path. It may be deleted or replaced while we have it open."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _check_place(path: str) -> None:
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise StorageError(f"{path} cannot be a SQLite file: there is no folder {folder}")
    if os.path.isdir(path):
        raise StorageError(f"{path} cannot be a SQLite file: it is a folder")
    if os.path.exists(path) and 0 < os.path.getsize(path) < 512:  # to SQLite, one byte is none
        raise FormatError(f"{path} is not a SQLite file; it is left as it is")


def _connect(path: str, create: bool) -> sqlite3.Connection:
    uri = Path(path).as_uri()
    if os.path.exists(path):
        try:
            _look(uri, path)
        except FormatError:
            _look(uri, path)  # it may be ours, and was being made while we looked
    return sqlite3.connect(
        f"{uri}?mode={'rwc' if create else 'rw'}",
        uri=True,
        timeout=PATIENCE,
        isolation_level=None,  # transactions begin and end where we say
        check_same_thread=False,
    )


def _look(uri: str, path: str) -> None:
    """`FormatError` if the file is somebody else's. As immutable it is looked at without locks,
    recovery, or a file beside it. It must be SQLite that looks: whoever else closes the file drops
    the locks that this process has on it."""
    with closing(sqlite3.connect(f"{uri}?mode=ro&immutable=1", uri=True)) as db:
        try:
            _check_ours(db, path)
        except sqlite3.DatabaseError as error:
            if _code(error) != sqlite3.SQLITE_CORRUPT:  # or half made: a lock will tell
                raise


def _check_ours(db: sqlite3.Connection, path: str) -> bool:
    """Whether the database is one of ours, False if it is empty; `FormatError` otherwise."""
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if application == APPLICATION:
        if version > SCHEMA:
            raise FormatError(
                f"{path} is from a newer version of Tradewind: its tables are of version "
                f"{version}, and this version reads {SCHEMA}"
            )
        return True
    (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application or version or tables:
        raise FormatError(f"{path} is a SQLite file, but not one of Tradewind; it is left as it is")
    return False


def _prepare(db: sqlite3.Connection, path: str) -> None:
    """Make the tables in a new file. Their id is there before the write-ahead log is, so that it
    can be seen without it."""
    (application,) = db.execute("PRAGMA application_id").fetchone()
    if application == 0:
        db.execute("BEGIN IMMEDIATE")
        if not _check_ours(db, path):  # another process may have been first
            for statement in _TABLES.split(";"):
                db.execute(statement)
        db.execute("COMMIT")
    _check_ours(db, path)
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
            break
        except sqlite3.OperationalError as error:  # for this SQLite itself does not wait
            if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
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
    sqlite3.SQLITE_READONLY: "it may not be written to, which SQLite needs even for reading",
    sqlite3.SQLITE_PERM: "it may not be opened",
    sqlite3.SQLITE_CANTOPEN: "it, or its -wal and -shm beside it, cannot be opened or created",
}


def _failure(error: sqlite3.Error, path: str) -> StorageError:
    code = _code(error)
    if code == sqlite3.SQLITE_NOTADB:
        return FormatError(f"{path} is not a SQLite file; it is left as it is")
    if code == sqlite3.SQLITE_CORRUPT:
        return FormatError(f"{path} is damaged: {error}")
    return StorageError(f"{path} cannot be used: {_REASONS.get(code, 'SQLite reports')} ({error})")


def _code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF  # without the finer distinctions
