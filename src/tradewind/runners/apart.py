"""Evaluate one trial in a process of its own, on the machine of the caller.

This is for runners whose workers are on other machines, such as those of Dask and Ray. Such a
worker cannot kill what it runs itself, but it can kill another process.
"""

from __future__ import annotations

import atexit
import hashlib
import math
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import IO

from tradewind.errors import WorkerError
from tradewind.runners.guard import Guard, Launch, put_in_file
from tradewind.runners.messages import decode, describe, write_answer
from tradewind.runners.resources import VISIBLE
from tradewind.runners.runner import Done, Failure, TrialLimits
from tradewind.runners.slot import Slot, close_all, wait_for_results
from tradewind.types import Trial

_STOP_CHECK = 0.5  # seconds between questions whether to stop
_KEEP = 30.0  # seconds that an idle process is kept for the next evaluation
_GRACE = 2.0  # seconds between SIGTERM and SIGKILL


def evaluate_apart(
    blob: bytes,
    trial: Trial,
    *,
    limits: TrialLimits,
    device: str = "cpu",
    within: float | None = None,
    why_stop: Callable[[], str | None] | None = None,
) -> Done:
    """Evaluate a trial in a process of its own on this machine, and wait until it is done.

    `blob` is the objective as `tradewind.runners.messages.pack(objective)` returns it.

    A trial that exceeds `limits`, or whose process crashes, is a `Failure`. A trial that is not
    done `within` so many seconds is `Stopped`. So is one for which `why_stop()` returns a reason;
    it is called twice a second, in the calling thread. If the objective cannot be loaded, or no
    process can be started, WorkerError is raised.

    Any thread may call this, and a daemonic process as well. An idle process is kept for half a
    minute for the next call with the same objective and device. It ends with the calling process,
    however that ends."""
    idle_slots = _idle_slots.setdefault(os.getpid(), _IdleSlots())
    key = _Key(hashlib.sha256(blob).digest(), device, os.environ.get(VISIBLE))
    with put_in_file(blob) as file:  # open as long as a process may have to be started
        slot = idle_slots.take(key, file)
        try:
            slot.submit(trial, limits, within)
            while not (done := wait_for_results([slot], _next_question(why_stop))):
                if why_stop is not None and (reason := why_stop()) is not None:
                    slot.stop(reason)
        except BaseException:
            slot.kill()
            raise
    if slot.failed_starts:
        raise WorkerError(f"a worker process could not start: {slot.start_error}")
    idle_slots.put_back(key, slot)
    return done[0]


def _next_question(why_stop: Callable[[], str | None] | None) -> float:
    return math.inf if why_stop is None else time.monotonic() + _STOP_CHECK


@dataclass(frozen=True)
class Assignment:
    """What a worker of a cluster must do with every trial: call the pickled objective, within
    limits, and on a GPU if the trials were given one."""

    blob: bytes
    limits: TrialLimits
    gpu: bool

    @property
    def device(self) -> str:
        return "cuda:0" if self.gpu else "cpu"

    def evaluate(
        self, trial: Trial, *, within: float | None, why_stop: Callable[[], str | None]
    ) -> Done:
        """Evaluate a trial on this machine, in a process of its own beside the calling one."""
        device, limits = self.device if _sees_gpu() else "cpu", self.limits
        return evaluate_apart(
            self.blob, trial, limits=limits, device=device, within=within, why_stop=why_stop
        )


def answer(message: str, evaluate: Callable[[Trial], Done]) -> str:
    """The answer of a worker about the trial in a message, whatever `evaluate` raises. A cluster
    pickles what its workers return or raise, and the driver unpickles it: so both must be text."""
    trial = decode(message)
    assert isinstance(trial, Trial)
    try:
        done = evaluate(trial)
    except BaseException as error:
        text = str(error) if isinstance(error, WorkerError) else describe(error)
        done = Done(trial, Failure(text))
    return write_answer(done)


def _sees_gpu() -> bool:
    """Whether CUDA_VISIBLE_DEVICES shows this process a GPU. An unset variable shows none: a
    cluster that gives GPUs to trials sets it."""
    return os.environ.get(VISIBLE, "") not in ("", "-1", "NoDevFiles")


# ---- idle processes ----


@dataclass(frozen=True)
class _Key:
    """What a process was started with. It can evaluate only trials with the same key."""

    objective: bytes
    device: str
    visible: str | None


class _IdleSlots:
    """The idle slots of this process, and the guard of all its slots."""

    def __init__(self) -> None:
        self._pid, self._lock = os.getpid(), threading.Lock()
        self._guard: Guard | None = None
        self._idle: list[tuple[_Key, float, Slot]] = []  # and since when

    def take(self, key: _Key, blob: IO[bytes]) -> Slot:
        """An idle slot with this key, or else a new one."""
        with self._lock:
            self._drop_old()
            if self._guard is None:
                self._guard = Guard()
                atexit.register(self.close)
            guard = self._guard
            for entry in self._idle:
                if entry[0] == key:
                    self._idle.remove(entry)
                    entry[2].launch = replace(entry[2].launch, blob=blob)
                    return entry[2]
        launch = Launch.of(blob, os.environ, device=key.device, idle=2 * _KEEP)
        return Slot(launch, guard, grace=_GRACE, device=key.device)

    def put_back(self, key: _Key, slot: Slot) -> None:
        with self._lock:
            self._drop_old()
            if slot.ready:
                self._idle.append((key, time.monotonic(), slot))

    def _drop_old(self) -> None:
        """Drop the slots whose processes have ended for lack of trials, or soon would."""
        oldest = time.monotonic() - _KEEP
        for _, since, slot in self._idle:
            if since < oldest:
                slot.kill()
        self._idle = [entry for entry in self._idle if entry[1] >= oldest]

    def close(self) -> None:
        with self._lock:
            if self._pid == os.getpid() and self._guard is not None:
                close_all([slot for _, _, slot in self._idle])
                self._guard.dismiss()
                self._idle, self._guard = [], None


_idle_slots: dict[int, _IdleSlots] = {}  # by process: a forked one must not use its parent's
