"""A study is steered from outside: whatever runs its trials, its driver obeys."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tradewind as tw
from tests.contracts.test_runners import ALL, RUNNERS
from tests.runners.trials import PATIENCE
from tests.studies import SPACE, create, events_of, states
from tradewind.engine import plan
from tradewind.goals import Goal
from tradewind.log.events import Configured, Paused, Resumed, Started
from tradewind.optimizer.history import History
from tradewind.strategies import RandomSearch
from tradewind.types import Proposal, State

pytestmark = [
    pytest.mark.filterwarnings("ignore:.* workers share:UserWarning"),
    pytest.mark.parametrize("name", ALL),
]
TRADEOFF = tw.Tradeoff(alpha=0.3, reference=1.0)


class Own(RandomSearch):
    """A strategy that the store does not have. `goals` are those it was asked with."""

    def __init__(self) -> None:
        object.__setattr__(self, "goals", [])

    def propose(
        self, space: tw.Space, goal: Goal, history: History, *, rng: np.random.Generator
    ) -> Proposal:
        self.goals.append(goal)  # type: ignore[attr-defined]
        return super().propose(space, goal, history, rng=rng)


@pytest.fixture
def storage(tmp_path: Path) -> str:
    return str(tmp_path / "runs.db")


def until(condition: Callable[[], Any]) -> Any:
    give_up = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < give_up, "it did not happen"
        time.sleep(0.02)
    return found


@contextmanager
def meanwhile(work: Callable[[tw.Study], object], storage: str) -> Iterator[None]:
    """Somebody else does something with the study that is stored there, in another thread."""
    errors: list[BaseException] = []

    def do() -> None:
        try:
            work(tw.load_study(storage, strategy="auto"))  # "to look at it"
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=do)
    thread.start()
    yield
    thread.join()
    assert not errors, errors


def runs(study: tw.Study, number: int) -> bool:
    return any(t.number == number and t.state is State.RUNNING for t in study.trials)


def slow_at_first(path: str) -> Callable[[tw.Run], dict[str, float]]:
    """An objective whose first trial says when it begins, and then takes for ever."""

    def objective(run: tw.Run) -> dict[str, float]:
        if run.number == 0:
            Path(path).touch()
            time.sleep(PATIENCE)
        return {"value": float(run.number), "cost": 1.0}

    return objective


def test_a_trial_that_somebody_stops_ends_and_the_search_goes_on(
    name: str, storage: str, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"

    def stop_the_first(other: tw.Study) -> None:
        until(begun.exists)
        until(lambda: runs(other, 0))
        other.abandon(0, "it looks hopeless")

    ended: list[tw.Trial] = []
    study = create(storage=storage)
    with meanwhile(stop_the_first, storage):
        study.optimize(
            slow_at_first(str(begun)),
            n_trials=4,
            runner=RUNNERS[name](),
            callbacks=[lambda study, trial: ended.append(trial)],
        )
    assert states(study) == ["abandoned", "finished", "finished", "finished"]
    assert study.trials[0].error == "it looks hopeless"
    assert sorted(trial.number for trial in ended) == [0, 1, 2, 3]


def test_a_paused_study_starts_nothing_until_it_is_resumed(
    name: str, storage: str, caplog: pytest.LogCaptureFixture
) -> None:
    def resume(other: tw.Study) -> None:
        until(lambda: "the new data arrives" in caplog.text)  # the driver has noticed
        until(lambda: all(t.state is not State.RUNNING for t in other.trials))
        other.resume()

    def pause(study: tw.Study, trial: tw.Trial) -> None:
        if not events_of_kind(study, Paused):
            tw.load_study(storage).pause("until the new data arrives")

    study = create(storage=storage)
    with meanwhile(resume, storage):
        study.optimize(
            lambda run: {"value": 1.0, "cost": 1.0},
            n_trials=6,
            runner=RUNNERS[name](),
            callbacks=[pause],
        )
    assert states(study) == ["finished"] * 6
    kinds = [type(event) for event in events_of(study)]
    begin, end = kinds.index(Paused), kinds.index(Resumed)
    assert Started not in kinds[begin:end]
    assert Started in kinds[end:]
    assert kinds.count(Paused) == kinds.count(Resumed) == 1
    assert caplog.text.count("the new data arrives") == 1
    assert "the study has been resumed" in caplog.text


def events_of_kind(study: tw.Study, kind: type) -> list[Any]:
    return [event for event in events_of(study) if isinstance(event, kind)]


def test_a_driver_with_a_strategy_of_its_own_takes_over_a_goal_that_somebody_else_changes(
    name: str, storage: str
) -> None:
    def change(study: tw.Study, trial: tw.Trial) -> None:
        if not events_of_kind(study, Configured):
            tw.load_study(storage, strategy="auto").change_goal(TRADEOFF)

    strategy = Own()
    study = tw.create_study(SPACE, seed=0, strategy=strategy, storage=storage)
    study.optimize(
        lambda run: {"value": 1.0, "cost": 1.0},
        n_trials=8,
        runner=RUNNERS[name](),
        callbacks=[change],
    )
    goals = strategy.goals  # type: ignore[attr-defined]
    assert goals[0] == tw.Quality()
    assert goals[-1] == study.goal == TRADEOFF
    assert study.strategy is strategy
    assert events_of_kind(study, Configured) == [Configured(goal=plan.encode(TRADEOFF))]
