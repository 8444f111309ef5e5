"""A place for one trial at a time: its worker process, and what is to become of the trial.

`ProcessRunner` has a list of them. `evaluate_apart` is for runners whose workers are on other
machines, and cannot kill what they run there: it evaluates in a slot on the machine of the caller.
"""

from __future__ import annotations

import atexit
import hashlib
import math
import os
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from typing import IO

from tradewind.errors import WorkerError
from tradewind.runners.child import Child, Launch, stored
from tradewind.runners.guard import Guard
from tradewind.runners.runner import (
    OUT_OF_TIME,
    Done,
    Failure,
    Lost,
    Result,
    Stopped,
    TrialLimits,
    overtime,
)
from tradewind.runners.worker import Answer, Begun, Loaded
from tradewind.types import Outcome, Trial, Usage

_MEMORY_EVERY = 0.1  # seconds between looks at the memory,
_MEMORY_SHARE = 0.02  # but no more than this share of the driver's time goes into them
_ASKED_EVERY = 0.5  # seconds between the questions whether an evaluation apart is to be stopped
_SOON = 0.02  # seconds between looks at what is being killed
_KEPT = 30.0  # seconds that an idle process is kept for the next evaluation apart
_GRACE = 2.0  # seconds between SIGTERM and SIGKILL there


@dataclass
class _Task:
    """A trial in a slot."""

    trial: Trial
    limits: TrialLimits
    submitted: float
    deadline: float
    begun: float | None = None
    stopped: str | None = None  # why somebody wants it to end
    look: float = 0.0  # when to look at its memory
    verdict: Result | None = None  # what becomes of it when all its processes have gone
    usage: Usage | None = None

    def elapsed(self, now: float) -> float:
        return now - (self.submitted if self.begun is None else self.begun)


