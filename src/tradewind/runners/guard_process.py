"""What runs in the guard: one small process per runner, the parent of the keepers of its workers.

    driver - guard - keeper - worker - whatever it starts

The guard forks a keeper when the driver asks for a worker. If a keeper is killed, the kernel gives
the guard what was below it, and the guard kills that. If the driver ends, in whatever way, the
guard kills everything. If the guard is killed, its keepers do.
"""

from __future__ import annotations

import marshal
import os
import signal
import socket
from collections.abc import Iterable
from typing import Any, NamedTuple

from tradewind.runners.descendants import (
    adopt_orphans,
    find_descendants,
    kill_descendants,
    open_pidfd,
    send_signal,
    signal_when_parent_dies,
)
from tradewind.runners.keeper import (
    CHECK_EVERY,
    Keeper,
    Kind,
    Report,
    Start,
    catch_signals,
    send_report,
    wait_for,
)

# A request has these descriptors: a file with the other fields of `Start` in their order, the
# keeper's end of the control socket, and the descriptors of `Start` in their order.
N_DESCRIPTORS = 6

_KILL_EVERY = 0.02  # seconds between searches for what a killed keeper has left


class _Kept(NamedTuple):
    """A keeper, seen from the guard. The guard has the keeper's end of the control socket too, to
    report in its place if it is killed."""

    control: int
    mark: str | None


def watch(driver: int, requests: int, *, use_marks: bool) -> None:
    """Serve the driver until it closes the socket `requests`, or dies. Then kill everything."""
    wake = catch_signals()
    mark = os.urandom(16).hex() if use_marks or not adopt_orphans() else None
    if mark is None:
        signal_when_parent_dies(signal.SIGCONT)  # it works even if somebody has stopped us
    guard = _Guard(driver, requests, wake, mark)
    guard.serve()
    kill_descendants(mark, guard.reap)


class _Guard:
    def __init__(self, driver: int, requests: int, wake: int, mark: str | None) -> None:
        self._driver, self._mark, self._wake = driver, mark, wake
        self._requests = socket.socket(fileno=requests)
        self._death = [] if (death := open_pidfd(driver)) is None else [death]
        self._kept: dict[int, _Kept] = {}  # by the process number of the keeper
        self._killed: list[_Kept] = []
        self._started = 0

    def serve(self) -> None:
        """Start workers until the driver is gone."""
        sources = [self._requests.fileno(), *self._death]
        # The socket need not close when the driver dies: a process that the driver forked may hold
        # the other end. So the parent is checked as well.
        while os.getppid() == self._driver:
            if self._requests.fileno() in wait_for(sources, self._wake, self._patience()):
                descriptors = _receive(self._requests)
                if descriptors is None:
                    return
                self._start_keeper(descriptors)
            self.reap()
            self._kill_strays()

    def _patience(self) -> float | None:
        if self._killed:
            return _KILL_EVERY
        return None if self._death else CHECK_EVERY

    def reap(self) -> bool:
        """Collect the children that have ended. Returns whether any are left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if os.WIFSTOPPED(status):
                send_signal([pid] if pid in self._kept else [], signal.SIGCONT)
            elif kept := self._kept.pop(pid, None):
                if status == 0:
                    os.close(kept.control)
                else:
                    send_report(kept.control, Report(Kind.LOST))
                    self._killed.append(kept)

    def _kill_strays(self) -> None:
        """Kill what was below killed keepers, and tell the driver when nothing of it is left."""
        if not self._killed:
            return
        strays: list[int] = []
        for mark in {kept.mark for kept in self._killed}:
            strays += find_descendants(mark, spare=self._kept)
        send_signal(strays, signal.SIGKILL)
        if not strays:
            for kept in self._killed:
                send_report(kept.control, Report(Kind.GONE))
                os.close(kept.control)
            self._killed = []

    def _start_keeper(self, descriptors: list[int]) -> None:
        if len(descriptors) < N_DESCRIPTORS:  # this process has too many open: the driver sees it
            _close(descriptors)
            return
        request, control, *rest = descriptors
        os.set_blocking(control, False)
        self._started += 1
        kept = _Kept(control, self._mark and f"{self._mark}.{self._started}")
        start = Start(*_read_request(request), *rest)
        guard = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            send_report(control, Report(Kind.FAILED, error.errno or 0))
            send_report(control, Report(Kind.GONE))
            os.close(control)
        else:
            if pid == 0:
                self._become_keeper(Keeper(start, control, guard=guard, mark=kept.mark))
            self._kept[pid] = kept
        _close(rest)

    def _become_keeper(self, keeper: Keeper) -> None:
        status = 1
        try:
            _close(kept.control for kept in (*self._kept.values(), *self._killed))
            _close([self._requests.detach(), self._wake, *self._death])
            keeper.run()
            status = 0
        finally:
            os._exit(status)


def _receive(requests: socket.socket) -> list[int] | None:
    """The descriptors of one request; None if the driver has closed the socket."""
    try:
        data, descriptors, _, _ = socket.recv_fds(requests, 1, N_DESCRIPTORS)
    except OSError:
        return None
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    return list(descriptors) if data else None


def _close(descriptors: Iterable[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _read_request(file: int) -> Any:
    with os.fdopen(file, "rb") as request:
        request.seek(0)
        return marshal.load(request)
