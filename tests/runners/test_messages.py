"""What a worker says about a trial: data, checked as a log is, whatever it says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.runners.garbage import FORGED, ODD
from tests.runners.trials import trial
from tradewind.errors import OutcomeError, WorkerError
from tradewind.log.codec import as_stored
from tradewind.log.events import Failed, Finished
from tradewind.runners.apart import answer
from tradewind.runners.messages import checked, encode, read_answer, shorten, write_answer
from tradewind.runners.runner import Done, Failure, Lost, Stopped
from tradewind.types import Outcome, Usage

TRIAL = trial(0)
BIG = "x" * 32_000


class Odd:
    def __repr__(self) -> str:
        raise ValueError("no")


def stored(done: Done) -> Any:
    """What the log holds of a result, if it can end a trial."""
    match done.result:
        case Outcome() as outcome:
            return as_stored(Finished(0, outcome, done.usage))
        case Failure(error):
            return as_stored(Failed(0, shorten(error), usage=done.usage))
    return None


def read(data: bytes) -> Done:
    return read_answer(data.decode("utf-8", "surrogateescape"), TRIAL)


@pytest.mark.parametrize("data", FORGED.values(), ids=FORGED)
def test_what_is_no_answer_costs_its_trial(data: bytes) -> None:
    done = read(data)
    assert isinstance(done.result, Failure)
    assert done.result.error.startswith("the answer of its worker cannot be read: ")
    assert len(done.result.error) < 1_000
    assert stored(done)


def test_there_are_many_kinds_of_them() -> None:
    assert len(FORGED) >= 60


@pytest.mark.parametrize("data", ODD.values(), ids=ODD)
def test_an_odd_answer_is_taken_and_can_be_stored(data: bytes) -> None:
    done = read(data)
    assert "cannot be read" not in str(done.result)
    event = stored(done)
    assert event is None or event == as_stored(event)


@pytest.mark.parametrize("given", [None, b"{}", 1.0, [], {}, Odd()], ids=type)
def test_an_answer_that_is_no_text_costs_its_trial(given: object) -> None:
    assert isinstance(read_answer(given, TRIAL).result, Failure)


# ---- what comes of a result on its way ----


@pytest.mark.parametrize(
    "result", [Outcome(0.5, 1.0, (0.25, 0.75)), Failure("x", 2.0), Lost("x"), Stopped("x")], ids=str
)
def test_a_result_arrives_as_it_was(result: Any) -> None:
    done = Done(TRIAL, result, Usage(1.0, 0.5))
    assert read_answer(write_answer(done), TRIAL) == done
    assert checked(done) == done


def changed(outcome: Outcome, **fields: Any) -> Outcome:
    """An outcome that was made sound and changed since."""
    for name, value in fields.items():
        object.__setattr__(outcome, name, value)
    return outcome


@pytest.mark.parametrize(
    ("result", "usage"),
    [
        (Outcome(0.5, attributes={"log": BIG}), None),
        (Outcome(0.5, attributes={"model": object()}), None),
        (Outcome(0.5, attributes={1: "one"}), None),  # type: ignore[dict-item]
        (Outcome(0.5, attributes=["one"]), None),  # type: ignore[arg-type]
        (Outcome(0.5, attributes={"loss": float("nan")}), None),
        (Outcome(0.5, attributes={"code": 10**5_000}), None),
        (Outcome("0.5"), None),  # type: ignore[arg-type]
        (Outcome(True), None),
        (Outcome(0.5, cost="1"), None),  # type: ignore[arg-type]
        (Outcome(0.5, folds=("0.5",)), None),  # type: ignore[arg-type]
        (Outcome(0.5, costs={"money": "1"}), None),  # type: ignore[dict-item]
        (changed(Outcome(0.5), value=float("nan")), None),
        (changed(Outcome(0.5), folds=(0.5,) * 10_001), None),
        (Outcome(0.5), Usage(float("nan"))),
        (Outcome(0.5), Usage("1")),  # type: ignore[arg-type]
        (Outcome(0.5), Usage(1.0, device=None)),  # type: ignore[arg-type]
        (Outcome(0.5), Usage(1.0, device="x" * 2**20)),
        (Outcome(0.5), 1.0),
        (Outcome(0.5), Odd()),
        (0.5, None),
        (None, None),
        (Odd, None),
        (Failure(None), None),  # type: ignore[arg-type]
        (Failure("x", seconds=-1.0), None),
        (Failure("x", seconds=float("inf")), None),
        (Failure("x", kinds="builtins.ValueError"), None),  # type: ignore[arg-type]
        (Lost(None), None),  # type: ignore[arg-type]
        (Stopped(3), None),  # type: ignore[arg-type]
        (Stopped("x" * 2**20), None),
    ],
)
def test_what_no_log_can_hold_is_a_failure_with_a_reason(result: Any, usage: Any) -> None:
    done = checked(Done(TRIAL, result, usage))
    assert isinstance(done.result, Failure)
    assert "cannot be re" in done.result.error
    assert stored(done)


def test_an_exception_of_this_process_stays_with_its_failure() -> None:
    error = ValueError("x")
    done = checked(Done(TRIAL, Failure("y" * 10**6, raised=error)))
    assert isinstance(done.result, Failure)
    assert done.result.raised is error
    assert done.result.is_a(ValueError)
    assert len(done.result.error) < 10_000


NOBODYS = Done(replace(TRIAL, number=-1), Outcome(0.5))


@pytest.mark.parametrize("done", [None, Outcome(0.5), Done(0, Outcome(0.5)), NOBODYS], ids=str)  # type: ignore[arg-type]
def test_a_runner_must_say_which_trial_is_done(done: Any) -> None:
    with pytest.raises(WorkerError, match="a runner must return Done with a trial, but got"):
        checked(done)


def test_the_names_of_an_exception_are_bounded() -> None:
    kind = type("x" * 100_000, (ValueError,), {})
    for _ in range(200):
        kind = type("x", (kind,), {})
    done = read_answer(write_answer(Done(TRIAL, Failure("x", raised=kind("x")))), TRIAL)
    assert isinstance(done.result, Failure)
    assert done.result.is_a(ValueError)
    assert sum(map(len, done.result.kinds)) < 2**15


class Nameless(type):
    def __getattribute__(cls, name: str) -> Any:
        raise SystemExit("no")


def test_an_exception_without_a_name_is_a_failure_like_any_other() -> None:
    kind = Nameless("Nameless", (Exception,), {})
    done = read_answer(write_answer(Done(TRIAL, Failure("x", raised=kind("x")))), TRIAL)
    assert done.result == Failure("x")


# ---- clusters ----


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(3), WorkerError("x")], ids=repr)
def test_a_worker_of_a_cluster_returns_text_whatever_is_raised(error: BaseException) -> None:
    def evaluate(found: Any) -> Done:
        assert found == TRIAL
        raise error

    text = answer(encode(TRIAL), evaluate)
    assert type(text) is str
    result = read_answer(text, TRIAL).result
    assert isinstance(result, Failure)
    assert not result.is_a(BaseException)  # the objective has not raised it
    assert str(error) in result.error


# ---- what is written can be read ----


def test_an_outcome_that_was_changed_is_not_written() -> None:
    event = Finished(0, Outcome(0.5, attributes={"a": 1}))
    event.outcome.attributes["a"] = BIG  # type: ignore[index]
    with pytest.raises(OutcomeError, match="all attributes of a trial may take 32000 characters"):
        as_stored(event)
    with pytest.raises(OutcomeError, match="there may be up to 10000 folds"):
        as_stored(replace(event, outcome=changed(Outcome(0.5), folds=(0.5,) * 10_001)))
