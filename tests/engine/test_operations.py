"""How many operations on the store a trial costs. On a remote database each is a round trip."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.studies import created, drive, score, study_of
from tradewind.log.events import Event
from tradewind.log.log import Log
from tradewind.log.memory import MemoryLog
from tradewind.log.sqlite import SqliteStore
from tradewind.runners.serial import SerialRunner
from tradewind.strategies import Bayes, Design
from tradewind.types import Outcome

N = 10  # trials


class Counted:
    """A log that notes every operation."""

    def __init__(self, inner: Log) -> None:
        self.inner = inner
        self.operations: list[str] = []
        self.id, self.spool = inner.id, inner.spool

    def append(self, events: Sequence[Event], **options: Any) -> int:
        self.operations.append("append")
        return self.inner.append(events, **options)

    def read(self, after: int) -> Sequence[Event]:
        self.operations.append("read")
        return self.inner.read(after)

    def beat(self, trials: Sequence[int], seconds: float) -> Mapping[int, float]:
        self.operations.append("beat")
        return self.inner.beat(trials, seconds)


def in_memory(folder: Path) -> Log:
    log = MemoryLog()
    log.append([created()])
    return log


def in_a_file(folder: Path) -> Log:
    return SqliteStore(folder / "runs.db").create("study", created())


@pytest.fixture(params=[in_memory, in_a_file], ids=["memory", "SQLite"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Counted:
    make: Callable[[Path], Log] = request.param
    return Counted(make(tmp_path))


@pytest.mark.parametrize("strategy", [None, Bayes(design=Design(4))], ids=["random", "model"])
def test_a_trial_of_a_search_that_is_alone_costs_three_operations(
    log: Counted, strategy: Any
) -> None:
    study = study_of(log, strategy=strategy)
    study.optimize(score, n_trials=1, runner=SerialRunner(), show_progress=False)
    log.operations.clear()
    study.optimize(score, n_trials=N, runner=SerialRunner(), show_progress=False)
    assert log.operations == ["read", "append", "append"] * N


def test_an_ask_and_its_tell_cost_three_operations(log: Counted) -> None:
    study = study_of(log)
    log.operations.clear()
    for _ in range(N):
        study.tell(study.ask(), value=1.0, cost=1.0)
    assert log.operations == ["read", "append", "append"] * N


def test_a_report_is_appended_without_reading_the_log_first(log: Counted) -> None:
    session = drive(log)
    reports: list[Callable[[int], Any]] = [
        lambda number: session.finish(number, Outcome(1.0)),
        lambda number: session.fail(number, "boom"),
        lambda number: session.abandon(number, "enough"),
        lambda number: session.requeue(number, "again"),
    ]
    for report in reports:
        number = session.ask().number
        log.operations.clear()
        report(number)
        assert log.operations == ["append"]


def test_a_report_is_read_for_and_written_again_if_another_driver_wrote_meanwhile(
    log: Counted,
) -> None:
    session = drive(log)
    session.ask()
    drive(log).enqueue({})
    log.operations.clear()
    assert session.finish(0, Outcome(1.0)).finished
    assert log.operations == ["append", "read", "append"]


def test_a_search_with_a_limit_reads_all_trials_once(log: Counted) -> None:
    study = study_of(log)
    study.optimize(score, n_trials=1, runner=SerialRunner(), show_progress=False)
    log.operations.clear()
    study.optimize(score, n_trials=N, max_cost=1e9, runner=SerialRunner(), show_progress=False)
    assert len(log.operations) == 3 * N + 1
