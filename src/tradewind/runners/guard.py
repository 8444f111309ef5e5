"""What makes sure that no process outlives its runner.

Every worker process carries a mark in its environment, and so does whatever an objective starts,
in whichever session and after whichever of its ancestors has gone. A guard is one small process
beside the driver that looks for the marks of its runner when the driver has died, and kills.
It runs this file by its path: importing the package would take it half a second.
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

_BOOT = (
    "import sys; sys.path[:] = sys.argv[4:]; "
    "import runpy; runpy.run_path(sys.argv[3], {}, '__main__')"
)
_LOOK = 0.5  # seconds between looks at the driver, where the system cannot tell that it has died
_AGAIN = 0.1  # seconds between looks for what is left: a process may be about to start another
_QUIET = 5  # looks that must find nothing
_LONGEST = 60.0  # seconds after which a process that survives SIGKILL is left to the system


def marked(environment: dict[str, str], mark: str) -> dict[str, str]:
    """The environment with one more mark: a runner inside an objective keeps the outer one."""
    return {**environment, MARK: f"{environment.get(MARK, '')} {mark}".strip()}


def family(mark: str, root: int | None = None) -> list[psutil.Process]:
    """The living processes that carry the mark or one that begins with it and a dot, process
    `root`, and all that descend from these; the root comes first."""
    import psutil

    children: dict[int, list[psutil.Process]] = {}
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        try:
            if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
                continue
            children.setdefault(process.ppid(), []).append(process)
        except psutil.Error:  # it has gone
            continue
        if process.pid == root:
            found.insert(0, process)
        elif _carries(process, mark):
            found.append(process)
    seen = {process.pid for process in found}
    for process in found:  # grows as it goes
        for child in children.get(process.pid, ()):
            if child.pid not in seen:
                seen.add(child.pid)
                found.append(child)
    return found


def _carries(process: psutil.Process, mark: str) -> bool:
    import psutil

    try:
        marks = process.environ().get(MARK, "").split()
    except (psutil.Error, OSError, ValueError):  # it has gone, or belongs to somebody else
        return False
    return any(m == mark or m.startswith(f"{mark}.") for m in marks)


def send(processes: list[psutil.Process], number: int) -> None:
    """Signal them all, but nobody who has got the number of one that has gone."""
    import psutil

    for process in processes:
        try:
            process.send_signal(number)
        except psutil.Error:  # it has gone, or took another user's rights
            continue


class Guard:
    """The guard seen from the driver: `dismiss` it when all that it guards has ended."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        path = [entry for entry in sys.path if isinstance(entry, str)]
        told = [self._mark, str(os.getpid()), __file__]
        return subprocess.Popen(
            [sys.executable, "-c", _BOOT, *told, *path],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def check(self) -> None:
        """Put another in its place if somebody has killed it."""
        if self._process.poll() is not None:
            self.dismiss()
            self._process = self._start()

    def dismiss(self) -> None:
        process = self._process
        if process.stdin is not None and not process.stdin.closed:
            try:
                process.stdin.write(b"!")
                process.stdin.close()
            except OSError:  # it has gone already
                pass
        process.wait()


def watch(mark: str, driver: int) -> None:
    """Wait for a word from the driver, which ends the guard, or for its death."""
    import psutil  # noqa: F401  now, not when the machine may be short of everything

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if not _dismissed(driver):
        _kill(mark)


def _dismissed(driver: int) -> bool:
    stdin = sys.stdin.fileno()
    sources = [stdin, *_deaths(driver)]
    while os.getppid() == driver:
        ready, _, _ = select.select(sources, [], [], None if len(sources) > 1 else _LOOK)
        if stdin in ready:
            return os.read(stdin, 1) != b""
    return False  # a process that the driver forked may still hold the other end


def _deaths(driver: int) -> Iterator[int]:
    """A descriptor that is ready when the driver has died, where the system has such."""
    if hasattr(os, "pidfd_open"):
        try:
            yield os.pidfd_open(driver)
        except OSError:
            return


def _kill(mark: str) -> None:
    quiet, until = 0, time.monotonic() + _LONGEST
    while quiet < _QUIET and time.monotonic() < until:
        found = family(mark)
        send(found, signal.SIGKILL)
        quiet = 0 if found else quiet + 1
        time.sleep(_AGAIN)


if __name__ == "__main__":
    watch(sys.argv[1], int(sys.argv[2]))
