"""Sessions that get in each other's way: lost leases, claims, and races for a number."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.scripted import ENDS, Afterwards, Interrupted, Scripted, always, at, row, since
from tests.studies import Busy, Clock, created, drive
from tradewind.engine import contention
from tradewind.engine.contention import CLAIM, MAX_LOSSES
from tradewind.engine.leases import renew_lease
from tradewind.engine.session import Session
from tradewind.errors import TrialError
from tradewind.log.events import (
    Abandoned,
    Claimed,
    Enqueued,
    Failed,
    Proposed,
    Requeued,
    Started,
)
from tradewind.log.memory import MemoryLog
from tradewind.optimizer.history import History
from tradewind.types import Array, Outcome, State, Trial

# ---- leases ----


def after_a_loss(lease: float = 60.0, **options: Any) -> tuple[MemoryLog, Clock, Session]:
    """A log in which a dead driver asked for a trial, whose lease has run out by now."""
    clock = Clock()
    log = MemoryLog(clock=clock)
    drive(log).ask(lease=lease, **options)
    clock.now += lease + 1.0
    return log, clock, drive(log)


def test_a_trial_is_not_taken_away_while_its_lease_lasts() -> None:
    clock = Clock()
    log = MemoryLog(clock=clock)
    drive(log).ask(lease=60.0)
    clock.now += 59.0
    assert drive(log).ask().number == 1


def test_a_running_trial_whose_lease_has_run_out_is_requeued_as_a_loss() -> None:
    log, _, session = after_a_loss()
    trial = session.ask(lease=60.0)
    assert (trial.number, trial.retries, trial.losses) == (0, 1, 1)
    assert trial.state is State.RUNNING
    assert Requeued(0, "its driver ended while it ran", lost=True) in since(log)


def test_a_waiting_trial_whose_lease_has_run_out_is_requeued_without_counting() -> None:
    log, _, session = after_a_loss(start=False)
    trial = session.ask()
    assert (trial.number, trial.retries, trial.losses) == (0, 0, 0)
    assert Requeued(0, "its driver ended before starting it", retry=False) in since(log)


def test_a_trial_without_a_lease_is_never_taken_away() -> None:
    clock = Clock()
    log = MemoryLog(clock=clock)
    drive(log).ask()
    clock.now += 1e9
    assert drive(log).ask().number == 1


def test_a_trial_that_is_lost_again_and_again_is_abandoned() -> None:
    log, clock, session = after_a_loss()
    for losses in range(1, MAX_LOSSES + 1):
        trial = session.ask(lease=60.0)
        assert (trial.number, trial.losses) == (0, losses)
        clock.now += 61.0
        session = drive(log)
    assert session.ask().number == 1
    lost = session.trial(0)
    assert (lost.state, lost.losses) == (State.ABANDONED, MAX_LOSSES)
    assert lost.error == "its driver ended while it ran, 4 times"
    assert sum(isinstance(e, Abandoned) for e in since(log)) == 1


def test_a_waiting_trial_may_be_requeued_any_number_of_times() -> None:
    log, clock, session = after_a_loss(start=False)
    for _ in range(2 * MAX_LOSSES):
        assert session.ask(lease=60.0, start=False).number == 0
        clock.now += 61.0
        session = drive(log)
    assert session.ask().retries == 0


def test_a_session_takes_its_own_trial_again_when_the_lease_has_run_out() -> None:
    """A server that hands trials to workers elsewhere needs this."""
    clock = Clock()
    session = drive(MemoryLog(clock=clock))
    session.ask(lease=60.0)
    clock.now += 61.0
    trial = session.ask(lease=60.0)
    assert (trial.number, trial.retries) == (0, 1)


@pytest.mark.parametrize("contested", [False, True], ids=["alone", "with another driver"])
def test_a_lease_begins_when_the_trial_is_returned_however_long_the_proposal_took(
    contested: bool,
) -> None:
    clock = Clock()
    log = MemoryLog(clock=clock)

    def slow(history: History) -> Array:
        clock.now += 50.0
        return row(0.5)

    other = drive(log, strategy=at(0.9))
    if contested:
        other.ask()
    number = drive(log, strategy=Scripted(slow)).ask(lease=60.0).number
    clock.now += 50.0
    assert other.ask().number == number + 1
    clock.now += 20.0
    assert other.ask().number == number


def test_a_claimed_trial_gets_its_lease_together_with_its_proposal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If Ctrl-C arrived in between, the long lease of the claim would remain."""
    clock = Clock()
    log = MemoryLog(clock=clock)
    drive(log).ask(lease=1000.0)  # another driver, so that numbers are claimed first
    session = drive(log)
    monkeypatch.setattr(session.log, "beat", lambda trials, seconds: {0: 1.0})
    trial = session.ask(lease=5.0)
    monkeypatch.undo()
    clock.now += 6.0
    assert trial.number == 1
    assert log.beat([], 0.0).keys() == {0}


