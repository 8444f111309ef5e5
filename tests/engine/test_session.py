"""The driver: what it writes to a log, what it allows, and what it takes up again."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tradewind as tw
from tests.studies import Busy, Clock, created, drive, study_of
from tradewind.engine.session import LOSSES, Driver
from tradewind.errors import ConfigError, StorageError, TrialError
from tradewind.goals import Goal
from tradewind.log.events import (
    Abandoned,
    Claimed,
    Configured,
    Enqueued,
    Event,
    Failed,
    Finished,
    Proposed,
    Requeued,
    Started,
)
from tradewind.log.memory import MemoryLog
from tradewind.optimizer.history import History
from tradewind.strategies import Bayes, Design, RandomSearch
from tradewind.types import Origin, Outcome, Proposal, State, Trial

CLAIM = 300.0  # seconds that a claim is good for


class Scripted(RandomSearch):
    """A strategy that answers as it is told, or raises. All of them go by one name in a log."""

    def __init__(self, answer: Callable[[History], dict[str, Any] | BaseException]) -> None:
        object.__setattr__(self, "answer", answer)

    def propose(
        self, space: tw.Space, goal: Goal, history: History, *, rng: np.random.Generator
    ) -> Proposal:
        answer = self.answer(history)  # type: ignore[attr-defined]
        if isinstance(answer, BaseException):
            raise answer
        return Proposal(answer, Origin.DESIGN)


def always(answer: dict[str, Any] | BaseException) -> Scripted:
    return Scripted(lambda history: answer)


def at(x: float) -> Scripted:
    return always({"x": x, "k": 1})


class Interrupted:
    """A driver of a log that proposes x = 0.5, or further left if others run; and while it computes
    its first proposals, `others` come to pass, one after the other. `seen` is what it knew."""

    def __init__(self, log: MemoryLog, *others: Callable[[], object]) -> None:
        self.others, self.seen = list(others), list[History]()
        self.driver = drive(log, strategy=Scripted(self._answer))

    def _answer(self, history: History) -> dict[str, Any]:
        self.seen.append(history)
        if self.others:
            self.others.pop(0)()
        return {"x": 0.5 - 0.125 * len(history.pending), "k": 1}


class Afterwards(MemoryLog):
    """A log that lets something happen right after its next append."""

    then: Callable[[], object] | None = None

    def append(self, events: Sequence[Event], *, expected: int | None = None) -> int:
        length = super().append(events, expected=expected)
        then, self.then = self.then, None
        if then is not None:
            then()
        return length


def since(log: MemoryLog) -> list[Event]:
    """All events but the first."""
    return list(log.read(1))


def name_of(driver: Driver) -> str:
    """Under which it writes."""
    return driver._id


# ---- asking ----


def test_numbers_count_from_zero_without_a_gap() -> None:
    driver = drive()
    assert [driver.ask().number for _ in range(5)] == [0, 1, 2, 3, 4]


def test_a_trial_is_claimed_and_then_proposed_from_what_was_seen_and_started() -> None:
    log = MemoryLog()
    driver = drive(log, clock=lambda: 7.0)
    trial, who = driver.ask(), name_of(driver)
    assert since(log) == [
        Claimed(0, who),
        Proposed(0, dict(trial.params), Origin.DESIGN, seen=2, handover={}),
        Started(0, who, leased=False, at=7.0),
    ]
    assert (trial.state, trial.started) == (State.RUNNING, 7.0)


def test_a_trial_that_is_asked_for_later_waits_for_its_start() -> None:
    log = MemoryLog()
    driver = drive(log, clock=lambda: 7.0)
    assert driver.ask(start=False, lease=60.0).state is State.WAITING
    assert [type(e) for e in since(log)] == [Claimed, Proposed]
    assert driver.start(0, leased=True).state is State.RUNNING
    assert since(log)[-1] == Started(0, name_of(driver), leased=True, at=7.0)


def test_a_queued_trial_is_claimed_and_proposed_in_one_piece() -> None:
    log = MemoryLog()
    driver = drive(log)
    driver.enqueue({"x": 0.5, "k": 3})
    driver.ask()
    who = name_of(driver)
    assert since(log) == [
        Enqueued({"x": 0.5, "k": 3}),
        Claimed(0, who, enqueued=0),
        Proposed(0, {"x": 0.5, "k": 3}, Origin.ENQUEUED, seen=2),
        Started(0, who, leased=False, at=0.0),
    ]


def test_what_is_enqueued_is_complete_and_in_plain_values() -> None:
    log = MemoryLog()
    drive(log).enqueue({"x": np.float32(0.5)})
    (event,) = since(log)
    assert isinstance(event, Enqueued)
    assert {name: type(value) for name, value in event.params.items()} == {"x": float, "k": int}


def test_an_added_trial_is_written_in_one_piece() -> None:
    log = MemoryLog()
    drive(log).add({"x": 0.5, "k": 3}, Outcome(1.0))
    assert [type(e) for e in since(log)] == [Claimed, Proposed, Finished]


def test_the_cost_to_stay_within_is_recorded_with_the_proposal() -> None:
    log = MemoryLog()
    driver = drive(log)
    driver.ask(max_cost=3.0)
    driver.enqueue({})
    driver.ask(max_cost=2.0)
    assert [e.max_cost for e in since(log) if isinstance(e, Proposed)] == [3.0, 2.0]


def test_a_model_proposes_what_it_expects_to_stay_within_a_cost() -> None:
    driver = drive(strategy=Bayes(design=Design(4)))
    for i in range(10):  # good here and there, and the dearer the further right: 1 to 1000
        driver.add({"x": i / 9, "k": 1}, Outcome(7 * i % 10 / 10, cost=10.0 ** (i / 3)))
    free, tied = driver.ask(), [driver.ask(max_cost=limit) for limit in (5.0, 50.0)]
    assert free.expected_cost is None  # nobody asked what anything costs
    assert [t.expected_cost is not None and t.expected_cost <= 50.0 for t in tied] == [True, True]
    assert tied[0].expected_cost <= 5.0  # type: ignore[operator]


def test_changing_a_trial_that_was_given_changes_nothing() -> None:
    driver = drive()
    params = dict(driver.ask().params)
    for trial in (
        driver.trial(0),
        driver.trials()[0],
        driver.state()[0][0],
        driver.add(params, Outcome(1.0)),
    ):
        trial.params.clear()  # type: ignore[attr-defined]
    assert [dict(t.params) for t in driver.trials()] == [params, params]


@pytest.mark.parametrize("error", [ValueError("broken"), KeyboardInterrupt()])
def test_a_strategy_that_raises_leaves_a_study_that_goes_on_under_the_same_number(
    error: BaseException,
) -> None:
    driver = drive(strategy=always(error))
    with pytest.raises(type(error)):
        driver.ask()
    assert driver.trials() == []
    driver.strategy = RandomSearch()
    trial = driver.ask()
    assert (trial.number, trial.state) == (0, State.RUNNING)


@pytest.mark.parametrize(
    "config", [{"x": 2.0, "k": 1}, {"x": 0.5}, {"x": 0.5, "k": 1, "z": 1}, {"x": "a", "k": 1}]
)
def test_a_proposal_outside_the_space_is_refused_before_it_is_written(
    config: dict[str, Any],
) -> None:
    log = MemoryLog()
    driver = drive(log, strategy=always(config))
    with pytest.raises(ConfigError):
        driver.ask()
    assert [type(e) for e in since(log)] == [Claimed]
    driver.strategy = RandomSearch()
    assert driver.ask().number == 0


def test_a_proposal_may_be_in_numpy_values() -> None:
    trial = drive(strategy=always({"x": np.float64(0.5), "k": np.int64(2)})).ask()
    assert trial.params == {"x": 0.5, "k": 2}
    assert type(trial.params["x"]) is float


# ---- what may become of a trial ----


def finish(driver: Driver, number: int = 0) -> Trial:
    return driver.finish(number, Outcome(1.0, 2.0))


def fail(driver: Driver, number: int = 0) -> Trial:
    return driver.fail(number, "boom")


def abandon(driver: Driver, number: int = 0) -> Trial:
    return driver.abandon(number, "enough")


def requeue(driver: Driver, number: int = 0) -> Trial:
    return driver.requeue(number, "again")


ENDS: dict[str, tuple[Callable[..., Trial], State]] = {
    "finish": (finish, State.FINISHED),
    "fail": (fail, State.FAILED),
    "abandon": (abandon, State.ABANDONED),
    "requeue": (requeue, State.WAITING),
}
BEFORE: dict[str, Callable[[Driver], object]] = {
    "waiting": lambda driver: driver.ask(start=False),
    "running": lambda driver: driver.ask(),
    "given back": lambda driver: requeue(driver, driver.ask().number),
    "finished": lambda driver: finish(driver, driver.ask().number),
    "failed": lambda driver: fail(driver, driver.ask().number),
    "abandoned": lambda driver: abandon(driver, driver.ask().number),
}
# what has ended is over, but what was given up may show something after all, once
REFUSED = {
    *((before, "finish") for before in ("finished", "failed")),
    *(
        (before, end)
        for before in ("finished", "failed", "abandoned")
        for end in ("fail", "abandon", "requeue")
    ),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("by", ["the same driver", "another"])
def test_a_trial_ends_once(before: str, end: str, by: str) -> None:
    log = MemoryLog()
    driver = drive(log)
    BEFORE[before](driver)
    other = driver if by == "the same driver" else drive(log)
    told, length = driver.trial(0), len(log.read(0))
    act, state = ENDS[end]
    if (before, end) in REFUSED:
        with pytest.raises(TrialError, match=f"told once, but trial 0 is already {before}"):
            act(other)
        assert other.trials() == driver.trials() == [told]
        assert len(log.read(0)) == length
    else:
        assert act(other).state is state
        again = (before, end) == ("given back", "requeue")  # which says nothing new
        assert len(log.read(0)) == length + (not again)
        assert other.trials() == driver.trials()


@pytest.mark.parametrize("number", [1, -1, 99])
@pytest.mark.parametrize("end", ENDS)
def test_a_trial_that_was_never_asked_cannot_end(number: int, end: str) -> None:
    driver = drive()
    driver.ask()
    with pytest.raises(TrialError, match=f"no trial {number}"):
        ENDS[end][0](driver, number)


def test_a_claim_without_a_proposal_cannot_end() -> None:
    log = MemoryLog()
    driver = drive(log)
    log.append([Claimed(0, "slow")])
    with pytest.raises(TrialError, match="no trial 0"):
        finish(driver)


def test_a_failure_that_is_not_to_be_believed_is_written_so() -> None:
    log = MemoryLog()
    driver = drive(log)
    driver.ask()
    driver.fail(0, "boom", 3.0, penalize=False)
    event = since(log)[-1]
    assert event == Failed(0, "boom", 3.0, penalize=False, at=0.0)
    assert len(driver.state()[1].failed) == 0


def test_what_went_back_to_the_queue_comes_first_and_before_what_was_enqueued() -> None:
    driver = drive()
    first, second = driver.ask(), driver.ask()
    driver.enqueue({"x": 0.5, "k": 3})
    requeue(driver, second.number)
    requeue(driver, first.number)
    asked = [driver.ask() for _ in range(3)]
    assert [t.number for t in asked] == [0, 1, 2]
    assert [t.params for t in asked[:2]] == [first.params, second.params]
    assert [t.retries for t in asked] == [1, 1, 0]
    assert asked[2].origin is Origin.ENQUEUED


def test_a_requeue_that_does_not_count_is_no_retry() -> None:
    driver = drive()
    driver.ask()
    assert driver.requeue(0, "not begun", retry=False).retries == 0


def test_a_trial_that_was_given_back_cannot_be_started_by_who_had_it() -> None:
    log = MemoryLog()
    driver = drive(log)
    driver.ask(start=False, lease=60.0)
    requeue(drive(log))
    with pytest.raises(TrialError, match="trial 0 has gone back to the queue meanwhile"):
        driver.start(0, leased=True)


# ---- leases ----


def after_a_loss(lease: float = 60.0, **options: Any) -> tuple[MemoryLog, Clock, Driver]:
    """A log in which a driver that is no more has asked for a trial, whose lease is over."""
    clock = Clock()
    log = MemoryLog(clock=clock)
    drive(log).ask(lease=lease, **options)
    clock.now += lease + 1.0
    return log, clock, drive(log)


def test_a_leased_trial_is_left_alone_while_its_lease_stands() -> None:
    clock = Clock()
    log = MemoryLog(clock=clock)
    drive(log).ask(lease=60.0)
    clock.now += 59.0
    assert drive(log).ask().number == 1


def test_a_trial_whose_lease_is_over_goes_back_to_the_queue_and_that_counts() -> None:
    log, _, driver = after_a_loss()
    trial = driver.ask(lease=60.0)
    assert (trial.number, trial.retries, trial.losses) == (0, 1, 1)
    assert trial.state is State.RUNNING
    assert Requeued(0, "its driver ended while it ran", lost=True) in since(log)


def test_a_trial_that_waited_for_its_start_goes_back_and_that_does_not_count() -> None:
    log, _, driver = after_a_loss(start=False)
    trial = driver.ask()
    assert (trial.number, trial.retries, trial.losses) == (0, 0, 0)
    assert Requeued(0, "its driver ended before it began", retry=False) in since(log)


def test_a_trial_without_a_lease_is_never_taken_away() -> None:
    clock = Clock()
    log = MemoryLog(clock=clock)
    drive(log).ask()
    clock.now += 1e9
    assert drive(log).ask().number == 1


def test_a_trial_that_is_lost_again_and_again_is_abandoned() -> None:
    log, clock, driver = after_a_loss()
    for losses in range(1, LOSSES + 1):
        trial = driver.ask(lease=60.0)
        assert (trial.number, trial.losses) == (0, losses)
        clock.now += 61.0
        driver = drive(log)
    assert driver.ask().number == 1
    lost = driver.trial(0)
    assert (lost.state, lost.losses) == (State.ABANDONED, LOSSES)
    assert lost.error == "its driver ended while it ran, 4 times"
    assert sum(isinstance(e, Abandoned) for e in since(log)) == 1


def test_what_waits_is_given_back_as_often_as_it_takes() -> None:
    log, clock, driver = after_a_loss(start=False)
    for _ in range(2 * LOSSES):
        assert driver.ask(lease=60.0, start=False).number == 0
        clock.now += 61.0
        driver = drive(log)
    assert driver.ask().retries == 0


def test_a_driver_takes_its_own_trial_up_again_when_its_lease_is_over() -> None:
    """As a server that hands trials to workers elsewhere must."""
    clock = Clock()
    driver = drive(MemoryLog(clock=clock))
    driver.ask(lease=60.0)
    clock.now += 61.0
    trial = driver.ask(lease=60.0)
    assert (trial.number, trial.retries) == (0, 1)


def test_a_lease_counts_from_when_the_trial_is_given_however_long_that_took() -> None:
    clock = Clock()
    log = MemoryLog(clock=clock)

    def slow(history: History) -> dict[str, Any]:
        clock.now += 50.0
        return {"x": 0.5, "k": 1}

    drive(log, strategy=Scripted(slow)).ask(lease=60.0)
    clock.now += 50.0
    other = drive(log, strategy=at(0.9))
    assert other.ask().number == 1
    clock.now += 20.0
    assert other.ask().number == 0


def test_a_beat_renews_a_lease() -> None:
    clock = Clock()
    log = MemoryLog(clock=clock)
    driver = drive(log)
    driver.ask(lease=60.0)
    for _ in range(3):
        clock.now += 50.0
        driver.beat(0, 60.0)
    clock.now += 50.0
    assert drive(log).ask().number == 1
    clock.now += 11.0
    assert drive(log).ask().number == 0


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("taken", ["waiting", "running elsewhere"])
def test_the_late_word_of_a_driver_that_was_thought_dead_is_heard(taken: str, end: str) -> None:
    clock = Clock()
    log = MemoryLog(clock=clock)
    late = drive(log)
    late.ask(lease=60.0)
    clock.now += 61.0
    other = drive(log)
    if taken == "waiting":
        other._recover()
    else:
        other.ask(lease=60.0)
    act, state = ENDS[end]
    assert act(late).state is state
    assert len(drive(log).trials()) == 1


def test_of_two_results_of_one_trial_the_first_counts_and_the_second_is_refused() -> None:
    log, _, driver = after_a_loss()
    late = drive(log)
    driver.ask(lease=60.0)
    late.finish(0, Outcome(0.25))
    with pytest.raises(TrialError, match="already finished"):
        driver.finish(0, Outcome(0.75))
    assert driver.trial(0).value == 0.25


def test_what_a_loop_is_at_work_on_is_its_own_though_no_beat_came_through() -> None:
    clock = Clock()
    log = MemoryLog(clock=clock)
    driver = drive(log)
    driver.working.add(driver.ask(lease=60.0).number)
    clock.now += 61.0
    assert driver.ask().number == 1
    driver.working.clear()
    assert driver.ask().number == 0


# ---- claims ----


def test_a_claim_whose_driver_died_is_taken_over_under_the_same_number() -> None:
    clock = Clock()
    log = MemoryLog(clock=clock)
    driver = drive(log)
    log.append([Claimed(0, "dead")])
    log.beat([0], CLAIM)
    assert driver.ask().number == 1
    clock.now += CLAIM + 1.0
    assert [driver.ask().number for _ in range(2)] == [0, 2]
    assert [t.number for t in driver.trials()] == [0, 1, 2]


def test_a_proposal_of_a_taken_over_claim_is_the_one_its_number_implies() -> None:
    clock = Clock()
    log = MemoryLog(clock=clock)
    log.append([created(), Claimed(0, "dead")])
    assert drive(log).ask().params == drive().ask().params


def test_a_slow_driver_whose_claim_was_taken_over_starts_again_under_the_next_number() -> None:
    clock = Clock()
    log = MemoryLog(clock=clock)
    others: list[Trial] = []

    def overtake() -> None:
        clock.now += CLAIM + 1.0
        others.append(quick.ask())

    slow = Interrupted(log, overtake).driver
    quick = drive(log, strategy=at(0.9))
    mine = slow.ask()
    assert (others[0].number, mine.number) == (0, 1)
    assert [t.number for t in quick.trials()] == [0, 1]
    claims = [(e.number, e.driver) for e in since(log) if isinstance(e, Claimed)]
    assert claims == [(0, name_of(slow)), (0, name_of(quick)), (1, name_of(slow))]


def test_a_claim_that_is_taken_over_before_it_looks_again_is_not_its_own() -> None:
    clock = Clock()
    log = Afterwards(clock=clock)
    slow, quick = drive(log), drive(log)
    others: list[Trial] = []

    def overtake() -> None:
        clock.now += CLAIM + 1.0
        others.append(quick.ask())

    log.then = overtake
    mine = slow.ask()
    assert (others[0].number, mine.number) == (0, 1)


def test_a_driver_that_was_overtaken_claims_the_next_number() -> None:
    log = Busy()
    driver = drive(log)
    log.beat([0, 1], CLAIM)
    log.others = [Claimed(0, "other"), Claimed(1, "other")]
    assert driver.ask().number == 2


def test_a_driver_that_was_overtaken_adds_under_the_next_number() -> None:
    log = Busy()
    driver = drive(log)
    log.others = [Claimed(0, "other")]
    assert driver.add({"x": 0.5, "k": 1}, Outcome(1.0)).number == 1


def test_a_driver_that_was_overtaken_completes_what_it_enqueues_by_its_place() -> None:
    log, plain = Busy(), drive()
    driver = drive(log)
    log.others = [Enqueued({"x": 0.5, "k": 1})]
    driver.enqueue({})
    for _ in range(2):
        plain.enqueue({})
    assert since(log)[1] == since(plain.log)[1]  # type: ignore[arg-type]


def test_of_two_drivers_that_tell_a_trial_the_second_is_refused() -> None:
    log = Busy()
    driver = drive(log)
    driver.ask()
    log.others = [Failed(0, "by another")]
    with pytest.raises(TrialError, match="told once"):
        driver.finish(0, Outcome(1.0))
    assert driver.trials()[0].error == "by another"


def test_of_two_drivers_that_see_a_loss_one_writes_it_down() -> None:
    clock = Clock()
    log = Busy(clock=clock)
    drive(log).ask(lease=60.0)
    clock.now += 61.0
    driver = drive(log)
    log.others = [Requeued(0, "by another")]
    assert driver.ask().retries == 1
    assert sum(isinstance(e, Requeued) for e in since(log)) == 1


def test_of_two_drivers_that_take_from_the_queue_each_gets_its_own() -> None:
    log = Afterwards()
    a, b = drive(log), drive(log)
    for x in (0.25, 0.75):
        a.enqueue({"x": x, "k": 1})
    others: list[Trial] = []
    log.then = lambda: others.append(b.ask())
    assert (a.ask().params["x"], others[0].params["x"]) == (0.25, 0.75)


# ---- nearly the same point ----


def test_a_proposal_is_kept_when_another_driver_wrote_meanwhile() -> None:
    log = MemoryLog()
    mine = Interrupted(log, lambda: other.ask())
    other = drive(log, strategy=at(0.9))
    trial = mine.driver.ask()
    proposed = {e.number: e for e in since(log) if isinstance(e, Proposed)}
    assert len(mine.seen) == 1
    assert (trial.number, proposed[0].seen, trial.params["x"]) == (0, 2, 0.5)
    assert proposed[1].params["x"] == 0.9


def test_a_proposal_that_another_driver_made_meanwhile_is_computed_anew() -> None:
    log = MemoryLog()
    mine = Interrupted(log, lambda: other.ask())
    other = drive(log, strategy=at(0.501))
    trial = mine.driver.ask()
    positions = {e.number: i for i, e in enumerate(log.read(0)) if isinstance(e, Proposed)}
    proposed = log.read(0)[positions[0]]
    assert isinstance(proposed, Proposed)
    assert [len(h.pending) for h in mine.seen] == [0, 1]
    assert trial.params["x"] == 0.375
    assert proposed.seen > positions[1]


def test_a_space_in_which_all_points_are_alike_does_not_keep_a_driver_for_ever() -> None:
    log, asked = MemoryLog(), []

    def answer(history: History) -> dict[str, Any]:
        asked.append(other.ask())
        return {"x": 0.5, "k": 1}

    driver = drive(log, strategy=Scripted(answer))
    other = drive(log, strategy=at(0.5))
    assert driver.ask().params == {"x": 0.5, "k": 1}
    assert 2 <= len(asked) < 50


# ---- configuring ----


class Own(RandomSearch):
    """A strategy that is not in the store."""


TRADEOFF = tw.Tradeoff(alpha=0.3)


def test_another_driver_adopts_another_goal_and_strategy_when_it_asks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = MemoryLog()
    a, b = drive(log), drive(log)
    a.configure(goal=TRADEOFF, strategy=Bayes(design=Design(7)))
    assert (a.goal, a.strategy) == (TRADEOFF, Bayes(design=Design(7)))
    b.ask()
    assert (b.goal, b.strategy) == (a.goal, a.strategy)
    assert "another driver has changed the goal or the strategy" in caplog.text


def test_only_what_is_new_is_written() -> None:
    log = MemoryLog()
    driver = drive(log)
    driver.configure(goal=TRADEOFF, strategy=RandomSearch())
    driver.configure(goal=TRADEOFF, strategy=RandomSearch())
    driver.configure(goal=TRADEOFF, strategy=Own())
    assert since(log) == [
        Configured(goal={"type": "Tradeoff", "alpha": 0.3, "reference": None}),
        Configured(strategy={"given": f"{__name__}.Own"}),
    ]


def test_a_driver_with_another_goal_says_so_when_it_asks_and_not_before() -> None:
    log = MemoryLog()
    drive(log)
    driver = drive(log, goal=TRADEOFF)
    driver.trials()
    driver.state()
    assert since(log) == []
    driver.ask()
    driver.ask()
    assert [type(e) for e in since(log)].count(Configured) == 1
    assert isinstance(since(log)[0], Configured)


@pytest.mark.parametrize(
    ("before", "after"),
    [(RandomSearch(), Own()), (Own(), Bayes()), (Own(), always({"x": 0.5, "k": 1}))],
    ids=["to own", "from own", "own to own"],
)
def test_a_driver_goes_on_with_a_strategy_of_ones_own_or_from_one(before: Any, after: Any) -> None:
    log = MemoryLog()
    drive(log, strategy=before).ask()
    driver = drive(log, strategy=after)
    assert [driver.ask().number for _ in range(2)] == [1, 2]
    assert driver.strategy is after
    assert [type(e) for e in since(log)].count(Configured) == 1


def test_a_driver_without_the_new_strategy_says_which_it_needs() -> None:
    log = MemoryLog()
    a, b = drive(log), drive(log)
    a.configure(goal=tw.Quality(), strategy=Own())
    with pytest.raises(StorageError, match=r"tests\.test_driver\.Own"):
        b.ask()
    assert a.ask().state is State.RUNNING


def test_a_new_goal_counts_from_the_next_proposal_on() -> None:
    log = MemoryLog()
    driver = drive(log, strategy=Bayes(design=Design(4)))
    for i in range(6):
        driver.add({"x": i / 5, "k": 1}, Outcome(i / 5, cost=1.0 + i))
    first = driver.ask()
    driver.configure(goal=tw.Tradeoff(alpha=100.0, reference=1.0), strategy=driver.strategy)
    second = driver.ask()
    assert second.params["x"] < first.params["x"]  # type: ignore[operator]
    assert tw.replay(study_of(log)).identical


# ---- mine ----


@pytest.mark.parametrize("end", ["fail", "abandon", "requeue", "lose"])
def test_a_driver_says_nothing_bad_about_a_trial_that_is_with_another_by_now(end: str) -> None:
    clock = Clock()
    log = MemoryLog(clock=clock)
    late = drive(log)
    late.ask(lease=60.0)
    clock.now += 61.0
    other = drive(log)
    other.ask(lease=60.0)
    ends: dict[str, Callable[[], Trial]] = {
        "fail": lambda: late.fail(0, "boom", mine=True),
        "abandon": lambda: late.abandon(0, "enough", mine=True),
        "requeue": lambda: late.requeue(0, "again", mine=True),
        "lose": lambda: late.lose(0, "gone"),
    }
    with pytest.raises(TrialError, match="trial 0 is with another driver by now"):
        ends[end]()
    assert other.finish(0, Outcome(1.0)).finished


def test_losses_and_failures_are_counted_apart() -> None:
    driver = drive()
    driver.ask()
    driver.requeue(0, "failed")
    driver.ask()
    trial = driver.lose(0, "gone")
    assert (trial.state, trial.retries, trial.losses) == (State.WAITING, 2, 1)


def test_failures_do_not_make_a_loss_the_last_one() -> None:
    driver = drive()
    for _ in range(LOSSES + 1):
        driver.ask()
        driver.requeue(0, "failed")
    driver.ask()
    assert driver.lose(0, "gone").state is State.WAITING


def test_a_trial_that_is_lost_by_its_own_driver_again_and_again_is_abandoned() -> None:
    driver = drive()
    for losses in range(1, LOSSES + 1):
        driver.ask()
        assert driver.lose(0, "gone").losses == losses
    driver.ask()
    lost = driver.lose(0, "gone")
    assert (lost.state, lost.error) == (State.ABANDONED, "gone, 4 times")


def test_what_a_driver_declines_is_abandoned_if_it_was_its_own_idea_and_given_back_otherwise() -> (
    None
):
    driver = drive()
    driver.enqueue({"x": 0.5, "k": 3})
    enqueued = driver.ask(start=False)
    driver.decline(enqueued.number, "too dear")
    assert driver.trial(0).state is State.WAITING
    assert driver.ask().number == 0  # it is first in the queue again
    own = driver.ask(start=False)
    driver.decline(own.number, "too dear")
    assert (driver.trial(1).state, driver.trial(1).error) == (State.ABANDONED, "too dear")
    driver.requeue(0, "failed")
    tried = driver.ask(start=False)
    driver.decline(tried.number, "too dear")
    again = driver.trial(0)
    assert (again.state, again.retries) == (State.WAITING, 1)


def test_what_another_driver_has_by_now_cannot_be_declined() -> None:
    log = MemoryLog()
    driver, other = drive(log), drive(log)
    driver.ask(start=False)
    other.requeue(0, "mine")
    other.ask()
    driver.decline(0, "too dear")
    assert driver.trial(0).state is State.RUNNING


# ---- copies ----


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda d: pickle.loads(pickle.dumps(d))], ids=["copied", "pickled"]
)
def test_a_copy_is_another_driver(copied: Callable[[Driver], Driver]) -> None:
    driver = drive()
    driver.ask()
    other = copied(driver)
    other.ask()
    writers = [e.driver for e in other.log.read(0) if isinstance(e, Claimed)]
    assert len(set(writers)) == 2
    assert len(driver.trials()) == 1  # a log in memory is copied with it


def test_a_copy_is_not_at_work_on_what_the_original_is() -> None:
    clock = Clock()
    driver = drive(MemoryLog(clock=clock))
    driver.working.add(driver.ask(lease=60.0).number)
    other = copy.deepcopy(driver)
    clock.now += 61.0
    other.log._clock = clock  # type: ignore[attr-defined]
    assert (driver.ask().number, other.ask().number) == (1, 0)
