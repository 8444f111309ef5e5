"""What every log must do."""

from __future__ import annotations

import itertools
import pickle
import threading
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import processes
from tests.events import later
from tests.samples import FIRST, LATER
from tradewind.log.events import Claimed, Event
from tradewind.log.log import Conflict, Log, Store
from tradewind.log.memory import MemoryLog

examples = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def log(store: Store) -> Log:
    return store.create("study", FIRST)


@pytest.fixture
def shared_log(shared: Store) -> Log:
    return shared.create("study", FIRST)


# ---- events ----


def test_a_new_log_holds_its_first_event(log: Log) -> None:
    assert list(log.read(0)) == [FIRST]


def test_every_kind_of_event_comes_back_as_it_was(log: Log) -> None:
    for event in LATER:
        log.append([event])
    assert repr(list(log.read(0))) == repr([FIRST, *LATER])


def test_append_returns_the_new_length(log: Log) -> None:
    assert log.append(LATER[:2]) == 3
    assert log.append(LATER[2:5]) == 6
    assert log.append([]) == 6
    assert log.append([], expected=6) == 6


def test_reading_starts_at_any_position(log: Log) -> None:
    log.append(LATER)
    for after in range(len(LATER) + 2):
        assert list(log.read(after)) == [FIRST, *LATER][after:]


@pytest.mark.parametrize("beyond", [0, 1, 5, 2**62])
def test_there_is_nothing_past_the_end(log: Log, beyond: int) -> None:
    log.append(LATER)
    assert list(log.read(len(LATER) + 1 + beyond)) == []


@pytest.mark.parametrize("after", [-1, 2**64])
def test_a_position_counts_from_the_start(log: Log, after: int) -> None:
    with pytest.raises(ValueError, match="position"):
        log.read(after)


def test_an_append_at_the_expected_position_succeeds(log: Log) -> None:
    assert log.append([Claimed(0)], expected=1) == 2
    assert log.append([Claimed(1), Claimed(2)], expected=2) == 4
    assert log.append([Claimed(3)], expected=4) == 5


@pytest.mark.parametrize("expected", [0, 1, 2, 4, 99])
@pytest.mark.parametrize("events", [LATER[2:], []], ids=["some", "none"])
def test_an_append_at_any_other_position_is_refused_and_writes_nothing(
    log: Log, expected: int, events: list[Event]
) -> None:
    log.append(LATER[:2])
    with pytest.raises(Conflict):
        log.append(events, expected=expected)
    assert list(log.read(0)) == [FIRST, *LATER[:2]]


def test_a_list_that_was_read_does_not_grow(log: Log) -> None:
    read = log.read(0)
    log.append([Claimed(1)])
    assert list(read) == [FIRST]


def test_the_caller_may_change_its_list_after_an_append(log: Log) -> None:
    events: list[Event] = [Claimed(0)]
    log.append(events)
    events.append(Claimed(1))
    assert list(log.read(1)) == [Claimed(0)]


def test_an_event_may_be_large(log: Log) -> None:
    event = Claimed(0, driver="\x00λ" * 50_000)
    log.append([event] * 2)
    assert list(log.read(1)) == [event] * 2


def test_two_logs_of_one_study_see_the_same_events(store: Store, log: Log) -> None:
    other = store.open("study")
    other.append([Claimed(0)], expected=1)
    assert log.append([Claimed(1)], expected=2) == 3
    assert list(other.read(0)) == [FIRST, Claimed(0), Claimed(1)]


def test_logs_of_two_studies_are_independent(store: Store, log: Log) -> None:
    other = store.create("other", FIRST)
    other.append([Claimed(7)])
    other.beat([7], 3600)
    assert list(log.read(0)) == [FIRST]
    assert log.beat([], 0).keys() == frozenset()


counter = itertools.count()
operations = st.lists(
    st.tuples(st.lists(later, max_size=3), st.sampled_from(["any", "right", "wrong"]))
    | st.tuples(st.just("read"), st.integers(0, 12))
    | st.tuples(st.just("beat"), st.lists(st.integers(0, 4), max_size=3), st.booleans()),
    max_size=12,
)


@examples
@given(operations)
def test_every_log_behaves_like_one_in_memory(store: Store, done: list[Any]) -> None:
    log, model = store.create(f"study {next(counter)}", FIRST), MemoryLog()
    model.append([FIRST])
    for what, *how in done:
        if what == "read":
            assert repr(list(log.read(how[0]))) == repr(list(model.read(how[0])))
        elif what == "beat":
            seconds = 3600.0 if how[1] else 0.0
            assert log.beat(how[0], seconds).keys() == model.beat(how[0], seconds).keys()
        elif how[0] == "wrong":
            with pytest.raises(Conflict):
                log.append(what, expected=len(model.read(0)) + 1)
        else:
            expected = len(model.read(0)) if how[0] == "right" else None
            assert log.append(what, expected=expected) == model.append(what, expected=expected)
    assert repr(list(log.read(0))) == repr(list(model.read(0)))


# ---- many threads and processes ----


