"""What the tests of the processes have in common: objectives that start others, and patience."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from tests.runners.trials import PATIENCE
from tradewind.runners.run import Objective, Run

SLEEPER = "import time; time.sleep(600)"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEPER}"


def eventually(condition: Callable[[], Any]) -> Any:
    until = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.02)
    return found


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def driver_pid() -> int:
    """In an objective: the process that started its worker, above the keeper and the guard."""
    return psutil.Process().parents()[2].pid


def written(file: Path) -> list[int]:
    """The process numbers in a file, once there are some."""
    eventually(file.exists)
    return [int(pid) for pid in file.read_text().split()]


def starting(
    file: Path, code: str = SLEEPER, *, session: bool = False, then: Objective | None = None
) -> Objective:
    """An objective that starts another process, writes down both numbers, and goes on."""

    def objective(run: Run) -> Any:
        child = subprocess.Popen([sys.executable, "-c", code], start_new_session=session)
        file.with_suffix(".part").write_text(f"{os.getpid()} {child.pid}\n")
        file.with_suffix(".part").rename(file)
        if then is not None:
            return then(run)
        time.sleep(600)

    return objective


def forget_environment() -> None:
    """Overwrite this process's environment where others can see it, as `setproctitle` does."""
    if sys.platform == "linux":
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        begin, end = int(fields[47]), int(fields[48])
        ctypes.memset(begin, 0, end - begin)
        assert not Path("/proc/self/environ").read_bytes().strip(b"\0")


def start_a_daemon(file: Path, *, environment: dict[str, str] | None) -> None:
    """Start a process without a parent, in a session of its own, deaf to SIGTERM. Its number goes
    into the file, after our own."""
    options = "start_new_session=True, stdout=subprocess.DEVNULL"
    start = f"subprocess.Popen([sys.executable, '-c', {STUBBORN!r}], {options})"
    code = f"import subprocess, sys; print({start}.pid)"
    command = [sys.executable, "-c", code]
    daemon = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout
    file.with_suffix(".part").write_text(f"{os.getpid()} {int(daemon)}\n")
    file.with_suffix(".part").rename(file)


def hiding(folder: Path, then: Objective | None = None, *, marked: bool = False) -> Objective:
    """An objective that hides itself and a daemon as well as it can, or so that their environments
    can still be seen."""

    def objective(run: Run) -> Any:
        if not marked:
            forget_environment()
        start_a_daemon(folder / f"pids{run.number}", environment=None if marked else {})
        if then is not None:
            return then(run)
        time.sleep(600)

    return objective


def run_script(file: Path, code: str, **options: Any) -> subprocess.Popen[str]:
    """Run it as users do; what can be imported here can be imported there."""
    file.write_text(code)
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-W", "ignore::UserWarning", str(file)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        **options,
    )
