"""How many trials run at the same time."""

from __future__ import annotations

import time
from collections.abc import Hashable


class ConcurrencyMeter:
    """Measures the mean number of trials that run while a trial runs.

    It integrates the number of running trials over time. The difference of this integral between
    the end and the start of a trial, divided by its seconds, is the trial's concurrency."""

    def __init__(self) -> None:
        self._starts: dict[Hashable, tuple[float, float]] = {}  # time and integral at the start
        self._integral, self._time = 0.0, time.monotonic()

    def start(self, key: Hashable) -> None:
        self._update()
        self._starts[key] = self._time, self._integral

    def end(self, key: Hashable) -> tuple[float, float]:
        """The seconds since the start, and the mean number of trials that ran meanwhile, with this
        one."""
        self._update()
        running = float(len(self._starts))
        start, integral = self._starts.pop(key)
        seconds = self._time - start
        return seconds, (self._integral - integral) / seconds if seconds > 0 else running

    def _update(self) -> None:
        now = time.monotonic()
        self._integral += len(self._starts) * (now - self._time)
        self._time = now
