"""Reading a log from the rows of a database: nothing may be missing, changed, or exchanged.

A log object remembers the newest line that it has read or written, its head. Every later read and
append makes sure that this line is still where it was. So a store that goes back in time under a
running driver is noticed, even if it has grown to the same length since.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from tradewind.errors import FormatError
from tradewind.log.chain import START, Head, check_same, unseal
from tradewind.log.codec import decode_lines
from tradewind.log.events import Event

Row: TypeAlias = tuple[int, str | bytes]  # position and line


def first_row(head: Head, after: int) -> int:
    """From which position on `read_rows` needs the rows: the head itself, to check that it is still
    there, or all, if events before it are wanted."""
    return max(head.length - 1, 0) if after >= head.length else 0


def read_rows(rows: Sequence[Row], head: Head, after: int, place: str) -> tuple[list[Event], Head]:
    """The events from position `after` on, and the new head. `rows` begin at `first_row`."""
    start = first_row(head, after)
    try:
        lines = [line_of(row, start + i) for i, row in enumerate(rows)]
        seen = head.length - 1 - start
        last = lines[seen] if 0 <= seen < len(lines) else None
        check_same(head, start + len(lines), last, place)
        known = head if start else START
        bodies, end = unseal(known, lines[1:] if start else lines)
    except FormatError as error:
        advice = "tradewind.repair keeps everything before the damage"
        raise FormatError(f"{place} is damaged: {error}; {advice}") from None
    skip = max(0, after - known.length)
    return decode_lines(bodies[skip:], known.length + skip, place), end


def line_of(row: Row, position: int) -> str:
    """The line of a row that must be at this position."""
    found, line = row
    if found != position:
        raise FormatError(f"event {position} is missing")
    try:
        return line.decode("ascii") if isinstance(line, bytes) else line
    except UnicodeDecodeError:
        raise FormatError(f"event {position} is not text") from None