class Slot:
    """One slot. A worker process is started when there is none, and serves trial after trial.

    `device` is how the driver calls the device that the worker has. `failed_starts` counts the
    processes in a row that were never ready; `why` tells about the last of them, and `unloadable`
    says that the objective is to blame.
    """

    def __init__(self, launch: Launch, *, mark: str, grace: float, device: str = "cpu") -> None:
        self.launch, self._mark, self._grace, self._device = launch, mark, grace, device
        self._child: Child | None = None
        self._children = 0
        self._task: _Task | None = None
        self.unloadable: str | None = None  # why its worker cannot load the objective
        self.ready = False
        self.failed_starts, self.why = 0, ""

    @property
    def number(self) -> int | None:
        """Of the trial that it has; None if it is free."""
        return None if self._task is None else self._task.trial.number

    def start(self) -> Child:
        """Start a worker process, if there is none or it has died while it was idle."""
        if self._child is not None and self._child.exited:
            self.abort()
        if self._child is None:
            self._children += 1
            self.unloadable = None
            self._child = Child(self.launch, f"{self._mark}.{self._children}")
        return self._child

    def submit(self, trial: Trial, limits: TrialLimits, within: float | None = None) -> None:
        child, now = self.start(), time.monotonic()
        deadline = math.inf if within is None else now + within
        self._task = _Task(trial, limits, now, deadline)
        with suppress(OSError):  # a worker that has just died is found dead when we look in
            child.channel.send(trial)

    def stop(self, reason: str) -> None:
        """End the trial as `Stopped`, unless its answer is there already."""
        task, child = self._task, self._child
        if task is None or child is None or task.stopped is not None:
            return
        task.stopped = reason
        if not child.pending:
            self._judge(task, child, dead=False)

    def advance(self) -> Done | None:
        """Take what has come from the worker and do what is due; the trial, if that is done."""
        child, task = self._child, self._task
        if child is None:
            return None
        dead = child.dead()  # asked first: what it has sent before it died counts
        while (message := child.receive()) is not None:
            if isinstance(message, Loaded):
                self._loaded(message)
            elif task is None:
                continue
            elif isinstance(message, Begun):
                task.begun = message.at
            elif (done := self._answered(task, child, message)) is not None:
                return done
        if not self.ready and (dead or self.unloadable is not None):
            dead = True
            self._fail_to_start(child)
        if task is None:
            return None
        self._judge(task, child, dead=dead)
        return self._over(task) if task.verdict is not None and self.gone() else None

    def _loaded(self, message: Loaded) -> None:
        if message.error is not None:
            self.unloadable = f"the objective cannot be loaded there:\n{message.error}"
            return
        self.ready, self.failed_starts = True, 0

    def _answered(self, task: _Task, child: Child, message: Answer) -> Done | None:
        result, usage = message.unpacked(), replace(message.usage, device=self._device)
        if task.verdict is None:
            self._task = None
            return Done(task.trial, result, usage)
        if isinstance(result, Outcome):  # a failure may come of being ended
            task.verdict, task.usage = result, usage
        child.hang_up()  # it has survived SIGTERM, and has nothing left to do
        return None

    def _fail_to_start(self, child: Child) -> None:
        if not child.ending:
            self.failed_starts += 1
            self.why = self.unloadable or f"it {child.obituary} while it started"
        if self._task is None:
            self.abort()

    def _judge(self, task: _Task, child: Child, *, dead: bool) -> None:
        """Begin to end a trial that has died, or has to."""
        if task.verdict is None:
            task.verdict = self._verdict(task, child, dead=dead)
            if task.verdict is not None:
                child.end(self._grace)

    def _verdict(self, task: _Task, child: Child, *, dead: bool) -> Result | None:
        now = time.monotonic()
        elapsed, limits = task.elapsed(now), task.limits
        if dead and task.begun is None:
            how = f"it {child.obituary}" if self.ready else self.why
            return Lost(f"its worker process was lost: {how}")
        if dead:
            return Failure(f"the worker process {child.obituary}", elapsed)
        if task.stopped is not None:
            return Stopped(task.stopped)
        if now >= task.deadline:
            return OUT_OF_TIME
        if task.begun is None:
            return None
        if limits.timeout is not None and elapsed > limits.timeout:
            return Failure(overtime(limits.timeout), elapsed)
        if limits.memory is not None and now >= task.look:
            taken = child.over(limits.memory)
            spent = time.monotonic() - now
            task.look = now + max(_MEMORY_EVERY, spent / _MEMORY_SHARE)
            if taken is not None:
                text = f"may take {_shown(limits.memory)} of memory, and this one took"
                return Failure(f"a trial {text} {_shown(taken)}", elapsed)
        return None

    def _over(self, task: _Task) -> Done:
        assert task.verdict is not None
        self._task = None
        usage = task.usage or Usage(task.elapsed(time.monotonic()), device=self._device)
        return Done(task.trial, task.verdict, usage)

    def sources(self) -> list[Connection | int]:
        """What becomes ready when there is something to see."""
        return [] if self._child is None else self._child.sources()

    def due(self) -> float:
        """When to look in at the latest."""
        child, task = self._child, self._task
        if child is None:
            return math.inf
        if task is None or task.verdict is not None:
            return child.due()
        due = [child.due(), task.deadline]
        if task.begun is not None and task.limits.timeout is not None:
            due.append(task.begun + task.limits.timeout)
        if task.begun is not None and task.limits.memory is not None:
            due.append(task.look)
        return min(due)

    # ---- ending ----

    def end(self) -> None:
        """Begin to end the worker and all that it started, with a trial or without."""
        child = self._child
        if child is not None and not child.ending:
            child.end(self._grace, gently=self._task is None and self.ready)
        if child is not None:
            child.hang_up()

    def gone(self) -> bool:
        """Whether they have ended; does what has to be done next about those that have not."""
        if self._child is not None and self._child.gone():
            self._child.release()
            self._child, self.ready = None, False
        return self._child is None

    def abort(self) -> None:
        """Kill them all, now."""
        if self._child is not None:
            self._child.end(0.0)
            while not self.gone():
                time.sleep(_SOON)


def gather(slots: Sequence[Slot], until: float) -> list[Done]:
    """Wait until a trial is done, nothing runs any more, or the clock shows `until`."""
    while True:
        done = [result for slot in slots if (result := slot.advance()) is not None]
        busy = [slot for slot in slots if slot.number is not None]
        if done or not busy or time.monotonic() >= until:
            return done
        pause(busy, until)


