"""Which store is meant, and logs as files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.events import created, later
from tests.samples import FIRST, LATER
from tradewind.errors import FormatError, StorageError
from tradewind.log.codec import encode
from tradewind.log.events import Event
from tradewind.log.log import Store
from tradewind.log.memory import MemoryStore
from tradewind.log.sqlite import SqliteStore
from tradewind.log.stores import VARIABLE, open_store, read_lines, write_lines, write_text


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, and nothing said about storage."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)
    return tmp_path


# ---- which store ----


def sqlite_path(storage: Any) -> str:
    store = open_store(storage)
    assert isinstance(store, SqliteStore)
    return store.file.path


def test_none_is_a_new_store_in_memory() -> None:
    assert isinstance(open_store(None), MemoryStore)
    assert open_store(None) is not open_store(None)


def test_none_is_what_the_environment_says(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "runs.db")
    assert sqlite_path(None) == str(here / "runs.db")
    monkeypatch.setenv(VARIABLE, "")
    assert isinstance(open_store(None), MemoryStore)


def test_what_is_given_counts_more_than_the_environment(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "runs.db")
    assert sqlite_path("other.db") == str(here / "other.db")


@pytest.mark.parametrize(
    "storage",
    ["runs.db", "./runs.db", Path("runs.db"), "sqlite:///runs.db", "SQLite:///runs.db"],
    ids=str,
)
def test_a_path_is_sqlite(here: Path, storage: Any) -> None:
    assert sqlite_path(storage) == str(here / "runs.db")
    assert list(here.iterdir()) == []  # until there is a study


def test_an_absolute_path_is_sqlite(tmp_path: Path) -> None:
    assert sqlite_path(f"sqlite:///{tmp_path}/a.db") == str(tmp_path / "a.db")
    assert sqlite_path(str(tmp_path / "a.db")) == str(tmp_path / "a.db")


def test_a_url_may_have_codes_and_a_file_any_name(here: Path) -> None:
    assert sqlite_path("sqlite:///a%20b%3F.db") == str(here / "a b?.db")
    assert sqlite_path("a%20b?.db") == str(here / "a%20b?.db")
    assert sqlite_path("./run:1.db") == str(here / "run:1.db")


@pytest.mark.parametrize(("query", "level"), [("full", 2), ("NORMAL", 1)])
def test_a_url_says_how_safely_is_written(query: str, level: int) -> None:
    store = open_store(f"sqlite:///runs.db?synchronous={query}")
    assert isinstance(store, SqliteStore)
    store.create("study", FIRST)
    with store.file.session() as db:
        assert db.execute("PRAGMA synchronous").fetchone() == (level,)
    store.close()


def test_a_store_is_itself() -> None:
    store: Store = MemoryStore()
    assert open_store(store) is store


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "PostgreSQL"])
def test_a_url_is_postgres(scheme: str) -> None:
    postgres = pytest.importorskip("tradewind.log.postgres")
    assert isinstance(open_store(f"{scheme}://user@host/database"), postgres.PostgresStore)


@pytest.mark.parametrize(
    "storage",
    [
        "postgresq://user:secret@host/database",
        "postgresql:/user:secret@host/database",
        "postgresql:user:secret@host",
        "mysql://user:secret@host/database",
        "redis://:secret@host",
        "http://host",
        "file:runs.db",
        "sqlite:runs.db",
        "sqlite:/runs.db",
        "sqlite://runs.db",
        "sqlite://",
        "sqlite:///",
        "sqlite:///?synchronous=full",
        "sqlite3:///runs.db",
        "sqlite:///runs.db?synchronous=off",
        "sqlite:///runs.db?synchronous=",
        "sqlite:///runs.db?mode=ro",
        "sqlite:///:memory:",
        ":memory:",
        "runs:db",
        "",
        Path("postgresql://user:secret@host/database"),
        Path("sqlite:///runs.db"),
    ],
    ids=str,
)
def test_what_is_misspelt_is_refused_and_makes_no_file(here: Path, storage: Any) -> None:
    with pytest.raises(ValueError, match=r"SQLite|sqlite|URL|NORMAL") as error:
        open_store(storage)
    assert "secret" not in str(error.value)
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("storage", [0, 1.5, b"runs.db", ["runs.db"], object(), True])
def test_what_is_no_storage_is_refused(storage: Any) -> None:
    with pytest.raises(TypeError, match="a storage is a path"):
        open_store(storage)


# ---- files ----


@given(created, st.lists(later, max_size=5))
def test_a_file_gives_back_what_was_written(first: Event, others: list[Event]) -> None:
    path = Path("study.jsonl")
    write_lines(path, [first, *others])
    assert repr(read_lines(path)) == repr([first, *others])


def test_a_file_has_a_line_for_every_event(here: Path) -> None:
    write_lines("study.jsonl", [FIRST, *LATER])
    lines = Path("study.jsonl").read_bytes().split(b"\n")
    assert lines.pop() == b""
    assert lines == [encode(event).encode() for event in [FIRST, *LATER]]
    assert [file.name for file in here.iterdir()] == ["study.jsonl"]


def test_a_file_cut_anywhere_is_a_whole_beginning_or_refused() -> None:
    whole = [FIRST, *LATER[:4]]
    write_lines("study.jsonl", whole)
    text = Path("study.jsonl").read_bytes()
    ends = [i for i, byte in enumerate(text) if byte == ord("\n")]
    for cut in range(len(text)):
        Path("cut.jsonl").write_bytes(text[:cut])
        full = sum(end < cut for end in ends)
        if cut in ends or cut - 1 in ends:  # at the end of a line
            assert read_lines("cut.jsonl") == whole[: full + (cut in ends)]
        else:
            with pytest.raises(FormatError, match=f"line {full + 1}|is empty"):
                read_lines("cut.jsonl")


LINE = encode(LATER[2])


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        ([], "is empty"),
        ([LINE], "line 1: the first event"),
        ([encode(FIRST), LINE, encode(FIRST)], "line 3: the first event"),
        ([encode(FIRST), ""], "line 2: an event cannot be read"),
        ([encode(FIRST), LINE, LINE[:-1], LINE], "line 3: an event cannot be read"),
        ([encode(FIRST), LINE + LINE], "line 2: an event cannot be read"),
        ([encode(FIRST), LINE.replace('"format":1', '"format":9')], "line 2: .* newer version"),
        ([encode(FIRST), '{"format":1,"event":"claimed"}'], "line 2: a 'claimed' event"),
        ([json.dumps([encode(FIRST)])], "line 1: an event cannot be read"),
        (["\ufeff" + encode(FIRST)], "line 1: an event cannot be read"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(lines: list[str], place: str) -> None:
    path = Path("study.jsonl")
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    with pytest.raises(FormatError, match=rf"study\.jsonl.*{place}"):
        read_lines(path)


@pytest.mark.parametrize("junk", [b"\xff\xfe\n", b"\x80\x04K*.\n", b"\0" * 100])
def test_a_file_of_something_else_is_refused(junk: bytes) -> None:
    Path("study.jsonl").write_bytes(encode(FIRST).encode() + b"\n" + junk)
    with pytest.raises(FormatError, match=r"study\.jsonl, line 2: "):
        read_lines("study.jsonl")


def test_a_file_that_is_not_there_is_an_error_of_storage(here: Path) -> None:
    with pytest.raises(StorageError, match=r"no\.jsonl cannot be read: No such file"):
        read_lines("no.jsonl")
    with pytest.raises(StorageError, match="cannot be read"):
        read_lines(here)
    with pytest.raises(StorageError, match="cannot be written: No such file"):
        write_lines(here / "no" / "study.jsonl", [FIRST])
    with pytest.raises(StorageError, match="it is not a file"):
        write_lines(here, [FIRST])


@pytest.mark.skipif(os.name != "posix", reason="needs devices")
def test_a_device_is_not_replaced_by_a_file() -> None:
    with pytest.raises(StorageError, match="it is not a file"):
        write_text("/dev/null", "text")


@pytest.mark.parametrize("events", [LATER, [FIRST, FIRST]], ids=["none", "two"])
def test_what_could_not_be_read_again_is_not_written(here: Path, events: list[Event]) -> None:
    with pytest.raises(ValueError, match="the first event, and no other, must be 'created'"):
        write_lines("study.jsonl", events)
    assert list(here.iterdir()) == []


def test_what_was_there_stays_until_all_is_written(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_lines("study.jsonl", [FIRST])

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match=r"study\.jsonl cannot be written: No space"):
        write_lines("study.jsonl", [FIRST, *LATER])
    assert read_lines("study.jsonl") == [FIRST]
    assert [file.name for file in here.iterdir()] == ["study.jsonl"]


def test_text_is_written_as_it_is() -> None:
    write_text("table.csv", "a,λ\r\n1,\ud800\n")
    assert Path("table.csv").read_bytes() == "a,λ\r\n1,\\ud800\n".encode()


@pytest.mark.skipif(os.name != "posix", reason="needs links")
def test_a_link_stays_a_link() -> None:
    os.symlink("study.jsonl", "link.jsonl")
    write_lines("link.jsonl", [FIRST])
    assert Path("link.jsonl").is_symlink()
    assert read_lines("study.jsonl") == [FIRST]
