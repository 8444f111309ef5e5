"""What `watch` draws: everything that there is room for, and no more."""

from __future__ import annotations

import io
import math
import time
from typing import Any

import pytest
from rich.console import Console

from tradewind.cli.picture import View, picture
from tradewind.cli.textplot import text_plot


def entry(number: int) -> dict[str, Any]:
    now = time.time()
    params = {"learning_rate": 0.001234, "kernel": "a long name of a kernel", "n": number}
    return {
        "trial": number,
        "worker": "host:1234",
        "started": now - 65.0,
        "expected_end": now + 125.5,
        "lost": False,
        "params": params,
    }


def view(n_running: int = 2, n_finished: int = 50) -> View:
    points = [(0.1 * 1.2**i, 1.0 - math.exp(-i / 10)) for i in range(n_finished)]
    return View(
        facts=[("study", "one"), ("trials", "50 finished"), ("best", "It is the best one. " * 5)],
        running=[entry(number) for number in range(n_running)],
        finished=points,
        efficient=points[::5],
        events=[f"12:00:0{i} trial {i} finished: 0.5 at 2 s" for i in range(6)],
        unit="s",
        maximize=True,
        value="F1",
    )


def drawn(seen: View, width: int, height: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=True)
    with console.capture() as captured:
        console.print(picture(seen, console), no_wrap=False, end="")
    return captured.get().replace("\x1b[0m", "").splitlines()


@pytest.mark.parametrize("n_running", [0, 2, 100])
@pytest.mark.parametrize(("width", "height"), [(200, 60), (80, 40), (80, 24), (50, 20), (40, 12)])
def test_a_picture_fits_into_the_terminal(width: int, height: int, n_running: int) -> None:
    lines = drawn(view(n_running), width, height)
    assert len(lines) <= height
    assert any("q ends" in line for line in lines)
    text = "\n".join(lines)
    assert "trial 5 finished" in text
    if height >= 40:
        assert "F1 against cost" in text
    if height > 12:
        hidden = n_running - text.count("host:1234")
        assert (f"and {hidden} more" in text) == (hidden > 0)


def test_times_are_whole_and_only_parameters_are_cut() -> None:
    (line,) = [line for line in drawn(view(1), 60, 40) if "host" in line]
    assert line.split()[:4] == ["0", "1:05", "2:05", "host:1234"]
    assert line.endswith("…")


def test_a_plot_has_its_best_value_at_the_top_and_costs_below() -> None:
    points = [(1.0, 0.2), (3.0, 0.4), (100.0, 0.9)]
    lines = text_plot(points, points[1:], width=40, height=5, write_cost="{:g} s".format)
    assert lines[0].startswith("0.9 |")
    assert lines[0].endswith("●")
    assert lines[4] == "0.2 |·"
    assert lines[5].split() == ["1", "s", "log", "scale", "100", "s"]
    assert {len(line) for line in (lines[0], lines[5])} == {40}
    upside_down = text_plot(points, points[1:], maximize=False, width=40, height=5)
    assert upside_down[0] == "0.2 |·"
    assert text_plot([], []) == text_plot([(1.0, math.nan)], []) == []
