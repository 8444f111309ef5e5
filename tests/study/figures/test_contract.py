"""What holds for every figure of every study: it is plain data, it says what it shows, and both
renderers can draw it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

import tradewind as tw
from tests.study.figures.situations import SITUATIONS, ran
from tradewind.charts.chart import Bars, Chart, Layer, Line, Points, Spans, Strands
from tradewind.charts.figure import Figure
from tradewind.charts.page import write_page
from tradewind.study.figures.dependence import dependence
from tradewind.study.figures.facts import Facts
from tradewind.study.figures.failures import failures
from tradewind.study.figures.page_data import FIGURES, assemble

DRAWN = ("empty", "conditional", "hostile")  # the others are drawn by `make test`


@dataclass(frozen=True)
class Scene:
    """A study, what is known of it, and all its charts."""

    study: tw.Study
    facts: Facts
    charts: list[Chart]

    @classmethod
    def of(cls, study: tw.Study) -> Scene:
        facts = Facts.of(study)
        charts = [*all_charts(facts), failures(facts)]
        return cls(study, facts, charts)


@cache
def scene(situation: str) -> Scene:
    return Scene.of(SITUATIONS[situation]())


def all_charts(facts: Facts) -> Iterator[Chart]:
    yield from (draw(facts) for draw in FIGURES.values())
    yield from (dependence(facts, name) for name in facts.space)


def numbers(layer: Layer) -> Iterator[list[Any]]:
    """The lists of a layer that must have the same length."""
    match layer:
        case Strands():
            yield from (list(layer.rows), list(layer.shade))
        case Bars():
            yield list(layer.values)
            yield from ([list(layer.low), list(layer.high)] if len(layer.low) else [])
        case Spans():
            yield from (list(layer.lane), list(layer.start), list(layer.end))
        case Points() | Line():
            yield from (list(layer.x), list(layer.y))
        case _:
            yield from (list(layer.x), list(layer.low), list(layer.high))
    if isinstance(layer, Points | Spans | Strands):
        yield from ([list(layer.trials), list(layer.texts)] if len(layer.trials) else [])


def check(chart: Chart, trials: set[int]) -> None:
    json.dumps(chart.to_dict(), allow_nan=False)
    assert chart.title
    assert chart.summary.strip().endswith((".", *chart.summary[-1:]))
    assert bool(chart.panels) != bool(chart.empty)
    for panel in chart.panels:
        for axis in (panel.x, panel.y):
            assert (axis.scale == "category") == bool(axis.labels)
        for layer in panel.layers:
            assert len({len(each) for each in numbers(layer)}) == 1, layer
            assert set(getattr(layer, "trials", ())) <= trials
            if isinstance(layer, Bars):
                assert len(layer.values) == len(panel.y.labels)
            if isinstance(layer, Spans):
                assert all(0 <= lane < len(panel.y.labels) for lane in layer.lane)
                assert all(a <= b for a, b in zip(layer.start, layer.end, strict=True))
            if isinstance(layer, Strands):
                cells = [cell for row in layer.rows for cell in row if cell is not None]
                assert all(0.0 <= cell <= 1.0 for cell in (*cells, *layer.shade))
                assert all(len(row) == len(layer.axes) == len(layer.ticks) for row in layer.rows)
            elif panel.x.scale == "log":
                along = layer.x if isinstance(layer, Points | Line) else ()
                assert all(x is None or x > 0.0 for x in along)


@pytest.mark.parametrize("situation", SITUATIONS)
def test_every_figure_is_plain_data_and_says_what_it_shows(situation: str) -> None:
    it = scene(situation)
    trials = {t.number for t in it.study.trials}
    for chart in it.charts:
        check(chart, trials)


drawn_situations = pytest.mark.parametrize(
    "situation", [s if s in DRAWN else pytest.param(s, marks=pytest.mark.slow) for s in SITUATIONS]
)


@drawn_situations
def test_matplotlib_draws_every_figure(situation: str) -> None:
    for chart in scene(situation).charts:
        assert Figure(chart).to_image("png", dpi=50, theme="dark")[:4] == b"\x89PNG"


@drawn_situations
def test_plotly_draws_every_figure(situation: str) -> None:
    for chart in scene(situation).charts:
        json.loads(Figure(chart).to_plotly(theme="dark").to_json())


@pytest.mark.parametrize("situation", SITUATIONS)
def test_the_page_agrees_with_the_study(situation: str) -> None:
    it = scene(situation)
    study, data = it.study, assemble(it.facts)
    assert "</html>" in write_page(data, title="a study")
    drawn = set(data["charts"])
    assert {name for section in data["sections"] for name in section["charts"]} <= drawn
    columns = data["trials"]["columns"]
    assert all(len(row) == len(columns) for row in data["trials"]["rows"])
    assert [row[0] for row in data["trials"]["rows"]] == [t.number for t in study.trials]
    assert len({column["key"] for column in columns}) == len(columns)
    spent = data["study"]["spent"]
    assert spent is None or math.isfinite(spent)
    try:
        best = study.best
    except tw.errors.NothingFinished:
        assert data["best"] is None
        return
    assert data["best"]["trial"] == best.number
    assert data["best"]["sentence"] == str(study.explain())
    assert data["frontier"] == [t.number for t in study.frontier()]


@pytest.mark.slow
def test_very_many_trials_stay_drawable() -> None:
    it = Scene.of(ran(n=10_000, goal=tw.Tradeoff(0.1)))
    for chart in it.charts:
        check(chart, set(range(10_000)))
        Figure(chart).to_image("png")
        Figure(chart).to_plotly()
    assert len(json.dumps(assemble(it.facts))) < 8e6
