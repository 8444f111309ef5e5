"""Ctrl-C once lets running trials finish, twice stops them; the log is whole in both cases.

As at a terminal, the signal goes to all processes of the search.
"""

from __future__ import annotations

import math
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import tradewind as tw
from tests.engine.loops import good
from tests.postgres import Server
from tests.studies import (
    Opened,
    ScriptedWorkers,
    Unreachable,
    create,
    drive,
    environment,
    score,
    states,
)
from tradewind.interrupts import Terminated
from tradewind.log.events import Event
from tradewind.log.memory import MemoryLog
from tradewind.runners.cluster import ClusterWorkers, RunningTrials
from tradewind.runners.run import Objective
from tradewind.runners.runner import TrialLimits
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
        """The next line of its standard error that is not empty. A search that says nothing for a
        minute is killed."""
        assert self.process.stderr is not None
        patience = threading.Timer(60.0, self.process.kill)
        patience.start()
        try:
            return next((line.strip() for line in self.process.stderr if line.strip()), "")
        finally:
            patience.cancel()

    def end(self) -> tuple[list[str], str]:
        out, err = self.process.communicate(timeout=120)
        return out.splitlines(), err


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


def test_the_handler_that_ray_installs_is_nobodys_own() -> None:
    def exits(number: int, frame: object) -> None:
        sys.exit(number)

    exits.__module__ = "ray._private.worker"
    signal.signal(signal.SIGTERM, exits)
    study = create()
    with pytest.raises(Terminated):
        study.optimize(lambda trial: os.kill(os.getpid(), signal.SIGTERM), n_trials=1)
    assert states(study) == ["waiting"]
    assert signal.getsignal(signal.SIGTERM) is exits


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


def test_a_signal_that_is_ignored_stays_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell lets its background jobs ignore Ctrl-C, which is meant for the job in front."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    study = create()

    def objective(trial: Any) -> float:
        os.kill(os.getpid(), signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        return 1.0

    study.optimize(objective, n_trials=2)
    assert states(study) == ["finished"] * 2


# ---- wherever it arrives ----


def terminate() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def interrupt_twice() -> None:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.3)  # the main thread must hear the first one, or both count as one
    os.kill(os.getpid(), signal.SIGINT)


STOPS = {
    "SIGTERM": (terminate, SystemExit, "waiting"),
    "Ctrl-C": (interrupt_twice, KeyboardInterrupt, "abandoned"),
}


@pytest.fixture(params=STOPS.values(), ids=STOPS)
def stop(request: pytest.FixtureRequest) -> Any:
    """A way to tell a search to end, what it raises, and what becomes of a running trial."""
    return request.param


class Tolling(MemoryLog):
    """A log whose append number `at` is done while a signal arrives."""

    at = 10**6
    toll: Callable[[], None]
    appends = 0

    def append(self, events: Sequence[Event], **options: Any) -> int:
        self.appends += 1
        if self.appends == self.at:
            self.toll()
        return super().append(events, **options)


@pytest.mark.parametrize("at", range(1, 7))
def test_our_own_code_is_not_interrupted(stop: Any, at: int) -> None:
    """A signal that arrives while something is written lets that be written."""
    act, error, left = stop
    session = drive(log := Tolling())
    log.appends, log.at, log.toll = 0, at, act
    study = tw.Study(session, name="study")
    with pytest.raises(error):
        study.optimize(score, n_trials=9)
    finished, begun = (at - 1) // 2 + (at % 2 == 0), at % 2
    assert states(study) == ["finished"] * finished + [left] * begun
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert not session.held


def test_an_exception_that_an_objective_swallows_is_raised_again(stop: Any) -> None:
    act, error, left = stop
    study, swallowed = create(), []

    def objective(trial: Any) -> float:
        try:
            act()
        except BaseException as caught:
            swallowed.append(type(caught))
        while True:
            time.sleep(0.01)

    with pytest.raises(error):
        study.optimize(objective, n_trials=9)
    assert issubclass(*swallowed, error)
    assert states(study) == [left]


def test_an_objective_may_clean_up_when_it_is_interrupted(stop: Any) -> None:
    act, error, left = stop
    study, cleaned = create(), []

    def objective(trial: Any) -> float:
        try:
            act()
        finally:
            time.sleep(1.5)
            cleaned.append(trial.number)
        return 1.0

    with pytest.raises(error):
        study.optimize(objective, n_trials=9)
    assert cleaned == [0]
    assert states(study) == [left]


class Dying:
    """An object that swallows whatever is raised while it dies."""

    def __init__(self, act: Callable[[], None]) -> None:
        self.act = act

    def __del__(self) -> None:
        self.act()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_signal_that_python_swallows_ends_the_search(stop: Any) -> None:
    """The result of such a trial is not trusted: anything may have been left out."""
    act, error, left = stop
    study = create()

    def objective(trial: Any) -> float:
        Dying(act)
        return 1.0

    with pytest.raises(error):
        study.optimize(objective, n_trials=9)
    assert states(study) == [left]


