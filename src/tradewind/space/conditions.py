"""When a parameter is active, and which combinations are forbidden, as data.

A condition is written as a value, a list of values, or `at_least(n)`; it is stored as
`OneOf` or `AtLeast` and never as code.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from collections.abc import Set as AnySet
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from tradewind.checks import unpacked
from tradewind.errors import SpaceError
from tradewind.types import Value


def key(value: Any) -> tuple[bool, Any]:
    """What tells parameter values apart: `True` is not `1`, but `1` is `1.0`."""
    return isinstance(value, bool), value


def number(value: Any) -> int | float | None:
    """`value` as a finite plain number, or None when it is not one."""
    value = unpacked(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        if not math.isfinite(value):
            return None
    except OverflowError:  # an integer beyond the floats
        return None
    return int(value) if isinstance(value, int) else float(value)


def plain(value: Any, what: str) -> Value:
    """`value` as a plain Python scalar; `what` names its place in errors."""
    value = unpacked(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)  # members of a string enum too become their text
    if isinstance(value, (int, float)):
        finite = number(value)
        if finite is None:
            raise SpaceError(f"{what} takes finite numbers, but got {value!r}")
        return finite
    raise SpaceError(f"{what} takes strings, numbers, booleans and None, but got {value!r}")


@dataclass(frozen=True)
class OneOf:
    """Holds for any of the listed values."""

    values: tuple[Value, ...]

    def __post_init__(self) -> None:
        values = tuple(plain(v, "a condition") for v in self.values)
        if not values:
            raise SpaceError("a condition needs at least one value, but got an empty list")
        object.__setattr__(self, "values", values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OneOf):
            return NotImplemented
        return list(map(key, self.values)) == list(map(key, other.values))

    def holds(self, value: Value) -> bool:
        return key(value) in self._keys

    @cached_property
    def _keys(self) -> frozenset[tuple[bool, Value]]:
        return frozenset(map(key, self.values))

    def __str__(self) -> str:
        return f"in {list(self.values)!r}"


@dataclass(frozen=True)
class AtLeast:
    """Holds for numbers from `low` upwards."""

    low: float

    def __post_init__(self) -> None:
        given = unpacked(self.low)
        if isinstance(given, bool) or not isinstance(given, (int, float)):
            raise TypeError(f"at_least() takes a number, but got {given!r}")
        low = number(given)
        if low is None:
            raise SpaceError(f"at_least() takes a finite number, but got {given!r}")
        object.__setattr__(self, "low", low)

    def holds(self, value: Value) -> bool:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and value >= self.low

    def __str__(self) -> str:
        return f">= {self.low!r}"


Condition: TypeAlias = OneOf | AtLeast


def at_least(low: float) -> AtLeast:
    """The condition that a number is `low` or more: `Int(1, 9, when={"layers": at_least(2)})`."""
    return AtLeast(low)


def conditions(given: Mapping[str, Any] | None, *, what: str) -> dict[str, Condition]:
    """Read `{"kernel": "poly", "layers": at_least(2)}`; `what` names the place in errors."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise SpaceError(f"{what} must be a mapping from names to values, but got {given!r}")
    read: dict[str, Condition] = {}
    for name, value in given.items():
        if not isinstance(name, str):
            raise SpaceError(f"{what} must be keyed by parameter names, but got {name!r}")
        try:
            read[name] = _condition(value)
        except SpaceError as error:
            raise SpaceError(f"{what} {name!r}: {error}") from None
    return read


def _condition(given: Any) -> Condition:
    if isinstance(given, (OneOf, AtLeast)):
        return given
    given = unpacked(given)
    if isinstance(given, AnySet):
        given = sorted(given, key=repr)  # a set has no order, but what is stored must have one
    listed = isinstance(given, Iterable) and not isinstance(given, (str, bytes, Mapping))
    return OneOf(tuple(given) if listed else (given,))
