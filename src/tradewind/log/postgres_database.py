"""One PostgreSQL database: its address, its tables, and requests that survive a lost connection."""

from __future__ import annotations

import itertools
import math
import os
import re
import time
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias, TypeVar
from urllib.parse import unquote

from tradewind import interrupts
from tradewind.checks import suggest
from tradewind.errors import FormatError, StorageError, missing
from tradewind.log.lock import Lock, locked
from tradewind.log.log import Conflict
from tradewind.log.perprocess import PerProcess
from tradewind.output import logger as _logger

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
    from psycopg.errors import ForeignKeyViolation, UniqueViolation
    from psycopg.pq import Conninfo
    from psycopg_pool import ConnectionPool

    from tradewind.log.postgres_connection import SILENCE, Impatient
except ImportError as error:
    raise missing("PostgreSQL", "'psycopg[binary,pool]'") from error

__all__ = ["Connection", "Database", "ForeignKeyViolation", "UniqueViolation"]

Connection: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"
Pool: TypeAlias = "ConnectionPool[Impatient]"
T = TypeVar("T")

SCHEMA = 1  # raise it when the tables change
PATIENCE = 15.0  # seconds for which a server that does not answer is tried again
FIRST_PATIENCE = 1.0  # before it was ever reached, when the address may simply be wrong
PAUSES = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)  # seconds between attempts; the last is repeated
_UNNOTICED = 0.5  # a longer pause is logged

_DEFAULTS = {
    "fallback_application_name": "tradewind",
    "keepalives_idle": "30",  # notice within a minute that the server is gone
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
_ALWAYS = {"client_encoding": "UTF8"}  # events and names are text, whatever the URL says
_LOCK = 0x54574E44  # "TWND": the advisory lock while tables are created
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
    """The database at `url`, with up to `pool_size` connections per process. A server that does not
    answer is tried again for `patience` seconds.

    `where` names it in messages, without the password. A pickled copy contains the password."""

    def __init__(self, url: str, pool_size: int, patience: float | None = None) -> None:
        if not isinstance(url, str):
            raise TypeError(f"the URL of a database must be text, but got a {type(url).__name__}")
        if not re.match(r"postgres(ql)?://", url):
            raise ValueError("the URL of a database must begin with postgresql://")
        if pool_size < 1:
            raise ValueError(f"pool_size must be at least 1, but got {pool_size!r}")
        options = _parse(url)
        self._patience = patience
        self._silence = SILENCE if patience is None else min(max(patience, 1.0), SILENCE)
        defaults = {**_DEFAULTS, "connect_timeout": math.ceil(self._silence)}
        self._conninfo = make_conninfo("", **{**defaults, **options, **_ALWAYS})
        self._secrets = _secrets(url, options)
        host = f"{options.get('host') or 'localhost'}:{options.get('port') or 5432}"
        self.where = self._hide_secrets(f"PostgreSQL at {host}, database {options.get('dbname')!r}")
        self._pool_size = pool_size
        self._lock = Lock()
        self._handle = PerProcess(_Handle)

    def run(self, work: Callable[[Connection], T]) -> T:
        """Call `work` with a connection and return its result.

        If the connection is lost, `work` is called again. It may have succeeded before, with only
        the answer lost, so calling it twice must have the same effect as calling it once."""
        handle, began = self._handle.value, time.monotonic()
        pauses = itertools.chain(PAUSES, itertools.repeat(PAUSES[-1]))
        while True:
            pool = None
            try:
                pool = self._open()
                return self._call(work, pool)
            except psycopg.Error as error:
                may_pass = _may_pass(error)
                reason = " ".join(self._hide_secrets(str(error)).split()) or type(error).__name__
            except (Conflict, StorageError):  # what `work` has found out
                raise
            except BaseException:  # such as Ctrl-C, which may have lost a connection of the pool
                self._close(pool)
                raise
            self._close(pool)
            # Raised out here, without the original error, which could show the password.
            if not may_pass:
                raise StorageError(f"{self.where} cannot be used: {reason}")
            pause = next(pauses)
            if time.monotonic() + pause > min(
                began + self._patience_now(), interrupts.give_up_at()
            ):
                unsure = "; the last request may or may not have been carried out"
                more = unsure if handle.was_reached else ""
                raise StorageError(f"{self.where} cannot be reached{more}: {reason}")
            if pause > _UNNOTICED:
                _logger.warning("%s: trying again in %.2g s: %s", self.where, pause, reason)
            interrupts.pause(pause)

    def _call(self, work: Callable[[Connection], T], pool: Pool) -> T:
        db = pool.getconn()
        try:
            return work(db)
        except psycopg.Error:
            self._close(pool)  # first, because an open pool would connect again when it gets `db`
            raise
        finally:
            pool.putconn(db)

    def _patience_now(self) -> float:
        if self._patience is not None:
            return self._patience
        return PATIENCE if self._handle.value.was_reached else FIRST_PATIENCE

    def close(self) -> None:
        """Close the connections of this process. The next use opens new ones."""
        self._close(self._handle.value.pool)

    @locked
    def _open(self) -> Pool:
        """The pool of this process."""
        handle = self._handle.value
        if handle.pool is None:
            handle.pool = self._connect()
            handle.was_reached = True
            # Runs before the interpreter ends, which would wait for the threads of the pool.
            handle.close_pool = weakref.finalize(handle, _close, handle.pool, os.getpid())
        return handle.pool

    def _connect(self) -> Pool:
        # The first connection raises its errors here; a pool would only log them in its threads.
        with Impatient.connect(self._conninfo, autocommit=True) as db:
            db.silence = self._silence
            _prepare(db, self.where)
        return ConnectionPool(
            self._conninfo,
            connection_class=Impatient,
            configure=partial(_set_silence, seconds=self._silence),
            timeout=self._silence,
            # No prepared statements: a connection pooler such as PgBouncer may not support them.
            kwargs={"autocommit": True, "prepare_threshold": None},
            min_size=0,
            max_size=self._pool_size,
            num_workers=1,
            open=True,
        )

    @locked
    def _close(self, pool: Pool | None) -> None:
        """Close `pool`, unless another thread already has and perhaps opened the next one."""
        handle = self._handle.value
        if pool is not None and pool is handle.pool:
            handle.pool = None
            handle.close_pool()

    def _hide_secrets(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


class _Handle:
    """The connections of one process."""

    def __init__(self) -> None:
        self.pool: Pool | None = None
        self.close_pool: Callable[[], Any] = lambda: None
        self.was_reached = False  # ever, by this process


def _set_silence(db: Impatient, seconds: float) -> None:
    db.silence = seconds


def _close(pool: Pool, owner: int) -> None:
    if os.getpid() == owner:
        pool.close()


def _prepare(db: Connection, where: str) -> None:
    """Create the tables if they are missing, and check their version."""
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
            f"{where} is damaged: the table tradewind_schema must hold a version, but it is empty"
        )
    if version > SCHEMA:
        raise FormatError(
            f"{where} is from a newer version of Tradewind: its tables have version {version}, "
            f"but this version reads {SCHEMA}; update Tradewind"
        )


# too many connections; shutting down, crashed, starting; idle too long; a standby being promoted
_PASSING_STATES = ("53300", "57P01", "57P02", "57P03", "57P05", "25006")


def _may_pass(error: psycopg.Error) -> bool:
    """Whether the same request may succeed in a moment: the connection was lost, the server is
    starting or stopping or has no free connection, or two transactions were in each other's way."""
    state = error.sqlstate
    if state is None:  # the error does not come from the server
        return isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError))
    return state[:2] in ("08", "40") or state in _PASSING_STATES


