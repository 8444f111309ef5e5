"""From what a user writes as `storage` to the store they mean."""

from __future__ import annotations

import os
import re
from typing import Any
from urllib.parse import parse_qsl, quote, unquote

from tradewind.log.log import Store
from tradewind.log.memory import MemoryStore

VARIABLE = "TRADEWIND_STORAGE"

_RULE = (
    "a storage is a path or sqlite:///path for SQLite, postgresql://user:password@host/database, "
    "or None for memory"
)
_KEYWORDS = ("host", "hostaddr", "dbname", "user", "password", "service")
_METHODS = ("create", "open", "names", "rename", "delete")


def open_store(storage: str | os.PathLike[str] | Store | None) -> Store:
    """The store that `storage` means:

    | storage                                     | store                                   |
    |---------------------------------------------|-----------------------------------------|
    | a path, as text or as a `Path`              | SQLite                                  |
    | `sqlite:///relative`, `sqlite:////absolute` | SQLite; special characters as %-codes   |
    | ... with `?synchronous=full` (or `normal`)  | SQLite; full also survives a power cut  |
    | `postgresql://...`, `postgres://...`        | PostgreSQL                              |
    | a URL with `?patience=10m`                  | one that does not answer is tried so long |
    | a `Store`                                   | the same store                          |
    | None                                        | TRADEWIND_STORAGE if it is set, or memory |
    """
    if storage is None:
        storage = os.environ.get(VARIABLE) or None
    if storage is None:
        return MemoryStore()
    if isinstance(storage, str):
        return _from_text(storage)
    if isinstance(storage, os.PathLike):
        return _from_path(storage)
    if all(callable(getattr(storage, name, None)) for name in _METHODS):
        return storage
    raise TypeError(f"{_RULE}, or a Store, but got {storage!r}")


def _from_text(storage: str) -> Store:
    # A word before a colon is always read as a scheme: a misspelt URL must not create a file.
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):", storage)
    kind = scheme[1].lower() if scheme else ""
    if kind in ("postgresql", "postgres"):
        from tradewind.log.postgres import PostgresStore  # needs an extra

        url, patience = _split_patience(storage)
        return PostgresStore(f"{kind}{url[len(kind) :]}", patience=patience)
    if kind == "sqlite":
        return _from_sqlite_url(storage[len("sqlite:") :])
    if kind:  # the rest may hold a password
        raise ValueError(
            f"{_RULE}, but got {kind}:...; if that is the name of a file, write ./{kind}:..."
        )
    if not storage:
        raise ValueError(f"{_RULE}, but got an empty text")
    refuse_keywords(storage)
    return _from_path(storage)


def refuse_keywords(storage: str) -> None:
    """`ValueError` if this is how PostgreSQL's own tools write an address: `host=db dbname=...`."""
    given = dict(re.findall(r"(\w+)\s*=\s*('(?:[^'\\]|\\.)*'|\S*)", storage))
    if not re.match(r"\s*\w+\s*=", storage) or given.keys().isdisjoint(_KEYWORDS):
        return
    known = {name: quote(value, safe="") for name, value in given.items() if "'" not in value}
    user = known.get("user", "user") + ":password" * ("password" in given)
    place = known.get("host", "host") + (f":{known['port']}" if "port" in known else "")
    raise ValueError(
        "the address of a PostgreSQL database is given as a URL, here "
        f"postgresql://{user}@{place}/{known.get('dbname', 'database')}, with special characters "
        "as %-codes; for a file of this name, put ./ before it"
    )


def _from_path(path: str | os.PathLike[str], **options: Any) -> Store:
    from tradewind.log.sqlite import SqliteStore  # studies in memory do not need it

    if re.match(r"(sqlite|postgres(ql)?):", str(path)):
        raise ValueError("a storage URL must be text, but got a Path: write the URL as a string")
    return SqliteStore(path, **options)


def _from_sqlite_url(rest: str) -> Store:
    path, _, query = rest.partition("?")
    if not path.startswith("///") or path == "///":
        raise ValueError(
            "a SQLite URL must be sqlite:///relative/path or sqlite:////absolute/path, "
            f"but got sqlite:{rest}"
        )
    options: dict[str, Any] = dict(parse_qsl(query, keep_blank_values=True))
    if unknown := options.keys() - {"synchronous", "patience"}:
        raise ValueError(
            "a SQLite URL may end in ?synchronous=full or ?synchronous=normal, and in "
            f"?patience=10m, but got {min(unknown)!r}"
        )
    if "patience" in options:
        options["patience"] = _duration(options["patience"])
    return _from_path(unquote(path[3:]), **options)


def _split_patience(url: str) -> tuple[str, float | str | None]:
    """A URL without its `patience`, which is ours and not the server's, and that patience."""
    address, _, query = url.partition("?")
    options = query.split("&")
    ours = [option for option in options if option.startswith("patience=")]
    if not ours:
        return url, None
    rest = "&".join(option for option in options if option not in ours)
    return f"{address}?{rest}" if rest else address, _duration(ours[-1].partition("=")[2])


def _duration(text: str) -> float | str:
    """A number without a unit is a number of seconds."""
    return float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else text
