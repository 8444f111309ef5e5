"""Whatever several sessions do, in every order in which they may get in each other's way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tradewind as tw
from tests.studies import Clock, check_whole, configure, drive, study_of
from tradewind.engine.contention import MAX_LOSSES
from tradewind.engine.steering import pause, record_spent, resume
from tradewind.errors import StudyPaused, TrialError
from tradewind.log.events import Event, Paused, Resumed, Started
from tradewind.log.memory import MemoryLog
from tradewind.log.state import StudyState
from tradewind.strategies import Bayes, Design, RandomSearch, Strategy
from tradewind.types import Outcome, State


class Crowded(MemoryLog):
    """A log in which others may act just before an append."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock=clock)
        self.waiting: list[Callable[[], None]] = []

    def append(self, events: Sequence[Event], **options: Any) -> int:
        waiting, self.waiting = self.waiting, []
        for act in waiting:
            act()
        return super().append(events, **options)


class World:
    """Several sessions on one log, and what they do."""

    def __init__(self, strategy: Strategy, sessions: int) -> None:
        self.clock = Clock()
        self.log = Crowded(self.clock)
        self.strategy = strategy
        self.sessions = [drive(self.log, strategy=strategy) for _ in range(sessions)]
        self.asked: list[int] = []

    def act(self, who: int, verb: str, x: int) -> None:
        session = self.sessions[who]
        number = x % (len(self.asked) + 1)
        try:
            match verb:
                case "ask":
                    self.asked.append(session.ask(max_cost=None if x % 2 else 5.0).number)
                case "lease":
                    self.asked.append(session.ask(lease=60.0).number)
                case "prepare":
                    self.asked.append(session.ask(lease=60.0, start=False).number)
                case "start":
                    session.start(number, leased=True)
                case "finish":
                    session.finish(number, Outcome(float(x), 1.0 + x))
                case "fail":
                    session.fail(number, "boom", penalize=bool(x % 2))
                case "abandon":
                    session.abandon(number, "enough")
                case "lose":
                    session.lose(number, "gone")
                case "decline" if number in {t.number for t in session.trials()}:
                    session.decline(number, "too dear")
                case "requeue":
                    session.requeue(number, "again", retry=bool(x % 2))
                case "enqueue":
                    session.enqueue({"x": x / 99})
                case "add":
                    added = session.add({"x": x / 99, "k": 1 + x % 9}, Outcome(float(x), 2.0))
                    self.asked.append(added.number)
                case "configure":
                    configure(session, goal=tw.Tradeoff(alpha=x / 99), strategy=self.strategy)
                case "change goal":
                    session.change_goal(tw.Tradeoff(alpha=x / 99))
                case "pause":
                    pause(session, str(x))
                case "resume":
                    resume(session)
                case "spend" if number in {t.number for t in session.trials()}:
                    record_spent(session, number, float(x))
                case "wait":
                    self.clock.now += (10.0, 61.0, 301.0)[x % 3]
                case "die":
                    self.sessions[who] = drive(self.log, strategy=self.strategy)
        except (TrialError, StudyPaused):
            pass  # it may be refused


VERBS = (
    *("ask", "ask", "lease", "lease", "prepare", "start", "finish", "finish", "finish"),
    *("fail", "abandon", "requeue", "lose", "decline", "enqueue", "add", "configure"),
    *("change goal", "pause", "resume", "resume", "spend"),
    *("wait", "wait", "die"),
)
acts = st.tuples(st.integers(0, 2), st.sampled_from(VERBS), st.integers(0, 99))
# An act, and what others do meanwhile.
histories = st.lists(st.tuples(acts, st.lists(acts, max_size=2)), max_size=25)


def played(strategy: Strategy, history: list[tuple[Any, list[Any]]]) -> World:
    world = World(strategy, 3)
    for (who, verb, x), meanwhile in history:
        world.log.waiting = [
            lambda act=act: world.act(*act)  # type: ignore[misc]
            for act in meanwhile
            if act[0] != who
        ]
        world.act(who, verb, x)
        world.log.waiting = []
    return world


@settings(max_examples=400)
@given(history=histories)
def test_the_log_is_whole_whatever_sessions_do_in_whatever_order(
    history: list[tuple[Any, list[Any]]],
) -> None:
    world = played(RandomSearch(), history)
    check_whole(world.log, world.asked)
    first, *others = [session.trials() for session in world.sessions]
    assert all(other == first for other in others)
    assert tw.replay(study_of(world.log)).identical


@settings(max_examples=50)
@given(history=histories)
def test_nothing_starts_between_a_pause_and_the_next_resumption(
    history: list[tuple[Any, list[Any]]],
) -> None:
    is_paused = False
    for event in played(RandomSearch(), history).log.read(0):
        assert not (is_paused and isinstance(event, Started))
        assert not (is_paused and isinstance(event, Paused))
        assert is_paused or not isinstance(event, Resumed)
        is_paused = isinstance(event, Paused) or (is_paused and not isinstance(event, Resumed))


@pytest.mark.slow
@settings(max_examples=25)
@given(history=histories)
def test_proposals_of_a_model_follow_from_the_log_whatever_sessions_do(
    history: list[tuple[Any, list[Any]]],
) -> None:
    world = played(Bayes(design=Design(2)), history)
    check_whole(world.log, world.asked)
    assert tw.replay(study_of(world.log)).identical


@settings(max_examples=25)
@given(history=histories)
def test_every_open_trial_is_taken_up_again_after_all_drivers_have_died(
    history: list[tuple[Any, list[Any]]],
) -> None:
    world = played(RandomSearch(), history)
    world.clock.now += 1000.0
    heir = drive(world.log)
    resume(heir)
    state = StudyState.of(world.log.read(0))
    unproposed = set(range(state.claims)) - set(state.trials)
    open_ones = (state.leased | state.returned | unproposed) - {
        n for n, t in state.trials.items() if t.state is State.RUNNING and t.losses >= MAX_LOSSES
    }
    queued = len(state.queue)
    asked = {heir.ask(lease=60.0).number for _ in range(len(open_ones) + queued)}
    assert open_ones <= asked
