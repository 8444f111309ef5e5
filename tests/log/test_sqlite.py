"""SQLite: which files it accepts, files that change while they are open, clocks and processes."""

from __future__ import annotations

import os
import pickle
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests import processes
from tests.log.test_memory import Clock
from tests.samples import FIRST, LATER
from tradewind.errors import FormatError, NoSuchStudy, StorageError
from tradewind.log.events import Claimed
from tradewind.log.sqlite import SqliteStore
from tradewind.log.sqlite_safety import APPLICATION, SCHEMA

posix = pytest.mark.skipif(os.name != "posix", reason="needs fork and permissions")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "studies.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(path)
    yield store
    store.close()


def pragma(path: Path, name: str, value: int) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA {name} = {value}")


# ---- files of other programs ----


def foreign(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE trials (value REAL)")


def foreign_with_an_id(path: Path) -> None:
    foreign(path)
    pragma(path, "application_id", 7)


def foreign_with_a_version(path: Path) -> None:
    pragma(path, "user_version", 3)


def foreign_with_a_write_ahead_log(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE studies (id)")


def text(path: Path) -> None:
    path.write_text("dear diary\n" * 1000)


def a_little(path: Path) -> None:
    path.write_text("x")


def pickled(path: Path) -> None:
    path.write_bytes(pickle.dumps(list(range(1000))))


def lines(path: Path) -> None:
    path.write_text('{"format":1,"event":"claimed","number":0}\n')


def newer(path: Path) -> None:
    store = SqliteStore(path)
    store.create("study", FIRST)
    store.close()
    pragma(path, "user_version", SCHEMA + 1)


@pytest.mark.parametrize(
    "make",
    [
        foreign,
        foreign_with_an_id,
        foreign_with_a_version,
        foreign_with_a_write_ahead_log,
        text,
        a_little,
        pickled,
        lines,
        newer,
    ],
    ids=lambda make: make.__name__,
)
def test_a_file_of_another_program_is_refused_and_not_changed(
    path: Path, store: SqliteStore, make: Callable[[Path], None]
) -> None:
    make(path)
    before, beside = path.read_bytes(), sorted(path.parent.iterdir())
    for refused in (
        lambda: store.create("study", FIRST),
        lambda: store.open("study"),
        store.names,
        lambda: store.delete("study"),
    ):
        with pytest.raises(FormatError, match=r"studies\.db") as error:
            refused()
        assert ("newer version of Tradewind" in str(error.value)) == (make is newer)
    store.close()
    assert path.read_bytes() == before
    assert sorted(path.parent.iterdir()) == beside


def test_an_empty_file_can_become_a_store(path: Path, store: SqliteStore) -> None:
    path.touch()
    store.create("study", FIRST)
    assert store.names() == ["study"]


def test_a_file_says_that_tradewind_created_it(path: Path, store: SqliteStore) -> None:
    store.create("study", FIRST)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA application_id").fetchone() == (APPLICATION,)
        assert db.execute("PRAGMA user_version").fetchone() == (SCHEMA,)
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_folder_is_refused(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    with pytest.raises(StorageError, match="it is a folder"):
        store.create("study", FIRST)
    with pytest.raises(StorageError, match="it is a folder"):
        store.names()


def test_a_missing_folder_is_named_and_not_created(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "no" / "such" / "studies.db")
    with pytest.raises(StorageError, match=r"there is no folder .*such"):
        store.create("study", FIRST)
    with pytest.raises(StorageError, match=r"there is no folder .*such"):
        store.names()
    assert list(tmp_path.iterdir()) == []


def test_only_a_new_study_creates_a_file(path: Path, store: SqliteStore) -> None:
    assert store.names() == []
    with pytest.raises(NoSuchStudy):
        store.open("study")
    with pytest.raises(NoSuchStudy):
        store.delete("study")
    assert not path.exists()


@posix
def test_a_place_without_write_permission_is_refused() -> None:
    with tempfile.TemporaryDirectory() as folder:  # where an ordinary user can look
        os.chmod(folder, 0o555)
        processes.together(processes.be_refused, [(SqliteStore(f"{folder}/studies.db"), folder)])
        os.chmod(folder, 0o755)
        with closing(sqlite3.connect(f"{folder}/studies.db")):
            os.chmod(f"{folder}/studies.db", 0o444)
        os.chmod(folder, 0o555)
        processes.together(processes.be_refused, [(SqliteStore(f"{folder}/studies.db"), folder)])
        os.chmod(folder, 0o755)


@pytest.mark.parametrize("name", ["a?b", "a#b", "a%20b", "a b", "λ", "a&mode=ro"])
def test_a_file_may_have_any_name(tmp_path: Path, name: str) -> None:
    with closing(SqliteStore(tmp_path / name)) as store:
        store.create("study", FIRST)
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_a_relative_path_does_not_follow_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = SqliteStore("studies.db")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    store.create("study", FIRST)
    store.close()
    assert (tmp_path / "studies.db").exists()


@pytest.mark.parametrize("synchronous", ["normal", "FULL"])
def test_the_synchronous_level_is_an_option(path: Path, synchronous: str) -> None:
    with closing(SqliteStore(path, synchronous=synchronous)) as store:
        store.create("study", FIRST)
        (level,) = store.file.run(lambda db: db.execute("PRAGMA synchronous").fetchone())
    assert level == {"normal": 1, "FULL": 2}[synchronous]


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="NORMAL or FULL"):
        SqliteStore("studies.db", synchronous="OFF")
    with pytest.raises(ValueError, match="must have a path"):
        SqliteStore("")
    with pytest.raises(ValueError, match="use storage=None"):
        SqliteStore(":memory:")
    with pytest.raises(TypeError, match="must be text"):
        SqliteStore(b"studies.db")  # type: ignore[arg-type]


# ---- a file that changes while it is open ----


def test_a_log_whose_file_was_deleted_says_so(path: Path, store: SqliteStore) -> None:
    log = store.create("study", FIRST)
    for file in path.parent.iterdir():
        file.unlink()
    with pytest.raises(NoSuchStudy, match="there is no file"):
        log.append([Claimed(0)])
    assert not path.exists()


def test_a_log_whose_file_was_replaced_does_not_write_to_another_study(
    path: Path, store: SqliteStore
) -> None:
    log = store.create("study", FIRST)
    for file in path.parent.iterdir():
        file.unlink()
    with closing(SqliteStore(path)) as other:
        new = other.create("study", FIRST)
        with pytest.raises(NoSuchStudy, match="'study'"):
            log.append([Claimed(0)])
        new.append([Claimed(1)])
        assert list(store.open("study").read(0)) == [FIRST, Claimed(1)]


def test_a_write_ahead_log_without_its_file_is_ignored(path: Path, store: SqliteStore) -> None:
    store.create("study", FIRST)
    path.unlink()
    with closing(SqliteStore(path)) as other:
        other.create("other", FIRST)
        assert other.names() == ["other"]


@pytest.mark.parametrize(
    "damage", ["{}", "", "NULL", "7", '{"format":1,"event":"claimed"', b"\xff\xfe"]
)
def test_a_damaged_event_is_named(path: Path, store: SqliteStore, damage: str | bytes) -> None:
    log = store.create("study", FIRST)
    log.append(LATER)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        raw = damage if isinstance(damage, bytes) else damage.encode()
        db.execute("UPDATE events SET event = CAST(? AS TEXT) WHERE position = 3", (raw,))
    with pytest.raises(FormatError, match=r"study 'study' in .*studies\.db is damaged: event 3 "):
        log.read(0)


def test_a_missing_event_is_named(path: Path, store: SqliteStore) -> None:
    log = store.create("study", FIRST)
    log.append(LATER)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("DELETE FROM events WHERE position = 3")
    with pytest.raises(FormatError, match=r"study 'study' in .*: event 3 is missing"):
        log.read(0)
    with pytest.raises(FormatError, match="event 3 is missing"):
        log.read(3)


# ---- clocks ----


def leased(path: Path) -> tuple[Clock, SqliteStore]:
    store = SqliteStore(path, clock=(clock := Clock()))
    log = store.create("study", FIRST)
    log.beat([1], 10)
    clock.now += 5
    log.beat([2], 60)
    return clock, store


@pytest.mark.parametrize(
    ("later", "standing"), [(5.0, {1, 2}), (5.5, {2}), (60.0, {2}), (61.0, set())]
)
def test_a_lease_ends_after_its_seconds(path: Path, later: float, standing: set[int]) -> None:
    clock, store = leased(path)
    clock.now += later
    assert store.open("study").beat([], 0).keys() == standing
    store.close()


@pytest.mark.parametrize("now", [0.0, 3.0, 900.0, 1e9])
def test_a_reboot_ends_every_lease(path: Path, now: float) -> None:
    clock, store = leased(path)
    store.close()
    clock.now = now
    log = store.open("study")
    assert log.beat([], 0).keys() == frozenset()
    assert log.beat([3], 10).keys() == {3}
    clock.now = 1005.0  # expired leases were deleted and do not come back
    assert log.beat([], 0).keys() <= {3}
    store.close()


def test_a_clock_that_jumps_back_does_not_prolong_a_lease(path: Path) -> None:
    clock, store = leased(path)
    clock.now -= 1  # trial 2 now has 61 of its 60 seconds left: its lease no longer counts
    assert store.open("study").beat([], 0).keys() == {1}
    store.close()


# ---- processes ----


@posix
def test_a_fork_opens_its_own_connection(store: SqliteStore) -> None:
    log = store.create("study", FIRST)

    def child() -> None:
        assert list(log.read(0)) == [FIRST]
        log.append([Claimed(1)], expected=1)

    assert processes.forked(child) == 0
    assert log.append([Claimed(2)], expected=2) == 3
    assert list(log.read(1)) == [Claimed(1), Claimed(2)]


@posix
def test_a_fork_does_not_wait_for_a_lock_of_its_parent(store: SqliteStore) -> None:
    log = store.create("study", FIRST)
    inside, leave = threading.Event(), threading.Event()

    def hold(db: sqlite3.Connection) -> None:
        inside.set()
        leave.wait()

    thread = threading.Thread(target=store.file.run, args=(hold,))
    thread.start()
    inside.wait()
    try:
        assert processes.forked(lambda: log.append([Claimed(1)]) and None) == 0
    finally:
        leave.set()
        thread.join()
    assert list(log.read(1)) == [Claimed(1)]


def test_processes_that_create_one_file_at_once_all_succeed(tmp_path: Path) -> None:
    stores = [SqliteStore(tmp_path / f"{number}.db") for number in range(30)]
    processes.together(processes.create_in_each, [(stores,)] * 8)
    for store in stores:
        assert len(store.names()) == 8
        store.close()
