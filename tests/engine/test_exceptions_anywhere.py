"""An exception may arrive anywhere in `ask` and `tell`, as Ctrl-C does. The session stays usable by
other threads, and the log stays whole."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.inject import in_another_thread, reaches
from tests.studies import check_whole, created, drive
from tradewind.engine.session import Session
from tradewind.log.memory import MemoryLog
from tradewind.log.sqlite import SqliteStore
from tradewind.log.state import StudyState
from tradewind.types import Outcome

GOOD = Outcome(0.5)
STEP = {"memory": 5, "sqlite": 41}


@pytest.fixture(params=STEP)
def sessions(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[int, Session]]:
    """The instruction at which an exception shall arrive, and a new session with a few trials."""

    def made() -> Iterator[tuple[int, Session]]:
        for at in count(0, STEP[request.param]):
            log = MemoryLog()
            if request.param == "sqlite":
                log = SqliteStore(tmp_path / f"{at}.db").create("study", created())
            session = drive(log)
            for _ in range(2):
                session.finish(session.ask().number, GOOD)
            yield at, session

    return made()


def use(session: Session) -> int:
    """Ask for a trial, report on it, and return its number."""
    return session.finish(session.ask().number, GOOD).number


@pytest.mark.slow
def test_a_session_can_be_used_wherever_an_exception_has_arrived_in_ask(
    sessions: Iterator[tuple[int, Session]],
) -> None:
    for at, session in sessions:
        if not reaches(lambda: session.ask(lease=60.0), at):  # noqa: B023
            break
        assert in_another_thread(lambda: use(session)) in (2, 3)  # noqa: B023
        check_whole(session.log, [0, 1])
        assert StudyState.of(session.log.read(0)).trials == session.read_state().trials
    assert at > 1000


@pytest.mark.slow
def test_a_result_is_there_once_or_not_at_all_wherever_an_exception_has_arrived(
    sessions: Iterator[tuple[int, Session]],
) -> None:
    for at, session in sessions:
        number = session.ask().number
        if not reaches(lambda: session.finish(number, GOOD), at):  # noqa: B023
            break
        if not in_another_thread(lambda: session.trial(number)).finished:  # noqa: B023
            in_another_thread(lambda: session.finish(number, GOOD))  # noqa: B023
        assert in_another_thread(lambda: use(session)) == number + 1  # noqa: B023
        check_whole(session.log, [*range(number + 2)])
        assert all(trial.finished for trial in session.trials())
    assert at > 300
