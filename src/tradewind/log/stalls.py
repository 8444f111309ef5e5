"""Stalls of a store: times in which it did not answer, so that nobody could renew a lease.

After a stall, a lease that was good before it counts for its whole time again. Otherwise the first
driver back would take the running trials of all others for lost.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tradewind.errors import FormatError, LogDiverged, NoSuchStudy, StorageError

SLOW = 1.0  # seconds; a request that takes longer is a stall

# The store has answered, and asking again would not help.
FINAL = (FormatError, LogDiverged, NoSuchStudy)


@dataclass(frozen=True)
class Stall:
    """When a stall began and ended, in seconds before now."""

    began: float
    ended: float


NO_STALL = Stall(math.inf, math.inf)


class Stalls:
    """Watches the requests to a store. A stall begins at the last write that went well, because
    nobody knows how the store was since then."""

    def __init__(self) -> None:
        self._well = time.monotonic()
        self._times = (-math.inf, -math.inf)

    @contextmanager
    def watch(self, *, write: bool = True) -> Iterator[Callable[[], Stall]]:
        """Notice if this request fails or takes long. Yields a function that returns the last
        stall, which may be this very request."""
        asked, failed = time.monotonic(), False

        def last() -> Stall:
            now = time.monotonic()
            began, ended = (self._well, now) if now - asked > SLOW else self._times
            return Stall(now - began, now - ended)

        try:
            yield last
        except StorageError as error:
            failed = not isinstance(error, FINAL)
            raise
        finally:
            now = time.monotonic()
            if failed or now - asked > SLOW:
                self._times = self._well, now
            elif write:  # reading may go well while nobody can write
                self._well = now