def test_a_lease_can_be_renewed() -> None:
    clock = Clock()
    log = MemoryLog(clock=clock)
    session = drive(log)
    session.ask(lease=60.0)
    for _ in range(3):
        clock.now += 50.0
        renew_lease(session, 0, 60.0)
    clock.now += 50.0
    assert drive(log).ask().number == 1
    clock.now += 11.0
    assert drive(log).ask().number == 0


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("taken", ["waiting", "running elsewhere"])
def test_a_late_report_of_a_driver_that_was_thought_dead_is_accepted(taken: str, end: str) -> None:
    clock = Clock()
    log = MemoryLog(clock=clock)
    late = drive(log)
    late.ask(lease=60.0)
    clock.now += 61.0
    other = drive(log)
    if taken == "waiting":
        assert other.trials()
        assert contention.requeue(other, other.state, [0])
    else:
        other.ask(lease=60.0)
    act, state = ENDS[end]
    assert act(late).state is state
    assert len(drive(log).trials()) == 1


def test_the_first_of_two_results_counts_and_the_second_is_refused() -> None:
    log, _, session = after_a_loss()
    late = drive(log)
    session.ask(lease=60.0)
    late.finish(0, Outcome(0.25))
    with pytest.raises(TrialError, match="already finished"):
        session.finish(0, Outcome(0.75))
    assert session.trial(0).value == 0.25


def test_a_session_does_not_take_a_trial_that_it_holds_even_if_no_renewal_came_through() -> None:
    clock = Clock()
    log = MemoryLog(clock=clock)
    session = drive(log)
    session.ask(lease=60.0, keep=True)
    clock.now += 61.0
    assert session.ask().number == 1
    session.held.clear()
    assert session.ask().number == 0


def test_a_session_does_not_take_a_trial_that_it_holds_even_if_another_has_requeued_it() -> None:
    clock = Clock()
    log = MemoryLog(clock=clock)
    session, other = drive(log), drive(log)
    for _ in range(2):
        session.ask(lease=60.0, keep=True)
    clock.now += 61.0
    assert other.ask(lease=60.0).number == 0  # trial 1 is in the queue now
    assert session.ask_waiting(lease=60.0, keep=True, start=True) is None
    assert session.ask(lease=60.0, keep=True).number == 2
    assert session.finish(1, Outcome(0.5)).finished
    assert other.ask().number == 3


# ---- claims ----


def test_a_session_that_is_alone_writes_a_trial_in_one_append() -> None:
    log = Afterwards()
    session = drive(log)
    lengths: list[int] = []
    log.then = lambda: lengths.append(len(log.read(0)))
    session.ask()
    assert lengths == [4]  # after the first append, everything is there


def test_a_session_claims_first_if_another_driver_holds_a_trial() -> None:
    log = Afterwards()
    other, session = drive(log), drive(log)
    other.ask()
    written: list[list[type]] = []
    log.then = lambda: written.append([type(e) for e in log.read(4)])
    session.ask()
    assert written == [[Claimed]]
    assert [type(e) for e in log.read(4)] == [Claimed, Proposed, Started]
    proposed = log.read(5)[0]
    assert isinstance(proposed, Proposed)
    assert proposed.seen == 5  # with its own claim


