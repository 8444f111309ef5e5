"""What every log must do; a new one is one more line in LOGS."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable

import pytest

from tradewind.events import Claimed, Enqueued, Event, Failed, Finished, Proposed
from tradewind.log.log import Conflict, Log
from tradewind.log.memory import MemoryLog
from tradewind.types import Origin, Outcome

LOGS: dict[str, Callable[[], Log]] = {
    "memory": MemoryLog,
}

EVENTS: list[Event] = [
    Enqueued({"x": 0.5, "kernel": "poly", "none": None, "flag": True}),
    Claimed(0, enqueued=0),
    Proposed(0, {"x": 0.5}, Origin.ENQUEUED, seen=1),
    Claimed(1),
    Proposed(1, {"x": 0.25}, Origin.MODEL, seen=4, handover={"quality": {"theta": [0.1, -2.0]}}),
    Finished(0, Outcome(0.9, 12.5, (0.8, 1.0))),
    Finished(1, Outcome(-1e300)),
    Failed(2, "Traceback: λ ≤ \x00\n", cost=0.0),
    Failed(3, "", cost=None),
]


@pytest.fixture(params=LOGS)
def log(request: pytest.FixtureRequest) -> Log:
    return LOGS[request.param]()


def test_a_new_log_is_empty(log: Log) -> None:
    assert list(log.read(0)) == []


def test_every_kind_of_event_comes_back_as_it_was(log: Log) -> None:
    for event in EVENTS:
        log.append([event])
    assert list(log.read(0)) == EVENTS


def test_append_returns_the_new_length(log: Log) -> None:
    assert log.append(EVENTS[:2]) == 2
    assert log.append(EVENTS[2:5]) == 5
    assert log.append([]) == 5


def test_reading_goes_on_from_any_position(log: Log) -> None:
    log.append(EVENTS)
    for after in range(len(EVENTS) + 1):
        assert list(log.read(after)) == EVENTS[after:]


def test_there_is_nothing_past_the_end(log: Log) -> None:
    log.append(EVENTS)
    assert list(log.read(len(EVENTS) + 5)) == []


def test_an_append_at_the_expected_position_succeeds(log: Log) -> None:
    assert log.append([Claimed(0)], expected=0) == 1
    assert log.append([Claimed(1)], expected=1) == 2


@pytest.mark.parametrize("expected", [0, 1, 3, 99])
def test_an_append_at_any_other_position_is_refused_and_writes_nothing(
    log: Log, expected: int
) -> None:
    log.append(EVENTS[:2])
    with pytest.raises(Conflict):
        log.append(EVENTS[2:], expected=expected)
    assert list(log.read(0)) == EVENTS[:2]


def test_what_was_read_does_not_grow(log: Log) -> None:
    log.append([Claimed(0)])
    read = log.read(0)
    log.append([Claimed(1)])
    assert list(read) == [Claimed(0)]


def test_the_caller_may_go_on_using_its_list(log: Log) -> None:
    events: list[Event] = [Claimed(0)]
    log.append(events)
    events.append(Claimed(1))
    assert list(log.read(0)) == [Claimed(0)]


def test_of_writers_at_the_same_position_exactly_one_wins(log: Log) -> None:
    writers, each = 4, 50
    together = threading.Barrier(writers)

    def write() -> None:
        together.wait()
        for _ in range(each):
            while True:
                number = len(log.read(0))
                try:
                    log.append([Claimed(number)], expected=number)
                except Conflict:
                    continue
                break

    threads = [threading.Thread(target=write) for _ in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(log.read(0)) == [Claimed(n) for n in range(writers * each)]


def test_a_memory_log_can_be_copied() -> None:
    log = MemoryLog()
    log.append(EVENTS)
    copy = pickle.loads(pickle.dumps(log))
    copy.append([Claimed(9)])
    assert list(log.read(0)) == EVENTS
    assert list(copy.read(0)) == [*EVENTS, Claimed(9)]
