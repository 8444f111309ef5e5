"""Running finalists again: which repeats run, what is reported, and what the search sees of it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tradewind as tw
from tests.studies import create, numbers, quick
from tradewind.errors import NothingFinished
from tradewind.log.events import Confirming, Enqueued
from tradewind.types import State

LINE = tw.Space({"x": tw.Float(0, 1)})
QUIET: Any = {"show_progress": False}


def noisy(trial: Any) -> dict[str, float]:
    noise = 0.05 * np.random.default_rng(trial.seed).normal()
    return {"value": 0.5 + 0.3 * trial.params["x"] + noise, "cost": 1.0 + trial.params["x"]}


def searched(n: int = 12, **options: Any) -> tw.Study:
    study = create(LINE, **options)
    study.optimize(noisy, n, **QUIET)
    return study


def test_finalists_are_run_again_with_other_seeds_and_reported_best_first() -> None:
    study = searched()
    top = sorted(study.trials, key=lambda t: -(t.value or 0.0))[:3]
    confirmation = study.confirm(noisy, top=3, repeats=4, **QUIET)
    assert len(study.trials) == 12 + 3 * 4
    assert {f.trial.number for f in confirmation} == {t.number for t in top}
    for finalist in confirmation:
        first, value = finalist.trial, finalist.value
        assert value is not None
        assert [run.params for run in finalist.runs] == [first.params] * 4
        assert len({run.seed for run in (first, *finalist.runs)}) == 5
        assert {run.data_seed for run in finalist.runs} == {first.data_seed}
        values = [run.value for run in finalist.runs]
        assert value.mean == pytest.approx(np.mean(values))
        assert value.error == (confirmation[0].value or value).error  # one estimate for all
    means = [f.value.mean for f in confirmation if f.value is not None]
    assert means == sorted(means, reverse=True)
    assert confirmation.winner == confirmation[0].trial
    assert confirmation[0].behind is None
    assert all(f.behind is not None and f.behind.gain <= 0.0 for f in list(confirmation)[1:])
    assert confirmation.missing == 0


def test_called_again_only_what_is_missing_runs() -> None:
    study = searched()
    first = study.confirm(noisy, top=3, repeats=2, **QUIET)
    assert study.confirm(noisy, top=3, repeats=2, **QUIET) == first
    assert len(study.trials) == 12 + 6
    more = study.confirm(noisy, top=3, repeats=3, **QUIET)
    assert len(study.trials) == 12 + 9
    assert {f.trial.number for f in more} == {f.trial.number for f in first}


def test_an_interrupted_confirmation_goes_on_with_the_same_finalists(tmp_path: Path) -> None:
    storage = tmp_path / "runs.db"
    study = searched(storage=storage)
    calls = 0

    def interrupted(trial: Any) -> dict[str, float]:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return {"value": 0.0, "cost": 1.0}  # so bad that the ranking changes

    with pytest.raises(KeyboardInterrupt):
        study.confirm(interrupted, top=3, repeats=2, **QUIET)
    asked = [e for e in study._session.log.read(0) if isinstance(e, Confirming)]
    again = tw.load_study(storage)
    confirmation = again.confirm(noisy, top=3, repeats=2, **QUIET)
    events = again._session.log.read(0)
    assert [e for e in events if isinstance(e, Confirming)] == asked
    assert {f.trial.number for f in confirmation} == set(asked[0].trials)
    assert confirmation.missing == 0
    ended = [len(f.runs) + f.failed for f in confirmation]
    assert ended == [2, 2, 2]
    assert sum(isinstance(e, Enqueued) for e in events) == 6


def test_a_search_in_between_makes_new_finalists_and_keeps_the_old_repeats() -> None:
    study = searched(6)
    study.confirm(noisy, top=2, repeats=2, **QUIET)
    study.add({"x": 1.0}, 5.0, cost=1.0)
    confirmation = study.confirm(noisy, top=3, repeats=2, **QUIET)
    assert 10 in [f.trial.number for f in confirmation]
    assert all(len(f.runs) == 2 for f in confirmation)


def test_folds_are_compared_fold_by_fold_and_none_is_raced() -> None:
    X = np.zeros((30, 1))

    def cross_validated(trial: Any) -> None:
        rng = np.random.default_rng(trial.seed)
        for fold in trial.folds(X, cv=5, error=0.9):
            fold.report(trial.params["x"] + 0.1 * fold.number + 0.01 * rng.normal())

    study = create(LINE)
    study.optimize(cross_validated, 8, **QUIET)
    assert any(t.raced for t in study.trials)
    confirmation = study.confirm(cross_validated, top=3, repeats=1, **QUIET)
    assert not any(run.raced for f in confirmation for run in f.runs)
    assert all(f.behind.known_from == "folds" for f in confirmation if f.behind is not None)


def test_failed_repeats_are_counted_and_not_run_again() -> None:
    study = searched(4)

    def broken(trial: Any) -> float:
        raise ValueError("out of luck")

    confirmation = study.confirm(broken, top=2, repeats=2, **QUIET)
    assert [(len(f.runs), f.failed, f.value) for f in confirmation] == [(0, 2, None)] * 2
    assert confirmation.missing == 0
    assert "0 runs finished, 4 failed" in str(confirmation)
    study.confirm(broken, top=2, repeats=2, **QUIET)
    assert len(study.trials) == 4 + 4


def test_a_confirmation_without_time_says_what_is_missing() -> None:
    study = searched(4)
    confirmation = study.confirm(noisy, top=2, repeats=2, timeout=0, **QUIET)
    assert confirmation.missing == 4
    assert "4 missing: call confirm again" in str(confirmation)
    assert study.confirm(noisy, top=2, repeats=2, **QUIET).missing == 0


def test_the_report_is_a_small_table() -> None:
    study = create(LINE)
    for x, value, cost in [(0.9, 0.9, 2.0), (0.8, 0.8, 1.0)]:
        study.add({"x": x}, value, cost=cost)
    values = iter([0.88, 0.80, 0.90, 0.79, 0.86, 0.78])
    confirmation = study.confirm(lambda t: {"value": next(values), "cost": 2.0}, **QUIET)
    assert str(confirmation).splitlines() == [
        "trial          value  runs  cost  against the winner",
        "    0  0.880 ± 0.017     3     2  winner",
        "    1  0.790 ± 0.017     3   1.8  9.0 ± 2.3 points worse: probably real",
        "6 runs finished; ± at 90%",
    ]
    assert repr(confirmation) == "<Confirmation of 2 trials, winner: trial 0>"


def test_a_goal_chooses_the_finalists_and_the_winner() -> None:
    study = create(LINE)
    for x in (0.0, 0.5, 1.0):
        study.add({"x": x}, 0.5 + 0.1 * x, cost=1.0 + 100 * x)

    def exact(trial: Any) -> dict[str, float]:
        return {"value": 0.5 + 0.1 * trial.params["x"], "cost": 1.0 + 100 * trial.params["x"]}

    goal = tw.Tradeoff(alpha=0.5, reference=100.0)
    assert study.confirm(exact, top=2, repeats=2, goal=goal, **QUIET).winner.params == {"x": 0.0}
    assert study.confirm(exact, top=2, repeats=2, **QUIET).winner.params == {"x": 1.0}


def test_training_sizes_are_repeated_too() -> None:
    study = create(LINE)
    study.add({"x": 0.5}, 0.5, train_size=0.3)
    seen: list[float] = []

    def objective(trial: Any) -> float:
        seen.append(trial.train_size)
        return 0.5

    study.confirm(objective, repeats=2, **QUIET)
    assert seen == [0.3, 0.3]
    sized = create(tw.Space({"x": tw.Float(0, 1), "size": tw.TrainSize([0.3, 1.0])}))
    sized.add({"x": 0.5, "size": 0.3}, 0.5)
    sized.confirm(objective, repeats=1, **QUIET)
    assert seen == [0.3] * 3


def test_the_search_goes_on_after_a_confirmation_and_replays() -> None:
    study = quick(goal=tw.Tradeoff(alpha=0.1))
    objective = lambda t: {"value": t.params["x"] + t.seed % 7 / 100, "cost": 1.0}  # noqa: E731
    study.optimize(objective, 6, **QUIET)
    study.confirm(objective, top=2, repeats=2, **QUIET)
    study.optimize(objective, 3, **QUIET)
    assert numbers(study.trials) == list(range(13))
    assert all(t.state is State.FINISHED for t in study.trials)
    assert tw.replay(study).identical


def test_wrong_arguments_are_refused_before_anything_runs() -> None:
    study = searched(3)
    for wrong in ({"top": 0}, {"repeats": 0}, {"repeats": 1.5}, {"level": 90}, {"level": math.nan}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
            study.confirm(noisy, **wrong, **QUIET)
    with pytest.raises(TypeError, match="objective must be a function"):
        study.confirm(None, **QUIET)  # type: ignore[arg-type]
    with pytest.raises(NothingFinished):
        create(LINE).confirm(noisy, **QUIET)
    assert len(study.trials) == 3
    assert not study._session.state.queue


def test_a_confirmation_runs_no_new_trials_if_another_driver_empties_its_queue() -> None:
    store = tw.create_study(tw.Space({"x": tw.Float(0, 1)}), seed=0)

    def value(trial: tw.Run) -> float:
        return float(trial.params["x"]) + 1e-3 * float(trial.seed % 7)

    store.optimize(value, 6)
    emptied: list[int] = []

    def slow(trial: tw.Run) -> float:
        if not emptied:  # another driver takes all that waits while the first repeat runs
            emptied.append(trial.number)
            store.optimize(value, only_queued=True)
        return value(trial)

    confirmation = store.confirm(slow, top=2, repeats=3)
    assert len(store.trials) == 6 + 2 * 3
    assert confirmation.missing == 0