@pytest.mark.parametrize("error", [ValueError("broken"), KeyboardInterrupt()])
def test_a_claim_whose_strategy_raised_is_taken_up_by_the_same_session(
    error: BaseException,
) -> None:
    log = MemoryLog()
    drive(log, strategy=at(0.9)).ask()
    answers = [error, row(0.5)]
    session = drive(log, strategy=Scripted(lambda history: answers.pop(0)))
    with pytest.raises(type(error)):
        session.ask(lease=60.0, keep=True)
    assert session.held == {}
    assert session.ask(lease=60.0, keep=True).number == 1
    assert list(session.held) == [1]


def test_a_claim_whose_driver_died_is_taken_over_under_the_same_number() -> None:
    clock = Clock()
    log = MemoryLog(clock=clock)
    session = drive(log)
    log.append([Claimed(0, "dead")])
    log.beat([0], CLAIM)
    assert session.ask().number == 1
    clock.now += CLAIM + 1.0
    assert [session.ask().number for _ in range(2)] == [0, 2]
    assert [t.number for t in session.trials()] == [0, 1, 2]


def test_a_taken_over_claim_is_proposed_as_its_number_implies() -> None:
    clock = Clock()
    log = MemoryLog(clock=clock)
    log.append([created(), Claimed(0, "dead")])
    assert drive(log).ask().params == drive().ask().params


def test_a_slow_session_whose_claim_was_taken_over_proposes_the_next_number() -> None:
    clock = Clock()
    log = MemoryLog(clock=clock)
    others: list[Trial] = []

    def overtake() -> None:
        clock.now += CLAIM + 1.0
        others.append(quick.ask())

    quick = drive(log, strategy=at(0.9))
    quick.ask()
    slow = Interrupted(log, overtake).session
    mine = slow.ask()
    assert (others[0].number, mine.number) == (1, 2)
    assert [t.number for t in quick.trials()] == [0, 1, 2]
    claims = [(e.number, e.driver) for e in since(log) if isinstance(e, Claimed)]
    assert claims == [(0, quick.id), (1, slow.id), (1, quick.id), (2, slow.id)]


def test_a_claim_that_was_taken_over_right_after_it_was_written_is_not_proposed() -> None:
    clock = Clock()
    log = Afterwards(clock=clock)
    slow, quick = drive(log), drive(log)
    quick.ask()
    others: list[Trial] = []

    def overtake() -> None:
        clock.now += CLAIM + 1.0
        others.append(quick.ask())

    log.then = overtake
    mine = slow.ask()
    assert (others[0].number, mine.number) == (1, 2)


# ---- races ----


def test_a_session_that_lost_a_race_for_a_number_proposes_again_under_the_next() -> None:
    log = MemoryLog()
    mine = Interrupted(log, lambda: other.ask())
    other = drive(log, strategy=at(0.9))
    trial = mine.session.ask()
    assert trial.number == 1
    assert [h.number for h in mine.seen] == [0, 1]
    assert [len(h.pending) for h in mine.seen] == [0, 1]
    assert [e.number for e in since(log) if isinstance(e, Proposed)] == [0, 1]


def test_a_session_that_lost_a_race_claims_first_so_that_it_cannot_lose_forever() -> None:
    log, calls = MemoryLog(), []

    def answer(history: History) -> Array:
        calls.append(history.number)
        assert len(calls) < 20, "the session proposes again and again"
        other.add({"x": 0.9, "k": 1}, Outcome(1.0))  # another process reports all the time
        return row(0.1)

    session, other = drive(log, strategy=Scripted(answer)), drive(log, strategy=always(row(0.9)))
    trial = session.ask()
    assert calls == [0, 1]
    assert trial.number == 1
    assert [t.number for t in session.trials()] == [0, 1, 2]


def test_a_session_that_was_overtaken_claims_the_next_number() -> None:
    log = Busy()
    session = drive(log)
    log.beat([0, 1], CLAIM)
    log.others = [Claimed(0, "other"), Claimed(1, "other")]
    assert session.ask().number == 2


def test_a_session_that_was_overtaken_adds_under_the_next_number() -> None:
    log = Busy()
    session = drive(log)
    log.others = [Claimed(0, "other")]
    assert session.add({"x": 0.5, "k": 1}, Outcome(1.0)).number == 1


