"""Trials become arrays, in one order and one sign."""

from __future__ import annotations

import copy
import itertools
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tradewind as tw
from tests.histories import finished, history, proposed, state_of
from tradewind.engine.propose import Proposer
from tradewind.errors import FormatError
from tradewind.log.events import (
    Abandoned,
    Claimed,
    Enqueued,
    Event,
    Failed,
    Finished,
    Proposed,
    Requeued,
    Started,
)
from tradewind.log.state import StudyState
from tradewind.optimizer import history as history_module
from tradewind.optimizer.history import History
from tradewind.optimizer.strategies.staged import trained_with
from tradewind.seeds import proposal_rng, trial_seed
from tradewind.types import Origin, Outcome

# ---- trials -> arrays ----


def test_an_empty_history_has_the_columns_of_the_space() -> None:
    empty = history()
    for rows in (empty.X, empty.failed, empty.pending, empty.evaluated):
        assert rows.shape == (0, 4)
    assert empty.quality.shape == empty.cost.shape == empty.noise.shape == (0,)
    assert empty.designed == 0
    assert empty.handover == {}


@pytest.mark.parametrize(
    "params",
    [{}, {"x": 0.5, "y": 1}, {"x": "a"}, {"x": 10**400}, {"x": 7.5}, {"x": None}],
    ids=lambda params: str(params)[:30],
)
def test_a_stored_trial_outside_the_space_is_an_error_of_the_format(params: Any) -> None:
    state = StudyState(tw.Space({"x": tw.Float(0, 1)}), seed=0, maximize=True)
    state.apply([Claimed(0), Proposed(0, params, Origin.DESIGN, 1)])
    with pytest.raises(FormatError, match="the log holds a trial outside its space"):
        replace(Proposer(state).history(1))  # looks at all of it


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


def test_waiting_trials_are_pending_and_given_up_ones_teach_nothing() -> None:
    events = [e for n in range(5) for e in (Claimed(n), proposed(n, float(n)))]
    ends = (Started(0), Started(1), Requeued(1, "died"), Abandoned(2, "lost"))
    h = history(*events, *ends, Failed(3, "boom", penalize=False), Failed(4, "boom"))
    assert h.pending[:, 0].tolist() == [0.0, 0.1]
    assert h.failed[:, 0].tolist() == [0.4]
    assert len(h.X) == 0


def test_the_cost_to_stay_within_is_part_of_what_is_known() -> None:
    assert Proposer(state_of()).history(0, max_cost=3.0).max_cost == 3.0
    assert Proposer(state_of()).history(0).max_cost is None


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
    assert state_of(*events, maximize=False).trials[0].value == 0.25


def test_an_unknown_cost_is_not_a_number() -> None:
    assert np.isnan(history(Claimed(0), proposed(0), finished(0, 1.0, None)).cost).all()


def test_the_noise_is_the_squared_standard_error_of_the_folds() -> None:
    folds = (0.5, 0.7, 0.9)
    h = history(Claimed(0), proposed(0), finished(0, 0.7, 1.0, folds))
    assert h.noise[0] == pytest.approx(np.var(folds, ddof=1) / 3)


@pytest.mark.parametrize("folds", [(), (0.5,), (0.5, 0.5), (0.0, 0.0)])
def test_without_a_spread_of_folds_the_noise_is_unknown(folds: tuple[float, ...]) -> None:
    assert history(Claimed(0), proposed(0), finished(0, 0.5, 1.0, folds)).noise[0] == 0.0


@pytest.mark.parametrize("scale", [5e299, 1e-300])
def test_folds_of_any_size_have_a_finite_noise(scale: float) -> None:
    folds = (1.0 * scale, 2.0 * scale, -1.0 * scale)
    noise = history(Claimed(0), proposed(0), finished(0, 0.0, 1.0, folds)).noise
    assert np.isfinite(noise).all()


def test_initial_is_what_had_finished_when_a_model_first_proposed() -> None:
    origins = [Origin.ADDED, Origin.DESIGN, Origin.ENQUEUED, Origin.MODEL, Origin.DESIGN]
    asked = {"x": 2.0, "kernel": "linear", "size": 0.5}
    events = [
        e
        for n, origin in enumerate(origins)
        for e in (
            Claimed(n, enqueued=0 if origin is Origin.ENQUEUED else None),
            proposed(n, float(n), origin, seen=1 + 3 * n),
            finished(n, 1.0),
        )
    ]
    h = history(Enqueued(asked), *events)
    assert h.initial.tolist() == [True, True, True, False, False]
    assert h.designed == 2


def test_a_design_trial_that_finishes_after_the_model_began_is_initial_all_the_same() -> None:
    late = (Claimed(0), proposed(0), Claimed(1), proposed(1), finished(1, 1.0))
    model = (Claimed(2), proposed(2, origin=Origin.MODEL, seen=5), finished(0, 1.0))
    assert history(*late, *model).initial.tolist() == [True, True]


