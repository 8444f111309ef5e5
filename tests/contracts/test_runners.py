"""What every runner must do; a new one is one more line in RUNNERS."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from tradewind.runners.run import Failure, Objective, Run
from tradewind.runners.runner import Runner
from tradewind.runners.serial import SerialRunner
from tradewind.types import Origin, Outcome, State, Trial

RUNNERS: dict[str, Callable[[Objective], Runner]] = {
    "serial": SerialRunner,
}


@pytest.fixture(params=RUNNERS)
def make(request: pytest.FixtureRequest) -> Callable[[Objective], Runner]:
    return RUNNERS[request.param]


def trial(number: int) -> Trial:
    return Trial(
        number=number,
        params={"x": number / 10},
        state=State.RUNNING,
        origin=Origin.DESIGN,
        seed=1000 + number,
        train_size=0.5,
    )


def the_only_result(runner: Runner) -> Outcome | Failure:
    runner.submit(trial(1))
    ((done, result),) = runner.wait()
    assert done == trial(1)
    runner.close()
    return result


def square(run: Run) -> float:
    return run.params["x"] ** 2  # type: ignore[operator]


def test_a_new_runner_is_free(make: Any) -> None:
    assert make(square).free >= 1


def test_every_trial_comes_back_once_with_its_own_outcome(make: Any) -> None:
    runner = make(square)
    seen: dict[int, float] = {}
    running = 0
    for number in range(6):
        runner.submit(trial(number))
        running += 1
        while runner.free < 1:
            for done, result in runner.wait():
                assert done.number not in seen
                seen[done.number] = result.value
                running -= 1
    while running:
        for done, result in runner.wait():
            seen[done.number] = result.value
            running -= 1
    runner.close()
    assert seen == {n: (n / 10) ** 2 for n in range(6)}


def test_a_submitted_trial_takes_a_place_until_it_is_done(make: Any) -> None:
    runner = make(square)
    free = runner.free
    runner.submit(trial(0))
    assert runner.free == free - 1
    runner.wait()
    assert runner.free == free
    runner.close()


def test_nothing_runs_before_it_is_submitted(make: Any) -> None:
    called: list[int] = []
    make(lambda run: called.append(run.number)).close()
    assert called == []


def test_the_objective_sees_its_trial(make: Any) -> None:
    def objective(run: Run) -> float:
        assert run.number == 1
        assert run.seed == 1001
        assert run.train_size == 0.5
        assert run.params == {"x": 0.1}
        return 1.0

    assert isinstance(the_only_result(make(objective)), Outcome)


def test_what_the_objective_does_to_its_params_leaves_the_trial_alone(make: Any) -> None:
    def objective(run: Run) -> float:
        run.params.clear()
        return 1.0

    assert isinstance(the_only_result(make(objective)), Outcome)


def test_the_cost_is_measured(make: Any) -> None:
    result = the_only_result(make(square))
    assert isinstance(result, Outcome)
    assert result.cost is not None
    assert result.cost >= 0.0


def test_a_returned_cost_is_the_cost(make: Any) -> None:
    result = the_only_result(make(lambda run: {"value": 1.0, "cost": 30.0}))
    assert result == Outcome(1.0, 30.0)


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_exception_comes_back_as_a_failure(make: Any, kind: type[BaseException]) -> None:
    def objective(run: Run) -> float:
        raise kind("as scripted")

    result = the_only_result(make(objective))
    assert isinstance(result, Failure)
    assert isinstance(result.raised, kind)
    assert "as scripted" in result.error
    assert "in objective" in result.error


@pytest.mark.parametrize("answer", [math.nan, math.inf, None, "0.5"])
def test_an_unusable_answer_comes_back_as_a_failure(make: Any, answer: Any) -> None:
    result = the_only_result(make(lambda run: answer))
    assert isinstance(result, Failure)
    assert result.raised is None


def test_a_failure_does_not_stop_the_runner(make: Any) -> None:
    def objective(run: Run) -> float:
        return 1 / run.number

    runner = make(objective)
    results = []
    for number in (0, 1):
        runner.submit(trial(number))
        results += [result for _, result in runner.wait()]
    runner.close()
    assert [type(r) for r in results] == [Failure, Outcome]


def test_closing_twice_does_no_harm(make: Any) -> None:
    runner = make(square)
    runner.submit(trial(0))
    runner.close()
    runner.close()
