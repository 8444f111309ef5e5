"""A chart with every kind of layer, and a chart of every kind."""

from __future__ import annotations

from tradewind.charts.chart import (
    Axis,
    Band,
    Bars,
    Chart,
    Line,
    Panel,
    Points,
    Spans,
    Strands,
)

LANES = Axis("", "category", labels=("a", "b"))

POINTS = Chart(
    "points",
    "Points and lines",
    "Two lines and some points.",
    (
        Panel(
            Axis("training time", "log", "seconds"),
            Axis("value", format="percent"),
            (
                Band([1.0, 10.0], [0.1, 0.2], [0.3, 0.4], "band", "muted"),
                Line([1.0, None, 10.0], [0.1, None, 0.2], "line", "frontier", steps=True),
                Line([1.0, 10.0], [0.2, 0.3], "dashes", "second", dashed=True),
                Points([1.0, 5.0], [0.1, 0.2], "points", "muted", [0, 1], ["trial 0", "trial 1"]),
                Points([5.0], [0.2], "best", "chosen", [1], ["trial 1"]),
            ),
        ),
    ),
    note="A note.",
)
BARS = Chart(
    "bars",
    "Bars",
    "Two bars.",
    (
        Panel(Axis("share", format="percent"), LANES, (Bars([0.2, 0.1]),), "Quality"),
        Panel(
            Axis("share", format="percent"),
            LANES,
            (Bars([0.2, 0.1], "share", "second", [0.1, 0.0], [0.3, 0.2]),),
            "Cost",
        ),
    ),
)
SPANS = Chart(
    "spans",
    "Spans",
    "Two spans.",
    (
        Panel(
            Axis("time", format="clock"),
            LANES,
            (Spans([0, 1], [1.7e9, 1.7e9], [1.7e9 + 60, 1.7e9 + 90], "ran", "main", [0, 1]),),
        ),
    ),
)
STRANDS = Chart(
    "strands",
    "Strands",
    "Three strands.",
    (
        Panel(
            Axis(""),
            Axis(""),
            (
                Strands(
                    ["x", "a long name of a parameter", "value"],
                    [[(0.0, "0"), (1.0, "1")], [(0.5, "only")], [(0.0, "10%"), (1.0, "90%")]],
                    [[0.1, None, 0.9], [0.5, 0.5, 0.5], [1.0, None, 0.0]],
                    [1.0, 0.5, 0.0],
                    [0, 1, 2],
                    ["trial 0", "trial 1", "trial 2"],
                ),
            ),
        ),
    ),
)
EMPTY = Chart("nothing", "Nothing", "There is nothing yet.", empty="There is nothing yet.")
CHARTS = (POINTS, BARS, SPANS, STRANDS, EMPTY)
