"""Logs in memory, and their clock."""

from __future__ import annotations

import copy
import pickle

from tests.samples import FIRST, LATER
from tradewind.log.events import Claimed
from tradewind.log.memory import MemoryLog, MemoryStore


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_log_without_a_store_is_empty_at_first() -> None:
    log = MemoryLog()
    assert list(log.read(0)) == []
    assert log.append([FIRST], expected=0) == 1


def test_a_copy_is_independent() -> None:
    log = MemoryLog()
    log.append(LATER)
    log.beat([1], 3600)
    for other in (copy.deepcopy(log), pickle.loads(pickle.dumps(log))):
        other.append([Claimed(9)])
        other.beat([2], 3600)
        assert list(log.read(0)) == LATER
        assert log.beat([], 0).keys() == {1}
        assert list(other.read(0)) == [*LATER, Claimed(9)]
        assert other.beat([], 0).keys() == {1, 2}


def test_a_copy_of_a_store_has_its_own_studies() -> None:
    store = MemoryStore()
    store.create("a", FIRST)
    other = pickle.loads(pickle.dumps(store))
    other.delete("a")
    assert store.names() == ["a"]


def test_a_lease_ends_after_its_seconds() -> None:
    log = MemoryLog(clock=(clock := Clock()))
    log.beat([1], 10)
    clock.now += 5
    log.beat([2], 10)
    clock.now += 5
    assert log.beat([], 0).keys() == {1, 2}
    clock.now += 0.5
    assert log.beat([], 0).keys() == {2}


def test_a_restarted_clock_ends_every_lease() -> None:
    log = MemoryLog(clock=(clock := Clock()))
    log.beat([1], 10)
    clock.now = 3.0
    assert log.beat([], 0).keys() == frozenset()
