"""Charts as PNG, SVG and PDF, drawn by Matplotlib without its global state."""

from __future__ import annotations

import io
import textwrap
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure, SubFigure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from tradewind.charts.chart import Bars, Chart, Layer, Panel, Spans, Strands
from tradewind.charts.labels import marks_of
from tradewind.charts.letters import GOOD, POOR, drawable
from tradewind.charts.marks import Pen, draw_layer, draw_strands, halo
from tradewind.charts.palette import PALETTES, Palette, Theme
from tradewind.charts.scales import Scale, scales

# The type scale, in points.
TITLE, TEXT, SMALL = 13.0, 9.5, 8.5

_LINE = 0.19  # inches from one line of text to the next
_LETTER = 0.067  # inches of an average letter of the text
_TITLE_LETTER = 0.11  # of the title, which is larger and bold
_LONG_LABEL = 26  # letters; longer labels stand above their bars

_CANVASES: dict[str, Any] = {"png": FigureCanvasAgg, "svg": FigureCanvasSVG, "pdf": FigureCanvasPdf}


def draw(chart: Chart, *, kind: str, theme: Theme, dpi: float = 160.0) -> bytes:
    """The bytes of a "png", "svg" or "pdf" file."""
    figure = _figure(chart, PALETTES[theme])
    canvas: Any = _CANVASES[kind](figure)
    file = io.BytesIO()
    metadata: dict[str, Any] = {"Title": drawable(chart.title)}
    if kind == "svg":
        metadata |= {"Date": None, "Description": drawable(chart.summary)}
    if kind == "pdf":
        metadata |= {"CreationDate": None, "Subject": drawable(chart.summary)}
    figure.savefig(file, format=kind, dpi=dpi, metadata=metadata, facecolor=figure.get_facecolor())
    del canvas
    return file.getvalue()


def _figure(chart: Chart, palette: Palette) -> Figure:
    """Three parts above each other: title and summary, the panels, the note."""
    width = _width(chart)
    head = _wrapped(chart.summary, width) if chart.panels else []
    foot = _wrapped(chart.note, width)
    legend = _entries(chart)
    heights = [
        0.5 + _LINE * len(head) + 0.3 * bool(legend),
        _height(chart),
        0.14 + _LINE * len(foot),
    ]
    layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.04, wspace=0.04)
    figure = Figure(figsize=(width, sum(heights)), layout=layout, facecolor=palette.page)
    parts: Any = figure.subfigures(3, 1, height_ratios=heights)
    top, body, bottom = parts
    for part in (top, body, bottom):
        part.set_facecolor(palette.page)
    title = _short(chart.title, int((width - 0.4) / _TITLE_LETTER))
    _write(top, [title], heights[0], 0.16, TITLE, palette.text, weight="bold")
    _write(top, head, heights[0], 0.5, TEXT, palette.soft)
    _write(bottom, foot, heights[2], 0.02, SMALL, palette.soft)
    if not chart.panels:
        text = "\n".join(_wrapped(chart.empty, width * 0.8))
        body.text(0.5, 0.5, text, ha="center", va="center", fontsize=TEXT, color=palette.soft)
        return figure
    axes = body.subplots(1, len(chart.panels), squeeze=False).ravel()
    room = width / len(chart.panels)
    pens = [_panel(ax, panel, palette, room) for ax, panel in zip(axes, chart.panels, strict=True)]
    if legend:
        _legend(top, chart, legend, pens[0], heights[0])
    return figure


# ---- the parts ----


def _width(chart: Chart) -> float:
    for panel in chart.panels:
        for layer in panel.layers:
            if isinstance(layer, Strands):
                return min(max(7.5, 1.15 * len(layer.axes) + 0.4), 20.0)
    return 7.5 if len(chart.panels) < 2 else 10.0


def _height(chart: Chart) -> float:
    """Of the panels, in inches: enough for all bars and lanes."""
    if not chart.panels:
        return 1.6
    panel = chart.panels[0]
    if panel.y.scale == "category":
        long = any(len(label) > _LONG_LABEL for label in panel.y.labels)
        return 0.8 + len(panel.y.labels) * (0.5 if long else 0.27) + 0.3 * bool(panel.title)
    if any(isinstance(layer, Strands) for layer in panel.layers):
        return 4.4
    return 3.9 if len(chart.panels) == 1 else 3.3


def _wrapped(text: str, width: float) -> list[str]:
    return textwrap.wrap(drawable(text), max(20, int((width - 0.4) / _LETTER)))[:6]


def _write(
    part: SubFigure,
    lines: list[str],
    height: float,
    down: float,
    size: float,
    colour: str,
    *,
    weight: str = "normal",
) -> None:
    """Lines of text from `down` inches below the top of a part that is `height` inches high."""
    width = part.figure.get_figwidth()
    for i, line in enumerate(lines):
        y = 1.0 - (down + i * _LINE) / height
        part.text(
            0.16 / width,
            y,
            drawable(line),
            ha="left",
            va="top",
            fontsize=size,
            color=colour,
            weight=weight,
        )


def _entries(chart: Chart) -> list[tuple[str, Layer]]:
    """What the legend names: each kind of mark once, if there are several."""
    found: dict[str, Layer] = {}
    for panel in chart.panels:
        for layer in panel.layers:
            if isinstance(layer, Strands):
                found |= {POOR: layer, GOOD: layer}
            elif not isinstance(layer, Bars) and layer.name:
                found.setdefault(layer.name, layer)
    if len(found) < 2 and not any(isinstance(layer, Spans) for layer in found.values()):
        return []
    return list(found.items())


