"""The search space: a read-only mapping from names to parameters, and configs <-> arrays.

Encoded, a configuration is a row of the unit cube, one column a parameter in declared order.
Finite parameters sit at the centres of their cells; an inactive parameter is NaN. A row in this
form is called *snapped*. Everything downstream of `encode` works on such rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tradewind.errors import ConfigError, SpaceError
from tradewind.space.conditions import AtLeast, Condition, OneOf, conditions
from tradewind.space.parameters import (
    Bool,
    Categorical,
    Float,
    Int,
    Ordinal,
    Parameter,
    TrainSize,
)
from tradewind.types import Array, Columns, Config, Mask

_ATTEMPTS = 1000  # rounds of rejection sampling before a space counts as forbidden throughout
_GRID_LIMIT = 20_000  # cells of a finite space that are enumerated to notice exhaustion


class Space(Mapping[str, Parameter]):
    """A read-only mapping from names to parameters, with conditions and forbidden combinations.

    >>> space = Space({"C": Float(1e-4, 1e3, log=True), "kernel": Categorical(["linear", "poly"]),
    ...                "degree": Int(2, 5, when={"kernel": "poly"})})

    `forbid` lists combinations that are never proposed: `[{"a": "x", "b": [1, 2]}]`.
    """

    def __init__(
        self,
        parameters: Mapping[str, Parameter],
        *,
        forbid: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self._parameters = _checked(parameters)
        self.names = tuple(self._parameters)
        self._position = {name: j for j, name in enumerate(self.names)}
        self._order = _parents_first(self._parameters)
        if isinstance(forbid, Mapping) or not isinstance(forbid, Iterable):
            raise SpaceError(f"forbid must be a list of mappings, but got {forbid!r}")
        self.forbid = tuple(conditions(clause, what="forbid=") for clause in forbid)
        self._when = {
            self._position[name]: self._tests(p.when, f"{name!r}: when=")
            for name, p in self._parameters.items()
            if p.when
        }
        self._forbidden = [self._tests(clause, "forbid=") for clause in self.forbid]
        self.columns = _columns(self._parameters.values())
        self._even = np.array(
            [p.cells if not (isinstance(p, Int) and p.log) else 0 for p in self.values()]
        )
        self._uneven = [(j, p) for j, p in enumerate(self.values()) if isinstance(p, Int) and p.log]
        sizes = [name for name, p in self.items() if isinstance(p, TrainSize)]
        if len(sizes) > 1:
            raise SpaceError(f"a space has at most one TrainSize, but got {sizes}")
        self.size_name: str | None = sizes[0] if sizes else None

    # ---- the mapping ----

    def __getitem__(self, name: str) -> Parameter:
        return self._parameters[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __len__(self) -> int:
        return len(self._parameters)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Space):
            return NotImplemented
        return list(self.items()) == list(other.items()) and self.forbid == other.forbid

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        lines = [f"  {name!r}: {p!r}," for name, p in self.items()]
        tail = f", forbid={list(self.forbid)!r}" if self.forbid else ""
        return "Space({\n" + "\n".join(lines) + "\n}" + tail + ")"

    # ---- configurations ----

    def validate(self, config: Mapping[str, Any]) -> Config:
        """`config` in plain Python values and declared order; raises `ConfigError` if it cannot be."""
        if not isinstance(config, Mapping):
            raise ConfigError(f"a configuration is a mapping from names to values, got {config!r}")
        for name in config:
            if name not in self._position:
                raise ConfigError(
                    f"unknown parameter {name!r}: this space has {', '.join(map(repr, self.names))}"
                )
        values: Config = {}
        for name in self._order:
            inactive = self._why_inactive(name, values)
            if inactive and name in config:
                raise ConfigError(f"{name!r} must be left out: {inactive}")
            if inactive:
                continue
            if name not in config:
                raise ConfigError(f"{name!r} is active and must be given")
            try:
                values[name] = self[name].check(config[name])
            except ConfigError as error:
                raise ConfigError(f"{name!r} {error}") from None
        for clause in self.forbid:
            if _matches(clause, values):
                shown = ", ".join(f"{k} {v}" for k, v in clause.items())
                raise ConfigError(f"forbidden combination ({shown}): got {dict(config)!r}")
        return {name: values[name] for name in self.names if name in values}

    def complete(self, partial: Mapping[str, Any], *, rng: np.random.Generator) -> Config:
        """A full configuration that has the given values and draws the others."""
        for name, value in partial.items():
            if name in self._position:
                try:
                    self[name].check(value)
                except ConfigError as error:
                    raise ConfigError(f"{name!r} {error}") from None
        for _ in range(_ATTEMPTS):
            try:
                return self.validate(self._drawn(partial, rng))
            except ConfigError as error:
                reason = error
        raise ConfigError(f"no configuration of this space fits {dict(partial)!r}: {reason}")

    def _drawn(self, partial: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        drawn: dict[str, Any] = dict(partial)
        for name, u in zip(self._order, rng.random(len(self)), strict=True):
            if name not in drawn and not self._why_inactive(name, drawn):
                drawn[name] = self[name].from_unit(u)
        return drawn

    def _why_inactive(self, name: str, values: Mapping[str, Any]) -> str:
        """Why `name` is inactive given the values of its parents; empty when it is active."""
        for parent, condition in self[name].when.items():
            if parent not in values:
                return f"its parent {parent!r} is inactive"
            if not condition.holds(values[parent]):
                return f"it needs {parent!r} {condition}, but {parent!r} is {values[parent]!r}"
        return ""

    # ---- configs <-> arrays ----

    def encode(self, configs: Sequence[Mapping[str, Any]]) -> Array:
        """Valid configurations as snapped rows, shape (n, d)."""
        X = np.full((len(configs), len(self)), np.nan)
        for i, config in enumerate(configs):
            for name, value in config.items():
                j = self._position[name]
                X[i, j] = self._parameters[name].to_unit(value)
        return X

    def decode(self, X: Array) -> list[Config]:
        """Rows of the unit cube (n, d) as configurations, inactive parameters left out."""
        configs = []
        for row in X:
            values: Config = {}
            for name in self._order:
                if not self._why_inactive(name, values):
                    u = row[self._position[name]]
                    values[name] = self._parameters[name].from_unit(0.5 if np.isnan(u) else u)
            configs.append({name: values[name] for name in self.names if name in values})
        return configs

    def snap(self, X: Array) -> Array:
        """The nearest snapped rows: finite columns at their cells' centres, inactive ones NaN.

        An active coordinate that is NaN gets the centre of its range."""
        X = np.where(np.isnan(X), 0.5, np.clip(X, 0.0, 1.0))
        even = self._even > 0
        k = self._even[even]
        X[:, even] = (np.minimum(np.floor(X[:, even] * k), k - 1) + 0.5) / k
        for j, p in self._uneven:
            low, high = np.log(p.low - 0.5), np.log(p.high + 0.5)
            value = np.floor(np.exp(low + X[:, j] * (high - low)) + 0.5)
            X[:, j] = (np.log(np.clip(value, p.low, p.high)) - low) / (high - low)
        X[~self.active(X)] = np.nan
        return X

    def active(self, X: Array) -> Mask:
        """Which parameters are active in rows (n, d) whose finite columns are at cell centres."""
        active = np.ones(X.shape, dtype=bool)
        for name in self._order:
            j = self._position[name]
            for parent, test in self._when.get(j, ()):
                active[:, j] &= active[:, parent] & test(X[:, parent])
        return active

    def allowed(self, X: Array) -> Mask:
        """Which snapped rows (n, d) are not forbidden."""
        allowed = np.ones(len(X), dtype=bool)
        for clause in self._forbidden:
            hit = np.ones(len(X), dtype=bool)
            for j, test in clause:
                hit &= ~np.isnan(X[:, j]) & test(np.nan_to_num(X[:, j], nan=-1.0))
            allowed &= ~hit
        return allowed

    def sample(self, n: int, *, rng: np.random.Generator) -> Array:
        """n allowed snapped rows, uniform on the cube."""
        X = self.snap(rng.random((n, len(self))))
        if not self._forbidden:
            return X
        for _ in range(_ATTEMPTS):
            bad = np.flatnonzero(~self.allowed(X))
            if not len(bad):
                return X
            X[bad] = self.snap(rng.random((len(bad), len(self))))
        raise SpaceError(f"(nearly) every configuration is forbidden by {list(self.forbid)!r}")

    def grid(self) -> Array | None:
        """All allowed snapped rows of a small finite space; None when it is not one."""
        cells = [p.cells for p in self.values()]
        if 0 in cells or np.prod(cells, dtype=float) > _GRID_LIMIT:
            return None
        axes = np.meshgrid(*[np.arange(k) for k in cells], indexing="ij")
        index = np.stack([a.ravel() for a in axes], axis=1)
        units = [_cell_centres(p) for p in self.values()]
        X = self.snap(np.stack([u[i] for u, i in zip(units, index.T, strict=True)], axis=1))
        X = np.unique(np.nan_to_num(X, nan=-1.0), axis=0)
        X = self.snap(X)
        return X[self.allowed(X)]

    # ---- conditions on unit columns ----

    def _tests(self, clause: Mapping[str, Condition], what: str) -> list[tuple[int, _Test]]:
        tests = []
        for name, condition in clause.items():
            if name not in self._parameters:
                raise SpaceError(
                    f"{what} names {name!r}, which is not a parameter of this space; "
                    f"it has {', '.join(map(repr, self._parameters))}"
                )
            try:
                tests.append((self._position[name], _Test(self[name], condition)))
            except SpaceError as error:
                raise SpaceError(f"{what} {name!r} {error}") from None
        return tests

    # ---- other forms (formats.py) ----

    def to_dict(self) -> dict[str, Any]:
        """The space as plain data for JSON; `Space.from_dict` reads it back."""
        from tradewind.space.formats import to_dict

        return to_dict(self)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Space:
        """A space from plain data: what `to_dict` gives, or names with short forms
        (`{"C": [1e-4, 1e3, "log"]}`, see the guide)."""
        from tradewind.space.formats import from_dict

        return from_dict(given)

    def to_json(self) -> str:
        """The space as JSON text."""
        from tradewind.space.formats import to_json

        return to_json(self)

    @classmethod
    def from_json(cls, text: str) -> Space:
        """A space from the text of `to_json`."""
        from tradewind.space.formats import from_json

        return from_json(text)

    @classmethod
    def from_configspace(cls, source: Any) -> Space:
        """A space from a ConfigSpace JSON file (a path) or its parsed content (a dict)."""
        from tradewind.space.formats import from_configspace

        return from_configspace(source)


class _Test:
    """A condition on one parameter, as a test of its unit column."""

    def __init__(self, parameter: Parameter, condition: Condition) -> None:
        self.units: Array | None = None
        self.low = 0.0
        if isinstance(parameter, Float):
            if not isinstance(condition, AtLeast):
                raise SpaceError("is a Float: compare it by at_least(...), not by equality")
            if condition.low > parameter.high:
                raise SpaceError(f"{condition} can never hold: it ends at {parameter.high!r}")
            self.low = parameter.to_unit(max(condition.low, parameter.low))
        elif isinstance(parameter, Int) and isinstance(condition, AtLeast):
            first = max(int(np.ceil(condition.low)), parameter.low)
            if first > parameter.high:
                raise SpaceError(f"{condition} can never hold: it ends at {parameter.high!r}")
            self.low = parameter.to_unit(first)
        else:
            self.units = np.array([parameter.to_unit(v) for v in _values(parameter, condition)])

    def __call__(self, u: Array) -> Mask:
        if self.units is None:
            return u >= self.low - 1e-12
        return (np.abs(u[:, None] - self.units) < 1e-12).any(axis=1)


def _values(parameter: Parameter, condition: Condition) -> list[Any]:
    """The values of a finite parameter for which the condition holds."""
    if isinstance(condition, OneOf):
        try:
            return [parameter.check(v) for v in condition.values]
        except ConfigError as error:
            raise SpaceError(str(error)) from None
    choices = getattr(parameter, "choices", ())
    values = [v for v in choices if condition.holds(v)]
    if not values:
        raise SpaceError(f"{condition} can never hold: it takes {list(choices)!r}")
    return values


def _cell_centres(parameter: Parameter) -> Array:
    if isinstance(parameter, Int):
        return np.array([parameter.to_unit(v) for v in range(parameter.low, parameter.high + 1)])
    return (np.arange(parameter.cells) + 0.5) / parameter.cells


def _matches(clause: Mapping[str, Condition], values: Mapping[str, Any]) -> bool:
    return all(name in values and c.holds(values[name]) for name, c in clause.items())


_KINDS = (Float, Int, Categorical, Ordinal, Bool, TrainSize)


def _checked(parameters: Mapping[str, Parameter]) -> dict[str, Parameter]:
    if not isinstance(parameters, Mapping):
        raise SpaceError(f"a Space takes a mapping from names to parameters, got {parameters!r}")
    if not parameters:
        raise SpaceError("a Space needs at least one parameter, but got an empty mapping")
    for name, p in parameters.items():
        if not isinstance(name, str) or not name:
            raise SpaceError(f"parameter names are non-empty strings, but got {name!r}")
        if not isinstance(p, _KINDS):
            kinds = ", ".join(k.__name__ for k in _KINDS)
            raise SpaceError(
                f"{name!r} must be one of {kinds}, but got {p!r}; "
                "Space.from_dict takes plain values"
            )
    return dict(parameters)


def _parents_first(parameters: Mapping[str, Parameter]) -> tuple[str, ...]:
    """Names in an order in which every parent comes before its children."""
    for name, p in parameters.items():
        for parent in p.when:
            if parent not in parameters:
                raise SpaceError(
                    f"{name!r} depends on {parent!r}, which is not a parameter of this space; "
                    f"it has {', '.join(map(repr, parameters))}"
                )
    order: list[str] = []
    waiting = list(parameters)
    while waiting:
        ready = [n for n in waiting if all(parent in order for parent in parameters[n].when)]
        if not ready:
            raise SpaceError(f"conditions form a cycle among {waiting}")
        order += ready
        waiting = [n for n in waiting if n not in ready]
    return tuple(order)


def _columns(parameters: Iterable[Parameter]) -> Columns:
    kinds = list(parameters)
    return Columns(
        cells=np.array([p.cells for p in kinds], dtype=np.int64),
        categorical=np.array([isinstance(p, (Categorical, Bool)) for p in kinds]),
        size=np.array([isinstance(p, TrainSize) for p in kinds]),
    )
