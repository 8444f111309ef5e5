"""Events become trials: the state of a study is a fold over its log."""

from __future__ import annotations

import pytest

import tradewind as tw
from tests.histories import finished, history, proposed, record
from tests.studies import created
from tradewind.errors import FormatError
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
    Unknown,
)
from tradewind.log.state import Record
from tradewind.optimizer.history import trial_seed
from tradewind.types import Origin, Outcome, State, Usage


def test_a_proposed_trial_waits_and_a_started_one_runs() -> None:
    waiting = record(Claimed(0), proposed(0)).trials[0]
    trial = record(Claimed(0), proposed(0), Started(0, at=7.0)).trials[0]
    assert (waiting.state, waiting.started) == (State.WAITING, None)
    assert (trial.state, trial.started) == (State.RUNNING, 7.0)
    assert (trial.value, trial.cost, trial.error, trial.folds) == (None, None, None, ())


def test_a_finished_trial_has_its_outcome() -> None:
    trial = record(Claimed(0), proposed(0), finished(0, 0.9, 3.0, (0.8, 1.0))).trials[0]
    assert trial.state is State.FINISHED
    assert (trial.value, trial.cost, trial.folds) == (0.9, 3.0, (0.8, 1.0))


def test_a_failed_trial_has_its_error_and_perhaps_a_cost() -> None:
    trial = record(Claimed(0), proposed(0), Failed(0, "boom", cost=2.0)).trials[0]
    assert trial.state is State.FAILED
    assert (trial.value, trial.cost, trial.error) == (None, 2.0, "boom")


def test_what_an_evaluation_took_and_when_is_kept() -> None:
    usage = Usage(3.0, cpu=2.0, device="cuda:1")
    for end in (Finished(0, Outcome(1.0), usage, 9.0), Failed(0, "boom", usage=usage, at=9.0)):
        trial = record(Claimed(0), proposed(0), Started(0, at=6.0), end).trials[0]
        assert (trial.started, trial.ended, trial.usage) == (6.0, 9.0, usage)


def test_an_abandoned_trial_has_a_reason_and_perhaps_a_cost() -> None:
    trial = record(Claimed(0), proposed(0), Abandoned(0, "too slow", 2.0, at=5.0)).trials[0]
    assert trial.state is State.ABANDONED
    assert (trial.value, trial.cost, trial.error, trial.ended) == (None, 2.0, "too slow", 5.0)


def test_an_abandoned_trial_that_finishes_after_all_has_no_error() -> None:
    events = (Claimed(0), proposed(0), Abandoned(0, "lost"), finished(0, 0.5))
    trial = record(*events).trials[0]
    assert (trial.state, trial.value, trial.error) == (State.FINISHED, 0.5, None)
    assert history(*events).quality.tolist() == [0.5]


def test_a_trial_that_goes_back_to_the_queue_waits_for_anybody() -> None:
    made = record(Claimed(0, "a"), proposed(0), Started(0, "a", leased=True, at=1.0))
    assert (made.leased, made.returned, made.holder) == ({0}, set(), {0: "a"})
    made.apply([Requeued(0, "its driver died")])
    assert (made.leased, made.returned, made.holder) == (set(), {0}, {})
    assert (made.trials[0].state, made.trials[0].started) == (State.WAITING, None)
    made.apply([Claimed(0, "b"), Started(0, "b", leased=True)])
    assert (made.leased, made.returned, made.holder) == ({0}, set(), {0: "b"})


def test_only_attempts_count_as_retries() -> None:
    made = record(Claimed(0), proposed(0), Started(0), Requeued(0, "died"))
    made.apply([Claimed(0), Requeued(0, "never began", retry=False), Claimed(0), Started(0)])
    assert made.trials[0].retries == 1
    made.apply([Requeued(0, "died again")])
    assert made.trials[0].retries == 2


