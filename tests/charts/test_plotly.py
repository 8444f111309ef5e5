"""Charts as Plotly figures."""

from __future__ import annotations

import json

import pytest

from tests.charts.samples import BARS, CHARTS, EMPTY, POINTS, SPANS, STRANDS
from tradewind.charts.chart import Axis, Bars, Chart, Panel, Points
from tradewind.charts.palette import PALETTES, Theme
from tradewind.charts.plotly import draw


@pytest.mark.parametrize("theme", list(PALETTES))
@pytest.mark.parametrize("chart", CHARTS, ids=lambda c: c.name)
def test_every_chart_becomes_a_figure(chart: Chart, theme: Theme) -> None:
    figure = draw(chart, theme=theme)
    json.loads(figure.to_json())
    assert figure.layout.paper_bgcolor == PALETTES[theme].page


def test_a_layer_is_a_trace_and_its_points_know_their_trials() -> None:
    figure = draw(POINTS, theme="light")
    assert [trace.name for trace in figure.data] == ["band", "line", "dashes", "points", "best"]
    points = figure.data[3]
    assert list(points.customdata) == [0, 1]
    assert list(points.hovertext) == ["trial 0", "trial 1"]
    assert figure.data[1].line.shape == "hv"
    assert figure.layout.xaxis.type == "log"


def test_intervals_are_error_bars() -> None:
    plain, sure = draw(BARS, theme="light").data
    assert plain.error_x.array is None
    assert sure.error_x.array == pytest.approx((0.1, 0.1))
    assert sure.error_x.arrayminus == pytest.approx((0.1, 0.1))


def test_clock_times_are_dates() -> None:
    figure = draw(SPANS, theme="light")
    assert figure.layout.xaxis.type == "date"
    assert list(figure.data[0].base) == [1.7e12, 1.7e12]
    assert list(figure.data[0].x) == [60e3, 90e3]


def test_strands_pass_below_an_axis_on_which_they_have_no_value() -> None:
    figure = draw(STRANDS, theme="light")
    drawn = [y for trace in figure.data for y in trace.y or ()]
    assert drawn.count(None) == 3
    assert sum(y is not None and y < 0.0 for y in drawn) == 2
    assert "not set" in [note.text for note in figure.layout.annotations]


def test_an_empty_chart_says_why() -> None:
    assert EMPTY.empty in [note.text for note in draw(EMPTY, theme="light").layout.annotations]


def test_hostile_text_stays_text() -> None:
    bad = "<b onclick='x'>\ud800</b>"
    labels = Axis(bad, "category", labels=(bad,))
    points = Points([0.0], [0.0], bad, texts=[bad])
    panel = Panel(Axis(bad), labels, (Bars([1.0], bad), points), bad)
    text = draw(Chart("x", bad, bad, (panel,), bad), theme="light").to_json()
    assert "<b onclick" not in json.loads(f"[{text}]")[0]["layout"]["title"]["text"]
    assert "onclick='x'>" not in text


def test_long_names_are_cut_where_they_would_cover_another_panel() -> None:
    long = "a_long_name_without_any_space_" * 4
    names = Axis(long, "category", labels=(long, "\u202ea b"))
    panel = Panel(names, names, (Points([0.0], [1.0]),))
    layout = draw(Chart("x", long, "", (panel, panel)), theme="light").layout
    for axis, most in ((layout.xaxis, 12), (layout.yaxis2, 18)):
        assert max(len(line) for text in axis.ticktext for line in text.split("<br>")) <= most
        assert axis.ticktext[1] == "\u25a1a b"
        assert len(axis.title.text) == 40
    assert len(layout.title.text) == 64 + len("<b></b>")
