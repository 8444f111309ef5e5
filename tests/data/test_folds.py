"""Folds inside an objective: the same for all trials, cut, reported, raced (data/folds.py)."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)

from tests.runners.trials import NO_LIMITS, the_one, trial
from tests.studies import create
from tradewind.data.folds import Fold
from tradewind.runners.evaluate import evaluate
from tradewind.runners.processes import ProcessRunner
from tradewind.runners.run import Run
from tradewind.runners.runner import Failure
from tradewind.subsets import subset
from tradewind.types import Outcome, Rival, Trial

N = 60
X = np.arange(2.0 * N).reshape(N, 2)
Y = np.repeat([0, 1, 2], [30, 20, 10])
GROUPS = np.arange(N) // 6

BEST = Rival((0.90, 0.93, 0.91, 0.92, 0.94))
EASY_FIRST = Rival((0.99, 0.98, 0.90, 0.91, 0.90))
WORSE = (0.70, 0.72, 0.71, 0.73, 0.72)


def finished(objective: Any, submitted: Trial | None = None) -> Outcome:
    result = evaluate(objective, submitted or trial())[0]
    assert isinstance(result, Outcome), result
    return result


def failed(objective: Any, submitted: Trial | None = None) -> Failure:
    result = evaluate(objective, submitted or trial())[0]
    assert isinstance(result, Failure), result
    return result


def split(*data: Any, of: Trial | None = None, **options: Any) -> list[Fold]:
    """The folds that a trial goes through."""
    return list(Run(of or trial()).folds(*data or (X, Y), error=None, **options))


def rows(folds: list[Fold]) -> list[tuple[list[int], list[int]]]:
    return [(fold.train.tolist(), fold.valid.tolist()) for fold in folds]


def reporting(*scores: float, **options: Any) -> Any:
    """An objective that reports these scores and returns nothing."""

    def objective(run: Run) -> None:
        for fold, score in zip(run.folds(X, Y, **options), scores, strict=False):
            fold.report(score)

    return objective


# ---- the outcome ----


def test_the_reported_folds_are_the_outcome() -> None:
    done = finished(reporting(0.5, 0.6, 0.7, 0.8, 0.9))
    assert done.folds == (0.5, 0.6, 0.7, 0.8, 0.9)
    assert done.value == pytest.approx(0.7)
    assert done.raced is False


def test_the_cost_is_the_whole_call_or_the_time_inside_a_timer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])

    def objective(run: Run) -> None:
        for fold in run.folds(X, Y):
            now[0] += 1.0
            if run.number:
                with run.timer():
                    now[0] += 2.0
            fold.report(0.5)

    done = [finished(objective, trial(n)) for n in (0, 1)]
    assert [(d.cost, d.trainings) for d in done] == [(1.0, 5), (2.0, 5)]  # of one training
    old = [finished(objective, trial(n, per_training=False)) for n in (0, 1)]
    assert [(d.cost, d.trainings) for d in old] == [(5.0, 1), (10.0, 1)]  # of all folds


@pytest.mark.parametrize(
    ("answer", "value", "cost"),
    [
        ({"cost": 3.0}, 0.7, 3.0),
        ({"value": 0.1, "cost": 3.0}, 0.1, 3.0),
        ({"value": None, "folds": None, "cost": 3.0}, 0.7, 3.0),
    ],
)
def test_what_is_returned_beside_comes_first(answer: Any, value: float, cost: float) -> None:
    def objective(run: Run) -> Any:
        reporting(0.5, 0.6, 0.7, 0.8, 0.9)(run)
        return answer

    done = finished(objective)
    assert done.value == pytest.approx(value)
    assert done == Outcome(done.value, cost, (0.5, 0.6, 0.7, 0.8, 0.9), trainings=5)


def test_a_returned_number_is_the_value() -> None:
    def objective(run: Run) -> float:
        reporting(0.5, 0.6, 0.7, 0.8, 0.9)(run)
        return 0.1

    done = finished(objective)
    assert (done.value, len(done.folds)) == (0.1, 5)


def test_returned_folds_come_before_the_reported_ones() -> None:
    def objective(run: Run) -> dict[str, list[float]]:
        reporting(0.5, 0.6, 0.7, 0.8, 0.9)(run)
        return {"folds": [0.1, 0.3]}

    assert finished(objective).folds == (0.1, 0.3)
    assert finished(objective).value == pytest.approx(0.2)


def test_anything_with_one_number_can_be_reported() -> None:
    done = finished(reporting(np.float32(0.5), np.array([0.5]), 1, True, 0.5))
    assert done.folds == (0.5, 0.5, 1.0, 1.0, 0.5)
    assert all(type(value) is float for value in done.folds)


# ---- splitting ----


def test_all_trials_of_a_study_have_the_same_folds() -> None:
    first, second = split(of=trial(0, data_seed=4)), split(of=trial(7, data_seed=4))
    assert rows(first) == rows(second)
    assert [fold.number for fold in first] == [0, 1, 2, 3, 4]
    assert rows(split(of=trial(0, data_seed=5))) != rows(first)


def test_any_seed_will_do() -> None:
    assert len(split(of=trial(data_seed=2**80 + 1, train_size=0.5))) == 5


def test_classes_are_spread_evenly() -> None:
    for fold in split():
        assert np.bincount(Y[fold.valid]).tolist() == [6, 4, 2]


@pytest.mark.parametrize(
    "y",
    [
        np.array(["b", "a"])[np.arange(N) % 2],
        np.array(["b", "a"], dtype=object)[np.arange(N) % 2],
        ["b", "a"] * (N // 2),
        np.array(["a", 1] * (N // 2), dtype=object),
        np.arange(N) % 2 == 0,
        (np.arange(N) % 2).astype(object),
        (np.arange(N) % 2).astype(float),
        (np.arange(N) % 2)[:, None],
        pd.Series(np.arange(N) % 2, index=np.arange(N) + 100, dtype="category"),
    ],
    ids=lambda y: type(y).__name__,
)
def test_whatever_names_the_classes_they_are_spread(y: Any) -> None:
    second = np.arange(N) % 2
    assert [int(second[fold.valid].sum()) for fold in split(X, y)] == [6] * 5


@pytest.mark.parametrize(
    "y",
    [
        None,
        np.linspace(0, 1, N),
        np.arange(N) // 2,  # whole numbers that are measurements
        np.full(N, np.nan),
        np.zeros((N, 3)),
        [[1]] * (N - 1) + [[1, 2]],
    ],
    ids=lambda y: type(y).__name__,
)
def test_where_there_are_no_classes_rows_are_shuffled(y: Any) -> None:
    expected = KFold(5, shuffle=True, random_state=9).split(X)
    found = rows(split(X, y, of=trial(data_seed=9)))
    assert found == [(a.tolist(), b.tolist()) for a, b in expected]


def test_folds_and_subsets_agree_on_what_classes_are() -> None:
    few, many = np.arange(600) % 20, np.arange(600) % 80  # too many whole numbers are measurements
    for y, stratified in ((few, True), (many, False)):
        counts = [np.bincount(y[fold.valid], minlength=80) for fold in split(y, y)]
        assert bool(np.ptp(counts, axis=0).max() <= 1) is stratified
        rows = subset(y, 0.2, seed=0)
        assert (len(np.unique(y[rows])) == len(np.unique(y))) is stratified


def test_groups_stay_together() -> None:
    folds = split(X, Y, groups=GROUPS)
    assert len(folds) == 5
    for fold in folds:
        assert not set(GROUPS[fold.train]) & set(GROUPS[fold.valid])


@pytest.mark.parametrize(
    "data",
    [
        pd.DataFrame(X, index=[f"r{i}" for i in range(N)]),
        sparse.csr_matrix(X),
        [f"text {i}" for i in range(N)],
        X.tolist(),
    ],
    ids=lambda data: type(data).__name__,
)
def test_rows_are_counted_whatever_holds_them(data: Any) -> None:
    assert rows(split(data, Y)) == rows(split(X, Y))


@pytest.mark.parametrize(
    "cv",
    [
        KFold(4, shuffle=True),
        StratifiedKFold(4, shuffle=True),
        RepeatedKFold(n_splits=2, n_repeats=2),
        ShuffleSplit(4, test_size=0.2),
        KFold(4, shuffle=True, random_state=np.random.RandomState(1)),
        np.int64(4),
    ],
    ids=lambda cv: type(cv).__name__,
)
def test_a_splitter_that_draws_gives_the_same_folds_to_all_trials(cv: Any) -> None:
    before = repr(cv)
    one, two = (rows(split(cv=cv, of=trial(n, data_seed=3))) for n in (0, 1))
    assert one == two
    assert len(one) == 4
    assert repr(cv) == before


def test_a_splitter_that_does_not_draw_splits_as_it_does() -> None:
    for cv in (KFold(3), TimeSeriesSplit(3), LeaveOneOut(), KFold(3, shuffle=True, random_state=5)):
        expected = [(a.tolist(), b.tolist()) for a, b in cv.split(X, Y)]
        assert rows(split(cv=cv, of=trial(data_seed=1))) == expected


def test_a_splitter_of_the_users_own_sees_the_data() -> None:
    class Halves:
        def split(self, X: Any, y: Any, groups: Any) -> Iterator[Any]:
            assert (len(X), len(y), len(groups)) == (N, N, N)
            yield range(30), range(30, N)

    assert rows(split(X, Y, cv=Halves(), groups=GROUPS)) == [(list(range(30)), list(range(30, N)))]


def test_groups_reach_a_splitter() -> None:
    found = rows(split(X, Y, cv=GroupKFold(3), groups=GROUPS))
    assert found == [(a.tolist(), b.tolist()) for a, b in GroupKFold(3).split(X, Y, GROUPS)]


def test_pairs_of_rows_are_folds() -> None:
    half = np.arange(N) < 30
    pairs = [(half, ~half), ([0, 1], [2]), (range(5), np.array([7], dtype=np.uint8))]
    expected = [
        (list(range(30)), list(range(30, N))),
        ([0, 1], [2]),
        ([0, 1, 2, 3, 4], [7]),
    ]
    assert rows(split(cv=pairs)) == rows(split(cv=(pair for pair in pairs))) == expected


def test_an_exhausted_generator_is_an_error_that_says_so() -> None:
    pairs = (pair for pair in [([0], [1])])
    assert finished(lambda run: [f.report(1.0) for f in run.folds(X, cv=pairs)] and None).value == 1
    assert "a generator gives its folds once" in failed(lambda run: run.folds(X, cv=pairs)).error


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (1, "cv must be a whole number ≥ 2, but got 1"),
        (0, "cv must be a whole number ≥ 2, but got 0"),
        (True, "cv must be a number of folds, a splitter, or pairs of rows, but got True"),
        (None, "but got None"),
        (2.5, "but got 2.5"),
        ("five", "but got 'five'"),
        ([], "cv must give at least one fold"),
        ([1, 2], "cv must give pairs of row numbers, but got 1"),
        ([([0.5], [1])], "cv must give pairs of row numbers, but got ([0.5], [1])"),
        ([([0], [1], [2])], "cv must give pairs of row numbers"),
        ([([[0]], [1])], "cv must give pairs of row numbers"),
        ([([], [1])], "needs rows to train with and to score on, but has 0 and 1"),
        ([([1], [])], "but has 1 and 0"),
    ],
)
def test_what_is_no_cross_validation_is_named(cv: Any, message: str) -> None:
    assert message in failed(lambda run: run.folds(X, Y, cv=cv)).error


@pytest.mark.parametrize("error", [0.0, 1.0, math.nan, -1])
def test_an_error_that_is_no_probability_is_refused(error: float) -> None:
    assert (
        "error must be a number in (0, 1)" in failed(lambda run: run.folds(X, Y, error=error)).error
    )


# ---- the training size ----


def test_training_rows_are_cut_to_the_size_of_the_trial_and_scored_rows_are_not() -> None:
    whole, half = split(), split(of=trial(train_size=0.5))
    for all_rows, some in zip(whole, half, strict=True):
        assert set(some.train) < set(all_rows.train)
        assert some.train.tolist() == sorted(some.train)
        assert np.bincount(Y[some.train]).tolist() == [12, 8, 4]
        assert some.valid.tolist() == all_rows.valid.tolist()


def test_smaller_subsets_are_within_larger_ones_and_the_same_for_all_trials() -> None:
    sizes = [
        split(of=trial(number, train_size=size, data_seed=2))
        for number, size in enumerate((0.2, 0.4, 0.4, 0.8))
    ]
    assert rows(sizes[1]) == rows(sizes[2])
    for folds in zip(*sizes, strict=True):
        small, middle, _, large = (set(fold.train) for fold in folds)
        assert small < middle < large


def test_each_fold_has_a_subset_of_its_own() -> None:
    first, second, *_ = split(of=trial(train_size=0.5))
    both = set(first.train) | set(first.valid) | set(second.train) | set(second.valid)
    assert len(both) > 0.75 * N  # one subset of all rows would leave half of them unused


def test_whole_groups_are_taken() -> None:
    for fold in split(X, Y, groups=GROUPS, of=trial(train_size=0.5)):
        taken, counts = np.unique(GROUPS[fold.train], return_counts=True)
        assert counts.tolist() == [6] * len(taken)
        assert len(taken) == 4


def test_rows_without_a_target_are_cut_too() -> None:
    assert [len(fold.train) for fold in split(X, of=trial(train_size=0.25))] == [12] * 5


def test_a_subset_is_that_of_the_training_size_and_the_same_for_all_trials() -> None:
    one, two, more = (
        Run(trial(n, train_size=size, data_seed=3)).subset(Y)
        for n, size in enumerate((0.5, 0.5, 0.8))
    )
    assert one.tolist() == two.tolist()
    assert set(one) < set(more)
    assert np.bincount(Y[one]).tolist() == [15, 10, 5]
    latest = Run(trial(train_size=0.5)).subset(Y, time=True)
    assert latest.tolist() == list(range(30, N))
    whole = Run(trial(train_size=0.5)).subset(N, groups=GROUPS, kind="random")
    assert np.unique(GROUPS[whole], return_counts=True)[1].tolist() == [6] * 5


# ---- racing ----


def test_a_trial_that_is_clearly_behind_gets_no_more_folds() -> None:
    seen: list[Run] = []

    def objective(run: Run) -> None:
        seen.append(run)
        for fold in run.folds(X, Y):
            assert not run.raced
            fold.report(WORSE[fold.number])

    done = finished(objective, trial(rival=BEST))
    assert done.raced
    assert seen[0].raced
    assert done.folds == WORSE[: len(done.folds)]
    assert len(done.folds) < 5


def test_the_value_of_a_raced_trial_is_an_estimate_over_all_folds() -> None:
    done = finished(reporting(0.50, 0.52, 0.31, 0.32, 0.31), trial(rival=EASY_FIRST))
    assert done.raced
    assert done.folds == (0.50, 0.52)
    assert done.value == pytest.approx(0.936 + (1.02 - 1.97) / 2)


@pytest.mark.parametrize(
    "answer", [float, lambda mean: {"value": mean}, lambda mean: {"value": np.float32(mean)}]
)
def test_a_returned_mean_of_few_folds_is_not_taken_for_one_of_all(answer: Any) -> None:
    def objective(run: Run) -> Any:
        scores = []
        for fold in run.folds(X, Y):
            scores.append((0.50, 0.52)[fold.number])
            fold.report(scores[-1])
        return answer(np.mean(scores))

    assert finished(objective, trial(rival=EASY_FIRST)).value == pytest.approx(0.461)


def test_returned_folds_of_a_raced_trial_are_completed_too() -> None:
    def objective(run: Run) -> Any:
        scores = []
        for fold in run.folds(X, Y):
            scores.append(WORSE[fold.number])
            fold.report(scores[-1])
        return {"folds": scores, "cost": 2.0}

    submitted = trial(rival=BEST)
    plain, returned = finished(reporting(*WORSE), submitted), finished(objective, submitted)
    assert (returned.value, returned.folds, returned.raced) == (plain.value, plain.folds, True)
    assert returned.cost == 2.0


def test_a_rounded_mean_of_a_raced_trial_is_moved_as_the_mean_is() -> None:
    def objective(run: Run) -> float:
        reporting(*WORSE)(run)
        assert run.reported is not None
        return round(float(np.mean(run.reported.reported)), 2)

    done = finished(objective, trial(rival=BEST))
    exact = finished(reporting(*WORSE), trial(rival=BEST))
    assert done.raced
    assert done.value == pytest.approx(exact.value, abs=0.01)


def test_in_an_older_study_a_raced_trial_measures_a_part_of_its_cost() -> None:
    measured = finished(reporting(*WORSE), trial(rival=BEST, per_training=False))
    assert measured.share == len(measured.folds) / len(BEST.folds)

    def objective(run: Run) -> dict[str, float]:
        reporting(*WORSE)(run)
        return {"cost": 3.0}

    returned = finished(objective, trial(rival=BEST, per_training=False))
    assert (returned.cost, returned.share, returned.trainings) == (3.0, 1.0, 1)


def test_a_raced_trial_costs_one_training(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])

    def objective(run: Run) -> None:
        for fold in run.folds(X, Y):
            now[0] += 1.0
            fold.report(WORSE[fold.number])

    done = finished(objective, trial(rival=BEST))
    assert (done.cost, done.trainings, done.share) == (1.0, len(done.folds), 1.0)
    assert done.trainings < 5


def test_where_a_loss_is_minimized_the_larger_is_behind() -> None:
    better = Rival(WORSE, sign=-1.0)
    assert finished(reporting(*BEST.folds), trial(rival=better)).raced
    assert not finished(reporting(*BEST.folds), trial(rival=Rival(WORSE))).raced


def test_what_the_goal_forgives_is_not_behind() -> None:
    forgiving = Rival(BEST.folds, margin=0.3)
    assert not finished(reporting(*WORSE), trial(rival=forgiving)).raced


@pytest.mark.parametrize(
    ("rival", "options"),
    [
        (None, {}),
        (BEST, {"error": None}),
        (Rival(()), {}),
        (Rival(BEST.folds[:3]), {}),
        (Rival((*BEST.folds, 0.9)), {}),
        (Rival((math.nan, *BEST.folds[1:])), {}),
    ],
    ids=["none", "not wanted", "no folds", "fewer folds", "more folds", "not a number"],
)
def test_without_a_rival_of_the_same_folds_nothing_is_raced(rival: Any, options: Any) -> None:
    done = finished(reporting(*WORSE, **options), trial(rival=rival))
    assert (done.folds, done.raced) == (WORSE, False)


def test_two_folds_cannot_be_raced() -> None:
    done = finished(reporting(-1e9, -2e9, cv=2), trial(rival=Rival((0.9, 0.8))))
    assert (done.raced, len(done.folds)) == (False, 2)


def test_a_small_error_waits_for_more_folds() -> None:
    lengths = [
        len(finished(reporting(*WORSE, error=error), trial(rival=BEST)).folds)
        for error in (0.2, 0.05, 0.0001)
    ]
    assert lengths == sorted(lengths)
    assert lengths[0] < lengths[-1]


def test_many_rows_held_out_ask_for_more_evidence() -> None:
    """Splits in half correlate more than ten folds do, however many there are."""
    rng = np.random.default_rng(0)
    better = rng.normal(0.0, 1.0, 20)
    worse = better - rng.normal(2.0, 1.0, 20)
    run = {
        share: len(
            finished(
                reporting(*worse, cv=ShuffleSplit(20, test_size=share)),
                trial(rival=Rival(tuple(better))),
            ).folds
        )
        for share in (0.05, 0.5)
    }
    assert run[0.05] < run[0.5]


# ---- misuse ----


def test_a_fold_is_reported_once() -> None:
    def objective(run: Run) -> None:
        for fold in run.folds(X, Y):
            fold.report(0.5)
            fold.report(0.5)

    assert "a fold can be reported once, but fold 0 was reported before" in failed(objective).error


@pytest.mark.parametrize("value", [math.nan, math.inf, None, "0.5", [0.5, 0.6]])
def test_what_is_reported_is_a_finite_number(value: Any) -> None:
    failure = failed(reporting(0.5, value, 0.5, 0.5, 0.5))
    assert f"fold 1 must be a finite number, but got {value!r}" in failure.error


def test_the_next_fold_comes_when_the_last_one_is_reported() -> None:
    def objective(run: Run) -> None:
        for fold in run.folds(X, Y):
            if fold.number != 1:
                fold.report(0.5)

    assert "fold 1 must be reported before the next one" in failed(objective).error


def test_the_last_fold_is_missed_too() -> None:
    def objective(run: Run) -> None:
        for fold in run.folds(X, Y):
            if fold.number < 4:
                fold.report(0.5)

    assert "fold 4 must be reported" in failed(objective).error


def test_without_racing_folds_are_reported_in_any_order() -> None:
    def objective(run: Run) -> None:
        for fold in reversed(list(run.folds(X, Y, error=None))):
            fold.report(fold.number)

    assert finished(objective, trial(rival=BEST)).folds == (0.0, 1.0, 2.0, 3.0, 4.0)


def test_a_fold_that_was_never_reported_is_counted() -> None:
    def objective(run: Run) -> None:
        for fold in list(run.folds(X, Y, error=None))[1:]:
            fold.report(0.5)

    assert "all 5 folds must be reported, but 4 were" in failed(objective).error


def leaving(answer: Any) -> Any:
    def objective(run: Run) -> Any:
        for fold in run.folds(X, Y):
            fold.report(0.5)
            if fold.number == 1:
                break
        return answer

    return objective


def test_a_loop_that_was_left_has_no_mean() -> None:
    assert "all 5 folds must be reported, but 2 were" in failed(leaving(None)).error
    assert "all 5 folds must be reported, but 2 were" in failed(leaving({"cost": 1.0})).error


def test_a_loop_that_was_left_may_return_a_value() -> None:
    done = finished(leaving(0.3), trial(rival=BEST))
    assert (done.value, done.folds, done.raced) == (0.3, (0.5, 0.5), False)
    assert finished(leaving({"folds": [0.1]})).folds == (0.1,)


def test_folds_that_nobody_went_through_are_no_result() -> None:
    def objective(run: Run) -> None:
        run.folds(X, Y)

    assert "all 5 folds must be reported, but 0 were" in failed(objective).error


def test_an_error_in_the_loop_is_a_failure_with_its_traceback() -> None:
    def objective(run: Run) -> None:
        for fold in run.folds(X, Y):
            fold.report(1 / fold.number)

    failure = failed(objective)
    assert isinstance(failure.raised, ZeroDivisionError)
    assert "in objective" in failure.error


def test_folds_are_iterated_over_once() -> None:
    def objective(run: Run) -> None:
        folds = run.folds(X, Y)
        for _ in range(2):
            for fold in folds:
                fold.report(0.5)

    assert "can be iterated over once" in failed(objective).error


def test_folds_can_be_called_once_per_trial() -> None:
    def objective(run: Run) -> None:
        for _ in range(2):
            for fold in run.folds(X, Y):
                fold.report(0.5)

    assert "folds() can be called once per trial" in failed(objective).error


def test_the_number_of_folds_is_known_before() -> None:
    assert len(Run(trial()).folds(X, Y, cv=7)) == 7


def test_targets_of_another_length_are_an_error() -> None:
    assert "inconsistent numbers of samples" in failed(lambda run: run.folds(X, Y[:-1])).error


# ---- in a worker ----


def test_a_worker_process_races_alone() -> None:
    workers = ProcessRunner(1).open(reporting(*WORSE), NO_LIMITS)
    try:
        done = the_one(workers, rival=BEST, data_seed=5)
    finally:
        workers.close()
    assert isinstance(done.result, Outcome), done.result
    assert done.result.raced
    assert done.result.folds == finished(reporting(*WORSE), trial(rival=BEST)).folds


@pytest.mark.parametrize("n_workers", [1, 2])
def test_a_study_races_its_trials_against_the_best_so_far(n_workers: int) -> None:
    hard = (0.05, -0.02, 0.03, 0.0, -0.06)

    def objective(run: Run) -> None:
        for fold in run.folds(X, Y):
            noise = np.random.default_rng([run.seed, fold.number]).normal(0.0, 0.01)
            fold.report(run.params["x"] + hard[fold.number] + noise)

    study = create(direction="maximize")
    study.optimize(objective, n_trials=12, n_workers=n_workers)
    raced = [t for t in study.trials if t.raced]
    assert len(raced) >= 4
    assert all(2 <= len(t.folds) < 5 for t in raced)
    assert all(len(t.folds) == 5 for t in study.trials if not t.raced)
    assert max(abs(t.value - t.params["x"]) for t in study.trials) < 0.05
    assert study.best.params["x"] == max(t.params["x"] for t in study.trials)


def test_a_smaller_part_of_what_is_in_order_of_time_is_its_latest() -> None:
    rows = np.arange(60)[:, None]
    for options in ({"cv": TimeSeriesSplit(3)}, {"cv": 3, "time": True}):
        run = Run(replace(trial(), train_size=0.5))
        for fold in run.folds(rows, **options):
            before = np.setdiff1d(np.arange(60), fold.valid)
            if "time" not in options:
                before = before[before < fold.valid.min()]
            assert list(fold.train) == list(before[-len(fold.train) :])
            assert len(fold.train) == round(len(before) / 2)
            fold.report(0.5)


def test_folds_are_imported_without_scipy_and_scikit_learn() -> None:
    code = "import sys, tradewind.data.folds; print({'scipy', 'sklearn'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