def test_a_trial_that_was_started_without_a_lease_needs_none() -> None:
    made = record(Claimed(0, "a"), proposed(0))
    assert made.leased == {0}
    made.apply([Started(0, "a", leased=False)])
    assert made.leased == set()


@pytest.mark.parametrize(
    "end", [finished(0, 1.0), Failed(0, "boom"), Abandoned(0, "lost")], ids=repr
)
def test_nobody_holds_what_has_ended(end: Event) -> None:
    made = record(Claimed(0, "a"), proposed(0), Started(0, "a", leased=True), end)
    assert (made.leased, made.returned, made.holder) == (set(), set(), {})


def test_the_study_is_what_its_first_event_says_until_it_is_configured() -> None:
    first = created(seed=5, maximize=False)
    made = Record.of(first)
    assert (made.seed, made.sign, made.position) == (5, -1.0, 1)
    assert (made.space.to_dict(), made.goal, made.strategy) == (
        first.space,
        first.goal,
        first.strategy,
    )
    made.apply([Configured(goal={"type": "Tradeoff", "alpha": 0.5})])
    assert (made.goal, made.strategy) == ({"type": "Tradeoff", "alpha": 0.5}, first.strategy)
    made.apply([Configured(strategy={"given": "mine.Own"})])
    assert made.goal == {"type": "Tradeoff", "alpha": 0.5}
    assert made.strategy == {"given": "mine.Own"}


def test_an_event_of_a_kind_that_is_not_known_is_passed_over() -> None:
    unknown = Unknown({"format": 1, "event": "applauded", "number": 0})
    events = (Claimed(0), proposed(0), unknown, finished(0, 1.0))
    assert record(*events).position == 4
    assert record(*events).trials[0].value == 1.0


# ---- what cannot have happened ----

