"""The search space: what users declare, and the checks of their configurations.

encoding.py turns configurations into arrays and back; formats.py and configspace.py read and write
spaces as data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, TypeAlias

import numpy as np

from tradewind.checks import suggest
from tradewind.errors import ConfigError, SpaceError
from tradewind.plain import listed, shown
from tradewind.space.conditions import Condition, written
from tradewind.space.encoding import Edges, Encoding
from tradewind.space.parameters import Parameter
from tradewind.space.regions import Region
from tradewind.space.structure import check_parameters, parents_first, read_forbid
from tradewind.types import Config, Value

_Regions: TypeAlias = list[tuple[str, Region]]  # the parameters of a clause, and where it holds

_ATTEMPTS = 1000  # to complete a partial configuration before no allowed one counts as possible


class Space(Encoding):
    """A read-only mapping from names to parameters, with conditions and forbidden combinations.

    `forbid` lists combinations that are never proposed: `[{"a": "x", "b": [1, 2]}]`.

    >>> space = tw.Space({
    ...     "C": tw.Float(1e-4, 1e3, log=True),
    ...     "kernel": tw.Categorical(["linear", "poly"]),
    ...     "degree": tw.Int(2, 5, when={"kernel": "poly"}),
    ... }, forbid=[{"kernel": "poly", "C": tw.at_least(100.0)}])
    >>> list(space)
    ['C', 'kernel', 'degree']
    """

    def __init__(
        self,
        parameters: Mapping[str, Parameter],
        *,
        forbid: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        check_parameters(parameters)
        parameters = dict(parameters)
        self._order = parents_first(parameters)
        self._conditions = {
            name: _regions(parameters, parameters[name].when, f"{name!r}: when=")
            for name in self._order
            if parameters[name].when
        }
        self.forbid = tuple(read_forbid(forbid))
        self._clauses = [_regions(parameters, clause, "forbid=") for clause in self.forbid]
        places = {name: j for j, name in enumerate(parameters)}
        super().__init__(
            parameters,
            when={name: _edges(regions, places) for name, regions in self._conditions.items()},
            forbidden=[_edges(regions, places) for regions in self._clauses],
        )
        if self.forbid:
            self._check_that_some_are_allowed()

    def _check_that_some_are_allowed(self) -> None:
        try:
            self.sample(1, rng=np.random.default_rng(0))
        except SpaceError as error:
            raise SpaceError(f"{error} by {shown(list(self.forbid))}") from None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Space):
            return NotImplemented
        return list(self.items()) == list(other.items()) and self.forbid == other.forbid

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        lines = [f"  {name!r}: {p!r}," for name, p in self.items()]
        clauses = [
            "{" + ", ".join(f"{name!r}: {written(c)}" for name, c in clause.items()) + "}"
            for clause in self.forbid
        ]
        tail = f", forbid=[{', '.join(clauses)}]" if clauses else ""
        return "Space({\n" + "\n".join(lines) + "\n}" + tail + ")"

    def _repr_html_(self) -> str:
        from tradewind.space.words import space_table

        return space_table(self)

    # ---- configurations ----

    def validate(self, config: Mapping[str, Any]) -> Config:
        """`config` in plain values and declared order. Raises `ConfigError` if it does not fit."""
        self._check_names(config)
        values: Config = {}
        for name in self._order:
            inactive = self._why_inactive(name, values)
            if inactive and name in config:
                raise ConfigError(f"{name!r} must be left out: {inactive}")
            if inactive:
                continue
            if name not in config:
                raise ConfigError(f"{name!r} is active and must be given")
            values[name] = self._check_value(name, config[name])
        for clause in self._clauses:
            if all(name in values and region.holds(values[name]) for name, region in clause):
                rule = ", ".join(f"{name!r} {region.condition}" for name, region in clause)
                raise ConfigError(f"forbidden combination ({rule}): got {shown(dict(config))}")
        return {name: values[name] for name in self.names if name in values}

    def complete(self, partial: Mapping[str, Any], *, rng: np.random.Generator) -> Config:
        """A full configuration: the given values, and random ones for all other parameters."""
        self._check_names(partial)
        given = {name: self._check_value(name, value) for name, value in partial.items()}
        required = self._required(given)
        for _ in range(_ATTEMPTS):
            drawn = self._draw(given, required, rng)
            try:
                return self.validate(drawn)
            except ConfigError as error:
                reason = str(error)
            if len(drawn) == len(given):  # nothing was drawn, so another attempt cannot differ
                break
        raise ConfigError(f"no configuration of this space fits {shown(dict(partial))}: {reason}")

    def _required(self, given: Config) -> dict[str, list[Region]]:
        """Where parents must lie for the given parameters to be active."""
        required: dict[str, list[Region]] = {}
        for name in reversed(self._order):
            if name not in given and name not in required:
                continue
            for parent, region in self._conditions.get(name, ()):
                required.setdefault(parent, []).append(region)
                if parent in given and not region.holds(given[parent]):
                    raise ConfigError(
                        f"no configuration of this space fits {shown(given)}: {name!r} "
                        f"needs {parent!r} {region.condition}, but got {given[parent]!r}"
                    )
        return required

    def _draw(
        self, given: Config, required: Mapping[str, Sequence[Region]], rng: np.random.Generator
    ) -> Config:
        config = dict(given)
        for name, u in zip(self._order, rng.random(len(self)).tolist(), strict=True):
            if name in config or self._why_inactive(name, config):
                continue
            if name in required:
                u = min(required[name], key=lambda region: region.width).stretch(u)
            config[name] = self[name].from_unit(u)
        return config

    def _check_names(self, config: Mapping[str, Any]) -> None:
        if not isinstance(config, Mapping):
            raise ConfigError(
                f"a configuration is a mapping from names to values, but got {shown(config)}"
            )
        for name in config:
            if name not in self._parameters:
                raise ConfigError(
                    f"unknown parameter {name!r}{suggest(name, self)}: this space has "
                    f"{listed(self)}"
                )

    def _check_value(self, name: str, value: Any) -> Value:
        try:
            return self[name].check(value)
        except ConfigError as error:
            raise ConfigError(f"{name!r} {error}") from None

    def _why_inactive(self, name: str, values: Mapping[str, Value]) -> str:
        """Why `name` is inactive given the values of its parents; empty if it is active."""
        for parent, region in self._conditions.get(name, ()):
            if parent not in values:
                return f"its parent {parent!r} is inactive"
            if not region.holds(values[parent]):
                return f"it needs {parent!r} {region.condition}, but got {values[parent]!r}"
        return ""

    # ---- spaces as data ----

    def to_dict(self) -> dict[str, Any]:
        """The space as plain data for JSON; `Space.from_dict` reads it back."""
        from tradewind.space.formats import to_dict

        return to_dict(self)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Space:
        """A space from plain data: what `to_dict` returns, or a short form for each name.

        A tuple is a range, `(1, 9)` or `(1e-4, 1e3, "log")`; a list is a choice, `["a", "b"]`,
        except that `[1e-4, 1e3, "log"]` is a range too; `bool` is `Bool()`. Parameters and mappings
        such as `{"type": "int", "low": 1, "high": 9}` may be mixed in."""
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
    def from_configspace(cls, source: str | PathLike[str] | Mapping[str, Any]) -> Space:
        """A space from a ConfigSpace JSON file (a path), its text or its parsed content."""
        from tradewind.space.configspace import from_configspace

        return from_configspace(source)


def _regions(
    parameters: Mapping[str, Parameter], clause: Mapping[str, Condition], place: str
) -> _Regions:
    """Where each condition of a clause holds; `place` says in errors where the clause is."""
    regions = []
    for name, condition in clause.items():
        if name not in parameters:
            raise SpaceError(
                f"{place} names {name!r}, which is not a parameter of this space"
                f"{suggest(name, parameters)}; it has {listed(parameters)}"
            )
        try:
            regions.append((name, Region(parameters[name], condition)))
        except SpaceError as error:
            raise SpaceError(f"{place} {name!r} {error}") from None
    return regions


def _edges(regions: _Regions, places: Mapping[str, int]) -> list[Edges]:
    return [(places[name], region.edges) for name, region in regions]
