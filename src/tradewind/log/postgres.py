"""Studies in PostgreSQL: the store for many machines.

Every statement can safely be sent twice: studies have random ids, and an append states its
positions and stores a random token with them. So if a connection is lost before the answer arrives,
the statement is simply sent again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tradewind import checks
from tradewind.log.codec import decode_rows, encode
from tradewind.log.events import Created, Event
from tradewind.log.log import (
    LEASE_SLACK,
    Conflict,
    Log,
    already_exists,
    is_leased,
    not_found,
    random_id,
)
from tradewind.log.postgres_database import (
    Connection,
    Database,
    ForeignKeyViolation,
    UniqueViolation,
)


class PostgresStore:
    """A store in the PostgreSQL database at `url`, with up to `pool_size` connections per process.

    It creates its tables, whose names begin with tradewind_, if they are missing. A pickled store
    contains its URL, including the password."""

    def __init__(self, url: str, *, pool_size: int = 4) -> None:
        self.database = Database(url, pool_size)

    def __repr__(self) -> str:
        return f"<store in {self.database.where}>"

    def create(self, name: str, first: Created) -> Log:
        name, text, study = checks.study_name(name), encode(first), random_id()

        def work(db: Connection) -> None:
            try:
                db.execute(
                    "WITH made AS ("
                    "INSERT INTO tradewind_studies (id, name) VALUES (%s, %s) RETURNING id) "
                    "INSERT INTO tradewind_events SELECT id, 0, %s, 0 FROM made",
                    (study, name, text),
                )
            except UniqueViolation:
                if _find_id(db, name) != study:
                    raise already_exists(name, self.database.where) from None

        self.database.run(work)
        return PostgresLog(self.database, study, name)

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

    def __init__(self, database: Database, study: int, name: str) -> None:
        self._database, self._study, self._name = database, study, name
        self._seen = 1  # a past length of the log: the first guess for where it ends

    def __repr__(self) -> str:
        return f"<log of study {self._name!r} in {self._database.where}>"

    def append(
        self,
        events: Sequence[Event],
        *,
        expected: int | None = None,
        lease: tuple[int, float] | None = None,
    ) -> int:
        texts, token = [encode(event) for event in events], random_id()
        leased = None if lease is None else checks.lease([lease[0]], lease[1])
        at = self._seen if expected is None else expected
        while True:
            insert = partial(self._insert, texts=texts, at=at, token=token, lease=leased)
            length = self._database.run(insert)
            if length is None:
                self._seen = at + len(texts)
                return self._seen
            if expected is not None:
                raise Conflict(f"expected {expected} events, but there are {length}")
            at = length

    def _insert(
        self,
        db: Connection,
        texts: list[str],
        at: int,
        token: int,
        lease: tuple[list[int], float] | None,
    ) -> int | None:
        """Append at position `at` and return None, or return the length of the log if it is
        another."""
        try:
            values = (self._study, at, token, texts, at, self._study)
            with db.transaction():
                if texts and db.execute(_INSERT, values).rowcount:
                    if lease is not None:
                        trials, seconds = lease
                        db.execute(_LEASE, (self._study, seconds, seconds, trials))
                    return None
        except UniqueViolation:  # another writer was faster, between our check and our insert
            pass
        except ForeignKeyViolation:
            raise not_found(self._name, self._database.where) from None
        row = db.execute(_LENGTH, (at, self._study)).fetchone()
        if row is None:
            raise not_found(self._name, self._database.where)
        length, writer = row
        # With our own token, an earlier attempt has succeeded, and only its answer was lost.
        is_done = writer == token if texts else length == at
        return None if is_done else int(length)

    def read(self, after: int) -> Sequence[Event]:
        after = checks.position(after)
        rows = self._database.run(lambda db: db.execute(_READ, (after, self._study)).fetchall())
        if not rows:
            raise not_found(self._name, self._database.where)
        if rows[0][0] is None:  # the study exists, but has no event from there on
            return []
        events = decode_rows(rows, after, f"study {self._name!r} in {self._database.where}")
        self._seen = after + len(events)
        return events

    def beat(self, trials: Sequence[int], seconds: float) -> frozenset[int]:
        trials, seconds = checks.lease(trials, seconds)

        def work(db: Connection) -> frozenset[int]:
            if trials and seconds:
                try:
                    db.execute(_LEASE, (self._study, seconds, seconds, trials))
                except ForeignKeyViolation:
                    raise not_found(self._name, self._database.where) from None
            elif trials:
                db.execute(_END_LEASES, (self._study, trials))
            rows = db.execute(_LEASES, (self._study,)).fetchall()
            if not rows:
                raise not_found(self._name, self._database.where)
            leased = {
                trial: is_leased(left, length, 0.0)
                for trial, left, length in rows
                if trial is not None  # the study exists, but has no lease
            }
            if trials and not all(leased.values()):
                db.execute(_DELETE_EXPIRED, (self._study, LEASE_SLACK))
            return frozenset(trial for trial, holds in leased.items() if holds)

        return self._database.run(work)


# Inserts nothing unless the log ends exactly where the new events begin.
_INSERT = """
INSERT INTO tradewind_events (study, position, event, token)
SELECT %s, %s + n - 1, event, %s
FROM unnest(%s::text[]) WITH ORDINALITY AS added (event, n)
WHERE %s = (SELECT coalesce(max(position) + 1, 0) FROM tradewind_events WHERE study = %s)
"""
_LENGTH = """
SELECT (SELECT coalesce(max(position) + 1, 0) FROM tradewind_events WHERE study = id), token
FROM tradewind_studies LEFT JOIN tradewind_events ON study = id AND position = %s
WHERE id = %s
"""
_READ = """
SELECT position, event
FROM tradewind_studies LEFT JOIN tradewind_events ON study = id AND position >= %s
WHERE id = %s ORDER BY position
"""
_LEASE = """
INSERT INTO tradewind_leases (study, trial, until, seconds)
SELECT %s, trial, clock_timestamp() + make_interval(secs => %s::float8), %s
FROM unnest(%s::bigint[]) AS added (trial)
ON CONFLICT (study, trial) DO UPDATE SET until = excluded.until, seconds = excluded.seconds
"""
_END_LEASES = "DELETE FROM tradewind_leases WHERE study = %s AND trial = ANY(%s::bigint[])"
_LEASES = """
SELECT trial, extract(epoch FROM until - clock_timestamp())::float8, seconds
FROM tradewind_studies LEFT JOIN tradewind_leases ON study = id
WHERE id = %s
"""
_DELETE_EXPIRED = """
DELETE FROM tradewind_leases WHERE study = %s AND NOT (
    until BETWEEN clock_timestamp() AND clock_timestamp() + make_interval(secs => seconds + %s)
)
"""


def _find_id(db: Connection, name: str) -> int | None:
    row = db.execute("SELECT id FROM tradewind_studies WHERE name = %s", (name,)).fetchone()
    return None if row is None else row[0]
