"""Numbers, shares, durations and memory as people write them."""

from __future__ import annotations

import math
from collections.abc import Callable


def number(value: float, digits: int | None = None) -> str:
    """A number with two digits that matter, or three above 10: `0.031`, `1.2`, `123`. If `digits`
    is given, it has so many, zeros at its end included."""
    if value == 0.0:
        return "0"
    if digits is not None:
        return _with_digits(value, digits)
    if 1e-4 <= abs(value) < 9.95:
        return f"{float(f'{value:.2g}'):.12g}"
    return f"{float(f'{value:.3g}'):.12g}" if abs(value) < 1e6 else f"{value:.2g}"


def _with_digits(value: float, digits: int) -> str:
    text = f"{value:.{digits}g}"
    if not 1e-4 <= abs(value) < 1e6:
        return text
    decimals = digits - 1 - math.floor(math.log10(abs(float(text))))
    return f"{float(text):.{max(decimals, 0)}f}"


def between(value: float, low: float, high: float, say: Callable[[float, int | None], str]) -> str:
    """`3.1 (2.9 to 3.4)`, with as many digits as tell the ends apart, but no more than four. Ends
    that are the same even then are left out."""
    for digits in (None, 3, 4):
        first, last = say(low, digits), say(high, digits)
        if first != last:
            return f"{say(value, digits)} ({first} to {last})"
    return say(value, None)


def percent(share: float) -> str:
    """`40%`."""
    return f"{100 * share:.3g}%"


def spoken(seconds: float, digits: int | None = None) -> str:
    """A duration as people say it: `12 ms`, `45 s`, `3.2 min`, `5.1 h`, `2.3 days`."""
    if seconds == 0.0:
        return "0 s"
    if seconds < 1e-4:
        return f"{number(1e6 * seconds, digits)} µs"
    if seconds < 1.0:
        return f"{number(1e3 * seconds, digits)} ms"
    for unit, length in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 1.5 * length:
            return f"{number(seconds / length, digits)} {unit}"
    return f"{number(seconds, digits)} s"


def clock_time(seconds: float) -> str:
    """`0:07`, `12:34`, `1:02:03`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def memory(size: float, digits: int | None = None) -> str:
    """An amount of memory in bytes, as people say it: `190 MB`."""
    for name, unit in (("GB", 1e9), ("MB", 1e6)):
        if size >= 0.9995 * unit:
            return f"{size / unit:.{digits or 3}g} {name}"
    return f"{size / 1e3:.{digits or 3}g} kB"
