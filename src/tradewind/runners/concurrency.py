"""How many trials run at the same time."""

from __future__ import annotations

import time
from collections.abc import Hashable


class Load:
    """The number of trials that run, summed over time: its mean over the time of a trial is the
    concurrency of that."""

    def __init__(self) -> None:
        self._begun: dict[Hashable, tuple[float, float]] = {}
        self._sum, self._at = 0.0, time.monotonic()

    def begin(self, key: Hashable) -> None:
        self._tick()
        self._begun[key] = self._at, self._sum

    def end(self, key: Hashable) -> tuple[float, float]:
        """The seconds since it began, and how many ran meanwhile, itself included, in the mean."""
        self._tick()
        running = float(len(self._begun))
        at, before = self._begun.pop(key)
        seconds = self._at - at
        return seconds, (self._sum - before) / seconds if seconds > 0 else running

    def _tick(self) -> None:
        now = time.monotonic()
        self._sum += len(self._begun) * (now - self._at)
        self._at = now