OPEN: list[Event] = [Claimed(0, "a"), proposed(0), Started(0, "a", leased=True)]
FINISHED: list[Event] = [*OPEN, finished(0, 1.0)]
FAILED: list[Event] = [*OPEN, Failed(0, "boom")]
GIVEN_UP: list[Event] = [*OPEN, Abandoned(0, "lost")]
IMPOSSIBLE: dict[str, list[Event]] = {
    "a start of nothing": [*OPEN, Started(1)],
    "an outcome of nothing": [*OPEN, finished(1, 1.0)],
    "a failure of nothing": [*OPEN, Failed(1, "boom")],
    "an end of nothing": [*OPEN, Abandoned(1, "lost")],
    "a return of nothing": [*OPEN, Requeued(1, "lost")],
    "an outcome of a claim": [*OPEN, Claimed(1), finished(1, 1.0)],
    "a proposal without a claim": [*OPEN, proposed(1)],
    "a second proposal": [*OPEN, proposed(0)],
    "a proposal of what has ended": [*FINISHED, proposed(0)],
    "a claim that leaves a gap": [*OPEN, Claimed(2)],
    "a claim of a million": [*OPEN, Claimed(10**6)],
    "a claim of what has finished": [*FINISHED, Claimed(0)],
    "a claim of what was given up": [*GIVEN_UP, Claimed(0)],
    **{
        f"{name} after {before}": [*events, end]
        for before, events in [("an outcome", FINISHED), ("a failure", FAILED)]
        for name, end in [
            ("an outcome", finished(0, 2.0)),
            ("a failure", Failed(0, "again")),
            ("an end", Abandoned(0, "lost")),
            ("a return", Requeued(0, "lost")),
            ("a start", Started(0)),
        ]
    },
    "a failure of what was given up": [*GIVEN_UP, Failed(0, "boom")],
    "a second end": [*GIVEN_UP, Abandoned(0, "again")],
    "a return of what was given up": [*GIVEN_UP, Requeued(0, "again")],
    "a start of what was given up": [*GIVEN_UP, Started(0)],
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_what_cannot_have_happened_is_refused(name: str) -> None:
    *before, last = IMPOSSIBLE[name]
    made = record(*before)
    with pytest.raises(FormatError, match=f"event {len(before)} of the log cannot have happened"):
        made.apply([last])


def test_a_study_with_a_negative_seed_is_refused() -> None:
    with pytest.raises(FormatError, match="seed"):
        Record.of(created(seed=-1))


# ---- what belongs to a trial ----


def test_the_training_size_of_a_trial_is_the_one_in_its_params() -> None:
    assert record(Claimed(0), proposed(0)).trials[0].train_size == 0.5


def test_without_a_training_size_in_the_space_all_data_are_used() -> None:
    made = Record(tw.Space({"x": tw.Float(0, 1)}), seed=0, maximize=True)
    made.apply([Claimed(0), Proposed(0, {"x": 0.5}, Origin.DESIGN, seen=0)])
    assert made.trials[0].train_size == 1.0


def test_a_claimed_trial_without_a_proposal_is_no_trial_but_its_number_is_taken() -> None:
    made = record(Claimed(0), Claimed(1))
    assert made.in_order() == []
    assert made.claims == 2


def test_the_queue_holds_what_was_not_claimed_in_the_order_it_came() -> None:
    a, b, c = ({"x": float(x)} for x in (1, 2, 3))
    made = record(Enqueued(a), Enqueued(b), Enqueued(c), Claimed(0, enqueued=0))
    assert [wanted.params for wanted in made.queue.values()] == [b, c]
    assert made.enqueued == 3


def test_the_position_counts_events_of_every_kind() -> None:
    assert record(Enqueued({}), Claimed(0), proposed(0), Failed(0, "boom")).position == 4


def test_events_may_come_in_pieces() -> None:
    events = [Claimed(0), proposed(0), Claimed(1), proposed(1, 7.0), finished(0, 1.0)]
    whole, pieces = record(*events), record()
    for event in events:
        pieces.apply([event])
    assert pieces.in_order() == whole.in_order()
    assert pieces.position == whole.position


def test_a_trial_gets_the_seed_of_its_study_and_number() -> None:
    trials = record(Claimed(0), Claimed(1), proposed(1), seed=9).trials
    assert trials[1].seed == trial_seed(9, 1)


# ---- nearly the same ----


def alike(x: float, position: int, **config: object) -> bool:
    """Whether trial 1, at x = 5 and proposed at position 3, is nearly this one."""
    made = record(Claimed(0), proposed(0, 9.0), Claimed(1), proposed(1, 5.0))
    return made.alike_since({"x": x, "kernel": "linear", "size": 0.5, **config}, position)


@pytest.mark.parametrize(
    ("x", "is_alike"), [(5.0, True), (5.09, True), (5.11, False), (9.0, False)]
)
def test_two_configurations_are_alike_within_a_hundredth_of_every_range(
    x: float, is_alike: bool
) -> None:
    assert alike(x, position=3) is is_alike


def test_only_what_was_proposed_since_then_is_compared() -> None:
    assert alike(9.0, position=1)
    assert not alike(9.0, position=2)
    assert not alike(5.0, position=4)


def test_another_category_or_size_is_not_alike() -> None:
    assert not alike(5.0, position=0, kernel="poly", degree=2)
    assert not alike(5.0, position=0, size=1.0)


def test_whether_configurations_are_alike_does_not_depend_on_what_is_inactive() -> None:
    made = record(
        Claimed(0),
        Proposed(0, {"x": 5.0, "kernel": "poly", "degree": 3, "size": 0.5}, Origin.DESIGN, seen=0),
    )
    near = {"x": 5.0, "kernel": "poly", "degree": 3, "size": 0.5}
    assert made.alike_since(near, 0)
    assert not made.alike_since({**near, "degree": 4}, 0)
    assert not made.alike_since({"x": 5.0, "kernel": "linear", "size": 0.5}, 0)