def test_what_was_added_before_the_first_model_saw_the_log_is_initial() -> None:
    """Its number is higher, but the model knew it: it had been claimed long before."""
    events = (Claimed(0), Claimed(1), proposed(1), finished(1, 1.0))
    model = (proposed(0, origin=Origin.MODEL, seen=4), finished(0, 2.0))
    assert history(*events, *model).initial.tolist() == [False, True]


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


def test_a_raced_trial_is_taken_to_cost_what_all_folds_would_have() -> None:
    raced = Finished(1, Outcome(0.5, 2.0, (0.4, 0.6), raced=True, share=0.4))
    complete = finished(0, 0.8, 5.0, (0.8,) * 5)
    seen = history(Claimed(0), proposed(0), Claimed(1), proposed(1), complete, raced)
    np.testing.assert_array_equal(seen.cost, [5.0, 5.0])
    np.testing.assert_array_equal(seen.raced, [False, True])


def test_the_history_of_one_size_has_the_trials_of_that_size_alone() -> None:
    def sized(number: int, size: float) -> Event:
        return Proposed(number, {"x": float(number)}, Origin.DESIGN, 0, train_size=size)

    state = StudyState(tw.Space({"x": tw.Float(0, 10)}), seed=0, maximize=True)
    sizes = [0.3, 1.0, 0.3, 1.0, 0.3, 1.0, 0.3]
    state.apply([Claimed(n) for n in range(7)] + [sized(n, s) for n, s in enumerate(sizes)])
    state.apply([finished(0, 0.5), finished(1, 0.6), Failed(2, "no"), Abandoned(3, "no")])
    seen = Proposer(state).history(9)
    small = trained_with(seen, 0.3)
    assert [len(g) for g in (small.X, small.failed, small.pending, small.ignored)] == [1, 1, 2, 0]
    np.testing.assert_array_equal(small.quality, [0.5])
    large = trained_with(seen, 1.0)
    assert [len(g) for g in (large.X, large.failed, large.pending, large.ignored)] == [1, 0, 1, 1]
    assert (large.sizes.finished == 1.0).all()
    assert not len(trained_with(seen, 0.5).X)


# ---- arrays are made when somebody looks ----


def trial_events(number: int) -> list[Event]:
    return [Claimed(number), proposed(number, number / 20.0), finished(number, float(number))]


def test_a_copied_history_does_not_carry_the_study() -> None:
    large = replace(finished(0, 1.0), outcome=Outcome(1.0, attributes={"notes": "x" * 30_000}))
    proposer = Proposer(state_of(Claimed(0), proposed(0, 0.5), large))
    assert len(pickle.dumps(proposer.history(1))) < 10_000


def test_a_history_that_nobody_looks_at_encodes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    proposer = Proposer(state_of(*trial_events(0)))
    monkeypatch.setattr(type(proposer.state.space), "encode", None)
    assert proposer.history(1).designed == 1


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda h: pickle.loads(pickle.dumps(h))]
)
def test_what_is_looked_at_late_is_what_was_known(copied: Callable[[History], History]) -> None:
    state = state_of(*trial_events(0), Claimed(1), proposed(1, 1.0))
    proposer = Proposer(state)
    early, expected = proposer.history(2), replace(proposer.history(2))
    kept = copied(early)
    state.apply([finished(1, 1.0), *(e for n in range(2, 200) for e in trial_events(n))])
    assert len(proposer.history(200).X) == 200
    for late in (early, kept):
        assert late.tried.times(state.space.encode([state.trials[150].params])).tolist() == [0]
        for name in ("X", "quality", "cost", "noise", "raced", "pending", "initial", "load"):
            np.testing.assert_array_equal(getattr(late, name), getattr(expected, name))
        assert len(late.sizes.pending) == 1


def test_an_attribute_that_a_history_lacks_is_an_error() -> None:
    with pytest.raises(AttributeError, match="x_train"):
        getattr(history(), "x_train")  # noqa: B009


def test_rows_are_looked_up_among_all_trials_of_a_history() -> None:
    events = [e for n in range(4) for e in (Claimed(n), proposed(n, float(n // 2)))]
    h = history(*events, finished(0, 1.0), Failed(1, "boom"), Abandoned(2, "lost"))
    rows = h.evaluated[[0, -1]]
    for seen in (h, replace(h)):
        assert seen.tried.count == 4
        assert seen.tried.times(np.vstack([rows, rows + 0.01])).tolist() == [2, 2, 0, 0]
    fewer = replace(h, ignored=h.ignored[:0])
    assert fewer.tried.times(rows).tolist() == [2, 1]


def test_an_interrupted_encoding_counts_no_row_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    proposer = Proposer(state_of(*trial_events(0), *trial_events(1)))
    original = history_module.add_places

    def interrupted(*arguments: Any) -> None:
        original(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(history_module, "add_places", interrupted)
        with pytest.raises(KeyboardInterrupt):
            proposer.history(2).tried  # noqa: B018
    h = proposer.history(2)
    assert h.tried.times(h.X).tolist() == [1, 1]
