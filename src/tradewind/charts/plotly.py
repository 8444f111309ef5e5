"""Charts as Plotly figures, to zoom in and to change in a notebook."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from html import escape
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from tradewind.charts.chart import (
    Axis,
    Band,
    Bars,
    Chart,
    Layer,
    Line,
    Panel,
    Points,
    Role,
    Spans,
    Strands,
)
from tradewind.charts.letters import GOOD, POOR, name_lines, unturned
from tradewind.charts.palette import PALETTES, Palette, Theme
from tradewind.charts.scales import Scale, scales

_SYMBOLS: dict[Role, str] = {
    "main": "circle",
    "chosen": "star",
    "frontier": "diamond",
    "muted": "circle",
    "second": "square",
    "bad": "x",
}
_SIZES: dict[Role, int] = {
    "main": 8,
    "chosen": 17,
    "frontier": 9,
    "muted": 6,
    "second": 8,
    "bad": 9,
}
_FONT = "Inter, system-ui, -apple-system, 'Segoe UI', Roboto, Arial, sans-serif"
_LINE = 118  # letters of a line of the summary
_LEGEND = {"orientation": "h", "x": 0.0, "xanchor": "left", "yanchor": "bottom"}
_SHADES = 6  # strands are drawn in so many groups, from poor to good
_UNSET = -0.12  # where strands pass an axis on which they have no value


def draw(chart: Chart, *, theme: Theme) -> go.Figure:
    """The chart as a figure with one trace per layer; each point knows its trial."""
    palette = PALETTES[theme]
    columns = max(len(chart.panels), 1)
    titles = [f"<b>{_plain(panel.title)}</b>" if panel.title else "" for panel in chart.panels]
    figure = make_subplots(
        rows=1, cols=columns, subplot_titles=titles or None, horizontal_spacing=0.14
    )
    named: set[str] = set()
    for column, panel in enumerate(chart.panels, 1):
        for layer in panel.layers:
            for trace in _traces(layer, panel, palette):
                if trace.name:
                    trace.legendgroup = trace.name
                    trace.showlegend = trace.name not in named and not isinstance(layer, Bars)
                    named.add(trace.name)
                figure.add_trace(trace, row=1, col=column)
        _axes(figure, panel, column, palette, of=columns)
    _layout(figure, chart, palette)
    return figure


def _layout(figure: go.Figure, chart: Chart, palette: Palette) -> None:
    said = _wrapped(chart.summary if chart.panels else "")
    lines, note = said.count("<br>") + 1, _wrapped(chart.note)
    titled = any(panel.title for panel in chart.panels)
    place: dict[str, Any] = {"y": 1.1 if titled else 1.02}
    if any(isinstance(layer, Strands) for panel in chart.panels for layer in panel.layers):
        place = {"y": -0.02, "yanchor": "top"}  # the names of the axes are above
    figure.update_layout(
        title=_title(chart, said, palette),
        font={"family": _FONT, "size": 13, "color": palette.text},
        paper_bgcolor=palette.page,
        plot_bgcolor=palette.page,
        legend=_LEGEND | place,
        margin={
            "t": 96 + 18 * lines + 24 * titled,
            "b": 64 + (12 + 18 * (note.count("<br>") + 1)) * bool(note),
            "l": 76,
            "r": 24,
        },
        height=_height(chart) + 18 * lines,
        hovermode="closest",
        barmode="overlay",
        bargap=0.3,
        template="none",
    )
    for title in figure.layout.annotations:  # of the panels, so far
        title.update(font={"size": 14, "color": palette.text}, yshift=6)
    if note:
        place = {"x": 0.0, "y": 0.0, "yshift": -60, "xanchor": "left", "yanchor": "top"}
        _annotate(figure, note, palette, **place)
    if not chart.panels:
        figure.update_xaxes(visible=False)
        figure.update_yaxes(visible=False)
        _annotate(figure, _wrapped(chart.empty), palette, x=0.5, y=0.5, xanchor="center")


def _title(chart: Chart, said: str, palette: Palette) -> dict[str, Any]:
    """The title with the summary below it."""
    return {
        "text": f"<b>{_plain(_cut(chart.title, 64))}</b>",
        "subtitle": {"text": said, "font": {"size": 13, "color": palette.soft}},
        "x": 0.0,
        "xref": "paper",
        "xanchor": "left",
        "y": 0.97,
        "yanchor": "top",
        "font": {"size": 19, "color": palette.text},
    }


def _annotate(figure: go.Figure, text: str, palette: Palette, **place: Any) -> None:
    figure.add_annotation(
        text=text,
        showarrow=False,
        xref="paper",
        yref="paper",
        align="left",
        font={"size": 12, "color": palette.soft},
        **place,
    )


def _height(chart: Chart) -> int:
    if not chart.panels:
        return 280
    lanes = len(chart.panels[0].y.labels)
    if lanes:
        return 230 + 30 * lanes
    return 520 if len(chart.panels) == 1 else 460


# ---- axes ----


def _axes(figure: go.Figure, panel: Panel, column: int, palette: Palette, *, of: int) -> None:
    """The axes of a panel, one `of` so many beside each other."""
    strands = next((it for it in panel.layers if isinstance(it, Strands)), None)
    if strands is not None:
        _strand_axes(figure, strands, palette)
        return
    x, y = scales(panel)
    line = {"gridcolor": palette.grid, "zeroline": False, "linecolor": palette.grid}
    for scale, update, letters in (
        (x, figure.update_xaxes, 24 // of),
        (y, figure.update_yaxes, 36 // of),
    ):
        ticks = [(tick.value, tick.text) for tick in scale.ticks(6)]
        update(**line, **_axis(scale.axis, ticks, letters), row=1, col=column)
    if x.axis.bound is not None:
        _bound(figure, x, column, palette)
    if panel.y.limits:
        figure.update_yaxes(range=[y.low, y.high], row=1, col=column)
    if panel.y.scale == "category":
        n = len(panel.y.labels)
        figure.update_yaxes(range=[n - 0.5, -0.5], showgrid=False, row=1, col=column)
    if panel.x.scale == "category":
        n = len(panel.x.labels)
        figure.update_xaxes(range=[-0.5, n - 0.5], showgrid=False, row=1, col=column)


def _bound(figure: go.Figure, x: Scale, column: int, palette: Palette) -> None:
    """The area beyond the bound of an axis, and a line at the bound if it is within the axis."""
    assert x.axis.bound is not None
    value, text = x.axis.bound
    place, colour = {"row": 1, "col": column}, palette.roles["chosen"]
    if value < x.high:
        shade = {"fillcolor": colour, "opacity": 0.07, "line_width": 0}
        figure.add_vrect(max(value, x.low), x.high, **shade, **place)
        ends = np.array([x.low, x.high])
        figure.update_xaxes(range=np.log10(ends) if x.axis.scale == "log" else ends, **place)
    if x.low < value < x.high:
        side = "left" if x.at([value])[0] < 0.75 else "right"
        label = {"text": _plain(text), "textangle": 0, "textposition": "start", "xanchor": side}
        figure.add_vline(value, line={"color": colour, "dash": "dot"}, label=label, **place)


def _axis(axis: Axis, ticks: Sequence[tuple[float, str]], letters: int) -> dict[str, Any]:
    """What Plotly needs to know of an axis. It finds round numbers itself, but knows nothing of
    minutes and megabytes. A name has up to two lines of so many `letters`."""
    given: dict[str, Any] = {"title": {"text": _plain(_cut(axis.title, 40)), "standoff": 12}}
    if axis.scale == "category":
        places = list(range(len(axis.labels)))
        texts = ["<br>".join(map(_plain, _folded(label, letters))) for label in axis.labels]
        more = {"tickmode": "array", "tickvals": places, "ticktext": texts, "automargin": True}
        return given | more
    if axis.format == "clock":
        return given | {"type": "date"}
    if axis.scale == "log":
        given["type"] = "log"
    if axis.format in ("count", "seconds", "bytes") or axis.scale == "log":
        values, texts = [t[0] for t in ticks], [_plain(t[1]) for t in ticks]
        return given | {"tickmode": "array", "tickvals": values, "ticktext": texts}
    return given | ({"tickformat": ".4~%"} if axis.format == "percent" else {})


# ---- layers ----


def _traces(layer: Layer, panel: Panel, palette: Palette) -> list[Any]:
    match layer:
        case Points():
            return [_points(layer, panel, palette), *_beyond(layer, panel, palette)]
        case Line():
            return [_line(layer, panel, palette)]
        case Band():
            return [_band(layer, panel, palette)]
        case Bars():
            return [_bars(layer, palette)]
        case Spans():
            return [_spans(layer, panel, palette)]
        case Strands():
            return _strands(layer, palette)


def _points(layer: Points, panel: Panel, palette: Palette) -> go.Scatter:
    return go.Scatter(
        x=_values(layer.x, panel.x),
        y=_values(layer.y, panel.y),
        mode="markers",
        name=_plain(layer.name),
        marker={
            "symbol": _SYMBOLS[layer.role],
            "size": _SIZES[layer.role],
            "color": palette.roles[layer.role],
            "opacity": 0.5 if layer.role == "muted" else 1.0,
            "line": {
                "width": 0 if layer.role == "muted" else 1,
                "color": palette.page,
            },
        },
        **_hover(layer),
    )


def _beyond(layer: Points, panel: Panel, palette: Palette) -> Iterator[go.Scatter]:
    """Triangles at the edge for the points beyond the limits of the value axis. They are drawn
    where they are, too: a reader may zoom out."""
    _, scale = scales(panel)
    beyond = scale.beyond(layer.y)
    room = 0.015 * (scale.high - scale.low)
    for side, edge in ((-1, scale.low + room), (1, scale.high - room)):
        rows = np.flatnonzero(beyond == side).tolist()
        if not rows:
            continue
        picked = replace(
            layer,
            x=[layer.x[i] for i in rows],
            y=[edge] * len(rows),
            trials=[layer.trials[i] for i in rows] if layer.trials else (),
            texts=[layer.texts[i] for i in rows] if layer.texts else (),
        )
        trace = _points(picked, panel, palette)
        trace.marker.symbol = "triangle-down" if side < 0 else "triangle-up"
        yield trace


def _line(layer: Line, panel: Panel, palette: Palette) -> go.Scatter:
    many = sum(x is None for x in layer.x) > 12
    return go.Scatter(
        x=_values(layer.x, panel.x),
        y=_values(layer.y, panel.y),
        mode="lines",
        name=_plain(layer.name),
        opacity=0.5 if many else 1.0,
        line={
            "color": palette.roles[layer.role],
            "width": 1 if many else 2.5,
            "shape": "hv" if layer.steps else "linear",
            "dash": "dash" if layer.dashed else "solid",
        },
        hoverinfo="skip",
    )


def _band(layer: Band, panel: Panel, palette: Palette) -> go.Scatter:
    """A closed area: to the right along the upper line, and back along the lower one."""
    x, low, high = (list(part) for part in (layer.x, layer.low, layer.high))
    return go.Scatter(
        x=_values([*x, *x[::-1]], panel.x),
        y=_values([*high, *low[::-1]], panel.y),
        mode="lines",
        name=_plain(layer.name),
        fill="toself",
        fillcolor=palette.roles[layer.role],
        opacity=0.2,
        line={"width": 0},
        hoverinfo="skip",
    )


def _bars(layer: Bars, palette: Palette) -> go.Bar:
    error = None
    if len(layer.low):
        triples = zip(layer.values, layer.low, layer.high, strict=True)
        ends = [(max(high - value, 0.0), max(value - low, 0.0)) for value, low, high in triples]
        error = {
            "type": "data",
            "symmetric": False,
            "array": [up for up, _ in ends],
            "arrayminus": [down for _, down in ends],
            "color": palette.text,
            "thickness": 1.5,
            "width": 0,
        }
    return go.Bar(
        x=list(layer.values),
        y=list(range(len(layer.values))),
        orientation="h",
        name=_plain(layer.name),
        marker={"color": palette.roles[layer.role]},
        error_x=error,
    )


def _spans(layer: Spans, panel: Panel, palette: Palette) -> go.Bar:
    length = [end - start for start, end in zip(layer.start, layer.end, strict=True)]
    scale = 1000.0 if panel.x.format == "clock" else 1.0  # bars on a date axis are in milliseconds
    return go.Bar(
        base=_values(layer.start, panel.x),
        x=[scale * each for each in length],
        y=list(layer.lane),
        orientation="h",
        name=_plain(layer.name),
        marker={
            "color": palette.roles[layer.role],
            "line": {"width": 0.5 if len(length) < 600 else 0, "color": palette.page},
        },
        **_hover(layer),
    )


def _hover(layer: Points | Spans) -> dict[str, Any]:
    """What is shown on hovering, and the trial of each mark for whoever handles clicks."""
    given: dict[str, Any] = {"customdata": list(layer.trials) or None}
    if not layer.texts:
        return given
    return given | {
        "hovertext": [_plain(text) for text in layer.texts],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


# ---- parallel coordinates ----


def _strands(layer: Strands, palette: Palette) -> list[go.Scatter]:
    """Lines and not Plotly's own parallel coordinates, which know neither gaps nor categories."""
    groups: list[list[int]] = [[] for _ in range(_SHADES)]
    for i, shade in enumerate(layer.shade):
        groups[min(int(shade**4 * _SHADES), _SHADES - 1)].append(i)
    places = [*range(len(layer.axes)), None]
    faint = min(0.4, 20.0 / max(len(layer.rows), 1) ** 0.8)  # so that the best ones show
    traces = []
    for k, rows in enumerate(groups):
        y = [[*(_UNSET if c is None else c for c in layer.rows[i]), None] for i in rows]
        texts = [_plain(layer.texts[i]) if layer.texts else "" for i in rows]
        traces.append(
            go.Scatter(
                x=places * len(rows),
                y=[value for row in y for value in row],
                mode="lines",
                line={"color": _mixed(palette, k / (_SHADES - 1)), "width": 1.0 + 0.25 * k},
                opacity=0.9 if k == _SHADES - 1 else faint + 0.06 * k,
                name={0: POOR, _SHADES - 1: GOOD}.get(k),
                showlegend=k in (0, _SHADES - 1),
                hovertext=[text for text in texts for _ in places],
                hovertemplate="%{hovertext}<extra></extra>",
            )
        )
    return traces


