"""The way to a PostgreSQL database: its address, its tables, and connections that may be lost."""

from __future__ import annotations

import os
import re
import time
import weakref
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar
from urllib.parse import unquote

from tradewind.errors import FormatError, StorageError
from tradewind.log.lock import Lock
from tradewind.log.perprocess import PerProcess

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
    from psycopg.errors import ForeignKeyViolation, UniqueViolation
    from psycopg_pool import ConnectionPool
except ImportError as missing:
    raise ImportError(
        f"studies in PostgreSQL need psycopg: pip install 'tradewind[postgres]' ({missing})"
    ) from missing

__all__ = ["Connection", "Database", "ForeignKeyViolation", "UniqueViolation"]

Connection: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"
Pool: TypeAlias = "ConnectionPool[Connection]"
T = TypeVar("T")

SCHEMA = 1  # a change of the tables gets the next number
PAUSES = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4)  # seconds between attempts to reach the server again
FIRST_PAUSES = PAUSES[:3]  # where it has never been reached, the address may just be wrong

_DEFAULTS = {
    "client_encoding": "UTF8",
    "fallback_application_name": "tradewind",
    "connect_timeout": "10",
    "keepalives_idle": "30",  # notice within a minute that the other side is gone
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
_LOCK = 0x54574E44  # "TWND": held while tables are created
_TABLES = """
CREATE TABLE IF NOT EXISTS tradewind_schema (version integer NOT NULL);
CREATE TABLE IF NOT EXISTS tradewind_studies (
    id bigint PRIMARY KEY, place bigint GENERATED ALWAYS AS IDENTITY, name text NOT NULL UNIQUE
);
CREATE TABLE IF NOT EXISTS tradewind_events (
    study bigint NOT NULL REFERENCES tradewind_studies ON DELETE CASCADE,
    position bigint NOT NULL, event text NOT NULL, token bigint NOT NULL,
    PRIMARY KEY (study, position)
);
CREATE TABLE IF NOT EXISTS tradewind_leases (
    study bigint NOT NULL REFERENCES tradewind_studies ON DELETE CASCADE,
    trial bigint NOT NULL, until timestamptz NOT NULL, seconds float8 NOT NULL,
    PRIMARY KEY (study, trial)
);
"""


class Database:
    """The database at `url`, over at most `pool_size` connections a process. `where` names it,
    without its password; a pickled copy carries that along."""

    def __init__(self, url: str, pool_size: int) -> None:
        if not isinstance(url, str):
            raise TypeError(f"the URL of a database must be text, but got a {type(url).__name__}")
        if not re.match(r"postgres(ql)?://", url):
            raise ValueError("the URL of a database must begin with postgresql://")
        if pool_size < 1:
            raise ValueError(f"pool_size must be at least 1, but got {pool_size!r}")
        given = _options(url)
        if given is None:
            raise ValueError(
                "the URL of a database must be postgresql://user:password@host:port/database, with "
                "special characters as %-codes; this one cannot be read"
            )
        self._conninfo = make_conninfo("", **{**_DEFAULTS, **given})
        self._secrets = _secrets(url, given)
        host = f"{given.get('host') or 'localhost'}:{given.get('port') or 5432}"
        self.where = self._scrubbed(f"PostgreSQL at {host}, database {given.get('dbname')!r}")
        self._pool_size = pool_size
        self._handle = PerProcess(_Handle)

    def run(self, work: Callable[[Connection], T]) -> T:
        """What `work` gives. It is called again while connections are lost, also when it had been
        done already and only the answer was lost: it must come to the same."""
        handle = self._handle.get()
        pauses = list(PAUSES if handle.reached else FIRST_PAUSES)
        while True:
            pool = None
            try:
                pool = handle.opened(self._open)
                with pool.connection() as db:
                    return work(db)
            except psycopg.Error as error:
                passing = _passing(error)
                reason = " ".join(self._scrubbed(str(error)).split()) or type(error).__name__
            handle.close(pool)
            # raised here, not above, to have no context that could show a password
            if not passing:
                raise StorageError(f"{self.where} cannot be used: {reason}")
            if not pauses:
                undecided = "; what was last asked of it may or may not have been done"
                raise StorageError(
                    f"{self.where} cannot be reached{undecided if handle.reached else ''}: {reason}"
                )
            time.sleep(pauses.pop(0))

    def close(self) -> None:
        """Close the connections of this process; whoever goes on opens new ones."""
        handle = self._handle.get()
        handle.close(handle.pool)

    def _open(self) -> Pool:
        # Errors of the first connection are seen here; those of a pool go to its own threads.
        with psycopg.connect(self._conninfo, autocommit=True) as db:
            _prepare(db, self.where)
        return ConnectionPool(
            self._conninfo,
            # no statements are prepared: a pooler between us and the server may not know them
            kwargs={"autocommit": True, "prepare_threshold": None},
            min_size=0,
            max_size=self._pool_size,
            num_workers=1,
            open=True,
        )

    def _scrubbed(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


class _Handle:
    """The connections of one process."""

    def __init__(self) -> None:
        self.pool: Pool | None = None
        self.reached = False  # ever
        self._lock = Lock()

    def opened(self, make: Callable[[], Pool]) -> Pool:
        with self._lock:
            if self.pool is None:
                self.pool = make()
                self.reached = True
                # before the interpreter stops the threads of the pool, which would be waited for
                self._closing = weakref.finalize(self, _close, self.pool, os.getpid())
            return self.pool

    def close(self, pool: Pool | None) -> None:
        """Close `pool`, unless another thread has done so and opened the next one."""
        with self._lock:
            if pool is not None and pool is self.pool:
                self.pool = None
                self._closing()


def _close(pool: Pool, owner: int) -> None:
    if os.getpid() == owner:
        pool.close()


def _prepare(db: Connection, where: str) -> None:
    """Make the tables where they are missing."""
    (found,) = db.execute("SELECT to_regclass('tradewind_schema')").fetchone() or (None,)
    if found is None:
        with db.transaction():
            db.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            db.execute(_TABLES)
            db.execute(
                "INSERT INTO tradewind_schema SELECT %s "
                "WHERE NOT EXISTS (SELECT FROM tradewind_schema)",
                (SCHEMA,),
            )
    (version,) = db.execute("SELECT max(version) FROM tradewind_schema").fetchone() or (None,)
    if version is None:
        raise FormatError(
            f"{where}: the table tradewind_schema is empty, so its tables are damaged"
        )
    if version > SCHEMA:
        raise FormatError(
            f"{where} is from a newer version of Tradewind: its tables are of version {version}, "
            f"and this version reads {SCHEMA}"
        )


# too many connections; shut down, crashed, starting; idle too long; a standby being promoted
_PASSING = ("53300", "57P01", "57P02", "57P03", "57P05", "25006")


def _passing(error: psycopg.Error) -> bool:
    """Whether the same may work in a moment: the connection was lost, the server is starting or
    stopping or has no connection free, or it broke off one of two transactions."""
    state = error.sqlstate
    if state is None:  # not from the server
        return isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError))
    return state[:2] in ("08", "40") or state in _PASSING


def _options(url: str) -> dict[str, Any] | None:
    try:
        return conninfo_to_dict(url)
    except psycopg.Error:  # its message may show the password
        return None


def _secrets(url: str, given: dict[str, Any]) -> list[str]:
    """What no message may show: the password, and what may be a part of one that was not written
    as %-codes and so was taken for a host or a port."""
    raw = re.match(r"[^:]*://[^:]*:(.*)@", url)
    parts = [raw[1], *re.split(r"[@:/?#]", raw[1])] if raw else []
    parts += [unquote(part) for part in parts]
    parts += [str(given[key]) for key in ("password", "sslpassword") if key in given]
    return sorted({part for part in parts if len(part) > 1}, key=len, reverse=True)
