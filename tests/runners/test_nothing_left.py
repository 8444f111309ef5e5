"""Nothing stays behind: whoever is killed, stopped or hidden, and in whatever order."""

from __future__ import annotations

import errno
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.processes import forked
from tests.runners.scenes import alive, eventually, hiding, run_script, written
from tests.runners.trials import PATIENCE, all_of, the_one, trial
from tradewind.runners import child, guard
from tradewind.runners.keeper import Keeper, Kind, Report, Start, read_reports
from tradewind.runners.processes import ProcessRunner, ProcessWorkers
from tradewind.runners.run import Objective, Run
from tradewind.runners.runner import Failure, Lost, Stopped, TrialLimits
from tradewind.types import Outcome

Open = Callable[..., ProcessWorkers]


@pytest.fixture
def opened() -> Iterator[Open]:
    """Opens one worker with limits, and closes it after the test."""
    workers: list[ProcessWorkers] = []

    def opening(objective: Objective, grace: float = 0.3, **limits: Any) -> ProcessWorkers:
        workers.append(ProcessRunner(1, grace=grace).open(objective, TrialLimits(**limits)))
        return workers[-1]

    yield opening
    for some in workers:
        some.close()


def kin(workers: ProcessWorkers) -> tuple[psutil.Process, psutil.Process]:
    """The guard and the keeper."""
    process = psutil.Process(workers._guard._process.pid)
    (keeper,) = process.children()
    return process, keeper


# ---- while the driver lives ----


def test_a_daemon_with_an_empty_environment_ends_with_the_time_of_its_trial(
    opened: Open, tmp_path: Path
) -> None:
    workers = opened(hiding(tmp_path), timeout=1.0)
    result = the_one(workers).result
    assert isinstance(result, Failure)
    assert "may take 1 second," in result.error
    assert not [pid for pid in written(tmp_path / "pids0") if alive(pid)]


@pytest.mark.parametrize("end", ["close", "crash", "stop"])
def test_a_daemon_ends_with_its_worker(opened: Open, tmp_path: Path, end: str) -> None:
    then = {"close": lambda run: 1.0, "crash": lambda run: os._exit(3), "stop": None}[end]
    workers = opened(hiding(tmp_path, then))
    workers.submit(trial())
    pids = written(tmp_path / "pids0")
    if end == "stop":
        workers.stop([0], "as scripted")
    result = all_of(workers, 1)[0].result
    assert isinstance(result, {"close": Outcome, "crash": Failure, "stop": Stopped}[end])
    assert alive(pids[1]) == (end == "close")  # a daemon of a trial that is done may go on
    workers.close()
    assert not [pid for pid in pids if alive(pid)]


@pytest.mark.parametrize("victim", ["guard", "keeper"])
def test_a_trial_whose_guard_or_keeper_is_killed_is_lost_with_all_that_it_started(
    opened: Open, tmp_path: Path, victim: str
) -> None:
    workers = opened(hiding(tmp_path, lambda run: 1.0 if run.number else time.sleep(600)))
    workers.submit(trial())
    pids = written(tmp_path / "pids0")
    guarding, keeper = kin(workers)
    {"guard": guarding, "keeper": keeper}[victim].kill()
    result = all_of(workers, 1)[0].result
    assert isinstance(result, Lost)
    assert "was killed together with the process that watches over it" in result.reason
    assert not [pid for pid in pids if alive(pid)]
    eventually(lambda: not alive(keeper.pid))
    assert isinstance(the_one(workers, number=1).result, Outcome)
    assert alive(guarding.pid) == (victim == "keeper")
    pids = written(tmp_path / "pids1")
    workers.close()
    assert not [pid for pid in pids if alive(pid)]


def test_processes_that_flee_into_their_children_are_caught(opened: Open, tmp_path: Path) -> None:
    def flee(run: Run) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for _ in range(6):
            if os.fork() == 0:
                os.setsid()
                (tmp_path / str(os.getpid())).touch()
                for _ in range(20_000):  # it would go on for 20 s
                    time.sleep(0.001)
                    if os.fork():
                        break
                os._exit(0)
        time.sleep(600)

    def fleeing() -> list[int]:
        sessions = {int(file.name) for file in tmp_path.iterdir()}
        return [p.pid for p in psutil.process_iter() if session_of(p.pid) in sessions]

    workers = opened(flee)
    workers.submit(trial())
    eventually(lambda: len(list(tmp_path.iterdir())) == 6)
    assert fleeing()
    workers.stop([0], "as scripted")
    all_of(workers, 1)
    assert not fleeing()


