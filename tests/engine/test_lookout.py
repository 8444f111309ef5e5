"""What a search does in the background: renewing leases, and seeing what others have ended."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import pytest

from tests.engine.loops import good
from tests.studies import ScriptedWorkers, Unreachable, drive
from tradewind.engine import lookout
from tradewind.engine.journal import Journal
from tradewind.engine.limits import Running
from tradewind.engine.lookout import Lookout
from tradewind.engine.session import Session
from tradewind.log.events import Event
from tradewind.log.memory import MemoryLog
from tradewind.log.state import StudyState
from tradewind.types import Outcome, Trial

SOON = 30.0  # seconds within which a thread gets its turn


class Listening(MemoryLog):
    """A log that sets `heard` when leases have been renewed `times` times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.beats: list[list[int]] = []
        self.times, self.heard = times, threading.Event()

    def beat(self, trials: Sequence[int], seconds: float) -> Mapping[int, float]:
        self.beats.append(list(trials))
        if len(self.beats) == self.times:
            self.heard.set()
        return super().beat(trials, seconds)


def test_the_leases_of_the_trials_held_at_the_time_are_renewed() -> None:
    log = Listening(2)
    session = drive(log)
    session.held[1] = 0.01
    with Lookout(session, 0.01):
        assert log.heard.wait(SOON)
        log.times, log.heard = len(log.beats) + 5, threading.Event()
        session.held.update({2: 0.01, 3: 0.01})
        del session.held[1]
        assert log.heard.wait(SOON)
    assert log.beats[:2] == [[1], [1]]
    assert sorted(log.beats[-1]) == [2, 3]


def test_the_log_is_left_alone_while_nothing_is_held() -> None:
    log = Listening(1)
    session, other = drive(log), drive(log)
    other.held[7] = 0.01
    with Lookout(session, 0.01), Lookout(other, 0.01):
        assert log.heard.wait(SOON)
    assert {number for beat in log.beats for number in beat} == {7}
    assert [] not in log.beats


def test_leases_are_renewed_again_after_the_store_could_not_be_reached() -> None:
    inner = Listening(1)
    log = Unreachable(inner)
    session = drive(log)
    session.held[0] = 0.01
    log.asked, log.times = 0, 3
    with Lookout(session, 0.01):
        assert inner.heard.wait(SOON)
    assert log.asked >= 4


def test_a_lease_may_be_very_long() -> None:
    with Lookout(drive(), 1e300):
        pass


def test_nothing_is_renewed_once_the_search_is_over() -> None:
    log = Listening(1)
    session = drive(log)
    session.held[0] = 0.01
    with Lookout(session, 0.01):
        assert log.heard.wait(SOON)
    beats = len(log.beats)
    assert all(thread.name != "tradewind lookout" for thread in threading.enumerate())
    assert len(log.beats) == beats


def test_each_lease_is_renewed_for_as_long_as_it_was_granted() -> None:
    """Two searches of one study may have different leases, and one of them may end first."""
    log = Listening(2)
    session = drive(log)
    session.held.update({0: 600.0, 1: 0.01})
    with Lookout(session, 0.01):
        assert log.heard.wait(SOON)
    assert all(beat == [1] for beat in log.beats)


# ---- trials that others have ended ----


class Interrupting(ScriptedWorkers):
    """Workers in this thread, which note what they have to interrupt."""

    def __init__(self) -> None:
        super().__init__(1, good)
        self.interrupted: list[int] = []
        self.heard = threading.Event()

    def interrupt(self, numbers: Iterable[int], reason: str) -> None:
        self.interrupted += numbers
        self.heard.set()


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SOON
    while not holds():
        assert time.monotonic() < deadline, "it does not happen"
        time.sleep(0.01)


def running(*trials: Trial) -> dict[int, Running]:
    return {trial.number: Running(trial, 0.0) for trial in trials}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookout, "LOOK", 0.01)


