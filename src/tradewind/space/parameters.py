"""The kinds of parameter: how values map to the unit interval and back.

Every parameter lives on [0, 1]. A finite one divides it into `cells`, one a value, each value
at its cell's centre, so that uniform sampling makes each value of a plain integer or category
equally likely. A continuous one has `cells = 0`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from collections.abc import Set as AnySet
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np

from tradewind.checks import unpacked
from tradewind.errors import ConfigError, SpaceError
from tradewind.space.conditions import Condition, conditions, key, number, plain
from tradewind.types import Array, Value

DIGITS = 12  # decoded floats are rounded, so that a replayed proposal is the same to the bit
_EXACT_DIGITS = 14  # of a float's 16: those that survive the way to the unit interval and back

# Cells so narrow that a centre in double precision no longer tells its value: 2**-50 leaves
# four ulps to the cell's edges; on a log scale the logarithm (up to 28) takes another factor.
_MOST_CELLS = 2**50
_MOST_ON_LOG_SCALE = 2**40
_TABLE = 2**14  # values of a log scale whose centres are kept


class Parameter(Protocol):
    """What the space needs of a parameter; values are checked before they are encoded."""

    @property
    def when(self) -> Mapping[str, Condition]: ...
    @property
    def cells(self) -> int: ...
    def check(self, value: Any) -> Value: ...
    def to_unit(self, value: Any) -> float: ...
    def from_unit(self, u: float) -> Value: ...


def _freeze(parameter: object, **values: Any) -> None:
    for name, value in values.items():
        object.__setattr__(parameter, name, value)


def _bounds(kind: str, low: Any, high: Any, log: Any) -> tuple[int | float, int | float]:
    if not isinstance(log, bool):
        raise TypeError(f"log must be True or False, but got {log!r}")
    a, b = number(low), number(high)
    if a is None or b is None:
        raise SpaceError(f"{kind} needs two finite bounds, but got low={low!r}, high={high!r}")
    if not a < b:
        raise SpaceError(f"{kind}: `low < high` must hold, but got low={a!r}, high={b!r}")
    if not math.isfinite(float(b) - float(a)):
        raise SpaceError(f"{kind}: the range must be finite, but got low={a!r}, high={b!r}")
    return a, b


@dataclass(frozen=True, init=False)
class Float:
    """A real number from `low` to `high`, on a log scale if asked."""

    low: float
    high: float
    log: bool
    when: Mapping[str, Condition] = field(hash=False)

    cells = 0

    def __init__(
        self,
        low: float,
        high: float,
        *,
        log: bool = False,
        when: Mapping[str, Any] | None = None,
    ) -> None:
        a, b = map(float, _bounds("Float", low, high, log))
        if not a < b:  # whole numbers beyond 2**53 may be the same float
            raise SpaceError(f"Float: `low < high` must hold, but both are {a!r} as floats")
        if log and a <= 0:
            raise SpaceError(
                f"Float(log=True): `low > 0` must hold, but got low={a!r}; "
                "use log=False or a larger low"
            )
        if log and not math.log(a) < math.log(b):
            raise SpaceError(
                f"Float(log=True): the bounds must differ on the log scale, but got "
                f"low={a!r}, high={b!r}; use log=False"
            )
        _freeze(self, low=a, high=b, log=log, when=conditions(when, what="when="))

    def check(self, value: Any) -> float:
        x = number(value)
        if x is None:
            raise ConfigError(f"must be a finite number, but got {value!r}")
        if not self.low <= x <= self.high:
            raise ConfigError(f"must be from {self.low!r} to {self.high!r}, but got {x!r}")
        return float(x)

    def to_unit(self, value: Any) -> float:
        a, b = self._ends
        u = ((math.log(value) if self.log else value) - a) / (b - a)
        return u if 0.0 <= u <= 1.0 else float(u > 0.5)  # outside by an ulp

    def from_unit(self, u: float) -> float:
        """The value at u, rounded to 12 digits; the two bounds stay as they were given.

        Every x that comes out comes back: `from_unit(to_unit(x)) == x`."""
        if u <= 0.0:
            return self.low
        if u >= 1.0:
            return self.high
        a, b = self._ends
        x = a + u * (b - a)
        x = self._rounded(math.exp(min(x, b)) if self.log else x)
        near_low, near_high = self._rounded_bounds
        if x <= near_low:
            return self.low
        return self.high if x >= near_high else x

    @cached_property
    def _ends(self) -> tuple[float, float]:
        return (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)

    @cached_property
    def _digits(self) -> int:
        """Significant digits on a log scale, decimal places on a linear one."""
        a, b = self._ends
        exact = _EXACT_DIGITS - math.ceil(math.log10(max(abs(a), abs(b))))
        # On a linear scale what counts is a step relative to the range: -1e3 + u * 2e3 has
        # lost the last digits of a value near 0, and 1e15 + u * 10 needs more than 12.
        return min(DIGITS if self.log else DIGITS - math.ceil(math.log10(b - a)), exact)

    @cached_property
    def _rounded_bounds(self) -> tuple[float, float]:
        return self._rounded(self.low), self._rounded(self.high)

    def _rounded(self, x: float) -> float:
        return float(f"{x:.{self._digits}g}") if self.log else round(x, self._digits)


@dataclass(frozen=True, init=False)
class Int:
    """A whole number from `low` to `high`, both included, on a log scale if asked."""

    low: int
    high: int
    log: bool
    when: Mapping[str, Condition] = field(hash=False)

    def __init__(
        self,
        low: int,
        high: int,
        *,
        log: bool = False,
        when: Mapping[str, Any] | None = None,
    ) -> None:
        bounds = _bounds("Int", low, high, log)
        for name, bound in zip(("low", "high"), bounds, strict=True):
            if bound != int(bound):
                raise SpaceError(f"Int: {name} must be a whole number, but got {bound!r}")
        a, b = map(int, bounds)
        if log and a < 1:
            raise SpaceError(
                f"Int(log=True): `low >= 1` must hold, but got low={a!r}; "
                "use log=False or a larger low"
            )
        if b - a >= _MOST_CELLS:
            raise SpaceError(f"Int: `high - low < 2**50` must hold, but got low={a}, high={b}")
        if log and b > _MOST_ON_LOG_SCALE:
            raise SpaceError(f"Int(log=True): `high <= 2**40` must hold, but got high={b}")
        _freeze(self, low=a, high=b, log=log, when=conditions(when, what="when="))

    @property
    def cells(self) -> int:
        return self.high - self.low + 1

    def check(self, value: Any) -> int:
        x = number(value)
        if x is None or x != int(x):
            raise ConfigError(f"must be a whole number, but got {value!r}")
        if not self.low <= x <= self.high:
            raise ConfigError(f"must be from {self.low} to {self.high}, but got {x!r}")
        return int(x)

    def to_unit(self, value: Any) -> float:
        if self.log:
            a, b = self._ends
            return (math.log(value) - a) / (b - a)
        return float(value - self.low + 0.5) / self.cells

    def from_unit(self, u: float) -> int:
        if self.log:
            a, b = self._ends
            value = math.floor(math.exp(min(a + u * (b - a), b)) + 0.5)
        else:
            value = self.low + math.floor(u * self.cells)
        return min(max(value, self.low), self.high)

    def centres(self, u: Array) -> Array:
        """The centres of the cells of a log scale in which u (n,) lie."""
        a, b = self._ends
        values = np.clip(np.floor(np.exp(a + u * (b - a)) + 0.5), self.low, self.high)
        # By `to_unit` itself: NumPy's logarithm may differ from it in the last bit, and rows are
        # compared by their bits.
        if self.cells <= _TABLE:
            return self._all_centres[values.astype(np.int64) - self.low]
        return np.array([self.to_unit(v) for v in values.tolist()])

    @cached_property
    def _all_centres(self) -> Array:
        return np.array([self.to_unit(v) for v in range(self.low, self.high + 1)])

    def cell(self, value: int) -> int:
        """The number of the cell of a checked value, from 0."""
        return value - self.low

    def edge(self, cell: int) -> float:
        """Where a cell begins (and the one before it ends)."""
        if self.log:
            a, b = self._ends
            return (math.log(self.low + cell - 0.5) - a) / (b - a)
        return cell / self.cells

    @cached_property
    def _ends(self) -> tuple[float, float]:
        return math.log(self.low - 0.5), math.log(self.high + 0.5)


@dataclass(frozen=True, init=False)
class _Choices:
    """A finite list of values, each with an equal cell."""

    choices: tuple[Value, ...]
    when: Mapping[str, Condition] = field(hash=False)

    def __init__(self, choices: Iterable[Value], *, when: Mapping[str, Any] | None = None) -> None:
        kind = type(self).__name__
        if isinstance(choices, (str, bytes, Mapping)) or not isinstance(choices, Iterable):
            raise SpaceError(f"{kind} takes a list of values, but got {choices!r}")
        if isinstance(choices, AnySet):
            raise SpaceError(f"{kind} takes values in a fixed order: a list, not {choices!r}")
        values = tuple(plain(v, kind) for v in choices)
        if not values:
            raise SpaceError(f"{kind} needs at least one value, but got an empty list")
        seen = set()
        for v in values:
            if key(v) in seen:
                raise SpaceError(f"{kind} needs distinct values, but {v!r} is listed twice")
            seen.add(key(v))
        _freeze(self, choices=values, when=conditions(when, what="when="))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Choices) or type(self) is not type(other):
            return NotImplemented
        return list(self._cell) == list(other._cell) and self.when == other.when

    @property
    def cells(self) -> int:
        return len(self.choices)

    @cached_property
    def _cell(self) -> dict[tuple[bool, Value], int]:
        return {key(v): i for i, v in enumerate(self.choices)}

    def check(self, value: Any) -> Value:
        try:
            return self.choices[self._cell[key(unpacked(value))]]
        except (KeyError, TypeError):  # not listed, or not even hashable
            raise ConfigError(f"must be one of {list(self.choices)!r}, but got {value!r}") from None

    def to_unit(self, value: Any) -> float:
        return (self._cell[isinstance(value, bool), value] + 0.5) / len(self.choices)

    def from_unit(self, u: float) -> Value:
        return self.choices[min(max(int(u * self.cells), 0), self.cells - 1)]

    def cell(self, value: Value) -> int:
        """The number of the cell of a checked value, from 0."""
        return self._cell[key(value)]

    def edge(self, cell: int) -> float:
        """Where a cell begins (and the one before it ends)."""
        return cell / self.cells


@dataclass(frozen=True, init=False, eq=False)
class Categorical(_Choices):
    """One of a list of values whose order means nothing."""


@dataclass(frozen=True, init=False, eq=False)
class Ordinal(_Choices):
    """One of a list of values in a meaningful order: `Ordinal([32, 64, 128])`."""


@dataclass(frozen=True, init=False, eq=False)
class Bool(_Choices):
    """True or False."""

    choices: tuple[Value, ...] = field(init=False, repr=False)

    def __init__(self, *, when: Mapping[str, Any] | None = None) -> None:
        super().__init__((False, True), when=when)


DEFAULT_SIZES = (0.2, 0.4, 0.6, 0.8, 1.0)  # W20 §3.4.1


@dataclass(frozen=True, init=False, eq=False)
class TrainSize(_Choices):
    """The fraction of the training set to train with, as one more hyper-parameter (W20 §3.4.1)."""

    def __init__(
        self, choices: Iterable[float] = DEFAULT_SIZES, *, when: Mapping[str, Any] | None = None
    ) -> None:
        if when:
            raise SpaceError("TrainSize cannot be conditional: every trial has a training size")
        super().__init__(choices)
        sizes = []
        for v in self.choices:
            if isinstance(v, bool) or not isinstance(v, (int, float)) or not 0 < v <= 1:
                raise SpaceError(f"TrainSize takes fractions in (0, 1], but got {v!r}")
            sizes.append(float(v))
        if sizes != sorted(sizes):
            raise SpaceError(f"TrainSize takes growing fractions, but got {sizes!r}")
        _freeze(self, choices=tuple(sizes))

    @property
    def fractions(self) -> tuple[float, ...]:
        """The choices, as the numbers that they are."""
        return self.choices  # type: ignore[return-value]


Finite: TypeAlias = Int | _Choices
