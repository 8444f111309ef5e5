"""Files that may be damaged, or made by somebody who means harm: what is checked before a SQLite
file is used.

A SQLite file can hold code: views, triggers, expressions in tables and indexes. None of it is ever
run. The tables must be exactly those that Tradewind creates, and nothing else may be in the file.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache

from tradewind.errors import FormatError
from tradewind.log.chain import ADVICE

APPLICATION = 0x54574E44  # "TWND", in the header of every file that Tradewind creates
SCHEMA = 1  # raise it when the tables change
TABLES = (
    """CREATE TABLE studies (
    id INTEGER PRIMARY KEY, place INTEGER NOT NULL UNIQUE, name TEXT NOT NULL UNIQUE
)""",
    """CREATE TABLE events (
    study INTEGER NOT NULL REFERENCES studies ON DELETE CASCADE,
    position INTEGER NOT NULL, event TEXT NOT NULL,
    PRIMARY KEY (study, position)
) WITHOUT ROWID""",
    """CREATE TABLE leases (
    study INTEGER NOT NULL REFERENCES studies ON DELETE CASCADE,
    trial INTEGER NOT NULL, until REAL NOT NULL, seconds REAL NOT NULL,
    PRIMARY KEY (study, trial)
) WITHOUT ROWID""",
)

_LONGEST = 1 << 23  # bytes of one value or statement: twice as much as an event may have
_MOST_PAGES = 1 << 30  # looking through the file takes a bit of memory for each
_STEPS = 20_000  # of SQLite's machine for reading the schema; ours takes a few hundred


def protect(db: sqlite3.Connection) -> None:
    """Limit what the content of a file can do to us."""
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
    db.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, _LONGEST)
    db.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    db.execute("PRAGMA trusted_schema = OFF")
    db.execute("PRAGMA mmap_size = 0")  # a file that shrinks would end the process
    if sys.version_info >= (3, 12):
        db.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)


@contextmanager
def few_steps(db: sqlite3.Connection) -> Iterator[None]:
    """Interrupt SQLite if it works for long."""
    db.set_progress_handler(lambda: 1, _STEPS)
    try:
        yield
    finally:
        db.set_progress_handler(None, 0)


def is_ours(db: sqlite3.Connection, path: str) -> bool:
    """True if Tradewind created the database, False if it is empty, `FormatError` otherwise."""
    with few_steps(db):
        (application,) = db.execute("PRAGMA application_id").fetchone()
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if application == APPLICATION:
            _check_schema(db, version, path)
            return True
        (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application or version or tables:
        raise FormatError(f"{path} is a SQLite file of another program; it was not changed")
    return False


def _check_schema(db: sqlite3.Connection, version: int, path: str) -> None:
    if version > SCHEMA:
        raise FormatError(
            f"{path} is from a newer version of Tradewind: its tables have version {version}, "
            f"but this version reads {SCHEMA}; update Tradewind"
        )
    found, ours = set(_schema(db)) - _STATISTICS, _our_schema()
    strange = sorted(str(name) for _, name, *_ in found ^ ours)
    if version != SCHEMA or strange:
        what = f"{strange[0]!r:.60} is not as" if strange else "its tables are not those that"
        raise FormatError(f"{path} is damaged: {what} Tradewind creates it; {ADVICE}")


def _schema(db: sqlite3.Connection) -> list[tuple[str | None, ...]]:
    return db.execute("SELECT type, name, tbl_name, sql FROM sqlite_master LIMIT 100").fetchall()


# What ANALYZE adds. SQLite's planner reads it, and it holds no code.
_STATISTICS = {
    ("table", name, name, f"CREATE TABLE {name}({columns})")
    for name, columns in (
        ("sqlite_stat1", "tbl,idx,stat"),
        ("sqlite_stat4", "tbl,idx,neq,nlt,ndlt,sample"),
    )
}


@cache
def _our_schema() -> frozenset[tuple[str | None, ...]]:
    with closing(sqlite3.connect(":memory:")) as db:
        for statement in TABLES:
            db.execute(statement)
        return frozenset(_schema(db))


# What digests cannot show, such as a study whose last events are gone, or all of them.
_STRANGE = """
SELECT 'a study has no event' FROM studies
    WHERE NOT EXISTS (SELECT 1 FROM events WHERE study = id AND position = 0)
UNION ALL SELECT 'an event belongs to no study' FROM events
    WHERE study NOT IN (SELECT id FROM studies)
UNION ALL SELECT 'the name of a study is not text' FROM studies WHERE typeof(name) != 'text'
UNION ALL SELECT 'a lease is not a number' FROM leases
    WHERE typeof(trial) != 'integer' OR typeof(until) != 'real' OR typeof(seconds) != 'real'
LIMIT 1
"""


def check_intact(db: sqlite3.Connection, path: str) -> None:
    """`FormatError` if anything in the file is damaged, except what digests can show."""
    (pages,) = db.execute("PRAGMA page_count").fetchone()
    if pages > _MOST_PAGES:
        raise FormatError(f"{path} is damaged: it claims to have {pages} pages")
    (found,) = db.execute("PRAGMA integrity_check(1)").fetchone()
    if found == "ok":
        (found,) = db.execute(_STRANGE).fetchone() or ("ok",)
    if found != "ok":
        raise FormatError(f"{path} is damaged: {found}; {ADVICE}")
