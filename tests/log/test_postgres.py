"""PostgreSQL: lost connections, what is in the database, and processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar
from urllib.parse import quote

import pytest

pytest.importorskip("psycopg", reason="psycopg is not installed")

import psycopg

import tradewind as tw
from tests import processes
from tests.pages import ROOT, blocks
from tests.postgres import Server
from tests.processes import BATCH, batch, whole_batches
from tests.samples import FIRST, LATER
from tests.studies import create
from tradewind.errors import FormatError, NoSuchStudy, StorageError
from tradewind.log import postgres_database
from tradewind.log.events import Claimed
from tradewind.log.log import Conflict, Log
from tradewind.log.postgres import PostgresStore
from tradewind.log.postgres_database import SCHEMA, Connection, Database

T = TypeVar("T")


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many quick attempts, because these tests break connections often."""
    monkeypatch.setattr(postgres_database, "PAUSES", (0.01,))


@pytest.fixture
def store(postgres_url: str) -> Iterator[PostgresStore]:
    store = PostgresStore(postgres_url)
    yield store
    store.close()


@pytest.fixture
def log(store: PostgresStore) -> Log:
    return store.create("study", FIRST)


def schema(url: str) -> str:
    return url.rpartition("%3D")[2]


# ---- lost connections ----


def cut(server: Server) -> int:
    """End every connection but this one, and return how many there were."""
    return len(
        server.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
    )


def test_a_lost_connection_is_opened_again(
    postgres_server: Server, store: PostgresStore, log: Log
) -> None:
    for number, work in enumerate(
        (
            lambda: log.read(0),
            lambda: log.append([Claimed(0)]),
            lambda: log.append([Claimed(1)], expected=2),
            lambda: log.beat([0], 3600),
            lambda: log.beat([], 0),
            store.names,
            lambda: store.open("study"),
            lambda: store.create("other", FIRST),
            lambda: store.rename("other", "another"),
            lambda: store.delete("another"),
        )
    ):
        assert cut(postgres_server) >= 1, number
        work()
    assert list(log.read(0)) == [FIRST, Claimed(0), Claimed(1)]
    assert store.names() == ["study"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT], ids=["orderly", "crashed"])
def test_a_server_may_be_restarted(postgres_server: Server, log: Log, how: signal.Signals) -> None:
    log.append([Claimed(0)])
    log.beat([0], 3600)
    postgres_server.stop(how)
    postgres_server.start()
    assert log.append([Claimed(1)], expected=2) == 3
    assert list(log.read(0)) == [FIRST, Claimed(0), Claimed(1)]
    assert log.beat([], 0).keys() == {0}


@pytest.mark.parametrize("expect", [True, False], ids=["expected", "anywhere"])
def test_each_append_is_written_once_however_often_connections_break(
    postgres_server: Server, log: Log, expect: bool
) -> None:
    count = 100
    failures: list[BaseException] = []

    def write() -> None:
        try:
            length = 1
            for number in range(count):
                length = log.append(batch(number), expected=length if expect else None)
        except BaseException as error:
            failures.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    cuts = 0
    while writer.is_alive():
        cuts += cut(postgres_server)
        time.sleep(0.01)
    writer.join()
    assert failures == []
    assert cuts > 0
    assert list(log.read(1)) == [event for number in range(count) for event in batch(number)]


def test_writers_continue_while_the_server_restarts(postgres_server: Server, log: Log) -> None:
    writers = [processes.started(processes.append_batches, Now(), log, 60) for _ in range(3)]
    for how in (signal.SIGINT, signal.SIGQUIT):
        length = len(log.read(0))
        while any(writer.is_alive() for writer in writers) and len(log.read(0)) < length + 30:
            time.sleep(0.002)
        postgres_server.stop(how)
        postgres_server.start()
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    events = list(log.read(1))
    assert whole_batches(events)
    assert len(events) == 3 * 60 * BATCH
    assert len({repr(event) for event in events}) == 3 * 60  # none of them twice


class Now:
    """A barrier for one."""

    def wait(self) -> None: ...


class Forgetful(Database):
    """Loses the answers to its next requests, after the server has done what was asked; `meanwhile`
    happens before it asks again."""

    lost = 0
    meanwhile: Callable[[], Any] | None = None

    def run(self, work: Callable[[Connection], T]) -> T:
        def once(db: Connection) -> T:
            answer = work(db)
            if self.lost > 0:
                self.lost -= 1
                if self.meanwhile is not None:
                    self.meanwhile()
                raise psycopg.OperationalError("server closed the connection unexpectedly")
            return answer

        return super().run(once)


