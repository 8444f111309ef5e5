"""What a cost is, from the study's side: its name, its meaning over folds, and budgets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tradewind as tw
from tests.studies import create, events_of, told
from tradewind.errors import OutcomeError, StorageError
from tradewind.log.events import Created
from tradewind.log.memory import MemoryStore
from tradewind.runners.run import Run
from tradewind.runners.simulated import SimulatedRunner
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
