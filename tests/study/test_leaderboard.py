"""The best configurations, with repeats as one."""

from __future__ import annotations

from typing import Any

import pytest

import tradewind as tw
from tests.studies import create
from tradewind.errors import NothingFinished

LINE = tw.Space({"x": tw.Float(0, 1)})


def told(*results: tuple[float, float], **options: Any) -> tw.Study:
    study = create(LINE, **options)
    for x, value in results:
        study.add({"x": x}, value, cost=2.0)
    return study


def test_exact_results_are_listed_as_they_are() -> None:
    board = told((0.1, 1.0), (0.5, 3.0), (0.9, 2.0)).leaderboard()
    assert [entry.trial.number for entry in board] == [1, 2, 0]
    assert [entry.value.mean for entry in board] == [3.0, 2.0, 1.0]
    assert all(entry.value.error is None and entry.cost == 2.0 for entry in board)


def test_repeats_are_one_entry_with_an_interval() -> None:
    study = told((0.1, 1.0), (0.5, 3.0), (0.5, 2.0), (0.5, 2.5), (0.9, 0.0))
    board = study.leaderboard(level=0.9)
    best = next(entry for entry in board if len(entry.runs) == 3)
    assert [t.number for t in best.runs] == [1, 2, 3]
    assert best.value.mean == pytest.approx(2.5)
    low, high = best.value.interval(0.9) or (0.0, 0.0)
    assert low < 2.5 < high
    single = next(entry for entry in board if len(entry.runs) == 1)
    assert (single.value.error or 0.0) > (best.value.error or 0.0)
    assert len(board) == 3


def test_repeats_that_agree_have_no_error() -> None:
    (entry,) = told((0.5, 3.0), (0.5, 3.0)).leaderboard()
    assert entry.value.error == 0.0


def test_the_trial_of_an_entry_is_the_run_closest_to_their_mean() -> None:
    study = told((0.5, 3.0), (0.5, 1.0), (0.5, 2.1), (0.9, 1.5))
    entry = study.leaderboard()[0]
    assert entry.trial.number == 2
    assert entry.trial == study.best


def test_a_raced_run_does_not_count_where_there_are_whole_ones() -> None:
    study = create(LINE)
    study.add({"x": 0.5}, folds=[1.0, 1.1, 1.05], cost=1.0)
    study.add({"x": 0.5}, folds=[5.0, 5.1], raced=True, share=0.5, cost=1.0)
    study.add({"x": 0.9}, folds=[0.5, 0.6, 0.55], cost=1.0)
    entry = next(e for e in study.leaderboard() if len(e.runs) == 2)
    assert entry.value.mean == pytest.approx(1.05)


def test_the_order_is_that_of_best() -> None:
    study = told((0.1, 1.0), (0.5, 3.0), (0.5, 0.5), (0.9, 2.0), direction="minimize")
    board = study.leaderboard()
    assert study.best in board[0].runs
    assert study.leaderboard(1)[0] == board[0]


@pytest.mark.parametrize("goal", [tw.Tradeoff(0.5), tw.Knee()], ids=repr)
def test_any_goal_can_be_asked_for(goal: Any) -> None:
    study = told((0.1, 1.0), (0.5, 3.0), (0.9, 2.0))
    assert study.leaderboard(goal=goal)[0].trial == study.best_for(goal)


def test_models_that_are_much_alike_are_listed_once() -> None:
    copies = ((0.3, 9.998), (0.31, 9.993), (0.28, 9.992), (0.36, 9.99))
    study = told(*copies, (0.5, 9.0), (0.9, 8.0), (0.48, 7.0))
    board = study.leaderboard(3)
    assert [entry.trial.number for entry in board] == [0, 4, 5]
    assert str(board).endswith("3 much like one of these are left out")
    assert str(study.leaderboard(1)).count("\n") == 1  # nothing better was left out
    assert str(study.leaderboard()).endswith("4 much like one of these are left out")
    kinds = create(tw.Space({"x": tw.Float(0, 1), "kind": tw.Bool(), "depth": tw.Int(1, 8)}))
    for x, kind, depth in ((0.5, True, 3), (0.51, True, 3), (0.5, False, 3), (0.5, True, 4)):
        kinds.add({"x": x, "kind": kind, "depth": depth}, 1.0)
    assert [entry.trial.number for entry in kinds.leaderboard()] == [0, 2, 3]


def test_it_prints_a_table() -> None:
    text = str(told((0.1, 1.0), (0.5, 3.0), (0.5, 2.0)).leaderboard())
    head, *rows, foot = text.splitlines()
    assert head.split() == ["trial", "runs", "value", "believed", "cost", "parameters"]
    assert "x=0.5" in rows[0]
    assert "±" in rows[0]
    assert foot == "± at 90%"


def test_there_is_none_before_a_trial_has_finished() -> None:
    with pytest.raises(NothingFinished):
        create(LINE).leaderboard()


@pytest.mark.parametrize(("top", "level"), [(0, 0.9), (True, 0.9), (3, 1.0), (3, "high")])
def test_bad_arguments_are_refused(top: Any, level: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        told((0.1, 1.0)).leaderboard(top, level=level)
