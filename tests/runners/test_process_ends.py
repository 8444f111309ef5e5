"""Worker processes that have to end: limits, stops, closed runners and drivers that die."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.runners.scenes import SLEEPER, STUBBORN, alive, eventually, run_script, starting, written
from tests.runners.trials import NO_LIMITS, all_of, the_one, trial
from tradewind.runners.processes import ProcessRunner, ProcessWorkers
from tradewind.runners.run import Objective, Run
from tradewind.runners.runner import Failure, Stopped, TrialLimits
from tradewind.types import Outcome

Open = Callable[..., ProcessWorkers]
MIB = 2**20
HOG = f"held = b'x' * {600 * MIB}; {SLEEPER}"

pytestmark = pytest.mark.filterwarnings("ignore:.* workers share .* core:UserWarning")


@pytest.fixture
def opened() -> Iterator[Open]:
    """Opens workers with limits, and closes them after the test."""
    workers: list[ProcessWorkers] = []

    def opening(objective: Objective, n: int = 1, grace: float = 0.5, **limits: Any) -> Any:
        workers.append(ProcessRunner(n, grace=grace).open(objective, TrialLimits(**limits)))
        return workers[-1]

    yield opening
    for some in workers:
        some.close()


# ---- limits ----


@pytest.mark.parametrize(
    ("code", "session"), [(SLEEPER, False), (STUBBORN, True)], ids=["willing", "stubborn"]
)
def test_a_timeout_takes_what_was_started_with_it(
    opened: Open, tmp_path: Path, code: str, session: bool
) -> None:
    workers = opened(starting(tmp_path / "pids", code, session=session), timeout=1.5)
    done = the_one(workers)
    assert isinstance(done.result, Failure)
    assert "may take 1.5 seconds" in done.result.error
    assert done.usage is not None
    assert done.usage.wall >= (done.result.seconds or 0.0) >= 1.5
    pids = written(tmp_path / "pids")
    assert len(pids) == 2
    assert not [pid for pid in pids if alive(pid)]


def test_killing_one_trial_does_not_keep_the_others_waiting(opened: Open, tmp_path: Path) -> None:
    def objective(run: Run) -> float:
        if run.number == 0:
            signal.signal(signal.SIGTERM, lambda *signalled: (tmp_path / "told").touch())
            eventually((tmp_path / "enough").exists)
            os._exit(1)
        return 1.0

    workers = opened(objective, 2, grace=60.0, timeout=0.3)
    workers.submit(trial(0))
    eventually(lambda: workers.wait(0.05) or (tmp_path / "told").exists())
    for number in (1, 2, 3):
        assert isinstance(the_one(workers, number=number).result, Outcome)
    (tmp_path / "enough").touch()
    (last,) = all_of(workers, 1)
    assert last.trial.number == 0
    assert isinstance(last.result, Failure)
    assert "may take 0.3 seconds" in last.result.error


def hog(run: Run) -> None:
    held = b"x" * (600 * MIB)
    time.sleep(600)
    del held


def hog_in_a_child(run: Run) -> None:
    subprocess.run([sys.executable, "-c", HOG], check=True)


def hog_in_a_daemon(run: Run) -> None:
    start = f"subprocess.Popen([sys.executable, '-c', {HOG!r}])"
    subprocess.run([sys.executable, "-c", f"import subprocess, sys; {start}"], check=True)
    time.sleep(600)


@pytest.mark.parametrize("objective", [hog, hog_in_a_child, hog_in_a_daemon])
def test_a_trial_that_takes_too_much_memory_has_failed(opened: Open, objective: Objective) -> None:
    workers = opened(lambda run: objective(run) if run.number == 0 else 1.0, memory=500 * MIB)
    result = the_one(workers).result
    assert isinstance(result, Failure)
    assert "may take 500 MiB of memory, and this one took" in result.error
    assert result.seconds is not None
    assert isinstance(the_one(workers, number=1).result, Outcome)


def test_memory_that_children_share_counts_once(opened: Open) -> None:
    def objective(run: Run) -> float:
        held = b"x" * (200 * MIB)
        children = []
        for _ in range(3):
            if (pid := os.fork()) == 0:
                time.sleep(1.0)  # longer than the time between two looks
                os._exit(0)
            children.append(pid)
        for pid in children:
            os.waitpid(pid, 0)
        return float(len(held) > 0)

    assert isinstance(the_one(opened(objective, memory=600 * MIB)).result, Outcome)


def test_limits_bind_every_trial_by_itself(opened: Open) -> None:
    workers = opened(lambda run: time.sleep(0.8) or 1.0, timeout=2.0)
    for number in range(3):
        assert isinstance(the_one(workers, number=number).result, Outcome)


# ---- stopping ----


def test_a_stopped_trial_takes_what_was_started_with_it(opened: Open, tmp_path: Path) -> None:
    workers = opened(starting(tmp_path / "pids", STUBBORN, session=True))
    workers.submit(trial())
    pids = written(tmp_path / "pids")
    workers.stop([0], "as scripted")
    (done,) = all_of(workers, 1)
    assert done.result == Stopped("as scripted")
    assert done.usage is not None
    assert not [pid for pid in pids if alive(pid)]


def test_a_trial_can_be_stopped_while_its_worker_starts(opened: Open) -> None:
    workers = opened(lambda run: os._exit(1))
    assert isinstance(the_one(workers).result, Failure)
    workers.submit(trial())
    workers.stop([0], "as scripted")
    (done,) = all_of(workers, 1)
    assert done.result == Stopped("as scripted")


def test_a_result_that_is_there_already_is_not_stopped(opened: Open, tmp_path: Path) -> None:
    def objective(run: Run) -> float:
        eventually((tmp_path / "go").exists)
        return 1.0

    workers = opened(objective)
    workers.submit(trial())
    child, task = workers._slots[0]._child, workers._slots[0]._task
    assert child is not None
    assert task is not None
    eventually(lambda: workers.wait(0.05) or task.begun)
    (tmp_path / "go").touch()
    eventually(lambda: child.has_message)
    workers.stop([0], "too late")
    (done,) = all_of(workers, 1)
    assert isinstance(done.result, Outcome)


def test_a_result_that_comes_before_the_end_counts(opened: Open, tmp_path: Path) -> None:
    def objective(run: Run) -> float:
        told = []
        signal.signal(signal.SIGTERM, lambda *signalled: told.append(True))
        (tmp_path / "ready").touch()
        while not told:
            time.sleep(0.02)
        return 0.5

    workers = opened(objective, grace=20.0)
    workers.submit(trial())
    eventually((tmp_path / "ready").exists)
    workers.stop([0], "as scripted")
    (done,) = all_of(workers, 1)
    assert isinstance(done.result, Outcome)
    assert done.result.value == 0.5


# ---- closing ----


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
def test_closing_leaves_nothing_behind(tmp_path: Path, busy: bool) -> None:
    before = set(psutil.Process().children())
    then = None if busy else (lambda run: 1.0)
    workers = ProcessRunner(2, grace=0.5).open(
        starting(tmp_path / "pids", STUBBORN, session=True, then=then), NO_LIMITS
    )
    workers.submit(trial())
    pids = written(tmp_path / "pids")
    if not busy:
        all_of(workers, 1)
    (guard,) = set(psutil.Process().children()) - before
    pids += [process.pid for process in guard.children(recursive=True)]
    assert len(set(pids)) == 5  # two keepers, two workers and the child
    workers.close()
    assert not [pid for pid in pids if alive(pid)]
    assert set(psutil.Process().children()) <= before  # zombies would be among them


DRIVER = """
from pathlib import Path
from tests.runners.scenes import SLEEPER, starting
from tests.runners.test_process_ends import holding_everything
from tests.runners.trials import NO_LIMITS, trial
from tradewind.runners.processes import ProcessRunner

