"""Which store a user means, and logs as files of lines."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl, unquote

from tradewind.errors import FormatError, StorageError
from tradewind.log.codec import decode, encode
from tradewind.log.events import Created, Event
from tradewind.log.log import Store
from tradewind.log.memory import MemoryStore

VARIABLE = "TRADEWIND_STORAGE"

_FORMS = (
    "a path or sqlite:///path for SQLite, postgresql://user:password@host/database, "
    "or None for memory"
)


def open_store(storage: str | os.PathLike[str] | Store | None) -> Store:
    """The store that is meant:

    | form                                       | store                                    |
    |--------------------------------------------|------------------------------------------|
    | a path, as text or as a `Path`             | SQLite                                   |
    | `sqlite:///relative`, `sqlite:////absolute` | SQLite; special characters are %-codes  |
    | ... with `?synchronous=full` (or `normal`) | SQLite that survives a power cut         |
    | `postgresql://...`, `postgres://...`       | PostgreSQL                               |
    | a `Store`                                  | itself                                   |
    | None                                       | what TRADEWIND_STORAGE says, else memory |
    """
    if storage is None:
        storage = os.environ.get(VARIABLE) or None
    if storage is None:
        return MemoryStore()
    if isinstance(storage, str):
        return _from_text(storage)
    if isinstance(storage, os.PathLike):
        return _from_path(storage)
    if all(callable(getattr(storage, verb, None)) for verb in _VERBS):
        return storage
    raise TypeError(f"a storage is {_FORMS}, or a Store, but got {storage!r}")


_VERBS = ("create", "open", "names", "rename", "delete")


def _from_text(storage: str) -> Store:
    # A word with a colon is never taken for a file: a misspelt URL must not make one of that name.
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):", storage)
    kind = scheme[1].lower() if scheme else ""
    if kind in ("postgresql", "postgres"):
        from tradewind.log.postgres import PostgresStore  # needs an extra

        return PostgresStore(f"{kind}{storage[len(kind) :]}")
    if kind == "sqlite":
        return _sqlite(storage[len("sqlite:") :])
    if kind:
        raise ValueError(
            f"a storage is {_FORMS}, but got {kind}:...; "
            f"a file of such a name is written ./{kind}:..."
        )
    if not storage:
        raise ValueError(f"a storage is {_FORMS}, but got an empty text")
    return _from_path(storage)


def _from_path(path: str | os.PathLike[str], **options: Any) -> Store:
    from tradewind.log.sqlite import SqliteStore  # not needed by studies in memory

    if re.match(r"(sqlite|postgres(ql)?):", str(path)):
        raise ValueError("the URL of a storage is given as text, not as a Path")
    return SqliteStore(path, **options)


def _sqlite(rest: str) -> Store:
    path, _, query = rest.partition("?")
    if not path.startswith("///") or path == "///":
        raise ValueError(
            "SQLite is written sqlite:///relative/path or sqlite:////absolute/path, "
            f"but got sqlite:{rest}"
        )
    options = dict(parse_qsl(query, keep_blank_values=True))
    if unknown := options.keys() - {"synchronous"}:
        raise ValueError(f"sqlite:// takes ?synchronous=full or normal, but got {min(unknown)!r}")
    return _from_path(unquote(path[3:]), **options)


# ---- files ----

_ORDER = "the first event, and no other, must be 'created'"


def read_lines(path: str | os.PathLike[str]) -> list[Event]:
    """The events of a JSON-lines file, the first and only the first of which creates a study."""
    events: list[Event] = []
    try:
        with open(path, "rb") as file:
            for line in file:
                events.append(_event(line, first=not events))
    except OSError as error:
        raise StorageError(f"{os.fspath(path)} cannot be read: {error.strerror}") from error
    except (FormatError, UnicodeDecodeError) as error:
        place = f"{os.fspath(path)}, line {len(events) + 1}"
        raise FormatError(f"{place}: {error}") from None
    if not events:
        raise FormatError(f"{os.fspath(path)} holds no study: it is empty")
    return events


def _event(line: bytes, *, first: bool) -> Event:
    event = decode(line.decode())
    if isinstance(event, Created) != first:
        raise FormatError(_ORDER)
    return event


def write_lines(path: str | os.PathLike[str], events: Sequence[Event]) -> None:
    """Write the events of a study as JSON lines, whole or not at all."""
    for position, event in enumerate(events):
        if isinstance(event, Created) != (position == 0):
            raise ValueError(f"{_ORDER}, but event {position} is {type(event).__name__}")
    write_text(path, "".join(f"{encode(event)}\n" for event in events))


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a file, whole or not at all: what was there stays until all is written."""
    target = os.path.realpath(path)
    draft = f"{target}.{secrets.token_hex(4)}.tmp"
    if os.path.exists(target) and not os.path.isfile(target):
        raise StorageError(f"{target} cannot be written: it is not a file")
    try:
        try:
            # a lone surrogate in a user's text is no reason not to write the rest
            with open(draft, "x", encoding="utf-8", errors="backslashreplace", newline="") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(draft)
            raise
    except OSError as error:
        raise StorageError(f"{target} cannot be written: {error.strerror}") from error
