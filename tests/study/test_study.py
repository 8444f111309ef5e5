"""The study as its users meet it: what they may do, and what they are told when they may not."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import tradewind as tw
from tests.studies import SPACE, create, quick, score, timeless, told
from tradewind.errors import SpaceError
from tradewind.strategies import Bayes, RandomSearch

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
        ({"goal": "best"}, ValueError, "a goal is quality, tradeoff:ALPHA"),
        ({"goal": tw.Quality}, TypeError, "got the class: write Quality()"),
        ({"strategy": "tpe"}, ValueError, "strategy must be one of 'auto', 'random', but got"),
        ({"strategy": Bayes}, TypeError, "got the class: write Bayes()"),
        ({"strategy": 3}, TypeError, "but got 3"),
        ({"strategy": object()}, TypeError, "which has no propose()"),
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
    with pytest.raises(TypeError, match="space must be a Space or a dict"):
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
        "trial 0 failed: ZeroDivisionError: division by zero",
        "1 of 1 trials failed: 1 × ZeroDivisionError: division by zero",
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
