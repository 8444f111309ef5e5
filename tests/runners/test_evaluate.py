"""What an objective may return, raise and spend, and what becomes of it ."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tradewind.errors import OutcomeError
from tradewind.runners.evaluate import evaluate
from tradewind.runners.outcomes import read_outcome
from tradewind.runners.run import Run
from tradewind.runners.runner import Failure
from tradewind.types import Origin, Outcome, State, Trial

TRIAL = Trial(
    number=3, params={"x": 0.5}, state=State.RUNNING, origin=Origin.DESIGN, seed=7, train_size=0.4
)


class Clock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("time.perf_counter", clock)
    return clock


def finished(objective: Any) -> Outcome:
    result = evaluate(objective, TRIAL)[0]
    assert isinstance(result, Outcome), result
    return result


def failed(objective: Any) -> Failure:
    result = evaluate(objective, TRIAL)[0]
    assert isinstance(result, Failure), result
    return result


class Tensor:
    """As PyTorch's: one element converts, several raise a `RuntimeError`."""

    def __init__(self, *values: float) -> None:
        self.values = values

    def __repr__(self) -> str:
        return f"Tensor{self.values}"

    def item(self) -> float:
        if len(self.values) != 1:
            raise RuntimeError("a Tensor with several elements cannot be converted to Scalar")
        return self.values[0]


class Hostile:
    """An object that fails whatever is done with it."""

    def __float__(self) -> float:
        raise ZeroDivisionError("no number for you")

    def __repr__(self) -> str:
        raise ZeroDivisionError("no text for you")


# ---- values ----


@pytest.mark.parametrize(
    "answer",
    [
        0.5,
        np.float32(0.5),
        np.float64(0.5),
        np.array(0.5),
        np.array([0.5]),
        np.array([[0.5]]),
        Tensor(0.5),
        Decimal("0.5"),
        Fraction(1, 2),
        {"value": 0.5},
        {"value": np.array([0.5])},
        {"value": 0.5, "cost": None, "folds": None},
    ],
    ids=repr,
)
def test_whatever_is_one_number_is_a_value(answer: Any) -> None:
    value = finished(lambda run: answer).value
    assert value == 0.5
    assert type(value) is float


@pytest.mark.parametrize("answer", [3, -3, True, np.int8(3), 10**300])
def test_whole_numbers_are_values(answer: Any) -> None:
    assert finished(lambda run: answer).value == float(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "0.5",
        b"0.5",
        np.array("0.5"),
        math.nan,
        math.inf,
        -math.inf,
        np.float32("nan"),
        np.array([0.5, 0.6]),
        np.array([]),
        [0.5],
        (0.5, 12.0),
        Tensor(0.5, 0.6),
        0.5j,
        np.complex128(0.5),
        10**400,
        object(),
        lambda: 0.5,
        Trial,
    ],
    ids=lambda a: type(a).__name__,
)
def test_what_is_not_one_finite_number_makes_a_failed_trial(answer: Any) -> None:
    failure = failed(lambda run: answer)
    assert "value must be a finite number, but got" in failure.error
    assert failure.raised is None


def test_a_generator_objective_makes_a_failed_trial() -> None:
    def objective(run: Run) -> Any:
        yield 0.5

    assert "generator" in failed(objective).error


def test_the_message_for_a_forgotten_return_says_so() -> None:
    assert "got None: does the function end with a return?" in failed(lambda run: None).error


@pytest.mark.parametrize("answer", [10**5000, Hostile()], ids=["huge", "hostile"])
def test_an_answer_that_cannot_even_be_printed_makes_a_failed_trial(answer: Any) -> None:
    assert failed(lambda run: answer).raised is None


def test_a_long_answer_is_shortened_in_the_message() -> None:
    assert len(failed(lambda run: "x" * 10**6).error) < 400


def test_an_answer_that_raises_while_it_is_read_makes_a_failed_trial_with_its_traceback() -> None:
    failure = failed(lambda run: {"folds": (1 / n for n in (1, 0))})
    assert "ZeroDivisionError" in failure.error
    assert failure.raised is None


# ---- mappings ----


def test_folds_give_their_mean_as_the_value() -> None:
    result = finished(lambda run: {"folds": np.array([0.5, 0.75, 1.0])})
    assert result.value == 0.75
    assert result.folds == (0.5, 0.75, 1.0)


def test_folds_without_end_fail_their_trial() -> None:
    failure = failed(lambda run: {"folds": itertools.repeat(1.0)})
    assert "up to 10000 folds" in failure.error


