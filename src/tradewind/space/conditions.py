"""Conditions, as data: when a parameter is active, and which combinations are forbidden.

Users write a value, a list of values, or `at_least(n)`. Each becomes a `OneOf` or an `AtLeast`;
a condition is never code.
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
from tradewind.plain import listed, shown
from tradewind.space.scales import key
from tradewind.types import Value


def number(value: Any) -> int | float | None:
    """`value` as a finite plain number, or None if it is not one."""
    value = unpacked(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        if not math.isfinite(value):
            return None
    except OverflowError:  # an integer too large for a float
        return None
    return int(value) if isinstance(value, int) else float(value)


def plain_value(value: Any, what: str) -> Value:
    """`value` as a plain Python scalar; errors begin with `what`."""
    value = unpacked(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)  # a member of a string enum becomes its text
    if isinstance(value, (int, float)):
        finite = number(value)
        if finite is None:
            raise SpaceError(f"{what} takes finite numbers, but got {shown(value)}")
        return finite
    raise SpaceError(f"{what} takes strings, numbers, booleans and None, but got {shown(value)}")


@dataclass(frozen=True)
class OneOf:
    """Holds for any of the listed values."""

    values: tuple[Value, ...]

    def __post_init__(self) -> None:
        values = tuple(plain_value(v, "a condition") for v in self.values)
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
        return f"in [{listed(self.values)}]"


@dataclass(frozen=True)
class AtLeast:
    """Holds for numbers from `low` upwards."""

    low: float

    def __post_init__(self) -> None:
        given = unpacked(self.low)
        if isinstance(given, bool) or not isinstance(given, (int, float)):
            raise TypeError(f"at_least() takes a number, but got {shown(given)}")
        low = number(given)
        if low is None:
            raise SpaceError(f"at_least() takes a finite number, but got {shown(given)}")
        object.__setattr__(self, "low", low)

    def holds(self, value: Value) -> bool:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and value >= self.low

    def __str__(self) -> str:
        return f">= {self.low!r}"


Condition: TypeAlias = OneOf | AtLeast


def at_least(low: float) -> AtLeast:
    """The condition that a number is `low` or more: `Int(1, 9, when={"layers": at_least(2)})`.

    >>> space = tw.Space({
    ...     "layers": tw.Int(1, 4),
    ...     "dropout": tw.Float(0.0, 0.5, when={"layers": tw.at_least(2)}),
    ... })
    """
    return AtLeast(low)


def written(condition: Condition) -> str:
    """A condition as a user would write it: a value, a list of values, or `at_least(2)`."""
    if isinstance(condition, AtLeast):
        return f"at_least({condition.low!r})"
    values = condition.values
    return repr(values[0] if len(values) == 1 else list(values))


def read_conditions(given: Mapping[str, Any] | None, *, what: str) -> dict[str, Condition]:
    """Conditions by name, from `{"kernel": "poly", "layers": at_least(2)}`; errors begin with
    `what`."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise SpaceError(f"{what} must be a mapping from names to values, but got {shown(given)}")
    conditions: dict[str, Condition] = {}
    for name, value in given.items():
        if not isinstance(name, str):
            raise SpaceError(f"{what} must be keyed by parameter names, but got {name!r}")
        try:
            conditions[name] = _read_condition(value)
        except SpaceError as error:
            raise SpaceError(f"{what} {name!r}: {error}") from None
    return conditions


def _read_condition(given: Any) -> Condition:
    if isinstance(given, (OneOf, AtLeast)):
        return given
    given = unpacked(given)
    if isinstance(given, AnySet):
        given = sorted(given, key=repr)  # a set has no order, but stored values need one
    is_list = isinstance(given, Iterable) and not isinstance(given, (str, bytes, Mapping))
    return OneOf(tuple(given) if is_list else (given,))
