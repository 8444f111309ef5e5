"""What `watch` shows at one look, cut to the size of the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, Group, RenderableType
from rich.text import Text

from tradewind.cli import tables
from tradewind.cli.terminal import Data
from tradewind.cli.text import clean
from tradewind.cli.textplot import Point, text_plot

_POINTS = 2000  # of a plot: the latest
_LOWEST, _HIGHEST, _WIDEST = 4, 16, 100  # lines and columns of a plot


@dataclass(frozen=True)
class View:
    """A study as far as a picture shows it. Points are costs and values."""

    facts: Sequence[tuple[str, str]]
    running: Sequence[Data]
    finished: Sequence[Point]
    efficient: Sequence[Point]
    events: Sequence[str]
    unit: str
    maximize: bool
    value: str


def picture(view: View, console: Console) -> RenderableType:
    """Facts, running trials, the plot and the latest events. In a low terminal, the plot is left
    out, and fewer trials and events are shown."""
    facts, end = tables.facts(view.facts), Text("q ends", style="dim")
    room = console.height - _height([facts, end], console)
    running = _running(view.running, room // 2)
    room -= _height(running, console)
    events = _events(view.events, room)
    plot = _plot(view, console, room - _height(events, console))
    return Group(facts, *running, *plot, *events, end)


def _height(parts: Sequence[RenderableType], console: Console) -> int:
    return sum(len(console.render_lines(part, pad=False)) for part in parts)


def _running(entries: Sequence[Data], room: int) -> list[RenderableType]:
    """A line for each running trial, or for as many as there is room for."""
    fit = room - len(["blank", "heads", "rule"])
    if not entries or fit < 1:
        return []
    shown = entries if len(entries) <= fit else entries[: fit - 1]
    hidden = len(entries) - len(shown)
    more = [Text(f"and {hidden} more", style="dim")] if hidden else []
    return [Text(), tables.running_table(shown, cut=True), *more]


def _events(events: Sequence[str], room: int) -> list[RenderableType]:
    shown = events[-(room - 1) :] if room > 1 else []
    lines = [Text(clean(line), overflow="ellipsis", no_wrap=True) for line in shown]
    return [Text(), *lines] if lines else []


def _plot(view: View, console: Console, room: int) -> list[RenderableType]:
    marks = "·●" if console.encoding.lower().startswith("utf") else ".o"
    height = room - len(["blank", "title", "axis"])
    if height < _LOWEST:
        return []
    lines = text_plot(
        view.finished[-_POINTS:],
        view.efficient,
        maximize=view.maximize,
        width=min(console.width, _WIDEST),
        height=min(height, _HIGHEST),
        marks=marks,
        write_cost=lambda cost: tables.cost(cost, view.unit),
    )
    if not lines:
        return []
    title = Text(f"{view.value} against cost, {marks[1]} efficient", style="bold")
    return [Text(), title, *(Text(line, no_wrap=True) for line in lines)]