def _parse(url: str) -> dict[str, Any]:
    """The parts of a URL. If it cannot be read, the message shows at most the name of an option:
    libpq takes a password with special characters for other parts of the URL."""
    try:
        options = conninfo_to_dict(url)
        in_host, in_name = ("@" in str(options.get(key)) for key in ("host", "dbname"))
        at = url.count("@")
        if not (in_host and at > 1) and not (in_name and at and "user" not in options):
            return options
    except psycopg.Error:  # not shown: its message may contain the password
        query = url.partition("?")[2]
        known = {"patience", *(option.keyword.decode() for option in Conninfo.get_defaults())}
        names = (part.partition("=")[0] for part in query.split("&"))
        wrong = next((name for name in names if name not in known), None)
        if wrong and not re.search("@|password", query):
            close = suggest(wrong, known)
            raise ValueError(f"a PostgreSQL URL has no option {wrong!r}{close}") from None
    raise ValueError(
        "the URL of a database must be postgresql://user:password@host:port/database, but this one "
        "cannot be read; in a password, write special characters as %-codes: @ as %40, / as %2F, "
        ": as %3A, ? as %3F, # as %23, % as %25"
    )


def _secrets(url: str, options: dict[str, Any]) -> list[str]:
    """What no message may show: the password, and every part of it. A password with special
    characters that are not %-codes may have been parsed as a host or a port."""
    raw = re.match(r"[^:]*://[^:]*:(.*)@", url)
    parts = [raw[1], *re.split(r"[@:/?#]", raw[1])] if raw else []
    parts += [unquote(part) for part in parts]
    parts += [str(options[key]) for key in ("password", "sslpassword") if key in options]
    return sorted({part for part in parts if len(part) > 1}, key=len, reverse=True)
