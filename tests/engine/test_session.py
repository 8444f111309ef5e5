"""The session: what it writes to a log, and what it allows."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.engine.scripted import ENDS, abandon, always, fail, finish, requeue, row, since
from tests.processes import forked
from tests.studies import Clock, Unreachable, drive
from tradewind.engine.contention import MAX_LOSSES
from tradewind.engine.session import Session
from tradewind.errors import ConfigError, StorageError, TrialError
from tradewind.log.events import (
    Abandoned,
    Claimed,
    Enqueued,
    Failed,
    Finished,
    Proposed,
    Requeued,
    Started,
)
from tradewind.log.memory import MemoryLog
from tradewind.log.state import StudyState
from tradewind.optimizer.history import TrialTable
from tradewind.strategies import Bayes, Design, RandomSearch
from tradewind.types import Origin, Outcome, State, Trial

# ---- asking ----


def test_numbers_count_from_zero_without_a_gap() -> None:
    session = drive()
    assert [session.ask().number for _ in range(5)] == [0, 1, 2, 3, 4]


def test_a_trial_is_claimed_proposed_and_started_from_what_was_seen_before() -> None:
    log = MemoryLog()
    session = drive(log, clock=lambda: 7.0)
    trial = session.ask()
    assert since(log) == [
        Claimed(0, session.id),
        Proposed(0, dict(trial.params), Origin.DESIGN, seen=1, handover={}),
        Started(0, session.id, leased=False, at=7.0),
    ]
    assert (trial.state, trial.started) == (State.RUNNING, 7.0)


def test_a_trial_that_is_not_started_at_once_waits_for_its_start() -> None:
    log = MemoryLog()
    session = drive(log, clock=lambda: 7.0)
    assert session.ask(start=False, lease=60.0).state is State.WAITING
    assert [type(e) for e in since(log)] == [Claimed, Proposed]
    assert session.start(0, leased=True).state is State.RUNNING
    assert since(log)[-1] == Started(0, session.id, leased=True, at=7.0)


def test_an_enqueued_trial_is_claimed_proposed_and_started() -> None:
    log = MemoryLog()
    session = drive(log)
    session.enqueue({"x": 0.5, "k": 3})
    session.ask()
    assert since(log) == [
        Enqueued({"x": 0.5, "k": 3}),
        Claimed(0, session.id, enqueued=0),
        Proposed(0, {"x": 0.5, "k": 3}, Origin.ENQUEUED, seen=2),
        Started(0, session.id, leased=False, at=0.0),
    ]


def test_an_enqueued_configuration_is_complete_and_in_plain_values() -> None:
    log = MemoryLog()
    drive(log).enqueue({"x": np.float32(0.5)})
    (event,) = since(log)
    assert isinstance(event, Enqueued)
    assert {name: type(value) for name, value in event.params.items()} == {"x": float, "k": int}


@pytest.mark.parametrize("result", [Outcome(1.0), Failed(0, "boom", 2.0)], ids=["value", "failure"])
def test_an_added_trial_is_claimed_proposed_and_ended(result: Any) -> None:
    log = MemoryLog()
    session = drive(log)
    session.ask()
    trial = session.add({"x": 0.5, "k": 3}, result)
    kind = Failed if isinstance(result, Failed) else Finished
    assert [(type(e), e.number) for e in since(log)[-3:]] == [  # type: ignore[union-attr]
        (Claimed, 1),
        (Proposed, 1),
        (kind, 1),
    ]
    assert (trial.number, trial.origin) == (1, Origin.ADDED)


def test_the_cost_limit_of_a_request_is_recorded_with_the_proposal() -> None:
    log = MemoryLog()
    session = drive(log)
    session.ask(max_cost=3.0)
    session.enqueue({})
    session.ask(max_cost=2.0)
    assert [e.max_cost for e in since(log) if isinstance(e, Proposed)] == [3.0, 2.0]


def test_a_model_proposes_what_it_expects_to_stay_within_a_cost() -> None:
    session = drive(strategy=Bayes(design=Design(4)))
    for i in range(10):  # the values go up and down; the cost rises with x from 1 to 1000
        session.add({"x": i / 9, "k": 1}, Outcome(7 * i % 10 / 10, cost=10.0 ** (i / 3)))
    free, tied = session.ask(), [session.ask(max_cost=limit) for limit in (5.0, 50.0)]
    assert free.expected_cost is None  # nobody asked what anything costs
    assert [t.expected_cost is not None and t.expected_cost <= 50.0 for t in tied] == [True, True]
    assert tied[0].expected_cost <= 5.0  # type: ignore[operator]


def test_changing_the_params_of_a_returned_trial_changes_nothing() -> None:
    session = drive()
    params = dict(session.ask().params)
    for trial in (
        session.trial(0),
        session.trials()[0],
        session.snapshot()[0][0],
        session.add(params, Outcome(1.0)),
    ):
        trial.params.clear()  # type: ignore[attr-defined]
    assert [dict(t.params) for t in session.trials()] == [params, params]


@pytest.mark.parametrize("error", [ValueError("broken"), KeyboardInterrupt()])
def test_a_strategy_that_raises_leaves_no_claim_behind(error: BaseException) -> None:
    log = MemoryLog()
    session = drive(log, strategy=always(error))
    with pytest.raises(type(error)):
        session.ask()
    assert since(log) == []
    assert drive(log, strategy=RandomSearch()).ask().number == 0


@pytest.mark.parametrize(
    "answer",
    [[2.0, 0.5], [-0.1, 0.5], [0.5], [0.5, 0.5, 0.5], ["a", 0.5], {"x": 0.5, "k": 1}, None],
    ids=["too large", "too small", "too short", "too long", "text", "configuration", "nothing"],
)
def test_a_proposal_that_is_no_row_of_the_space_is_refused_before_it_is_written(
    answer: Any,
) -> None:
    log = MemoryLog()
    session = drive(log, strategy=always(answer))
    with pytest.raises(ConfigError, match=r"must propose a row of the unit cube in 2 dimensions"):
        session.ask()
    assert since(log) == []


def test_a_proposal_becomes_plain_values() -> None:
    trial = drive(strategy=always(row(0.5, k=2).astype(np.float32))).ask()
    assert trial.params == {"x": 0.5, "k": 2}
    assert (type(trial.params["x"]), type(trial.params["k"])) == (float, int)


# ---- how a trial may end ----

BEFORE: dict[str, Callable[[Session], object]] = {
    "waiting": lambda session: session.ask(start=False),
    "running": lambda session: session.ask(),
    "requeued": lambda session: requeue(session, session.ask().number),
    "finished": lambda session: finish(session, session.ask().number),
    "failed": lambda session: fail(session, session.ask().number),
    "abandoned": lambda session: abandon(session, session.ask().number),
}
# A trial ends once, except that an abandoned one may still finish. A report may be repeated.
REPEATED = {
    ("requeued", "requeue"),
    ("finished", "finish"),
    ("failed", "fail"),
    ("abandoned", "abandon"),
}
REFUSED = {
    (before, end)
    for before in ("finished", "failed", "abandoned")
    for end in ("finish", "fail", "abandon", "requeue")
} - {*REPEATED, ("abandoned", "finish")}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("by", ["the same session", "another"])
def test_a_trial_ends_once(before: str, end: str, by: str) -> None:
    log = MemoryLog()
    session = drive(log)
    BEFORE[before](session)
    other = session if by == "the same session" else drive(log)
    unchanged, length = session.trial(0), len(log.read(0))
    act, state = ENDS[end]
    if (before, end) in REFUSED:
        with pytest.raises(TrialError, match=f"ends once, but trial 0 is already {before}"):
            act(other)
        assert other.trials() == session.trials() == [unchanged]
        assert len(log.read(0)) == length
    else:
        assert act(other).state is state
        assert len(log.read(0)) == length + ((before, end) not in REPEATED)
        assert other.trials() == session.trials()


@pytest.mark.parametrize("number", [1, -1, 99])
@pytest.mark.parametrize("end", ENDS)
def test_a_trial_that_was_never_asked_for_cannot_end(number: int, end: str) -> None:
    session = drive()
    session.ask()
    with pytest.raises(TrialError, match=f"no trial {number}"):
        ENDS[end][0](session, number)


def test_a_claim_without_a_proposal_cannot_end() -> None:
    log = MemoryLog()
    session = drive(log)
    log.append([Claimed(0, "slow")])
    with pytest.raises(TrialError, match="no trial 0"):
        finish(session)


def test_a_failure_that_is_not_penalized_is_not_counted_as_failed() -> None:
    log = MemoryLog()
    session = drive(log)
    session.ask()
    session.fail(0, "boom", 3.0, penalize=False)
    assert since(log)[-1] == Failed(0, "boom", 3.0, penalize=False, at=0.0)
    assert len(session.snapshot()[1].failed) == 0


def test_requeued_trials_come_before_enqueued_ones() -> None:
    session = drive()
    first, second = session.ask(), session.ask()
    session.enqueue({"x": 0.5, "k": 3})
    requeue(session, second.number)
    requeue(session, first.number)
    asked = [session.ask() for _ in range(3)]
    assert [t.number for t in asked] == [0, 1, 2]
    assert [t.params for t in asked[:2]] == [first.params, second.params]
    assert [t.retries for t in asked] == [1, 1, 0]
    assert asked[2].origin is Origin.ENQUEUED


def test_a_requeue_may_count_as_no_retry() -> None:
    session = drive()
    session.ask()
    assert session.requeue(0, "not begun", retry=False).retries == 0


def test_a_requeued_trial_cannot_be_started_by_the_session_that_had_it() -> None:
    log = MemoryLog()
    session = drive(log)
    session.ask(start=False, lease=60.0)
    requeue(drive(log))
    with pytest.raises(TrialError, match="trial 0 is no longer held by this session"):
        session.start(0, leased=True)


def test_a_report_about_a_trial_with_other_parameters_is_refused() -> None:
    session = drive()
    trial = session.ask()
    with pytest.raises(TrialError, match="other parameters"):
        session.finish(0, Outcome(1.0), params={**trial.params, "x": -1.0})
    assert session.finish(0, Outcome(1.0), params=trial.params).finished


# ---- reports about trials of other drivers ----


@pytest.mark.parametrize("end", ["fail", "abandon", "requeue", "lose"])
def test_a_bad_report_is_refused_if_another_driver_holds_the_trial_by_now(end: str) -> None:
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
    with pytest.raises(TrialError, match="another driver holds trial 0 by now"):
        ends[end]()
    assert other.finish(0, Outcome(1.0)).finished


def test_losses_and_failures_are_counted_separately() -> None:
    session = drive()
    session.ask()
    session.requeue(0, "failed")
    session.ask()
    trial = session.lose(0, "gone")
    assert (trial.state, trial.retries, trial.losses) == (State.WAITING, 2, 1)


def test_failures_do_not_count_as_losses() -> None:
    session = drive()
    for _ in range(MAX_LOSSES + 1):
        session.ask()
        session.requeue(0, "failed")
    session.ask()
    assert session.lose(0, "gone").state is State.WAITING


def test_a_trial_that_its_own_session_loses_again_and_again_is_abandoned() -> None:
    session = drive()
    for losses in range(1, MAX_LOSSES + 1):
        session.ask()
        assert session.lose(0, "gone").losses == losses
    session.ask()
    lost = session.lose(0, "gone")
    assert (lost.state, lost.error) == (State.ABANDONED, "gone, 4 times")


# ---- declining ----


def test_a_declined_proposal_is_abandoned() -> None:
    session = drive()
    session.ask(start=False)
    session.decline(0, "too expensive")
    assert (session.trial(0).state, session.trial(0).error) == (State.ABANDONED, "too expensive")


def test_a_declined_trial_that_was_enqueued_goes_back_to_the_queue() -> None:
    session = drive()
    session.enqueue({"x": 0.5, "k": 3})
    session.ask(start=False)
    session.decline(0, "too expensive")
    assert session.trial(0).state is State.WAITING
    assert session.ask().number == 0


@pytest.mark.parametrize("retry", [True, False], ids=["as a retry", "not as a retry"])
def test_a_declined_trial_that_was_ever_requeued_goes_back_to_the_queue(retry: bool) -> None:
    session = drive()
    session.ask()
    session.requeue(0, "its machine is needed", retry=retry)
    session.ask(start=False)
    session.decline(0, "too expensive")
    trial = session.trial(0)
    assert (trial.state, trial.retries) == (State.WAITING, int(retry))
    assert session.ask().number == 0


def test_a_trial_that_another_driver_has_by_now_cannot_be_declined() -> None:
    log = MemoryLog()
    session, other = drive(log), drive(log)
    session.ask(start=False)
    other.requeue(0, "mine")
    other.ask()
    session.decline(0, "too expensive")
    assert session.trial(0).state is State.RUNNING


# ---- a store that does not answer ----


@pytest.mark.parametrize("late", [False, True], ids=["refused", "answer lost"])
@pytest.mark.parametrize("after", range(2), ids=["read", "append"])
def test_asking_again_after_a_storage_error_gives_a_trial(after: int, late: bool) -> None:
    log = Unreachable(MemoryLog())
    session = drive(log)
    log.asked, log.after, log.times, log.late = 0, after, 1, late
    with pytest.raises(StorageError, match="the network is down"):
        session.ask(lease=60.0, keep=True)
    assert session.held == {}
    written = late and after == 1  # the trial is in the log, but nobody knows
    assert session.ask(lease=60.0, keep=True).number == int(written)
    assert list(session.held) == [int(written)]


def test_a_failed_read_does_not_make_the_session_read_the_whole_log_again() -> None:
    reads: list[int] = []

    class Counted(Unreachable):
        def read(self, after: int) -> Any:
            reads.append(after)
            return super().read(after)

    log = Counted(MemoryLog())
    session = drive(log)
    session.ask()
    log.times = 1
    with pytest.raises(StorageError):
        session.trials()
    reads.clear()
    assert len(session.trials()) == 1
    assert reads == [4]


@pytest.mark.parametrize("end", ENDS)
def test_a_report_whose_answer_was_lost_is_written_once(end: str) -> None:
    log = Unreachable(MemoryLog())
    session = drive(log)
    session.ask()
    log.times, log.late = 1, True
    act, state = ENDS[end]
    with pytest.raises(StorageError):
        act(session)
    assert act(session).state is state
    ends = [e for e in log.read(0) if isinstance(e, Finished | Failed | Requeued | Abandoned)]
    assert len(ends) == 1
    assert session.trial(0).state is state


# ---- interruptions ----


@pytest.mark.parametrize(
    ("kind", "method"), [(StudyState, "apply"), (TrialTable, "_add")], ids=["state", "table"]
)
def test_a_session_that_was_interrupted_proposes_what_it_would_have_proposed(
    kind: type, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C may raise anywhere, also while the state or the table of trials is half updated."""
    strategy = Bayes(design=Design(4))
    session, plain = drive(strategy=strategy), drive(strategy=strategy)
    for each in (session, plain):
        for _ in range(2):
            each.finish(each.ask().number, Outcome(1.0, 1.0))
    original = getattr(kind, method)

    def interrupted(*arguments: Any) -> None:
        original(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(kind, method, interrupted)
        with pytest.raises(KeyboardInterrupt):
            session.ask()
    while len(plain.trials()) < 8:
        plain.finish(plain.ask().number, Outcome(1.0, 1.0))
    if State.RUNNING in {t.state for t in session.trials()}:
        session.finish(2, Outcome(1.0, 1.0))
    while len(session.trials()) < 8:
        session.finish(session.ask().number, Outcome(1.0, 1.0))
    assert [t.params for t in session.trials()] == [t.params for t in plain.trials()]


# ---- copies ----


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda d: pickle.loads(pickle.dumps(d))], ids=["copied", "pickled"]
)
def test_a_copy_is_another_session(copied: Callable[[Session], Session]) -> None:
    session = drive()
    session.ask()
    other = copied(session)
    other.ask()
    writers = [e.driver for e in other.log.read(0) if isinstance(e, Claimed)]
    assert len(set(writers)) == 2
    assert len(session.trials()) == 1  # a log in memory is copied with its session


def test_a_copy_does_not_hold_the_trials_of_the_original() -> None:
    clock = Clock()
    session = drive(MemoryLog(clock=clock))
    session.ask(lease=60.0, keep=True)
    other = copy.deepcopy(session)
    clock.now += 61.0
    other.log._clock = clock  # type: ignore[attr-defined]
    assert (session.ask().number, other.ask().number) == (1, 0)


def test_a_forked_process_does_not_hold_the_trials_of_its_parent() -> None:
    session = drive()
    session.ask(lease=60.0, keep=True)

    def child() -> None:
        assert session.held == {}

    assert forked(child) == 0
    assert list(session.held) == [0]
