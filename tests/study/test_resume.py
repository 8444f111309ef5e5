"""A study goes on where it was left, however it was left."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import tradewind as tw
from tests.studies import create, events_of, quick, score, script, states, timeless
from tradewind.log.events import Claimed, Requeued
from tradewind.log.sqlite import SqliteStore
from tradewind.types import Origin, State

GOALS = [tw.Quality(), tw.Tradeoff(alpha=0.3)]


def later(path: Path) -> SqliteStore:
    """The store as it will be when every lease is over."""
    return SqliteStore(path, clock=lambda: time.monotonic() + 1000.0)


# ---- in parts ----


@pytest.mark.parametrize("goal", GOALS, ids=["quality", "tradeoff"])
def test_twenty_and_twenty_trials_are_forty(goal: Any, tmp_path: Path) -> None:
    whole = tw.create_study(create().space, goal=goal, seed=3)
    whole.optimize(score, n_trials=40)
    parts = tw.create_study(whole.space, goal=goal, seed=3, storage=tmp_path / "runs.db")
    parts.optimize(score, n_trials=20)
    parts = tw.load_study(tmp_path / "runs.db")
    parts.optimize(score, n_trials=20)
    assert timeless(parts.trials) == timeless(whole.trials)


def test_a_study_that_is_loaded_for_every_trial_is_the_same(tmp_path: Path) -> None:
    whole = quick()
    whole.optimize(score, n_trials=10)
    quick(storage=tmp_path / "runs.db")
    for _ in range(10):
        study = tw.load_study(tmp_path / "runs.db")
        trial = study.ask()
        tw.load_study(tmp_path / "runs.db").tell(trial, **score(trial))
    assert timeless(tw.load_study(tmp_path / "runs.db").trials) == timeless(whole.trials)


def test_what_is_loaded_is_the_study(tmp_path: Path) -> None:
    study = quick(storage=tmp_path / "runs.db", name="reviews", direction="minimize", seed=7)
    study.optimize(score, n_trials=6)
    study.fail(study.ask(), "out of memory")
    study.enqueue({"x": 0.5})
    loaded = tw.load_study(tmp_path / "runs.db")
    for attribute in ("name", "seed", "direction", "space", "goal", "strategy", "trials", "best"):
        assert getattr(loaded, attribute) == getattr(study, attribute), attribute
    assert loaded.ask().origin is Origin.ENQUEUED
    assert study.ask().origin is Origin.MODEL


def test_whoever_has_a_study_open_sees_what_others_do(tmp_path: Path) -> None:
    study = create(storage=tmp_path / "runs.db")
    other = tw.load_study(tmp_path / "runs.db")
    other.optimize(score, n_trials=3)
    assert study.trials == other.trials
    assert study.ask().number == 3


# ---- killed ----

KILLED = """
import sys, time
import tradewind as tw

def objective(trial):
    x, k = trial.params["x"], trial.params["k"]
    if trial.number == int(sys.argv[2]):
        print("running", flush=True)
        time.sleep(600)
    return {"value": -((x - 0.3) ** 2) + 0.01 * k, "cost": 1.0 + k * x}

tw.load_study(sys.argv[1]).optimize(objective, n_trials=20, lease=30)
"""

KILLED_WHILE_PROPOSING = """
import sys, time
import tradewind as tw
from tests.studies import score
from tradewind.strategies import Bayes

propose = Bayes.propose

def slow(self, space, goal, history, *, rng):
    if history.number == int(sys.argv[2]):
        print("running", flush=True)
        time.sleep(600)
    return propose(self, space, goal, history, rng=rng)

Bayes.propose = slow
tw.load_study(sys.argv[1]).optimize(score, n_trials=20, lease=30)
"""


@pytest.fixture
def uninterrupted() -> tw.Study:
    study = quick()
    study.optimize(score, n_trials=10)
    return study


def kill(code: str, path: Path, number: int) -> None:
    """Let a process work until it is at trial `number`, and kill it there."""
    process = script(code, path, number)
    assert process.stdout is not None
    if process.stdout.readline() != "running\n":
        pytest.fail(process.communicate()[1])
    process.kill()
    process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 6])
def test_a_killed_driver_loses_nothing_that_was_done(
    number: int, tmp_path: Path, uninterrupted: tw.Study
) -> None:
    path = tmp_path / "runs.db"
    quick(storage=path)
    kill(KILLED, path, number)
    study = tw.load_study(path)
    assert states(study) == ["finished"] * number + ["running"]
    assert timeless(study.trials[:-1]) == timeless(uninterrupted.trials[:number])

    study = tw.load_study(later(path))
    study.optimize(score, n_trials=10 - number)
    trials = study.trials
    assert trials[number].retries == 1
    assert [(t.params, t.value) for t in trials] == [
        (t.params, t.value) for t in uninterrupted.trials
    ]
    assert [e.number for e in events_of(study) if isinstance(e, Requeued)] == [number]
    assert tw.replay(study).identical


@pytest.mark.slow
def test_a_driver_that_was_killed_while_it_proposed_leaves_no_gap(
    tmp_path: Path, uninterrupted: tw.Study
) -> None:
    path = tmp_path / "runs.db"
    quick(storage=path)
    kill(KILLED_WHILE_PROPOSING, path, 6)
    study = tw.load_study(path)
    assert len(study.trials) == 6
    assert max(e.number for e in events_of(study) if isinstance(e, Claimed)) == 5
    study.optimize(score, n_trials=4)
    assert timeless(study.trials) == timeless(uninterrupted.trials)


@pytest.mark.slow
def test_a_number_that_a_killed_driver_claimed_beside_others_is_claimed_again(
    tmp_path: Path,
) -> None:
    path = tmp_path / "runs.db"
    asked = quick(storage=path).ask()
    kill(KILLED_WHILE_PROPOSING, path, 6)
    study = tw.load_study(later(path))
    assert max(e.number for e in events_of(study) if isinstance(e, Claimed)) == 6
    assert len(study.trials) == 6
    assert study.ask().number == 6
    study.tell(asked, **score(asked))
    assert tw.replay(study).identical


@pytest.mark.slow
def test_a_study_survives_being_killed_again_and_again(
    tmp_path: Path, uninterrupted: tw.Study
) -> None:
    path = tmp_path / "runs.db"
    quick(storage=path)
    for number in (0, 3, 4):
        store = later(path)
        for trial in tw.load_study(store).trials:  # what was lost is told before the next begins
            if trial.state is State.RUNNING:
                study = tw.load_study(store)
                again = study.ask()
                assert again.number == trial.number
                study.tell(again, **score(again))
        kill(KILLED, path, number)
    study = tw.load_study(later(path))
    study.optimize(score, n_trials=10 - 4)
    assert [(t.params, t.value) for t in study.trials] == [
        (t.params, t.value) for t in uninterrupted.trials
    ]
    assert tw.replay(study).identical
