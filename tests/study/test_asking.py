"""`ask`, `tell` and the other ways to report on a trial."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tradewind as tw
from tests.studies import Clock, create, events_of, numbers, params, quick, score, told
from tradewind.errors import OutcomeError, TrialError
from tradewind.log.memory import MemoryStore
from tradewind.types import State, Trial


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


REPORTS: dict[str, Callable[[tw.Study, int], Trial]] = {
    "value": lambda study, number: study.tell(number, value=1.0, cost=2.0, attributes={"f": [1]}),
    "other value": lambda study, number: study.tell(number, value=1.5, cost=2.0),
    "folds": lambda study, number: study.tell(number, folds=[0.5, 0.7], costs={"money": 3.0}),
    "error": lambda study, number: study.fail(number, "no"),
    "other error": lambda study, number: study.fail(number, "out of memory"),
}


@pytest.mark.parametrize("again", REPORTS)
@pytest.mark.parametrize("first", REPORTS)
def test_telling_the_same_twice_records_it_once_and_anything_else_is_refused(
    first: str, again: str, tmp_path: Path
) -> None:
    study = create(storage=tmp_path / "runs.db")
    study.ask()
    done = REPORTS[first](study, 0)
    length = len(events_of(study))
    for teller in (study, tw.load_study(tmp_path / "runs.db")):
        if first == again:
            assert REPORTS[again](teller, 0) == done
        else:
            with pytest.raises(TrialError, match="ends once, but trial 0 is already"):
                REPORTS[again](teller, 0)
    assert study.trials == [done]
    assert len(events_of(study)) == length


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
    for refused in (study.fail, study.requeue):
        with pytest.raises(TrialError, match="ends once, but trial 0 is already abandoned"):
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
    with pytest.raises(TrialError, match="trial 1 has no lease to renew"):
        study.beat(plain, 60)
    clock.now += 61.0
    again = tw.load_study(store).ask(lease=60)
    assert again.number == leased.number
    with pytest.raises(TrialError, match="another driver holds trial 0 by now"):
        study.beat(leased, 60)
    study.beat(again, 60)  # whoever has the trial may keep it
    study.tell(again, value=1.0)
    with pytest.raises(TrialError, match="trial 0 has no lease to renew: it is finished"):
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
        ({"value": 1.0, "cost": -1.0}, "0 ≤ cost ≤ 1e+300 must hold, but got -1.0"),
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
    with pytest.raises(OutcomeError, match=r"Tradeoff\(.*0.3.*\) needs a cost"):
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
