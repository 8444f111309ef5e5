"""Numbers, shares, durations and memory as people write them, and costs as they give them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_UNITS = {"d": 86400.0, "h": 3600.0, "min": 60.0, "m": 60.0, "s": 1.0}  # in seconds
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(d|h|min|m|s)\s*")
_SMALL_OR_BYTES = {"ms": 1e-3, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12}
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|kb|mb|gb|tb)", re.IGNORECASE)
_SHOWN = {"m": "min", "kb": "kB", "mb": "MB", "gb": "GB", "tb": "TB"}  # the others as they are


# ---- reading ----


def seconds(name: str, given: str) -> float:
    """A duration written as text, such as "2h" or "1h30m", in seconds."""
    found = _duration(given)
    if found is None:
        raise ValueError(
            f'{name} must be a number of seconds, or text such as "2h", "90min", "45s" or "1h30m", '
            f"but got {given!r}"
        )
    return found


class GivenAmount(float):
    """A number that was given as text. `text` has the units that were given: "1 h 30 min"."""

    __slots__ = ("text",)
    text: str

    @classmethod
    def of(cls, value: float, given: str) -> GivenAmount:
        amount = cls(value)
        parts = re.findall(r"([\d.]+)\s*([a-z]+)", given.lower())
        amount.text = " ".join(f"{number} {_SHOWN.get(unit, unit)}" for number, unit in parts)
        return amount


def cost(name: str, given: Any) -> Any:
    """A cost written as text, such as "500ms", "10min" or "2GB", as a number; anything else as it
    is."""
    if not isinstance(given, str):
        return given
    if (amount := _AMOUNT.fullmatch(given.strip())) is not None:
        return GivenAmount.of(float(amount[1]) * _SMALL_OR_BYTES[amount[2].lower()], given)
    try:
        return float(given)
    except ValueError:
        pass
    if (found := _duration(given)) is None:
        raise ValueError(
            f'{name} must be a number > 0, or text with a unit such as "500ms", "10min" or "2GB", '
            f"but got {given!r}"
        )
    return GivenAmount.of(found, given)


def size(name: str, given: Any) -> Any:
    """An amount of memory written as text, such as "500MB", in bytes; anything else as it is."""
    if not isinstance(given, str):
        return given
    amount = _AMOUNT.fullmatch(given.strip())
    if amount is None or amount[2].lower() == "ms":
        raise ValueError(
            f'{name} must be a number of bytes, or text such as "500MB" or "2GB", but got {given!r}'
        )
    return float(amount[1]) * _SMALL_OR_BYTES[amount[2].lower()]


def _duration(text: str) -> float | None:
    """In seconds; None if the text is none, or has the same unit twice."""
    parts = _DURATION.findall(text.strip().lower())
    units = [unit for _, unit in parts]
    complete = _DURATION.sub("", text.strip().lower()) == ""
    if not parts or not complete or len(set(units)) < len(units):
        return None
    return math.fsum(float(amount) * _UNITS[unit] for amount, unit in parts)


class Amount(Generic[T]):
    """A field of a dataclass that holds a cost, which may be given as text."""

    def __init__(self, *default: T) -> None:
        self._default = default  # empty if the field has none

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> T:
        if instance is None and not self._default:
            raise AttributeError(self._name)
        return self._default[0] if instance is None else instance.__dict__[self._name]

    def __set__(self, instance: object, given: T | str) -> None:
        instance.__dict__[self._name] = cost(self._name, given)


# ---- writing ----


def as_given(value: float, say: Callable[[float], str]) -> str:
    """An amount in the units in which it was given; a plain number as `say` writes it."""
    return value.text if isinstance(value, GivenAmount) else say(value)


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