def _legend(
    top: SubFigure, chart: Chart, entries: list[tuple[str, Layer]], pen: Pen, height: float
) -> None:
    handles = [pen.handle(layer, name) for name, layer in entries]
    width = top.figure.get_figwidth()
    legend = top.legend(
        handles,
        [drawable(name) for name, _ in entries],
        loc="lower left",
        bbox_to_anchor=(0.1 / width, 0.0),
        ncols=len(entries),
        frameon=False,
        fontsize=SMALL,
        labelcolor=pen.palette.soft,
        handlelength=1.6,
        columnspacing=1.4,
        borderpad=0.2,
    )
    legend.set_in_layout(False)


def _panel(ax: Any, panel: Panel, palette: Palette, room: float) -> Pen:
    """Draw one panel, `room` inches wide. Everything is drawn in places from 0 to 1, so no value is
    too large."""
    x, y = scales(panel)
    pen = Pen(ax, x, y, palette, marks_of(panel, x, y))
    strands = [layer for layer in panel.layers if isinstance(layer, Strands)]
    if strands:
        draw_strands(pen, strands[0], size=SMALL)
        return pen
    _frame(ax, palette)
    if panel.title:
        ax.set_title(
            drawable(panel.title), loc="left", fontsize=TEXT, color=palette.text, weight="bold"
        )
    for layer in panel.layers:
        draw_layer(pen, layer, size=SMALL)
    if x.axis.bound is not None:
        _bound(pen, *x.axis.bound)
    _x_axis(ax, x, palette, columns=2 if "Quality" in panel.title or "Cost" in panel.title else 1)
    _y_axis(ax, y, palette, room)
    ax.set_xlim(0.0, 1.0)
    ax.set_ylim((1.0, 0.0) if y.axis.scale == "category" else (0.0, 1.0))
    return pen


def _bound(pen: Pen, value: float, text: str) -> None:
    """The area beyond the bound of an axis, and a line at the bound if it is within the axis."""
    place, colour = float(pen.x.at([value])[0]), pen.colour("chosen")
    if place < 1.0:
        pen.ax.axvspan(max(place, 0.0), 1.0, color=colour, alpha=0.07, linewidth=0, zorder=1)
    if 0.0 < place < 1.0:
        pen.ax.axvline(place, color=colour, linewidth=1.2, linestyle=(0, (2, 2.5)), zorder=4)
        pen.ax.annotate(
            drawable(text),
            (place, 0.02),
            xytext=(5 if place < 0.75 else -5, 0),
            textcoords="offset points",
            ha="left" if place < 0.75 else "right",
            fontsize=SMALL,
            color=colour,
            path_effects=halo(pen),
            zorder=6,
        )


def _frame(ax: Any, palette: Palette) -> None:
    ax.set_facecolor(palette.page)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set_color(palette.grid)
    ax.tick_params(length=0, labelsize=SMALL, labelcolor=palette.soft, pad=5)
    ax.set_axisbelow(True)


def _x_axis(ax: Any, scale: Scale, palette: Palette, *, columns: int) -> None:
    room = 4.3 if columns == 2 else 6.6  # inches
    ticks = scale.ticks(6 if columns == 1 else 5)
    rotated = False
    if scale.axis.scale == "category":
        ticks = scale.ticks(24)
        letters = sum(len(tick.text) + 3 for tick in ticks)
        rotated = letters * 0.066 > room
    texts = [_short(tick.text, 22 if rotated else 40) for tick in ticks]
    ax.set_xticks(scale.at(tick.value for tick in ticks), texts)
    if rotated:
        for text in ax.get_xticklabels():
            text.set(rotation=35, ha="right", rotation_mode="anchor")
    ax.set_xlabel(
        _short(scale.axis.title, 60 if columns == 1 else 44),
        fontsize=TEXT,
        color=palette.text,
        labelpad=6,
    )
    if scale.axis.scale != "category":
        ax.grid(visible=True, axis="x", color=palette.grid, linewidth=0.8)


def _y_axis(ax: Any, scale: Scale, palette: Palette, room: float) -> None:
    if scale.axis.scale == "category":
        labels = scale.axis.labels
        if any(len(label) > _LONG_LABEL for label in labels):
            ax.set_yticks([])
            for i, label in enumerate(labels):
                place = float(scale.at([i - 0.3])[0])
                text = _short(label, min(90, int(0.85 * room / _LETTER)))
                ax.text(
                    0.004, place, text, fontsize=SMALL, color=palette.text, va="bottom"
                ).set_in_layout(False)
            return
        ax.set_yticks(scale.at(range(len(labels))), [_short(label, 30) for label in labels])
        ax.tick_params(axis="y", labelcolor=palette.text)
        return
    ticks = scale.ticks(5)
    ax.set_yticks(scale.at(tick.value for tick in ticks), [tick.text for tick in ticks])
    ax.set_ylabel(_short(scale.axis.title, 44), fontsize=TEXT, color=palette.text, labelpad=6)
    ax.grid(visible=True, axis="y", color=palette.grid, linewidth=0.8)


def _short(text: str, most: int) -> str:
    text = text if len(text) <= most else text[: most - 1] + "…"
    return drawable(text)
