"""The example runs from start to end and prints what it promises."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

import tradewind as tw
from tradewind.sklearn import TradeoffSearchCV

EXAMPLE = Path(__file__).parents[2] / "examples" / "search.py"


def test_the_example_shows_the_best_the_frontier_and_another_choice(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tw, "TradeoffSearchCV", TradeoffSearchCV, raising=False)
    runpy.run_path(str(EXAMPLE))
    printed = capsys.readouterr().out
    best, unseen, *rest = map(float, re.findall(r"([\d.]+)%(?! of)", printed))
    assert 80 < best <= 100
    assert 80 < unseen <= 100
    *frontier, quality = rest
    assert frontier == sorted(frontier)
    assert quality == frontier[-1] >= best
