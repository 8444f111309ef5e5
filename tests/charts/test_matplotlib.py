"""Charts as PNG and SVG."""

from __future__ import annotations

import sys
import threading
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from tests.charts.samples import CHARTS, POINTS, STRANDS
from tradewind.charts.chart import Axis, Bars, Chart, Panel, Points
from tradewind.charts.letters import drawable
from tradewind.charts.matplotlib import _figure, draw
from tradewind.charts.palette import PALETTES, Theme
from tradewind.charts.plotly import draw as to_plotly


def svg(chart: Chart, theme: Theme = "light") -> str:
    return draw(chart, kind="svg", theme=theme).decode()


@pytest.mark.parametrize("theme", list(PALETTES))
@pytest.mark.parametrize("chart", CHARTS, ids=lambda c: c.name)
def test_every_chart_becomes_an_image(chart: Chart, theme: Theme) -> None:
    assert draw(chart, kind="png", theme=theme, dpi=50).startswith(b"\x89PNG")
    text = svg(chart, theme)
    ElementTree.fromstring(text)
    assert PALETTES[theme].page in text


def test_an_image_holds_its_title_and_what_it_shows() -> None:
    text = svg(POINTS)
    assert "<dc:title>Points and lines</dc:title>" in text
    assert "<dc:description>Two lines and some points.</dc:description>" in text


def test_the_same_chart_gives_the_same_picture() -> None:
    assert draw(STRANDS, kind="png", theme="dark") == draw(STRANDS, kind="png", theme="dark")
    assert b"CreationDate" not in draw(STRANDS, kind="pdf", theme="dark")


def test_text_without_glyphs_or_with_formulas_stays_text() -> None:
    assert drawable("a\nb  $x^2$ \ud800") == r"a b \$x^2\$ " + "\u25a1"
    assert drawable("a\u202eb\u2066") == "a\u25a1b\u25a1"
    axis = Axis("$\\frac{1}{2}$ <b> & 名前")
    hostile = Chart("x", "$y$", "$", (Panel(axis, axis, (Points([1.0], [1.0], "$z"),)),), "$$")
    assert draw(hostile, kind="png", theme="light")


@pytest.mark.parametrize(("limit", "lines", "areas"), [(2.0, 1, 1), (0.5, 0, 1), (9.0, 0, 0)])
def test_a_limit_is_a_line_only_within_the_axis(limit: float, lines: int, areas: int) -> None:
    axis = Axis("training time", format="seconds", bound=(limit, "limit: 2 s"))
    panel = Panel(axis, Axis("value"), (Points([1.0, 3.0], [0.1, 0.2]),))
    chart = Chart("x", "t", "", (panel,))
    (ax,) = _figure(chart, PALETTES["light"]).subfigs[1].axes
    assert ["limit: 2 s"] * lines == [text.get_text() for text in ax.texts]
    assert (len(ax.lines), len(ax.patches)) == (lines, areas)
    shapes = to_plotly(chart, theme="light").layout.shapes
    assert sorted(it.type for it in shapes) == ["line"] * lines + ["rect"] * areas


def test_parallel_axes_have_a_legend_and_whole_names() -> None:
    long = "learning_rate_of_the_first_layer_init"
    strands = replace(STRANDS.panels[0].layers[0], axes=["x", long, "value"])
    figure = _figure(
        Chart("x", "t", "", (Panel(Axis(""), Axis(""), (strands,)),)), PALETTES["dark"]
    )
    (legend,) = figure.subfigs[0].legends
    assert [text.get_text() for text in legend.get_texts()] == ["a poor trial", "a good trial"]
    (ax,) = figure.subfigs[1].axes
    assert long in [text.get_text().replace("\n", "") for text in ax.texts]


def test_pyplot_and_its_global_state_are_not_used() -> None:
    before = "matplotlib.pyplot" in sys.modules
    draw(POINTS, kind="png", theme="light")
    assert ("matplotlib.pyplot" in sys.modules) == before


def test_several_threads_can_draw_at_once() -> None:
    wanted = [draw(chart, kind="png", theme="light", dpi=40) for chart in CHARTS[:3]]
    found: dict[int, bytes] = {}

    def work(i: int) -> None:
        found[i] = draw(CHARTS[i], kind="png", theme="light", dpi=40)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[i] for i in range(3)] == wanted


def test_long_names_take_no_room_from_the_bars_and_stay_in_their_panel() -> None:
    names = Axis("", "category", labels=("a", "a_long_name_without_any_space_" * 4))
    panel = Panel(Axis("share", format="percent"), names, (Bars([0.2, 0.9], "share"),), "Quality")
    figure = _figure(Chart("x", "a title " * 30, "", (panel, panel)), PALETTES["light"])
    figure.draw_without_rendering()
    renderer = FigureCanvasAgg(figure).get_renderer()
    left, right = figure.subfigs[1].axes
    middle = right.get_window_extent(renderer).x0
    for ax in (left, right):
        assert ax.get_position().width > 0.35
    assert all(text.get_window_extent(renderer).x1 < middle for text in left.texts)
    (title,) = figure.subfigs[0].texts
    assert title.get_window_extent(renderer).x1 < figure.bbox.x1
