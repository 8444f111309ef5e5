"""What the runners on clusters share: the account of the trials that are out, and how one is
evaluated where it arrives.

The driver keeps the account: whatever a cluster says about a trial, or says twice, the trial
comes back once. Deadlines are the driver's, too, so that no trial depends on a distant clock.
"""

from __future__ import annotations

import math
import os
import pickle
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from tradewind.runners.concurrency import Load
from tradewind.runners.run import Objective, Run
from tradewind.runners.runner import OUT_OF_TIME, Done, Result, Stopped, TrialLimits
from tradewind.runners.slot import evaluate_apart
from tradewind.runners.worker import packed
from tradewind.types import Trial, Usage

LOOK = 1.0  # seconds between looks at what the cluster consists of

Key = TypeVar("Key")
Handle = TypeVar("Handle")


@dataclass(frozen=True)
class _Out(Generic[Handle]):
    trial: Trial
    handle: Handle
    deadline: float


class Account(Generic[Key, Handle]):
    """The trials that are out, by key, and those that are back but have not been given yet.

    `handle` is what the cluster knows a trial by; `end` has the cluster end one that still runs.
    `device` is where trials run, for those of which only the driver can say what they took."""

    def __init__(self, end: Callable[[Handle], object], *, device: str) -> None:
        self._end, self._device = end, device
        self._out: dict[Key, _Out[Handle]] = {}
        self._back: list[Done] = []
        self._load = Load()

    def __len__(self) -> int:
        return len(self._out)

    def __contains__(self, key: object) -> bool:
        return key in self._out

    def __getitem__(self, key: Key) -> Handle:
        return self._out[key].handle

    def keys(self) -> list[Key]:
        return list(self._out)

    def handles(self) -> list[Handle]:
        return [out.handle for out in self._out.values()]

    def add(self, key: Key, trial: Trial, handle: Handle, within: float | None) -> None:
        self._out[key] = _Out(trial, handle, deadline=_end_of(within))
        self._load.begin(key)

    def settle(self, key: Key, result: Result, usage: Usage | None = None) -> Handle:
        """A trial is back. Later news of it find that it is not out.

        Where nobody says what it took, that is at most the time since it was submitted."""
        out = self._out.pop(key)
        wall, concurrency = self._load.end(key)
        usage = usage or Usage(wall, device=self._device)
        self._back.append(Done(out.trial, result, replace(usage, concurrency=concurrency)))
        return out.handle

    def settle_late(self) -> None:
        """Whatever is past its deadline is back, as stopped."""
        now = time.monotonic()
        for key in [key for key, out in self._out.items() if out.deadline <= now]:
            self._end(self.settle(key, OUT_OF_TIME))

    def stop(self, numbers: Iterable[int], reason: str) -> None:
        named = set(numbers)
        for key in [key for key, out in self._out.items() if out.trial.number in named]:
            self._end(self.settle(key, Stopped(reason)))

    def patience(self, end: float) -> float:
        """How long to wait for news, at most, before the end, the next deadline or look."""
        now = time.monotonic()
        deadline = min((out.deadline for out in self._out.values()), default=math.inf)
        return max(0.0, min(end, deadline, now + LOOK) - now)

    def give(self) -> list[Done]:
        back, self._back = self._back, []
        return back

    def clear(self) -> list[Handle]:
        """Forget everything; what was out is returned."""
        handles = self.handles()
        self._out, self._back = {}, []
        return handles


class ClusterWorkers(ABC, Generic[Key, Handle]):
    """What all clusters have in common: as many slots as there is room, trials kept in an account.

    `_look()` sets `_room`, how many trials the cluster takes now, and `_looked`, when that was.
    `_hear()` settles the trials of which there is news, after waiting for it; `_check()` raises
    where there will be none any more."""

    _account: Account[Key, Handle]
    _room: int
    _looked: float

    def __init__(self, *, n_workers: int | None, synchronous: bool, opened: float) -> None:
        self._n_workers, self.synchronous, self.opened = n_workers, synchronous, opened

    @abstractmethod
    def _look(self) -> None: ...

    @abstractmethod
    def _hear(self, patience: float) -> None: ...

    @abstractmethod
    def _check(self) -> None: ...

    def _look_now_and_then(self) -> None:
        if time.monotonic() > self._looked + LOOK:
            self._look()

    @property
    def slots(self) -> int:
        if self._n_workers is not None:
            return self._n_workers
        self._look_now_and_then()
        return max(1, self._room)  # a cluster that grows with its work may have no room yet

    @property
    def free(self) -> int:
        return max(0, self.slots - len(self._account))

    def wait(self, timeout: float | None = None) -> list[Done]:
        end = _end_of(timeout)
        while not (back := self._account.give()) and len(self._account):
            self._check()
            patience = self._account.patience(end)
            self._hear(patience)
            self._account.settle_late()
            if not patience and self.now() >= end:
                return self._account.give()
        return back

    def stop(self, numbers: Iterable[int], reason: str) -> None:
        """They come back at once; on the cluster their processes end within a few seconds."""
        self._account.stop(numbers, reason)

    def now(self) -> float:
        return time.monotonic()


def _end_of(timeout: float | None) -> float:
    """When so many seconds will have passed, on the clock of this machine."""
    return math.inf if timeout is None else time.monotonic() + timeout


@dataclass(frozen=True)
class Order:
    """What a cluster is to do with every trial: call the packed objective, within limits."""

    blob: bytes
    limits: TrialLimits
    gpu: bool

    @property
    def device(self) -> str:
        return "cuda:0" if self.gpu else "cpu"

    def evaluate(
        self,
        trial: Trial,
        *,
        within: float | None,
        stopped: Callable[[], str | None] | None = None,
    ) -> Done:
        """Where it arrives, in a process of its own beside the calling one."""
        visible = _visible_gpus() if self.gpu else ""
        device = self.device if visible else "cpu"
        blob = packed(_OnDevice(self.blob, device, visible)) if visible else self.blob
        done = evaluate_apart(
            blob,
            trial,
            timeout=self.limits.timeout,
            memory=self.limits.memory,
            within=within,
            stopped=stopped,
        )
        return replace(
            done, usage=None if done.usage is None else replace(done.usage, device=device)
        )


class _OnDevice:
    """An objective whose trials are told a device.

    `visible` are the accelerators that its process sees. They make objectives for different ones
    different, so that a process that was kept for some is not taken for others."""

    def __init__(self, blob: bytes, device: str, visible: str) -> None:
        self._blob, self._device, self._visible = blob, device, visible

    def __reduce__(self) -> tuple[Callable[..., Objective], tuple[bytes, str, str]]:
        return _on_device, (self._blob, self._device, self._visible)

    def __call__(self, run: Run) -> object:
        raise TypeError("it is called where it is unpacked")


def _on_device(blob: bytes, device: str, visible: str) -> Objective:
    objective: Objective = pickle.loads(blob)

    def placed(run: Run) -> object:
        run.device = device
        return objective(run)

    return placed


def _visible_gpus() -> str:
    """What CUDA shows to this process; "" for nothing, also where nothing is said."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    return "" if visible in ("-1", "NoDevFiles") else visible