def test_a_callback_is_interrupted_like_an_objective(stop: Any) -> None:
    act, error, _ = stop

    def callback(study: tw.Study, trial: tw.Trial) -> None:
        act()
        while True:
            time.sleep(0.01)

    study = create()
    with pytest.raises(error):
        study.optimize(score, n_trials=9, callbacks=[callback])
    assert states(study) == ["finished"]


@pytest.mark.parametrize("moment", ["open", "close"])
def test_a_signal_is_heard_while_workers_open_and_while_they_close(stop: Any, moment: str) -> None:
    act, error, _ = stop

    @dataclass
    class Slow(ScriptedWorkers):
        def close(self) -> None:
            if moment == "close" and not self.closed:
                act()
            self.closed += 1

    @dataclass
    class Runner:
        workers: Slow

        def open(self, objective: Objective, limits: TrialLimits) -> Slow:
            if moment == "open":
                act()
            return self.workers

    workers, study = Slow(1, good), create()
    with pytest.raises(error):
        study.optimize(score, n_trials=2, runner=Runner(workers))
    assert workers.closed
    assert states(study) == ([] if moment == "open" else ["finished"] * 2)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_search_inside_a_trial_ends_with_it(stop: Any) -> None:
    act, error, left = stop
    outer, inner = create(), create()

    def objective(trial: Any) -> float:
        act()
        return 1.0

    with pytest.raises(error):
        outer.optimize(lambda trial: inner.optimize(objective, n_trials=9), n_trials=9)
    assert (states(outer), states(inner)) == ([left], [left])


def test_one_interrupt_lets_a_search_inside_a_trial_finish() -> None:
    outer, inner = create(), create()

    def objective(trial: Any) -> float:
        inner.optimize(score, n_trials=1)
        os.kill(os.getpid(), signal.SIGINT)
        inner.optimize(score, n_trials=2)
        return 1.0

    outer.optimize(objective, n_trials=9)
    assert (states(outer), states(inner)) == (["finished"], ["finished"] * 3)


@pytest.mark.slow
def test_a_trial_that_is_out_of_time_ends_the_workers_of_a_search_inside_it() -> None:
    outer, inner = create(), create()

    def objective(trial: Any) -> float:
        inner.optimize(lambda trial: time.sleep(600), n_trials=1, n_workers=1)
        return 1.0

    outer.optimize(objective, n_trials=1, runner=SerialRunner(), trial_timeout=3.0)
    assert (states(outer), states(inner)) == (["failed"], ["abandoned"])


# ---- while it waits ----


def test_a_store_that_is_away_is_not_waited_for_any_longer(stop: Any) -> None:
    act, error, _ = stop
    log = Unreachable(MemoryLog())
    study = tw.Study(drive(log), name="study")

    def objective(trial: Any) -> float:
        log.times = 10**6
        threading.Timer(0.3, act).start()
        return 1.0

    with pytest.raises(error):
        study.optimize(objective, n_trials=9)


def test_a_locked_file_is_not_waited_for_any_longer(stop: Any, tmp_path: Path) -> None:
    act, error, _ = stop
    study = create(storage=tmp_path / "runs.db")
    with closing(sqlite3.connect(tmp_path / "runs.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        threading.Timer(0.3, act).start()
        with pytest.raises(error):
            study.optimize(score, n_trials=9)
    assert states(study) == []


@pytest.mark.slow
def test_a_frozen_server_is_not_waited_for_any_longer(
    stop: Any, postgres_server: Server, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tradewind.log.postgres_database.SILENCE", 1e6)
    act, error, _ = stop
    study = create(storage=postgres_url)
    too_late = threading.Timer(60.0, postgres_server.thaw)

    def objective(trial: Any) -> float:
        postgres_server.freeze()
        too_late.start()
        threading.Timer(0.3, act).start()
        return 1.0

    try:
        with pytest.raises(error):
            study.optimize(objective, n_trials=9)
        assert too_late.is_alive()
    finally:
        too_late.cancel()
        postgres_server.thaw()
    study.restore()
    assert states(study) == ["finished"]


@pytest.mark.slow
def test_trials_on_a_cluster_are_not_waited_for_any_longer(stop: Any) -> None:
    act, error, left = stop

    class Cluster(ClusterWorkers[int, None]):
        _capacity, _refreshed = 1, math.inf

        def __init__(self) -> None:
            super().__init__(n_workers=1, synchronous=False)
            self._trials = RunningTrials(lambda handle: None, device="cpu")

        def submit(self, trial: tw.Trial, *, within: float | None = None) -> None:
            self._trials.add(trial.number, trial, None, within)
            threading.Timer(0.3, act).start()

        def _receive(self, timeout: float) -> None:
            time.sleep(timeout)

        def _refresh(self) -> None: ...

        def _check_connection(self) -> None: ...

        def close(self) -> None: ...

    study = create()
    with pytest.raises(error):
        study.optimize(score, n_trials=9, runner=Opened(Cluster()))
    assert states(study) == [left]
