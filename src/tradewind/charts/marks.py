"""How Matplotlib draws each kind of layer. Coordinates are places from 0 to 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import patheffects
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from tradewind.charts.chart import Band, Bars, Layer, Line, Points, Role, Spans, Strands
from tradewind.charts.labels import clearest_side
from tradewind.charts.letters import GOOD, NARROW, drawable, name_lines
from tradewind.charts.palette import Palette
from tradewind.charts.scales import Scale
from tradewind.types import Array

_MARKERS: dict[Role, str] = {
    "main": "o",
    "chosen": "*",
    "frontier": "D",
    "muted": "o",
    "second": "s",
    "bad": "X",
}
_AREAS: dict[Role, float] = {
    "main": 26,
    "chosen": 190,
    "frontier": 30,
    "muted": 15,
    "second": 24,
    "bad": 28,
}
_UNSET = -0.12  # where strands pass an axis on which they have no value


@dataclass(frozen=True)
class Pen:
    """Where to draw, on which scales, in which colours, and the places (m, 2) of all marks."""

    ax: Any
    x: Scale
    y: Scale
    palette: Palette
    marks: Array

    def colour(self, role: Role) -> str:
        return self.palette.roles[role]

    def handle(self, layer: Layer, name: str) -> Any:
        """The mark beside a name in the legend."""
        if isinstance(layer, Strands):
            good = name == GOOD
            shade = self.palette.high if good else self.palette.low
            return Line2D([], [], color=shade, linewidth=2.0 if good else 1.0)
        assert not isinstance(layer, Bars)
        colour = self.colour(layer.role)
        match layer:
            case Points():
                size = np.sqrt(min(_AREAS[layer.role], 90))
                return Line2D(
                    [], [], color=colour, marker=_MARKERS[layer.role], markersize=size, linewidth=0
                )
            case Line():
                return Line2D([], [], color=colour, linewidth=2.0, linestyle=_dash(layer))
            case Band():
                return Patch(color=colour, alpha=0.2, linewidth=0)
            case Spans():
                return Patch(color=colour, linewidth=0)


def draw_layer(pen: Pen, layer: Layer, *, size: float) -> None:
    match layer:
        case Points():
            _points(pen, layer, size)
        case Line():
            _line(pen, layer)
        case Band():
            low, high = pen.y.at(layer.low), pen.y.at(layer.high)
            colour = pen.colour(layer.role)
            pen.ax.fill_between(
                pen.x.at(layer.x), low, high, color=colour, alpha=0.18, linewidth=0, zorder=2
            )
        case Bars():
            _bars(pen, layer, size)
        case Spans():
            _spans(pen, layer)


def _points(pen: Pen, layer: Points, size: float) -> None:
    x, y = pen.x.at(layer.x), pen.y.at(layer.y)
    muted = layer.role == "muted"
    many = len(x) > 500
    beyond = pen.y.beyond(layer.y)
    for side, marker in ((0, _MARKERS[layer.role]), (-1, "v"), (1, "^")):
        rows = beyond == side
        pen.ax.scatter(
            x[rows],
            y[rows] - 0.015 * side,  # a triangle stands within the picture
            s=_AREAS[layer.role] * (0.6 if many and muted else _few(layer)),
            marker=marker,
            color=pen.colour(layer.role),
            alpha=(0.35 if many else 0.55 if side == 0 else 0.8) if muted else 1.0,
            edgecolors="none" if muted else pen.palette.page,
            linewidths=0.0 if muted else 0.7,
            zorder={"muted": 3, "chosen": 7}.get(layer.role, 5),
            clip_on=False,
        )
    if layer.role == "chosen" and len(layer.trials) == 1:
        _label(pen, f"trial {layer.trials[0]}", x[0], y[0], size)


def _label(pen: Pen, text: str, x: float, y: float, size: float) -> None:
    side = clearest_side((x, y), pen.marks)
    pen.ax.annotate(
        text,
        (x, y),
        xytext=(8 * side.across, 7 * side.up),
        textcoords="offset points",
        ha="left" if side.across > 0 else "right",
        va="center",
        fontsize=size,
        weight="bold",
        color=pen.colour("chosen"),
        path_effects=halo(pen),
        zorder=8,
    )


def _few(layer: Points) -> float:
    """How much larger marks are if there are only some, which stand alone."""
    return 2.0 if layer.role in ("main", "second") and len(layer.x) <= 40 else 1.0


def _line(pen: Pen, layer: Line) -> None:
    many = layer.x.count(None) > 12 if isinstance(layer.x, (list, tuple)) else False
    pen.ax.plot(
        pen.x.at(layer.x),
        pen.y.at(layer.y),
        color=pen.colour(layer.role),
        linewidth=1.0 if many else 2.0,
        alpha=0.5 if many else 1.0,
        linestyle=_dash(layer),
        drawstyle="steps-post" if layer.steps else "default",
        solid_joinstyle="round",
        zorder=4,
    )


def _dash(layer: Line) -> Any:
    return (0, (4, 2.5)) if layer.dashed else "-"


def _bars(pen: Pen, layer: Bars, size: float) -> None:
    n = len(layer.values)
    height = 0.62 / max(n, 1)
    place = pen.y.at(range(n))
    zero, end = float(pen.x.at([0.0])[0]), pen.x.at(layer.values)
    pen.ax.barh(place, end - zero, height=height, left=zero, color=pen.colour(layer.role), zorder=3)
    if len(layer.low):
        low, high = pen.x.at(layer.low), pen.x.at(layer.high)
        pen.ax.hlines(place, low, high, color=pen.palette.text, linewidth=1.3, zorder=4)
        return
    for y, x, value in zip(place, end, layer.values, strict=True):
        pen.ax.annotate(
            f"{value:g}",
            (x, y),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=size,
            color=pen.palette.text,
        )


def _spans(pen: Pen, layer: Spans) -> None:
    start, end = pen.x.at(layer.start), pen.x.at(layer.end)
    lanes = pen.y.at(layer.lane)
    height = 0.7 / max(len(pen.y.axis.labels), 1)
    pen.ax.barh(
        lanes,
        np.maximum(end - start, 0.001),
        height=height,
        left=start,
        color=pen.colour(layer.role),
        edgecolor=pen.palette.page,
        linewidth=0.5 if len(start) < 600 else 0.0,
        zorder=3,
    )


# ---- parallel coordinates ----


def draw_strands(pen: Pen, layer: Strands, *, size: float) -> None:
    """All strands at once, the better ones darker. Below an axis pass those that have no value on
    it."""
    ax, palette = pen.ax, pen.palette
    n = len(layer.axes)
    cells = np.array([[_UNSET if c is None else c for c in row] for row in layer.rows], dtype=float)
    shade = np.array(layer.shade)
    lines = [np.column_stack([np.arange(n), row]) for row in cells]
    colours = LinearSegmentedColormap.from_list("shade", [palette.low, palette.high])
    fade = min(1.0, (60.0 / max(len(lines), 1)) ** 0.8)  # of all but the best, so that they show
    few = 8.0 * max(1.0, len(lines) / 100.0) ** 0.5  # the more there are, the fewer stand out
    ax.add_collection(
        LineCollection(
            lines,
            colors=[(*colours(s)[:3], fade * 0.6 + (0.9 - fade * 0.6) * s**few) for s in shade],
            linewidths=0.6 + 1.1 * shade**few,
            zorder=2,
        )
    )
    _strand_axes(pen, layer, cells, size)
    ax.set_xlim(-0.25, n - 0.35)
    ax.set_ylim(_UNSET - 0.06 if (cells == _UNSET).any() else -0.04, 1.02)
    ax.set_axis_off()


def _strand_axes(pen: Pen, layer: Strands, cells: Any, size: float) -> None:
    ax, palette = pen.ax, pen.palette
    for i, name in enumerate(layer.axes):
        ax.plot([i, i], [0.0, 1.0], color=palette.soft, linewidth=1.0, zorder=3)
        ax.text(
            i,
            1.06,
            "\n".join(map(drawable, name_lines(name))),
            ha="center",
            va="bottom",
            fontsize=size,
            weight="bold",
            color=palette.text,
        )
        ticks: Sequence[tuple[float, str]] = layer.ticks[i]
        if len(cells) and (cells[:, i] == _UNSET).any():
            ticks = [*ticks, (_UNSET, "not set")]
        for place, text in ticks:
            ax.text(
                i + 0.05,
                place,
                drawable(_cut(text, NARROW)),
                va="center",
                fontsize=size - 0.5,
                color=palette.text,
                path_effects=halo(pen),
                zorder=6,
            )


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def halo(pen: Pen) -> list[Any]:
    """A rim in the colour of the page, so that text stands out from marks below it."""
    return [patheffects.withStroke(linewidth=3.0, foreground=pen.palette.page)]
