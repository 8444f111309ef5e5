"""From values to places along an axis, and where an axis has its ticks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from tradewind.amounts import memory, spoken
from tradewind.charts.chart import Axis, Bars, Format, Layer, Panel, Points, Spans, Strands
from tradewind.types import Array

_ROOM = 0.04  # at both ends of an axis, of its length
_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86400.0
_LENGTHS = (
    *(1.0, 2.0, 5.0, 10.0, 15.0, 30.0),
    *(n * _MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * _HOUR for n in (1, 2, 3, 6, 12)),
    *(n * _DAY for n in (1, 2, 5, 10, 30, 100, 365)),
)
_UNITS = (("days", _DAY), ("h", _HOUR), ("min", _MINUTE), ("s", 1.0), ("ms", 1e-3), ("µs", 1e-6))
_ROUND_TIMES = (*(1.0, 10.0, _MINUTE, 10 * _MINUTE, _HOUR, 6 * _HOUR, _DAY, 10 * _DAY, 100 * _DAY),)
_NAMED = {_MINUTE: "1 min", _HOUR: "1 h", _DAY: "1 day"}


@dataclass(frozen=True)
class Tick:
    """A labelled place of an axis."""

    value: float
    text: str


@dataclass(frozen=True)
class Scale:
    """An axis between `low` and `high`, which differ. Places along it are from 0 to 1, whatever the
    size of the values."""

    axis: Axis
    low: float
    high: float

    @classmethod
    def of(cls, axis: Axis, values: Iterable[float | None], *, zero: bool = False) -> Scale:
        """An axis that shows these values, with some room, and zero if that is wanted."""
        log = axis.scale == "log"
        if axis.scale == "category":
            return cls(axis, -0.5, max(len(axis.labels), 1) - 0.5)
        values = values if axis.limits is None else axis.limits
        seen = [v for v in values if v is not None and math.isfinite(v) and (v > 0.0 or not log)]
        if not seen:
            return cls(axis, 0.1 if log else 0.0, 1.0)
        low, high = min(seen), max(seen)
        if log:
            room = max(_ROOM * (math.log(high) - math.log(low)), math.log(2) if low == high else 0)
            bounds = math.log(low) - room, math.log(high) + room
            return cls(axis, *(math.exp(min(max(b, -740.0), 709.0)) for b in bounds))
        from_zero = zero and low >= 0.0
        low = 0.0 if from_zero else low
        high = 0.0 if zero and high <= 0.0 else high
        alone = 0.5 if axis.format == "count" else 0.1 * abs(low) or 1.0
        room = _ROOM * high - _ROOM * low if low < high else alone
        amount = low >= 0.0 and axis.format in ("seconds", "bytes")
        least = 0.0 if from_zero or amount else -1e308
        return cls(axis, least if from_zero else max(low - room, least), min(high + room, 1e308))

    def at(self, values: Iterable[float | None]) -> Array:
        """The places of these values; NaN for those that have none. What lies beyond the limits of
        the axis stands at its ends."""
        places = self._at(values)
        return places if self.axis.limits is None else np.clip(places, 0.0, 1.0)

    def beyond(self, values: Iterable[float | None]) -> Array:
        """-1 for values below the limits of the axis, 1 for those above, 0 for all others."""
        v = _numbers(values)
        low, high = self.axis.limits or (-math.inf, math.inf)
        return (v > high).astype(int) - (v < low)

    def _at(self, values: Iterable[float | None]) -> Array:
        v = _numbers(values)
        if self.axis.scale != "log":
            half = self.high / 2.0 - self.low / 2.0  # the width may overflow
            return np.asarray((v / 2.0 - self.low / 2.0) / half)
        logs = np.log(np.where(v > 0.0, v, np.nan))
        return np.asarray((logs - math.log(self.low)) / (math.log(self.high) - math.log(self.low)))

    def ticks(self, count: int = 5) -> list[Tick]:
        """About so many labelled places within the axis, at round values."""
        axis = self.axis
        if axis.scale == "category":
            every = math.ceil(len(axis.labels) / max(count, 1))
            return [Tick(float(i), axis.labels[i]) for i in range(0, len(axis.labels), every)]
        if axis.scale == "log":
            return _log_ticks(self.low, self.high, axis.format, count)
        return _linear_ticks(self.low, self.high, axis.format, count)


def _numbers(values: Iterable[float | None]) -> Array:
    return np.array([math.nan if value is None else value for value in values], dtype=float)


def scales(panel: Panel) -> tuple[Scale, Scale]:
    """The scales of both axes of a panel, wide enough for all its layers."""
    bars = any(isinstance(layer, Bars) for layer in panel.layers)
    x = Scale.of(panel.x, (v for layer in panel.layers for v in _along(layer)), zero=bars)
    return x, Scale.of(panel.y, (v for layer in panel.layers for v in _up(layer)))


def _along(layer: Layer) -> Iterator[float | None]:
    match layer:
        case Bars():
            yield from (*layer.values, *layer.low, *layer.high)
        case Spans():
            yield from (*layer.start, *layer.end)
        case Strands():
            return
        case _:
            yield from layer.x


def _up(layer: Layer) -> Iterator[float | None]:
    if isinstance(layer, Bars | Spans | Strands):
        return
    if isinstance(layer, Points) or layer.kind == "line":
        yield from layer.y
    else:
        yield from (*layer.low, *layer.high)


# ---- ticks ----


def _linear_ticks(low: float, high: float, form: Format, count: int) -> list[Tick]:
    raw = high / count - low / count
    if form == "seconds":
        return _durations(low, high, raw)
    if form == "clock":
        return _clock(low, high, raw)
    if form == "bytes":
        unit = next((size for size in (1e9, 1e6, 1e3) if high >= size), 1e3)
        values = _multiples(low, high, nice_step(raw / unit) * unit)
        return [Tick(v, memory(v) if v else "0") for v in values]
    if form == "percent":
        step = nice_step(100.0 * raw)
        values = _multiples(100.0 * low, 100.0 * high, step)
        return [Tick(v / 100.0, f"{written(v, step)}%") for v in values]
    step = max(nice_step(raw), 1.0) if form == "count" else nice_step(raw)
    return [Tick(v, written(v, step)) for v in _multiples(low, high, step)]


def nice_step(raw: float) -> float:
    """The round number next above: 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(max(raw, 1e-307)))
    return next((f * power for f in (1, 2, 5) if f * power >= raw * (1.0 - 1e-9)), 10.0 * power)


