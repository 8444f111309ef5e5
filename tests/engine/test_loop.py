"""The loop: it keeps the workers busy and records everything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tradewind as tw
from tests.engine.loops import good, kinds, loop, raising
from tests.studies import ScriptedWorkers, check_whole, create, drive
from tradewind.engine.propose import Proposer
from tradewind.goals import Goal
from tradewind.log.events import Abandoned, Failed, Finished, Proposed, Requeued, Started
from tradewind.log.memory import MemoryLog
from tradewind.log.state import StudyState
from tradewind.runners.runner import Failure, Lost, Result, Stopped
from tradewind.runners.simulated import SimulatedRunner
from tradewind.strategies import Bayes, Design
from tradewind.types import Origin, Outcome, State, Trial

# ---- how many run ----


def test_as_many_trials_run_at_once_as_the_workers_have_room_for() -> None:
    workers = ScriptedWorkers(3, good)
    running = []

    def answer(trial: Trial) -> Result:
        running.append(sum(t.state is State.RUNNING for t in session.trials()))
        return good(trial)

    workers.answer, session = answer, drive()
    loop(session, workers, n_trials=7)
    assert running == [3, 3, 3, 3, 3, 3, 1]


def test_the_loop_ends_after_its_number_of_trials_and_closes_the_workers() -> None:
    session, workers = drive(), ScriptedWorkers(2, good)
    loop(session, workers, n_trials=5)
    assert len(session.trials()) == 5
    assert all(t.finished for t in session.trials())
    assert workers.closed == 1


def test_every_trial_is_started_by_the_session_under_a_lease() -> None:
    session = drive()
    loop(session, ScriptedWorkers(3, good), n_trials=7)
    started = kinds(session, Started)
    assert sorted(e.number for e in started) == list(range(7))
    assert all(e.leased and e.driver == started[0].driver for e in started)


def test_a_watcher_sees_how_many_trials_run_and_every_trial_once() -> None:
    watched = loop(drive(), ScriptedWorkers(3, good), n_trials=5)
    assert watched.running == [1, 2, 3, 1, 2]
    assert [t.number for t in watched.trials] == [2, 1, 0, 4, 3]


def ahead(workers: Any, n: int = 8) -> list[int]:
    """How many trials wait for a worker, each time that one is evaluated."""
    waiting: list[int] = []

    def answer(trial: Trial) -> Result:
        waiting.append(sum(t.state is State.WAITING for t in session.trials()))
        return good(trial)

    session, workers.answer = drive(), answer
    loop(session, workers, n_trials=n)
    assert [t.number for t in session.trials()] == list(range(n))
    assert all(t.finished for t in session.trials())
    return waiting


def test_with_several_workers_one_trial_is_proposed_ahead_and_never_too_many() -> None:
    # when the last two of eight run, there is no other left to propose
    assert ahead(ScriptedWorkers(3, good)) == [1, 1, 1, 1, 1, 1, 0, 0]


def test_with_one_worker_nothing_is_proposed_ahead() -> None:
    assert set(ahead(ScriptedWorkers(1, good))) == {0}


def test_nothing_is_proposed_ahead_for_synchronous_workers() -> None:
    assert set(ahead(ScriptedWorkers(3, good, synchronous=True))) == {0}


def test_a_synchronous_round_waits_for_its_slowest_trial() -> None:
    study = create()
    runner = SimulatedRunner(3, duration=lambda t: 1.0 + t.number % 3, synchronous=True)
    study.optimize(lambda t: 1.0, n_trials=9, runner=runner)
    pending = [e.seen for e in study._session.log.read(0) if isinstance(e, Proposed)]
    ends = [i for i, e in enumerate(study._session.log.read(0)) if isinstance(e, Finished)]
    # no proposal between the first and the last end of a round
    for i in range(0, 9, 3):
        assert not any(ends[i] < seen < ends[i + 2] for seen in pending)
    assert runner.workers is not None
    assert runner.workers.now() == 9.0


def test_asynchronous_workers_do_not_wait_for_each_other() -> None:
    study = create()
    runner = SimulatedRunner(3, duration=lambda t: 1.0 + t.number % 3)
    study.optimize(lambda t: 1.0, n_trials=30, runner=runner)
    assert runner.workers is not None
    assert runner.workers.utilization > 0.9


def test_a_trial_proposed_ahead_that_another_driver_has_taken_is_replaced() -> None:
    log = MemoryLog()
    session, other = drive(log), drive(log)

    def steal(trial: Trial) -> Result:
        waiting = [t.number for t in other.trials() if t.state is State.WAITING]
        if waiting and trial.number == 0:
            other.requeue(waiting[0], "mine now", retry=False)
            assert other.ask().number == waiting[0]
        return good(trial)

    loop(session, ScriptedWorkers(2, steal), n_trials=6)
    trials = session.trials()
    assert [t.state for t in trials].count(State.RUNNING) == 1  # the other's
    assert sum(t.finished for t in trials) == 6
    assert not session.held


@pytest.mark.parametrize("goal", [tw.Quality(), tw.Tradeoff(alpha=0.3)], ids=repr)
def test_every_proposal_of_a_parallel_run_follows_from_the_log_it_saw(goal: Goal) -> None:
    log, strategy = MemoryLog(), Bayes(design=Design(4))
    session = drive(log, goal=goal, strategy=strategy, seed=5)
    loop(session, ScriptedWorkers(3, good), n_trials=12)
    events = log.read(0)
    proposals = [e for e in events if isinstance(e, Proposed)]
    assert {p.origin for p in proposals} == {Origin.DESIGN, Origin.MODEL}
    for event in proposals:
        proposer = Proposer(StudyState.of(events[: event.seen]))
        assert proposer.propose(event.number, goal, strategy) == event


# ---- when it ends ----


def test_no_trial_starts_once_the_cost_is_spent() -> None:
    session = drive()
    loop(session, ScriptedWorkers(1, lambda t: Outcome(1.0, 2.5)), max_cost=5.0)
    assert len(session.trials()) == 2


def test_failed_trials_use_up_a_cost_limit_even_if_nobody_knows_their_cost() -> None:
    session = drive()
    answer = lambda t: Failure("boom" * t.number, 2.0)  # noqa: E731
    loop(session, ScriptedWorkers(1, answer), max_cost=5.0)
    assert [t.state for t in session.trials()] == [State.FAILED] * 10
    assert {t.cost for t in session.trials()} == {None}  # seconds are not a cost


def test_failed_trials_cost_as_much_as_the_others_if_there_is_no_rate() -> None:
    session = drive()
    answer = lambda t: Outcome(1.0, 2.0) if t.number == 0 else Failure("boom", 1e9)  # noqa: E731
    loop(session, ScriptedWorkers(1, answer), max_cost=6.0)
    assert len(session.trials()) == 3


def test_the_first_limit_that_is_reached_counts() -> None:
    session = drive()
    loop(session, ScriptedWorkers(1, lambda t: Outcome(1.0, 2.0)), max_cost=50.0, n_trials=2)
    assert len(session.trials()) == 2


def test_a_stopped_loop_waits_for_running_trials_and_requeues_the_one_proposed_ahead() -> None:
    session, stop = drive(), []
    loop(
        session,
        ScriptedWorkers(3, good),
        n_trials=50,
        stopped=lambda: bool(stop),
        on_done=stop.append,
    )
    assert [t.state for t in session.trials()] == [State.FINISHED] * 3 + [State.WAITING]
    assert [(e.number, e.retry) for e in kinds(session, Requeued)] == [(3, False)]
    assert session.ask().number == 3


def test_every_trial_ends_once_whatever_becomes_of_it() -> None:
    session = drive()
    script: dict[int, Result] = {
        1: Failure("boom", 1.0),
        3: Lost("gone"),
        4: Stopped("enough"),
        6: raising(ValueError("x")),
    }
    loop(session, ScriptedWorkers(3, lambda t: script.get(t.number, good(t))), n_trials=9)
    ends = [e.number for kind in (Finished, Failed, Abandoned) for e in kinds(session, kind)]
    assert sorted(ends) == list(range(9))


# ---- whatever happens ----


def random_mishap(seed: int) -> Callable[[Trial], Any]:
    def mishap(trial: Trial) -> Any:
        draw = np.random.default_rng([seed, trial.number, trial.retries]).random()
        if draw < 0.1:
            return "boom"
        if draw < 0.2:
            return 0.0, Failure("boom at once")
        if draw < 0.3:
            return 0.5, Lost("gone")
        return (0.2, Stopped("enough")) if draw < 0.35 else None

    return mishap


def random_seconds(seed: int) -> Callable[[Any], float]:
    return lambda t: float(np.random.default_rng([seed, t.number]).lognormal())


searches = st.fixed_dictionaries(
    {
        "n_trials": st.integers(0, 12),
        "on_error": st.sampled_from(["penalize", "ignore"]),
        "max_retries": st.integers(0, 2),
    },
    optional={"timeout": st.floats(0.1, 20.0), "max_cost": st.floats(0.1, 20.0)},
)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    n_workers=st.integers(1, 8),
    synchronous=st.booleans(),
    rounds=st.lists(searches, min_size=1, max_size=3),
    enqueued=st.integers(0, 2),
)
def test_searches_end_and_leave_a_whole_log_whatever_happens_to_their_trials(
    seed: int, n_workers: int, synchronous: bool, rounds: list[Any], enqueued: int
) -> None:
    study, seconds = create(seed=seed), random_seconds(seed)
    for _ in range(enqueued):
        study.enqueue({})
    runner = SimulatedRunner(
        n_workers, duration=seconds, failure=random_mishap(seed), synchronous=synchronous
    )
    for options in rounds:
        before = sum(t.state is not State.WAITING for t in study.trials)
        study.optimize(
            lambda t: {"value": t.params["x"], "cost": seconds(t)}, runner=runner, **options
        )
        assert State.RUNNING not in {t.state for t in study.trials}
        assert not study._session.held
        ended = sum(t.state is not State.WAITING for t in study.trials) - before
        declined = sum("it would cost" in (t.error or "") for t in study.trials)
        assert ended <= options["n_trials"] + declined
        assert runner.workers is not None
        assert runner.workers.now() <= options.get("timeout", float("inf"))
    check_whole(study._session.log, [])
    assert tw.replay(study).identical
