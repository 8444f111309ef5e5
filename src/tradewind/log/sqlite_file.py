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
from tradewind.log.chain import ADVICE
from tradewind.log.lock import Lock, locked
from tradewind.log.perprocess import PerProcess
from tradewind.log.sqlite_safety import (
    APPLICATION,
    SCHEMA,
    TABLES,
    check_intact,
    is_ours,
    protect,
)
from tradewind.log.write_ahead import read_write_ahead
from tradewind.paths import check_file

T = TypeVar("T")

PATIENCE = 60.0  # seconds to wait for another writer,
_SLICE = 0.1  # in waits of so many seconds: SQLite hears no signals while it waits


class File:
    """The file at `path`. It is created when it is first written to. A lock of another process is
    waited for `patience` seconds."""

    def __init__(
        self, path: str | os.PathLike[str], synchronous: str, patience: float = PATIENCE
    ) -> None:
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
        self._patience = min(patience, 2e6)  # SQLite counts milliseconds in 32 bits
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
        deadline = time.monotonic() + self._patience
        try:
            while True:
                try:
                    return self._lock.hold(self._run, work, write, create)
                except sqlite3.OperationalError as error:  # SQLite itself would not hear signals
                    give_up = min(deadline, interrupts.give_up_at())
                    if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                        raise
                    time.sleep(0.01)
        except (sqlite3.Error, UnicodeDecodeError) as error:  # SQLite's messages quote the file
            self.close()
            raise _explain(error, self.path, self._patience) from error

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
        handle.is_ready = False
        handle.db = db = _connect(self.path, create=create)
        protect(db)
        _prepare(db, self.path)
        check_intact(db, self.path)
        db.execute(f"PRAGMA synchronous = {self._synchronous}")
        db.execute("PRAGMA foreign_keys = ON")
        handle.identity, handle.is_ready = _identity(self.path), True
        return db

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
    """The connection of one process, which file it is for, and whether it is ready to be used."""

    db: sqlite3.Connection | None = None
    identity: tuple[int, int] | None = None
    is_ready: bool = False


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
    for beside in ("", "-wal", "-shm", "-journal"):
        try:
            check_file(f"{path}{beside}")
        except OSError as error:
            raise StorageError(
                f"{path}{beside} cannot be a file of SQLite: {error.strerror}"
            ) from error
    if os.path.exists(path) and 0 < os.path.getsize(path) < 512:  # SQLite may take it as empty
        raise FormatError(_not_sqlite(path))
    _check_write_ahead(path)


def _check_write_ahead(path: str) -> None:
    """`FormatError` if the write-ahead log is damaged. What looks like damage and does not stay is
    another process that is writing."""
    damage = read_write_ahead(f"{path}-wal").damage
    for _ in range(3):
        if damage is None:
            return
        time.sleep(0.01)
        before, damage = damage, read_write_ahead(f"{path}-wal").damage
        if damage != before:
            return
    raise FormatError(f"{path} is damaged: {damage}; {ADVICE}")


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
            protect(db)
            is_ours(db, path)
        except sqlite3.DatabaseError as error:
            if _code(error) != sqlite3.SQLITE_CORRUPT:  # half created: checked again under a lock
                raise


def _prepare(db: sqlite3.Connection, path: str) -> None:
    """Create the tables in a new file. This comes before the write-ahead log is switched on, so
    that the application id can be read without it."""
    (application,) = db.execute("PRAGMA application_id").fetchone()
    if application == 0:
        db.execute("BEGIN IMMEDIATE")
        if not is_ours(db, path):  # another process may have been faster
            for statement in TABLES:
                db.execute(statement)
            db.execute(f"PRAGMA application_id = {APPLICATION}")
            db.execute(f"PRAGMA user_version = {SCHEMA}")
        db.execute("COMMIT")
    is_ours(db, path)
    (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise StorageError(
            f"{path} is in a place where SQLite cannot keep a write-ahead log; use a local disk, "
            "or PostgreSQL"
        )


_REASONS = {
    sqlite3.SQLITE_BUSY: "another process has kept it locked for {patience:g} seconds",
    sqlite3.SQLITE_FULL: "the disk is full; nothing was written",
    sqlite3.SQLITE_IOERR: "the disk reports an error",
    sqlite3.SQLITE_READONLY: "there is no permission to write to it, which even reading needs",
    sqlite3.SQLITE_PERM: "there is no permission to open it",
    sqlite3.SQLITE_CANTOPEN: "it, or its -wal or -shm file, cannot be opened or created",
}


def _explain(error: Exception, path: str, patience: float) -> StorageError:
    code = _code(error)
    if isinstance(error, UnicodeDecodeError) or "decode to UTF-8" in str(error):
        return FormatError(f"{path} is damaged: it holds text that is not UTF-8; {ADVICE}")
    if code == sqlite3.SQLITE_NOTADB:
        return FormatError(_not_sqlite(path))
    if code == sqlite3.SQLITE_CORRUPT:
        return FormatError(f"{path} is damaged: {error}; {ADVICE}")
    if code in (sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_TOOBIG):
        return FormatError(f"{path} holds what Tradewind never writes: {error}; {ADVICE}")
    reason = _REASONS.get(code, "SQLite failed").format(patience=patience)
    return StorageError(f"{path} cannot be used: {reason} ({error})")


def _code(error: Exception) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF  # without the extended code


def _not_sqlite(path: str) -> str:
    is_lines = path.endswith(".jsonl")
    hint = "import_study reads .jsonl files" if is_lines else f"if it held studies, {ADVICE}"
    return f"{path} is not a SQLite file; it was not changed; {hint}"
