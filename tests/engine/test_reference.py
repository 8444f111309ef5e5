"""The reference cost of a trade-off: the trials of the initial design decide it, and then it stays.

While a trial of the design still runs, the reference is provisional. All times are simulated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import tradewind as tw
from tests.studies import SPACE, create, created
from tradewind.goals import Tradeoff
from tradewind.log.events import Abandoned, Claimed, Finished, Proposed
from tradewind.log.state import StudyState
from tradewind.runners.runner import Failure, Stopped
from tradewind.runners.simulated import SimulatedRunner
from tradewind.strategies import Bayes, Design
from tradewind.types import Origin, Outcome, Trial

SLOW, COST = 0, 9.0  # the slow trial of the design, and what it costs


def objective(run: Any) -> dict[str, float]:
    return {"value": run.params["x"], "cost": seconds(run)}


def seconds(trial: Any) -> float:
    return COST if trial.number == SLOW else 1.0 + 0.1 * (trial.number % 7)


@pytest.fixture
def study() -> tw.Study:
    return create(goal=Tradeoff(alpha=0.3), strategy=Bayes(design=Design(4)))


def search(study: tw.Study, n_trials: int, **options: Any) -> list[Tradeoff]:
    """The goal with its reference after each trial of a search with four workers."""
    goals: list[Tradeoff] = []

    def look(study: tw.Study, trial: Trial) -> None:
        goal = study.goal
        assert isinstance(goal, Tradeoff)
        goals.append(goal)

    runner = SimulatedRunner(4, duration=seconds, **options)
    study.optimize(objective, n_trials=n_trials, runner=runner, callbacks=[look])
    return goals


def design_of(study: tw.Study) -> list[Trial]:
    return [t for t in study.trials if t.origin is Origin.DESIGN]


def stop_slow(result: Any) -> Callable[[Trial], Any]:
    """End the slow trial with this result after 5 seconds."""
    return lambda trial: (5.0, result) if trial.number == SLOW else None


def test_the_reference_is_provisional_until_the_last_trial_of_the_design_has_finished(
    study: tw.Study,
) -> None:
    goals = search(study, 30)
    assert any(t.origin is Origin.MODEL for t in study.trials)
    finished = [g for g in goals if not g.provisional]
    before = goals[: len(goals) - len(finished)]
    assert before
    assert goals == before + finished  # once it is fixed, it stays fixed
    assert {g.reference for g in finished} == {COST}
    assert all(g.reference is not None and g.reference < 2.0 for g in before)


def test_the_reference_is_fixed_without_a_design_trial_that_failed(study: tw.Study) -> None:
    goals = search(study, 30, failure=stop_slow(Failure("boom")))
    assert study.trials[SLOW].state.value == "failed"
    fixed = [g for g in goals if not g.provisional]
    assert 0 < len(fixed) < len(goals)
    largest = max(t.cost for t in design_of(study) if t.finished and t.cost is not None)
    assert {g.reference for g in fixed} == {largest}


def test_later_trials_do_not_move_the_reference(study: tw.Study) -> None:
    search(study, 30)
    study.add({"x": 0.5, "k": 1}, value=0.5, cost=1e4)
    assert study.goal == Tradeoff(alpha=0.3, reference=COST)


def test_an_abandoned_design_trial_that_finishes_late_does_not_move_the_reference(
    study: tw.Study,
) -> None:
    goals = search(study, 30, failure=stop_slow(Stopped("its machine is needed")))
    assert study.trials[SLOW].state.value == "abandoned"
    assert not goals[-1].provisional
    before = study.goal
    assert isinstance(before, Tradeoff)
    assert before.reference is not None
    assert before.reference < 2.0
    study.tell(SLOW, value=0.5, cost=COST)
    assert study.trials[SLOW].finished
    assert study.goal == before
    assert tw.replay(study).identical


def test_studies_of_version_0_1_still_count_an_abandoned_trial_that_finishes_late() -> None:
    """They must replay as they were made. Only newer studies store a data seed."""
    for data_seed, counts in ((None, True), (1, False)):
        state = StudyState(SPACE, seed=0, maximize=True)
        state.apply([replace(created(), data_seed=data_seed)])
        state.apply([Claimed(0), Proposed(0, {"x": 0.5, "k": 1}, Origin.DESIGN, seen=1)])
        state.apply([Abandoned(0, "slow"), Claimed(1)])
        state.apply([Proposed(1, {"x": 0.6, "k": 1}, Origin.MODEL, seen=4)])
        state.apply([Finished(0, Outcome(0.5, 100.0))])
        assert state.initial is not None
        assert (0 in state.initial) is counts
