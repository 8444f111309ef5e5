"""A study as a file of JSON lines, one line per event, and files that are written completely or not
at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from contextlib import suppress

from tradewind.errors import FormatError, StorageError
from tradewind.log.codec import decode, encode
from tradewind.log.events import Created, Event

_ORDER = "the first event, and no other, must be 'created'"


def read_lines(path: str | os.PathLike[str]) -> list[Event]:
    """The events of a study from a JSON-lines file."""
    events: list[Event] = []
    try:
        with open(path, "rb") as file:
            for line in file:
                events.append(_decode(line, is_first=not events))
    except OSError as error:
        raise StorageError(f"{os.fspath(path)} cannot be read: {error.strerror}") from error
    except (FormatError, UnicodeDecodeError) as error:
        place = f"{os.fspath(path)}, line {len(events) + 1}"
        hint = "" if events else "; only a .jsonl file that study.export wrote can be imported"
        raise FormatError(f"{place}: {error}{hint}") from None
    if not events:
        raise FormatError(f"{os.fspath(path)} holds no study: it is empty")
    return events


def _decode(line: bytes, *, is_first: bool) -> Event:
    event = decode(line.decode())
    if isinstance(event, Created) != is_first:
        raise FormatError(_ORDER)
    return event


def write_lines(path: str | os.PathLike[str], events: Sequence[Event]) -> None:
    """Write the events of a study to a JSON-lines file, completely or not at all."""
    for position, event in enumerate(events):
        if isinstance(event, Created) != (position == 0):
            raise ValueError(f"{_ORDER}, but event {position} is {type(event).__name__}")
    write_text(path, "".join(f"{encode(event)}\n" for event in events))


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a file completely or not at all. An old file stays until the new one is complete."""
    target = os.path.realpath(path)
    draft = f"{target}.{secrets.token_hex(4)}.tmp"
    if os.path.exists(target) and not os.path.isfile(target):
        raise StorageError(f"{target} cannot be written: it is not a file")
    try:
        try:
            # The user's text may hold a lone surrogate, which UTF-8 cannot express: escape it.
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