def test_a_session_that_was_overtaken_completes_an_enqueued_configuration_by_its_place() -> None:
    log, plain = Busy(), drive()
    session = drive(log)
    log.others = [Enqueued({"x": 0.5, "k": 1})]
    session.enqueue({})
    for _ in range(2):
        plain.enqueue({})
    assert since(log)[1] == since(plain.log)[1]  # type: ignore[arg-type]


def test_the_second_of_two_reports_on_a_trial_is_refused() -> None:
    log = Busy()
    session = drive(log)
    session.ask()
    log.others = [Failed(0, "by another")]
    with pytest.raises(TrialError, match="ends once"):
        session.finish(0, Outcome(1.0))
    assert session.trials()[0].error == "by another"


def test_a_loss_that_two_sessions_notice_is_written_once() -> None:
    clock = Clock()
    log = Busy(clock=clock)
    drive(log).ask(lease=60.0)
    clock.now += 61.0
    session = drive(log)
    log.others = [Requeued(0, "by another")]
    assert session.ask().retries == 1
    assert sum(isinstance(e, Requeued) for e in since(log)) == 1


def test_two_sessions_never_take_the_same_entry_of_the_queue() -> None:
    log = Afterwards()
    a, b = drive(log), drive(log)
    for x in (0.25, 0.75):
        a.enqueue({"x": x, "k": 1})
    others: list[Trial] = []
    log.then = lambda: others.append(b.ask())
    assert (a.ask().params["x"], others[0].params["x"]) == (0.25, 0.75)


# ---- almost the same configuration ----


def held_elsewhere() -> tuple[MemoryLog, Session]:
    """A log in which another driver holds trial 0, and a session that would propose x = 0.9."""
    log = MemoryLog()
    drive(log, strategy=at(0.9)).ask()
    return log, drive(log, strategy=at(0.7))


def test_a_claimed_proposal_is_kept_when_another_driver_wrote_meanwhile() -> None:
    log, other = held_elsewhere()
    mine = Interrupted(log, lambda: other.ask())
    trial = mine.session.ask()
    proposed = {e.number: e for e in since(log) if isinstance(e, Proposed)}
    assert len(mine.seen) == 1
    assert (trial.number, proposed[1].seen, trial.params["x"]) == (1, 5, 0.375)
    assert proposed[2].params["x"] == 0.7


def test_a_claimed_proposal_is_computed_again_if_another_driver_proposed_almost_the_same() -> None:
    log, _ = held_elsewhere()
    other = drive(log, strategy=at(0.376))
    mine = Interrupted(log, lambda: other.ask())
    trial = mine.session.ask()
    positions = {e.number: i for i, e in enumerate(log.read(0)) if isinstance(e, Proposed)}
    proposed = log.read(0)[positions[1]]
    assert isinstance(proposed, Proposed)
    assert [len(h.pending) for h in mine.seen] == [1, 2]
    assert trial.params["x"] == 0.25
    assert proposed.seen > positions[2]


def test_a_session_stops_repeating_if_everything_proposed_is_almost_the_same() -> None:
    log, asked = MemoryLog(), []

    def answer(history: History) -> Array:
        asked.append(other.ask())
        return row(0.5)

    session = drive(log, strategy=Scripted(answer))
    other = drive(log, strategy=at(0.5))
    assert session.ask().params == {"x": 0.5, "k": 1}
    assert 2 <= len(asked) < 50


# ---- while a proposal is computed ----


def test_reading_the_study_during_a_proposal_does_not_hide_what_others_wrote() -> None:
    """A signal handler or the user's own strategy may read the study in the middle of `ask`."""
    log = MemoryLog()
    asking = Interrupted(log, lambda: (drive(log).add({"x": 0.1, "k": 1}, Outcome(1.0)), read()))

    def read() -> object:
        return asking.session.trials()

    assert asking.session.ask().number == 1
    assert [t.number for t in drive(log).trials()] == [0, 1]


def test_a_lost_race_leaves_the_lease_of_the_winner_alone() -> None:
    clock = Clock()
    log = MemoryLog(clock=clock)
    winner = drive(log, strategy=at(0.9))
    loser = Interrupted(log, lambda: winner.ask(lease=3600.0)).session
    assert loser.ask(lease=30.0, keep=True).number == 1
    clock.now += 31.0
    assert loser.ask(lease=30.0).number == 2
    assert winner.trial(0).losses == 0