def test_a_value_beside_folds_is_kept() -> None:
    assert finished(lambda run: {"value": 0.6, "folds": [0.5, 1.0]}).value == 0.6


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({}, "an outcome needs a value or folds, but got {}"),
        ({"cost": 1.0}, "an outcome needs a value or folds, but got {'cost': 1.0}"),
        ({"folds": []}, "an outcome needs a value or folds"),
        ({"vaule": 0.5}, "an outcome needs a value or folds, but got {'vaule': 0.5}"),
        (
            {"value": 1.0, "costs": 3.2},
            'costs must be a mapping such as {"money": 3.2}, but got 3.2',
        ),
        ({"folds": [0.5, math.nan]}, "every fold must be a finite number, but got nan"),
        ({"folds": ["a"]}, "every fold must be a finite number, but got 'a'"),
        ({"folds": 0.5}, "folds must be a list of numbers, but got 0.5"),
        ({"folds": [1e308, 1e308]}, "the sum of folds must be finite"),
        ({"value": math.nan, "folds": [1.0]}, "value must be a finite number, but got nan"),
        ({"value": 1.0, "cost": -1}, "0 ≤ cost ≤ 1e+300 must hold, but got -1"),
        ({"value": 1.0, "cost": math.nan}, "cost must be a finite number, but got nan"),
        ({"value": 1.0, "cost": math.inf}, "cost must be a finite number, but got inf"),
        ({"value": 1.0, "cost": "3"}, "cost must be a finite number, but got '3'"),
        ({"value": 1.0, "cost": [1, 2]}, r"cost must be a finite number, but got [1, 2]"),
    ],
)
def test_a_mapping_that_is_no_outcome_names_the_rule_and_the_value(
    answer: Any, message: str
) -> None:
    with pytest.raises(OutcomeError) as error:
        read_outcome(answer, cost_name="wall")
    assert message in str(error.value)
    assert message in failed(lambda run: answer).error


# ---- exceptions ----


def test_an_exception_makes_a_failure_with_its_traceback() -> None:
    def objective(run: Run) -> float:
        raise KeyError("no such column")

    failure = failed(objective)
    assert isinstance(failure.raised, KeyError)
    assert "in objective" in failure.error
    assert "KeyError: 'no such column'" in failure.error


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError])
def test_even_an_interrupt_is_handed_back(kind: type[BaseException]) -> None:
    def objective(run: Run) -> float:
        raise kind

    assert isinstance(failed(objective).raised, kind)


def test_endless_recursion_is_an_ordinary_failure() -> None:
    def objective(run: Run) -> float:
        return objective(run)

    assert isinstance(failed(objective).raised, RecursionError)


# ---- cost ----


def test_the_cost_is_the_time_of_the_whole_call(clock: Clock) -> None:
    def objective(run: Run) -> float:
        clock.now += 5.0
        return 0.5

    assert finished(objective).cost == 5.0


def test_with_a_timer_the_cost_is_the_time_inside(clock: Clock) -> None:
    def objective(run: Run) -> float:
        clock.now += 5.0
        with run.timer():
            clock.now += 2.0
        clock.now += 5.0
        return 0.5

    assert finished(objective).cost == 2.0


def test_several_timers_add_up(clock: Clock) -> None:
    def objective(run: Run) -> float:
        for seconds in (1.0, 2.0, 4.0):
            with run.timer():
                clock.now += seconds
            clock.now += 100.0
        return 0.5

    assert finished(objective).cost == 7.0


def test_a_cost_that_the_objective_returns_comes_before_any_clock(clock: Clock) -> None:
    def objective(run: Run) -> dict[str, float]:
        with run.timer():
            clock.now += 2.0
        return {"value": 0.5, "cost": 30.0}

    assert finished(objective).cost == 30.0


def test_a_returned_cost_of_zero_is_a_cost(clock: Clock) -> None:
    def objective(run: Run) -> dict[str, float]:
        clock.now += 2.0
        return {"value": 0.5, "cost": 0}

    assert finished(objective).cost == 0.0


def test_a_failure_knows_the_time_it_took(clock: Clock) -> None:
    def objective(run: Run) -> float:
        clock.now += 3.0
        raise ValueError

    assert failed(objective).seconds == 3.0


def test_a_failure_took_the_whole_call_whatever_a_timer_saw(clock: Clock) -> None:
    def objective(run: Run) -> float:
        clock.now += 100.0
        with run.timer():
            clock.now += 3.0
            raise ValueError

    assert failed(objective).seconds == 103.0


def test_an_unusable_answer_took_the_whole_call_whatever_a_timer_saw(clock: Clock) -> None:
    def objective(run: Run) -> float:
        clock.now += 100.0
        with run.timer():
            clock.now += 3.0
        return math.nan

    assert failed(objective).seconds == 103.0


# ---- what the objective sees ----


def test_a_run_shows_its_trial() -> None:
    seen = SimpleNamespace()

    def objective(run: Run) -> float:
        seen.run = run
        return 0.5

    finished(objective)
    run = seen.run
    assert (run.number, run.seed, run.train_size, run.params) == (3, 7, 0.4, {"x": 0.5})
    assert repr(run) == "Run(number=3, params={'x': 0.5})"


def test_an_objective_may_take_its_params_apart() -> None:
    def objective(run: Run) -> float:
        run.params["y"] = 1.0
        return float(run.params.pop("x"))

    assert finished(objective).value == 0.5
    assert TRIAL.params == {"x": 0.5}


def test_a_told_outcome_without_a_cost_has_none() -> None:
    assert read_outcome({"value": 1.0}, cost_name="wall") == Outcome(1.0, None, ())


def test_a_timer_inside_another_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter(range(100))
    monkeypatch.setattr("time.perf_counter", lambda: float(next(ticks)))

    def objective(run: Run) -> float:
        with run.timer(), run.timer():
            return 0.5

    done = evaluate(objective, TRIAL)[0]
    assert done.cost == 2.0  # two readings by the inner timer, within those of the outer one


def test_an_inactive_parameter_is_named_with_those_that_are_active() -> None:
    failure = evaluate(lambda run: run.params["degree"], TRIAL)[0]
    assert isinstance(failure, Failure)
    assert "there is no parameter 'degree': active in this trial are" in failure.error