def _multiples(low: float, high: float, step: float) -> list[float]:
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [float(f"{i * step:.12g}") for i in range(first, min(last, first + 50) + 1)]


def written(value: float, step: float = 0.0) -> str:
    """A number on an axis, with the decimals of the step between two of them."""
    if value == 0.0:
        return "0"
    if not 1e-4 <= abs(value) < 1e6:
        digits = 3 if step <= 0.0 else min(max(math.ceil(math.log10(abs(value) / step)) + 1, 1), 12)
        mantissa, _, power = f"{value:.{digits}g}".partition("e")
        return f"{mantissa}e{int(power)}" if power else mantissa
    if step <= 0.0:
        return f"{value:.12g}"
    return f"{value:.{min(max(0, math.ceil(-math.log10(step) - 1e-9)), 12)}f}"


def _durations(low: float, high: float, raw: float) -> list[Tick]:
    """In the largest unit of which the step has whole or half ones: 0, 20, 40, 60 s, or 0, 30 s,
    1 min, 1.5 min."""
    unit = next((u for u in _UNITS if max(abs(low), abs(high)) >= 1.5 * u[1]), _UNITS[-1])
    if unit[1] < _MINUTE:
        step = nice_step(raw / unit[1]) * unit[1]
    else:
        step = next((s for s in _LENGTHS if s >= raw), nice_step(raw / _DAY) * _DAY)
        halves = (u for u in _UNITS[1:3] if step % (u[1] / 2) == 0.0)
        unit = _UNITS[0] if step >= _DAY / 2 else next(halves, _UNITS[3])
    return [Tick(v, _duration(v, *unit)) for v in _multiples(low, high, step)]


def _duration(value: float, unit: str, length: float) -> str:
    if value == 0.0:
        return "0"
    if length >= _MINUTE and abs(value) < length:  # half a unit
        unit, length = next(u for u in _UNITS if u[1] < length)
    count = float(f"{value / length:.4g}")
    return f"{count:.12g} {'day' if unit == 'days' and abs(count) == 1.0 else unit}"


def _clock(low: float, high: float, raw: float) -> list[Tick]:
    step = next((s for s in _LENGTHS if s >= raw), nice_step(raw / _DAY) * _DAY)
    form = "%Y-%m-%d" if step >= _DAY else "%H:%M:%S" if step < _MINUTE else "%H:%M"
    values = [v for v in _multiples(low, high, step) if 0.0 <= v < 2e11]
    return [Tick(v, datetime.fromtimestamp(v, UTC).strftime(form)) for v in values]


def _log_ticks(low: float, high: float, form: Format, count: int) -> list[Tick]:
    """Powers of ten and what lies between them, as many as fit; for durations, round ones."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    levels = [_decades(first, last, marks) for marks in ((1, 2, 5), (1, 3), (1,))]
    if form == "seconds":
        levels = [[*(v for v in level if v < 1.0), *_ROUND_TIMES] for level in levels[2:]]
        levels.insert(0, sorted({*levels[0], *_decades(-6, 1, (1, 3)), *_LENGTHS}))
    levels += [_decades(first, last, (1,), every) for every in (2, 3, 5, 10, 20, 50, 100, 200)]
    inside = [[v for v in level if low <= v <= high] for level in levels]
    fitting = [level for level in inside if 2 <= len(level) <= count + 2]
    if not fitting:
        return _linear_ticks(low, high, form, min(count, 4))
    return [Tick(v, _log_text(v, form)) for v in fitting[0]]


def _decades(first: int, last: int, marks: tuple[int, ...], every: int = 1) -> list[float]:
    powers = [p for p in range(first, last + 1) if p % every == 0 and -307 <= p <= 307]
    return [float(f"{m}e{p}") for p in powers for m in marks]


def _log_text(value: float, form: Format) -> str:
    if form == "seconds":
        return _NAMED.get(value, spoken(value))
    if form == "bytes":
        return memory(value)
    return f"{written(100.0 * value)}%" if form == "percent" else written(value)
