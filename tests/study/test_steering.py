"""Several drivers, in processes of their own, obey whoever steers their study."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tradewind as tw
from tests.runners.trials import PATIENCE
from tests.studies import create, events_of, finished, script
from tradewind.engine import plan
from tradewind.log.events import Configured, Paused, Resumed, Started
from tradewind.types import State

TRADEOFF = tw.Tradeoff(alpha=0.3, reference=1.0)

DRIVER = """
import pathlib, sys, time
import tradewind as tw

storage, folder, workers, n = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])

def objective(run):
    (folder / f"began-{run.number}").touch()
    until = time.monotonic() + 60
    while not (folder / "go").exists() and time.monotonic() < until:
        time.sleep(0.01)
    return {"value": run.params["x"], "cost": 1.0}

study = tw.load_study(storage)
study.optimize(objective, n_trials=n, n_workers=int(workers) or None, show_progress=False)
"""

Drivers = Callable[..., subprocess.Popen[str]]


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "SQLite":
        return str(tmp_path / "runs.db")
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def drive(storage: str, tmp_path: Path) -> Iterator[Drivers]:
    """Starts drivers of the study that is stored there."""
    started: list[subprocess.Popen[str]] = []

    def start(workers: int, n_trials: int) -> subprocess.Popen[str]:
        started.append(script(DRIVER, storage, tmp_path, workers, n_trials))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def until(condition: Callable[[], Any]) -> Any:
    give_up = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < give_up, "it did not happen"
        time.sleep(0.05)
    return found


def running(study: tw.Study) -> list[int]:
    return [t.number for t in study.trials if t.state is State.RUNNING]


def test_two_drivers_stop_what_is_abandoned_and_go_on(
    drive: Drivers, storage: str, tmp_path: Path
) -> None:
    study = create(storage=storage)
    drivers = [drive(0, 2), drive(2, 4)]  # in the process itself, and in two workers
    first = until(lambda: (found := running(study)) and len(found) == 3 and found)
    until(lambda: all((tmp_path / f"began-{number}").exists() for number in first))
    for number in first:
        study.abandon(number, f"not {number}")
    later = until(lambda: (found := set(running(study)) - set(first)) and len(found) == 3 and found)
    (tmp_path / "go").touch()
    for driver in drivers:
        finished(driver)
    trials = study.trials
    assert [trials[n].state for n in first] == [State.ABANDONED] * 3
    assert [trials[n].error for n in first] == [f"not {n}" for n in first]
    assert all(trials[n].finished for n in later)
    assert len([t for t in trials if t.state is not State.WAITING]) == 6


def test_two_drivers_of_a_paused_study_wait_and_follow_a_change_of_the_goal(
    drive: Drivers, storage: str, tmp_path: Path
) -> None:
    study = create(storage=storage)
    drivers = [drive(0, 2), drive(2, 4)]
    until(lambda: len(running(study)) == 3)
    study.pause("until the goal is changed")
    (tmp_path / "go").touch()
    until(lambda: not running(study))
    study.change_goal(TRADEOFF)
    assert all(driver.poll() is None for driver in drivers)
    study.resume()
    for driver in drivers:
        finished(driver)
    events = events_of(study)
    kinds = [type(event) for event in events]
    begin, end = kinds.index(Paused), kinds.index(Resumed)
    assert kinds[:begin].count(Started) == 3
    assert kinds[begin:end].count(Started) == 0
    assert kinds[end:].count(Started) == 3
    assert [e for e in events if isinstance(e, Configured)] == [
        Configured(goal=plan.encode(TRADEOFF))
    ]
    assert tw.load_study(storage).goal == TRADEOFF
    assert tw.replay(tw.load_study(storage)).identical


def test_a_pause_outlives_the_processes_that_were_killed(
    drive: Drivers, storage: str, tmp_path: Path
) -> None:
    create(storage=storage)
    driver = drive(0, 3)
    study = tw.load_study(storage)
    until(lambda: running(study))
    pausing = script(
        "import os, signal, sys, tradewind as tw\n"
        "tw.load_study(sys.argv[1]).pause('maintenance')\n"
        "os.kill(os.getpid(), signal.SIGKILL)",
        storage,
    )
    assert pausing.wait(60) == -signal.SIGKILL
    driver.kill()
    assert driver.wait(60) == -signal.SIGKILL
    again = tw.load_study(storage)
    assert again.paused is not None
    assert again.paused.reason == "maintenance"
    with pytest.raises(tw.errors.StudyPaused, match="maintenance"):
        again.ask()
    again.resume()
    assert tw.load_study(storage).paused is None
    assert again.ask().state is State.RUNNING
    pausing.communicate()