def in_threads(count: int, work: Any) -> None:
    failures: list[BaseException] = []
    together = threading.Barrier(count)

    def run() -> None:
        try:
            together.wait()
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_of_threads_at_the_same_position_exactly_one_wins(log: Log) -> None:
    def write() -> None:
        for _ in range(25):
            while True:
                number = len(log.read(0))
                try:
                    log.append([Claimed(number)], expected=number)
                except Conflict:
                    continue
                break

    in_threads(4, write)
    assert list(log.read(1)) == [Claimed(n) for n in range(1, 101)]


def test_threads_append_without_a_gap(log: Log) -> None:
    lengths: list[int] = []

    def write() -> None:
        for number in range(10):
            lengths.append(log.append(processes.batch(number)))

    in_threads(6, write)  # more than there are connections
    assert processes.whole_batches(list(log.read(1)))
    assert sorted(lengths) == [1 + processes.BATCH * (n + 1) for n in range(60)]


def test_of_processes_at_the_same_position_exactly_one_wins(shared_log: Log) -> None:
    processes.together(processes.claim, [(shared_log, 25)] * 4)
    events = shared_log.read(1)
    assert [event.number for event in events] == list(range(1, 101))  # type: ignore[union-attr]
    drivers = [event.driver for event in events]  # type: ignore[union-attr]
    assert sorted(drivers.count(driver) for driver in set(drivers)) == [25] * 4


def test_processes_append_without_a_gap(shared_log: Log) -> None:
    processes.together(processes.append_batches, [(shared_log, 20)] * 4)
    events = list(shared_log.read(1))
    assert len(events) == 4 * 20 * processes.BATCH
    assert processes.whole_batches(events)


def test_processes_see_the_leases_of_each_other(shared_log: Log) -> None:
    processes.together(processes.lease, [(shared_log, trial) for trial in range(4)])
    assert shared_log.beat([], 0).keys() == {0, 1, 2, 3}


def test_a_pickled_log_can_be_used(shared_log: Log) -> None:
    copy = pickle.loads(pickle.dumps(shared_log))
    copy.append([Claimed(0)])
    assert list(shared_log.read(1)) == [Claimed(0)]
    for part in vars(copy).values():  # its own connection
        if hasattr(part, "close"):
            part.close()


# ---- leases ----


def test_nothing_is_leased_at_first(log: Log) -> None:
    assert log.beat([], 0).keys() == frozenset()


def test_every_log_of_a_study_sees_its_leases(store: Store, log: Log) -> None:
    assert log.beat([3, 1], 3600).keys() == {1, 3}
    assert store.open("study").beat([], 0).keys() == {1, 3}
    assert store.open("study").beat([2], 3600).keys() == {1, 2, 3}


def test_a_lease_can_be_ended(log: Log) -> None:
    log.beat([1, 2, 3], 3600)
    assert log.beat([1, 3, 7], 0).keys() == {2}
    assert log.beat([], 0).keys() == {2}


def test_a_beat_without_trials_changes_nothing(log: Log) -> None:
    log.beat([1], 3600)
    assert log.beat([], 0).keys() == log.beat([], 60).keys() == {1}


def test_a_lease_ends_after_its_seconds(log: Log) -> None:
    log.beat([1], 0.02)
    log.beat([2], 3600)
    while 1 in log.beat([], 0):
        time.sleep(0.005)
    assert log.beat([2], 3600).keys() == {2}


def test_a_lease_is_renewed_by_the_next_beat(log: Log) -> None:
    log.beat([1], 0.02)
    log.beat([1], 3600)
    time.sleep(0.05)
    assert log.beat([], 0).keys() == {1}


def test_leases_take_no_position(log: Log) -> None:
    log.beat([0, 1], 3600)
    assert log.append([Claimed(0)], expected=1) == 2


@pytest.mark.parametrize(
    ("trials", "seconds"), [([1], -1.0), ([1], float("nan")), ([1], float("inf")), ([-1], 1.0)]
)
def test_an_impossible_lease_is_refused(log: Log, trials: list[int], seconds: float) -> None:
    with pytest.raises(ValueError, match="but got"):
        log.beat(trials, seconds)
    assert log.beat([], 0).keys() == frozenset()


def test_an_append_can_lease_a_trial(log: Log) -> None:
    log.append([Claimed(3)], expected=1, lease=(3, 60.0))
    assert log.beat([], 0.0).keys() == {3}


def test_a_refused_append_leaves_the_leases_alone(log: Log) -> None:
    """Otherwise a driver that loses a race could shorten the lease of the one that won it."""
    log.beat([3], 60.0)
    with pytest.raises(Conflict):
        log.append([Claimed(3)], expected=5, lease=(3, 0.01))
    with pytest.raises(Conflict):
        log.append([Claimed(4)], expected=5, lease=(4, 60.0))
    time.sleep(0.05)
    assert log.beat([], 0.0).keys() == {3}


@pytest.mark.parametrize("lease", [(-1, 1.0), (0, -1.0), (0, float("nan")), (2**63, 1.0)])
def test_an_append_with_an_impossible_lease_writes_nothing(
    log: Log, lease: tuple[int, float]
) -> None:
    with pytest.raises(ValueError, match=r"lease|trial numbers"):
        log.append([Claimed(0)], lease=lease)
    assert len(log.read(0)) == 1
