"""Searches that end themselves: broken objectives, and rules that say enough."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any

import pytest

import tradewind as tw
from tests.studies import create, events_of, score
from tradewind.errors import BrokenObjective
from tradewind.goals import Goal
from tradewind.log.events import Stopped
from tradewind.log.memory import MemoryStore
from tradewind.optimizer.history import History
from tradewind.runners.simulated import SimulatedRunner

# ---- broken objectives ----


def broken(trial: Any) -> float:
    raise ValueError(f"no column 'x{trial.number}'")


def test_an_objective_that_fails_in_the_same_way_ends_the_search() -> None:
    study = create()
    with pytest.raises(BrokenObjective, match="5 have failed in the same way") as error:
        study.optimize(broken, 100)
    text = str(error.value)
    assert text.count("Traceback") == 1
    assert "no column 'x0'" in text
    assert len(study.trials) == 5


def test_patience_may_be_longer_or_endless() -> None:
    study = create()
    with pytest.raises(BrokenObjective):
        study.optimize(broken, 100, give_up_after=7)
    assert len(study.trials) == 7
    study.optimize(broken, 20, give_up_after=None)
    assert len(study.trials) == 27
    with pytest.raises(ValueError, match="give_up_after must be a whole number ≥ 1, but got 0"):
        study.optimize(broken, 100, give_up_after=0)


@pytest.mark.parametrize("lucky", [0, 3])
def test_a_study_in_which_a_trial_has_finished_goes_on(lucky: int) -> None:
    study = create()
    study.optimize(lambda trial: 1.0 if trial.number == lucky else broken(trial), 10)
    study.optimize(broken, 10)
    assert len(study.trials) == 20


def test_different_failures_are_no_proof() -> None:
    def objective(trial: Any) -> float:
        raise (ValueError, TypeError, KeyError)[trial.number % 3](trial.number)

    study = create()
    study.optimize(objective, 12)
    assert len(study.trials) == 12


def test_running_trials_of_a_broken_objective_are_abandoned() -> None:
    study = create()
    runner = SimulatedRunner(3, duration=lambda trial: 1.0 + trial.number)
    with pytest.raises(BrokenObjective):
        study.optimize(broken, 100, runner=runner)
    states = [t.state.value for t in study.trials]
    assert states.count("failed") == 5
    assert set(states) <= {"failed", "abandoned", "waiting"}


def test_a_summary_groups_the_failures(caplog: pytest.LogCaptureFixture) -> None:
    def objective(trial: Any) -> float:
        if trial.number % 4 == 3:
            raise MemoryError("out of memory")
        return broken(trial) if trial.number % 2 else 1.0

    create().optimize(objective, 10)
    last = caplog.records[-1]
    assert (last.levelno, last.getMessage()) == (
        logging.WARNING,
        "5 of 10 trials failed: 3 × ValueError: no column 'x1'; 2 × MemoryError: out of memory",
    )


def test_each_finished_trial_is_one_line_at_info(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "tradewind"):
        create(cost="money").optimize(lambda t: {"value": 0.5, "costs": {"money": 3}}, 2)
    lines = [r.getMessage() for r in caplog.records if r.levelno == logging.INFO]
    assert len(lines) == 2
    assert lines[1].startswith("trial 1 finished: value 0.5, money 3, {'x': ")


# ---- stopping rules ----


@dataclass
class After:
    """Stops after so many finished trials."""

    n: int
    asked: list[int] = field(default_factory=list)

    def reason(self, space: tw.Space, goal: Goal, history: History) -> str | None:
        assert not goal.open
        self.asked.append(len(history.X))
        return f"{self.n} are enough" if len(history.X) >= self.n else None


def test_a_rule_stops_a_search_and_the_study_says_why(caplog: pytest.LogCaptureFixture) -> None:
    store, rule = MemoryStore(), After(3)
    study = create(goal=tw.Tradeoff(alpha=0.3), storage=store)
    assert study.stopped is None
    with caplog.at_level(logging.INFO, "tradewind"):
        study.optimize(score, stop=rule)
    assert len(study.trials) == 3
    assert rule.asked == [1, 2, 3]  # once after each result
    assert study.stopped == tw.load_study(store).stopped == "3 are enough"
    assert caplog.records[-1].getMessage() == "the search stops: 3 are enough"
    study.optimize(score, 1)
    assert study.stopped is None  # the last search ended otherwise


def test_running_trials_end_after_a_stop_and_it_is_recorded_once() -> None:
    study = create()
    study.optimize(score, 100, stop=[After(50), After(4)], runner=SimulatedRunner(3))
    assert [e.reason for e in events_of(study) if isinstance(e, Stopped)] == ["4 are enough"]
    assert sum(t.finished for t in study.trials) == 6
    assert study.stopped == "4 are enough"


def test_without_a_finished_trial_no_rule_is_asked() -> None:
    rule = After(1)
    create().optimize(broken, 3, stop=rule)
    assert rule.asked == []


@pytest.mark.parametrize("wrong", [3, After, [After(1), "enough"], "never"])
def test_what_is_no_rule_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="stop must be an object"):
        create().optimize(score, 3, stop=wrong)


@pytest.mark.parametrize("wrong", [3, False, b"enough"])
def test_a_rule_must_say_why_in_words(wrong: Any) -> None:
    rule = After(1)
    rule.reason = lambda *_: wrong  # type: ignore[assignment,method-assign]
    study = create()
    with pytest.raises(TypeError, match="must return why to stop, as text, or None"):
        study.optimize(score, 3, stop=rule)
    assert study.stopped is None
    assert len(study.trials) == 1
