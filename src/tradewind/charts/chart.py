"""What a figure shows, as plain values, before anybody draws it.

A figure is a `Chart` of panels; a panel has two axes and layers of marks. Three renderers draw the
same chart: plotly.py for notebooks, matplotlib.py for PNG and SVG files, and the scripts in assets/
for the report and the dashboard. Colours are roles here; each renderer has its own palette.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

Scale: TypeAlias = Literal["linear", "log", "category"]
Format: TypeAlias = Literal["number", "count", "percent", "seconds", "bytes", "clock"]
Role: TypeAlias = Literal["main", "chosen", "frontier", "muted", "second", "bad"]
Cell: TypeAlias = float | int | str | bool | None


@dataclass(frozen=True)
class Axis:
    """One axis. A category axis has `labels`, and its coordinates are their indices. The format
    says how numbers are written: a "count" is whole, and "clock" numbers are seconds since 1970.

    A value axis may have `limits`: the lowest and the highest value that it shows. Points beyond
    them are drawn as triangles at the edge. A cost axis may have a `bound`, the most that the goal
    allows, with its text: a line marks it if it is within the axis, and the area beyond is shaded.
    """

    title: str
    scale: Scale = "linear"
    format: Format = "number"
    labels: tuple[str, ...] = ()
    limits: tuple[float, float] | None = None
    bound: tuple[float, str] | None = None


@dataclass(frozen=True)
class Points:
    """Dots. `trials` are their trial numbers, `texts` what a reader sees on hovering."""

    x: Sequence[float]
    y: Sequence[float]
    name: str = ""
    role: Role = "main"
    trials: Sequence[int] = ()
    texts: Sequence[str] = ()
    kind: Literal["points"] = "points"


@dataclass(frozen=True)
class Line:
    """A line through points; with `steps` it is level until the next point. None makes a gap."""

    x: Sequence[float | None]
    y: Sequence[float | None]
    name: str = ""
    role: Role = "main"
    steps: bool = False
    dashed: bool = False
    kind: Literal["line"] = "line"


@dataclass(frozen=True)
class Band:
    """The area between two lines."""

    x: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    name: str = ""
    role: Role = "main"
    kind: Literal["band"] = "band"


@dataclass(frozen=True)
class Bars:
    """Horizontal bars, one for each label of a category y axis, with an interval if known."""

    values: Sequence[float]
    name: str = ""
    role: Role = "main"
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    kind: Literal["bars"] = "bars"


@dataclass(frozen=True)
class Spans:
    """Horizontal spans from `start` to `end` in the lanes of a category y axis."""

    lane: Sequence[int]
    start: Sequence[float]
    end: Sequence[float]
    name: str = ""
    role: Role = "main"
    trials: Sequence[int] = ()
    texts: Sequence[str] = ()
    kind: Literal["spans"] = "spans"


@dataclass(frozen=True)
class Strands:
    """Parallel coordinates: one strand per trial across `axes`. `rows` hold a coordinate in [0, 1]
    for each axis, or None where the trial has no such parameter. `ticks` are the positions and
    texts along each axis; `shade` in [0, 1] is how good each trial is."""

    axes: Sequence[str]
    ticks: Sequence[Sequence[tuple[float, str]]]
    rows: Sequence[Sequence[float | None]]
    shade: Sequence[float]
    trials: Sequence[int] = ()
    texts: Sequence[str] = ()
    kind: Literal["strands"] = "strands"


Layer: TypeAlias = Points | Line | Band | Bars | Spans | Strands


@dataclass(frozen=True)
class Panel:
    """Two axes and what is drawn between them, in order."""

    x: Axis
    y: Axis
    layers: tuple[Layer, ...]
    title: str = ""


@dataclass(frozen=True)
class Chart:
    """One figure. `summary` says in a sentence what it shows, for those who cannot see it. A chart
    with nothing to show has no panels, and `empty` says why."""

    name: str
    title: str
    summary: str
    panels: tuple[Panel, ...] = ()
    note: str = ""
    empty: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The chart as plain data, for a page."""
        panels = [
            {
                "x": asdict(panel.x),
                "y": asdict(panel.y),
                "layers": [dict(vars(layer)) for layer in panel.layers],  # may hold many numbers
                "title": panel.title,
            }
            for panel in self.panels
        ]
        return {**vars(self), "panels": panels}
