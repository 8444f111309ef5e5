"""The study as its users meet it: what they may do, and what they are told when they may not."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tradewind as tw
from tests.studies import (
    CONDITIONAL,
    SPACE,
    Clock,
    create,
    numbers,
    params,
    quick,
    score,
    timeless,
    told,
)
from tradewind.errors import ConfigError, OutcomeError, SpaceError, TrialError
from tradewind.log.memory import MemoryStore
from tradewind.strategies import Bayes, RandomSearch
from tradewind.types import Origin, State

# ---- creating ----


def test_a_study_shows_how_it_was_made() -> None:
    study = tw.create_study(SPACE, goal=tw.Tradeoff(alpha=0.3), seed=5, name="reviews")
    assert study.space == SPACE
    assert (study.seed, study.name, study.direction) == (5, "reviews", "maximize")
    assert study.goal == tw.Tradeoff(alpha=0.3)
    assert study.trials == []


def test_the_goal_is_quality_unless_given() -> None:
    assert create().goal == tw.Quality()


def test_its_repr_says_how_far_it_is() -> None:
    study = told((1.0, 2.0))
    study.ask()
    assert repr(study) == "<Study 'study': 2 trials, 1 finished, goal Quality(), seed 0>"


def test_without_a_seed_one_is_drawn_and_shown() -> None:
    first, second = create(seed=None), create(seed=None)
    assert first.seed != second.seed
    assert params_of_three(create(seed=first.seed)) == params_of_three(first)


def params_of_three(study: tw.Study) -> list[Any]:
    return [study.ask().params for _ in range(3)]


@pytest.mark.parametrize("seed", [3, np.int64(3), np.uint8(3)])
def test_numpy_seeds_are_seeds(seed: Any) -> None:
    study = create(seed=seed)
    assert type(study.seed) is int
    assert params_of_three(study) == params_of_three(create(seed=3))


def test_a_seed_may_be_huge() -> None:
    assert params_of_three(create(seed=2**200)) != params_of_three(create(seed=2**200 + 1))


@pytest.mark.parametrize("seed", [-1, 1.0, True, "0", np.float64(1), np.int64(-1)])
def test_other_seeds_are_refused(seed: Any) -> None:
    with pytest.raises(ValueError, match="seed must be a whole number ≥ 0, but got"):
        create(seed=seed)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"direction": "up"}, ValueError, "must be one of 'maximize', 'minimize', but got 'up'"),
        ({"direction": ["maximize"]}, ValueError, "direction must be one of 'maximize', 'minimize"),
        ({"goal": "quality"}, TypeError, "a goal such as Quality()"),
        ({"goal": tw.Quality}, TypeError, "a goal such as Quality()"),
        ({"strategy": "tpe"}, ValueError, "strategy must be one of 'auto', 'random', but got"),
        ({"strategy": Bayes}, TypeError, "an object with propose(), recommend() and settle()"),
        ({"strategy": 3}, TypeError, "but got 3"),
        ({"strategy": object()}, TypeError, "an object with propose()"),
    ],
)
def test_a_wrong_argument_is_named(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as raised:
        create(**options)
    assert message in str(raised.value)


@pytest.mark.parametrize("space", [None, "x", 3])
def test_only_a_space_is_searched(space: Any) -> None:
    with pytest.raises(TypeError, match="space must be a Space, or a dict"):
        create(space)


def test_a_wrong_space_is_refused_where_it_is_made() -> None:
    with pytest.raises(SpaceError, match="at least one parameter"):
        tw.Space({})
    with pytest.raises(SpaceError, match="depends on 'b', which is not a parameter"):
        tw.Space({"a": tw.Bool(when={"b": True})})
    with pytest.raises(SpaceError, match="cycle"):
        tw.Space({"a": tw.Bool(when={"b": True}), "b": tw.Bool(when={"a": True})})


# ---- strategies by name and by hand ----


def test_the_strategy_is_auto_unless_given() -> None:
    assert tw.create_study(SPACE).strategy == tw.recipes.auto()
    assert create(strategy=None).strategy == tw.recipes.auto()


@pytest.mark.parametrize("strategy", ["auto", "random", Bayes(), RandomSearch()])
def test_a_strategy_is_given_by_name_or_as_an_object(strategy: Any) -> None:
    study = create(strategy=strategy)
    study.optimize(score, n_trials=2)
    assert len(study.trials) == 2


# ---- ask and tell ----


def test_an_asked_trial_runs_under_the_next_number() -> None:
    study = create()
    trials = [study.ask() for _ in range(3)]
    assert numbers(trials) == [0, 1, 2]
    assert study.trials == trials
    assert all(t.state is State.RUNNING and t.value is None for t in trials)


def test_a_told_trial_is_finished_with_the_users_numbers() -> None:
    study = create()
    trial = study.tell(study.ask(), value=np.float32(0.5), cost=np.int64(3))
    assert (trial.state, trial.value, trial.cost) == (State.FINISHED, 0.5, 3.0)
    assert study.trials == [trial]


def test_folds_may_be_told_in_place_of_a_value() -> None:
    study = create()
    trial = study.tell(study.ask(), folds=[0.5, 1.0])
    assert (trial.value, trial.folds) == (0.75, (0.5, 1.0))


def test_trials_may_be_told_in_any_order_and_by_number() -> None:
    study = create()
    for _ in range(3):
        study.ask()
    study.tell(np.int64(2), value=2.0)
    study.tell(0, value=0.0)
    study.fail(1)
    assert [t.value for t in study.trials] == [0.0, None, 2.0]


def test_a_failed_trial_keeps_its_reason() -> None:
    study = create()
    trial = study.fail(study.ask(), "out of memory")
    assert (trial.state, trial.error, trial.value) == (State.FAILED, "out of memory", None)


@pytest.mark.parametrize("again", ["tell", "fail"])
@pytest.mark.parametrize("first", ["tell", "fail"])
def test_telling_twice_is_refused_and_changes_nothing(first: str, again: str) -> None:
    study = create()
    trial = study.ask()
    tell = {"tell": lambda: study.tell(trial, value=1.0), "fail": lambda: study.fail(trial)}
    done = tell[first]()
    with pytest.raises(TrialError, match="told once, but trial 0 is already"):
        tell[again]()
    assert study.trials == [done]


def test_an_asked_trial_may_be_given_up_or_put_back() -> None:
    study = create()
    first, second = study.ask(), study.ask()
    given_up, back = study.abandon(first, "no machine"), study.requeue(second)
    assert (given_up.state, given_up.error) == (State.ABANDONED, "no machine")
    assert (back.state, back.retries) == (State.WAITING, 1)
    again = study.ask()
    assert (again.number, again.params, again.retries) == (1, second.params, 1)


def test_a_trial_that_was_given_up_may_still_be_told_once() -> None:
    study = create()
    trial = study.ask()
    study.abandon(trial)
    for refused in (study.fail, study.abandon, study.requeue):
        with pytest.raises(TrialError, match="told once, but trial 0 is already abandoned"):
            refused(trial)
    assert study.tell(trial, value=1.0).finished
    with pytest.raises(TrialError, match="already finished"):
        study.tell(trial, value=2.0)
    assert study.best.value == 1.0


def test_with_a_lease_a_trial_that_is_not_reported_goes_back_to_the_queue() -> None:
    clock = Clock()
    study = create(storage=MemoryStore(clock=clock))
    first, second = study.ask(lease=60), study.ask(lease=np.float32(60))
    clock.now += 40.0
    study.beat(first, 60)
    clock.now += 40.0
    again = study.ask()
    assert (again.number, again.retries) == (second.number, 1)
    assert study.ask().number == 2


def test_only_a_lease_that_stands_can_be_renewed() -> None:
    clock = Clock()
    store = MemoryStore(clock=clock)
    study = create(storage=store)
    leased, plain = study.ask(lease=60), study.ask()
    study.beat(leased, 60)
    study.beat(leased.number, 60)
    with pytest.raises(TrialError, match="trial 1 has no lease that could be renewed"):
        study.beat(plain, 60)
    clock.now += 61.0
    again = tw.load_study(store).ask(lease=60)
    assert again.number == leased.number
    with pytest.raises(TrialError, match="trial 0 is with another driver by now"):
        study.beat(leased, 60)
    study.beat(again, 60)  # whoever has the trial may keep it
    study.tell(again, value=1.0)
    with pytest.raises(
        TrialError, match="trial 0 has no lease that could be renewed: it is finished"
    ):
        study.beat(again, 60)


def test_without_a_lease_a_trial_may_take_a_week() -> None:
    clock = Clock()
    study = create(storage=MemoryStore(clock=clock))
    trial = study.ask()
    clock.now += 7 * 24 * 3600.0
    assert study.ask().number == 1
    study.tell(trial, value=1.0)


@pytest.mark.parametrize("lease", [0, -1.0, math.nan, math.inf, True, "60", None])
def test_a_lease_is_a_time_from_now(lease: Any) -> None:
    study = create()
    trial = study.ask()
    with pytest.raises(ValueError, match="lease must be a number"):
        study.beat(trial, lease)
    if lease is not None:
        with pytest.raises(ValueError, match="lease must be a number"):
            study.ask(lease=lease)
    assert len(study.trials) == 1


def test_a_trial_may_be_asked_to_stay_within_a_cost() -> None:
    study = quick()
    study.optimize(score, n_trials=8)
    trial = study.ask(max_cost=2.0)
    assert trial.expected_cost is not None
    assert study.ask().expected_cost is None


@pytest.mark.parametrize("max_cost", [math.inf, np.float64("inf")])
def test_an_infinite_cost_is_no_limit(max_cost: float, tmp_path: Path) -> None:
    study = create(storage=tmp_path / "runs.db")
    study.ask(max_cost=max_cost)
    assert len(study.trials) == 1


@pytest.mark.parametrize("max_cost", [-1.0, math.nan, True, "3"])
def test_a_cost_to_stay_within_is_a_number(max_cost: Any) -> None:
    with pytest.raises(ValueError, match="max_cost must be a number ≥ 0, but got"):
        create().ask(max_cost=max_cost)


def test_a_trial_that_was_never_asked_is_refused() -> None:
    with pytest.raises(TrialError, match="there is no trial 7"):
        create().tell(7, value=1.0)


@pytest.mark.parametrize("trial", ["0", 0.0, True, None])
def test_what_is_no_trial_is_refused(trial: Any) -> None:
    study = create()
    study.ask()
    with pytest.raises(TypeError, match="a trial or its number is needed, but got"):
        study.tell(trial, value=1.0)


def test_a_copied_or_pickled_trial_is_the_trial() -> None:
    study = create()
    trials = [study.ask() for _ in range(3)]
    copies = copy.deepcopy(trials[0]), pickle.loads(pickle.dumps(trials[1])), trials[2]
    for trial in copies:
        study.tell(dataclasses.replace(trial), value=1.0)
    assert all(t.finished for t in study.trials)


def test_a_trial_of_another_study_is_refused() -> None:
    study, other = create(seed=0), create(seed=1)
    study.ask()
    with pytest.raises(TrialError, match="trial 0 of this study has other parameters"):
        study.tell(other.ask(), value=1.0)


def test_a_trial_whose_params_were_taken_apart_can_be_told() -> None:
    study = create()
    trial = study.ask()
    trial.params.pop("x")  # type: ignore[attr-defined]
    assert study.tell(trial, value=1.0).params.keys() == {"x", "k"}


def test_a_trial_whose_params_were_changed_is_refused() -> None:
    study = create()
    trial = study.ask()
    trial.params["x"] = 0.123  # type: ignore[index]
    with pytest.raises(TrialError, match="has other parameters"):
        study.tell(trial, value=1.0)
    assert study.trials[0].params["x"] != 0.123


def test_what_a_user_does_to_the_trials_changes_nothing() -> None:
    study = told((1.0, 1.0), (2.0, 2.0))
    before = params(study)
    for trial in (*study.trials, study.best, *study.frontier()):
        trial.params.clear()  # type: ignore[attr-defined]
    study.trials.clear()
    study.recommend().params.clear()  # type: ignore[attr-defined]
    assert params(study) == before


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        ({}, "needs a value or folds"),
        ({"cost": 1.0}, "needs a value or folds"),
        ({"value": math.nan}, "value must be a finite number, but got nan"),
        ({"value": math.inf}, "value must be a finite number, but got inf"),
        ({"value": "0.5"}, "value must be a finite number, but got '0.5'"),
        ({"value": 1.0, "cost": -1.0}, "cost ≥ 0 must hold, but got -1.0"),
        ({"value": 1.0, "cost": math.nan}, "cost must be a finite number, but got nan"),
        ({"value": 1.0, "cost": math.inf}, "cost must be a finite number, but got inf"),
        ({"folds": [1.0, math.nan]}, "every fold must be a finite number, but got nan"),
    ],
)
def test_an_impossible_outcome_is_refused_and_the_trial_goes_on(
    outcome: dict[str, Any], message: str
) -> None:
    study = create()
    trial = study.ask()
    with pytest.raises(OutcomeError) as error:
        study.tell(trial, **outcome)
    assert message in str(error.value)
    with pytest.raises(OutcomeError):
        study.add({"x": 0.5, "k": 1}, **outcome)
    assert study.trials == [trial]
    study.tell(trial, value=1.0)


def test_under_a_trade_off_a_cost_must_be_told() -> None:
    study = create(goal=tw.Tradeoff(alpha=0.3))
    trial = study.ask()
    with pytest.raises(OutcomeError, match=r"Tradeoff\(alpha=0.3.*\) needs a cost"):
        study.tell(trial, value=1.0)
    with pytest.raises(OutcomeError, match="needs a cost"):
        study.add({"x": 0.5, "k": 1}, value=1.0)
    study.tell(trial, value=1.0, cost=0.0)


def test_a_trade_off_that_ignores_cost_needs_none() -> None:
    assert told((1.0, None), goal=tw.Tradeoff(alpha=0.0)).best.value == 1.0


def test_threads_may_share_a_study() -> None:
    study = create()

    def work() -> None:
        for _ in range(20):
            trial = study.ask()
            study.tell(trial, value=trial.params["x"])
            assert study.best.value is not None

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert numbers(study.trials) == list(range(80))
    assert all(t.value == t.params["x"] for t in study.trials)


# ---- add and enqueue ----


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


# ---- the same again ----


@pytest.mark.parametrize("goal", [tw.Quality(), tw.Tradeoff(alpha=0.3)], ids=repr)
def test_a_run_in_two_parts_is_the_run_in_one(goal: Any) -> None:
    whole, parts = quick(goal=goal), quick(goal=goal)
    whole.optimize(score, n_trials=12)
    for n in (5, 0, 6, 1):
        parts.optimize(score, n_trials=n)
    assert timeless(parts.trials) == timeless(whole.trials)


def test_asking_and_telling_is_the_same_as_optimizing() -> None:
    whole, own = quick(), quick()
    whole.optimize(score, n_trials=10)
    for _ in range(10):
        trial = own.ask()
        own.tell(trial, **score(trial))
    assert timeless(own.trials) == timeless(whole.trials)


def test_looking_at_a_study_does_not_change_its_course() -> None:
    plain, watched = (quick(goal=tw.Tradeoff(alpha=0.3)) for _ in range(2))
    plain.optimize(score, n_trials=9)
    for _ in range(9):
        watched.optimize(score, n_trials=1)
        _ = watched.best, watched.frontier(), watched.recommend(), repr(watched), watched.goal
        watched.best_for(tw.Quality())
        watched.to_frame()
    assert timeless(watched.trials) == timeless(plain.trials)


def test_another_seed_is_another_run() -> None:
    assert params_of_three(create(seed=0)) != params_of_three(create(seed=1))


def test_a_copied_study_goes_on_like_the_original() -> None:
    study = quick()
    study.optimize(score, n_trials=6)
    copies = copy.deepcopy(study), pickle.loads(pickle.dumps(study))
    study.optimize(score, n_trials=3)
    for other in copies:
        assert len(other.trials) == 6
        other.optimize(score, n_trials=3)
        assert timeless(other.trials) == timeless(study.trials)


def test_trial_seeds_depend_on_study_and_number_alone() -> None:
    a, b = create(), quick()
    assert [a.ask().seed for _ in range(3)] == [b.ask().seed for _ in range(3)]


def test_the_global_random_state_is_neither_used_nor_touched() -> None:
    np.random.seed(1)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    study = quick()
    study.optimize(score, n_trials=6)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_a_dictionary_may_stand_for_a_space() -> None:
    study = tw.create_study({"x": (0.0, 1.0), "kind": ["a", "b"]}, seed=0)
    assert study.space == tw.Space({"x": tw.Float(0.0, 1.0), "kind": tw.Categorical(["a", "b"])})


def test_a_value_may_be_told_and_added_by_position() -> None:
    study = tw.create_study({"x": (0.0, 1.0)}, seed=0)
    study.tell(study.ask(), 0.5)
    study.add({"x": 0.1}, 0.7)
    assert [t.value for t in study.trials] == [0.5, 0.7]


def test_another_tradeoff_is_judged_by_the_reference_of_the_study() -> None:
    study = tw.create_study({"x": (0.0, 1.0)}, goal=tw.Tradeoff(0.1, reference=100.0), seed=0)
    study.add({"x": 0.1}, 0.5, cost=1.0)
    study.add({"x": 0.2}, 0.6, cost=10.0)
    # by 100, the second pays 0.09 more than the first at alpha 1; by 10, it would pay 0.9 more
    assert study.best_for(tw.Tradeoff(1.0)).params["x"] == 0.2
    assert study.best_for(tw.Tradeoff(1.0, reference=10.0)).params["x"] == 0.1


def test_a_failed_trial_is_reported_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    study = tw.create_study({"x": (0.0, 1.0)}, seed=0)
    study.optimize(lambda trial: 1 / 0, n_trials=1)
    assert [r.message for r in caplog.records] == [
        "trial 0 failed: ZeroDivisionError: division by zero"
    ]


# ---- what a trial says of itself ----


@pytest.mark.parametrize("name", ["train_size", "share"])
def test_settings_are_the_parameters_without_the_training_size(name: str) -> None:
    study = tw.create_study({"x": (0.0, 1.0), name: tw.TrainSize([0.5, 1.0])}, seed=0)
    seen = []

    def objective(run: Any) -> float:
        seen.append(run.settings)
        assert {**run.settings, name: run.train_size} == run.params
        return float(run.settings["x"])

    study.optimize(objective, n_trials=3)
    assert [trial.settings for trial in study.trials] == seen
    assert all(list(settings) == ["x"] for settings in seen)


def test_a_trial_is_shown_by_what_is_known_of_it() -> None:
    study = tw.create_study({"x": (0.0, 1.0)}, seed=0)
    trial = study.ask()
    x = trial.params["x"]
    assert repr(trial) == f"Trial(0, running, {{'x': {x!r}}}, train_size=1)"
    told = study.tell(trial, 0.5, cost=2.0)
    assert repr(told) == f"Trial(0, finished, {{'x': {x!r}}}, train_size=1, value=0.5, cost=2.0)"
    failed = study.fail(study.ask(), "too large")
    assert repr(failed).endswith("error='too large')")
