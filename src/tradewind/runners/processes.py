"""The runner that evaluates in processes of this machine, one for each slot.

A trial that crashes, hangs or takes too much fails alone: its process is killed with all that it
started, and the slot gets a new one. Whatever happens to the driver, no process stays behind.
"""

from __future__ import annotations

import math
import os
import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

from tradewind.checks import is_whole, not_negative, or_none, whole
from tradewind.errors import WorkerError, warn
from tradewind.runners.child import Launch, stored
from tradewind.runners.concurrency import Load
from tradewind.runners.guard import Guard
from tradewind.runners.resources import (
    VISIBLE,
    gpus_there,
    usable_cores,
    visible_devices,
    with_threads,
)
from tradewind.runners.run import Objective
from tradewind.runners.runner import Done, TrialLimits
from tradewind.runners.slot import Slot, gather, pause, shut
from tradewind.runners.worker import packed
from tradewind.types import Trial

_POSIX = os.name == "posix"
_STARTS = 3  # worker processes that may die in a row while they start, for each slot


@dataclass(frozen=True)
class ProcessRunner:
    """Evaluates in `n_workers` processes of this machine: by default one for each slot of the
    GPUs, or else one for each core.

    `gpus` is how many of the visible GPUs to use, or which: their indices among those that this
    process sees, or their UUIDs. Every worker sees one of them, which `slots_per_gpu` workers
    share. Under `synchronous`, trials go in rounds. Processes that must end get SIGTERM first, and
    SIGKILL after `grace` seconds.

    The objective is sent by value (cloudpickle), so a lambda, a closure or a function of a
    notebook will do; modules beside the script are found. A worker keeps it for all its trials.
    """

    n_workers: int | None = None
    _: KW_ONLY
    gpus: int | Iterable[int | str] | None = None
    slots_per_gpu: int = 1
    synchronous: bool = False
    grace: float = 2.0

    def __post_init__(self) -> None:
        checked = {
            "n_workers": or_none(whole, "n_workers", self.n_workers, 1),
            "gpus": None if self.gpus is None else _devices(self.gpus),
            "slots_per_gpu": whole("slots_per_gpu", self.slots_per_gpu, 1),
            "grace": not_negative("grace", self.grace),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.gpus is None and self.slots_per_gpu > 1:
            raise ValueError(f"slots_per_gpu={self.slots_per_gpu} needs gpus, but there are none")
        if self.gpus is not None and self.n_workers is not None and self.n_workers > self._places:
            raise ValueError(
                f"n_workers must be at most the {self._places} slots of the GPUs, but got "
                f"{self.n_workers}: give fewer workers, or more slots_per_gpu"
            )

    @property
    def _places(self) -> int:
        """The slots of all GPUs."""
        assert isinstance(self.gpus, tuple)
        return len(self.gpus) * self.slots_per_gpu

    def open(self, objective: Objective, limits: TrialLimits) -> ProcessWorkers:
        """Start the workers, and wait until one of them has loaded the objective.

        An objective that cannot be pickled raises TypeError; one that the workers cannot load, or
        workers that die while they start, WorkerError."""
        if not _POSIX:
            raise WorkerError("worker processes need a POSIX system: use Linux, macOS or WSL")
        opened = time.monotonic()
        devices: list[str] | None = None
        if isinstance(self.gpus, tuple):
            devices = visible_devices(self.gpus, os.environ, there=gpus_there())
        cores = usable_cores()
        n = self.n_workers or (cores if devices is None else self._places)
        blob = packed(objective)
        _warn_of_contention(n, cores, len(devices) if devices else n)
        # devices in turn, so that fewer workers than places spread over all of them
        places = [devices[i % len(devices)] if devices else None for i in range(n)]
        share = max(1, cores // n)
        return ProcessWorkers(self, blob, limits, places, share=share, opened=opened)


class ProcessWorkers:
    """The processes at work, one for each of `places`: the devices that they have, if any."""

    def __init__(
        self,
        runner: ProcessRunner,
        blob: bytes,
        limits: TrialLimits,
        places: Sequence[str | None],
        *,
        share: int,
        opened: float,
    ) -> None:
        self.synchronous, self.opened = runner.synchronous, opened
        self._limits = limits
        self._blob = stored(blob)
        self._mark = uuid.uuid4().hex
        self._load = Load()
        environment = with_threads(os.environ, share)
        self._slots = [
            self._slot(i, device, environment, runner.grace) for i, device in enumerate(places)
        ]
        self._guard = Guard(self._mark)
        self._closed = False
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def _slot(self, i: int, device: str | None, environment: dict[str, str], grace: float) -> Slot:
        mark = f"{self._mark}.{i}"
        if device is None:
            return Slot(Launch.of(self._blob, environment), mark=mark, grace=grace)
        launch = Launch.of(self._blob, {**environment, VISIBLE: device}, device="cuda:0")
        return Slot(launch, mark=mark, grace=grace, device=f"cuda:{device}")

    def _start(self) -> None:
        """Start all at the same time, and wait for the first: what keeps one from loading the
        objective keeps all, and should be known before there are trials."""
        for slot in self._slots:
            slot.start()
        while not any(slot.ready for slot in self._slots):
            for slot in self._slots:
                slot.advance()
                if slot.failed_starts >= (1 if slot.unloadable else _STARTS):
                    raise WorkerError(f"a worker process could not start: {slot.why}")
                slot.start()
            if not any(slot.ready for slot in self._slots):
                pause(self._slots)

    @property
    def slots(self) -> int:
        return len(self._slots)

    @property
    def free(self) -> int:
        return sum(slot.number is None for slot in self._slots)

    def submit(self, trial: Trial, *, within: float | None = None) -> None:
        free = [slot for slot in self._slots if slot.number is None]
        if self._closed or not free:
            raise RuntimeError("the workers are closed" if self._closed else "no slot is free")
        self._guard.check()
        best = next((slot for slot in free if slot.ready), free[0])
        best.submit(trial, self._limits, within)
        self._load.begin(trial.number)

    def wait(self, timeout: float | None = None) -> list[Done]:
        for slot in self._slots:
            if slot.failed_starts >= _STARTS:
                raise WorkerError(f"worker processes keep failing to start: {slot.why}")
        done = gather(self._slots, math.inf if timeout is None else self.now() + timeout)
        return [self._accounted(one) for one in done]

    def _accounted(self, done: Done) -> Done:
        _, concurrency = self._load.end(done.trial.number)
        usage = done.usage and replace(done.usage, concurrency=concurrency)
        return replace(done, usage=usage)

    def stop(self, numbers: Iterable[int], reason: str) -> None:
        named = set(numbers)
        for slot in self._slots:
            if slot.number in named:
                slot.stop(reason)

    def now(self) -> float:
        return time.monotonic()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        try:
            shut(self._slots)
        finally:
            self._guard.dismiss()
            self._blob.close()


def _devices(gpus: Any) -> tuple[int | str, ...]:
    """Indices and UUIDs of distinct devices."""
    if is_whole(gpus):
        return tuple(range(whole("gpus", gpus, 1)))
    if isinstance(gpus, (str, bytes)) or not isinstance(gpus, Iterable):
        raise TypeError(f"gpus must be a number, or a list of indices or UUIDs, but got {gpus!r}")
    named = tuple(g if isinstance(g, str) else whole("every GPU", g) for g in gpus)
    if not named or len(set(named)) < len(named):
        raise ValueError(f"gpus must be one or more distinct devices, but got {list(named)}")
    return named


def _warn_of_contention(n: int, cores: int, devices: int) -> None:
    shared = []
    if n > cores:
        shared.append(f"{n} workers share {cores} core{'s' * (cores > 1)}")
    if n > devices:
        shared.append(f"{n} workers share {devices} GPU{'s' * (devices > 1)}")
    if shared:
        warn(
            f"{' and '.join(shared)}: trials slow each other down, and so their costs are higher "
            "than those of trials alone"
        )