@pytest.fixture
def forgetful(postgres_url: str) -> Iterator[Forgetful]:
    database = Forgetful(postgres_url, 4)
    yield database
    database.close()


@pytest.fixture
def other(store: PostgresStore, forgetful: Forgetful) -> PostgresStore:
    """A store on a forgetful database, in which the other one has made a study."""
    store.create("study", FIRST)
    other = PostgresStore("postgresql://")
    other.database = forgetful
    return other


@pytest.mark.parametrize("expected", [1, None])
def test_an_append_whose_answer_was_lost_is_written_once(
    store: PostgresStore, other: PostgresStore, forgetful: Forgetful, expected: int | None
) -> None:
    log = other.open("study")
    forgetful.lost = 2
    assert log.append([Claimed(0)] * 2, expected=expected) == 3
    assert list(store.open("study").read(1)) == [Claimed(0)] * 2


def test_an_append_whose_answer_was_lost_is_recognized_after_others_have_written(
    store: PostgresStore, other: PostgresStore, forgetful: Forgetful
) -> None:
    log, mine = other.open("study"), store.open("study")
    log.read(0)
    forgetful.lost, forgetful.meanwhile = 1, lambda: mine.append([Claimed(1)])
    assert log.append([Claimed(0)], expected=1) == 2
    assert list(mine.read(1)) == [Claimed(0), Claimed(1)]


def test_the_same_event_from_another_writer_is_still_a_conflict(
    store: PostgresStore, other: PostgresStore, forgetful: Forgetful
) -> None:
    log, mine = other.open("study"), store.open("study")
    mine.append([Claimed(0)], expected=1)
    forgetful.lost = 1  # of the refusal
    with pytest.raises(Conflict):
        log.append([Claimed(0)], expected=1)
    assert list(mine.read(1)) == [Claimed(0)]


def test_a_lost_answer_does_not_change_what_a_request_does(
    store: PostgresStore, other: PostgresStore, forgetful: Forgetful
) -> None:
    forgetful.lost = 1
    other.create("new", FIRST)
    forgetful.lost = 2
    other.rename("new", "newer")
    assert store.names() == ["study", "newer"]
    forgetful.lost = 2
    other.delete("newer")
    assert store.names() == ["study"]
    forgetful.lost = 1
    assert other.open("study").beat([1], 3600).keys() == {1}


def test_a_server_that_stays_away_is_an_error_that_can_be_retried(
    postgres_server: Server, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_database, "PATIENCE", 0.02)
    postgres_server.stop()
    try:
        for refused in (
            lambda: log.read(0),
            lambda: log.append([Claimed(0)], expected=1),
            lambda: log.beat([1], 10),
        ):
            with pytest.raises(StorageError, match=r"cannot be reached; .* may or may not"):
                refused()
    finally:
        postgres_server.start()
    assert log.append([Claimed(0)], expected=1) == 2


def test_a_study_may_be_deleted_while_others_write(store: PostgresStore, log: Log) -> None:
    ended: list[BaseException] = []

    def write() -> None:
        try:
            processes.write_for_ever(log)
        except NoSuchStudy as error:
            ended.append(error)

    writers = [threading.Thread(target=write) for _ in range(3)]
    for writer in writers:
        writer.start()
    while len(log.read(0)) < 30:
        time.sleep(0.001)
    store.delete("study")
    for writer in writers:
        writer.join()
    assert len(ended) == 3
    assert store.database.run(lambda db: db.execute("SELECT FROM tradewind_events").rowcount) == 0


# ---- what is in the database ----


def test_the_tables_have_a_version(store: PostgresStore) -> None:
    store.create("study", FIRST)
    query = "SELECT version FROM tradewind_schema"
    assert store.database.run(lambda db: db.execute(query).fetchall()) == [(SCHEMA,)]


def test_text_is_utf_8_whatever_the_url_says(postgres_url: str) -> None:
    store = PostgresStore(f"{postgres_url}&client_encoding=SQL_ASCII")
    assert store.create("größe", FIRST).read(0) == [FIRST]
    assert store.names() == ["größe"]
    store.close()


