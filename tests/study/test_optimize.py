"""`optimize`: its limits, how it stops, and what failures do to it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tradewind as tw
from tests.studies import CONDITIONAL, create, quick, score
from tradewind.errors import NothingFinished
from tradewind.runners.serial import SerialRunner
from tradewind.types import State

# ---- optimize ----


def test_the_number_of_trials_is_that_of_the_call() -> None:
    study = create()
    study.optimize(score, n_trials=3)
    study.optimize(score, n_trials=2)
    assert len(study.trials) == 5


@pytest.mark.parametrize("n_trials", [3, 3.0, np.int64(3), np.float32(3)])
def test_any_whole_number_of_trials_will_do(n_trials: Any) -> None:
    study = create()
    study.optimize(score, n_trials=n_trials)
    assert len(study.trials) == 3


@pytest.mark.parametrize("limit", ["n_trials", "timeout", "max_cost"])
def test_a_limit_of_zero_starts_nothing(limit: str) -> None:
    study = create()
    study.optimize(score, **{limit: 0})
    assert study.trials == []


@pytest.mark.parametrize("limit", ["n_trials", "timeout", "max_cost"])
@pytest.mark.parametrize("given", [-1, math.nan, True, "3", np.int64(-1), 1j, [3]])
def test_a_limit_that_is_no_number_from_zero_upwards_is_refused(limit: str, given: Any) -> None:
    rule = "a whole number ≥ 0" if limit == "n_trials" else "a number (≥ 0|of seconds, or text.*)"
    with pytest.raises(ValueError, match=f"{limit} must be {rule}, but got"):
        create().optimize(score, **{limit: given})


@pytest.mark.parametrize("limit", ["timeout", "max_cost"])
def test_an_infinite_limit_is_none(limit: str) -> None:
    study = create()
    study.optimize(score, n_trials=2, **{limit: math.inf})
    assert len(study.trials) == 2
    with pytest.raises(ValueError, match="give n_trials, timeout, max_cost or stop"):
        study.optimize(score, **{limit: math.inf})


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"on_error": "shrug"}, ValueError, "on_error must be one of 'penalize', 'ignore', 'raise"),
        ({"max_retries": -1}, ValueError, "max_retries must be a whole number ≥ 0, but got -1"),
        ({"max_retries": 1.5}, ValueError, "max_retries must be a whole number ≥ 0, but got 1.5"),
        ({"lease": 0}, ValueError, "lease must be a number > 0, but got 0"),
        ({"lease": math.inf}, ValueError, "lease must be a number > 0, but got inf"),
        ({"trial_timeout": 0}, ValueError, "trial_timeout must be a number > 0, but got 0"),
        ({"trial_memory": "2h"}, ValueError, 'a number of bytes, or text such as "500MB"'),
        ({"trial_memory": -1}, ValueError, "trial_memory must be a number > 0, but got -1"),
        ({"runner": SerialRunner}, TypeError, "got the class: write SerialRunner()"),
        ({"runner": 4}, TypeError, "runner must be an object such as ProcessRunner(4)"),
        ({"runner": SerialRunner(), "n_workers": 2}, ValueError, "runner, or n_workers and gpus"),
        ({"runner": SerialRunner(), "gpus": 1}, ValueError, "a runner has its own workers"),
        ({"n_workers": 0}, ValueError, "n_workers must be a whole number ≥ 1, but got 0"),
    ],
)
def test_a_wrong_option_is_named_before_anything_starts(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    study = create()
    with pytest.raises(error) as raised:
        study.optimize(score, n_trials=1, **options)
    assert message in str(raised.value)
    assert study.trials == []


@pytest.mark.parametrize("show", [0, 1, False, True, None, np.False_])
def test_anything_true_or_false_says_whether_to_show_progress(show: Any) -> None:
    study = create()
    study.optimize(score, n_trials=1, show_progress=show)
    assert len(study.trials) == 1


@pytest.mark.parametrize("n_trials", [1.5, math.inf])
def test_a_number_of_trials_is_whole(n_trials: float) -> None:
    with pytest.raises(ValueError, match="n_trials must be a whole number ≥ 0, but got"):
        create().optimize(score, n_trials=n_trials)  # type: ignore[arg-type]


def test_a_search_needs_an_end() -> None:
    with pytest.raises(ValueError, match="give n_trials, timeout, max_cost or stop"):
        create().optimize(score)


def test_the_cost_of_this_call_is_limited_not_that_of_earlier_ones() -> None:
    study = create()
    for _ in range(2):
        study.optimize(lambda trial: {"value": 1.0, "cost": 2.0}, max_cost=3.0)
    assert len(study.trials) == 4


@pytest.mark.parametrize("objective", [None, 1.0, "score"])
def test_an_objective_is_a_function(objective: Any) -> None:
    with pytest.raises(TypeError, match="objective must be a function of a trial, but got"):
        create().optimize(objective, n_trials=1)


@pytest.mark.parametrize("catch", [[ValueError], None, ValueError(), (ValueError, 1), "ValueError"])
def test_only_exception_classes_can_be_caught(catch: Any) -> None:
    study = create()
    with pytest.raises(TypeError, match="catch must be an exception class or a tuple of them"):
        study.optimize(score, n_trials=1, catch=catch)
    assert study.trials == []


@pytest.mark.parametrize("callbacks", [print, [None], "abc", 1])
def test_callbacks_are_functions_in_a_list(callbacks: Any) -> None:
    study = create()
    with pytest.raises(TypeError, match="callbacks must be a list of functions of "):
        study.optimize(score, n_trials=1, callbacks=callbacks)
    assert study.trials == []


def test_callbacks_see_the_study_and_each_trial_that_is_done() -> None:
    seen: list[Any] = []
    study = create()

    def objective(trial: Any) -> float:
        if trial.number == 1:
            raise ValueError
        return 1.0

    study.optimize(
        objective,
        n_trials=2,
        callbacks=(c for c in [lambda s, t: seen.append((s is study, t.number, t.state))]),
    )
    assert seen == [(True, 0, State.FINISHED), (True, 1, State.FAILED)]


def test_a_callback_that_raises_ends_the_search_and_loses_nothing() -> None:
    def callback(study: tw.Study, trial: tw.Trial) -> None:
        raise RuntimeError("callback")

    study = create()
    with pytest.raises(RuntimeError, match="callback"):
        study.optimize(score, n_trials=5, callbacks=[callback])
    assert [t.state for t in study.trials] == [State.FINISHED]
    study.optimize(score, n_trials=1)
    assert len(study.trials) == 2


# ---- stopping ----


def test_an_objective_may_stop_the_search_and_its_trial_counts() -> None:
    study = create()

    def objective(trial: Any) -> float:
        if trial.number == 2:
            study.stop()
        return 1.0

    study.optimize(objective, n_trials=10)
    assert [t.state for t in study.trials] == [State.FINISHED] * 3


def test_a_callback_may_stop_the_search() -> None:
    study = create()
    study.optimize(score, n_trials=10, callbacks=[lambda s, t: s.stop()])
    assert len(study.trials) == 1


def test_a_stopped_study_can_go_on() -> None:
    study = create()
    study.optimize(score, n_trials=10, callbacks=[lambda s, t: s.stop()])
    study.optimize(score, n_trials=2)
    assert len(study.trials) == 3


def test_stopping_what_does_not_run_does_nothing() -> None:
    study = create()
    study.stop()
    study.optimize(score, n_trials=2)
    assert len(study.trials) == 2


def test_a_search_within_an_objective_does_not_undo_a_stop() -> None:
    study = create()

    def objective(trial: Any) -> float:
        study.stop()
        study.optimize(score, n_trials=2)
        return 1.0

    study.optimize(objective, n_trials=10)
    assert [t.state for t in study.trials] == [State.FINISHED] * 3


def test_an_objective_may_ask_for_trials_of_its_own() -> None:
    study = create()

    def objective(trial: Any) -> float:
        other = study.ask()
        study.tell(other, value=2.0)
        return 1.0

    study.optimize(objective, n_trials=2)
    assert [t.value for t in study.trials] == [1.0, 2.0, 1.0, 2.0]


def test_what_an_objective_tells_itself_counts_and_what_it_returns_comes_too_late() -> None:
    study = create()

    def objective(trial: Any) -> float:
        study.tell(trial, value=2.0)
        return 1.0

    study.optimize(objective, n_trials=2)
    assert [t.value for t in study.trials] == [2.0, 2.0]


# ---- failures ----


def failing(when: Callable[[Any], bool], error: BaseException) -> Callable[[Any], float]:
    def objective(trial: Any) -> float:
        if when(trial):
            raise error
        return 1.0

    return objective


def test_a_trial_that_raises_has_its_traceback_and_the_search_goes_on() -> None:
    study = create()
    study.optimize(failing(lambda t: t.number == 1, ValueError("too wide")), n_trials=3)
    assert [t.state.value for t in study.trials] == ["finished", "failed", "finished"]
    error = study.trials[1].error
    assert error is not None
    assert "Traceback" in error
    assert "in objective" in error
    assert "ValueError: too wide" in error


@pytest.mark.parametrize("answer", [math.nan, math.inf, None, "1.0", {"loss": 1.0}, object()])
def test_a_useless_answer_makes_a_failed_trial_and_the_search_goes_on(answer: Any) -> None:
    study = create()
    study.optimize(lambda trial: answer if trial.number == 0 else 1.0, n_trials=2)
    assert [t.state.value for t in study.trials] == ["failed", "finished"]
    assert "cannot be used" in (study.trials[0].error or "")


@pytest.mark.parametrize("error", [KeyboardInterrupt, asyncio.CancelledError])
def test_an_interrupt_is_recorded_and_raised_and_the_study_can_go_on(
    error: type[BaseException],
) -> None:
    study = create()
    with pytest.raises(error):
        study.optimize(failing(lambda t: t.number == 1, error()), n_trials=5)
    assert [t.state.value for t in study.trials] == ["finished", "failed"]
    assert error.__name__ in (study.trials[1].error or "")
    study.optimize(score, n_trials=2)
    assert len(study.trials) == 4


def test_with_nothing_to_catch_the_first_error_is_raised() -> None:
    study = create()
    with pytest.raises(ZeroDivisionError):
        study.optimize(lambda trial: 1 / 0, n_trials=5, catch=())
    assert [t.state for t in study.trials] == [State.FAILED]


def test_only_the_given_kind_is_caught() -> None:
    study = create()
    study.optimize(lambda trial: 1 / 0, n_trials=2, catch=ArithmeticError)
    with pytest.raises(ZeroDivisionError):
        study.optimize(lambda trial: 1 / 0, n_trials=2, catch=(KeyError, ValueError))
    assert len(study.trials) == 3


def test_when_all_trials_fail_the_last_traceback_is_shown() -> None:
    study = quick()
    study.optimize(lambda trial: [][trial.number], n_trials=6, give_up_after=None)
    for ask in (lambda: study.best, study.frontier, study.recommend):
        with pytest.raises(NothingFinished, match="no trial of this study has finished") as error:
            ask()
        assert "IndexError: list index out of range" in str(error.value)


def test_an_objective_that_forgets_to_return_learns_so() -> None:
    study = create()
    study.optimize(lambda trial: None, n_trials=1)
    with pytest.raises(NothingFinished, match="got None: does the function end with a return"):
        _ = study.best


def test_a_study_without_trials_says_so() -> None:
    with pytest.raises(NothingFinished, match=r"no trial of this study has finished$"):
        _ = create().best


def test_an_objective_may_do_what_it_likes_to_its_params() -> None:
    study = create()

    def objective(trial: Any) -> float:
        trial.params.clear()
        trial.params["x"] = math.nan
        return 1.0

    study.optimize(objective, n_trials=1)
    assert study.trials[0].params.keys() == {"x", "k"}


def test_the_training_size_of_a_trial_is_at_hand() -> None:
    study = create(CONDITIONAL)

    def objective(trial: Any) -> float:
        assert trial.train_size == trial.params["train_size"]
        return trial.train_size

    study.optimize(objective, n_trials=6)
    assert {t.train_size for t in study.trials} == {0.5, 1.0}
    assert all(t.value == t.train_size for t in study.trials)


def test_a_measured_cost_counts_the_time_of_the_objective() -> None:
    study = create(goal=tw.Tradeoff(alpha=0.3))
    study.optimize(lambda trial: 1.0, n_trials=2)
    assert all(t.cost is not None and t.cost >= 0.0 for t in study.trials)


def test_only_what_is_queued_is_run_if_that_is_asked_for() -> None:
    study = tw.create_study(tw.Space({"x": tw.Float(0, 1)}), seed=0)
    for x in (0.1, 0.2, 0.3):
        study.enqueue({"x": x})
    study.optimize(lambda trial: trial.params["x"], 2, only_queued=True)
    study.optimize(lambda trial: trial.params["x"], only_queued=True)
    study.optimize(lambda trial: trial.params["x"], 5, only_queued=True)
    assert [trial.params["x"] for trial in study.trials] == [0.1, 0.2, 0.3]


def test_a_limit_beyond_every_clock_is_no_limit() -> None:
    study = create()
    study.optimize(score, n_trials=3, max_cost=1e250, show_progress=False)
    assert all(trial.finished for trial in study.trials)
