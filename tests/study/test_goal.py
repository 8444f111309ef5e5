"""`study.goal`: the reference that the trials decide, and trials that have no costs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tradewind as tw
from tests.studies import create, quick, score, told
from tradewind import recipes
from tradewind.errors import NothingFinished
from tradewind.log.memory import MemoryStore
from tradewind.strategies import MIES, Bayes, Design, MultiFidelity, Staged
from tradewind.types import Origin

STRATEGIES: dict[str, Callable[[], Any]] = {
    "auto": recipes.auto,
    "random": recipes.random_search,
    "bayes": lambda: Bayes(design=Design(4)),
    "staged": lambda: Staged(Bayes(design=Design(4)), (0.3, 1.0), trials=4),
    "fidelity": MultiFidelity,
    "wang2020": recipes.wang2020,
    "mip_ego": lambda: recipes.mip_ego(loss="identity", trees=10, maximizer=MIES(generations=20)),
}


# ---- the reference ----


@pytest.mark.parametrize("ending", ["tell", "fail"])
def test_the_reference_is_provisional_until_the_last_trial_of_the_design_has_ended(
    ending: str,
) -> None:
    study = quick(goal=tw.Tradeoff(alpha=0.3))
    assert "provisional" not in repr(study.goal)  # there is no reference yet
    design = [study.ask() for _ in range(4)]
    for trial in design[:3]:
        study.tell(trial, value=0.5, cost=2.0 + trial.number)
    assert study.ask().origin is Origin.MODEL
    assert repr(study.goal) == "Tradeoff(alpha=0.3, reference=4.0, provisional)"
    assert "provisional" in repr(study)
    if ending == "tell":
        study.tell(design[3], value=0.5, cost=9.0)
    else:
        study.fail(design[3])
    reference = 9.0 if ending == "tell" else 4.0
    assert study.goal == tw.Tradeoff(alpha=0.3, reference=reference)
    assert "provisional" not in repr(study)


def test_the_reference_is_provisional_until_a_model_has_proposed() -> None:
    study = quick(goal=tw.Tradeoff(alpha=0.3))
    study.optimize(score, n_trials=4)
    assert "provisional" in repr(study.goal)
    study.optimize(score, n_trials=1)
    assert "provisional" not in repr(study.goal)


def test_a_design_trial_that_is_run_again_keeps_the_reference_provisional() -> None:
    study = quick(goal=tw.Tradeoff(alpha=0.3))
    design = [study.ask() for _ in range(4)]
    for trial in design[:3]:
        study.tell(trial, value=0.5, cost=2.0)
    study.ask()
    study.requeue(design[3])
    assert "provisional" in repr(study.goal)


def test_a_reference_of_the_users_own_is_never_provisional() -> None:
    study = quick(goal=tw.Tradeoff(alpha=0.3, reference=7.0))
    study.tell(study.ask(), value=0.5, cost=2.0)
    assert repr(study.goal) == "Tradeoff(alpha=0.3, reference=7.0)"


def test_whether_a_reference_is_provisional_is_not_stored(tmp_path: Any) -> None:
    study = quick(goal=tw.Tradeoff(alpha=0.3), storage=tmp_path / "runs.db")
    study.optimize(score, n_trials=3)
    assert study.goal.provisional
    study.export(tmp_path / "study.jsonl")
    assert "provisional" not in (tmp_path / "study.jsonl").read_text()
    assert tw.load_study(tmp_path / "runs.db").goal == study.goal


def test_nobody_is_warned_of_a_cost_above_a_provisional_reference(
    caplog: pytest.LogCaptureFixture,
) -> None:
    study = quick(goal=tw.Tradeoff(alpha=0.3, capped=True))
    open_trial = study.ask()
    study.optimize(lambda trial: {"value": 0.5, "cost": float(trial.number)}, n_trials=6)
    assert caplog.records == []
    study.tell(open_trial, value=0.5, cost=1.0)
    study.optimize(lambda trial: {"value": 0.5, "cost": 100.0}, n_trials=2)
    assert ["cost 100" in record.message for record in caplog.records] == [True]


# ---- trials without costs ----


def without_costs(name: str) -> MemoryStore:
    """A store with a study whose trials finished without costs."""
    store, strategy = MemoryStore(), STRATEGIES[name]()
    space: dict[str, Any] = {"x": (0.0, 1.0)}
    if isinstance(strategy, MultiFidelity):
        space["train_size"] = tw.TrainSize([0.25, 1.0])
    study = create(tw.Space.from_dict(space), strategy=strategy, storage=store)
    for _ in range(12):
        trial = study.ask()
        study.tell(trial, value=float(trial.params["x"]))
    assert all(t.finished and t.cost is None for t in study.trials)
    return store


@pytest.mark.parametrize("reference", [None, 2.0])
@pytest.mark.parametrize("name", STRATEGIES)
def test_a_study_without_costs_can_continue_under_a_trade_off(
    name: str, reference: float | None
) -> None:
    study = tw.load_study(without_costs(name), goal=tw.Tradeoff(0.3, reference))
    for _ in range(3):
        trial = study.ask()
        study.tell(trial, value=float(trial.params["x"]), cost=1.0)
    assert study.best.number >= 12  # the others have no cost
    assert study.recommend().cost is not None
    assert len(study.to_frame()) == 15
    assert tw.replay(study).identical


@pytest.mark.parametrize("name", STRATEGIES)
def test_trials_may_run_at_the_same_time_before_any_cost_is_known(name: str) -> None:
    study = tw.load_study(without_costs(name), goal=tw.Tradeoff(0.3))
    assert [study.ask().number for _ in range(3)] == [12, 13, 14]


@pytest.mark.parametrize("reference", [None, 2.0])
def test_a_study_without_costs_shows_its_goal_and_says_what_it_lacks(
    reference: float | None,
) -> None:
    goal = tw.Tradeoff(0.3, reference)
    study = tw.load_study(without_costs("bayes"), goal=goal)
    assert study.goal == goal
    assert study.to_frame()["score"].isna().all()
    for ask in (lambda: study.best, study.recommend):
        with pytest.raises(NothingFinished, match="needs costs, but no finished trial has a cost"):
            ask()


def test_a_provisional_goal_that_is_given_to_another_study_is_given(tmp_path: Path) -> None:
    study = told((0.5, 3.0), goal=tw.Tradeoff(0.3))
    assert study.goal.provisional
    other = create(goal=study.goal, storage=tmp_path / "runs.db")
    assert other.goal == tw.Tradeoff(0.3, 3.0)
    assert not other.goal.provisional
