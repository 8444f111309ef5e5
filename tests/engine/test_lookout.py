"""What a search does in the background: renewing leases, and seeing what others have ended."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from tests.studies import Unreachable, drive
from tradewind.engine.lookout import Lookout
from tradewind.log.memory import MemoryLog

SOON = 30.0  # seconds within which a thread gets its turn


class Listening(MemoryLog):
    """A log that sets `heard` when leases have been renewed `times` times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.beats: list[list[int]] = []
        self.times, self.heard = times, threading.Event()

    def beat(self, trials: Sequence[int], seconds: float) -> frozenset[int]:
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
