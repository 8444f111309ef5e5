"""The channel to a worker: whatever comes out of it, the driver goes on."""

from __future__ import annotations

import gc
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tradewind as tw
from tests.runners import garbage
from tests.runners.garbage import answer, line
from tests.runners.trials import all_of, the_one, trial
from tradewind.bounds import MESSAGE
from tradewind.runners import messages, slot
from tradewind.runners.channel import DriverEnd, WorkerEnd
from tradewind.runners.messages import Answer, Begun, Loaded, decode, encode
from tradewind.runners.processes import ProcessRunner, ProcessWorkers
from tradewind.runners.run import Run
from tradewind.runners.runner import Failure, Lost, Stopped, TrialLimits
from tradewind.types import Origin, Outcome, Rival, State, Trial, Usage

Open = Callable[..., ProcessWorkers]

pytestmark = pytest.mark.filterwarnings("ignore:.* workers share .* core:UserWarning")

OUTCOME = Outcome(0.5, 2.0, (0.25, 0.75), costs={"money": 3.0}, attributes={"note": ["ü", None]})
MESSAGES = [
    Loaded(),
    Loaded("Traceback ..."),
    Begun(3),
    Answer(3, OUTCOME, Usage(2.0, 1.0, memory=1e9, data="digest")),
    Answer(4, Failure("as scripted", 1.0, kinds=("builtins.ValueError",)), Usage(1.0)),
    Answer(5, Lost("gone")),
    Answer(6, Stopped("enough")),
    Trial(
        *(7, {"x": 0.1, "y": "ü", "z": None, "n": 3, "b": True}, State.RUNNING, Origin.MODEL, 2),
        train_size=0.2,
        retries=1,
        losses=2,
        expected_cost=1e-9,
        driver="here",
        started=1.5,
        data_seed=2**70,
        size_name="x",
        rival=Rival((0.5, 0.25), -1.0, 0.125, "digest"),
        cost_name="money",
        per_training=False,
        metric="accuracy",
    ),
]


def test_nothing_that_an_objective_can_see_of_its_trial_stays_behind() -> None:
    reported = {field.name for field in fields(Outcome)} | {"error", "penalized", "ended", "usage"}
    assert messages._TRIAL._codecs.keys() | reported == {field.name for field in fields(Trial)}


class Line:
    """A channel whose worker's end is in our hands."""

    def __init__(self) -> None:
        ours, self.theirs = socket.socketpair()
        self.driver = DriverEnd(ours)

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *raised: object) -> None:
        self.theirs.close()
        self.driver.close()


# ---- one end in our hands ----


@given(st.lists(st.sampled_from(MESSAGES), max_size=6), st.integers(1, 60))
def test_messages_arrive_in_order_however_they_are_cut(messages: list[Any], piece: int) -> None:
    data, seen = "".join(encode(message) + "\n" for message in messages).encode(), []
    with Line() as line:
        for at in range(0, len(data), piece):
            line.theirs.sendall(data[at : at + piece])
            while (message := line.driver.receive()) is not None:
                seen.append(decode(message))
        assert not line.driver.has_message
        line.theirs.close()
        assert line.driver.receive() is None
        assert line.driver.closed
    assert seen == messages
    assert [getattr(s, "rival", None) for s in seen] == [
        getattr(m, "rival", None) for m in messages
    ]


@given(st.binary(min_size=1))
def test_bytes_that_are_no_message_are_refused_or_waited_for(data: bytes) -> None:
    with Line() as line:
        line.theirs.sendall(data)
        for _ in range(data.count(b"\n")):
            with suppress(TypeError, ValueError):
                decode(line.driver.receive() or b"")
        assert line.driver.receive() is None


def send_all(line: socket.socket, data: bytes) -> None:
    with suppress(OSError):  # the other end has had enough
        line.sendall(data)


@pytest.mark.parametrize("ends", [False, True])
def test_no_more_is_read_than_a_message_may_have(ends: bool) -> None:
    with Line() as line:
        flood = bytes(MESSAGE + 1) + b"\n" * ends + bytes(8 * MESSAGE)
        flooding = threading.Thread(target=send_all, args=[line.theirs, flood])
        flooding.start()
        while not line.driver.has_message:
            assert len(line.driver._received) < 2 * MESSAGE
        with pytest.raises(ValueError, match="may have up to 1048576 bytes"):
            line.driver.receive()
        line.driver.close()
        flooding.join()


