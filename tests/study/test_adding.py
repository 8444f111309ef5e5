"""`add`, `add_trials` and `enqueue`: results and configurations that the user brings."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tradewind as tw
from tests.studies import CONDITIONAL, SPACE, create, numbers, quick, score, told
from tradewind.errors import ConfigError, OutcomeError
from tradewind.log.memory import MemoryStore
from tradewind.runners.simulated import SimulatedRunner
from tradewind.types import Origin, Outcome, State, Usage

# ---- add ----


def test_a_result_at_hand_is_added_as_a_finished_trial() -> None:
    study = create()
    trial = study.add({"x": np.float32(0.5), "k": 3.0}, value=0.9, cost=9)
    assert trial == study.trials[0] == study.best
    assert (trial.origin, trial.params) == (Origin.ADDED, {"x": 0.5, "k": 3})
    assert study.ask().number == 1


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"x": 0.5}, "'k' is active and must be given"),
        ({"x": 0.5, "k": 1, "y": 1}, "unknown parameter 'y': this space has 'x', 'k'"),
        ({"x": 1.5, "k": 1}, "'x' must be from 0.0 to 1.0, but got 1.5"),
        ({"x": math.nan, "k": 1}, "'x' must be a finite number, but got nan"),
        ({"x": 0.5, "k": 1.5}, "'k' must be a whole number, but got 1.5"),
        ({"x": "0.5", "k": 1}, "'x' must be a finite number, but got '0.5'"),
        ({"x": [0.5], "k": 1}, "'x' must be a finite number, but got [0.5]"),
        ([("x", 0.5)], "a configuration is a mapping"),
        ("xk", "a configuration is a mapping"),
        (None, "a configuration is a mapping"),
        ({0: 0.5}, "unknown parameter 0"),
    ],
)
def test_a_configuration_outside_the_space_cannot_be_added(config: Any, message: str) -> None:
    study = create()
    with pytest.raises(ConfigError) as error:
        study.add(config, value=1.0)
    assert message in str(error.value)
    assert study.trials == []


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"y": 1}, "unknown parameter 'y'"),
        ({"x": -1}, "'x' must be from 0.0 to 1.0, but got -1"),
        ({("x",): 1}, "unknown parameter ('x',)"),
        ("xk", "a configuration is a mapping"),
        (None, "a configuration is a mapping"),
    ],
)
def test_a_configuration_outside_the_space_cannot_be_enqueued(config: Any, message: str) -> None:
    study = create()
    with pytest.raises(ConfigError) as error:
        study.enqueue(config)
    assert message in str(error.value)
    assert study.ask().origin is Origin.DESIGN


def test_an_inactive_parameter_cannot_be_given() -> None:
    study = create(CONDITIONAL)
    with pytest.raises(ConfigError, match="'degree'"):
        study.enqueue({"kernel": "linear", "degree": 3})
    with pytest.raises(ConfigError, match="'degree'"):
        study.add({"kernel": "linear", "degree": 3, "train_size": 1.0}, value=1.0)


def test_a_raced_result_stays_raced() -> None:
    study = create()
    whole = study.add({"x": 0.1, "k": 1}, folds=[0.5, 0.6, 0.7, 0.6, 0.6], cost=9.0)
    raced = study.add({"x": 0.2, "k": 2}, 0.9, cost=1.0, folds=[0.9, 0.9], raced=True, share=0.4)
    assert (raced.value, raced.folds, raced.cost) == (0.9, (0.9, 0.9), 1.0)
    assert (raced.raced, raced.share) == (True, 0.4)
    assert study.frontier() == [whole]
    assert study.best == study.recommend().trial == whole
    _, history = study._session.snapshot()
    assert history.raced.tolist() == [False, True]
    assert history.cost.tolist() == [9.0, 2.5]  # as if it had gone through all its folds
    assert study.to_frame()["raced"].tolist() == [False, True]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"raced": 1}, "raced must be True or False, but got 1"),
        ({"raced": "no"}, "raced must be True or False, but got 'no'"),
        ({"share": 0.0}, "share must be a number in (0, 1], but got 0.0"),
        ({"share": 1.5}, "share must be a number in (0, 1], but got 1.5"),
        ({"share": None}, "share must be a number in (0, 1], but got None"),
    ],
)
def test_a_race_that_cannot_have_happened_is_refused(options: dict[str, Any], message: str) -> None:
    study = create()
    with pytest.raises(ValueError) as raised:  # noqa: PT011
        study.add({"x": 0.5, "k": 1}, 1.0, **{"raced": True, **options})
    assert message in str(raised.value)
    assert study.trials == []


# ---- add_trials ----

COPIED = ("params", "state", "value", "cost", "folds", "raced", "share", "error", "penalized")


def described(trials: Iterable[tw.Trial]) -> list[dict[str, Any]]:
    """What must be the same in a copy."""
    names = (*COPIED, "train_size", "usage")
    return [{name: getattr(trial, name) for name in names} for trial in trials]


def varied(space: tw.Space = SPACE, **options: Any) -> tw.Study:
    """A study with trials in every state."""
    study = create(space, **options)
    study.optimize(_folded, n_trials=3, runner=SimulatedRunner(1, duration=lambda trial: 3.0))
    study.optimize(_broken, n_trials=1, on_error="ignore")
    study.optimize(_broken, n_trials=1)
    raced = study.ask()
    study._session.finish(
        raced.number, Outcome(0.4, 2.0, (0.3, 0.5), True, 0.5), Usage(7.0, 6.0, 2.0, "cuda:1")
    )
    study.fail(study.ask(), "out of memory")
    study.abandon(study.ask())
    study.ask()
    study.requeue(study.ask())
    return study


def _folded(run: Any) -> dict[str, Any]:
    return {"folds": [0.5, 0.25, 1.0], "cost": 3.0}


def _broken(run: Any) -> float:
    raise ValueError("broken")


def test_finished_and_failed_trials_are_copied_with_all_that_is_known_of_them() -> None:
    other = varied()
    wanted = [t for t in other.trials if t.state in (State.FINISHED, State.FAILED)]
    assert {t.state.value for t in other.trials} == {state.value for state in State}
    study = create(seed=1)
    study.add({"x": 0.5, "k": 3}, 0.1, cost=1.0)
    added = study.add_trials(other.trials)
    assert added == study.trials[1:]
    assert described(added) == described(wanted)
    assert [t.penalized for t in added if t.state is State.FAILED] == [False, True, True]
    assert all(t.origin is Origin.ADDED for t in added)
    assert numbers(added) == list(range(1, 1 + len(wanted)))
    assert added[0].usage is not None
    assert added[0].usage.wall == 3.0


def test_a_model_learns_the_same_from_copied_trials() -> None:
    other = varied()
    study = create(seed=1)
    study.add_trials(other.trials)
    (_, copied), (_, original) = study._session.snapshot(), other._session.snapshot()
    for name in ("X", "quality", "cost", "noise", "raced", "failed"):
        np.testing.assert_array_equal(getattr(copied, name), getattr(original, name))
    assert len(copied.ignored) == 1  # the failure that was to be ignored
    assert len(copied.pending) == 0


@pytest.mark.parametrize("space", [SPACE, CONDITIONAL], ids=["apart", "in the space"])
def test_the_training_size_is_copied(space: tw.Space) -> None:
    other, study = create(space), create(space, seed=1)
    sized = space.size_name is not None
    for number in range(4):
        trial = other.ask()
        other.abandon(trial)
        size = None if sized else (number + 1) / 4
        other.add(trial.params, 0.5, cost=1.0, train_size=size)
    added = study.add_trials(other.trials)
    assert [t.train_size for t in added] == [t.train_size for t in other.trials if t.finished]
    assert len({t.train_size for t in added}) > 1


def test_copied_trials_may_be_stored_exported_and_replayed(tmp_path: Path) -> None:
    study = quick(storage=tmp_path / "runs.db")
    study.add_trials(varied().trials)
    study.optimize(score, n_trials=6)
    loaded = tw.load_study(tmp_path / "runs.db")
    assert loaded.trials == study.trials
    loaded.export(tmp_path / "study.jsonl")
    back = tw.import_study(tmp_path / "study.jsonl", storage=MemoryStore())
    assert back.trials == study.trials
    assert tw.replay(back).identical


def test_no_trials_are_nothing_to_copy() -> None:
    study = create()
    assert study.add_trials([]) == []
    assert study.add_trials(t for t in create().trials) == []
    assert study.trials == []


@pytest.mark.parametrize("wrong", [3, "trial", None, {"x": 0.5, "k": 1}, Usage(1.0)], ids=str)
def test_only_trials_are_copied_and_a_wrong_one_copies_nothing(wrong: Any) -> None:
    study, other = create(), told((1.0, 1.0))
    with pytest.raises(TypeError, match="trials must be trials of a study, but got"):
        study.add_trials([*other.trials, wrong])
    with pytest.raises(TypeError):
        study.add_trials(wrong)
    assert study.trials == []


def test_a_trial_of_another_space_copies_nothing() -> None:
    study, other = create(), create(tw.Space({"x": tw.Float(0, 5), "k": tw.Int(1, 9)}))
    other.add({"x": 0.5, "k": 1}, 1.0)
    other.add({"x": 4.5, "k": 1}, 1.0)
    with pytest.raises(ConfigError, match=r"'x' must be from 0.0 to 1.0, but got 4.5"):
        study.add_trials(other.trials)
    assert study.trials == []


def test_a_trial_without_a_cost_is_not_copied_into_a_trade_off() -> None:
    study = create(goal=tw.Tradeoff(alpha=0.3))
    with pytest.raises(OutcomeError, match="needs a cost"):
        study.add_trials(told((1.0, 1.0), (1.0, None)).trials)
    assert study.trials == []


# ---- enqueue ----


def test_enqueued_configurations_come_first_and_in_order() -> None:
    study = quick()
    for x in (0.1, 0.2, 0.3):
        study.enqueue({"x": x, "k": 1})
    trials = [study.ask() for _ in range(4)]
    assert [t.params["x"] for t in trials[:3]] == [0.1, 0.2, 0.3]
    assert [t.origin for t in trials] == [Origin.ENQUEUED] * 3 + [Origin.DESIGN]


def test_enqueued_configurations_come_before_the_models_too() -> None:
    study = quick()
    study.optimize(score, n_trials=5)
    study.enqueue({"x": 0.1})
    study.optimize(score, n_trials=2)
    assert [t.origin for t in study.trials[4:]] == [Origin.MODEL, Origin.ENQUEUED, Origin.MODEL]


def test_the_design_is_the_same_behind_what_was_enqueued() -> None:
    plain, behind = quick(), quick()
    behind.enqueue({"x": 0.1, "k": 1})
    behind.ask()
    assert behind.ask().params == plain.ask().params


def test_what_a_partial_configuration_leaves_open_is_drawn() -> None:
    study = create()
    for _ in range(20):
        study.enqueue({"x": 0.25})
    drawn = [study.ask().params for _ in range(20)]
    assert {p["x"] for p in drawn} == {0.25}
    assert len({p["k"] for p in drawn}) > 3


def test_a_partial_configuration_activates_what_it_needs() -> None:
    study = create(CONDITIONAL)
    study.enqueue({"degree": 4})
    assert study.ask().params["kernel"] == "poly"


def test_nothing_at_all_may_be_enqueued() -> None:
    study = create()
    study.enqueue({})
    assert study.ask().origin is Origin.ENQUEUED


def test_the_queue_keeps_its_own_copy() -> None:
    study, config = create(), {"x": 0.25, "k": 2}
    study.enqueue(config)
    config["x"] = 0.75
    assert study.ask().params == {"x": 0.25, "k": 2}


def test_adding_a_result_leaves_the_queue_alone() -> None:
    study = create()
    study.enqueue({"x": 0.25, "k": 2})
    study.add({"x": 0.75, "k": 3}, value=1.0)
    assert study.ask().params == {"x": 0.25, "k": 2}


def test_a_queue_may_be_filled_while_the_study_runs() -> None:
    study = create()

    def objective(trial: Any) -> float:
        if trial.number == 0:
            study.enqueue({"x": 0.25, "k": 2})
        return 1.0

    study.optimize(objective, n_trials=2)
    assert study.trials[1].params == {"x": 0.25, "k": 2}


@pytest.mark.parametrize("wrong", [None, 3, create(), told((1.0, 2.0)).best])
def test_what_is_no_list_of_trials_is_refused_with_an_example(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"trials must be a list such as other\.trials"):
        create().add_trials(wrong)


def test_a_share_is_for_raced_results_only() -> None:
    with pytest.raises(ValueError, match="for raced results only"):
        create().add({"x": 0.5, "k": 1}, 1.0, share=0.4)
