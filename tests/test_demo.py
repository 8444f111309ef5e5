"""The demo runs from start to end and prints what it promises."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[1] / "examples" / "demo.py"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "build" / "demo.html"


@pytest.fixture(scope="module")
def printed(report: Path) -> str:
    command = [sys.executable, str(DEMO), "--trials", "10", "--report", str(report)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "10/10" in done.stderr, "no progress bar"
    assert "Warning" not in done.stderr
    return done.stdout


def rows(printed: str) -> list[tuple[bool, float, float, float]]:
    """The frontier as printed: chosen or not, accuracy, seconds, train size."""
    row = r"^([* ]) +([\d.]+)% +([\d.]+) +(\d+)%  (?:kernel|trees|boosting|mlp) \(.+\)$"
    return [
        (mark == "*", float(accuracy), float(seconds), float(size))
        for mark, accuracy, seconds, size in re.findall(row, printed, re.MULTILINE)
    ]


def test_the_chosen_model_is_on_the_frontier(printed: str) -> None:
    assert [chosen for chosen, *_ in rows(printed)].count(True) == 1


def test_every_train_size_is_one_of_the_space(printed: str) -> None:
    assert {size for *_, size in rows(printed)} <= {20.0, 40.0, 60.0, 80.0, 100.0}


def test_it_says_what_the_trade_off_saves(printed: str) -> None:
    said = r"trains in [\d.]+ s instead of [\d.]+ s: \d+% (less|more), (for|and) [\d.]+ points"
    assert re.search(said, printed)


def test_the_test_set_is_reported_once_and_the_model_has_learned(printed: str) -> None:
    (accuracy,) = re.findall(r"test accuracy ([\d.]+)%", printed)
    assert float(accuracy) > 80


def test_it_fits_into_a_terminal_of_80_columns(printed: str) -> None:
    assert max(len(line) for line in printed.splitlines()[:-1]) <= 80


def test_it_ends_by_saying_where_the_report_is(printed: str, report: Path) -> None:
    assert printed.splitlines()[-1] == f"  {report}"
    assert "</html>" in report.read_text(encoding="utf-8")
