"""A study as a file of JSON lines, one line per event, and files that are written completely or not
at all.

The lines are those of a store, with their digests. The last line says how many events there are, so
that a file that was cut short is noticed. Files of version 0.1 have neither, and are read as they
are.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from tradewind.errors import FormatError, StorageError
from tradewind.log.chain import START, advise, seal, unseal
from tradewind.log.codec import FORMAT, decode, encode
from tradewind.log.events import Created, Event
from tradewind.paths import open_file, replace_file
from tradewind.plain import LONGEST

_LONGEST_LINE = LONGEST + 1000  # an event with its digest and a line break; decoding refuses more
_ORDER = "the first event, and no other, must be 'created'"


def read_lines(path: str | os.PathLike[str]) -> list[Event]:
    """The events of a study from a JSON-lines file."""
    events, damage = scan_lines(path)
    if damage is not None:
        raise damage
    return events


def scan_lines(path: str | os.PathLike[str]) -> tuple[list[Event], FormatError | None]:
    """The events of a JSON-lines file up to the first damage, and that damage."""
    events: list[Event] = []
    try:
        with open_file(path) as file:
            _read(iter(lambda: file.readline(_LONGEST_LINE), b""), events)
    except OSError as error:
        raise StorageError(f"{os.fspath(path)} cannot be read: {error.strerror}") from error
    except (FormatError, UnicodeDecodeError) as error:
        place = f"{os.fspath(path)}, line {len(events) + 1}"
        hint = "only a .jsonl file that study.export wrote can be imported"
        return events, FormatError(f"{place}: {advise(error) if events else f'{error}; {hint}'}")
    if not events:
        return events, FormatError(f"{os.fspath(path)} holds no study: it is empty")
    return events, None


def parse_lines(lines: Iterable[bytes]) -> list[Event]:
    """The events in the lines of such a file."""
    events: list[Event] = []
    try:
        _read(lines, events)
    except UnicodeDecodeError as error:
        raise FormatError(f"line {len(events) + 1} is not text") from error
    if not events:
        raise FormatError("it is empty")
    return events


def _read(lines: Iterable[bytes], events: list[Event]) -> None:
    """Append to `events` what the lines hold. What was read stays there if a line is damaged."""
    head, has_ended = START, False
    for line in lines:
        if has_ended:
            raise FormatError("nothing may follow the last line")
        (body,), head = unseal(head, [line.decode().rstrip("\r\n")])
        has_ended = head.is_sealed and body == _end(len(events))
        if not has_ended:
            event = decode(body)
            if isinstance(event, Created) != (not events):
                raise FormatError(_ORDER)
            events.append(event)
    if head.is_sealed and not has_ended:
        raise FormatError("the file is cut short here")


def write_lines(path: str | os.PathLike[str], events: Sequence[Event]) -> None:
    """Write the events of a study to a JSON-lines file, completely or not at all."""
    for position, event in enumerate(events):
        if isinstance(event, Created) != (position == 0):
            raise ValueError(f"{_ORDER}, but event {position} is {type(event).__name__}")
    lines, _ = seal(START, [*map(encode, events), _end(len(events))])
    write_text(path, "".join(f"{line}\n" for line in lines))


def _end(events: int) -> str:
    return f'{{"format":{FORMAT},"event":"end","events":{events}}}'


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a file completely or not at all. An old file stays until the new one is complete."""
    try:
        with replace_file(path) as file:
            # The user's text may hold a lone surrogate, which UTF-8 cannot express: escape it.
            file.write(text.encode(errors="backslashreplace"))
    except OSError as error:
        place = os.path.realpath(path)
        raise StorageError(f"{place} cannot be written: {error.strerror}") from error
