"""The heart: while it beats, what is held stays leased."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from tests.studies import Unreachable
from tradewind.engine.leases import Heart
from tradewind.log.memory import MemoryLog

SOON = 30.0  # seconds within which a thread gets its turn


class Listening(MemoryLog):
    """A log that says when it has heard `times` beats."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.beats: list[list[int]] = []
        self.times, self.heard = times, threading.Event()

    def beat(self, trials: Sequence[int], seconds: float) -> frozenset[int]:
        self.beats.append(list(trials))
        if len(self.beats) == self.times:
            self.heard.set()
        return super().beat(trials, seconds)


def test_a_heart_renews_what_is_held_at_the_time() -> None:
    log, held = Listening(2), [1]
    with Heart(log, lambda: list(held), 0.01):
        assert log.heard.wait(SOON)
        log.times, log.heard = len(log.beats) + 5, threading.Event()
        held[:] = [2, 3]
        assert log.heard.wait(SOON)
    assert log.beats[:2] == [[1], [1]]
    assert log.beats[-1] == [2, 3]


def test_a_heart_with_nothing_to_hold_leaves_the_log_alone() -> None:
    log, asked = Listening(1), threading.Event()

    def held() -> list[int]:
        asked.set()
        return []

    with Heart(log, held, 0.01):
        assert asked.wait(SOON)
    assert log.beats == []


def test_a_heart_survives_a_store_that_cannot_be_reached() -> None:
    inner = Listening(1)
    log = Unreachable(inner, times=3)
    with Heart(log, lambda: [0], 0.01):
        assert inner.heard.wait(SOON)
    assert log.asked >= 4


def test_a_heart_may_have_a_very_long_lease() -> None:
    with Heart(MemoryLog(), lambda: [0], 1e300):
        pass


def test_a_heart_ends_with_what_it_is_there_for() -> None:
    log = Listening(1)
    with Heart(log, lambda: [0], 0.01):
        assert log.heard.wait(SOON)
    beats = len(log.beats)
    assert all(thread.name != "tradewind leases" for thread in threading.enumerate())
    assert len(log.beats) == beats
