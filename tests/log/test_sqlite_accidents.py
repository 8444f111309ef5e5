"""What happens to a SQLite file when the disk is full, a process is killed, or a write is torn."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from random import Random

import pytest

from tests import processes
from tests.processes import BATCH, batch, whole_batches
from tests.samples import FIRST
from tradewind.errors import FormatError, StorageError
from tradewind.log.events import Claimed, Created, Event
from tradewind.log.sqlite import SqliteStore

posix = pytest.mark.skipif(os.name != "posix", reason="needs signals and limits of processes")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "studies.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(path)
    yield store
    store.close()


# ---- no room, no lock ----


def leave_room(store: SqliteStore, *, pages: int) -> None:
    """Let the file grow by so many pages at most."""

    def work(db: sqlite3.Connection) -> None:
        (used,) = db.execute("PRAGMA page_count").fetchone()
        db.execute(f"PRAGMA max_page_count = {used + pages}")

    store.file.run(work)


def test_a_full_disk_is_an_error_that_writes_nothing_and_can_be_retried(store: SqliteStore) -> None:
    log = store.create("study", FIRST)
    leave_room(store, pages=20)
    with pytest.raises(StorageError, match=r"studies\.db cannot be used: the disk is full"):
        processes.write_for_ever(log)
    length = len(log.read(0))
    assert length > 1
    assert whole_batches(list(log.read(1)))
    assert log.append(batch(0), expected=length) == length + BATCH  # there is room again


def test_a_full_disk_leaves_no_half_created_study(store: SqliteStore) -> None:
    store.create("study", FIRST)
    leave_room(store, pages=2)
    large = Created({"x": "x" * 100_000}, {}, {}, True, 0, 0.0)
    with pytest.raises(StorageError, match="the disk is full"):
        store.create("large", large)
    assert store.names() == ["study"]
    store.create("large", large)
    assert list(store.open("large").read(0)) == [large]


@posix
def test_a_disk_error_writes_nothing_and_can_be_retried(path: Path, store: SqliteStore) -> None:
    log = store.create("study", FIRST)
    with closing(sqlite3.connect(path)):  # keeps the write-ahead log where it is
        log.append(batch(0))
        processes.together(processes.meet_a_limit, [(log, f"{path}-wal")])
    assert list(log.read(1)) != batch(0)
    assert whole_batches(list(log.read(1)))


def test_a_lock_held_too_long_is_an_error_that_can_be_retried(path: Path) -> None:
    log = SqliteStore(path, patience=0.05).create("study", FIRST)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageError, match="another process has kept it locked"):
            log.append([Claimed(0)])
        assert list(log.read(0)) == [FIRST]  # readers do not wait
        assert log.beat([], 0).keys() == frozenset()
        other.execute("ROLLBACK")
    assert log.append([Claimed(0)]) == 2


def test_an_error_in_a_transaction_rolls_it_back(store: SqliteStore) -> None:
    log = store.create("study", FIRST)

    def work(db: sqlite3.Connection) -> None:
        db.execute("DELETE FROM events")
        raise KeyboardInterrupt

    with suppress(KeyboardInterrupt):
        store.file.run(work, write=True)
    assert list(log.read(0)) == [FIRST]
    assert log.append([Claimed(0)]) == 2


# ---- killed ----


@posix
def test_a_killed_writer_leaves_whole_appends(path: Path, store: SqliteStore) -> None:
    log = store.create("study", FIRST)
    length = 1
    for _ in range(10):
        writer = processes.started(processes.write_for_ever, log)
        while len(log.read(length)) < 5 * BATCH:
            time.sleep(0.001)
        assert writer.pid is not None
        os.kill(writer.pid, signal.SIGKILL)
        writer.join()
        assert writer.exitcode == -signal.SIGKILL
        events = list(log.read(1))
        assert whole_batches(events)
        length = log.append(batch(0))  # and the next may write
        assert length == 1 + len(events) + BATCH


@posix
def test_a_process_killed_while_creating_a_file_leaves_a_usable_one(tmp_path: Path) -> None:
    stores = [SqliteStore(tmp_path / f"{number}.db") for number in range(1000)]
    done = 0
    for _ in range(10):
        maker = processes.started(processes.create_for_ever, stores[done:])
        while not os.path.exists(stores[done + 5].file.path):
            time.sleep(0.001)
        assert maker.pid is not None
        os.kill(maker.pid, signal.SIGKILL)
        maker.join()
        while os.path.exists(stores[done].file.path):
            assert stores[done].names() in ([], ["study"])
            stores[done].create("other", FIRST)
            stores[done].close()
            done += 1


# ---- torn ----


def written(folder: Path) -> tuple[bytes, bytes, list[Event]]:
    """A file and its write-ahead log as they are on the disk, and the events in them."""
    with closing(SqliteStore(folder / "original.db")) as store:
        log = store.create("study", FIRST)
        for number in range(30):
            log.append(batch(number))
        database = (folder / "original.db").read_bytes()
        ahead = (folder / "original.db-wal").read_bytes()
        return database, ahead, list(log.read(0))


def recovered(folder: Path, database: bytes, ahead: bytes) -> list[Event]:
    """What a machine finds after a crash that left these files."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "studies.db").write_bytes(database)
    (folder / "studies.db-wal").write_bytes(ahead)
    with closing(SqliteStore(folder / "studies.db")) as store:
        if not store.names():
            return []
        log = store.open("study")
        events = list(log.read(0))
        assert log.append(batch(1), expected=len(events)) == len(events) + BATCH
        return events


def check(events: list[Event], whole: list[Event]) -> None:
    assert events == whole[: len(events)]
    assert whole_batches(events[1:])


def test_a_truncated_write_ahead_log_gives_whole_appends(tmp_path: Path) -> None:
    database, ahead, whole = written(tmp_path)
    random = Random(0)
    cuts = [*sorted(random.sample(range(len(ahead)), 60)), len(ahead) - 1, len(ahead)]
    lengths = []
    for cut in cuts:
        events = recovered(tmp_path / "crashed", database, ahead[:cut])
        check(events, whole)
        lengths.append(len(events))
    assert lengths == sorted(lengths)
    assert lengths[-1] == len(whole)
    assert len(set(lengths)) > 10  # the cuts made a difference


def test_a_damaged_file_is_a_storage_error(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "original.db")) as store:
        log = store.create("study", FIRST)
        for number in range(100):
            log.append(batch(number))
    original = (tmp_path / "original.db").read_bytes()
    random = Random(2)
    for _ in range(60):
        damaged = bytearray(original)
        start = random.randrange(len(original))
        damaged[start : start + 300] = random.randbytes(len(damaged[start : start + 300]))
        path = tmp_path / "damaged.db"
        path.write_bytes(damaged)
        with suppress(StorageError), closing(SqliteStore(path)) as store:
            store.open("study").read(0)  # unless the damage is in an unused place
        path.unlink()


def test_a_truncated_file_is_a_format_error(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "original.db")) as store:
        log = store.create("study", FIRST)
        for number in range(100):
            log.append(batch(number))
    original = (tmp_path / "original.db").read_bytes()
    path = tmp_path / "cut.db"
    path.write_bytes(original[: len(original) // 2])
    with closing(SqliteStore(path)) as store, pytest.raises(FormatError, match="cut"):
        store.open("study").read(0)
