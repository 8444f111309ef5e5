"""A frontier as a small plot of letters: value against cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

Point = tuple[float, float]  # cost, value


def text_plot(
    points: Sequence[Point],
    efficient: Sequence[Point],
    *,
    maximize: bool = True,
    width: int = 60,
    height: int = 12,
    marks: str = "·●",
    write_cost: Callable[[float], str] = "{:.4g}".format,
) -> list[str]:
    """Lines with all points and the efficient ones, and a line with the costs at both ends; the
    better values are at the top. Costs are on a log scale if they are all positive and far
    apart."""
    known = [p for p in (*points, *efficient) if all(map(math.isfinite, p))]
    if not known:
        return []
    costs, values = zip(*known, strict=True)
    log = min(costs) > 0.0 and max(costs) > 10.0 * min(costs)
    scale = math.log if log else float
    low, high = scale(min(costs)), scale(max(costs))
    worst, best = (min(values), max(values)) if maximize else (max(values), min(values))
    left = max(len(f"{v:.4g}") for v in (worst, best))
    room = max(width - left - 2, 10)
    rows = [[" "] * room for _ in range(height)]
    for group, mark in ((points, marks[0]), (efficient, marks[1])):
        for cost, value in group:
            if math.isfinite(cost) and math.isfinite(value):
                x = round(_share(scale(cost), low, high) * (room - 1))
                y = round((1.0 - _share(value, worst, best)) * (height - 1))
                rows[y][x] = mark
    labels = {0: f"{best:.4g}", height - 1: f"{worst:.4g}"}
    lines = [f"{labels.get(i, ''):>{left}} |{''.join(row)}".rstrip() for i, row in enumerate(rows)]
    axis = _axis(write_cost(min(costs)), write_cost(max(costs)), room, log=log)
    return [*lines, " " * (left + 2) + axis]


def _axis(low: str, high: str, room: int, *, log: bool) -> str:
    """`200 ms        log scale        2.4 s`, as far as there is room."""
    between = room - len(low) - len(high)
    name = "log scale" if log and between > 12 else ""
    return f"{low}{name:^{max(between, 1)}}{high}"


def _share(value: float, low: float, high: float) -> float:
    """Where a value lies between two others; in the middle if they are the same."""
    width = high - low
    if width == 0.0 or not math.isfinite(width):
        return 0.5
    return min(max((value - low) / width, 0.0), 1.0)
