"""Studies in PostgreSQL: the store for many machines.

Every statement can safely be sent twice: studies have random ids, and an append states its
positions and stores a random token with them. So if a connection is lost before the answer arrives,
the statement is simply sent again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial

from tradewind import checks
from tradewind.checks import or_none
from tradewind.log.chain import START, Head, check_same, seal
from tradewind.log.codec import encode
from tradewind.log.events import Created, Event
from tradewind.log.log import (
    LEASE_SLACK,
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
from tradewind.log.postgres_database import (
    Connection,
    Database,
    ForeignKeyViolation,
    UniqueViolation,
)
from tradewind.log.rows import Row, first_row, read_rows
from tradewind.log.stalls import Stall, Stalls


class PostgresStore:
    """A store in the PostgreSQL database at `url`, with up to `pool_size` connections per process.

    It creates its tables, whose names begin with tradewind_, if they are missing. `patience` says
    how long a server that does not answer is tried again, in seconds or as text such as "10m". By
    default it is 15 seconds, or one if the server was never reached, because the address may simply
    be wrong. A pickled store contains its URL, including the password."""

    def __init__(
        self, url: str, *, pool_size: int = 4, patience: float | str | None = None
    ) -> None:
        self.database = Database(url, pool_size, or_none(checks.patience, "patience", patience))

    def __repr__(self) -> str:
        return f"<store in {self.database.where}>"

    def create(self, name: str, first: Created, later: Sequence[Event] = ()) -> Log:
        name, study = checks.study_name(name), random_id()
        lines, head = seal(START, [encode(event) for event in (first, *later)])

        def work(db: Connection) -> None:
            try:
                db.execute(
                    "WITH made AS ("
                    "INSERT INTO tradewind_studies (id, name) VALUES (%s, %s) RETURNING id) "
                    "INSERT INTO tradewind_events SELECT id, n - 1, event, 0 "
                    "FROM made, unnest(%s::text[]) WITH ORDINALITY AS new (event, n)",
                    (study, name, lines),
                )
            except UniqueViolation:
                if _find_id(db, name) != study:
                    raise already_exists(name, self.database.where) from None

        self.database.run(work)
        return PostgresLog(self.database, study, name, head)

    def open(self, name: str) -> Log:
        name = checks.study_name(name)
        return PostgresLog(self.database, self._find(name), name)

    def names(self) -> list[str]:
        query = "SELECT name FROM tradewind_studies ORDER BY place"
        return self.database.run(lambda db: [name for (name,) in db.execute(query)])

    def rename(self, name: str, new: str) -> None:
        name, new = checks.study_name(name), checks.study_name(new)
        study = self._find(name)

        def work(db: Connection) -> None:
            query = "UPDATE tradewind_studies SET name = %s WHERE id = %s"
            try:
                if not db.execute(query, (new, study)).rowcount:
                    raise not_found(name, self.database.where)
            except UniqueViolation:
                raise already_exists(new, self.database.where) from None

        self.database.run(work)

    def delete(self, name: str) -> None:
        study = self._find(checks.study_name(name))
        query = "DELETE FROM tradewind_studies WHERE id = %s"
        self.database.run(lambda db: db.execute(query, (study,)))

    def close(self) -> None:
        """Close the connections of this process. The next use opens new ones."""
        self.database.close()

    def _find(self, name: str) -> int:
        study = self.database.run(lambda db: _find_id(db, name))
        if study is None:
            raise not_found(name, self.database.where)
        return study


class PostgresLog:
    """The log of one study in PostgreSQL."""

    def __init__(self, database: Database, study: int, name: str, head: Head = START) -> None:
        self._database, self._study, self._name = database, study, name
        self._head = head
        self._place = f"study {name!r} in {database.where}"
        self._stalls = PerProcess(Stalls)

    def __repr__(self) -> str:
        return f"<log of {self._place}>"

    @property
    def id(self) -> int:
        return self._study

    @property
    def spool(self) -> tuple[str, ...]:
        return spool_folders()

    def append(
        self,
        events: Sequence[Event],
        *,
        expected: int | None = None,
        lease: tuple[int, float] | None = None,
    ) -> int:
        bodies, token = [encode(event) for event in events], random_id()
        leased = None if lease is None else checks.lease([lease[0]], lease[1])
        while True:
            head = self._head_at(expected)
            lines, end = seal(head, bodies)
            insert = partial(self._insert, lines=lines, head=head, token=token, lease=leased)
            with self._stalls.value.watch():
                length = self._database.run(insert)
            if length is None:
                self._head = end
                return end.length
            if expected is not None:
                raise _conflict(expected, length)
            self.read(length)

    def _head_at(self, expected: int | None) -> Head:
        """The head to append after, which must have the expected length."""
        head = self._head
        if expected is not None and expected != head.length:
            self.read(max(expected, head.length))
            head = self._head
            if expected != head.length:
                raise _conflict(expected, head.length)
        return head

    def _insert(
        self,
        db: Connection,
        lines: list[str],
        head: Head,
        token: int,
        lease: tuple[list[int], float] | None,
    ) -> int | None:
        """Append after `head` and return None, or return the length of the log if it is another."""
        trials, seconds = lease or ([], 0.0)
        values = {
            "study": self._study,
            "at": head.length,
            "line": head.line,
            "token": token,
            "lines": lines,
            "trials": trials,
            "seconds": seconds,
        }
        try:
            if lines and db.execute(_APPEND, values).rowcount:
                return None
        except UniqueViolation:  # another writer was faster, between our check and our insert
            pass
        except ForeignKeyViolation:
            raise gone(self._name, self._database.where) from None
        length, _, writer = self._end(db, head)
        # With our own token, an earlier attempt has succeeded, and only its answer was lost.
        is_done = writer == token if lines else length == head.length
        return None if is_done else int(length)

    def _end(self, db: Connection, head: Head) -> tuple[int, str | None, int | None]:
        """The length of the log, the line where `head` ends, and the token of the one after it.
        `LogDiverged` unless that line is the one that was read."""
        row = db.execute(_END, {"study": self._study, "at": head.length}).fetchone()
        if row is None:
            raise gone(self._name, self._database.where)
        length, line, writer = row
        check_same(head, length, line, self._place)
        return length, line, writer

    def read(self, after: int) -> Sequence[Event]:
        after, head = checks.position(after), self._head

        def work(db: Connection) -> list[Row]:
            rows = db.execute(_READ, (first_row(head, after), self._study)).fetchall()
            if not rows:
                raise gone(self._name, self._database.where)
            return [] if rows[0][0] is None else rows  # None: there is no event from there on

        with self._stalls.value.watch(write=False):
            rows = self._database.run(work)
        events, self._head = read_rows(rows, head, after, self._place)
        return events

    def reopen(self) -> Log:
        def find(db: Connection) -> int | None:
            query = "SELECT id FROM tradewind_studies WHERE id = %s"
            by_id = db.execute(query, (self._study,)).fetchone()
            return self._study if by_id else _find_id(db, self._name)

        study = self._database.run(find)
        if study is None:
            raise not_found(self._name, self._database.where)
        return PostgresLog(self._database, study, self._name)

    def beat(self, trials: Sequence[int], seconds: float) -> Mapping[int, float]:
        (trials, seconds), head = checks.lease(trials, seconds), self._head
        values = {"study": self._study, "trials": trials, "seconds": seconds}

        def work(db: Connection) -> list[tuple[int | None, float, float, float]]:
            self._end(db, head)
            if trials:
                try:
                    db.execute(_LEASE if seconds else _END_LEASES, values)
                except ForeignKeyViolation:
                    raise gone(self._name, self._database.where) from None
            return db.execute(_LEASES, values).fetchall()

        with self._stalls.value.watch(write=bool(trials)) as latest_stalls:
            rows = self._database.run(work)
            if not rows:
                raise gone(self._name, self._database.where)
            stalls = latest_stalls()  # and a restart of the server is one for all drivers
            leased = {
                trial: max(left, 0.0)
                for trial, left, length, up in rows
                if trial is not None  # the study exists, but has no lease
                if is_leased(left, length, 0.0, [*stalls, Stall(math.inf, up)])
            }
            lost = [row[0] for row in rows if row[0] not in {None, *leased}]
            if trials and lost:
                self._database.run(lambda db: db.execute(_DELETE_EXPIRED, (self._study, lost)))
            return leased


# Inserts nothing unless the log ends with the line that was read last. It is one statement, so
# that a client that stops in the middle leaves no transaction open, which would hold its locks.
_APPEND = """
WITH added AS (
    INSERT INTO tradewind_events (study, position, event, token)
    SELECT %(study)s, %(at)s + n - 1, event, %(token)s
    FROM unnest(%(lines)s::text[]) WITH ORDINALITY AS new (event, n)
    WHERE (%(at)s, %(line)s) = (
        SELECT position + 1, event FROM tradewind_events
        WHERE study = %(study)s ORDER BY position DESC LIMIT 1
    )
    RETURNING position
), leased AS (
    INSERT INTO tradewind_leases (study, trial, until, seconds)
    SELECT %(study)s, trial, clock_timestamp() + make_interval(secs => %(seconds)s::float8),
        %(seconds)s
    FROM unnest(%(trials)s::bigint[]) AS new (trial) WHERE EXISTS (SELECT FROM added)
    ON CONFLICT (study, trial) DO UPDATE SET until = excluded.until, seconds = excluded.seconds
)
SELECT FROM added
"""
_END = """
SELECT (SELECT coalesce(max(position) + 1, 0) FROM tradewind_events WHERE study = id),
    (SELECT event FROM tradewind_events WHERE study = id AND position = %(at)s - 1),
    (SELECT token FROM tradewind_events WHERE study = id AND position = %(at)s)
