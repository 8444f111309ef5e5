"""A server that is frozen, cut off or restarted, and a file that stays locked: requests end, and
leases get their time again."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgres import Server
from tests.processes import batch
from tests.proxy import Proxy
from tests.samples import FIRST
from tests.studies import Clock, environment
from tradewind.errors import NoSuchStudy, StorageError
from tradewind.log import stalls
from tradewind.log.events import Claimed
from tradewind.log.log import Store, is_leased
from tradewind.log.sqlite import SqliteStore
from tradewind.log.stalls import Stall, Stalls
from tradewind.log.stores import open_store


@pytest.fixture
def frozen(postgres_server: Server) -> Iterator[Server]:
    """The server, which goes on after the test in any case."""
    yield postgres_server
    postgres_server.thaw()


@pytest.fixture
def proxy(postgres_server: Server) -> Iterator[Proxy]:
    with Proxy(postgres_server.folder) as proxy:
        yield proxy


@pytest.fixture
def impatient(postgres_url: str) -> Iterator[Store]:
    store = open_store(f"{postgres_url}&patience=1s")
    yield store
    store.close()  # type: ignore[attr-defined]


# ---- frozen ----


def test_a_frozen_server_is_an_error_in_time_and_is_used_again_once_it_goes_on(
    frozen: Server, impatient: Store
) -> None:
    log = impatient.create("study", FIRST)
    frozen.freeze()
    for request in (
        lambda: log.append([Claimed(0)], expected=1),
        lambda: log.read(0),
        lambda: log.beat([0], 60.0),
        lambda: impatient.open("study"),
    ):
        with pytest.raises(StorageError, match=r"cannot be reached; .* may or may not"):
            request()
    frozen.thaw()
    log = impatient.open("study")
    length = len(log.read(0))  # the server may have carried out what it was asked before
    assert length in (1, 2)
    assert log.append([Claimed(1)], expected=length) == length + 1


def test_a_request_to_a_frozen_server_is_repeated_and_the_error_says_why(
    frozen: Server, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tradewind.log.postgres_database.SILENCE", 1.0)
    store = open_store(f"{postgres_url}&patience=1m")
    log = store.create("study", FIRST)
    frozen.freeze()
    thaw = threading.Timer(2.5, frozen.thaw)  # after the first attempt
    thaw.start()
    assert log.append([Claimed(0)]) == 2
    thaw.join()
    frozen.freeze()
    monkeypatch.setattr(store.database, "_patience", 1.0)  # type: ignore[attr-defined]
    with pytest.raises(StorageError, match="the server has not answered for 1 seconds"):
        log.read(0)
    store.close()  # type: ignore[attr-defined]


def test_a_frozen_server_stops_no_program_from_ending(frozen: Server, postgres_url: str) -> None:
    code = """
import sys
from tradewind.errors import StorageError
from tradewind.log.stores import open_store
store = open_store(sys.argv[1])
store.names()
print("ready", flush=True)
input()
try:
    store.names()
except StorageError as error:
    print("refused")
"""
    program = subprocess.Popen(
        [sys.executable, "-c", code, f"{postgres_url}&patience=1"],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "ready\n"
    frozen.freeze()
    out, _ = program.communicate("\n", timeout=60)
    assert (program.returncode, out) == (0, "refused\n")


def test_a_server_behind_a_network_that_drops_everything_is_an_error_in_time(
    proxy: Proxy, postgres_url: str
) -> None:
    store = open_store(f"{proxy.url(postgres_url)}&patience=1")
    log = store.create("study", FIRST)
    proxy.freeze()
    with pytest.raises(StorageError, match="cannot be reached"):
        log.append([Claimed(0)])
    proxy.thaw()
    length = len(log.read(0))
    assert log.append([Claimed(1)], expected=length) == length + 1
    store.close()  # type: ignore[attr-defined]


def test_a_server_that_was_never_reached_is_waited_for_if_one_asks_for_it(
    postgres_server: Server, postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    postgres_server.stop()
    threading.Timer(2.0, postgres_server.start).start()
    store = open_store(f"{postgres_url}&patience=60s")
    assert store.names() == []
    assert "database 'postgres': trying again in 0.8 s: connection" in caplog.text
    store.close()  # type: ignore[attr-defined]


# ---- cut ----


def test_appends_are_written_once_however_messages_are_cut(
    proxy: Proxy, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each connection is cut somewhere in a message, on its way there or back."""
    monkeypatch.setattr("tradewind.log.postgres_database.PAUSES", (0.001,))
    rng = random.Random(0)
    store = open_store(proxy.url(postgres_url))
    log, length = store.create("study", FIRST), 1
    for number in range(60):
        proxy.cut_after(rng.randrange(1500))
        length = log.append(batch(number), expected=length)
    assert proxy.cuts > 20
    assert list(log.read(1)) == [event for number in range(60) for event in batch(number)]
    store.close()  # type: ignore[attr-defined]


