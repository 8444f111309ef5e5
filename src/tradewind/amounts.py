"""Numbers, shares, durations and memory as people write them."""

from __future__ import annotations


def number(value: float) -> str:
    """A number with two digits that matter, or three above 10: `0.031`, `1.2`, `123`."""
    if value == 0.0:
        return "0"
    if 1e-4 <= abs(value) < 9.95:
        return f"{float(f'{value:.2g}'):.12g}"
    return f"{float(f'{value:.3g}'):.12g}" if abs(value) < 1e6 else f"{value:.2g}"


def percent(share: float) -> str:
    """`40%`."""
    return f"{100 * share:.3g}%"


def spoken(seconds: float) -> str:
    """A duration as people say it: `12 ms`, `45 s`, `3.2 min`, `5.1 h`, `2.3 days`."""
    if seconds < 1e-4:
        return f"{number(1e6 * seconds)} µs"
    if seconds < 1.0:
        return f"{number(1e3 * seconds)} ms"
    for unit, length in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 1.5 * length:
            return f"{number(seconds / length)} {unit}"
    return f"{number(seconds)} s"


def memory(size: float) -> str:
    """An amount of memory in bytes, as people say it: `190 MB`."""
    for name, unit in (("GB", 1e9), ("MB", 1e6)):
        if size >= 0.9995 * unit:
            return f"{size / unit:.3g} {name}"
    return f"{size / 1e3:.3g} kB"
