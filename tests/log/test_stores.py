"""Which store a user means."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.samples import FIRST
from tradewind.log.log import Store
from tradewind.log.memory import MemoryStore
from tradewind.log.sqlite import SqliteStore
from tradewind.log.stores import VARIABLE, open_store


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, and no storage in the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)
    return tmp_path


def sqlite_path(storage: Any) -> str:
    store = open_store(storage)
    assert isinstance(store, SqliteStore)
    return store.file.path


def test_none_is_a_new_store_in_memory() -> None:
    assert isinstance(open_store(None), MemoryStore)
    assert open_store(None) is not open_store(None)


def test_none_is_the_storage_in_the_environment(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "runs.db")
    assert sqlite_path(None) == str(here / "runs.db")
    monkeypatch.setenv(VARIABLE, "")
    assert isinstance(open_store(None), MemoryStore)


def test_an_argument_counts_more_than_the_environment(
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


def test_a_url_has_percent_codes_and_a_file_may_have_any_name(here: Path) -> None:
    assert sqlite_path("sqlite:///a%20b%3F.db") == str(here / "a b?.db")
    assert sqlite_path("a%20b?.db") == str(here / "a%20b?.db")
    assert sqlite_path("./user=1.db") == str(here / "user=1.db")
    assert sqlite_path("./run:1.db") == str(here / "run:1.db")


@pytest.mark.parametrize(("query", "level"), [("full", 2), ("NORMAL", 1)])
def test_a_url_can_set_the_synchronous_level(query: str, level: int) -> None:
    store = open_store(f"sqlite:///runs.db?synchronous={query}")
    assert isinstance(store, SqliteStore)
    store.create("study", FIRST)
    assert store.file.run(lambda db: db.execute("PRAGMA synchronous").fetchone()) == (level,)
    store.close()


def test_a_store_is_returned_as_it_is() -> None:
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
def test_a_misspelt_storage_is_refused_and_creates_no_file(here: Path, storage: Any) -> None:
    with pytest.raises(ValueError, match=r"SQLite|sqlite|URL|NORMAL") as error:
        open_store(storage)
    assert "secret" not in str(error.value)
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(
    ("storage", "url"),
    [
        ("host=db.example port=5433 dbname=studies", "postgresql://user@db.example:5433/studies,"),
        ("dbname = 'my studies' user=me", "postgresql://me@host/database,"),
        ("host=/run/pg user=me password=secret", "postgresql://me:password@%2Frun%2Fpg/database,"),
    ],
)
def test_an_address_in_keywords_is_refused_with_the_url_to_write(
    here: Path, storage: str, url: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(f"given as a URL, here {url}")) as error:
        open_store(storage)
    assert "secret" not in str(error.value)
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("storage", [0, 1.5, b"runs.db", ["runs.db"], object(), True])
def test_an_object_that_is_no_storage_is_refused(storage: Any) -> None:
    with pytest.raises(TypeError, match="a storage is a path"):
        open_store(storage)
