"""Logs in memory. They end with their process."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from tradewind import checks
from tradewind.log.events import Created, Event
from tradewind.log.lock import Lock, locked
from tradewind.log.log import Conflict, Log, already_exists, not_found

_WHERE = "memory"


class MemoryLog:
    """A log in memory. Threads may share it. A copy of it is independent."""

    id = 0
    spool: tuple[str, ...] = ()

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._events: list[Event] = []
        self._leases: dict[int, tuple[float, float]] = {}  # trial -> start, end
        self._deleted: str | None = None  # the name it had before it was deleted

    @locked
    def append(
        self,
        events: Sequence[Event],
        *,
        expected: int | None = None,
        lease: tuple[int, float] | None = None,
    ) -> int:
        self._check_exists()
        if expected is not None and expected != len(self._events):
            raise Conflict(f"expected {expected} events, but there are {len(self._events)}")
        if lease is not None:
            self._lease(*checks.lease([lease[0]], lease[1]))
        self._events.extend(events)
        return len(self._events)

    @locked
    def read(self, after: int) -> Sequence[Event]:
        self._check_exists()
        return self._events[checks.position(after) :]

    @locked
    def beat(self, trials: Sequence[int], seconds: float) -> Mapping[int, float]:
        trials, seconds = checks.lease(trials, seconds)
        self._check_exists()
        now = self._lease(trials, seconds)
        leases = self._leases.items()
        self._leases = {trial: (t0, t1) for trial, (t0, t1) in leases if t0 <= now <= t1}
        return {trial: until - now for trial, (_, until) in self._leases.items()}

    def _lease(self, trials: list[int], seconds: float) -> float:
        """Begin or end these leases, and return the time."""
        now = self._clock()
        if seconds:
            self._leases.update(dict.fromkeys(trials, (now, now + seconds)))
        else:
            for trial in trials:
                self._leases.pop(trial, None)
        return now

    def reopen(self) -> Log:
        """This log: nothing can change under it."""
        return self

    @locked
    def delete(self, name: str) -> None:
        """Make every later call raise `NoSuchStudy`."""
        self._deleted = name
        self._events, self._leases = [], {}

    def _check_exists(self) -> None:
        if self._deleted is not None:
            raise not_found(self._deleted, _WHERE)


class MemoryStore:
    """A store in memory."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._logs: dict[str, MemoryLog] = {}

    def __repr__(self) -> str:
        return "MemoryStore()"

    @locked
    def create(self, name: str, first: Created, later: Sequence[Event] = ()) -> Log:
        name = checks.study_name(name)
        if name in self._logs:
            raise already_exists(name, _WHERE)
        log = MemoryLog(clock=self._clock)
        log.append([first, *later])
        self._logs[name] = log
        return log

    @locked
    def open(self, name: str) -> Log:
        name = checks.study_name(name)
        return self._find(name)

    @locked
    def names(self) -> list[str]:
        return list(self._logs)

    @locked
    def rename(self, name: str, new: str) -> None:
        name, new = checks.study_name(name), checks.study_name(new)
        self._find(name)
        if new != name and new in self._logs:
            raise already_exists(new, _WHERE)
        # keeps the order: names() lists the oldest study first
        self._logs = {new if key == name else key: log for key, log in self._logs.items()}

    @locked
    def delete(self, name: str) -> None:
        name = checks.study_name(name)
        self._find(name).delete(name)
        del self._logs[name]

    def _find(self, name: str) -> MemoryLog:
        if name not in self._logs:
            raise not_found(name, _WHERE)
        return self._logs[name]
