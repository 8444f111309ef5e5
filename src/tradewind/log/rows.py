"""Reading a log from the rows of a database: nothing may be missing, changed, or exchanged.

A log object remembers the newest line that it has read or written, its head. Every later read and
append makes sure that this line is still where it was. So a store that goes back in time under a
running driver is noticed, even if it has grown to the same length since.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TypeAlias

from tradewind.errors import FormatError
from tradewind.log.chain import ADVICE, START, Head, advise, check_same, unseal
from tradewind.log.codec import decode_lines
from tradewind.log.events import Event

Row: TypeAlias = tuple[int, str | bytes]  # position and line

_AT_ONCE = 1000  # rows that are decoded before more are fetched: a log takes more room as text


def first_row(head: Head, after: int) -> int:
    """From which position on `read_rows` needs the rows: the head itself, to check that it is still
    there, or all, if events before it are wanted."""
    return max(head.length - 1, 0) if after >= head.length else 0


def read_rows(rows: Iterable[Row], head: Head, after: int, place: str) -> tuple[list[Event], Head]:
    """The events from position `after` on, and the new head. `rows` begin at `first_row`."""
    position = first_row(head, after)
    end = head if position else START
    events: list[Event] = []
    rows = iter(rows)
    while some := list(islice(rows, _AT_ONCE)):
        try:
            lines = [line_of(row, i) for i, row in enumerate(some, position)]
            seen = head.length - 1 - position
            if 0 <= seen < len(lines):
                check_same(head, head.length, lines[seen], place)
            known, new = end, lines[max(0, end.length - position) :]
            bodies, end = unseal(known, new)
        except FormatError as error:
            raise FormatError(f"{place} is damaged: {error}; {ADVICE}") from None
        skip = max(0, after - known.length)
        try:
            events += decode_lines(bodies[skip:], known.length + skip, place)
        except FormatError as error:
            raise FormatError(advise(error)) from None
        position += len(lines)
    check_same(head, position, head.line, place)
    return events, end


def line_of(row: Row, position: int) -> str:
    """The line of a row that must be at this position."""
    found, line = row
    if found != position:
        raise FormatError(f"event {position} is missing")
    try:
        return line.decode("ascii") if isinstance(line, bytes) else line
    except UnicodeDecodeError:
        raise FormatError(f"event {position} is not text") from None
