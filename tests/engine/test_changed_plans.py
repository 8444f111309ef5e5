"""The plan of a study: how a session changes its goal and strategy, and follows other drivers."""

from __future__ import annotations

from typing import Any

import pytest

import tradewind as tw
from tests.engine.scripted import at, since
from tests.studies import configure, drive, study_of
from tradewind.engine import plan
from tradewind.errors import StorageError
from tradewind.log.events import Configured
from tradewind.log.memory import MemoryLog
from tradewind.strategies import Bayes, Design, RandomSearch
from tradewind.types import Outcome, State

TRADEOFF = tw.Tradeoff(alpha=0.3)


class Own(RandomSearch):
    """A strategy that is not in the store."""


def test_another_session_takes_over_a_new_goal_and_strategy_when_it_asks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = MemoryLog()
    a, b = drive(log), drive(log)
    configure(a, goal=TRADEOFF, strategy=Bayes(design=Design(7)))
    assert (a.plan.goal, a.plan.strategy) == (TRADEOFF, Bayes(design=Design(7)))
    b.ask()
    assert (b.plan.goal, b.plan.strategy) == (TRADEOFF, Bayes(design=Design(7)))
    assert "the goal of this study is now: " + TRADEOFF.describe() in caplog.text
    assert "the strategy of this study is now: Bayes(" in caplog.text


def test_only_the_part_that_changed_is_said(caplog: pytest.LogCaptureFixture) -> None:
    log = MemoryLog()
    a, b = drive(log), drive(log)
    a.change_goal(TRADEOFF)
    b.ask()
    assert "the goal of this study is now" in caplog.text
    assert "strategy" not in caplog.text


def test_only_what_changed_is_written() -> None:
    log = MemoryLog()
    session = drive(log)
    configure(session, goal=TRADEOFF, strategy=RandomSearch())
    configure(session, goal=TRADEOFF, strategy=RandomSearch())
    configure(session, goal=TRADEOFF, strategy=Own())
    assert since(log) == [
        Configured(goal=plan.encode(TRADEOFF)),
        Configured(strategy={"given": f"{__name__}.Own"}),
    ]


def test_a_session_with_another_goal_writes_it_when_it_asks_and_not_before() -> None:
    log = MemoryLog()
    drive(log)
    session = drive(log, goal=TRADEOFF)
    session.trials()
    session.snapshot()
    assert since(log) == []
    session.ask()
    session.ask()
    assert [type(e) for e in since(log)].count(Configured) == 1
    assert isinstance(since(log)[0], Configured)


@pytest.mark.parametrize(
    ("before", "after"),
    [(RandomSearch(), Own()), (Own(), Bayes()), (Own(), at(0.5))],
    ids=["to own", "from own", "own to own"],
)
def test_a_study_can_change_to_a_strategy_of_the_user_and_back(before: Any, after: Any) -> None:
    log = MemoryLog()
    drive(log, strategy=before).ask()
    session = drive(log, strategy=after)
    assert [session.ask().number for _ in range(2)] == [1, 2]
    assert session.plan.strategy is after
    assert [type(e) for e in since(log)].count(Configured) == 1


def test_a_session_without_the_new_strategy_says_which_it_needs() -> None:
    log = MemoryLog()
    a, b = drive(log), drive(log)
    configure(a, goal=tw.Quality(), strategy=Own())
    with pytest.raises(StorageError, match=r"tests\.engine\.test_changed_plans\.Own"):
        b.ask()
    assert a.ask().state is State.RUNNING


def test_a_new_goal_counts_from_the_next_proposal_on() -> None:
    log = MemoryLog()
    session = drive(log, strategy=Bayes(design=Design(4)))
    for i in range(6):
        session.add({"x": i / 5, "k": 1}, Outcome(i / 5, cost=1.0 + i))
    first = session.ask()
    strategy = session.plan.strategy
    configure(session, goal=tw.Tradeoff(alpha=100.0, reference=1.0), strategy=strategy)
    second = session.ask()
    assert second.params["x"] < first.params["x"]  # type: ignore[operator]
    assert tw.replay(study_of(log)).identical


def test_going_back_to_the_plan_that_a_session_last_read_is_written() -> None:
    """What this session last read is not what the log says now."""
    log = MemoryLog()
    session, other = drive(log), drive(log)
    configure(other, goal=TRADEOFF, strategy=RandomSearch())
    configure(session, goal=tw.Quality(), strategy=RandomSearch())
    assert [type(e) for e in since(log)] == [Configured, Configured]
    session.ask()
    assert session.plan.goal == tw.Quality()


def test_a_plan_that_another_driver_wrote_first_is_not_written_again() -> None:
    log = MemoryLog()
    other = drive(log)
    session = drive(log, goal=TRADEOFF)  # new to the log, until the other driver writes it
    configure(other, goal=TRADEOFF, strategy=RandomSearch())
    session.ask()
    configure(other, goal=tw.Quality(), strategy=RandomSearch())
    session.ask()
    assert session.plan.goal == tw.Quality()
    assert [type(e) for e in since(log)].count(Configured) == 2
