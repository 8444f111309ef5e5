"""Parameters, as users declare them: a scale, the checks of its bounds or choices, and `when`.

scales.py maps values to the unit interval and back. Here declarations and values are checked, so
that everything after that can trust them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from collections.abc import Set as AnySet
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from tradewind.checks import unpacked
from tradewind.errors import ConfigError, SpaceError
from tradewind.plain import listed, shown
from tradewind.space.conditions import (
    Condition,
    number,
    plain_value,
    read_conditions,
    written,
)
from tradewind.space.scales import ChoiceScale, FloatScale, IntScale, key
from tradewind.types import Value

# In narrower cells, the centre in double precision no longer determines the value: 2**-50 leaves
# four ulps to the edges of a cell. On a log scale the logarithm (up to 28) takes another factor.
_MOST_CELLS = 2**50
_MOST_ON_LOG_SCALE = 2**40

_OFF_GRID = 1e-9  # how far a value may be off the grid of a step by rounding, in steps
_NARROWEST = 1e-9  # of a range on a log scale: values have 12 digits
_FINEST = 1e-10  # the finest step relative to the bounds: values have 12 digits

DEFAULT_SIZES = (0.2, 0.4, 0.6, 0.8, 1.0)  # W20 §3.4.1


class Parameter(Protocol):
    """What the space needs of a parameter. `to_unit` takes values that `check` returned."""

    @property
    def when(self) -> Mapping[str, Condition]: ...
    @property
    def cells(self) -> int: ...
    def check(self, value: Any) -> Value: ...
    def to_unit(self, value: Any) -> float: ...
    def from_unit(self, u: float) -> Value: ...


@dataclass(frozen=True, init=False, repr=False)
class Float(FloatScale):
    """A real number from `low` to `high`, on a log scale if `log` is True.

    With a `step`, only `low`, `low + step`, … and `high` are possible. `drives_cost` says that the
    cost is expected to grow in proportion to the value.

    >>> space = tw.Space({
    ...     "C": tw.Float(1e-4, 1e3, log=True),
    ...     "dropout": tw.Float(0.0, 0.5, step=0.1),
    ... })
    """

    when: Mapping[str, Condition] = field(hash=False)
    drives_cost: bool

    def __init__(
        self,
        low: float,
        high: float,
        *,
        log: bool = False,
        step: float | None = None,
        drives_cost: bool = False,
        when: Mapping[str, Any] | None = None,
    ) -> None:
        a, b = map(float, _check_bounds("Float", low, high, log))
        if not a < b:  # whole numbers beyond 2**53 may be the same float
            raise SpaceError(f"Float: `low < high` must hold, but both are {a!r} as floats")
        if log and a <= 0:
            raise SpaceError(
                f"Float(log=True): `low > 0` must hold, but got low={a!r}; "
                "use log=False or a larger low"
            )
        if log and not a * (1.0 + _NARROWEST) < b:
            raise SpaceError(
                f"Float(log=True): the bounds must differ by more than {_NARROWEST:g} of low, but "
                f"got low={a!r}, high={b!r}; use log=False"
            )
        size = None if step is None else float(_check_step("Float", a, b, log, step))
        conditions = read_conditions(when, what="when=")
        driver = _check_driver("Float", drives_cost, [a])
        _freeze(self, low=a, high=b, log=log, step=size, when=conditions, drives_cost=driver)

    def __repr__(self) -> str:
        return _show(self, self.low, self.high, step=self.step)

    def check(self, value: Any) -> float:
        x = number(value)
        if x is None:
            raise ConfigError(f"must be a finite number, but got {value!r}")
        if not self.low <= x <= self.high:
            raise ConfigError(f"must be from {self.low!r} to {self.high!r}, but got {x!r}")
        if self.step is None:
            return float(x)
        nearest = self.grid_value(self.cell(x))
        if not math.isclose(x, nearest, rel_tol=1e-14, abs_tol=_OFF_GRID * self.step):
            raise ConfigError(
                f"must be {self.low!r} plus a whole number of steps of {self.step!r}, but got "
                f"{x!r}; the nearest is {nearest!r}"
            )
        return nearest


@dataclass(frozen=True, init=False, repr=False)
class Int(IntScale):
    """A whole number from `low` to `high`, both included, on a log scale if `log` is True.

    With a `step`, only `low`, `low + step`, … and `high` are possible. `drives_cost` says that the
    cost is expected to grow in proportion to the value: `epochs=Int(1, 30, drives_cost=True)`.

    >>> space = tw.Space({
    ...     "layers": tw.Int(1, 4),
    ...     "units": tw.Int(16, 512, log=True, drives_cost=True),
    ... })
    """

    when: Mapping[str, Condition] = field(hash=False)
    drives_cost: bool

    def __init__(
        self,
        low: int,
        high: int,
        *,
        log: bool = False,
        step: int = 1,
        drives_cost: bool = False,
        when: Mapping[str, Any] | None = None,
    ) -> None:
        bounds = _check_bounds("Int", low, high, log)
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
        size = 1 if number(step) == 1 else _check_step("Int", a, b, log, step)
        if size != int(size):
            raise SpaceError(f"Int: step must be a whole number, but got {step!r}")
        conditions = read_conditions(when, what="when=")
        driver = _check_driver("Int", drives_cost, [a])
        _freeze(self, low=a, high=b, log=log, step=int(size), when=conditions, drives_cost=driver)

    def __repr__(self) -> str:
        return _show(self, self.low, self.high, step=None if self.step == 1 else self.step)

    def check(self, value: Any) -> int:
        x = number(value)
        if x is None or x != int(x):
            raise ConfigError(f"must be a whole number, but got {value!r}")
        if not self.low <= x <= self.high:
            raise ConfigError(f"must be from {self.low} to {self.high}, but got {x!r}")
        if (int(x) - self.low) % self.step:
            raise ConfigError(
                f"must be {self.low} plus a whole number of steps of {self.step}, but got {x!r}"
            )
        return int(x)


@dataclass(frozen=True, init=False, repr=False)
class _Choices(ChoiceScale):
    """One of a list of values."""

    when: Mapping[str, Condition] = field(hash=False)
    drives_cost = False

    def __init__(
        self, choices: Iterable[Value], *others: Any, when: Mapping[str, Any] | None = None
    ) -> None:
        kind = type(self).__name__
        if others:
            listed = ", ".join(map(repr, (choices, *others)))
            raise SpaceError(f"{kind} takes one list of values: write {kind}([{listed}])")
        if isinstance(choices, (str, bytes, Mapping)) or not isinstance(choices, Iterable):
            raise SpaceError(f"{kind} takes a list of values, but got {shown(choices)}")
        if isinstance(choices, AnySet):
            raise SpaceError(f"{kind} takes values in a fixed order: a list, not {shown(choices)}")
        values = tuple(plain_value(v, kind) for v in choices)
        if not values:
            raise SpaceError(f"{kind} needs at least one value, but got an empty list")
        seen = set()
        for v in values:
            if key(v) in seen:
                raise SpaceError(f"{kind} needs distinct values, but {shown(v)} is listed twice")
            seen.add(key(v))
        _freeze(self, choices=values, when=read_conditions(when, what="when="))

    def __repr__(self) -> str:
        return _show(self, list(self.choices))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Choices) or type(self) is not type(other):
            return NotImplemented
        if self.drives_cost != other.drives_cost:
            return False
        return list(self._cell_of) == list(other._cell_of) and self.when == other.when

    def check(self, value: Any) -> Value:
        try:
            return self.choices[self._cell_of[key(unpacked(value))]]
        except (KeyError, TypeError):  # not listed, or not even hashable
            raise ConfigError(
                f"must be one of [{listed(self.choices)}], but got {shown(value)}"
            ) from None


class Categorical(_Choices):
    """One of a list of values whose order means nothing.

    >>> space = tw.Space({
    ...     "kernel": tw.Categorical(["linear", "poly"]),
    ...     "degree": tw.Int(2, 5, when={"kernel": "poly"}),  # only then
    ... })
    """


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Ordinal(_Choices):
    """One of a list of values in a meaningful order: `Ordinal([32, 64, 128])`. `drives_cost` says
    that the values are numbers and that the cost is expected to grow in proportion to them.

    >>> space = tw.Space({"width": tw.Ordinal([32, 64, 128])})
    """

    def __init__(
        self,
        choices: Iterable[Value],
        *others: Any,
        drives_cost: bool = False,
        when: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(choices, *others, when=when)
        _freeze(self, drives_cost=_check_driver("Ordinal", drives_cost, self.choices))


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Bool(_Choices):
    """True or False.

    >>> space = tw.Space({"shuffle": tw.Bool()})
    """

    choices: tuple[Value, ...] = field(init=False)

    def __init__(self, *, when: Mapping[str, Any] | None = None) -> None:
        super().__init__((False, True), when=when)

    def __repr__(self) -> str:
        return _show(self)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class TrainSize(_Choices):
    """The fraction of the training set to train with, as one more hyper-parameter (W20 §3.4.1).

    >>> space = tw.Space({"train_size": tw.TrainSize([0.2, 0.4, 1.0])})
    """

    def __init__(
        self,
        choices: Iterable[float] = DEFAULT_SIZES,
        *others: Any,
        when: Mapping[str, Any] | None = None,
    ) -> None:
        if when:
            raise SpaceError("TrainSize cannot be conditional: every trial has a training size")
        super().__init__(choices, *others)
        sizes = []
        for v in self.choices:
            if isinstance(v, bool) or not isinstance(v, (int, float)) or not 0 < v <= 1:
                raise SpaceError(f"TrainSize takes fractions in (0, 1], but got {v!r}")
            sizes.append(float(v))
        if sizes != sorted(sizes):
            raise SpaceError(
                f"TrainSize takes fractions in ascending order, but got {shown(sizes)}"
            )
        _freeze(self, choices=tuple(sizes))

    @property
    def fractions(self) -> tuple[float, ...]:
        """The choices, typed as numbers."""
        return self.choices  # type: ignore[return-value]


Finite: TypeAlias = Float | Int | _Choices  # a Float has cells if it has a step


def _freeze(parameter: object, **values: Any) -> None:
    for name, value in values.items():
        object.__setattr__(parameter, name, value)


def _show(parameter: Parameter, *arguments: Any, step: float | None = None) -> str:
    """A parameter as a user would write it."""
    shown = [repr(argument) for argument in arguments]
    if getattr(parameter, "log", False):
        shown.append("log=True")
    if step is not None:
        shown.append(f"step={step!r}")
    if getattr(parameter, "drives_cost", False):
        shown.append("drives_cost=True")
    if parameter.when:
        conditions = ", ".join(f"{n!r}: {written(c)}" for n, c in parameter.when.items())
        shown.append(f"when={{{conditions}}}")
    return f"{type(parameter).__name__}({', '.join(shown)})"


def _check_driver(kind: str, drives_cost: Any, values: Iterable[Any]) -> bool:
    """`drives_cost`, if the cost can be proportional to these values."""
    if not isinstance(drives_cost, bool):
        raise TypeError(f"drives_cost must be True or False, but got {drives_cost!r}")
    for value in values if drives_cost else ():
        x = number(value)
        if x is None or x <= 0:
            raise SpaceError(f"{kind}(drives_cost=True) takes numbers > 0, but got {value!r}")
    return drives_cost


def _check_step(kind: str, low: float, high: float, log: bool, step: Any) -> float:
    """The step of a grid from `low` to `high`."""
    size = number(step)
    if size is None or size <= 0:
        raise SpaceError(f"{kind}: step must be a number > 0, but got {step!r}")
    if log:
        raise SpaceError(f"{kind}: a log scale has no step, but got log=True, step={size!r}")
    steps = (high - low) / size
    if kind == "Float" and size < _FINEST * max(abs(low), abs(high)):
        raise SpaceError(
            f"Float: step must be at least {_FINEST} of the larger bound, but got low={low!r}, "
            f"high={high!r}, step={size!r}"
        )
    whole = round(steps)
    if whole < 1 or abs(steps - whole) > _OFF_GRID * max(whole, 1):
        below, above = (low + n * size for n in (max(math.floor(steps), 1), math.floor(steps) + 1))
        nearest = f"{below:.12g}" + f" or {above:.12g}" * (above > below)
        raise SpaceError(
            f"{kind}: high must be low plus a whole number of steps, but got low={low!r}, "
            f"high={high!r}, step={size!r}; write high={nearest}"
        )
    return size


def _check_bounds(kind: str, low: Any, high: Any, log: Any) -> tuple[int | float, int | float]:
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
