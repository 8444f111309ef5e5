"""Whatever an objective raises, however odd, costs its trial alone and is recorded as readable text
of bounded length: in this process, in worker processes and in simulations."""

from __future__ import annotations

import gc
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

import tradewind as tw
from tests.studies import create, score
from tradewind.errors import TrialFailed
from tradewind.runners import ProcessRunner, SerialRunner
from tradewind.runners.simulated import SimulatedRunner
from tradewind.types import State

LONGEST = 10_000  # characters


class Refusing(Exception):
    """An exception that does not cooperate."""

    def _refuse(self, *args: object) -> NoReturn:
        raise SystemExit("no")


class Unprintable(Refusing):
    __str__ = __repr__ = Refusing._refuse


class Unpicklable(Refusing):
    __reduce__ = __reduce_ex__ = Refusing._refuse  # type: ignore[assignment]


class WithoutNotes(Refusing):
    add_note = Refusing._refuse


class WithoutClass(Refusing):
    __class__ = property(Refusing._refuse)  # type: ignore[assignment]


class WithoutAttributes(Refusing):
    __getattribute__ = Refusing._refuse


class Breaking:
    """A stream that cannot be used."""

    def write(self, text: str) -> NoReturn:
        raise GeneratorExit("no")

    flush = isatty = write


def nested(depth: int) -> BaseException:
    error: BaseException = ValueError("the innermost")
    for _ in range(depth):
        error = BaseExceptionGroup("around it", [error])
    return error


def chained(length: int) -> BaseException:
    error = ValueError("the first")
    for i in range(length):
        later = ValueError(f"number {i}")
        later.__cause__, error = error, later
    return error


def cyclic() -> BaseException:
    error, other = ValueError("one"), ValueError("the other")
    error.__cause__, other.__cause__ = other, error
    return error


def endless(n: int) -> int:
    return endless(n + 1)


def warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.warn("this is not good", UserWarning, stacklevel=1)


def break_streams(*streams: Any) -> NoReturn:
    sys.stdout, sys.stderr = streams
    raise ValueError("without a console")


def closed() -> Any:
    stream = open(os.devnull, "w")  # noqa: SIM115
    stream.close()
    return stream


def throw(error: BaseException) -> NoReturn:
    raise error


class Answer:
    def __float__(self) -> float:
        sys.exit(0)


class Kind(type):
    """The class of an exception that does not even tell its own name."""

    def __getattribute__(cls, name: str) -> NoReturn:
        raise SystemExit("no")


# What an objective does, and what its error must show.
ODD: dict[str, tuple[Callable[[], object], str]] = {
    "a syntax error": (
        lambda: throw(SyntaxError("bad", ("f", 3, object(), 5))),  # type: ignore[arg-type]
        "SyntaxError",
    ),
    "unprintable": (lambda: throw(Unprintable()), "Unprintable"),
    "unpicklable": (lambda: throw(Unpicklable("me")), "Unpicklable: me"),
    "without notes": (lambda: throw(WithoutNotes("me")), "WithoutNotes: me"),
    "without a class": (lambda: throw(WithoutClass("me")), "WithoutClass"),
    "without attributes": (lambda: throw(WithoutAttributes("me")), "WithoutAttributes"),
    "without a name": (
        lambda: throw(Kind("WithoutName", (Exception,), {})("me")),
        "cannot be described",
    ),
    "nested": (lambda: throw(nested(5_000)), "around it"),
    "chained": (lambda: throw(chained(10_000)), "number 9999"),
    "cyclic": (lambda: throw(cyclic()), "ValueError: one"),
    "recursion": (lambda: endless(0), "RecursionError"),
    "memory": (lambda: throw(MemoryError()), "MemoryError"),
    "exit": (lambda: sys.exit(0), "SystemExit: 0"),
    "exit with a text": (lambda: sys.exit("no data"), "SystemExit: no data"),
    "exit while the answer is read": (lambda: Answer(), "SystemExit: 0"),
    "generator exit": (lambda: throw(GeneratorExit()), "GeneratorExit"),
    "stop iteration": (lambda: next(iter(())), "StopIteration"),
    "a warning": (warn, "this is not good"),
    "a long text": (lambda: throw(ValueError("x" * 30_000_000)), "ValueError: xxx"),
    "a text that cannot be printed": (lambda: throw(ValueError("\ud800\0")), r"\ud800"),
    "no streams": (lambda: break_streams(None, None), "without a console"),
    "closed streams": (lambda: break_streams(closed(), closed()), "without a console"),
    "broken streams": (lambda: break_streams(Breaking(), Breaking()), "without a console"),
}


