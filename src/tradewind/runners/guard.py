"""The guard makes sure that no process outlives its runner.

Every worker process has a mark in its environment. Whatever an objective starts inherits the mark,
even in another session or after its parent has died. The guard is a small process beside the
driver. When the driver dies, the guard kills every process with a mark of its runner.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

MARK = "TRADEWIND_MARK"

_BOOT = """\
import sys
mark, driver, *sys.path[:] = sys.argv[1:]
from tradewind.runners.guard import watch
watch(mark, int(driver))
"""
_DRIVER_CHECK = 0.5  # seconds between checks of the driver, on systems without pidfd
_KILL_EVERY = 0.1  # seconds between searches for processes: one may be about to start another
_EMPTY_SEARCHES = 5  # the guard ends after so many searches in a row that find nothing
_GIVE_UP = 60.0  # seconds after which the guard ends although a process survives SIGKILL


def add_mark(environment: dict[str, str], mark: str) -> dict[str, str]:
    """The environment with one more mark. A runner inside an objective keeps the outer mark."""
    return {**environment, MARK: f"{environment.get(MARK, '')} {mark}".strip()}


def find_processes(mark: str, root: int | None = None) -> list[psutil.Process]:
    """The living processes that have `mark` or a mark that starts with it and a dot, the process
    with the number `root`, and all their descendants. The root comes first."""
    import psutil

    children: dict[int, list[psutil.Process]] = {}
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        try:
            if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
                continue
            children.setdefault(process.ppid(), []).append(process)
        except psutil.Error:  # it has ended
            continue
        if process.pid == root:
            found.insert(0, process)
        elif _has_mark(process, mark):
            found.append(process)
    seen = {process.pid for process in found}
    for process in found:  # the list grows while it is read
        for child in children.get(process.pid, ()):
            if child.pid not in seen:
                seen.add(child.pid)
                found.append(child)
    return found


def _has_mark(process: psutil.Process, mark: str) -> bool:
    import psutil

    try:
        marks = process.environ().get(MARK, "").split()
    except (psutil.Error, OSError, ValueError):  # it has ended, or belongs to another user
        return False
    return any(m == mark or m.startswith(f"{mark}.") for m in marks)


def send_signal(processes: list[psutil.Process], number: int) -> None:
    """Signal them all. psutil never signals another process that got the number of an ended
    one."""
    import psutil

    for process in processes:
        try:
            process.send_signal(number)
        except psutil.Error:  # it has ended, or now belongs to another user
            continue


class Guard:
    """The driver's side of the guard. Dismiss it when all worker processes have ended."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        path = [entry for entry in sys.path if isinstance(entry, str)]
        return subprocess.Popen(
            [sys.executable, "-c", _BOOT, self._mark, str(os.getpid()), *path],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def restart_if_dead(self) -> None:
        """Start a new guard process if somebody has killed it."""
        if self._process.poll() is not None:
            self.dismiss()
            self._process = self._start()

    def dismiss(self) -> None:
        """End the guard process."""
        process = self._process
        if process.stdin is not None and not process.stdin.closed:
            try:
                process.stdin.write(b"!")
                process.stdin.close()
            except OSError:  # it has ended already
                pass
        process.wait()


def watch(mark: str, driver: int) -> None:
    """Wait until the driver dismisses the guard, or dies. Then kill what it has left behind."""
    import psutil  # noqa: F401  now, while the machine still has memory for it

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if not _wait_for_dismissal(driver):
        _kill_all(mark)


def _wait_for_dismissal(driver: int) -> bool:
    """Whether the driver has dismissed the guard; False if it has died."""
    stdin = sys.stdin.fileno()
    sources = [stdin, *_driver_pidfd(driver)]
    # Standard input need not close when the driver dies: a process that it forked may hold the
    # other end. So the parent is checked as well.
    while os.getppid() == driver:
        ready, _, _ = select.select(sources, [], [], None if len(sources) > 1 else _DRIVER_CHECK)
        if stdin in ready:
            return os.read(stdin, 1) != b""
    return False


def _driver_pidfd(driver: int) -> Iterator[int]:
    """A descriptor that becomes readable when the driver dies; nothing on systems without
    pidfd."""
    if hasattr(os, "pidfd_open"):
        try:
            yield os.pidfd_open(driver)
        except OSError:
            return


def _kill_all(mark: str) -> None:
    empty, until = 0, time.monotonic() + _GIVE_UP
    while empty < _EMPTY_SEARCHES and time.monotonic() < until:
        found = find_processes(mark)
        send_signal(found, signal.SIGKILL)
        empty = 0 if found else empty + 1
        time.sleep(_KILL_EVERY)
