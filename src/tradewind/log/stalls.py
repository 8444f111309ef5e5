"""Stalls of a store: times in which it did not answer, so that nobody could renew a lease.

After a stall, a lease that was good before it counts for its whole time again. Otherwise the first
driver back would take the running trials of all others for lost.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tradewind.errors import FormatError, LogDiverged, NoSuchStudy, StorageError

SLOW = 1.0  # seconds; a request that takes longer is a stall
_REMEMBERED = 32  # stalls: if each is short, they still cover more than the usual lease

# The store has answered, and asking again would not help.
FINAL = (FormatError, LogDiverged, NoSuchStudy)


@dataclass(frozen=True)
class Stall:
    """When a stall began and ended, in seconds before now."""

    began: float
    ended: float


class Stalls:
    """Watches the requests to a store. A stall begins at the last write that succeeded, because
    nobody knows how the store was since then."""

    def __init__(self) -> None:
        self._written = time.monotonic()
        self._stalls: deque[tuple[float, float]] = deque(maxlen=_REMEMBERED)  # begin and end

    @contextmanager
    def watch(self, *, write: bool = True) -> Iterator[Callable[[], list[Stall]]]:
        """Notice if this request fails or takes long. Yields a function that returns the latest
        stalls. The last one may be this very request."""
        asked, failed = time.monotonic(), False

        def latest() -> list[Stall]:
            now = time.monotonic()
            this = [(self._written, now)] if now - asked > SLOW else []
            return [Stall(now - began, now - ended) for began, ended in (*self._stalls, *this)]

        try:
            yield latest
        except StorageError as error:
            failed = not isinstance(error, FINAL)
            raise
        finally:
            now = time.monotonic()
            if failed or now - asked > SLOW:
                if self._stalls and self._stalls[-1][0] == self._written:
                    self._stalls.pop()  # it goes on
                self._stalls.append((self._written, now))
            if write and not failed:  # reading may go well while nobody can write
                self._written = now