def session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def test_a_bounded_fork_bomb_is_ended(opened: Open, tmp_path: Path) -> None:
    def explode(run: Run) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for _ in range(6):  # up to 64 processes
            os.fork()
            (tmp_path / str(os.getpid())).touch()
        time.sleep(600)

    workers = opened(explode)
    workers.submit(trial())
    eventually(lambda: len(list(tmp_path.iterdir())) >= 40)
    workers.stop([0], "as scripted")
    all_of(workers, 1)
    assert not [file for file in tmp_path.iterdir() if alive(int(file.name))]


def test_a_forked_copy_of_the_driver_ends_nothing(opened: Open) -> None:
    workers = opened(lambda run: float(os.getpid()))
    first = the_one(workers).result
    assert forked(workers.close) == 0
    second = the_one(workers).result
    assert isinstance(first, Outcome)
    assert isinstance(second, Outcome)
    assert first.value == second.value


def test_a_keeper_that_cannot_fork_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    spare = [os.dup(theirs.fileno()) for _ in range(4)]
    start = Start([], [], {}, "", *spare)
    keeper = Keeper(start, theirs.fileno(), guard=os.getpid(), mark=None)

    def run() -> None:
        monkeypatch.setattr(os, "fork", lambda: _raise(BlockingIOError(errno.EAGAIN, "full")))
        keeper.run()

    assert forked(run) == 0
    assert read_reports(ours.fileno()) == [Report(Kind.FAILED, errno.EAGAIN), Report(Kind.GONE)]
    for end in (ours, theirs):
        end.close()
    for descriptor in spare:
        os.close(descriptor)


def _raise(error: Exception) -> int:
    raise error


def test_closing_does_not_wait_for_a_copy_of_a_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies: list[socket.socket] = []

    def pair() -> tuple[socket.socket, socket.socket]:
        """As if another thread had forked before we closed the worker's end."""
        ours, theirs = make_pair()
        copies.append(theirs.dup())
        return ours, theirs

    make_pair = socket.socketpair
    monkeypatch.setattr(socket, "socketpair", pair)
    monkeypatch.setattr(child, "_GIVE_UP", 3600.0)
    workers = ProcessRunner(1, grace=0.3).open(hiding(tmp_path), TrialLimits())
    workers.submit(trial())
    pids = written(tmp_path / "pids0")
    closing = threading.Thread(target=workers.close, daemon=True)
    closing.start()
    closing.join(PATIENCE)
    assert not closing.is_alive()
    assert not [pid for pid in pids if alive(pid)]
    for copy in copies:
        copy.close()


# ---- stopped processes ----


