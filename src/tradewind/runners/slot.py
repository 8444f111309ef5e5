"""A slot runs one trial at a time in its worker process, and decides the trial's result.

`ProcessRunner` has a list of slots, and `evaluate_apart` uses one. The functions at the end wait
for several slots at once and close them together.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tradewind import interrupts
from tradewind.output import logger as _logger
from tradewind.runners.child import Child, signal_name
from tradewind.runners.guard import Guard, Launch
from tradewind.runners.messages import Answer, Begun, Loaded, Message
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
from tradewind.types import Outcome, Trial, Usage

_START = 60.0  # seconds that a worker may take to load the objective, if trials have a time limit
_MEMORY_CHECK = 0.1  # seconds between checks of the memory,
_MEMORY_SHARE = 0.02  # but the checks take at most this share of the driver's time


@dataclass
class _Task:
    """A trial in a slot. `handed` is when a worker that was ready got it, and `begun` says that it
    runs there. `result` is set when its processes must end, and `stop_reason` when somebody wants
    the trial to end."""

    trial: Trial
    limits: TrialLimits
    submitted: float
    deadline: float
    handed: float | None = None
    begun: bool = False
    stop_reason: str | None = None
    next_memory_check: float = 0.0
    result: Result | None = None
    usage: Usage | None = None

    def elapsed(self, now: float) -> float:
        return now - (self.submitted if self.handed is None else self.handed)

    @property
    def patience(self) -> float:
        """How many seconds may have elapsed: a worker may take its time only while it starts."""
        if self.limits.timeout is None:
            return math.inf
        return max(self.limits.timeout, _START) if self.handed is None else self.limits.timeout


class Slot:
    """A slot for one trial at a time. It starts a worker process when it has none, and keeps it for
    the next trials.

    `device` is the driver's name for the worker's device. `failed_starts` counts the processes in a
    row that were never ready, `start_error` says what happened to the last of them, and
    `load_error` is set if the objective was the cause.
    """

    def __init__(self, launch: Launch, guard: Guard, *, grace: float, device: str = "cpu") -> None:
        self.launch, self._guard, self._grace, self._device = launch, guard, grace, device
        self._child: Child | None = None
        self._stopped_by: int | None = None
        self._task: _Task | None = None
        self.ready = False
        self.failed_starts, self.start_error = 0, ""
        self.load_error: str | None = None

    @property
    def number(self) -> int | None:
        """The number of the trial in this slot; None if the slot is free."""
        return None if self._task is None else self._task.trial.number

    def start(self) -> Child:
        """Start a worker process if there is none, or if it has died or was stopped while it was
        idle."""
        child = self._child
        if child is not None and (child.is_dead or (self.ready and child.stopped_by is not None)):
            self.kill()
        if self._child is None:
            self.load_error = None
            self._child = Child(self.launch, self._guard)
        return self._child

    def submit(self, trial: Trial, limits: TrialLimits, within: float | None = None) -> None:
        self.advance()  # it may have sent something while it was idle
        child, now = self.start(), time.monotonic()
        deadline = math.inf if within is None else now + within
        self._task = _Task(trial, limits, now, deadline, now if self.ready else None)
        child.send(trial)

    def stop(self, reason: str) -> None:
        """End the trial as `Stopped`, unless its answer has already arrived."""
        task, child = self._task, self._child
        if task is None or child is None or task.stop_reason is not None:
            return
        task.stop_reason = reason
        if not child.has_message:
            self._end_if_needed(task, child, dead=False)

    # ---- one step ----

    def advance(self) -> Done | None:
        """Read the worker's messages and end the trial if it must end. Returns the trial when it is
        done."""
        child, task = self._child, self._task
        if child is None:
            return None
        dead = child.is_dead  # read first, because messages that it sent before its death count
        self._warn_if_stopped(child)
        while (message := child.receive()) is not None:
            if (done := self._on_message(message, child)) is not None:
                return done
        dead = dead or child.fault is not None
        if not self.ready and (dead or self.load_error is not None):
            dead = True
            self._on_failed_start(child)
        if task is None:
            return None
        self._end_if_needed(task, child, dead=dead)
        if task.result is None or not self.continue_ending():
            return None
        self._task = None
        usage = task.usage or Usage(task.elapsed(time.monotonic()), device=self._device)
        return Done(task.trial, task.result, usage)

    def _on_message(self, message: Message, child: Child) -> Done | None:
        """Returns the trial if it is done. Every message has its time: a worker that sends another,
        or one about another trial, is ended."""
        task = self._task
        number = None if task is None else task.trial.number
        begun = task is not None and task.begun
        match message:
            case Loaded() if not self.ready and self.load_error is None:
                self._on_loaded(message)
            case Begun(number=n) if task and n == number and not begun:
                task.begun = True
            case Answer(number=n, result=Outcome() | Failure()) if task and n == number and begun:
                return self._on_answer(task, child, message)
            case _:
                child.reject(f"an unexpected {type(message).__name__}")
        return None

    def _warn_if_stopped(self, child: Child) -> None:
        """Say it when somebody stops a worker that is needed, and when it continues."""
        if child.stopped_by == self._stopped_by:
            return
        self._stopped_by = child.stopped_by
        if self._task is None and self.ready:
            return
        role = "for the next trial" if self._task is None else f"of trial {self.number}"
        if child.stopped_by is None:
            _logger.warning("the worker process %d %s continues", child.pid, role)
            return
        _logger.warning(
            "the worker process %d %s was stopped by %s: continue it with `kill -CONT %d`. With a "
            "trial_timeout, such a trial fails when its time is up",
            child.pid,
            role,
            signal_name(child.stopped_by),
            child.pid,
        )

    def _on_loaded(self, message: Loaded) -> None:
        if message.error is not None:
            self.load_error = f"the objective cannot be loaded there:\n{message.error}"
            return
        self.ready, self.failed_starts = True, 0
        if self._task is not None:
            self._task.handed = time.monotonic()

    def _on_answer(self, task: _Task, child: Child, message: Answer) -> Done | None:
        usage = message.usage or Usage(task.elapsed(time.monotonic()))
        result, usage = message.result, replace(usage, device=self._device)
        if task.result is None:
            self._task = None
            return Done(task.trial, result, usage)
        if isinstance(result, Outcome):  # but a failure may be the effect of SIGTERM
            task.result, task.usage = result, usage
        child.close_channel()  # the worker has survived SIGTERM and is idle now
        return None

    def _on_failed_start(self, child: Child) -> None:
        if not child.is_ending:
            self.failed_starts += 1
            self.start_error = self.load_error or f"it {child.how_it_ended} while it started"
        if self._task is None:
            self.kill()

    def _end_if_needed(self, task: _Task, child: Child, *, dead: bool) -> None:
        """Start to end the processes of a trial that has died or exceeded a limit."""
        if task.result is None:
            task.result = self._reason_to_end(task, child, dead=dead)
            if task.result is not None:
                child.start_ending(self._grace)

    def _reason_to_end(self, task: _Task, child: Child, *, dead: bool) -> Result | None:
        """The result of a trial that must end now; None if it may go on."""
        now = time.monotonic()
        elapsed, limits = task.elapsed(now), task.limits
        if dead and (not task.begun or child.was_lost):
            how = f"it {child.how_it_ended}" if self.ready else self.start_error
            return Lost(f"its worker process was lost: {how}")
        if dead:
            return Failure(f"the worker process {child.how_it_ended}", elapsed)
        if task.stop_reason is not None:
            return Stopped(task.stop_reason)
        if now >= task.deadline:
            return OUT_OF_TIME
        if not task.begun:
            if child.stopped_by is not None:
                how = f"was stopped by {signal_name(child.stopped_by)} before the trial began"
            elif elapsed > task.patience:
                how = f"did not begin the trial within {task.patience:g} seconds"
            else:
                return None
            return Lost(f"its worker process {how}")
        if limits.timeout is not None and elapsed > limits.timeout:
            return Failure(overtime(limits.timeout), elapsed)
        if limits.memory is not None and now >= task.next_memory_check:
            taken = child.memory_above(limits.memory)
            spent = time.monotonic() - now
            task.next_memory_check = now + max(_MEMORY_CHECK, spent / _MEMORY_SHARE)
            if taken is not None:
                text = f"may take {_mebibytes(limits.memory)} of memory, and this one took"
                return Failure(f"a trial {text} {_mebibytes(taken)}", elapsed)
        return None

    def sources(self) -> list[int]:
        """The descriptors that become ready when there is a message, or news of the worker."""
        return [] if self._child is None else self._child.sources()

    def next_check(self) -> float:
        """When to call `advance` at the latest."""
        child, task = self._child, self._task
        if child is None:
            return math.inf
        if task is None or task.result is not None:
            return child.next_check()
        now = time.monotonic()
        times = [child.next_check(), task.deadline, now + task.patience - task.elapsed(now)]
        if task.begun and task.limits.memory is not None:
            times.append(task.next_memory_check)
        return min(times)

    # ---- ending ----

    def start_ending(self) -> None:
        """Start to end the worker and all that it started, with a trial or without."""
        child = self._child
        if child is not None and not child.is_ending:
            child.start_ending(self._grace, gently=self._task is None and self.ready)
        if child is not None:
            child.close_channel()

    def continue_ending(self) -> bool:
        """Signal the processes that must end now. Returns whether all have ended."""
        if self._child is not None and self._child.continue_ending():
            self._child.close()
            self._child, self.ready, self._stopped_by = None, False, None
        return self._child is None

    def kill(self) -> None:
        """Kill the worker and all that it started, and wait until they have ended."""
        if self._child is not None:
            self._child.start_ending(0.0)
            self._child.close_channel()
            while not self.continue_ending():
                wait_for_change([self])


def wait_for_results(slots: Sequence[Slot], until: float) -> list[Done]:
    """Wait until a trial is done, none runs any more, the clock shows `until`, or somebody is told
    to end."""
    woken = False
    while True:
        done = [result for slot in slots if (result := slot.advance()) is not None]
        busy = [slot for slot in slots if slot.number is not None]
        if done or not busy or time.monotonic() >= until or woken:
            return done
        woken = wait_for_change(busy, until)


def wait_for_change(slots: Sequence[Slot], until: float = math.inf) -> bool:
    """Wait until a source is ready or the next check is due. True if somebody was told to end
    meanwhile."""
    due = min(until, *(slot.next_check() for slot in slots))
    left = None if due == math.inf else max(0.0, due - time.monotonic())
    return interrupts.wait([source for slot in slots for source in slot.sources()], left)


def close_all(slots: Sequence[Slot]) -> None:
    """End the workers of all slots at the same time, and wait until they have ended."""
    try:
        for slot in slots:
            slot.start_ending()
        while rest := [slot for slot in slots if not slot.continue_ending()]:
            wait_for_change(rest)
    except BaseException:  # such as a second Ctrl-C: do not wait for the grace period
        for slot in slots:
            slot.kill()
        raise


def _mebibytes(size: int) -> str:
    return f"{size / 2**20:.4g} MiB"