# ---- locked ----


def test_a_file_that_stays_locked_is_an_error_in_time(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    log = open_store(f"sqlite:///{path}?patience=0.05").create("study", FIRST)
    with sqlite3.connect(path, isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        for request in (lambda: log.append([Claimed(0)]), lambda: log.beat([0], 60.0)):
            with pytest.raises(StorageError, match=r"has kept it locked for 0\.05 seconds"):
                request()
        other.execute("ROLLBACK")
    other.close()
    assert log.append([Claimed(0)], expected=1) == 2


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:///{}?patience=soon",
        "sqlite:///{}?patience=-1",
        "postgresql://u@localhost/d?patience=soon",
        "postgresql://u@localhost/d?sslmode=disable&patience=",
    ],
)
def test_a_patience_is_a_duration(url: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="patience must be"):
        open_store(url.format(tmp_path / "runs.db"))


def test_the_patience_of_a_url_may_have_a_unit_and_never_reaches_the_server() -> None:
    urls = ["?patience=90", "?patience=1m30s&sslmode=disable", "?sslmode=disable&patience=1.5min"]
    for url in urls:
        store = open_store(f"postgresql://u@localhost/d{url}")
        assert store.database._patience == 90.0  # type: ignore[attr-defined]
        assert "patience" not in store.database._conninfo  # type: ignore[attr-defined]
        assert ("sslmode=disable" in store.database._conninfo) == ("sslmode" in url)  # type: ignore[attr-defined]


# ---- leases after a stall ----


def test_a_lease_that_was_good_before_a_stall_counts_for_its_time_again() -> None:
    stall = Stall(began=100.0, ended=10.0)
    now = 1000.0
    assert is_leased(950.0, 30.0, now, [Stall(5.0, 1.0), stall])  # it ended during the stall
    assert not is_leased(899.0, 30.0, now, [stall])  # it had ended before
    assert not is_leased(950.0, 9.0, now, [stall])  # there was time to renew it since
    assert not is_leased(950.0, 30.0, now)
    assert not is_leased(1031.0, 30.0, now, [stall])  # the clock was set back


def test_failures_and_long_waits_are_stalls_that_begin_at_the_last_good_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(0.0)
    monkeypatch.setattr(stalls, "time", type("Time", (), {"monotonic": staticmethod(clock)}))
    watched = Stalls()

    def ask(seconds: float, error: Exception | None = None, *, write: bool = True) -> list[Stall]:
        with watched.watch(write=write) as latest:
            clock.now += seconds
            if error is not None:
                raise error
            return latest()

    assert ask(0.5) == []
    clock.now = 10.0
    assert ask(0.5, write=False) == []
    assert ask(3.0) == [Stall(13.0, 0.0)]  # itself; the last good write was at 0.5
    assert ask(0.0) == [Stall(13.0, 0.0)]
    clock.now = 20.0
    for _ in range(2):  # two failures in a row are one stall
        with pytest.raises(StorageError):
            ask(1.0, StorageError("away"))
    assert ask(0.0) == [Stall(21.5, 8.5), Stall(8.5, 0.0)]
    with pytest.raises(NoSuchStudy):  # an answer, too
        ask(0.0, NoSuchStudy("deleted"))
    clock.now = 30.0
    assert ask(0.0) == [Stall(29.5, 16.5), Stall(16.5, 8.0)]
    for _ in range(100):  # a store that is always slow: a lease that has ended stays ended
        slow = ask(1.5)
    assert not is_leased(-60.0, 30.0, 0.0, slow)


def test_a_restarted_server_gives_leases_their_time_again(
    postgres_server: Server, impatient: Store
) -> None:
    log = impatient.create("study", FIRST)
    log.beat([1], 3600.0)
    log.beat([2], 0.001)
    expire = "UPDATE tradewind_leases SET until = until - make_interval(secs => seconds + 1)"
    impatient.database.run(lambda db: db.execute(expire))  # type: ignore[attr-defined]
    postgres_server.stop()
    postgres_server.start()
    assert impatient.open("study").beat([], 0.0).keys() == {1}
    assert impatient.open("study").beat([3], 60.0).keys() == {
        1,
        3,
    }  # this deletes those that have expired


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "postgres":
        return request.getfixturevalue("impatient")  # type: ignore[no-any-return]
    return SqliteStore(tmp_path / "runs.db")


def test_whoever_saw_a_stall_gives_leases_their_time_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, other = store.create("study", FIRST), store.open("study")
    other.beat([1], 2.0)
    log.beat([2], 3600.0)
    time.sleep(2.1)
    with monkeypatch.context() as patch:
        patch.setattr(stalls, "SLOW", -1.0)  # any request takes too long
        log.append([Claimed(0)])
    assert log.beat([2], 3600.0).keys() == {1, 2}
    assert other.beat([], 0.0).keys() == {2}  # this one saw nothing
    time.sleep(2.1)
    assert log.beat([], 0.0).keys() == {2}
