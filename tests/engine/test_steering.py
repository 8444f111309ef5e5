"""Steering is events in the log: what they change, and what they leave alone."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import tradewind as tw
from tests.engine.loops import good, kinds, loop
from tests.engine.scripted import Afterwards, since
from tests.studies import (
    Clock,
    ScriptedWorkers,
    Unreachable,
    configure,
    create,
    drive,
    events_of,
    score,
    study_of,
)
from tradewind.engine import contention, plan
from tradewind.engine.steering import Pause, pause, paused, record_spent, resume
from tradewind.errors import StorageError, StudyPaused, TrialError
from tradewind.log.codec import FORMAT, encode
from tradewind.log.events import (
    Abandoned,
    Claimed,
    Configured,
    Event,
    Paused,
    Proposed,
    Resumed,
    Spent,
    Started,
)
from tradewind.log.memory import MemoryLog
from tradewind.runners.simulated import SimulatedRunner
from tradewind.strategies import Bayes, Design, RandomSearch
from tradewind.types import Outcome, State, Trial

TRADEOFF = tw.Tradeoff(alpha=0.3, reference=2.0)


class Own(RandomSearch):
    """A strategy that is not in the store."""


# ---- pausing ----


def test_a_pause_says_why_and_since_when_in_every_session() -> None:
    log = MemoryLog()
    clock = Clock(5.0)
    session, other = drive(log, clock=clock), drive(log)
    assert paused(session) is None
    pause(session, "lunch")
    assert paused(session) == paused(other) == Pause("lunch", 5.0)
    resume(other)
    assert paused(session) is None
    assert since(log) == [Paused("lunch", 5.0), Resumed(0.0)]


def test_pausing_twice_or_resuming_what_runs_changes_nothing() -> None:
    log = MemoryLog()
    session, other = drive(log), drive(log)
    resume(session)
    pause(session, "lunch")
    pause(other, "tea")
    pause(session, "more tea")
    assert paused(other) == Pause("lunch", 0.0)
    resume(other)
    resume(session)
    assert [type(event) for event in since(log)] == [Paused, Resumed]


def test_a_paused_study_gives_out_no_trial_and_says_what_to_do() -> None:
    study = create()
    study.enqueue({"x": 0.5})
    study.pause("the data is being replaced")
    with pytest.raises(StudyPaused, match=r"\(the data is being replaced\): call study\.resume"):
        study.ask()
    study.resume()
    assert study.ask().params["x"] == 0.5
    study.pause()
    with pytest.raises(StudyPaused, match="this one is paused: call"):
        study.ask()


def test_results_may_be_told_and_added_while_a_study_is_paused() -> None:
    study = create()
    first, second, third = study.ask(), study.ask(), study.ask()
    study.pause()
    study.tell(first, 1.0, cost=1.0)
    study.fail(second)
    study.abandon(third)
    study.add({"x": 0.5, "k": 1}, 0.5, cost=1.0)
    study.enqueue({"x": 0.25})
    assert [t.state.value for t in study.trials] == ["finished", "failed", "abandoned", "finished"]


def test_a_reason_is_text() -> None:
    with pytest.raises(TypeError, match="reason must be text, but got 7"):
        create().pause(7)  # type: ignore[arg-type]


def test_a_pause_that_comes_between_reading_and_writing_lets_nothing_start() -> None:
    log = Afterwards()
    session, other = drive(log), drive(log)
    waiting = session.ask(start=False)
    pause(other, "")
    with pytest.raises(StudyPaused):
        session.start(waiting.number, leased=True)  # decided from what it had read before
    resume(other)
    assert session.start(waiting.number, leased=True).state is State.RUNNING


def test_a_driver_that_has_read_a_pause_notices_that_it_is_over_when_it_starts_a_trial() -> None:
    log = MemoryLog()
    session, other = drive(log), drive(log)
    waiting = session.ask(start=False)
    pause(session, "")
    resume(other)
    assert session.start(waiting.number, leased=True).state is State.RUNNING


def test_a_claimed_trial_does_not_start_if_the_study_is_paused_while_it_is_proposed() -> None:
    log = Afterwards()
    session, other = drive(log), drive(log)
    other.ask(lease=60.0)  # so that the session claims first
    log.then = lambda: pause(other, "")
    with pytest.raises(StudyPaused):
        session.ask(lease=60.0, keep=True)
    assert not session.held
    assert [type(event) for event in log.read(0)][-2:] == [Claimed, Paused]
    resume(other)
    assert session.ask(lease=60.0).number == 1
    assert [t.number for t in session.trials()] == [0, 1]


def test_a_pause_is_kept_when_a_study_is_exported_and_imported(tmp_path: Any) -> None:
    study = create()
    study.tell(study.ask(), 1.0, cost=1.0)
    study.pause("lunch")
    study.export(tmp_path / "study.jsonl")
    copy = tw.import_study(tmp_path / "study.jsonl", storage=tmp_path / "runs.db")
    assert copy.paused == study.paused
    assert events_of(copy) == events_of(study)


def test_pausing_does_not_change_what_is_proposed() -> None:
    log = MemoryLog()
    session, strategy = drive(log, strategy=Bayes(design=Design(4))), Bayes(design=Design(4))
    plain = drive(strategy=strategy)
    for i in range(8):
        pause(session, "")
        resume(session)
        assert session.ask().params == plain.ask().params
        for each in (session, plain):
            each.finish(i, Outcome(float(i % 3), 1.0))
    assert tw.replay(study_of(log)).identical


# ---- a search of a paused study ----


def test_a_search_waits_and_can_be_stopped_while_the_study_is_paused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    study = create()
    study.pause("lunch")
    threading.Timer(0.3, study.stop).start()
    study.optimize(score, n_trials=5)
    assert study.trials == []
    assert caplog.text.count("lunch") == 1


def test_a_timeout_ends_a_search_of_a_paused_study() -> None:
    study = create()
    study.pause()
    study.optimize(score, timeout=0.2)
    study.optimize(score, timeout=0.2, only_queued=True)
    assert study.trials == []


def test_an_interrupt_ends_a_search_of_a_paused_study() -> None:
    study = create()
    study.pause()
    timer = threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    study.optimize(score, n_trials=5)
    timer.join()
    assert study.trials == []


def test_what_waits_in_the_queue_is_not_started_while_the_study_is_paused() -> None:
    study = create()
    study.enqueue({"x": 0.5, "k": 1})
    study.pause()
    threading.Timer(0.3, study.resume).start()
    study.optimize(score, n_trials=3, only_queued=True)
    assert [t.params["x"] for t in study.trials] == [0.5]
    order = [type(event) for event in events_of(study)]
    assert order.index(Resumed) < order.index(Started)


def test_a_pause_does_not_move_a_virtual_clock() -> None:
    study = create()
    runner = SimulatedRunner(2, duration=lambda trial: 10.0)

    def halt(study: tw.Study, trial: Trial) -> None:
        if trial.number == 1:
            study.pause()
            threading.Timer(0.7, study.resume).start()

    study.optimize(score, n_trials=6, runner=runner, callbacks=[halt])
    assert runner.workers is not None
    assert runner.workers.now() == 30.0
    assert runner.workers.utilization == 1.0


def test_a_trial_proposed_ahead_waits_until_the_study_is_resumed() -> None:
    session = drive()
    once = [True]

    def answer(trial: Trial) -> Outcome:
        if once and once.pop():  # while trial 2 has been proposed ahead
            pause(session, "")
            threading.Timer(0.3, lambda: resume(session)).start()
        return good(trial)

    loop(session, ScriptedWorkers(2, answer), n_trials=6)
    events = session.log.read(0)
    at = [type(event) for event in events]
    waiting = {e.number for e in events[: at.index(Paused)] if isinstance(e, Proposed)}
    begun = {e.number for e in events[: at.index(Paused)] if isinstance(e, Started)}
    assert (waiting, begun) == ({0, 1, 2}, {0, 1})
    assert [t.state for t in session.trials()] == [State.FINISHED] * 6
    assert len(kinds(session, Proposed)) == 6


def test_a_study_cannot_be_paused_while_its_store_is_away_but_afterwards() -> None:
    inner = MemoryLog()
    session = drive(inner)
    away = Unreachable(inner, times=1)
    session.log = session.journal.log = away
    with pytest.raises(StorageError):
        pause(session, "lunch")
    assert since(inner) == []
    pause(session, "lunch")
    assert since(inner) == [Paused("lunch", 0.0)]


def test_a_search_of_a_paused_study_outlasts_a_store_that_is_away() -> None:
    log = Unreachable(MemoryLog())
    session, other = drive(log), drive(log.inner)
    pause(other, "")
    log.asked, log.after, log.times = 0, 1, 3

    def back() -> None:
        while log.times:
            time.sleep(0.01)
        resume(other)

    helper = threading.Thread(target=back)
    helper.start()
    loop(session, ScriptedWorkers(1, good), n_trials=2)
    helper.join()
    assert [t.state for t in session.trials()] == [State.FINISHED] * 2


# ---- another goal ----


def test_a_changed_goal_is_written_at_once_and_nothing_else() -> None:
    log = MemoryLog()
    drive(log, strategy=Own())
    session = drive(log, strategy=RandomSearch())  # loaded with another strategy, "to look at it"
    session.change_goal(TRADEOFF)
    session.change_goal(TRADEOFF)
    assert since(log) == [Configured(goal=plan.encode(TRADEOFF))]
    assert session.plan.goal == TRADEOFF


def test_looking_at_a_study_and_steering_it_never_changes_its_strategy() -> None:
    log = MemoryLog()
    owner = drive(log, strategy=Own())
    running = owner.ask(lease=60.0)
    viewer = study_of(log, strategy=RandomSearch())
    viewer.pause("lunch")
    viewer.enqueue({"x": 0.5})
    viewer.change_goal(TRADEOFF)
    viewer.abandon(running.number, "enough")
    viewer.resume()
    configured = [event for event in since(log) if isinstance(event, Configured)]
    assert configured == [Configured(goal=plan.encode(TRADEOFF))]
    assert owner.ask().params["x"] == 0.5
    assert isinstance(owner.plan.strategy, Own)
    assert owner.plan.goal == TRADEOFF


def test_a_strategy_that_cannot_be_stored_stays_when_another_driver_changes_the_goal() -> None:
    log, own = MemoryLog(), Own()
    session = drive(log, strategy=own)
    drive(log, strategy=own).change_goal(TRADEOFF)
    session.ask()
    assert session.plan.strategy is own
    assert session.plan.goal == TRADEOFF


def test_a_goal_that_cannot_be_stored_stays_when_another_driver_changes_the_strategy() -> None:
    class Mine(tw.Tradeoff):
        pass

    log, mine = MemoryLog(), Mine(alpha=0.3)
    session = drive(log, goal=mine)
    configure(drive(log, goal=mine), goal=mine, strategy=Bayes())
    session.ask()
    assert session.plan.goal is mine
    assert session.plan.strategy == Bayes()


def test_a_driver_that_brings_a_new_strategy_does_not_undo_a_change_of_the_goal() -> None:
    """It was loaded before the goal was changed, and has not asked yet."""
    log = MemoryLog()
    drive(log)
    session, other = drive(log, strategy=Bayes()), drive(log)
    other.change_goal(TRADEOFF)
    session.ask()
    assert (session.plan.goal, session.plan.strategy) == (TRADEOFF, Bayes())
    assert (session.state.goal, session.state.strategy) == session.plan.data
    assert len(kinds(session, Configured)) == 2


def test_a_goal_that_is_changed_to_what_it_was_is_written_if_another_driver_changed_it() -> None:
    log = MemoryLog()
    session, other = drive(log), drive(log)
    other.change_goal(TRADEOFF)
    session.change_goal(tw.Quality())
    other.ask()
    assert other.plan.goal == tw.Quality()


def test_a_goal_is_a_goal() -> None:
    with pytest.raises(TypeError, match="goal must be an object"):
        create().change_goal(0.3)  # type: ignore[arg-type]


# ---- stopped trials ----


def stopped_by(other: Any, number: int, reason: str = "enough") -> Callable[[Trial], None]:
    def stop(trial: Trial) -> None:
        if trial.number == number:
            other.abandon(number, reason)

    return stop


def test_a_result_that_comes_after_its_trial_was_abandoned_does_not_finish_it() -> None:
    log, clock = MemoryLog(), Clock()
    session, other = drive(log, clock=clock), drive(log, clock=clock)
    stop = stopped_by(other, 1)

    def answer(trial: Trial) -> Outcome:
        stop(trial)
        clock.now += 1.0
        return good(trial)

    watched = loop(session, ScriptedWorkers(1, answer), n_trials=3)
    assert [t.state.value for t in session.trials()] == ["finished", "abandoned", "finished"]
    assert session.trials()[1].error == "enough"
    assert [t.number for t in watched.trials] == [0, 1, 2]
    assert watched.trials[1].state is State.ABANDONED


def test_a_result_that_came_before_its_trial_was_abandoned_finishes_it() -> None:
    """The store was away when it came, and back when it could be recorded."""
    session = drive(clock=Clock(20.0))
    session.ask()
    session.abandon(0, "enough")  # at 20
    assert session.finish(0, Outcome(1.0, 2.0), came=19.0).value == 1.0
    session.ask()
    session.abandon(1, "enough")
    with pytest.raises(TrialError, match="trial 1 is already abandoned"):
        session.finish(1, Outcome(1.0, 2.0), came=21.0)
    assert session.finish(1, Outcome(1.0, 2.0)).finished  # told by somebody's own loop


def test_a_result_was_recorded_when_it_came() -> None:
    session = drive(clock=Clock(20.0))
    session.ask()
    assert session.finish(0, Outcome(1.0, 2.0), came=7.0).ended == 7.0


def test_what_a_stopped_trial_has_cost_is_recorded_if_it_is_known() -> None:
    log, clock = MemoryLog(), Clock()
    session, other = drive(log, clock=clock), drive(log, clock=clock)
    stop = stopped_by(other, 1)

    def answer(trial: Trial) -> Outcome:
        stop(trial)
        clock.now += 1.0
        return Outcome(1.0, 2.5, trainings=2)

    loop(session, ScriptedWorkers(1, answer), n_trials=3)
    assert session.trials()[1].cost == 5.0  # of all its trainings
    assert kinds(session, Spent) == [Spent(1, 5.0, 1002.0)]
    assert len(kinds(session, Abandoned)) == 1


def test_a_cost_is_recorded_once_and_only_for_a_trial_that_is_abandoned() -> None:
    session = drive()
    for number in range(3):
        session.ask()
        if number:
            session.abandon(number, "enough", *([7.0] if number == 2 else []))
    assert record_spent(session, 0, 1.0) is None
    recorded = record_spent(session, 1, 3.0)
    assert recorded is not None
    assert recorded.cost == 3.0
    assert record_spent(session, 1, 4.0) == recorded
    assert record_spent(session, 2, 4.0) == session.trial(2)
    assert record_spent(session, 1, None) == recorded
    assert session.trial(2).cost == 7.0
    assert kinds(session, Spent) == [Spent(1, 3.0, 0.0)]
    assert session.finish(1, Outcome(1.0, 2.0)).cost == 2.0  # it may still finish


def test_the_cost_of_a_stopped_trial_is_no_cost_of_the_initial_design() -> None:
    log = MemoryLog()
    session = drive(log, goal=tw.Tradeoff(alpha=0.3), strategy=Bayes(design=Design(3)))
    for number in range(3):
        session.ask()
        if number == 1:
            session.abandon(number, "enough")
            record_spent(session, number, 1000.0)
        else:
            session.finish(number, Outcome(float(number), 1.0 + number))
    for number in (3, 4):
        session.ask()
        session.finish(number, Outcome(float(number), 1.0))
    assert study_of(log).goal.reference == 3.0
    assert tw.replay(study_of(log)).identical


def test_an_older_version_would_keep_the_new_events() -> None:
    """Their format is that of events which older versions do not know: they ignore them."""
    lines = [encode(e) for e in (Paused("lunch"), Resumed(), Spent(1, 2.0))]
    assert FORMAT == 1
    assert lines == [
        '{"format":1,"event":"paused","reason":"lunch"}',
        '{"format":1,"event":"resumed"}',
        '{"format":1,"event":"spent","number":1,"cost":2.0}',
    ]


def test_a_stopped_trial_that_another_driver_took_is_left_to_it() -> None:
    """This driver did not renew its leases for a while."""
    log = MemoryLog()
    session, other = drive(log), drive(log)

    def answer(trial: Trial) -> Outcome:
        if trial.number == 0 and not trial.retries:
            other.requeue(0, "its driver ended while it ran")
            other.ask(lease=contention.CLAIM)
        return good(trial)

    loop(session, ScriptedWorkers(1, answer), n_trials=2)
    assert session.trial(0).finished  # the first result counts
    events: list[Event] = list(log.read(0))
    assert not [e for e in events if isinstance(e, Abandoned | Spent)]
