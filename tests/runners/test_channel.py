"""The channel to a worker: whatever comes out of it, the driver goes on."""

from __future__ import annotations

import os
import pickle
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runners import garbage
from tests.runners.garbage import answer, framed, header
from tests.runners.trials import all_of, the_one, trial
from tradewind.runners.channel import LARGEST, DriverEnd, NotAMessage, WorkerEnd, encode
from tradewind.runners.messages import MESSAGE_CLASSES, Answer, Begun, Loaded
from tradewind.runners.processes import ProcessRunner, ProcessWorkers
from tradewind.runners.run import Run
from tradewind.runners.runner import Failure, Lost, TrialLimits
from tradewind.types import Outcome, Usage

Open = Callable[..., ProcessWorkers]

pytestmark = pytest.mark.filterwarnings("ignore:.* workers share .* core:UserWarning")

OUTCOME = Outcome(0.5, 2.0, (0.25, 0.75), costs={"money": 3.0}, attributes={"note": ["ü", None]})
MESSAGES = [
    Loaded(),
    Loaded("Traceback ..."),
    Begun(3, 1.5),
    Answer(3, OUTCOME, Usage(2.0, 1.0, memory=1e9)),
    Answer(4, Failure("as scripted", 1.0), Usage(1.0), b"pickled"),
]


class Line:
    """A channel whose worker's end is in our hands."""

    def __init__(self) -> None:
        ours, self.theirs = socket.socketpair()
        self.driver = DriverEnd(ours, MESSAGE_CLASSES)

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *raised: object) -> None:
        self.theirs.close()
        self.driver.close()


# ---- one end in our hands ----


@given(st.lists(st.sampled_from(MESSAGES), max_size=6), st.integers(1, 60))
def test_messages_arrive_in_order_however_they_are_cut(messages: list[Any], piece: int) -> None:
    data, seen = b"".join(map(encode, messages)), []
    with Line() as line:
        for at in range(0, len(data), piece):
            line.theirs.sendall(data[at : at + piece])
            while (message := line.driver.receive()) is not None:
                seen.append(message)
        assert not line.driver.has_message
        line.theirs.close()
        assert line.driver.receive() is None
        assert line.driver.closed
    assert seen == messages


@given(st.binary(min_size=1), st.booleans(), st.integers(0, 200))
def test_bytes_that_are_no_message_are_refused_or_waited_for(
    data: bytes, in_a_frame: bool, cut: int
) -> None:
    with Line() as line:
        line.theirs.sendall((framed(data) if in_a_frame else data)[: cut or None])
        try:
            for _ in range(100):
                message = line.driver.receive()
                assert message is None or type(message) in MESSAGE_CLASSES
        except NotAMessage:
            return


@given(st.sampled_from(MESSAGES), st.data())
def test_a_flipped_bit_is_never_a_message(message: Any, data: st.DataObject) -> None:
    damaged = bytearray(encode(message))
    at = data.draw(st.integers(0, 8 * len(damaged) - 1))
    damaged[at // 8] ^= 1 << at % 8
    with Line() as line:
        line.theirs.sendall(damaged)
        try:
            assert line.driver.receive() is None  # a longer length
        except NotAMessage:
            return


class Evil:
    def __reduce__(self) -> Any:
        return os.abort, ()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x7f\xff\xff\xff", "must begin with"),
        (b"t?", "must begin with"),
        (header(2**31), "may have 1048576 bytes, but this one has 2147"),
        (header(3) + b"abc", "a wrong checksum"),
        (framed(b"no pickle"), "cannot be read"),
        (framed(b""), "cannot be read"),
        (framed(pickle.dumps(Evil())), "posix.abort is not expected here"),
        (framed(pickle.dumps(Path("x"))), "is not expected here"),
    ],
)
def test_what_is_wrong_with_a_message_is_said(data: bytes, why: str) -> None:
    with Line() as line:
        line.theirs.sendall(data)
        assert line.driver.has_message
        with pytest.raises(NotAMessage, match=why):
            line.driver.receive()


def send_all(line: socket.socket, data: bytes) -> None:
    with suppress(OSError):  # the other end has had enough
        line.sendall(data)


def test_no_more_is_read_than_a_message_may_have() -> None:
    with Line() as line:
        line.theirs.sendall(header(LARGEST))
        flood = threading.Thread(target=send_all, args=[line.theirs, bytes(8 * LARGEST)])
        flood.start()
        while not line.driver.has_message:
            assert len(line.driver._received) < 2 * LARGEST
        with pytest.raises(NotAMessage, match="checksum"):
            line.driver.receive()
        line.driver.close()
        flood.join()