def _mixed(palette: Palette, share: float) -> str:
    ends = [[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in (palette.low, palette.high)]
    parts = [round(a + share * (b - a)) for a, b in zip(*ends, strict=True)]
    return f"rgb({', '.join(map(str, parts))})"


def _strand_axes(figure: go.Figure, layer: Strands, palette: Palette) -> None:
    texts = ["<br>".join(map(_plain, name_lines(name))) for name in layer.axes]
    gaps = any(None in row for row in layer.rows)
    if len(texts) > 9:  # with less room, the names would cover each other
        figure.update_layout(width=100 * len(texts) + 100)
    figure.update_xaxes(
        tickvals=list(range(len(texts))),
        ticktext=[f"<b>{text}</b>" for text in texts],
        side="top",
        tickangle=0,
        showgrid=False,
        zeroline=False,
        range=[-0.2, len(texts) - 0.3],
    )
    figure.update_yaxes(visible=False, range=[_UNSET - 0.06 if gaps else -0.04, 1.1])
    for i, ticks in enumerate(layer.ticks):
        figure.add_shape(
            type="line", x0=i, x1=i, y0=0.0, y1=1.0, line={"color": palette.soft, "width": 1}
        )
        unset = any(row[i] is None for row in layer.rows)
        for place, text in [*ticks, *([(_UNSET, "not set")] if unset else [])]:
            figure.add_annotation(
                x=i,
                y=place,
                text=_plain(_folded(text, 16)[0]),
                showarrow=False,
                xanchor="left",
                xshift=4,
                bgcolor=palette.page,
                opacity=0.85,
                font={"size": 11, "color": palette.soft},
            )


# ---- values and texts ----


def _values(given: Iterable[float | None], axis: Axis) -> list[Any]:
    """Values for Plotly, which counts clock times in milliseconds."""
    if axis.format == "clock":
        return [None if value is None else 1000.0 * value for value in given]
    return list(given)


def _plain(text: str) -> str:
    """Text that stays text: Plotly reads some HTML."""
    return escape(unturned(text).encode("utf-8", "replace").decode(), quote=False)


def _folded(text: str, letters: int) -> list[str]:
    """A label as two lines at most."""
    return textwrap.wrap(text, letters, max_lines=2, placeholder="…") or [text[:letters]]


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _wrapped(text: str) -> str:
    return "<br>".join(_plain(line) for line in textwrap.wrap(text, _LINE))
