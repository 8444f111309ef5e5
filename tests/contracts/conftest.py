"""The stores that the contract tests run over. Add a new store to STORES."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tradewind.log.log import Store
from tradewind.log.memory import MemoryStore
from tradewind.log.sqlite import SqliteStore


def postgres(request: pytest.FixtureRequest) -> Store:
    url = request.getfixturevalue("postgres_url")  # first, because it skips without PostgreSQL
    from tradewind.log.postgres import PostgresStore

    return PostgresStore(url)


def sqlite(request: pytest.FixtureRequest) -> Store:
    folder: Path = request.getfixturevalue("tmp_path")
    return SqliteStore(folder / "studies.db")


STORES: dict[str, Callable[[pytest.FixtureRequest], Store]] = {
    "memory": lambda request: MemoryStore(),
    "sqlite": sqlite,
    "postgres": postgres,
}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """Each store in turn, empty."""
    yield from opened(request)


@pytest.fixture(params=[name for name in STORES if name != "memory"])
def shared(request: pytest.FixtureRequest) -> Iterator[Store]:
    """Each store that processes can share, empty."""
    yield from opened(request)


def opened(request: pytest.FixtureRequest) -> Iterator[Store]:
    store = STORES[request.param](request)
    yield store
    if hasattr(store, "close"):
        store.close()