ENDINGS: dict[str, Callable[[Session], object]] = {
    "abandoned": lambda other: other.abandon(0, "enough"),
    "failed": lambda other: other.fail(0, "boom"),
    "finished": lambda other: other.finish(0, Outcome(1.0, 1.0)),
    "taken": lambda other: (other.requeue(0, "its driver ended while it ran"), other.ask()),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_trial_that_another_driver_ends_or_takes_is_over_here(ending: str) -> None:
    log = MemoryLog()
    session, other = drive(log), drive(log)
    trials, workers = running(session.ask(lease=60.0), session.ask(lease=60.0)), Interrupting()
    with Lookout(session, 60.0, trials, workers) as watch:
        assert watch.over() == []
        ENDINGS[ending](other)
        assert workers.heard.wait(SOON)
        assert watch.over() == [0]
        del trials[0]
        assert watch.over() == []
    assert set(workers.interrupted) == {0}


class Slow(MemoryLog):
    """A log that lets the thread wait for `go` before it reads, once `is_slow` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.is_slow, self.is_asked, self.go = False, threading.Event(), threading.Event()

    def read(self, position: int) -> Iterable[Event]:
        if self.is_slow and threading.current_thread() is not threading.main_thread():
            self.is_asked.set()
            self.go.wait(SOON)
        return super().read(position)


def test_a_trial_that_starts_and_is_abandoned_while_the_log_is_read_is_over() -> None:
    log = Slow()
    session, other = drive(log), drive(log)
    first = session.ask()
    runs = running(first)
    with Lookout(session, 600.0, runs) as watch:
        log.is_slow = True
        assert log.is_asked.wait(SOON)
        second = session.ask()
        other.abandon(second.number, "it hangs")
        log.go.set()
        position = session.state.position
        wait_until(lambda: watch._position > position)
        runs.update(running(second))
        wait_until(lambda: watch.over() == [second.number])


def test_what_the_session_itself_has_read_is_seen_as_well() -> None:
    log = MemoryLog()
    session, workers = drive(log), Interrupting()
    with Lookout(session, 60.0, running(session.ask()), workers):
        session.abandon(0, "by a callback, for instance")
        assert workers.heard.wait(SOON)


def test_a_trial_that_is_only_requeued_goes_on() -> None:
    """Its driver did not renew its lease for a while. As long as nobody has taken it, the driver
    can still finish it."""
    log = MemoryLog()
    session, other = drive(log), drive(log)
    workers = Interrupting()
    with Lookout(session, 60.0, running(session.ask(), session.ask()), workers) as watch:
        other.requeue(0, "its driver ended while it ran")
        other.abandon(1, "to see when the thread has looked")
        assert workers.heard.wait(SOON)
        assert watch.over() == [1]


def test_a_trial_that_runs_here_again_is_not_over() -> None:
    log = MemoryLog()
    session, other = drive(log), drive(log)
    trials, workers = running(session.ask(lease=60.0)), Interrupting()
    with Lookout(session, 60.0, trials, workers) as watch:
        ENDINGS["taken"](other)
        assert workers.heard.wait(SOON)
        other.requeue(0, "again")
        trials[0] = Running(session.ask(lease=60.0), 0.0)
        workers.heard.clear()
        trials |= running(session.ask())
        other.abandon(1, "to see when the thread has looked")
        assert workers.heard.wait(SOON)
        assert watch.over() == [1]


def test_the_log_is_not_read_if_the_session_has_just_read_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = Unreachable(MemoryLog())
    session = drive(log)
    trials = running(session.ask())
    log.asked = 0
    monkeypatch.setattr(session.journal, "seen_at", math.inf)
    looked = threading.Event()
    watch = Lookout(session, 0.03, trials)
    look = watch._look
    monkeypatch.setattr(watch, "_look", lambda: (look(), looked.set()))
    with watch:
        assert looked.wait(SOON)
    assert log.asked == 0


def test_looking_goes_on_after_the_store_could_not_be_reached() -> None:
    log = Unreachable(MemoryLog())
    session, other = drive(log), drive(log.inner)
    trials, workers = running(session.ask()), Interrupting()
    log.asked, log.times = 0, 3
    with Lookout(session, 60.0, trials, workers):
        other.abandon(0, "enough")
        assert workers.heard.wait(SOON)
    assert log.asked >= 4


def test_a_session_that_continues_with_another_log_is_watched_there() -> None:
    session = drive()
    for _ in range(5):
        session.finish(session.ask().number, Outcome(1.0, 1.0))
    replaced = MemoryLog()
    other = drive(replaced)
    other.ask()
    trials, workers = running(session.ask()), Interrupting()
    with Lookout(session, 60.0, trials, workers) as watch:
        session.use(Journal(replaced, StudyState.read(replaced)))
        time.sleep(0.05)
        assert watch.over() == []  # the log lacks trial 5
        trials |= running(replace(other.trial(0)))
        other.abandon(0, "enough")
        assert workers.heard.wait(SOON)
        assert watch.over() == [0]


def test_the_end_of_a_search_does_not_wait_for_a_store_that_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lookout, "_PATIENCE", 0.05)
    answer, asked = threading.Event(), threading.Event()

    class Silent(MemoryLog):
        def beat(self, trials: Sequence[int], seconds: float) -> Mapping[int, float]:
            asked.set()
            answer.wait(SOON)
            return super().beat(trials, seconds)

    session = drive(Silent())
    session.held[0] = 0.01
    watch = Lookout(session, 0.01)
    with watch:
        assert asked.wait(SOON)
    assert watch._thread.is_alive()
    answer.set()
    watch._thread.join(SOON)
    assert not watch._thread.is_alive()
