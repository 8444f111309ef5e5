"""The bar is shown where someone looks, and nowhere else."""

from __future__ import annotations

import sys

import pytest

import tradewind as tw
from tradewind.progress import Progress
from tradewind.types import Origin, State, Trial

SPACE = tw.Space({"x": tw.Float(0, 1)})


def trial(number: int, value: float | None, cost: float | None = None) -> Trial:
    state = State.FAILED if value is None else State.FINISHED
    return Trial(number, {"x": 0.5}, state, Origin.DESIGN, seed=0, value=value, cost=cost)


def never() -> Trial:
    raise AssertionError("nobody looks, so nothing is computed")


def test_without_a_terminal_nothing_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    tw.create_study(SPACE, seed=0).optimize(lambda trial: 1.0, n_trials=2)
    assert capsys.readouterr() == ("", "")


def test_a_hidden_bar_does_not_ask_for_the_best() -> None:
    with Progress(2, show=False) as progress:
        progress.update(trial(0, 1.0), never)


def test_without_a_console_there_is_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with Progress(2, show=None) as progress:
        progress.update(trial(0, 1.0), never)


def test_on_a_terminal_there_is_a_bar(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with Progress(2, show=None):
        pass
    assert "0/2" in capsys.readouterr().err


def test_the_bar_counts_trials_and_shows_the_best(capsys: pytest.CaptureFixture[str]) -> None:
    study = tw.create_study(SPACE, seed=0)
    study.optimize(
        lambda trial: {"value": [0.5, 0.75, 0.25][trial.number], "cost": 12.0},
        n_trials=3,
        show_progress=True,
    )
    shown = capsys.readouterr().err
    assert "3/3" in shown
    assert "best 0.75 in 12 (#1)" in shown


def test_failures_are_counted_even_when_nothing_has_finished(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Progress(2, show=True) as progress:
        progress.update(trial(0, None), never)
        progress.update(trial(1, None), never)
    assert "2 failed" in capsys.readouterr().err


def test_failures_are_shown_beside_the_best(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(2, show=True) as progress:
        progress.update(trial(0, 0.5), lambda: trial(0, 0.5))
        progress.update(trial(1, None), never)
    assert "best 0.5 (#0), 1 failed" in capsys.readouterr().err


def test_a_search_without_a_number_of_trials_is_counted_too(
    capsys: pytest.CaptureFixture[str],
) -> None:
    study = tw.create_study(SPACE, seed=0)
    study.optimize(lambda trial: {"value": 1.0, "cost": 1.0}, max_cost=3, show_progress=True)
    assert "3trial" in capsys.readouterr().err


def test_the_bar_is_closed_when_the_search_ends_with_an_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    study = tw.create_study(SPACE, seed=0)
    with pytest.raises(ZeroDivisionError):
        study.optimize(lambda trial: 1 / 0, n_trials=3, catch=(), show_progress=True)
    assert capsys.readouterr().err.endswith("\n")