def test_newer_tables_are_refused(
    store: PostgresStore, postgres_server: Server, postgres_url: str
) -> None:
    store.create("study", FIRST)
    store.close()
    postgres_server.execute(f"UPDATE {schema(postgres_url)}.tradewind_schema SET version = 99")
    with pytest.raises(FormatError, match="is from a newer version of Tradewind"):
        store.names()


def test_tables_without_a_version_are_refused(
    store: PostgresStore, postgres_server: Server, postgres_url: str
) -> None:
    store.names()
    store.close()
    postgres_server.execute(f"DELETE FROM {schema(postgres_url)}.tradewind_schema")
    with pytest.raises(FormatError, match="damaged"):
        store.names()


def test_roles_may_do_what_the_page_about_postgresql_says(postgres_server: Server) -> None:
    page = (ROOT / "docs" / "how-to" / "postgresql.md").read_text(encoding="utf-8")
    setup, grants = (block.code for block in blocks(page) if block.kind == "sql")
    for statement in setup.split(";\n"):
        postgres_server.execute(statement)
    place = f"@/studies?host={quote(str(postgres_server.folder))}"
    owner, driver, reader = (
        f"postgresql://studies_{role}{place}" for role in ("owner", "driver", "reader")
    )
    assert tw.list_studies(owner) == []
    with psycopg.connect(owner) as db:
        db.execute(grants.encode())
    study = create(storage=driver)
    study.optimize(lambda trial: trial.params["x"], n_trials=2)
    study.pause()
    assert tw.load_study(reader).best == study.best
    for refused in (
        lambda: tw.load_study(reader).resume(),
        lambda: tw.load_study(reader).enqueue(study.best.params),
        lambda: tw.delete_study("study", storage=driver),
        lambda: PostgresStore(driver).rename("study", "mine"),
    ):
        with pytest.raises(StorageError, match="permission denied"):
            refused()
    tw.delete_study("study", storage=owner)


@pytest.mark.parametrize("damage", ["{}", "", "7", '{"format":1,"event":"claimed"'])
def test_a_damaged_event_is_named(store: PostgresStore, log: Log, damage: str) -> None:
    log.append(LATER)
    query = "UPDATE tradewind_events SET event = %s WHERE position = 3"
    store.database.run(lambda db: db.execute(query, (damage,)))
    expected = r"study .study. in PostgreSQL at .* is damaged: event 3 "
    with pytest.raises(FormatError, match=expected):
        log.read(0)


def test_a_missing_event_is_named(store: PostgresStore, log: Log) -> None:
    log.append(LATER)
    store.database.run(lambda db: db.execute("DELETE FROM tradewind_events WHERE position = 3"))
    with pytest.raises(FormatError, match="event 3 is missing"):
        log.read(0)


def test_expired_leases_are_deleted(store: PostgresStore, log: Log) -> None:
    log.beat([1, 2], 0.1)
    store.database.run(
        lambda db: db.execute("UPDATE tradewind_leases SET until = until - interval '2 hours'")
    )
    assert log.beat([], 0).keys() == frozenset()
    assert log.beat([3], 3600).keys() == {3}
    query = "SELECT trial FROM tradewind_leases"
    assert store.database.run(lambda db: db.execute(query).fetchall()) == [(3,)]


def test_a_clock_that_was_set_back_ends_every_lease(store: PostgresStore, log: Log) -> None:
    log.beat([1], 10)
    store.database.run(
        lambda db: db.execute("UPDATE tradewind_leases SET until = until + interval '1 day'")
    )
    assert log.beat([], 0).keys() == frozenset()


# ---- processes ----


@pytest.mark.skipif(os.name != "posix", reason="needs fork")
def test_a_fork_opens_its_own_connections(log: Log) -> None:
    def child() -> None:
        assert list(log.read(0)) == [FIRST]
        log.append([Claimed(1)], expected=1)

    assert processes.forked(child) == 0
    assert log.append([Claimed(2)], expected=2) == 3
    assert list(log.read(1)) == [Claimed(1), Claimed(2)]


def test_a_program_that_closes_nothing_ends(postgres_url: str) -> None:
    code = (
        "import sys; from tradewind.log.postgres import PostgresStore; "
        "store = PostgresStore(sys.argv[1]); print(store.names())"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, postgres_url],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")
