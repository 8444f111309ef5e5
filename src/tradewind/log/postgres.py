"""Studies in PostgreSQL: the store for many machines.

Every statement may be sent twice without harm: studies have random ids, and an append names its
positions and leaves a token in them. So whatever a lost connection left undecided is asked again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tradewind.log import checks
from tradewind.log.codec import encode
from tradewind.log.events import Created, Event
from tradewind.log.log import Conflict, Log
from tradewind.log.postgres_database import (
    Connection,
    Database,
    ForeignKeyViolation,
    UniqueViolation,
)
from tradewind.log.rows import decoded, fresh_id


class PostgresStore:
    """Logs in the PostgreSQL database at `url`, over at most `pool_size` connections a process.

    The tables, whose names begin with tradewind_, are created where they are missing. A pickled
    store carries its URL, password included, to other processes."""

    def __init__(self, url: str, *, pool_size: int = 4) -> None:
        self.database = Database(url, pool_size)

    def __repr__(self) -> str:
        return f"<store in {self.database.where}>"

    def create(self, name: str, first: Created) -> Log:
        name, text, study = checks.name(name), encode(first), fresh_id()

        def work(db: Connection) -> None:
            try:
                db.execute(
                    "WITH made AS ("
                    "INSERT INTO tradewind_studies (id, name) VALUES (%s, %s) RETURNING id) "
                    "INSERT INTO tradewind_events SELECT id, 0, %s, 0 FROM made",
                    (study, name, text),
                )
            except UniqueViolation:
                if _id(db, name) != study:
                    raise checks.exists(name, self.database.where) from None

        self.database.run(work)
        return PostgresLog(self.database, study, name)

    def open(self, name: str) -> Log:
        name = checks.name(name)
        return PostgresLog(self.database, self._found(name), name)

    def names(self) -> list[str]:
        query = "SELECT name FROM tradewind_studies ORDER BY place"
        return self.database.run(lambda db: [name for (name,) in db.execute(query)])

    def rename(self, name: str, new: str) -> None:
        name, new = checks.name(name), checks.name(new)
        study = self._found(name)

        def work(db: Connection) -> None:
            query = "UPDATE tradewind_studies SET name = %s WHERE id = %s"
            try:
                if not db.execute(query, (new, study)).rowcount:
                    raise checks.missing(name, self.database.where)
            except UniqueViolation:
                raise checks.exists(new, self.database.where) from None

        self.database.run(work)

    def delete(self, name: str) -> None:
        study = self._found(checks.name(name))
        query = "DELETE FROM tradewind_studies WHERE id = %s"
        self.database.run(lambda db: db.execute(query, (study,)))

    def close(self) -> None:
        """Close the connections of this process; whoever goes on opens new ones."""
        self.database.close()

    def _found(self, name: str) -> int:
        study = self.database.run(lambda db: _id(db, name))
        if study is None:
            raise checks.missing(name, self.database.where)
        return study


class PostgresLog:
    """The log of one study in PostgreSQL."""

    def __init__(self, database: Database, study: int, name: str) -> None:
        self._database, self._study, self._name = database, study, name
        self._seen = 1  # a length that the log has had: a first guess at where its end is

    def __repr__(self) -> str:
        return f"<log of study {self._name!r} in {self._database.where}>"

    def append(self, events: Sequence[Event], *, expected: int | None = None) -> int:
        texts, token = [encode(event) for event in events], fresh_id()
        at = self._seen if expected is None else expected
        while True:
            length = self._database.run(partial(self._insert, texts=texts, at=at, token=token))
            if length is None:
                self._seen = at + len(texts)
                return self._seen
            if expected is not None:
                raise Conflict(f"expected {expected} events, found {length}")
            at = length

    def _insert(self, db: Connection, texts: list[str], at: int, token: int) -> int | None:
        """Append at this position; if it is not the end, return what is."""
        try:
            values = (self._study, at, token, texts, at, self._study)
            if texts and db.execute(_INSERT, values).rowcount:
                return None
        except UniqueViolation:  # another writer was faster by less than a round trip
            pass
        except ForeignKeyViolation:
            raise checks.missing(self._name, self._database.where) from None
        row = db.execute(_LENGTH, (at, self._study)).fetchone()
        if row is None:
            raise checks.missing(self._name, self._database.where)
        length, writer = row
        done = length == at if not texts else writer == token  # by an attempt that lost its answer
        return None if done else int(length)

    def read(self, after: int) -> Sequence[Event]:
        after = checks.position(after)
        rows = self._database.run(lambda db: db.execute(_READ, (after, self._study)).fetchall())
        if not rows:
            raise checks.missing(self._name, self._database.where)
        if rows[0][0] is None:  # the study, and no event of it
            return []
        events = decoded(rows, after, f"study {self._name!r} in {self._database.where}")
        self._seen = after + len(events)
        return events

    def beat(self, trials: Sequence[int], seconds: float) -> frozenset[int]:
        trials, seconds = checks.lease(trials, seconds)

        def work(db: Connection) -> frozenset[int]:
            if trials and seconds:
                try:
                    db.execute(_LEASE, (self._study, seconds, seconds, trials))
                except ForeignKeyViolation:
                    raise checks.missing(self._name, self._database.where) from None
            elif trials:
                db.execute(_GIVE_BACK, (self._study, trials))
            rows = db.execute(_LEASES, (self._study,)).fetchall()
            if not rows:
                raise checks.missing(self._name, self._database.where)
            leases = {
                trial: checks.stands(left, granted, 0.0)
                for trial, left, granted in rows
                if trial is not None  # the study, and no lease of it
            }
            if trials and not all(leases.values()):
                db.execute(_SWEEP, (self._study, checks.SLACK))
            return frozenset(trial for trial, stands in leases.items() if stands)

        return self._database.run(work)


# Refused unless the log has exactly the length that its first position says.
_INSERT = """
INSERT INTO tradewind_events (study, position, event, token)
SELECT %s, %s + n - 1, event, %s
FROM unnest(%s::text[]) WITH ORDINALITY AS given (event, n)
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
FROM unnest(%s::bigint[]) AS given (trial)
ON CONFLICT (study, trial) DO UPDATE SET until = excluded.until, seconds = excluded.seconds
"""
_GIVE_BACK = "DELETE FROM tradewind_leases WHERE study = %s AND trial = ANY(%s::bigint[])"
_LEASES = """
SELECT trial, extract(epoch FROM until - clock_timestamp())::float8, seconds
FROM tradewind_studies LEFT JOIN tradewind_leases ON study = id
WHERE id = %s
"""
_SWEEP = """
DELETE FROM tradewind_leases WHERE study = %s AND NOT (
    until BETWEEN clock_timestamp() AND clock_timestamp() + make_interval(secs => seconds + %s)
)
"""


def _id(db: Connection, name: str) -> int | None:
    row = db.execute("SELECT id FROM tradewind_studies WHERE name = %s", (name,)).fetchone()
    return None if row is None else row[0]
