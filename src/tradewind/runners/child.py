"""A worker process seen from the driver: its channel, what its keeper reports, and how it is ended.

Nothing here blocks. The driver checks a child when one of its `sources` is ready, and at the latest
at its `next_check`.
"""

from __future__ import annotations

import math
import os
import signal
import time
from typing import TYPE_CHECKING

from tradewind.runners.channel import DriverEnd
from tradewind.runners.guard import Guard, Launch
from tradewind.runners.keeper import KILL, TERMINATE, Kind, Report, read_reports
from tradewind.runners.messages import Message, decode, encode
from tradewind.types import Trial

if TYPE_CHECKING:
    import psutil

_SEND_EVERY = 0.05  # seconds between attempts to send what a worker did not have room for
_SILENT = 1.0  # seconds that a process may live after it has closed its channel
_GIVE_UP = 10.0  # seconds after SIGKILL when a process that hangs in the kernel is left alone


class Child:
    """One worker process, with everything that it starts.

    `pid` is its process number, once it has one. `stopped_by` is the signal that has stopped it, if
    one has. `was_lost` says that somebody has killed its keeper or the guard, and so the worker.
    `fault` describes what it has sent although it should not."""

    def __init__(self, launch: Launch, guard: Guard) -> None:
        self._guard = guard
        channel, self._control = guard.start_worker(launch)
        self._control.setblocking(False)
        self._channel = DriverEnd(channel)
        self._channel_closed_at = math.inf
        self.pid: int | None = None
        self.stopped_by: int | None = None
        self.was_lost = False
        self.fault: str | None = None
        self._keeper: int | None = None
        self._errno: int | None = None
        self._code: int | None = None
        self._gone = False
        self._kill_at = math.inf
        self._orders = b""  # that were given to the keeper

    # ---- reports ----

    def read_reports(self) -> None:
        """Read what the keeper has reported."""
        while not self._gone:
            reports = read_reports(self._control.fileno())
            if reports is None:
                self._on_report(Report(Kind.LOST))
                self._gone = True
            elif not reports:
                return
            else:
                for report in reports:
                    self._on_report(report)

    def _on_report(self, report: Report) -> None:
        match report.kind:
            case Kind.STARTED:
                self._keeper, self.pid = report.first, report.second
            case Kind.FAILED:
                self._errno = report.first
            case Kind.ENDED:
                self._code, self.stopped_by = report.first, None
            case Kind.LOST:
                self.was_lost = self.was_lost or self._code is None
            case Kind.GONE:
                self._gone = True
            case Kind.STOPPED:
                self.stopped_by = report.first
            case Kind.CONTINUED:
                self.stopped_by = None

    @property
    def has_exited(self) -> bool:
        self.read_reports()
        return self._gone or self.was_lost or self._code is not None

    @property
    def is_dead(self) -> bool:
        """Whether no more messages can come from it."""
        silent = time.monotonic() >= self._channel_closed_at + _SILENT
        return self.has_exited or self.fault is not None or silent

    @property
    def how_it_ended(self) -> str:
        if self.fault is not None:
            return (
                "wrote something that is not a message to the driver's channel: "
                f"{self.fault}. An objective must not use descriptors that it has not opened"
            )
        if self._errno is not None:
            return f"could not be executed: {os.strerror(self._errno)}"
        if self.was_lost:
            return "was killed together with the process that watches over it"
        if self._code is None:
            return "closed its channel to the driver"
        if self._code >= 0:
            return f"ended with exit code {self._code}"
        name = signal_name(-self._code)
        return f"was killed by {name}{', perhaps for memory' if name == 'SIGKILL' else ''}"

    # ---- messages ----

    def send(self, trial: Trial) -> None:
        """Send a trial. It is lost if the worker has just died, which the next check finds."""
        self._channel.send(encode(trial))

    @property
    def has_message(self) -> bool:
        return not self._channel.closed and self._channel.has_message

    def receive(self) -> Message | None:
        """Its next message; None if there is none now."""
        if self._channel.closed:
            return None
        self._channel.flush()
        try:
            text = self._channel.receive()
            message = None if text is None else decode(text)
        except (TypeError, ValueError) as error:
            self.reject(str(error))
            return None
        if self._channel.closed:
            self._channel_closed_at = time.monotonic()
        return message

    def reject(self, fault: str) -> None:
        """Receive nothing more, because it has sent what it should not."""
        self.fault = fault
        self.close_channel()

    def close_channel(self) -> None:
        """Receive nothing more. An idle worker then ends."""
        if not self._channel.closed:
            self._channel.close()
            self._channel_closed_at = time.monotonic()

    def sources(self) -> list[int]:
        """The descriptors that become ready when there is a message or a report."""
        sources = [] if self._channel.closed else [self._channel.fileno()]
        return sources if self._gone else [*sources, self._control.fileno()]

    def next_check(self) -> float:
        """When to check it at the latest; infinite if a source becomes ready in any case."""
        if self.is_ending:
            return self._kill_at + (_GIVE_UP if KILL in self._orders else 0.0)
        if self._channel.closed:
            return self._channel_closed_at + _SILENT
        return time.monotonic() + _SEND_EVERY if self._channel.has_unsent else math.inf

    # ---- memory ----

    def memory_above(self, limit: int) -> int | None:
        """The bytes that it and all that it started occupy, if these are more than `limit`."""
        import psutil

        if self._keeper is None:
            return None
        try:
            tree = psutil.Process(self._keeper).children(recursive=True)
        except psutil.Error:
            return None
        if sum(_bytes(process, count_shared=True) for process in tree) <= limit:
            return None
        taken = sum(_bytes(process, count_shared=False) for process in tree)
        return taken if taken > limit else None

    # ---- ending ----

    @property
    def is_ending(self) -> bool:
        return self._kill_at < math.inf

    def start_ending(self, grace: float, *, gently: bool = False) -> None:
        """Start to end it and all that it started: SIGTERM now, SIGKILL after `grace` seconds.
        `gently` only closes the channel at first, so that an idle worker ends by itself."""
        self._kill_at = time.monotonic() + grace
        if gently:
            self.close_channel()
        else:
            self._order(TERMINATE)

    def continue_ending(self) -> bool:
        """Give the orders that are due now. Returns whether all processes have ended."""
        exited, now = self.has_exited, time.monotonic()
        if now >= self._kill_at:
            self._order(KILL)
        elif exited:
            self._order(TERMINATE)  # for what it has left behind
        return self._gone or now >= self._kill_at + _GIVE_UP

    def _order(self, order: bytes) -> None:
        """Tell the keeper, once."""
        if order in self._orders:
            return
        self._orders += order
        self._guard.wake()  # it lets a stopped keeper continue
        try:
            self._control.send(order)
        except OSError:  # it has ended
            return

    def close(self) -> None:
        """Close the descriptors."""
        self._channel.close()
        self._control.close()


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _bytes(process: psutil.Process, *, count_shared: bool) -> int:
    """The memory of a process. With `count_shared`, memory shared with other processes counts in
    full for each of them, which is quick to read. Without it, only the process's share of it
    counts, which is slow but right for forked children: they share most of their memory."""
    import psutil

    try:
        info = process.memory_info() if count_shared else process.memory_full_info()
        return int(getattr(info, "pss", info.rss))
    except psutil.Error:
        return 0
