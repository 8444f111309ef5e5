"""Where a round happens: a folder of its own, and a store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests import postgres
from tests.postgres import Server


@dataclass(frozen=True)
class Site:
    """A folder, the storage in it or in a server, and that server."""

    folder: Path
    storage: str
    server: Server | None = None

    @property
    def database(self) -> Server:
        """The server; an error if the store is a file."""
        if self.server is None:
            raise ValueError("this round needs a PostgreSQL server, but got a site without one")
        return self.server


@contextmanager
def site(store: str, folder: Path) -> Iterator[Site]:
    """A place with an empty store, SQLite or PostgreSQL."""
    if store == "SQLite":
        yield Site(folder, str(folder / "runs.db"))
        return
    programs = postgres.programs()
    if programs is None:
        raise RuntimeError("PostgreSQL's server programs are not installed")
    server = Server(programs, connections=200)
    try:
        yield Site(folder, server.url(), server)
    finally:
        server.remove()
