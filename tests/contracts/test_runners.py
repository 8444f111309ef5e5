"""What every runner must do; a new one is one more line in RUNNERS."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.runners.clusters import connected_ray, dask_client
from tradewind.runners.dask import DaskRunner
from tradewind.runners.processes import ProcessRunner
from tradewind.runners.ray import RayRunner
from tradewind.runners.run import Objective, Run
from tradewind.runners.runner import Done, Failure, Runner, Stopped, TrialLimits, Workers
from tradewind.runners.serial import SerialRunner
from tradewind.runners.simulated import SimulatedRunner
from tradewind.types import Origin, Outcome, State, Trial

RUNNERS: dict[str, Callable[[], Runner]] = {
    "serial": SerialRunner,
    "simulated": lambda: SimulatedRunner(2, duration=lambda trial: 1.0),
    "processes": lambda: ProcessRunner(2, grace=0.5),
    "dask": lambda: DaskRunner(dask_client()),
    "ray": lambda: connected_ray() and RayRunner(),
}
CLUSTERS = {"dask", "ray"}  # slow to start
ALL = [pytest.param(name, marks=pytest.mark.slow) if name in CLUSTERS else name for name in RUNNERS]
REAL = [one for one in ALL if one != "simulated"]  # trials take the time that their objectives take

Open = Callable[..., Workers]

pytestmark = pytest.mark.filterwarnings("ignore:.* workers share:UserWarning")


@pytest.fixture(params=ALL)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def opened(name: str) -> Iterator[Open]:
    """Opens the runner for an objective; what is open at the end of the test is closed."""
    workers: list[Workers] = []

    def opening(objective: Objective, **limits: Any) -> Workers:
        workers.append(RUNNERS[name]().open(objective, TrialLimits(**limits)))
        return workers[-1]

    yield opening
    for some in workers:
        some.close()


def trial(number: int) -> Trial:
    return Trial(
        number=number,
        params={"x": number / 10},
        state=State.RUNNING,
        origin=Origin.DESIGN,
        seed=1000 + number,
        train_size=0.5,
    )


def the_only(workers: Workers, **submitted: Any) -> Done:
    workers.submit(trial(1), **submitted)
    (done,) = workers.wait()
    assert done.trial == trial(1)
    return done


def square(run: Run) -> float:
    return run.params["x"] ** 2  # type: ignore[operator]


def endless(run: Run) -> float:
    for _ in range(6000):
        time.sleep(0.1)
    return 1.0


def test_new_workers_are_all_free(opened: Open) -> None:
    workers = opened(square)
    assert workers.free == workers.slots >= 1


def test_every_trial_comes_back_once_with_its_own_outcome(opened: Open) -> None:
    workers = opened(square)
    waiting, seen = list(range(6)), []
    while waiting or len(seen) < 6:
        while waiting and workers.free:
            workers.submit(trial(waiting.pop(0)))
        seen += workers.wait()
    assert sorted(done.trial.number for done in seen) == list(range(6))
    for done in seen:
        assert isinstance(done.result, Outcome)
        assert done.result.value == (done.trial.number / 10) ** 2


def test_a_submitted_trial_takes_a_slot_until_it_is_done(opened: Open) -> None:
    workers = opened(square)
    workers.submit(trial(0))
    assert workers.free == workers.slots - 1
    assert workers.wait()
    assert workers.free == workers.slots


def test_waiting_for_nothing_comes_back_at_once(opened: Open) -> None:
    assert opened(square).wait() == []


def test_nothing_runs_before_it_is_submitted(opened: Open, tmp_path: Path) -> None:
    opened(lambda run: (tmp_path / "ran").write_text("yes")).close()
    assert not (tmp_path / "ran").exists()


def test_the_clock_does_not_go_back(opened: Open) -> None:
    workers = opened(square)
    before = workers.now()
    the_only(workers)
    assert workers.now() >= before


def test_the_objective_sees_its_trial(opened: Open) -> None:
    def objective(run: Run) -> float:
        assert run.number == 1
        assert run.seed == 1001
        assert run.train_size == 0.5
        assert run.params == {"x": 0.1}
        assert run.device == "cpu"
        return 1.0

    assert isinstance(the_only(opened(objective)).result, Outcome)


def test_what_the_objective_does_to_its_params_leaves_the_trial_alone(opened: Open) -> None:
    def objective(run: Run) -> float:
        run.params.clear()
        return 1.0

    assert isinstance(the_only(opened(objective)).result, Outcome)


def test_the_cost_is_measured(opened: Open) -> None:
    result = the_only(opened(square)).result
    assert isinstance(result, Outcome)
    assert result.cost is not None
    assert result.cost >= 0.0


def test_a_returned_cost_is_the_cost(opened: Open) -> None:
    done = the_only(opened(lambda run: {"value": 1.0, "cost": 30.0}))
    assert done.result == Outcome(1.0, 30.0)


def test_what_an_evaluation_took_is_reported(opened: Open) -> None:
    usage = the_only(opened(square)).usage
    assert usage is not None
    assert usage.wall >= 0.0
    assert usage.concurrency == pytest.approx(1.0)
    assert usage.device == "cpu"


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_exception_comes_back_as_a_failure(opened: Open, kind: type[BaseException]) -> None:
    def objective(run: Run) -> float:
        raise kind("as scripted")

    result = the_only(opened(objective)).result
    assert isinstance(result, Failure)
    assert isinstance(result.raised, kind)
    assert "as scripted" in result.error
    assert "in objective" in result.error


def test_an_unusable_answer_comes_back_as_a_failure(opened: Open) -> None:
    answers = [math.nan, math.inf, None, "0.5"]
    workers = opened(lambda run: answers[run.number])
    for number in range(4):
        workers.submit(trial(number))
        (done,) = workers.wait()
        assert isinstance(done.result, Failure)
        assert done.result.raised is None


def test_a_failure_does_not_stop_the_workers(opened: Open) -> None:
    workers = opened(lambda run: 1 / run.number)
    results = []
    for number in (0, 1):
        workers.submit(trial(number))
        results += [done.result for done in workers.wait()]
    assert [type(result) for result in results] == [Failure, Outcome]


@pytest.mark.parametrize("name", REAL)
def test_a_trial_can_be_stopped(opened: Open) -> None:
    workers = opened(endless)
    workers.submit(trial(1))
    workers.stop([0, 1, 2], "as scripted")
    workers.stop([1], "again")
    (done,) = workers.wait()
    assert done.result == Stopped("as scripted")
    assert workers.free == workers.slots


@pytest.mark.parametrize("name", REAL)
def test_a_trial_that_has_no_time_left_is_stopped(opened: Open) -> None:
    assert isinstance(the_only(opened(endless), within=0.3).result, Stopped)


@pytest.mark.parametrize("name", REAL)
def test_a_trial_that_takes_too_long_has_failed(opened: Open) -> None:
    result = the_only(opened(endless, timeout=0.3)).result
    assert isinstance(result, Failure)
    assert "0.3 seconds" in result.error
    assert result.seconds is not None
    assert result.seconds >= 0.3


def test_stopping_what_does_not_run_does_nothing(opened: Open) -> None:
    workers = opened(square)
    workers.stop([0, 1], "as scripted")
    assert workers.wait() == []
    assert isinstance(the_only(workers).result, Outcome)


def test_closing_twice_does_no_harm(opened: Open) -> None:
    workers = opened(square)
    workers.submit(trial(0))
    workers.close()
    workers.close()
