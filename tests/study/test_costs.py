"""What a cost is, from the study's side: its name, its meaning over folds, and budgets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tradewind as tw
from tests.studies import create, events_of, quick, score, told
from tradewind.errors import NothingQualifies, OutcomeError, StorageError
from tradewind.goals import Goal
from tradewind.log.events import Created
from tradewind.log.memory import MemoryStore
from tradewind.runners.run import Run
from tradewind.runners.simulated import SimulatedRunner
from tradewind.strategies import MultiFidelity
from tradewind.types import FinishedTrial

X = np.arange(20.0)


def paid(trial: Run) -> dict[str, Any]:
    return {"value": trial.params["x"], "costs": {"money": 2.0 + trial.number, "heat": 7.0}}


def validated(trial: Run) -> dict[str, float]:
    """Four folds, each of which costs 2."""
    for fold in trial.folds(X, cv=4):
        fold.report(trial.params["x"])
    return {"cost": 2.0}


# ---- the cost of a study ----


def test_the_cost_of_a_study_is_stored_with_it() -> None:
    store = MemoryStore()
    study = create(cost="money", storage=store)
    study.optimize(paid, 3)
    assert [t.cost for t in study.trials] == [2.0, 3.0, 4.0]
    assert {t.cost_of("heat") for t in study.trials} == {7.0}
    loaded = tw.load_study(store)
    assert loaded.cost_name == loaded.best.cost_name == "money"
    assert create(storage=store, load_if_exists=True).cost_name == "money"
    with pytest.raises(StorageError, match="its cost is 'money' there and 'cpu' here"):
        create(cost="cpu", storage=store, load_if_exists=True)


@pytest.mark.parametrize("wrong", ["", 3, True])
def test_a_cost_has_a_name(wrong: Any) -> None:
    with pytest.raises(ValueError, match="cost must be the name of a cost"):
        create(cost=wrong)


def test_a_trial_without_the_cost_of_its_study_has_failed_or_is_refused() -> None:
    study = create(cost="money")
    study.optimize(lambda trial: 1.0, 1)
    assert "the cost of this study is 'money'" in (study.trials[0].error or "")
    trial = study.ask()
    with pytest.raises(OutcomeError, match="'money': give it as cost, or in costs"):
        study.tell(trial, 1.0, costs={"heat": 1.0})
    assert study.tell(trial, 1.0, costs={"money": 4.0}).cost == 4.0


def test_peak_memory_cannot_be_added_up() -> None:
    with pytest.raises(ValueError, match="the cost of this study is peak memory"):
        create(cost="memory").optimize(lambda trial: 1.0, max_cost=1e9)


def test_worker_processes_measure_and_report_the_same() -> None:
    def objective(trial: Run) -> dict[str, Any]:
        with trial.timer():
            total = sum(range(10**5))
        return {"value": 1.0, "costs": {"heat": 3.0}, "total": total, "text": "ü" * 5000}

    study = create(cost="cpu")
    study.optimize(objective, 2, n_workers=1)
    for trial in study.trials:
        assert trial.usage is not None
        assert 0.0 < trial.cost <= trial.usage.cpu
        assert (trial.usage.clock, trial.costs) == ("cpu", {"heat": 3.0})
        assert trial.attributes == {"total": 4999950000, "text": "ü" * 5000}


# ---- one training ----


def test_the_cost_is_that_of_one_training_and_a_budget_counts_all() -> None:
    study = create()
    study.optimize(validated, max_cost=33.0, runner=SimulatedRunner())
    assert {(t.cost, t.trainings) for t in study.trials if t.finished} == {(2.0, 4)}
    assert sum(t.finished for t in study.trials) == 4  # 32 of 33 are spent


def test_near_its_end_a_budget_asks_for_trainings_that_fit() -> None:
    study = create()
    study.optimize(validated, max_cost=30.0, runner=SimulatedRunner())
    proposed = [e for e in events_of(study) if getattr(e, "max_cost", None) is not None]
    assert proposed
    assert all(e.max_cost * 4 <= 30.0 for e in proposed)


def test_an_older_study_goes_on_with_the_cost_of_all_folds() -> None:
    store = MemoryStore()
    created = events_of(create())[0]
    assert isinstance(created, Created)
    old = {name: value for name, value in vars(created).items() if name != "per_training"}
    store.create("study", Created(**old))
    study = tw.load_study(store, "study")
    runner = SimulatedRunner(duration=lambda trial: 8.0)
    study.optimize(lambda trial: {"folds": [1.0, 2.0]}, 1, runner=runner)
    assert (study.best.cost, study.best.trainings) == (8.0, 1)
    new = create()
    new.optimize(lambda trial: {"folds": [1.0, 2.0]}, 1, runner=runner)
    assert (new.best.cost, new.best.trainings) == (4.0, 2)


# ---- goals with another cost ----


def two_costs(goal: Goal | None = None) -> tw.Study:
    """Two trials: the second is better, and dearer in money only."""
    study = create(goal=goal)
    study.tell(study.ask(), 0.5, cost=9.0, costs={"money": 100.0})
    study.tell(study.ask(), 0.6, cost=1.0, costs={"money": 900.0})
    return study


@pytest.mark.parametrize(
    "goal", [tw.BestUnder(500.0, by="money"), tw.Tradeoff(0.5, 1000.0, by="money")]
)
def test_what_is_recommended_is_best_by_the_cost_of_the_goal(goal: Goal) -> None:
    study = two_costs(goal)
    recommended = study.recommend()
    assert recommended.trial == study.best == study.trials[0]
    assert recommended.cost == 100.0


def test_a_limit_says_if_no_cost_that_counts_is_known() -> None:
    space = tw.Space({"x": tw.Float(0, 1), "size": tw.TrainSize([0.5, 1.0])})
    study = create(space, strategy=MultiFidelity())
    study.add({"x": 0.5, "size": 0.5}, 0.5, cost=1.0)
    study.add({"x": 0.5, "size": 1.0}, 0.6)
    with pytest.raises(NothingQualifies, match="none that may win has a known cost"):
        study.best_for(tw.BestUnder(9.0))


def test_a_reference_is_borrowed_only_for_the_same_cost() -> None:
    study = two_costs(tw.Tradeoff(0.01, 9.0))
    assert study.best_for(tw.Tradeoff(0.2, by="money")).number == 0  # its reference is 900
    assert study.best_for(tw.Tradeoff(0.2, by="wall")).number == 1


def test_what_was_reported_is_no_name_of_a_cost() -> None:
    study = create()
    study.optimize(lambda trial: {"value": 1.0, "cost": 2.0}, 1)
    assert study.best.cost_of("reported") is None


@pytest.mark.parametrize("by", [None, "money"])
def test_a_limit_holds_if_the_goal_names_the_cost_of_the_study(by: str | None) -> None:
    study = quick(cost="money", goal=tw.Frontier(by=by))
    study.optimize(lambda trial: {**score(trial), "costs": {}}, 8)
    trial = study.ask(max_cost=2.0)
    assert trial.expected_cost is not None
    assert trial.expected_cost <= 2.0


# ---- what is told and copied ----


def test_costs_and_attributes_may_be_told_and_added(caplog: pytest.LogCaptureFixture) -> None:
    study = create()
    extra: dict[str, Any] = {"costs": {"heat": 3}, "attributes": {"f1": np.float64(0.5)}}
    trials = [
        study.tell(study.ask(), 1.0, **extra),
        study.add({"x": 0.5, "k": 1}, 1.0, **extra),
    ]
    assert [(t.costs, t.attributes) for t in trials] == [({"heat": 3.0}, {"f1": 0.5})] * 2
    assert study.add({"x": 0.5, "k": 1}, 1.0, attributes={"model": object()}).attributes == {}
    assert "the attribute 'model' was left out" in caplog.text
    with pytest.raises(TypeError, match="attributes must be a mapping, but got 3"):
        study.add({"x": 0.5, "k": 1}, 1.0, attributes=3)  # type: ignore[arg-type]
    trials[0].attributes["f1"] = 9.0  # type: ignore[index]
    assert study.trials[0].attributes == {"f1": 0.5}


def test_copied_trials_have_the_cost_of_their_new_study() -> None:
    source = create()
    source.optimize(paid, 2)
    study = create(cost="money")
    copies = study.add_trials(source.trials)
    assert [(t.cost, t.cost_name) for t in copies] == [(2.0, "money"), (3.0, "money")]
    assert [t.costs for t in copies] == [t.costs for t in source.trials]


def test_a_finished_trial_has_a_value() -> None:
    study = told((1.0, 2.0), (2.0, 3.0))
    assert all(isinstance(t, FinishedTrial) for t in (*study.trials, *study.frontier()))
    assert study.best.value + 1.0 == 3.0
    assert study.best.params["x"] * 2.0 <= 2.0
    assert not isinstance(study.ask(), FinishedTrial)
