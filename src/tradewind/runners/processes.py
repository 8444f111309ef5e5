"""The runner that evaluates in worker processes on this machine, one for each slot.

A trial that crashes, hangs or exceeds a limit fails alone: its process is killed with all that it
started, and the slot gets a new one. Whatever happens to the driver, no process is left behind.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

from tradewind.checks import is_whole, not_negative, or_none, whole
from tradewind.errors import WorkerError, warn
from tradewind.interrupts import check
from tradewind.runners.concurrency import ConcurrencyMeter
from tradewind.runners.guard import Guard, Launch, put_in_file
from tradewind.runners.messages import pack
from tradewind.runners.resources import (
    VISIBLE,
    count_gpus,
    limit_threads,
    usable_cores,
    visible_devices,
)
from tradewind.runners.run import Objective
from tradewind.runners.runner import Done, TrialLimits
from tradewind.runners.slot import Slot, close_all, wait_for_change, wait_for_results
from tradewind.types import Trial

_POSIX = os.name == "posix"
_MAX_FAILED_STARTS = 3  # worker processes of a slot that may die in a row while they start


@dataclass(frozen=True)
class ProcessRunner:
    """Trials in `n_workers` processes on this machine: by default one for each core, or with `gpus`
    one for each slot of the GPUs.

    `gpus` is the number of GPUs to use, or a list of their UUIDs or of their indices among the GPUs
    that this process sees. Every worker sees one GPU, and `slots_per_gpu` workers share it. With
    `synchronous`, trials run in rounds. A process that must end gets SIGTERM first, and SIGKILL
    after `grace` seconds.

    The objective is sent by value (cloudpickle), so it may be a lambda, a closure or a function of
    a notebook, and it can import modules that are beside the script. A worker loads it once.

    >>> study.optimize(objective, n_trials=2, runner=tw.runners.ProcessRunner(2))
    >>> study.trials[-1].state
    <State.FINISHED: 'finished'>
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
            "gpus": None if self.gpus is None else _read_gpus(self.gpus),
            "slots_per_gpu": whole("slots_per_gpu", self.slots_per_gpu, 1),
            "grace": not_negative("grace", self.grace),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.gpus is None and self.slots_per_gpu > 1:
            raise ValueError(
                f"slots_per_gpu={self.slots_per_gpu} needs gpus, but got gpus=None: give both"
            )
        if self.gpus is not None and (self.n_workers or 0) > self._gpu_slots:
            raise ValueError(
                f"n_workers must be at most the {self._gpu_slots} slots of the GPUs, but got "
                f"{self.n_workers}: give fewer workers, or more slots_per_gpu"
            )

    @property
    def _gpu_slots(self) -> int:
        """The number of slots of all GPUs."""
        assert isinstance(self.gpus, tuple)
        return len(self.gpus) * self.slots_per_gpu

    def open(self, objective: Objective, limits: TrialLimits) -> ProcessWorkers:
        """Start the workers, and wait until one of them has loaded the objective.

        Raises TypeError if the objective cannot be pickled, and WorkerError if the workers cannot
        load it or die while they start."""
        if not _POSIX:
            raise WorkerError("worker processes need a POSIX system: use Linux, macOS or WSL")
        devices: list[str] | None = None
        if isinstance(self.gpus, tuple):
            devices = visible_devices(self.gpus, os.environ, n_gpus=count_gpus())
        cores = usable_cores()
        n = self.n_workers or (cores if devices is None else self._gpu_slots)
        blob = pack(objective)
        _warn_of_contention(n, cores, len(devices) if devices else n)
        # one device after the other, so that few workers still use all devices
        device_of = [devices[i % len(devices)] if devices else None for i in range(n)]
        threads = max(1, cores // n)
        return ProcessWorkers(self, blob, limits, device_of, threads=threads)


class ProcessWorkers:
    """The worker processes: one for each entry of `device_of`, which is its GPU or None. Numerical
    libraries use `threads` threads in each."""

    def __init__(
        self,
        runner: ProcessRunner,
        blob: bytes,
        limits: TrialLimits,
        device_of: Sequence[str | None],
        *,
        threads: int,
    ) -> None:
        self.synchronous = runner.synchronous
        self._limits, self._pid, self._closed = limits, os.getpid(), False
        self._concurrency = ConcurrencyMeter()
        self._slots: list[Slot] = []
        self._guard = Guard()
        self._blob = put_in_file(blob)
        environment = limit_threads(os.environ, threads)
        try:
            for device in device_of:
                self._slots.append(self._make_slot(device, environment, runner.grace))
            self._start()
        except BaseException:
            self.close()
            raise

    def _make_slot(self, device: str | None, environment: dict[str, str], grace: float) -> Slot:
        if device is None:
            return Slot(Launch.of(self._blob, environment), self._guard, grace=grace)
        launch = Launch.of(self._blob, {**environment, VISIBLE: device}, device="cuda:0")
        return Slot(launch, self._guard, grace=grace, device=f"cuda:{device}")

    def _start(self) -> None:
        """Start all workers at the same time, and wait until one is ready. If one cannot load the
        objective, none can, and the user must learn that before there are trials."""
        for slot in self._slots:
            slot.start()
        while not any(slot.ready for slot in self._slots):
            for slot in self._slots:
                slot.advance()
                if slot.failed_starts >= (1 if slot.load_error else _MAX_FAILED_STARTS):
                    raise WorkerError(f"a worker process could not start: {slot.start_error}")
                slot.start()
            if not any(slot.ready for slot in self._slots):
                wait_for_change(self._slots)
                check()

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
        best = next((slot for slot in free if slot.ready), free[0])
        best.submit(trial, self._limits, within)
        self._concurrency.start(trial.number)

    def wait(self, timeout: float | None = None) -> list[Done]:
        for slot in self._slots:
            if slot.failed_starts >= _MAX_FAILED_STARTS:
                raise WorkerError(f"worker processes keep failing to start: {slot.start_error}")
        until = math.inf if timeout is None else self.now() + timeout
        return [self._with_concurrency(done) for done in wait_for_results(self._slots, until)]

    def _with_concurrency(self, done: Done) -> Done:
        _, concurrency = self._concurrency.end(done.trial.number)
        usage = done.usage and replace(done.usage, concurrency=concurrency)
        return replace(done, usage=usage)

    def stop(self, numbers: Iterable[int], reason: str) -> None:
        wanted = set(numbers)
        for slot in self._slots:
            if slot.number in wanted:
                slot.stop(reason)

    def now(self) -> float:
        return time.monotonic()

    def close(self) -> None:
        if self._closed or os.getpid() != self._pid:  # a forked process has only copies
            return
        self._closed = True
        try:
            close_all(self._slots)
        finally:
            self._guard.dismiss()
            self._blob.close()


def _read_gpus(gpus: Any) -> tuple[int | str, ...]:
    """The indices and UUIDs of distinct devices."""
    if is_whole(gpus):
        return tuple(range(whole("gpus", gpus, 1)))
    if isinstance(gpus, (str, bytes)) or not isinstance(gpus, Iterable):
        raise TypeError(f"gpus must be a number, or a list of indices or UUIDs, but got {gpus!r}")
    devices = tuple(g if isinstance(g, str) else whole("every GPU", g) for g in gpus)
    if not devices or len(set(devices)) < len(devices):
        raise ValueError(f"gpus must be one or more distinct devices, but got {list(devices)}")
    return devices


def _warn_of_contention(n: int, cores: int, devices: int) -> None:
    shared = []
    if n > cores:
        shared.append(f"{n} workers share {cores} core{'s' * (cores > 1)}")
    if n > devices:
        shared.append(f"{n} workers share {devices} GPU{'s' * (devices > 1)}")
    if shared:
        warn(
            f"{' and '.join(shared)}: trials slow each other down, so they cost more than trials "
            "that run alone"
        )
