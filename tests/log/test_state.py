"""Events become trials: the state of a study is a fold over its log."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tradewind as tw
from tests.histories import finished, history, proposed, state_of
from tests.studies import created
from tradewind.errors import FormatError, TrialError
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
from tradewind.log.state import StudyState
from tradewind.seeds import data_seed, shared_data_seed, trial_seed
from tradewind.types import Origin, Outcome, State, Usage


def test_a_proposed_trial_waits_and_a_started_one_runs() -> None:
    waiting = state_of(Claimed(0), proposed(0)).trials[0]
    trial = state_of(Claimed(0), proposed(0), Started(0, at=7.0)).trials[0]
    assert (waiting.state, waiting.started) == (State.WAITING, None)
    assert (trial.state, trial.started) == (State.RUNNING, 7.0)
    assert (trial.value, trial.cost, trial.error, trial.folds) == (None, None, None, ())


def test_a_finished_trial_has_its_outcome() -> None:
    trial = state_of(Claimed(0), proposed(0), finished(0, 0.9, 3.0, (0.8, 1.0))).trials[0]
    assert trial.state is State.FINISHED
    assert (trial.value, trial.cost, trial.folds) == (0.9, 3.0, (0.8, 1.0))


def test_a_failed_trial_has_its_error_and_perhaps_a_cost() -> None:
    trial = state_of(Claimed(0), proposed(0), Failed(0, "boom", cost=2.0)).trials[0]
    assert trial.state is State.FAILED
    assert (trial.value, trial.cost, trial.error) == (None, 2.0, "boom")


def test_what_an_evaluation_took_and_when_is_kept() -> None:
    usage = Usage(3.0, cpu=2.0, device="cuda:1")
    for end in (Finished(0, Outcome(1.0), usage, 9.0), Failed(0, "boom", usage=usage, at=9.0)):
        trial = state_of(Claimed(0), proposed(0), Started(0, at=6.0), end).trials[0]
        assert (trial.started, trial.ended, trial.usage) == (6.0, 9.0, usage)


def test_an_abandoned_trial_has_a_reason_and_perhaps_a_cost() -> None:
    trial = state_of(Claimed(0), proposed(0), Abandoned(0, "too slow", 2.0, at=5.0)).trials[0]
    assert trial.state is State.ABANDONED
    assert (trial.value, trial.cost, trial.error, trial.ended) == (None, 2.0, "too slow", 5.0)


def test_an_abandoned_trial_that_finishes_after_all_has_no_error() -> None:
    events = (Claimed(0), proposed(0), Abandoned(0, "lost"), finished(0, 0.5))
    trial = state_of(*events).trials[0]
    assert (trial.state, trial.value, trial.error) == (State.FINISHED, 0.5, None)
    assert history(*events).quality.tolist() == [0.5]


def test_a_trial_that_goes_back_to_the_queue_waits_for_anybody() -> None:
    state = state_of(Claimed(0, "a"), proposed(0), Started(0, "a", leased=True, at=1.0))
    assert (state.leased, state.returned, state.holder) == ({0}, set(), {0: "a"})
    state.apply([Requeued(0, "its driver died")])
    assert (state.leased, state.returned, state.holder) == (set(), {0}, {})
    assert (state.trials[0].state, state.trials[0].started) == (State.WAITING, None)
    state.apply([Claimed(0, "b"), Started(0, "b", leased=True)])
    assert (state.leased, state.returned, state.holder) == ({0}, set(), {0: "b"})


def test_only_attempts_count_as_retries() -> None:
    state = state_of(Claimed(0), proposed(0), Started(0), Requeued(0, "died"))
    state.apply([Claimed(0), Requeued(0, "never began", retry=False), Claimed(0), Started(0)])
    assert state.trials[0].retries == 1
    state.apply([Requeued(0, "died again")])
    assert state.trials[0].retries == 2


def test_a_trial_that_was_started_without_a_lease_needs_none() -> None:
    state = state_of(Claimed(0, "a"), proposed(0))
    assert state.leased == {0}
    state.apply([Started(0, "a", leased=False)])
    assert state.leased == set()


@pytest.mark.parametrize(
    "end", [finished(0, 1.0), Failed(0, "boom"), Abandoned(0, "lost")], ids=repr
)
def test_nobody_holds_what_has_ended(end: Event) -> None:
    state = state_of(Claimed(0, "a"), proposed(0), Started(0, "a", leased=True), end)
    assert (state.leased, state.returned, state.holder) == (set(), set(), {})


def test_a_study_is_what_its_first_event_says_until_it_is_configured() -> None:
    first = created(seed=5, maximize=False)
    state = StudyState.of([first])
    assert (state.seed, state.sign, state.position) == (5, -1.0, 1)
    assert (state.space.to_dict(), state.goal, state.strategy) == (
        first.space,
        first.goal,
        first.strategy,
    )
    state.apply([Configured(goal={"type": "Tradeoff", "alpha": 0.5})])
    assert (state.goal, state.strategy) == ({"type": "Tradeoff", "alpha": 0.5}, first.strategy)
    state.apply([Configured(strategy={"given": "mine.Own"})])
    assert state.goal == {"type": "Tradeoff", "alpha": 0.5}
    assert state.strategy == {"given": "mine.Own"}
    state.apply([Claimed(0), proposed(0), Configured(metric="F1"), Claimed(1), proposed(1)])
    assert (state.metric, [t.metric for t in state.in_order()]) == ("F1", ["F1", "F1"])


def test_an_unknown_event_takes_a_position_and_changes_nothing_else() -> None:
    unknown = Unknown({"format": 1, "event": "applauded", "number": 0})
    events = (Claimed(0), proposed(0), unknown, finished(0, 1.0))
    assert state_of(*events).position == 4
    assert state_of(*events).trials == state_of(Claimed(0), proposed(0), finished(0, 1.0)).trials


def test_unknown_fields_of_an_event_change_nothing() -> None:
    events = [Claimed(0, "a"), proposed(0), Started(0, "a"), finished(0, 1.0)]
    extra = {"new": 1, "outcome": {"value": 7.0}}
    with_extra = [replace(event, extra=extra) for event in events]  # type: ignore[type-var]
    assert state_of(*with_extra).trials == state_of(*events).trials


# ---- the first event ----


def test_a_log_without_events_is_refused() -> None:
    with pytest.raises(FormatError, match="a log must begin with the study's creation"):
        StudyState.of([])


def test_a_log_that_begins_with_another_event_is_refused() -> None:
    with pytest.raises(FormatError, match="a log must begin with the study's creation"):
        StudyState.of([Claimed(0), created()])


def test_a_study_is_created_once() -> None:
    with pytest.raises(FormatError, match="event 1 of the log cannot have happened"):
        StudyState.of([created(), created()])


def test_the_data_seed_is_the_stored_one() -> None:
    first = replace(created(seed=5), data_seed=data_seed(5))
    events = [Claimed(0), Proposed(0, {"x": 0.5, "k": 1}, Origin.DESIGN, seen=1)]
    assert StudyState.of([first, *events]).trials[0].data_seed == data_seed(5)


def test_a_study_without_a_stored_data_seed_keeps_the_one_it_always_had() -> None:
    events = [Claimed(0), Proposed(0, {"x": 0.5, "k": 1}, Origin.DESIGN, seen=1)]
    trial = StudyState.of([created(seed=5), *events]).trials[0]
    assert trial.data_seed == shared_data_seed(5) != data_seed(5)


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
    state = state_of(*before)
    with pytest.raises(FormatError, match=f"event {len(before)} of the log cannot have happened"):
        state.apply([last])


def test_a_study_with_a_negative_seed_is_refused() -> None:
    with pytest.raises(FormatError, match="seed"):
        StudyState.of([created(seed=-1)])


# ---- what belongs to a trial ----


def test_the_training_size_of_a_trial_is_the_one_in_its_params() -> None:
    assert state_of(Claimed(0), proposed(0)).trials[0].train_size == 0.5


def test_without_a_training_size_in_the_space_all_data_are_used() -> None:
    state = StudyState(tw.Space({"x": tw.Float(0, 1)}), seed=0, maximize=True)
    state.apply([Claimed(0), Proposed(0, {"x": 0.5}, Origin.DESIGN, seen=0)])
    assert state.trials[0].train_size == 1.0


def test_a_claimed_trial_without_a_proposal_is_no_trial_but_its_number_is_taken() -> None:
    state = state_of(Claimed(0), Claimed(1))
    assert state.in_order() == []
    assert state.claims == 2


def test_the_queue_holds_what_was_not_claimed_in_the_order_it_came() -> None:
    a, b, c = ({"x": float(x)} for x in (1, 2, 3))
    state = state_of(Enqueued(a), Enqueued(b), Enqueued(c), Claimed(0, enqueued=0))
    assert [wanted.params for wanted in state.queue.values()] == [b, c]
    assert state.enqueued == 3


def test_the_position_counts_events_of_every_kind() -> None:
    assert state_of(Enqueued({}), Claimed(0), proposed(0), Failed(0, "boom")).position == 4


def test_events_may_come_in_pieces() -> None:
    events = [Claimed(0), proposed(0), Claimed(1), proposed(1, 7.0), finished(0, 1.0)]
    whole, pieces = state_of(*events), state_of()
    for event in events:
        pieces.apply([event])
    assert pieces.in_order() == whole.in_order()
    assert pieces.position == whole.position


def test_a_trial_gets_the_seed_of_its_study_and_number() -> None:
    trials = state_of(Claimed(0), Claimed(1), proposed(1), seed=9).trials
    assert trials[1].seed == trial_seed(9, 1)


# ---- finding trials ----


def test_a_trial_is_found_by_its_number() -> None:
    state = state_of(Claimed(0), Claimed(1), proposed(1, 7.0))
    assert state.find(1).params["x"] == 7.0
    for number in (0, 2):
        with pytest.raises(TrialError, match=f"there is no trial {number}"):
            state.find(number)


def test_a_trial_must_have_the_parameters_that_are_given() -> None:
    state = state_of(Claimed(0), proposed(0, 5.0))
    assert state.find(0, {"x": 5.0}).number == 0
    for params in ({"x": 5.5}, {"y": 5.0}):
        with pytest.raises(TrialError, match="trial 0 of this study has other parameters"):
            state.find(0, params)


def test_the_trials_proposed_since_a_position_are_known() -> None:
    state = state_of(Claimed(0), proposed(0), Claimed(1), proposed(1), finished(0, 1.0))
    assert sorted(state.proposed_since(1)) == [0, 1]
    assert state.proposed_since(2) == state.proposed_since(3) == [1]
    assert state.proposed_since(4) == []


# ---- the initial design ----

DESIGN: list[Event] = [Claimed(0), proposed(0), Claimed(1), proposed(1)]


def by_model(number: int, seen: int) -> list[Event]:
    return [Claimed(number), proposed(number, origin=Origin.MODEL, seen=seen)]


def test_before_a_model_proposes_every_trial_belongs_to_the_design() -> None:
    state = state_of(*DESIGN, finished(0, 1.0))
    assert (state.initial, state.provisional) == (None, True)


def test_the_design_is_what_came_before_the_first_proposal_of_a_model() -> None:
    state = state_of(*DESIGN, finished(0, 1.0), *by_model(2, seen=5), *by_model(3, seen=7))
    assert (state.initial, state.provisional) == ({0, 1}, True)
    state.apply([finished(1, 1.0)])
    assert (state.initial, state.provisional) == ({0, 1}, False)


def test_a_later_number_that_the_first_model_saw_finished_belongs_to_the_design() -> None:
    later = [Claimed(2), proposed(2), finished(2, 1.0), Claimed(3), proposed(3)]
    state = state_of(Claimed(0), Claimed(1), proposed(1), *later)
    state.apply([proposed(0, origin=Origin.MODEL, seen=6)])
    assert state.initial == {2}
    state.apply([finished(3, 1.0), finished(1, 1.0)])
    assert state.initial == {2}


def test_an_abandoned_trial_of_the_design_does_not_move_the_reference_later() -> None:
    before = state_of(*DESIGN, finished(0, 1.0), Abandoned(1, "lost"), *by_model(2, seen=6))
    after = state_of(*DESIGN, finished(0, 1.0), *by_model(2, seen=5), Abandoned(1, "lost"))
    for state in (before, after):
        assert (state.initial, state.provisional) == ({0}, False)
        state.apply([finished(1, 1.0, cost=99.0)])
        assert (state.initial, state.provisional) == ({0}, False)
