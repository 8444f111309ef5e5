"""An exception may arrive anywhere, as Ctrl-C does in a program that calls `ask` and `tell`: no
lock stays held, no transaction stays open, and events are written all together or not at all."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.inject import everywhere, in_another_thread
from tests.studies import created
from tradewind.log.events import Claimed, Event
from tradewind.log.log import Log, Store
from tradewind.log.memory import MemoryStore
from tradewind.log.postgres import PostgresStore
from tradewind.log.sqlite import SqliteStore

FIRST = created()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "memory":
        yield MemoryStore()
        return
    made: Any = (
        SqliteStore(tmp_path / "studies.db")
        if request.param == "sqlite"
        else PostgresStore(request.getfixturevalue("postgres_url"))
    )
    with closing(made):
        yield made


STEPS = {MemoryStore: 1, SqliteStore: 1, PostgresStore: 3}  # each needs a new connection there


def check_nothing_is_open(store: Store) -> None:
    if isinstance(store, SqliteStore):
        with closing(sqlite3.connect(store.file.path, timeout=0.0)) as db:
            db.execute("BEGIN IMMEDIATE")
    if isinstance(store, PostgresStore):
        query = "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"
        assert store.database.run(lambda db: db.execute(query).fetchone()) == (0,)


@pytest.mark.slow
def test_an_append_is_whole_wherever_an_exception_arrives(store: Store) -> None:
    log, number = store.create("study", FIRST), count()
    length = 1

    def append() -> None:
        n = next(number)
        log.append([Claimed(2 * n), Claimed(2 * n + 1)], lease=(7, 60.0))

    for at in everywhere(append, step=STEPS[type(store)]):
        events = in_another_thread(lambda: log.read(0))
        added = events[length:]
        assert len(added) in (0, 2), f"{added} after an exception at instruction {at}"
        length = in_another_thread(lambda: log.append([Claimed(10**6)]))
        late = length - 1 - len(events)  # a server may have been in the middle of it
        assert late in (0, 2), f"{late} events came late after an exception at instruction {at}"
        check_nothing_is_open(store)


@pytest.mark.slow
@pytest.mark.parametrize(
    "use",
    [
        pytest.param(lambda log: log.read(0), id="read"),
        pytest.param(lambda log: log.beat([0, 1], 60.0), id="beat"),
    ],
)
def test_a_log_can_be_used_wherever_an_exception_has_arrived(
    store: Store, use: Callable[[Log], object]
) -> None:
    log = store.create("study", FIRST)
    written: list[Event] = [FIRST, Claimed(0)]
    log.append(written[1:])
    for _ in everywhere(lambda: use(log), step=STEPS[type(store)]):
        assert list(in_another_thread(lambda: log.read(0))) == written
        assert in_another_thread(lambda: log.beat([7], 60.0)).keys() >= {7}
        check_nothing_is_open(store)


@pytest.mark.slow
def test_a_study_is_created_whole_wherever_an_exception_arrives(
    store: Store, tmp_path: Path
) -> None:
    """A store may be new, so that its tables are created as well."""
    number = count()

    def create() -> None:
        n = next(number)
        if isinstance(store, SqliteStore):
            store.close()
            store.file.path = str(tmp_path / f"{n // 5}.db")
        store.create(f"study {n}", FIRST, [Claimed(0)])

    step = 3 if isinstance(store, MemoryStore) else 11
    for at in everywhere(create, step=step):
        name = f"study {at // step}"
        if name in in_another_thread(store.names):
            log = in_another_thread(lambda name=name: store.open(name))  # type: ignore[misc]
            assert list(log.read(0)) == [FIRST, Claimed(0)]
        else:
            in_another_thread(lambda name=name: store.create(name, FIRST))  # type: ignore[misc]
        check_nothing_is_open(store)
