"""The logs that live as long as their process."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from tradewind.log import checks
from tradewind.log.events import Created, Event
from tradewind.log.lock import Lock
from tradewind.log.log import Conflict, Log

_WHERE = "memory"


class MemoryLog:
    """A log in memory. Threads may share it; a copy of it goes its own way."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._events: list[Event] = []
        self._leases: dict[int, tuple[float, float]] = {}  # trial -> until, granted seconds
        self._deleted: str | None = None  # the name it had

    def append(self, events: Sequence[Event], *, expected: int | None = None) -> int:
        with self._lock:
            self._check()
            if expected is not None and expected != len(self._events):
                raise Conflict(f"expected {expected} events, found {len(self._events)}")
            self._events.extend(events)
            return len(self._events)

    def read(self, after: int) -> Sequence[Event]:
        with self._lock:
            self._check()
            return self._events[checks.position(after) :]

    def beat(self, trials: Sequence[int], seconds: float) -> frozenset[int]:
        trials, seconds = checks.lease(trials, seconds)
        with self._lock:
            self._check()
            now = self._clock()
            for trial in trials:
                self._leases[trial] = now + seconds, seconds
                if not seconds:
                    del self._leases[trial]
            self._leases = {
                t: (u, s) for t, (u, s) in self._leases.items() if checks.stands(u, s, now)
            }
            return frozenset(self._leases)

    def delete(self, name: str) -> None:
        """From here on everything gives `NoSuchStudy`."""
        with self._lock:
            self._deleted = name
            self._events, self._leases = [], {}

    def _check(self) -> None:
        if self._deleted is not None:
            raise checks.missing(self._deleted, _WHERE)


class MemoryStore:
    """Logs in memory."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._logs: dict[str, MemoryLog] = {}

    def __repr__(self) -> str:
        return "MemoryStore()"

    def create(self, name: str, first: Created) -> Log:
        name = checks.name(name)
        with self._lock:
            if name in self._logs:
                raise checks.exists(name, _WHERE)
            log = MemoryLog(clock=self._clock)
            log.append([first])
            self._logs[name] = log
            return log

    def open(self, name: str) -> Log:
        name = checks.name(name)
        with self._lock:
            return self._found(name)

    def names(self) -> list[str]:
        with self._lock:
            return list(self._logs)

    def rename(self, name: str, new: str) -> None:
        name, new = checks.name(name), checks.name(new)
        with self._lock:
            self._found(name)
            if new != name and new in self._logs:
                raise checks.exists(new, _WHERE)
            # in its old place: the oldest study stays the first
            self._logs = {new if key == name else key: log for key, log in self._logs.items()}

    def delete(self, name: str) -> None:
        name = checks.name(name)
        with self._lock:
            self._found(name).delete(name)
            del self._logs[name]

    def _found(self, name: str) -> MemoryLog:
        if name not in self._logs:
            raise checks.missing(name, _WHERE)
        return self._logs[name]
