"""A store that cannot be reached for a while: no result is lost, and nothing is counted twice."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.engine.loops import Pauses, Watched, good, kinds, loop
from tests.studies import Clock, Opened, ScriptedWorkers, Unreachable, drive, score, study_of
from tradewind.engine.failures import Policy
from tradewind.errors import FormatError, LogDiverged, NoSuchStudy, StorageError
from tradewind.log.events import Finished, Requeued
from tradewind.log.memory import MemoryLog
from tradewind.runners.runner import Failure, Result
from tradewind.types import Outcome, State, Trial


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Pauses:
    return Pauses(monkeypatch)


class Weather:
    """A search on a log that cannot be reached now and then. Its trial 1 fails once.

    A trial takes longer than a lease, so a trial that nobody works on is taken up again."""

    def __init__(self, slots: int, **faults: Any) -> None:
        self.clock = Clock()
        self.log = Unreachable(MemoryLog(clock=self.clock))
        self.session = drive(self.log)
        self.log.asked = 0
        for name, value in faults.items():
            setattr(self.log, name, value)
        self.workers = ScriptedWorkers(slots, self.answer)
        self.given: set[int] = set()  # trials that gave an outcome

    def answer(self, trial: Trial) -> Result:
        self.clock.now += 100.0
        if trial.number == 1 and not trial.retries:
            return Failure("boom")
        self.given.add(trial.number)
        return good(trial)

    def run(self, n_trials: int = 6, **options: Any) -> Watched:
        policy = Policy(max_retries=1)
        return loop(self.session, self.workers, n_trials=n_trials, policy=policy, **options)


@pytest.fixture(
    scope="module",
    params=[(1, 1, False), (1, 3, True), (3, 3, False), (3, 1, True)],
    ids=["refused", "unanswered", "refused, 3 workers", "unanswered, 3 workers"],
)
def storms(request: pytest.FixtureRequest) -> list[tuple[Weather, Watched]]:
    """One search for every operation on the store, at which the store goes away `times` times."""
    slots, times, late = request.param
    with pytest.MonkeyPatch.context() as patch:
        Pauses(patch)
        calm = Weather(slots)
        calm.run()
        stormy = [Weather(slots, after=i, times=times, late=late) for i in range(calm.log.asked)]
        return [(weather, weather.run()) for weather in stormy]


def test_no_result_is_lost_to_a_store_that_comes_back(
    storms: list[tuple[Weather, Watched]],
) -> None:
    for weather, _ in storms:
        finished = {t.number for t in weather.session.trials() if t.finished}
        assert finished == weather.given
        assert len(finished) == 6
        assert not weather.session.held


def test_a_watcher_hears_of_every_trial_once_even_if_the_store_went_away(
    storms: list[tuple[Weather, Watched]],
) -> None:
    for weather, watched in storms:
        assert sorted(t.number for t in watched.trials) == sorted(weather.given)


def test_a_retry_counts_once_even_if_the_store_went_away(
    storms: list[tuple[Weather, Watched]],
) -> None:
    for weather, _ in storms:
        assert [e.reason for e in kinds(weather.session, Requeued)].count("boom") <= 1


def test_trials_left_behind_when_the_store_went_away_are_taken_up_later(
    storms: list[tuple[Weather, Watched]],
) -> None:
    for weather, _ in copy.deepcopy(storms[::3]):
        weather.clock.now += 1000.0
        weather.run(n_trials=3)
        trials = weather.session.trials()
        assert [t.number for t in trials] == list(range(9))
        assert all(t.finished for t in trials)


def test_a_trial_whose_result_could_not_be_recorded_runs_again_when_its_lease_has_run_out(
    pauses: Pauses,
) -> None:
    clock = Clock()
    log = Unreachable(MemoryLog(clock=clock))
    session = drive(log)

    def answer(trial: Trial) -> Result:
        log.times = 10**6
        return good(trial)

    with pytest.raises(StorageError, match=r"trial 0 gave Outcome\(.*"):
        loop(session, ScriptedWorkers(1, answer), n_trials=5)
    log.times = 0
    assert [t.state for t in session.trials()] == [State.RUNNING]
    clock.now += 61.0
    loop(session, ScriptedWorkers(1, good), n_trials=2)
    assert [(t.state, t.retries) for t in session.trials()] == [
        (State.FINISHED, 1),
        (State.FINISHED, 0),
    ]


def test_a_study_that_was_deleted_is_not_waited_for(pauses: Pauses) -> None:
    log = MemoryLog()
    session = drive(log)

    def answer(trial: Trial) -> Result:
        log.delete("study")
        return good(trial)

    workers = ScriptedWorkers(1, answer)
    with pytest.raises(StorageError) as raised:
        loop(session, workers, n_trials=3)
    assert isinstance(raised.value.__cause__, NoSuchStudy)
    assert pauses.taken == []
    assert workers.closed == 1


def test_a_store_that_stays_away_is_waited_for_half_a_minute(pauses: Pauses) -> None:
    weather = Weather(2, times=10**6)
    with pytest.raises(StorageError, match="the network is down"):
        weather.run()
    assert 15.0 < sum(pauses.taken) <= 30.0
    assert pauses.taken == sorted(pauses.taken)
    assert weather.workers.closed == 1


@pytest.mark.parametrize("patience", [0.0, 5.0, 600.0])
def test_the_patience_with_a_store_that_stays_away_may_be_chosen(
    pauses: Pauses, patience: float
) -> None:
    log = Unreachable(MemoryLog())
    session = drive(log)
    log.times = 10**6
    with pytest.raises(StorageError, match="the network is down"):
        loop(session, ScriptedWorkers(1, good), n_trials=1, policy=Policy(patience=patience))
    assert 0.4 * patience <= sum(pauses.taken) <= patience
    assert max(pauses.taken, default=0.0) <= 30.0


def test_a_log_that_was_replaced_is_not_waited_for(pauses: Pauses) -> None:
    session = drive()

    def replaced(after: int) -> Any:
        raise LogDiverged("replaced")

    session.log.read = replaced  # type: ignore[method-assign]
    with pytest.raises(LogDiverged):
        loop(session, ScriptedWorkers(1, good), n_trials=1)
    assert pauses.taken == []


def test_a_store_that_is_away_when_the_search_begins_is_waited_for(pauses: Pauses) -> None:
    weather = Weather(2, times=2)
    weather.run(timeout=1e9)
    assert len(weather.given) == 6


def test_the_workers_are_closed_when_nothing_could_be_read(pauses: Pauses) -> None:
    log = Unreachable(MemoryLog())
    drive(log)
    study, workers = study_of(log), ScriptedWorkers(2, good)
    log.times = 10**6
    with pytest.raises(StorageError):
        study.optimize(score, n_trials=3, max_cost=10.0, runner=Opened(workers))
    assert workers.closed >= 1


def test_all_results_that_could_not_be_recorded_are_shown(pauses: Pauses) -> None:
    log = Unreachable(MemoryLog())
    session = drive(log)

    def answer(trial: Trial) -> Result:
        log.times = 10**6
        return good(trial)

    with pytest.raises(StorageError) as raised:
        loop(session, ScriptedWorkers(3, answer), n_trials=5)
    for number in range(3):
        assert f"trial {number} gave Outcome(value=" in str(raised.value)


def test_a_damaged_log_is_not_read_again_and_again(pauses: Pauses) -> None:
    log = MemoryLog()
    session = drive(log)
    log.append([Finished(7, Outcome(1.0))])
    with pytest.raises(FormatError):
        loop(session, ScriptedWorkers(1, good), n_trials=1)
    assert pauses.taken == []


def test_a_trial_that_could_not_be_started_is_not_held_for_ever() -> None:
    """The store fails between a proposal and its start: a later search takes the trial up."""
    session = drive()
    ask, start = session.ask, session.start

    def refuse(number: int, *, leased: bool) -> Trial:
        raise FormatError("damaged")

    session.ask = lambda **options: ask(**options | {"start": False})  # type: ignore[method-assign]
    session.start = refuse  # type: ignore[method-assign]
    with pytest.raises(FormatError):
        loop(session, ScriptedWorkers(1, good), n_trials=1)
    assert session.held == {}
    session.ask, session.start = ask, start  # type: ignore[method-assign]
    loop(session, ScriptedWorkers(1, good), n_trials=1)
    assert [t.finished for t in session.trials()] == [True]
