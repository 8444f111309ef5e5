"""The drivers that work on one study while things break, and all processes below them."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import TypeAlias

import psutil

from tests.chaos.drive import WORKERS_KILLED, Task, start
from tests.chaos.findings import Findings

Tree: TypeAlias = list[tuple[str, psutil.Process]]  # a driver and all below it, by role

ROLES = ("driver", "guard", "keeper", "worker")  # by depth in the tree of a driver
_WEIGHTS = {"driver": 5, "guard": 2, "keeper": 2, "worker": 4, "daemon": 1, "group": 2, "tree": 1}

_SOON = 10.0  # seconds in which no two processes get the same number


@dataclass
class Driver:
    """A driver process and its task."""

    process: BaseProcess
    task: Task


@dataclass
class Crew:
    """Drivers that share one study. Leaving its block kills those that still run."""

    task: Task
    drivers: list[Driver] = field(default_factory=list)
    started: int = 0
    seen: set[psutil.Process] = field(default_factory=set)
    killed: Counter[str] = field(default_factory=Counter)
    trouble: list[str] = field(default_factory=list)  # drivers that ended as they should not

    def __enter__(self) -> Crew:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for driver in self.drivers:
            driver.process.kill()
            driver.process.join()

    def start(self, *numbers_of_workers: int | None) -> None:
        """Start drivers with so many workers; None runs trials in the driver itself."""
        for n_workers in numbers_of_workers:
            task = replace(self.task, n_workers=n_workers)
            if n_workers is None:  # what an objective starts in the driver itself may stay
                task = replace(task, work=replace(task.work, daemons=None))
            self.drivers.append(Driver(start(task, str(self.started)), task))
            self.started += 1

    def replace_dead(self) -> None:
        for driver in [d for d in self.drivers if not d.process.is_alive()]:
            self._check_end(driver)
            self.drivers.remove(driver)
            self.start(driver.task.n_workers)

    def end(self, *, within: float = 120.0) -> None:
        """Tell all drivers to stop, and wait until they have."""
        (self.task.folder / "stop").touch()
        self.wait(within=within)

    def wait(self, *, within: float = 600.0) -> None:
        """Wait until all drivers have ended."""
        until = time.monotonic() + within
        for driver in self.drivers:
            self.look()
            driver.process.join(max(0.0, until - time.monotonic()))
            self._check_end(driver)

    def noticed(self) -> int:
        """How often drivers have noticed that their store went back in time."""
        logs = self.task.folder.glob("*.log")
        return sum(log.read_text().count("LogDiverged:") for log in logs)

    def _check_end(self, driver: Driver) -> None:
        code = driver.process.exitcode
        because_of_us = (-signal.SIGKILL, WORKERS_KILLED) if self.killed else ()
        if code != 0 and code not in because_of_us:
            name = driver.process.name
            self.trouble.append(f"driver {name} must end with exit code 0, but got {code}")

    def findings(self, faults: Counter[str]) -> Findings:
        """The findings about these processes, once all drivers have ended."""
        return Findings(faults=faults, left=self.left(), notes=self.trouble)

    # ---- the processes ----

    def look(self) -> list[Tree]:
        """The living drivers, each with all processes below it."""
        daemons = {process.pid for process in self._daemons()}
        trees = []
        for driver in self.drivers:
            with suppress(psutil.Error):
                trees.append(_tree(psutil.Process(driver.process.pid), daemons))
        self.seen.update(process for tree in trees for _, process in tree)
        return trees

    def left(self, *, within: float = 20.0) -> int:
        """How many processes have outlived their drivers. They are killed."""
        left = set(psutil.wait_procs(self.seen, timeout=within)[1])
        left.update(psutil.wait_procs(self._daemons(), timeout=within)[1])
        for process in left:
            with suppress(psutil.Error):
                process.kill()
        return len(left)

    def _daemons(self) -> list[psutil.Process]:
        """The living processes that objectives have started as daemons."""
        found = []
        for file in self.task.folder.glob("*.daemon"):
            with suppress(psutil.Error):
                process = psutil.Process(int(file.stem))
                if process.create_time() < file.stat().st_mtime + _SOON:  # not a later one
                    found.append(process)
        return found

    # ---- killing ----

    def kill(self, rng: random.Random) -> None:
        """Send SIGKILL to a random process, process group or whole tree."""
        trees = self.look()
        each = [process for tree in trees for process in tree]
        if not each:
            return
        roles = sorted({role for role, _ in each} | {"group", "tree"})
        role = rng.choices(roles, [_WEIGHTS[role] for role in roles])[0]
        if role == "tree":
            self._kill_each(rng.sample(tree := rng.choice(trees), len(tree)))
        elif role == "group":
            self._kill_group(rng.choice(each)[1])
        else:
            self._kill_each([rng.choice([one for one in each if one[0] == role])])

    def _kill_each(self, processes: Tree) -> None:
        for role, process in processes:
            with suppress(psutil.Error):
                process.kill()
                self.killed[f"{role}s"] += 1

    def _kill_group(self, process: psutil.Process) -> None:
        with suppress(ProcessLookupError):
            group = os.getpgid(process.pid)
            if group != os.getpgrp():  # a driver that has not got its own yet
                os.killpg(group, signal.SIGKILL)
                self.killed["groups"] += 1


def _tree(root: psutil.Process, daemons: set[int]) -> Tree:
    """A driver and all processes below it, each with its role."""
    found, depth = [("driver", root)], {root.pid: 0}
    for process in root.children(recursive=True):  # parents come before their children
        with suppress(psutil.Error):
            depth[process.pid] = below = depth.get(process.ppid(), 0) + 1
            role = ROLES[min(below, len(ROLES) - 1)]
            found.append(("daemon" if process.pid in daemons else role, process))
    return found