def objective(run):
    then = holding_everything if run.number else None
    code = "import os; os.fork(); " + SLEEPER
    return starting(Path(FOLDER, f"pids{run.number}"), code, session=True, then=then)(run)

workers = ProcessRunner(2).open(objective, NO_LIMITS)
for number in (0, 1):
    workers.submit(trial(number))
print("ready", flush=True)
workers.wait()
"""


def holding_everything(run: Run) -> None:
    """Sleep in C code that does not let go of the interpreter, deaf to whatever can be ignored."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    ctypes.PyDLL(None).sleep(600)


def test_a_killed_driver_leaves_nothing_behind(tmp_path: Path) -> None:
    code = f"FOLDER = {str(tmp_path)!r}\n{DRIVER}"
    with run_script(tmp_path / "driver.py", code) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == "ready\n"
        written(tmp_path / "pids0")
        written(tmp_path / "pids1")
        everyone = psutil.Process(driver.pid)
        # the guard, two keepers, two workers, and each objective's child with its own child
        eventually(lambda: len(everyone.children(recursive=True)) == 9)
        pids = [process.pid for process in everyone.children(recursive=True)]
        driver.send_signal(signal.SIGKILL)
        driver.stdout.read()  # ends when nobody has it open any more
    eventually(lambda: not [pid for pid in pids if alive(pid)])