def test_sending_does_not_wait_for_a_worker_that_does_not_read() -> None:
    big = trial(params={"text": "x" * (5 * LARGEST)})
    with Line() as line:
        line.driver.send(big)
        assert line.driver.has_unsent
        received: list[Any] = []
        worker = WorkerEnd(os.dup(line.theirs.fileno()))
        reader = threading.Thread(target=lambda: received.append(worker.receive()))
        reader.start()
        while line.driver.has_unsent:
            line.driver.flush()
        reader.join()
        worker.close()
        assert received == [big]


def test_a_worker_waits_for_as_long_as_it_is_told_to() -> None:
    with Line() as line:
        worker = WorkerEnd(os.dup(line.theirs.fileno()))
        with pytest.raises(TimeoutError):
            worker.receive(0.01)
        line.driver.close()
        with pytest.raises(EOFError):
            worker.receive()
        worker.close()


# ---- real workers ----


@pytest.fixture
def opened() -> Iterator[Open]:
    workers: list[ProcessWorkers] = []

    def opening(objective: Callable[[Run], Any], n: int = 1, **limits: Any) -> ProcessWorkers:
        workers.append(ProcessRunner(n, grace=0.2).open(objective, TrialLimits(**limits)))
        return workers[-1]

    yield opening
    for some in workers:
        some.close()


@pytest.mark.parametrize(
    ("data", "times"),
    [
        pytest.param(b"\x7f\xff\xff\xff", 1, id="a length of 2 GB"),
        pytest.param(header(2**31), 1, id="a header with 2 GB"),
        pytest.param(b"hello\n", 1, id="text"),
        pytest.param(framed(b"no pickle"), 1, id="no pickle"),
        pytest.param(encode(Path("x")), 1, id="another object"),
        pytest.param(answer(99), 1, id="another trial"),
        pytest.param(encode(Loaded()), 1, id="out of order"),
        pytest.param(encode(Begun(0, 1.0)), 100_000, id="flood"),
    ],
)
def test_a_worker_that_writes_what_is_no_message_fails_its_trial_alone(
    opened: Open, data: bytes, times: int
) -> None:
    def objective(run: Run) -> float:
        if run.number == 0:
            garbage.write(data, times=times)
            time.sleep(600)
        return 1.0

    workers = opened(objective, 2)
    workers.submit(trial(0))
    workers.submit(trial(1))
    results = {done.trial.number: done.result for done in all_of(workers, 2)}
    assert isinstance(results[1], Outcome)
    assert isinstance(results[0], Failure)
    assert "wrote something that is not a message to the driver's channel" in results[0].error
    for number in (2, 3):
        assert isinstance(the_one(workers, number=number).result, Outcome)


@pytest.mark.parametrize(
    ("data", "pause"),
    [
        pytest.param(answer(0)[:-5], 600.0, id="a part"),
        pytest.param(b"\0", 0.001, id="drop by drop"),
    ],
)
def test_a_message_that_never_ends_does_not_outlast_the_time_of_its_trial(
    opened: Open, data: bytes, pause: float
) -> None:
    def objective(run: Run) -> None:
        if len(data) == 1:
            garbage.write(header(LARGEST))
        garbage.write(data, times=LARGEST, pause=pause)

    result = the_one(opened(objective, timeout=0.5)).result
    assert isinstance(result, Failure)
    assert "may take 0.5 seconds" in result.error


def test_a_worker_that_writes_while_it_is_idle_is_replaced(opened: Open) -> None:
    def objective(run: Run) -> float:
        if run.number == 0:
            threading.Timer(0.2, garbage.write, [answer(1)]).start()
        return float(os.getpid())

    workers = opened(objective)
    first = the_one(workers).result
    time.sleep(0.5)
    second = the_one(workers, number=1)
    if isinstance(second.result, (Lost, Failure)):  # the writer was slow
        second = the_one(workers, number=1)
    assert isinstance(first, Outcome)
    assert isinstance(second.result, Outcome)
    assert second.result.value not in (1.0, first.value)


def test_an_answer_that_is_too_large_is_a_failure_and_a_large_trial_arrives(
    opened: Open,
) -> None:
    costs = {f"{number:1000}": 1.0 for number in range(1000)}  # as many as a trial may have
    largest = {"folds": [0.1] * 10_000, "costs": costs}
    workers = opened(lambda run: len(run.params["text"]) if run.number else largest)
    result = the_one(workers).result
    assert isinstance(result, Failure)
    assert "an answer may take 1048576 bytes, and the objective's takes" in result.error
    size = 3 * LARGEST
    second = the_one(workers, number=1, params={"text": "x" * size}).result
    assert isinstance(second, Outcome)
    assert second.value == size