def pause(slots: Sequence[Slot], until: float = math.inf) -> None:
    """Wait until there is something to see or to do."""
    due = min(until, *(slot.due() for slot in slots))
    left = None if due == math.inf else max(0.0, due - time.monotonic())
    sources = [source for slot in slots for source in slot.sources()]
    if sources:
        wait_for(sources, left)
    elif left is not None:
        time.sleep(left)


def shut(slots: Sequence[Slot]) -> None:
    """End them all at the same time, and come back when they have gone."""
    try:
        for slot in slots:
            slot.end()
        while rest := [slot for slot in slots if not slot.gone()]:
            pause(rest)
    except BaseException:  # the user is in a hurry
        for slot in slots:
            slot.abort()
        raise


# ---- one evaluation, on the machine of the caller ----


def evaluate_apart(
    blob: bytes,
    trial: Trial,
    *,
    timeout: float | None = None,
    memory: int | None = None,
    within: float | None = None,
    stopped: Callable[[], str | None] | None = None,
) -> Done:
    """Evaluate a trial in a process of its own on this machine, and block until it is done.

    `blob` is the objective as `tradewind.runners.worker.packed(objective)` gives it. Over `timeout`
    seconds or `memory` bytes (with children) it is killed and is a `Failure`; not done `within` so
    many seconds, or when `stopped()` (asked twice a second, in the calling thread) gives a
    reason, it is killed and is `Stopped`. A crash is a `Failure`. An objective that cannot be
    loaded, or a process that cannot start, raises WorkerError.

    Any thread may call it, also of a daemonic process. An idle process is kept for the next call
    with the same blob for half a minute, and ends with the calling process however that ends.
    """
    kept = _kept.setdefault(os.getpid(), _Kept())
    key = hashlib.sha256(blob).digest()
    with stored(blob) as file:  # there as long as a process may have to be started
        slot = kept.take(key, file)
        try:
            slot.submit(trial, TrialLimits(timeout, memory), within)
            while not (
                done := gather([slot], time.monotonic() + _ASKED_EVERY if stopped else math.inf)
            ):
                if stopped is not None and (reason := stopped()) is not None:
                    slot.stop(reason)
        except BaseException:
            slot.abort()
            raise
    if slot.failed_starts:
        raise WorkerError(f"a worker process could not start: {slot.why}")
    kept.keep(key, slot)
    return done[0]


class _Kept:
    """The idle slots of this process, and the guard over all of its slots."""

    def __init__(self) -> None:
        self._pid, self._lock = os.getpid(), threading.Lock()
        self._mark, self._started = uuid.uuid4().hex, 0
        self._guard: Guard | None = None
        self._idle: list[tuple[bytes, float, Slot]] = []

    def take(self, key: bytes, blob: IO[bytes]) -> Slot:
        """An idle slot for this objective, or else a new one."""
        with self._lock:
            self._drop_old()
            if self._guard is None:
                self._guard = Guard(self._mark)
                atexit.register(self.close)
            self._guard.check()
            for entry in self._idle:
                if entry[0] == key:
                    self._idle.remove(entry)
                    entry[2].launch = replace(entry[2].launch, blob=blob)
                    return entry[2]
            self._started += 1
            mark = f"{self._mark}.{self._started}"
        return Slot(Launch.of(blob, os.environ, idle=2 * _KEPT), mark=mark, grace=_GRACE)

    def keep(self, key: bytes, slot: Slot) -> None:
        with self._lock:
            self._drop_old()
            if slot.ready:
                self._idle.append((key, time.monotonic(), slot))

    def _drop_old(self) -> None:
        """Those that will soon end by themselves, or have."""
        oldest = time.monotonic() - _KEPT
        for _, since, slot in self._idle:
            if since < oldest:
                slot.abort()
        self._idle = [entry for entry in self._idle if entry[1] >= oldest]

    def close(self) -> None:
        with self._lock:
            if self._pid == os.getpid() and self._guard is not None:
                shut([slot for _, _, slot in self._idle])
                self._guard.dismiss()
                self._idle, self._guard = [], None


_kept: dict[int, _Kept] = {}  # by process, so that a forked one has nothing of its parent's


def _shown(size: int) -> str:
    return f"{size / 2**20:.4g} MiB"