def test_a_stopped_worker_is_reported_and_so_is_that_it_continues(
    opened: Open, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def objective(run: Run) -> float:
        (tmp_path / "pid").write_text(str(os.getpid()))
        eventually((tmp_path / "go").exists)
        return 1.0

    workers = opened(objective)
    workers.submit(trial(7))
    pid = eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    with caplog.at_level(logging.WARNING, "tradewind"):
        os.kill(int(pid), signal.SIGSTOP)
        eventually(lambda: workers.wait(0.05) or caplog.records)
        assert f"process {pid} of trial 7 was stopped by SIGSTOP" in caplog.text
        assert f"`kill -CONT {pid}`" in caplog.text
        assert "trial_timeout" in caplog.text
        os.kill(int(pid), signal.SIGCONT)
        eventually(lambda: workers.wait(0.05) or len(caplog.records) == 2)
        assert f"the worker process {pid} of trial 7 continues" in caplog.text
        (tmp_path / "go").touch()
        assert isinstance(all_of(workers, 1)[0].result, Outcome)


def test_a_worker_that_was_stopped_idle_is_replaced(opened: Open) -> None:
    workers = opened(lambda run: float(os.getpid()))
    first = the_one(workers).result
    assert isinstance(first, Outcome)
    os.kill(int(first.value), signal.SIGSTOP)
    eventually(lambda: psutil.Process(int(first.value)).status() == psutil.STATUS_STOPPED)
    done = the_one(workers)
    if isinstance(done.result, Lost):  # the report came after the trial
        assert "stopped by SIGSTOP before the trial began" in done.result.reason
        done = the_one(workers)
    assert isinstance(done.result, Outcome)
    assert done.result.value != first.value
    assert not alive(int(first.value))


def test_whoever_is_stopped_is_killed_when_its_time_is_up(opened: Open, tmp_path: Path) -> None:
    workers = opened(hiding(tmp_path), timeout=1.5)
    workers.submit(trial())
    pids = written(tmp_path / "pids0")
    guarding, keeper = kin(workers)
    for pid in (guarding.pid, keeper.pid, *pids):
        os.kill(pid, signal.SIGSTOP)
    (done,) = all_of(workers, 1)
    assert isinstance(done.result, Failure)
    assert "may take 1.5 seconds" in done.result.error
    assert not [pid for pid in pids if alive(pid)]


# ---- when the driver dies ----

DRIVER = """
import os, time, warnings
from pathlib import Path
from tests.runners.scenes import hiding
from tests.runners.trials import NO_LIMITS, trial
from tradewind.runners import guard
from tradewind.runners.processes import ProcessRunner

def objective(run):
    then = (lambda run: 1.0) if run.number == 0 else None
    return hiding(Path(FOLDER), then, marked=MARKED)(run)

guard.USE_MARKS = MARKED
workers = ProcessRunner(2).open(objective, NO_LIMITS)
workers.submit(trial(0))
workers.wait()
workers.submit(trial(1))
warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads of libraries
if os.fork() == 0:  # a copy of the driver, with all its descriptors
    os.setsid()
    Path(FOLDER, "part").write_text(str(os.getpid()))
    Path(FOLDER, "part").rename(Path(FOLDER, "copy"))
    time.sleep(600)
print("ready", flush=True)
workers.wait()
"""


@pytest.mark.parametrize(
    ("victims", "marked"),
    [
        (["driver"], False),
        (["group"], False),
        (["guard", "driver"], False),
        (["keepers", "driver"], False),
        (["stop everyone", "driver"], False),
        (["driver"], True),
        (["guard", "driver"], True),
    ],
    ids=lambda given: "marks" if given is True else ", then ".join(given or ["kernel"]),
)
def test_a_driver_that_dies_takes_everything_with_it(
    tmp_path: Path, victims: list[str], marked: bool
) -> None:
    code = f"FOLDER, MARKED = {str(tmp_path)!r}, {marked}\n{DRIVER}"
    with run_script(tmp_path / "driver.py", code, start_new_session=True) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == "ready\n"
        (copy,) = written(tmp_path / "copy")
        pids = [*written(tmp_path / "pids0"), *written(tmp_path / "pids1")]
        (guarding,) = (c for c in psutil.Process(driver.pid).children() if c.pid != copy)
        everyone = guarding.children(recursive=True)
        pids += [process.pid for process in (guarding, *everyone)]
        for victim in victims:
            match victim:
                case "driver":
                    driver.kill()
                case "group":
                    os.killpg(driver.pid, signal.SIGKILL)
                case "guard":
                    guarding.kill()
                case "keepers":
                    for keeper in guarding.children():
                        keeper.kill()
                case "stop everyone":
                    for process in (guarding, *everyone):
                        process.suspend()
        driver.wait()
        try:
            eventually(lambda: not [pid for pid in pids if alive(pid)])
        finally:
            os.kill(copy, signal.SIGKILL)


EARLY = """
import os, signal
from tradewind.runners.guard import Guard
guard = Guard()
os.kill(guard._process.pid, signal.SIGSTOP)
os.waitid(os.P_PID, guard._process.pid, os.WSTOPPED)
print(guard._process.pid, flush=True)
signal.pause()
"""


def test_a_guard_that_was_stopped_before_it_ran_a_line_ends_with_its_driver(
    tmp_path: Path,
) -> None:
    with run_script(tmp_path / "driver.py", EARLY) as driver:
        assert driver.stdout is not None
        pid = int(driver.stdout.readline())
        assert alive(pid)
        driver.kill()
    try:
        eventually(lambda: not alive(pid))
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


# ---- where only marks help ----


@pytest.mark.parametrize("victim", ["nobody", "guard", "keeper"])
def test_without_the_kernels_help_a_daemon_is_found_by_its_mark(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, victim: str
) -> None:
    monkeypatch.setattr(guard, "USE_MARKS", True)
    workers = opened(hiding(tmp_path, marked=True))
    workers.submit(trial())
    pids = written(tmp_path / "pids0")
    guarding, keeper = kin(workers)
    if victim == "nobody":
        workers.stop([0], "as scripted")
    else:
        {"guard": guarding, "keeper": keeper}[victim].kill()
    result = all_of(workers, 1)[0].result
    assert isinstance(result, Stopped if victim == "nobody" else Lost)
    assert not [pid for pid in pids if alive(pid)]