FROM tradewind_studies WHERE id = %(study)s
"""
_READ = """
SELECT position, event
FROM tradewind_studies LEFT JOIN tradewind_events ON study = id AND position >= %s
WHERE id = %s ORDER BY position
"""
_LEASE = """
INSERT INTO tradewind_leases (study, trial, until, seconds)
SELECT %(study)s, trial, clock_timestamp() + make_interval(secs => %(seconds)s::float8), %(seconds)s
FROM unnest(%(trials)s::bigint[]) AS added (trial)
ON CONFLICT (study, trial) DO UPDATE SET until = excluded.until, seconds = excluded.seconds
"""
_END_LEASES = """
DELETE FROM tradewind_leases WHERE study = %(study)s AND trial = ANY(%(trials)s::bigint[])
"""
_LEASES = """
SELECT trial, extract(epoch FROM until - clock_timestamp())::float8, seconds,
    extract(epoch FROM clock_timestamp() - pg_postmaster_start_time())::float8
FROM tradewind_studies LEFT JOIN tradewind_leases ON study = id
WHERE id = %(study)s
"""
# Not those that somebody has renewed meanwhile.
_DELETE_EXPIRED = f"""
DELETE FROM tradewind_leases WHERE study = %s AND trial = ANY(%s::bigint[]) AND NOT (
    until BETWEEN clock_timestamp()
    AND clock_timestamp() + make_interval(secs => seconds + {LEASE_SLACK})
)
"""


def _conflict(expected: int, length: int) -> Conflict:
    return Conflict(f"expected {expected} events, but there are {length}")


def _find_id(db: Connection, name: str) -> int | None:
    row = db.execute("SELECT id FROM tradewind_studies WHERE name = %s", (name,)).fetchone()
    return None if row is None else row[0]