def check(trial: tw.Trial, shown: str) -> None:
    assert trial.state is State.FAILED
    assert trial.error is not None
    assert shown in trial.error
    assert len(trial.error) < LONGEST
    trial.error.encode()


@pytest.mark.parametrize("runner", [SerialRunner(), SimulatedRunner()], ids=["serial", "simulated"])
@pytest.mark.parametrize(("act", "shown"), ODD.values(), ids=ODD)
def test_an_odd_failure_in_this_process_costs_its_trial_alone(
    runner: Any, act: Callable[[], object], shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", sys.stdout)  # what the objective does is undone
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    study = create()
    study.optimize(lambda trial: act(), 3, runner=runner)
    monkeypatch.undo()
    gc.collect()
    assert len(study.trials) == 3
    for trial in study.trials:
        check(trial, shown)
    study.optimize(score, 1, runner=runner)
    assert study.trials[3].finished


@pytest.mark.parametrize("name", ["fingerprint", "clock"])
def test_an_odd_entry_in_a_run_costs_its_trial_alone(name: str, tmp_path: Path) -> None:
    def objective(trial: tw.Run) -> float:
        setattr(trial, name, 3 if trial.number else None)
        trial.timed = 1.0
        return 1.0

    study = create(storage=tmp_path / "runs.db")
    study.optimize(objective, 2)
    assert [trial.state for trial in study.trials] == [State.FINISHED, State.FAILED]
    assert "must be text, but got 3" in (study.trials[1].error or "")


@pytest.mark.slow
def test_an_odd_failure_in_a_worker_process_costs_its_trial_alone(tmp_path: Any) -> None:
    def objective(trial: Any) -> object:
        act, _ = list(ODD.values())[trial.number // 3]
        return act()

    study = create(storage=tmp_path / "runs.db")
    study.optimize(objective, 3 * len(ODD), runner=ProcessRunner(1), give_up_after=None)
    for number, (_, shown) in enumerate(ODD.values()):
        for trial in study.trials[3 * number : 3 * number + 3]:
            check(trial, shown)


@pytest.mark.slow
def test_a_worker_that_leaves_without_a_word_fails_its_trial() -> None:
    study = create()
    study.optimize(lambda trial: os._exit(0), 3, runner=ProcessRunner(1))
    for trial in study.trials:
        check(trial, "the worker process ended with exit code 0")


@pytest.mark.parametrize("error", [SystemExit(0), GeneratorExit()], ids=repr)
def test_an_exit_ends_a_search_with_an_error_if_errors_are_to_be_raised(
    error: BaseException,
) -> None:
    """Raised as it is, it would end the program without a word."""
    study = create()
    with pytest.raises(TrialFailed, match=type(error).__name__):
        study.optimize(lambda trial: throw(error), 3, on_error="raise")
    assert [trial.state for trial in study.trials] == [State.FAILED]


def test_reasons_that_users_give_are_bounded() -> None:
    study, reason = create(), "x" * 10**6
    failed, abandoned = study.fail(study.ask(), reason), study.abandon(study.ask(), reason)
    requeued = study.ask()
    study.requeue(requeued, reason)
    assert all(len(trial.error or "") < LONGEST for trial in (failed, abandoned))
    assert all(len(getattr(e, "reason", "")) < LONGEST for e in study._session.log.read(0))


def test_the_lines_about_failures_are_short(caplog: pytest.LogCaptureFixture) -> None:
    create().optimize(lambda trial: throw(ValueError("x" * 10**6)), 2, max_retries=1)
    assert len(caplog.messages) >= 3
    assert all(len(message) < 1000 for message in caplog.messages)
