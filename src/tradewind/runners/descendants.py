"""Everything below a process: find it, signal it, and end it.

Linux gives the orphans below a *child subreaper* to it, so that a process can leave neither by a
second fork nor by a new session. Hence "all that belongs to a worker" is "all descendants of its
keeper". The kernel can also send a signal when a parent dies. Elsewhere, marks in the environment
take the place of both, and functions here that are given a `mark` look for it: whatever a worker
starts inherits it. But an orphan that has cleared or overwritten its environment is not found.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress

_MARK = "TRADEWIND_MARK"
_SET_PARENT_DEATH_SIGNAL, _SET_CHILD_SUBREAPER = 1, 36  # of prctl
_SHORT, _LONG = 0.001, 0.1  # seconds between two searches for processes that must end
_GIVE_UP = 60.0  # seconds after which a process that survives SIGKILL is left alone


def adopt_orphans() -> bool:
    """Make this process the parent of all orphans below it. False if the system cannot do it, or
    does not show which process is whose child."""
    try:
        shown = os.readlink("/proc/self") == str(os.getpid())  # not of another namespace
    except OSError:
        shown = False
    return shown and sys.platform == "linux" and _prctl(_SET_CHILD_SUBREAPER, 1)


def signal_when_parent_dies(number: int) -> None:
    """Let the kernel send this process a signal when the thread that forked it ends. The parent may
    be dead already, so look at `os.getppid()` afterwards."""
    _prctl(_SET_PARENT_DEATH_SIGNAL, number)


def open_pidfd(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends; None where there is no such
    thing."""
    if hasattr(os, "pidfd_open"):
        with suppress(OSError):
            return os.pidfd_open(pid)
    return None


def _prctl(option: int, value: int) -> bool:
    try:
        import ctypes

        done: int = ctypes.CDLL(None).prctl(option, *map(ctypes.c_ulong, (value, 0, 0, 0)))
    except (ImportError, OSError, AttributeError):  # an interpreter without it
        return False
    return done == 0


def find_descendants(mark: str | None, *, spare: Collection[int] = ()) -> list[int]:
    """All processes below the calling one and, if there is a `mark`, those that have it with all
    below them; but not those in `spare` and what is below these."""
    parents, found = (_read_parents(), []) if mark is None else read_parents_and_marked(mark)
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    me, seen = os.getpid(), {os.getpid(), *spare, *found}
    found.insert(0, me)
    for pid in found:  # the list grows while it is read
        new = [child for child in children.get(pid, ()) if child not in seen]
        found += new
        seen.update(new)
    return [pid for pid in found if pid != me]


def _read_parents() -> dict[int, int]:
    """The parent of every process."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            try:
                with open(f"/proc/{entry}/stat", "rb") as file:
                    after_name = file.read().rpartition(b")")[2]  # a name may contain anything
            except OSError:  # it has ended
                continue
            parents[int(entry)] = int(after_name.split()[1])
    return parents


def add_mark(environment: Mapping[str, str], mark: str) -> dict[str, str]:
    """The environment with one more mark. A runner inside an objective keeps the outer mark."""
    return {**environment, _MARK: f"{environment.get(_MARK, '')} {mark}".strip()}


def read_parents_and_marked(mark: str) -> tuple[dict[int, int], list[int]]:
    """The parent of every living process, and the processes that have `mark` or a mark that starts
    with it and a dot."""
    import psutil

    parents: dict[int, int] = {}
    marked: list[int] = []
    for process in psutil.process_iter():
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            parents[process.pid] = process.ppid()
            marks = process.environ().get(_MARK, "").split()
        except (psutil.Error, OSError, ValueError):  # it has ended, or belongs to another user
            continue
        if any(m == mark or m.startswith(f"{mark}.") for m in marks):
            marked.append(process.pid)
    return parents, marked


def send_signal(pids: Collection[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):  # ended, or now belongs to another user
            continue


def kill_descendants(mark: str | None, reap: Callable[[], bool]) -> None:
    """Kill everything below this process, and wait until it has ended. `reap` collects the children
    that have ended and returns whether any are left. Orphans become children: when no child is
    left, nothing is."""
    until, pause, seen = time.monotonic() + _GIVE_UP, _SHORT, set[int]()
    while time.monotonic() < until:
        if not reap() and (mark is None or not find_descendants(mark)):
            return
        found = find_descendants(mark)
        send_signal(found, signal.SIGKILL)
        pause = min(_LONG, 2 * pause) if seen.issuperset(found) else _SHORT  # some forked meanwhile
        seen.update(found)
        time.sleep(pause)
