"""Events as rows of a table."""

from __future__ import annotations

import secrets
from collections.abc import Iterable

from tradewind.errors import FormatError
from tradewind.log.codec import decode
from tradewind.log.events import Event


def fresh_id() -> int:
    """An id for a study that no other has, in whichever database: a log that is still open when its
    database is replaced does not take another study for its own."""
    return secrets.randbits(63)


def decoded(rows: Iterable[tuple[int, str | bytes]], after: int, place: str) -> list[Event]:
    """The events of rows (position, event) that must count from `after` on without a gap."""
    events: list[Event] = []
    for position, text in rows:
        if position != after + len(events):
            raise FormatError(f"{place}: event {after + len(events)} is missing")
        try:
            events.append(decode(text.decode("ascii") if isinstance(text, bytes) else text))
        except (FormatError, UnicodeDecodeError) as error:
            raise FormatError(f"{place}, event {position}: {error}") from None
    return events
