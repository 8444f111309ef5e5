"""What is printed beside the output, and where pictures make no sense."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import tradewind as tw
from tests.cli.shell import make_study
from tradewind.cli import terminal, watch


def test_a_warning_is_a_note_without_lines_of_python(capsys: pytest.CaptureFixture[str]) -> None:
    terminal._show_warning("3 workers share 2 cores", UserWarning, "/lib/typer/main.py", 12)
    assert capsys.readouterr().err == "warning: 3 workers share 2 cores\n"


def test_a_warning_of_the_users_code_names_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    terminal._show_warning("no \x1b[31mdata", UserWarning, "/home/me/train.py", 12)
    assert capsys.readouterr().err == "/home/me/train.py:12: UserWarning: no \\x1b[31mdata\n"


def test_a_long_note_is_broken_between_words_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    text = "error: " + "some words, " * 10 + "/a/very/long/path/that/must/stay/in/one/piece.db"
    terminal.note(f"{text}\n  an indented line " + "that goes on " * 5)
    lines = capsys.readouterr().err.splitlines()
    assert "/a/very/long/path/that/must/stay/in/one/piece.db" in lines
    assert all(len(line) <= 40 for line in lines if "/a/very" not in line)
    assert [line for line in lines if line.startswith("  ")][1:]


def test_watch_shows_the_best_trial_under_a_goal_that_changes(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study.db")
    watcher = watch.Watcher(tw.load_study(tmp_path / "study.db"))
    watcher.look()
    assert str(study.explain()) in dict(watcher.view().facts)["best"]
    goal = tw.CheapestWithin(0.5)
    study.change_goal(goal)
    watcher.look()
    shown = dict(watcher.view().facts)
    assert shown["best"] == str(study.explain(goal)) != str(study.explain(tw.Quality()))
    assert shown["goal"] == goal.describe()


def test_a_terminal_that_cannot_move_its_cursor_gets_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[Any] = []
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(watch, "make_console", lambda: Console(force_terminal=True))
    monkeypatch.setattr(watch, "_print_events", lambda *given, once: called.append(given))
    watch.watch_study(make_study(tmp_path / "study.db"), every=1.0, once=False)
    assert len(called) == 1
