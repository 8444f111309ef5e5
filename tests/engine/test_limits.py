"""Limits of time and money, with workers on a virtual clock: they hold, and are made use of."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tradewind as tw
from tests.studies import create, events_of, quick, states
from tradewind.log.events import Proposed, Started
from tradewind.runners.runner import Done, Lost, TrialLimits
from tradewind.runners.serial import SerialRunner
from tradewind.runners.simulated import SimulatedRunner, SimulatedWorkers
from tradewind.strategies import Bayes, Design, RandomSearch
from tradewind.types import Proposal, State, Trial

ENDLESS = 20_000  # a search that waits so often will never end


class Patient(SimulatedRunner):
    """Simulated workers that notice a search which goes round and round."""

    def open(self, objective: Any, limits: TrialLimits) -> SimulatedWorkers:
        workers = super().open(objective, limits)
        wait, waits = workers.wait, iter(range(ENDLESS))

        def counted(timeout: float | None = None) -> list[Done]:
            assert next(waits, None) is not None, "the search does not end"
            return wait(timeout)

        workers.wait = counted  # type: ignore[method-assign]
        return workers

    @property
    def clock(self) -> float:
        assert self.workers is not None
        return self.workers.now()


def constant(seconds: float) -> Callable[[Trial], float]:
    return lambda trial: seconds


def lognormal(seed: int, spread: float = 1.0) -> Callable[[Trial], float]:
    """How long trials take: with mean 1, and as their number says."""
    return lambda t: float(np.random.default_rng([seed, t.number]).lognormal(0.0, spread))


def learned(
    duration: Callable[[Trial], float], rate: float = 1.0, n: int = 3, **options: Any
) -> tuple[tw.Study, Callable[[Any], dict[str, float]]]:
    """A study of trials that cost `rate` for each second, and n of which are known; and its
    objective."""

    def objective(run: Any) -> dict[str, float]:
        return {"value": run.params["x"], "cost": rate * duration(run)}

    study = create(**options)
    study.optimize(objective, n_trials=n, runner=Patient(1, duration=duration))
    return study, objective


def spent(study: tw.Study, since: int) -> float:
    return sum(t.cost or 0.0 for t in study.trials[since:])


def started(study: tw.Study, since: int) -> set[int]:
    return {e.number for e in events_of(study) if isinstance(e, Started)} - set(range(since))


# ---- time ----


def test_what_runs_when_the_time_is_up_is_abandoned_and_nothing_starts_after_it() -> None:
    seconds = lambda t: 30.0 if t.number in (4, 5) else 4.0  # noqa: E731
    study, objective = learned(seconds)
    runner = Patient(2, duration=seconds)
    study.optimize(objective, timeout=10.0, runner=runner)
    assert states(study)[3:6] == ["finished", "abandoned", "abandoned"]
    assert started(study, 3) == {3, 4, 5}
    assert runner.clock == 10.0
    assert study.trials[4].error == "stopped: it did not finish in the time that was left"
    assert [t.cost for t in study.trials[3:6]] == [4.0, 10.0, 6.0]
    assert State.RUNNING not in {t.state for t in study.trials}


@pytest.mark.parametrize("n_workers", [1, 2, 8])
def test_time_that_is_left_is_used(n_workers: int) -> None:
    study, objective = learned(lognormal(0))
    runner = Patient(n_workers, duration=lognormal(0))
    study.optimize(objective, timeout=100.0, runner=runner)
    assert runner.workers is not None
    assert runner.clock <= 100.0
    assert runner.workers.utilization * runner.clock > 90.0  # of 100 seconds of each worker


def test_the_time_counts_when_workers_are_ready_and_the_first_trial_is_proposed() -> None:
    class SlowToStart(Patient):
        def open(self, objective: Any, limits: TrialLimits) -> SimulatedWorkers:
            workers = super().open(objective, limits)
            workers._advance(100.0)
            return workers

    class SlowAtFirst(RandomSearch):
        def propose(self, *args: Any, **options: Any) -> Proposal:
            if not study.trials:
                assert runner.workers is not None
                runner.workers._advance(120.0)
            return super().propose(*args, **options)

    study = create(strategy=SlowAtFirst())
    runner = SlowToStart(2, duration=constant(4.0))
    study.optimize(lambda run: 1.0, timeout=10.0, runner=runner)
    assert states(study)[:2] == ["finished", "finished"]
    assert runner.clock == 128.0  # a third would take too long


def test_a_trial_that_is_expected_to_take_longer_than_is_left_is_not_started() -> None:
    study, objective = learned(constant(4.0))
    runner = Patient(1, duration=constant(4.0))
    study.optimize(objective, timeout=10.0, runner=runner)
    assert started(study, 3) == {3, 4}
    assert states(study)[3:] == ["finished", "finished", "abandoned"]
    assert study.trials[-1].error == "it would cost about 4, and 2 is left"
    assert runner.clock == 8.0


def test_where_nobody_knows_what_a_second_costs_trials_start_until_the_time_is_up() -> None:
    study, runner = create(), Patient(1, duration=lambda t: 4.0)
    study.optimize(lambda t: {"value": 1.0, "cost": 10.0**t.number}, timeout=10.0, runner=runner)
    assert states(study) == ["finished", "finished", "abandoned"]
    assert study.trials[2].cost is None  # what its two seconds cost, nobody knows
    assert runner.clock == 10.0


def test_a_serial_trial_is_interrupted_when_the_time_is_up() -> None:
    study = create()

    def objective(run: Any) -> float:
        while run.number == 1:
            time.sleep(0.001)
        return 1.0

    study.optimize(objective, timeout=0.2)
    assert states(study)[:2] == ["finished", "abandoned"]
    assert len(study.trials) == 2


def test_a_serial_trial_is_interrupted_when_the_money_is_up() -> None:
    study = create()

    def objective(run: Any) -> float:
        time.sleep(0.02)
        while run.number == 4:
            time.sleep(0.001)
        return 1.0

    study.optimize(objective, n_trials=4)  # a second costs a second
    study.optimize(objective, max_cost=0.5)
    assert (study.trials[4].state, len(study.trials)) == (State.ABANDONED, 5)


# ---- money ----


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    n_workers=st.integers(1, 8),
    rate=st.sampled_from([1.0, 1 / 3, 0.37, 12.5, 1e-6]),
    limit=st.floats(0.1, 40.0),
    timeout=st.none() | st.floats(0.1, 40.0),
)
def test_where_cost_is_time_a_search_spends_no_more_than_it_may(
    seed: int, n_workers: int, rate: float, limit: float, timeout: float | None
) -> None:
    study, objective = learned(lognormal(seed), rate)
    runner = Patient(n_workers, duration=lognormal(seed))
    study.optimize(objective, max_cost=limit * rate, timeout=timeout, runner=runner)
    assert spent(study, 3) <= limit * rate * (1.0 + 1e-9)
    assert timeout is None or runner.clock <= timeout
    assert {t.state for t in study.trials} <= {State.FINISHED, State.ABANDONED, State.WAITING}


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), n_workers=st.integers(1, 8))
def test_money_that_is_left_is_spent(seed: int, n_workers: int) -> None:
    study, objective = learned(lognormal(seed, spread=0.3))
    runner = Patient(n_workers, duration=lognormal(seed, spread=0.3))
    study.optimize(objective, max_cost=40.0, runner=runner)
    assert 36.0 <= spent(study, 3) <= 40.0 * (1.0 + 1e-9)


@pytest.mark.parametrize("n_workers", [1, 2, 4])
def test_nothing_is_started_that_is_expected_not_to_fit(n_workers: int) -> None:
    study, objective = learned(constant(3.0))
    study.optimize(objective, max_cost=10.5, runner=Patient(n_workers, duration=constant(3.0)))
    assert started(study, 3) == {3, 4, 5}
    assert [t.finished for t in study.trials[3:6]] == [True] * 3
    assert all(t.state is not State.RUNNING for t in study.trials)


def test_what_is_set_aside_for_a_trial_that_costs_less_is_used() -> None:
    seconds = lambda t: 3.0 if t.number < 4 else 1.0  # noqa: E731
    study, objective = learned(seconds)
    study.optimize(objective, max_cost=7.5, runner=Patient(2, duration=seconds))
    # 3 + 3 are set aside at first, and 1.5 is not enough for another; of the second 1 is used
    assert len(started(study, 3)) > 2
    assert spent(study, 3) <= 7.5


def test_a_search_with_less_money_than_any_trial_costs_starts_nothing() -> None:
    study, objective = learned(constant(3.0))
    study.optimize(objective, max_cost=1.0, runner=Patient(4, duration=constant(3.0)))
    assert started(study, 3) == set()


def test_what_runs_when_the_money_is_up_is_abandoned_with_what_it_cost() -> None:
    seconds = lambda t: 1.0 if t.number < 3 else 1000.0  # noqa: E731
    study, objective = learned(seconds, rate=2.0)
    study.optimize(objective, max_cost=20.0, runner=Patient(2, duration=seconds))
    stopped = study.trials[3:5]
    assert [t.state for t in stopped] == [State.ABANDONED] * 2
    assert [t.error for t in stopped] == ["stopped: the limit of max_cost=20"] * 2
    assert [t.cost for t in stopped] == pytest.approx([10.0, 10.0])


def test_where_cost_is_no_time_nothing_is_stopped_for_money() -> None:
    study, objective = create(), lambda t: {"value": 1.0, "cost": 5.0}
    runner = Patient(2, duration=lambda t: 1.0 + 99.0 * (t.number % 2))
    study.optimize(objective, n_trials=4, runner=runner)
    study.optimize(objective, max_cost=20.0, runner=runner)
    assert spent(study, 4) == 20.0
    assert states(study)[4:8] == ["finished"] * 4
    assert all("stopped" not in (t.error or "") for t in study.trials)


def test_the_cost_of_a_failed_trial_is_in_the_unit_of_the_others() -> None:
    study, objective = learned(constant(4.0), rate=0.5)
    runner = Patient(1, duration=constant(4.0), failure=lambda t: (3.0, "boom"))
    study.optimize(objective, n_trials=1, max_cost=100.0, runner=runner)
    assert (study.trials[3].state, study.trials[3].cost) == (State.FAILED, 1.5)


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="nothing interrupts a trial there")
def test_an_outcome_that_came_too_late_costs_its_seconds_and_not_what_it_says() -> None:
    """The seconds of a failure are priced; a cost is not priced once more."""

    def objective(run: Any) -> dict[str, float]:
        began = time.perf_counter()
        if run.number < 4:
            time.sleep(0.05)
            return {"value": 1.0, "cost": 10.0 * (time.perf_counter() - began)}
        with contextlib.suppress(BaseException):
            time.sleep(600.0)
        return {"value": 1.0, "cost": 1e6}

    study = create()
    study.optimize(objective, n_trials=5, trial_timeout=0.2, max_cost=1e9, runner=SerialRunner())
    *others, late = study.trials
    assert late.state is State.FAILED
    assert late.usage is not None
    rates = [t.cost / t.usage.wall for t in others if t.cost is not None and t.usage is not None]
    assert late.cost == pytest.approx(late.usage.wall * np.median(rates))


def test_a_trial_that_was_lost_leaves_what_was_set_aside_for_it() -> None:
    study, objective = learned(constant(6.0))
    runner = Patient(
        2,
        duration=constant(6.0),
        failure=lambda t: (1.0, Lost("gone")) if not t.retries else None,
    )
    study.optimize(objective, max_cost=10.0, runner=runner)
    assert [t.retries for t in study.trials if t.finished] == [0, 0, 0, 1]


def test_what_is_near_a_limit_is_proposed_to_stay_within_it() -> None:
    study = quick()

    def objective(run: Any) -> dict[str, float]:
        return {"value": run.params["x"], "cost": 1.0 + run.params["k"]}

    runner = Patient(2)
    study.optimize(objective, max_cost=120.0, runner=runner)
    tied = [e for e in events_of(study) if isinstance(e, Proposed) and e.max_cost is not None]
    assert tied
    assert all(e.number > 6 for e in tied)  # far from the limit, nobody asks
    assert spent(study, 0) <= 120.0
    ran = started(study, 0)
    for event in tied:
        if event.number in ran:
            assert event.expected_cost is not None
            assert event.max_cost is not None
            # what was set aside for others may have been a little more than they took
            assert event.expected_cost <= 1.1 * event.max_cost


def test_a_trial_that_was_proposed_ahead_is_judged_when_it_would_start() -> None:
    """By then, those that ran may have cost more than was expected of them."""
    seconds = lambda t: 3.0 if t.number < 3 else 9.0  # noqa: E731
    study, objective = learned(seconds)
    study.optimize(objective, max_cost=20.0, runner=Patient(2, duration=seconds))
    assert spent(study, 3) <= 20.0 * (1.0 + 1e-9)
    assert "waiting" not in states(study) or study.trials[-1].state is State.WAITING


# ---- several searches ----


def test_each_search_has_its_own_limits_and_learns_from_those_before() -> None:
    study, objective = learned(constant(3.0), n=2)
    for _ in range(3):
        study.optimize(objective, max_cost=7.0, runner=Patient(1, duration=constant(3.0)))
    assert [t.finished for t in study.trials].count(True) == 2 + 3 * 2


@pytest.mark.parametrize("strategy", [Bayes(design=Design(4)), None], ids=["model", "auto"])
def test_a_search_with_a_model_of_its_costs_holds_its_limit_too(strategy: Any) -> None:
    study = create(strategy=strategy, goal=tw.Tradeoff(alpha=0.2))

    def objective(run: Any) -> dict[str, float]:
        return {"value": run.params["x"], "cost": 0.5 + 3.0 * run.params["x"] * run.params["k"]}

    study.optimize(objective, n_trials=6, runner=Patient(2))
    since = len(study.trials)
    study.optimize(objective, max_cost=60.0, timeout=25.0, runner=Patient(3))
    assert 40.0 < spent(study, since) <= 60.0 * (1.0 + 1e-9)
    assert tw.replay(study).identical
