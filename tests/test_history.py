"""Events become trials and arrays, in one order and one sign."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tradewind as tw
from tradewind.events import Claimed, Enqueued, Event, Failed, Finished, Proposed
from tradewind.history import History, Record, proposal_rng, trial_seed
from tradewind.types import Origin, Outcome, State

SPACE = tw.Space(
    {
        "x": tw.Float(0, 10),
        "kernel": tw.Categorical(["linear", "poly"]),
        "degree": tw.Int(2, 5, when={"kernel": "poly"}),
        "size": tw.TrainSize([0.5, 1.0]),
    }
)


def proposed(number: int, x: float = 5.0, origin: Origin = Origin.DESIGN, **extra: object) -> Event:
    params = {"x": x, "kernel": "linear", "size": 0.5}
    return Proposed(number, params, origin, **{"seen": 0, **extra})  # type: ignore[arg-type]


def finished(number: int, value: float, cost: float | None = 1.0, folds=()) -> Event:
    return Finished(number, Outcome(value, cost, folds))


def record(*events: Event, seed: int = 0, maximize: bool = True) -> Record:
    made = Record(SPACE, seed=seed, maximize=maximize)
    made.apply(events)
    return made


def history(*events: Event, number: int = 99, maximize: bool = True) -> History:
    return record(*events, maximize=maximize).history(number)


# ---- events -> trials ----


def test_a_proposed_trial_runs() -> None:
    trial = record(Claimed(0), proposed(0)).trials[0]
    assert trial.state is State.RUNNING
    assert (trial.value, trial.cost, trial.error, trial.folds) == (None, None, None, ())


def test_a_finished_trial_has_its_outcome() -> None:
    trial = record(Claimed(0), proposed(0), finished(0, 0.9, 3.0, (0.8, 1.0))).trials[0]
    assert trial.state is State.FINISHED
    assert (trial.value, trial.cost, trial.folds) == (0.9, 3.0, (0.8, 1.0))


def test_a_failed_trial_has_its_error_and_perhaps_a_cost() -> None:
    trial = record(Claimed(0), proposed(0), Failed(0, "boom", cost=2.0)).trials[0]
    assert trial.state is State.FAILED
    assert (trial.value, trial.cost, trial.error) == (None, 2.0, "boom")


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
    assert list(made.queue.values()) == [b, c]
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


# ---- trials -> arrays ----


def test_an_empty_history_has_the_columns_of_the_space() -> None:
    empty = history()
    for rows in (empty.X, empty.failed, empty.pending, empty.evaluated):
        assert rows.shape == (0, 4)
    assert empty.quality.shape == empty.cost.shape == empty.noise.shape == (0,)
    assert empty.designed == 0
    assert empty.handover == {}


def test_rows_are_the_encoded_params() -> None:
    h = history(Claimed(0), proposed(0, 2.5), finished(0, 1.0))
    np.testing.assert_array_equal(h.X, [[0.25, 0.25, np.nan, 0.25]])


def test_finished_failed_and_running_trials_are_kept_apart() -> None:
    events = [e for n in range(4) for e in (Claimed(n), proposed(n, float(n)))]
    h = history(*events, Failed(1, "boom"), finished(3, 9.0), finished(0, 8.0))
    assert h.X[:, 0].tolist() == [0.0, 0.3]
    assert h.quality.tolist() == [8.0, 9.0]
    assert h.failed[:, 0].tolist() == [0.1]
    assert h.pending[:, 0].tolist() == [0.2]
    assert sorted(h.evaluated[:, 0].tolist()) == [0.0, 0.1, 0.2, 0.3]


def test_the_order_in_which_trials_finish_leaves_no_trace() -> None:
    start = [e for n in range(3) for e in (Claimed(n), proposed(n, float(n)))]
    ends = [finished(0, 5.0, 1.0), Failed(1, "boom"), finished(2, 6.0, 3.0)]
    expected = history(*start, *ends)
    for order in itertools.permutations(ends):
        h = history(*start, *order)
        for name in ("X", "quality", "cost", "noise", "failed", "pending", "initial"):
            np.testing.assert_array_equal(getattr(h, name), getattr(expected, name))


def test_a_loss_changes_its_sign_and_nothing_else_does() -> None:
    events = (Claimed(0), proposed(0), finished(0, 0.25, 3.0, (0.2, 0.3)))
    up, down = history(*events), history(*events, maximize=False)
    assert up.quality.tolist() == [0.25]
    assert down.quality.tolist() == [-0.25]
    assert down.cost.tolist() == up.cost.tolist() == [3.0]
    assert down.noise.tolist() == up.noise.tolist()
    assert record(*events, maximize=False).trials[0].value == 0.25


def test_an_unknown_cost_is_not_a_number() -> None:
    assert np.isnan(history(Claimed(0), proposed(0), finished(0, 1.0, None)).cost).all()


def test_the_noise_is_the_squared_standard_error_of_the_folds() -> None:
    folds = (0.5, 0.7, 0.9)
    h = history(Claimed(0), proposed(0), finished(0, 0.7, 1.0, folds))
    assert h.noise[0] == pytest.approx(np.var(folds, ddof=1) / 3)


@pytest.mark.parametrize("folds", [(), (0.5,), (0.5, 0.5), (0.0, 0.0)])
def test_without_a_spread_of_folds_the_noise_is_unknown(folds: tuple[float, ...]) -> None:
    assert history(Claimed(0), proposed(0), finished(0, 0.5, 1.0, folds)).noise[0] == 0.0


@pytest.mark.parametrize("scale", [1e300, 1e-300])
def test_folds_of_any_size_have_a_finite_noise(scale: float) -> None:
    folds = (1.0 * scale, 2.0 * scale, -1.0 * scale)
    noise = history(Claimed(0), proposed(0), finished(0, 0.0, 1.0, folds)).noise
    assert np.isfinite(noise).all()


def test_initial_is_what_had_finished_when_a_model_first_proposed() -> None:
    origins = [Origin.ADDED, Origin.DESIGN, Origin.ENQUEUED, Origin.MODEL, Origin.DESIGN]
    events = [
        e
        for n, origin in enumerate(origins)
        for e in (Claimed(n), proposed(n, float(n), origin, seen=3 * n), finished(n, 1.0))
    ]
    h = history(*events)
    assert h.initial.tolist() == [True, True, True, False, False]
    assert h.designed == 2


def test_a_design_trial_that_finishes_after_the_model_began_is_not_initial() -> None:
    late = (Claimed(0), proposed(0), Claimed(1), proposed(1), finished(1, 1.0))
    model = (Claimed(2), proposed(2, origin=Origin.MODEL, seen=5), finished(0, 1.0))
    assert history(*late, *model).initial.tolist() == [False, True]


def test_before_any_model_all_trials_are_initial() -> None:
    h = history(Claimed(0), proposed(0), finished(0, 1.0), number=1)
    assert h.initial.tolist() == [True]


def test_the_handover_is_that_of_the_highest_number_whenever_it_was_written() -> None:
    events = (
        Claimed(0),
        Claimed(1),
        proposed(1, handover={"theta": [1]}),
        proposed(0, handover={"theta": [0]}),
    )
    assert history(*events).handover == {"theta": [1]}


def test_a_proposal_without_a_handover_leaves_the_last_one_in_place() -> None:
    events = (Claimed(0), proposed(0, handover={"theta": [0]}), Claimed(1), proposed(1))
    assert history(*events).handover == {"theta": [0]}


def test_taking_rows_takes_them_from_every_array_of_the_finished() -> None:
    events = [
        e
        for n in range(4)
        for e in (Claimed(n), proposed(n, float(n)), finished(n, float(n), 10.0 + n))
    ]
    taken = history(*events, Claimed(4), proposed(4)).take(np.array([1, 3]))
    assert taken.quality.tolist() == [1.0, 3.0]
    assert taken.cost.tolist() == [11.0, 13.0]
    assert len(taken.X) == len(taken.noise) == len(taken.initial) == 2
    assert len(taken.pending) == 1


# ---- seeds ----


def test_trial_seeds_are_31_bit_and_differ() -> None:
    seeds = [trial_seed(seed, number) for seed in range(10) for number in range(100)]
    assert len(set(seeds)) == 1000
    assert all(0 <= s < 2**31 for s in seeds)


def test_a_trial_gets_the_seed_of_its_study_and_number() -> None:
    assert record(Claimed(4), proposed(4), seed=9).trials[4].seed == trial_seed(9, 4)


def test_the_stream_of_a_proposal_depends_on_seed_and_number_alone() -> None:
    draws = {(s, n): proposal_rng(s, n).random() for s in range(5) for n in range(5)}
    assert len(set(draws.values())) == 25
    assert all(proposal_rng(s, n).random() == x for (s, n), x in draws.items())


def test_seeds_beyond_64_bits_work() -> None:
    assert trial_seed(2**200, 3) != trial_seed(2**200 + 1, 3)


def folds_of(*rows: list[float]) -> History:
    events: list[Event] = []
    for number, folds in enumerate(rows):
        events += [Claimed(number), proposed(number), finished(number, 0.5, 1.0, tuple(folds))]
    return history(*events)


def test_folds_that_are_harder_for_every_trial_are_no_noise() -> None:
    hard = np.array([0.0, -0.3, 0.2])
    noise = folds_of(*[(0.1 * i + hard).tolist() for i in range(5)]).noise
    assert noise == pytest.approx(np.zeros(5), abs=1e-20)


def test_what_is_left_of_the_spread_beside_hard_folds_is_noise() -> None:
    rng = np.random.default_rng(0)
    hard = rng.normal(0.0, 1.0, 5)
    rows = [(i + hard + rng.normal(0.0, 0.1, 5)).tolist() for i in range(200)]
    assert folds_of(*rows).noise.mean() == pytest.approx(0.1**2 / 5, rel=0.15)


def test_trials_with_other_numbers_of_folds_are_compared_among_themselves() -> None:
    hard = [0.0, -0.3, 0.2]
    noise = folds_of(hard, hard, hard, [0.1, 0.3]).noise
    assert noise[:3] == pytest.approx(np.zeros(3), abs=1e-20)
    assert noise[3] == pytest.approx(np.var([0.1, 0.3], ddof=1) / 2)
