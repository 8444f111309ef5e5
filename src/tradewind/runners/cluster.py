"""What the runners on clusters share: the driver's list of the trials that run on a cluster.

Whatever a cluster reports about a trial, or reports twice, the trial comes back once. The driver
watches the deadlines as well, so no trial depends on the clock of another machine.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Generic, TypeVar

from tradewind.errors import missing
from tradewind.interrupts import told
from tradewind.runners.concurrency import ConcurrencyMeter
from tradewind.runners.messages import read_answer
from tradewind.runners.runner import OUT_OF_TIME, Done, Result, Stopped
from tradewind.types import Trial, Usage

_REFRESH = 1.0  # seconds between questions which workers the cluster has
_SLICE = 0.25  # seconds of one wait, after which the driver sees that it was told to end

Key = TypeVar("Key")
Handle = TypeVar("Handle")


@dataclass(frozen=True)
class _Submitted(Generic[Handle]):
    trial: Trial
    handle: Handle
    deadline: float


class RunningTrials(Generic[Key, Handle]):
    """The trials that run on a cluster, by key, and the results that `wait` has not returned yet.

    A `handle` is the cluster's own object for a running trial. `end(handle)` makes the cluster end
    the trial. `device` is where trials run, for the usage of trials about which the cluster reports
    none."""

    def __init__(self, end: Callable[[Handle], object], *, device: str) -> None:
        self._end, self._device = end, device
        self._running: dict[Key, _Submitted[Handle]] = {}
        self._done: list[Done] = []
        self._concurrency = ConcurrencyMeter()

    def __len__(self) -> int:
        return len(self._running)

    def __contains__(self, key: object) -> bool:
        return key in self._running

    def __getitem__(self, key: Key) -> Handle:
        return self._running[key].handle

    def keys(self) -> list[Key]:
        return list(self._running)

    def handles(self) -> list[Handle]:
        return [submitted.handle for submitted in self._running.values()]

    def add(self, key: Key, trial: Trial, handle: Handle, within: float | None) -> None:
        self._running[key] = _Submitted(trial, handle, deadline=_time_after(within))
        self._concurrency.start(key)

    def finish(self, key: Key, result: Result, usage: Usage | None = None) -> Handle:
        """Note the result of a trial. Later reports about it are ignored.

        Without `usage`, the trial is taken to have run since it was submitted."""
        submitted = self._running.pop(key)
        wall, concurrency = self._concurrency.end(key)
        usage = usage or Usage(wall, device=self._device)
        done = Done(submitted.trial, result, replace(usage, concurrency=concurrency))
        self._done.append(done)
        return submitted.handle

    def read(self, key: Key, answer: object) -> Handle:
        """Note what a worker has answered about a trial."""
        done = read_answer(answer, self._running[key].trial)
        return self.finish(key, done.result, done.usage)

    def stop_overdue(self) -> None:
        """Stop the trials whose deadline has passed."""
        now = time.monotonic()
        for key in [key for key, one in self._running.items() if one.deadline <= now]:
            self._end(self.finish(key, OUT_OF_TIME))

    def stop(self, numbers: Iterable[int], reason: str) -> None:
        wanted = set(numbers)
        for key in [key for key, one in self._running.items() if one.trial.number in wanted]:
            self._end(self.finish(key, Stopped(reason)))

    def seconds_to_wait(self, until: float) -> float:
        """Seconds until the clock shows `until`, the next deadline passes or the cluster must be
        asked for its workers."""
        now = time.monotonic()
        deadline = min((one.deadline for one in self._running.values()), default=math.inf)
        return max(0.0, min(until, deadline, now + _REFRESH) - now)

    def take_done(self) -> list[Done]:
        done, self._done = self._done, []
        return done

    def clear(self) -> list[Handle]:
        """Forget everything. Returns the handles of the trials that ran."""
        handles = self.handles()
        self._running, self._done = {}, []
        return handles


class ClusterWorkers(ABC, Generic[Key, Handle]):
    """The workers of a cluster: as many slots as it can run trials, or `n_workers`.

    `_refresh()` sets `_capacity`, the number of trials that the cluster can run, and `_refreshed`,
    when it was set. `_receive()` waits for reports and notes the results. `_check_connection()`
    raises if no more reports can come."""

    _trials: RunningTrials[Key, Handle]
    _capacity: int
    _refreshed: float

    def __init__(self, *, n_workers: int | None, synchronous: bool) -> None:
        self._n_workers, self.synchronous = n_workers, synchronous

    @abstractmethod
    def _refresh(self) -> None: ...

    @abstractmethod
    def _receive(self, timeout: float) -> None: ...

    @abstractmethod
    def _check_connection(self) -> None: ...

    def _refresh_if_due(self) -> None:
        if time.monotonic() > self._refreshed + _REFRESH:
            self._refresh()

    @property
    def slots(self) -> int:
        if self._n_workers is not None:
            return self._n_workers
        self._refresh_if_due()
        return max(1, self._capacity)  # a cluster that starts workers on demand may have none yet

    @property
    def free(self) -> int:
        return max(0, self.slots - len(self._trials))

    def wait(self, timeout: float | None = None) -> list[Done]:
        until = _time_after(timeout)
        while not (done := self._trials.take_done()) and len(self._trials):
            self._check_connection()
            seconds = self._trials.seconds_to_wait(until)
            self._receive(min(seconds, _SLICE))
            self._trials.stop_overdue()
            if (not seconds and self.now() >= until) or told():
                return self._trials.take_done()
        return done

    def stop(self, numbers: Iterable[int], reason: str) -> None:
        """The trials come back at once. Their processes end within a few seconds."""
        self._trials.stop(numbers, reason)

    def now(self) -> float:
        return time.monotonic()


def import_extra(package: str, runner: str) -> Any:
    """The package of a cluster. It belongs to an extra of this one."""
    try:
        return import_module(package)
    except ImportError as error:
        raise missing(runner, package) from error


def _time_after(seconds: float | None) -> float:
    """What the clock of this machine shows after so many seconds; infinity for None."""
    return math.inf if seconds is None else time.monotonic() + seconds