def test_sending_does_not_wait_for_a_worker_that_does_not_read() -> None:
    big = "x" * (5 * MESSAGE)
    with Line() as line:
        line.driver.send(big)
        assert line.driver.has_unsent
        received: list[bytes] = []
        worker = WorkerEnd(os.dup(line.theirs.fileno()))
        reader = threading.Thread(target=lambda: received.append(worker.receive()))
        reader.start()
        while line.driver.has_unsent:
            line.driver.flush()
        reader.join()
        worker.close()
        assert received == [big.encode() + b"\n"]


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
        pytest.param(b"hello\n", 1, id="text"),
        pytest.param(answer(99), 1, id="another trial"),
        pytest.param(garbage.FORGED["a large attribute"], 1, id="beyond the bounds"),
        pytest.param(garbage.ODD["a loss"], 1, id="what only clusters say"),
        pytest.param(line({"message": "loaded"}), 1, id="out of order"),
        pytest.param(line({"message": "begun", "number": 0}), 100_000, id="flood"),
        pytest.param(bytes(2**16), 2**5, id="too long"),
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
            garbage.write(b" ")
        garbage.write(data, times=MESSAGE, pause=pause)

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


def test_an_answer_beyond_the_bounds_is_a_failure_and_a_large_trial_arrives(opened: Open) -> None:
    costs = {f"{number:1000}": 1.0 for number in range(1000)}
    largest = {"folds": [0.1] * 10_000, "costs": costs}
    workers = opened(lambda run: len(run.params["text"]) if run.number else largest)
    result = the_one(workers).result
    assert isinstance(result, Failure)
    assert "with names of up to 32000 characters together" in result.error
    second = the_one(workers, number=1, params={"text": "x" * 3 * MESSAGE}).result
    assert isinstance(second, Outcome)
    assert second.value == 3 * MESSAGE


KINDS = ["a pickle", "too long", "a large attribute"]


def test_a_study_goes_on_whatever_its_workers_answer_and_can_be_read(tmp_path: Any) -> None:
    def objective(trial: tw.Run) -> float:
        if trial.number < len(KINDS):
            garbage.write(garbage.FORGED[KINDS[trial.number]])
            time.sleep(600)
        return 1.0 - float(trial.params["x"])

    study = tw.create_study({"x": (0.0, 1.0)}, seed=0, storage=tmp_path / "runs.db")
    study.optimize(
        objective, len(KINDS) + 2, runner=ProcessRunner(1, grace=0.2), give_up_after=None
    )
    states = [trial.state for trial in tw.load_study(tmp_path / "runs.db").trials]
    assert states == [State.FAILED] * len(KINDS) + [State.FINISHED] * 2
    assert tw.replay(tw.load_study(tmp_path / "runs.db")).identical
    assert tw.repair(tmp_path / "runs.db").original is None


# ---- what workers do to their clocks, and while nobody looks ----


def test_the_clocks_of_a_worker_are_not_asked_for_how_long_a_trial_runs(opened: Open) -> None:
    def objective(run: Run) -> float:
        if run.number == 1:
            time.sleep(600)
        time.monotonic = time.perf_counter = lambda: float("nan")
        return 1.0

    workers = opened(objective, timeout=0.5)
    first, second = (the_one(workers, number=number) for number in (0, 1))
    assert isinstance(first.result, Failure)
    assert "cost must be" in first.result.error or "finite" in first.result.error
    assert first.usage is not None
    assert 0.0 <= first.usage.wall < 60.0
    assert isinstance(second.result, Failure)
    assert "may take 0.5 seconds" in second.result.error


def test_a_worker_that_never_takes_the_next_trial_is_replaced(opened: Open) -> None:
    class Blocking:
        def __init__(self) -> None:
            self.cycle = self

        def __del__(self) -> None:
            time.sleep(600)

    def objective(run: Run) -> float:
        gc.disable()
        if run.number == 0:
            Blocking()
        return float(os.getpid())

    workers = opened(objective, timeout=0.5)
    first, second, third = (the_one(workers, number=number).result for number in (0, 1, 1))
    assert isinstance(second, Lost)
    assert "did not begin the trial within 0.5 seconds" in second.reason
    assert isinstance(first, Outcome)
    assert isinstance(third, Outcome)
    assert first.value != third.value


class Arriving:
    """An objective that is slow to load, unless there is a file."""

    def __init__(self, quick: Any) -> None:
        self.quick = quick

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state
        if not self.quick.exists():
            time.sleep(600)

    def __call__(self, run: Run) -> float:
        os._exit(1)


def test_a_worker_that_never_starts_is_given_up(
    opened: Open, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "quick").touch()
    workers = opened(Arriving(tmp_path / "quick"), timeout=0.3)
    assert isinstance(the_one(workers).result, Failure)
    (tmp_path / "quick").unlink()
    monkeypatch.setattr(slot, "_START", 0.5)
    result = the_one(workers).result
    assert isinstance(result, Lost)
    assert "did not begin the trial within 0.5 seconds" in result.reason
