"""Ctrl-C once lets running trials finish, twice stops them; the log is whole in both cases.

As at a terminal, the signal goes to all processes of the search.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tradewind as tw
from tests.studies import create, environment, score, states
from tradewind.runners.serial import SerialRunner
from tradewind.types import State

SEARCH = """
import pathlib, sys, time
import tradewind as tw
from tradewind.runners import ProcessRunner, SerialRunner

folder = pathlib.Path(sys.argv[1])
runner = SerialRunner() if sys.argv[2] == "serial" else ProcessRunner(2)

def objective(trial):
    (folder / f"began-{trial.number}").touch()
    while not (folder / "go").exists():
        time.sleep(0.01)
    return {"value": trial.params["x"], "cost": 1.0}

study = tw.load_study(folder / "runs.db")
try:
    study.optimize(objective, n_trials=9, runner=runner)
    print("over")
except KeyboardInterrupt:
    print("interrupted")
print(*[t.state.value for t in study.trials])
study.optimize(lambda trial: trial.params["x"], n_trials=2)
print("went on")
"""
AT_ONCE = {"serial": 1, "processes": 2}


class Search:
    """A process that searches. It leads its own process group, as at a terminal."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.folder = folder
        create(storage=folder / "runs.db")
        self.process = subprocess.Popen(
            [sys.executable, "-c", SEARCH, str(folder), kind],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def wait_for(self, number: int) -> None:
        """Wait until this trial has begun."""
        deadline = time.monotonic() + 60.0
        while not (self.folder / f"began-{number}").exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"trial {number} never began: {self.end()}")
            time.sleep(0.01)

    def interrupt(self) -> None:
        os.killpg(self.process.pid, signal.SIGINT)

    def line(self) -> str:
        """The next line of its standard error that is not empty."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if line.strip():
                return line.strip()
        return ""

    def end(self) -> tuple[list[str], str]:
        out, err = self.process.communicate(timeout=120)
        return out.splitlines(), err


@pytest.fixture(autouse=True)
def _usual_termination() -> Iterator[None]:
    """Libraries that other tests have loaded may have installed their own handlers."""
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    if before is not None:  # only a handler that Python installed can be restored
        signal.signal(signal.SIGTERM, before)


def ended(found: str) -> list[str]:
    """The printed states, without the one of a trial proposed ahead that went back to the queue."""
    *states, last = found.split()
    return states if last == "waiting" else [*states, last]


@pytest.fixture(params=AT_ONCE)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def search(kind: str, tmp_path: Path) -> Iterator[Search]:
    begun = Search(tmp_path, kind)
    yield begun
    if begun.process.poll() is None:
        os.killpg(begun.process.pid, signal.SIGKILL)
        begun.process.communicate()


@pytest.mark.slow
def test_once_lets_what_runs_finish_and_starts_nothing_more(search: Search, kind: str) -> None:
    n = AT_ONCE[kind]
    for number in range(n):
        search.wait_for(number)
    search.interrupt()
    assert search.line() == "finishing the running trials; Ctrl-C again stops now"
    (search.folder / "go").touch()
    (said, found, went_on), err = search.end()
    assert said == "over", err
    assert ended(found) == ["finished"] * n
    assert went_on == "went on"
    assert search.process.returncode == 0
    study = tw.load_study(search.folder / "runs.db")
    assert states(study) == ["finished"] * (n + 2)
    assert tw.replay(study).identical


@pytest.mark.slow
def test_twice_stops_what_runs_and_nothing_is_left_running(search: Search, kind: str) -> None:
    n = AT_ONCE[kind]
    for number in range(n):
        search.wait_for(number)
    search.interrupt()
    assert "Ctrl-C again" in search.line()
    search.interrupt()
    (said, found, went_on), err = search.end()
    assert said == "interrupted", err
    assert ended(found) == ["abandoned"] * n
    assert went_on == "went on"
    study = tw.load_study(search.folder / "runs.db")
    assert [t.error for t in study.trials[:n]] == ["interrupted"] * n
    assert states(study) == ["abandoned"] * n + ["finished"] * 2
    assert tw.replay(study).identical


@pytest.mark.slow
def test_a_search_that_is_told_to_end_requeues_its_running_trials(
    search: Search, kind: str
) -> None:
    """Batch systems do it by SIGTERM."""
    n = AT_ONCE[kind]
    for number in range(n):
        search.wait_for(number)
    os.kill(search.process.pid, signal.SIGTERM)
    out, err = search.end()
    assert (out, search.process.returncode) == ([], 128 + signal.SIGTERM), err
    study = tw.load_study(search.folder / "runs.db")
    begun = study.trials[:n]
    assert [(t.state, t.retries) for t in begun] == [(State.WAITING, 0)] * n
    study.optimize(score, n_trials=n)
    assert [(t.number, t.finished) for t in study.trials[:n]] == [(i, True) for i in range(n)]
    assert tw.replay(study).identical


# ---- other handlers ----


def test_the_previous_handler_is_restored() -> None:
    before = signal.getsignal(signal.SIGINT)
    create().optimize(score, n_trials=2)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_trial_whose_driver_is_told_to_end_goes_back_to_the_queue() -> None:
    study = create()

    def objective(trial: tw.Trial) -> float:
        if trial.number == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        return 1.0

    with pytest.raises(SystemExit) as raised:
        study.optimize(objective, n_trials=9)
    assert raised.value.code == 128 + signal.SIGTERM
    assert states(study) == ["finished", "waiting"]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_the_users_own_handler_is_left_alone() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda *signalled: heard.append(1))
    study = create()

    def objective(trial: object) -> float:
        os.kill(os.getpid(), signal.SIGINT)
        return 1.0

    try:
        study.optimize(objective, n_trials=3, runner=SerialRunner())
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [1, 1, 1]
    assert states(study) == ["finished"] * 3


def test_once_in_this_process_ends_the_search_without_an_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    study = create()

    def objective(trial: tw.Trial) -> float:
        if trial.number == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return 1.0

    study.optimize(objective, n_trials=9)
    assert states(study) == ["finished"] * 2
    assert "finishing the running trials;" in capsys.readouterr().err


def test_twice_in_this_process_abandons_the_trial(capsys: pytest.CaptureFixture[str]) -> None:
    study, seen = create(), []

    def objective(trial: tw.Trial) -> float:
        if trial.number == 1:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
        return 1.0

    with pytest.raises(KeyboardInterrupt):
        study.optimize(
            objective, n_trials=9, callbacks=[lambda study, trial: seen.append(trial.state)]
        )
    assert [(t.state, t.error) for t in study.trials] == [
        (State.FINISHED, None),
        (State.ABANDONED, "interrupted"),
    ]
    assert seen == [State.FINISHED]


def test_a_search_in_a_thread_leaves_signals_to_the_main_thread() -> None:
    study = create()
    thread = threading.Thread(target=lambda: study.optimize(score, n_trials=3))
    thread.start()
    thread.join()
    assert states(study) == ["finished"] * 3


def test_an_interrupt_while_a_callback_runs_is_heard_after_it() -> None:
    study = create()

    def callback(study: tw.Study, trial: tw.Trial) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    study.optimize(score, n_trials=9, callbacks=[callback])
    assert states(study) == ["finished"]


def test_a_process_forked_by_an_objective_ends_by_signals_as_usual() -> None:
    """A pool inside an objective ends its workers by SIGTERM, idle ones included."""

    def objective(trial: Any) -> float:
        child = os.fork()
        if not child:
            usual = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
            os._exit(0 if usual else 1)
        return float(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    study = tw.create_study({"x": (0.0, 1.0)}, seed=0)
    study.optimize(objective, n_trials=1)
    assert study.best.value == 0.0
