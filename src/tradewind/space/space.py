"""The search space: a read-only mapping from names to parameters, and configs <-> arrays.

Encoded, a configuration is a row of the unit cube, one column a parameter in declared order.
Finite parameters sit at the centres of their cells; an inactive parameter is NaN. A row in this
form is called *snapped*. Everything downstream of `encode` works on such rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tradewind.errors import ConfigError, SpaceError
from tradewind.space.conditions import Condition
from tradewind.space.parameters import Int, Parameter
from tradewind.space.regions import Region
from tradewind.space.structure import checked, clauses, columns_of, listed, parents_first, size_name
from tradewind.types import Array, Config, Mask, Value

_ATTEMPTS = 1000  # draws of a partly given configuration before it counts as forbidden
_ROUNDS = 100  # of rejection sampling before a space counts as forbidden throughout,
_BATCH = 4096  # with rows doubling up to so many: about one allowed row in 100,000 is found
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
        self._parameters = checked(parameters)
        self.names = tuple(self._parameters)
        self._position = {name: j for j, name in enumerate(self.names)}
        self._order = parents_first(self._parameters)
        self._when = {
            name: self._regions(self[name].when, f"{name!r}: when=")
            for name in self._order
            if self[name].when
        }
        self._children = self._alike()
        self.forbid = tuple(clauses(forbid))
        self._forbidden = [self._regions(clause, "forbid=") for clause in self.forbid]
        self.columns = columns_of(self.values())
        self._uneven = [(j, p) for j, p in enumerate(self.values()) if isinstance(p, Int) and p.log]
        self._even = self.columns.cells > 0
        self._even[[j for j, _ in self._uneven]] = False
        self._cells = np.where(self._even, self.columns.cells, 1)
        self.size_name = size_name(self._parameters)
        if self._forbidden:
            self.sample(1, rng=np.random.default_rng(0))  # fails where everything is forbidden

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
        """`config` in plain Python values and declared order, or a `ConfigError`."""
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
            values[name] = self._check(name, config[name])
        for clause in self._forbidden:
            if all(name in values and region.holds(values[name]) for name, region in clause):
                shown = ", ".join(f"{name!r} {region.condition}" for name, region in clause)
                raise ConfigError(f"forbidden combination ({shown}): got {dict(config)!r}")
        return {name: values[name] for name in self.names if name in values}

    def complete(self, partial: Mapping[str, Any], *, rng: np.random.Generator) -> Config:
        """A full configuration that has the given values and draws the others."""
        self._check_names(partial)
        given = {name: self._check(name, value) for name, value in partial.items()}
        wanted: dict[str, list[Region]] = {}  # what must hold for those given to be active
        for name in reversed(self._order):
            if name in given or name in wanted:
                for parent, region in self._when.get(name, ()):
                    wanted.setdefault(parent, []).append(region)
                    if parent in given and not region.holds(given[parent]):
                        raise ConfigError(
                            f"no configuration of this space fits {dict(partial)!r}: {name!r} "
                            f"needs {parent!r} {region.condition}, but got {given[parent]!r}"
                        )
        for _ in range(_ATTEMPTS):
            drawn = self._drawn(given, wanted, rng)
            try:
                return self.validate(drawn)
            except ConfigError as error:
                reason = str(error)
            if len(drawn) == len(given):  # nothing was drawn: it will not change
                break
        raise ConfigError(f"no configuration of this space fits {dict(partial)!r}: {reason}")

    def _drawn(
        self, given: Config, wanted: Mapping[str, Sequence[Region]], rng: np.random.Generator
    ) -> Config:
        drawn = dict(given)
        for name, u in zip(self._order, rng.random(len(self)).tolist(), strict=True):
            if name in drawn or self._why_inactive(name, drawn):
                continue
            if name in wanted:
                u = min(wanted[name], key=lambda region: region.width).stretch(u)
            drawn[name] = self[name].from_unit(u)
        return drawn

    def _check_names(self, config: Mapping[str, Any]) -> None:
        if not isinstance(config, Mapping):
            raise ConfigError(
                f"a configuration is a mapping from names to values, but got {config!r}"
            )
        for name in config:
            if name not in self._position:
                raise ConfigError(f"unknown parameter {name!r}: this space has {listed(self)}")

    def _check(self, name: str, value: Any) -> Value:
        try:
            return self[name].check(value)
        except ConfigError as error:
            raise ConfigError(f"{name!r} {error}") from None

    def _why_inactive(self, name: str, values: Mapping[str, Value]) -> str:
        """Why `name` is inactive given the values of its parents; empty when it is active."""
        for parent, region in self._when.get(name, ()):
            if parent not in values:
                return f"its parent {parent!r} is inactive"
            if not region.holds(values[parent]):
                return f"it needs {parent!r} {region.condition}, but got {values[parent]!r}"
        return ""

    # ---- configs <-> arrays ----

    def encode(self, configs: Sequence[Mapping[str, Any]]) -> Array:
        """Valid configurations as snapped rows, shape (n, d)."""
        inactive = [np.nan] * len(self)
        column = {name: (j, p.to_unit) for j, (name, p) in enumerate(self.items())}
        rows = []
        for config in configs:
            row = inactive.copy()
            for name, value in config.items():
                j, to_unit = column[name]
                row[j] = to_unit(value)
            rows.append(row)
        return np.array(rows, dtype=float).reshape(len(rows), len(self))

    def decode(self, X: Array) -> list[Config]:
        """Rows of the unit cube (n, d) as configurations, inactive parameters left out."""
        parameters = list(self.items())
        return [
            {
                name: p.from_unit(u)
                for (name, p), u in zip(parameters, row, strict=True)
                if u == u  # not NaN
            }
            for row in self.snap(X).tolist()
        ]

    def snap(self, X: Array) -> Array:
        """The nearest snapped rows: finite columns at their cells' centres, inactive ones NaN.

        An active coordinate that is NaN gets the centre of its range."""
        X = np.clip(X, 0.0, 1.0)
        if X.ndim != 2 or X.shape[1] != len(self):
            raise ValueError(f"rows must have shape (n, {len(self)}), but got {X.shape}")
        X[np.isnan(X)] = 0.5
        if self._even.any():
            k = self._cells
            centres = (np.minimum(np.floor(X * k), k - 1) + 0.5) / k
            X = np.where(self._even, centres, X)
        for j, p in self._uneven:
            X[:, j] = p.centres(X[:, j])
        for regions, columns in self._children:  # parents come first: theirs is settled
            inactive = np.flatnonzero(~self._inside(X, regions))
            X[inactive[:, None], columns] = np.nan
        return X

    def allowed(self, X: Array) -> Mask:
        """Which snapped rows (n, d) are not forbidden."""
        allowed = np.ones(len(X), dtype=bool)
        for clause in self._forbidden:
            allowed &= ~self._inside(X, clause)
        return allowed

    def sample(self, n: int, *, rng: np.random.Generator) -> Array:
        """n allowed snapped rows, uniform on the cube.

        Where too few of them are allowed to find n, some are repeated."""
        X = self.snap(rng.random((n, len(self))))
        if not self._forbidden:
            return X
        bad = np.flatnonzero(~self.allowed(X))
        for i in range(_ROUNDS):
            if not len(bad):
                return X
            size = max(len(bad), min(2**i, _BATCH))
            drawn = self.snap(rng.random((size, len(self))))
            drawn = drawn[self.allowed(drawn)][: len(bad)]
            X[bad[: len(drawn)]] = drawn
            bad = bad[len(drawn) :]
        if len(bad) < n:
            X[bad] = rng.choice(X[np.setdiff1d(np.arange(n), bad)], size=len(bad))
            return X
        raise SpaceError(f"(nearly) every configuration is forbidden by {list(self.forbid)!r}")

    def grid(self) -> Array | None:
        """All allowed snapped rows of a small finite space, read-only; None when it is not one."""
        return self._grid

    @cached_property
    def _grid(self) -> Array | None:
        cells = [p.cells for p in self.values()]
        if 0 in cells or np.prod(cells, dtype=float) > _GRID_LIMIT:
            return None
        n, several = int(np.prod(cells)), [j for j, k in enumerate(cells) if k > 1]
        index = np.zeros((n, len(cells)), dtype=np.int64)  # of the cell, 0 where there is but one
        if several:  # at most 14, while NumPy's 64 dimensions could be exceeded by all
            places = np.unravel_index(np.arange(n), [cells[j] for j in several])
            index[:, several] = np.stack(places, axis=1)
        X = (index + 0.5) / cells
        for j, p in self._uneven:
            X[:, j] = np.array([p.to_unit(p.low + i) for i in range(p.cells)])[index[:, j]]
        X = self.snap(X)
        if self._when:  # many rows differ only in what is inactive
            X = self.snap(np.unique(np.nan_to_num(X, nan=-1.0), axis=0))
        X = X[self.allowed(X)]
        X.flags.writeable = False
        return X

    def _regions(self, clause: Mapping[str, Condition], what: str) -> list[tuple[str, Region]]:
        regions = []
        for name, condition in clause.items():
            if name not in self._parameters:
                raise SpaceError(
                    f"{what} names {name!r}, which is not a parameter of this space; "
                    f"it has {listed(self)}"
                )
            try:
                regions.append((name, Region(self[name], condition)))
            except SpaceError as error:
                raise SpaceError(f"{what} {name!r} {error}") from None
        return regions

    def _inside(self, X: Array, regions: Iterable[tuple[str, Region]]) -> Mask:
        """Which rows (n, d) are inside all regions; an inactive coordinate is in none."""
        masks = [region.contains(X[:, self._position[name]]) for name, region in regions]
        return masks[0] if len(masks) == 1 else np.logical_and.reduce(masks)

    def _alike(self) -> list[tuple[list[tuple[str, Region]], list[int]]]:
        """Conditional parameters, parents first, those under the same conditions together."""
        groups: list[tuple[Mapping[str, Condition], list[int]]] = []
        for name in self._when:
            for when, columns in groups:
                if when == self[name].when:
                    columns.append(self._position[name])
                    break
            else:
                groups.append((self[name].when, [self._position[name]]))
        return [(self._when[self.names[columns[0]]], columns) for _, columns in groups]

    # ---- other forms (formats.py) ----

    def to_dict(self) -> dict[str, Any]:
        """The space as plain data for JSON; `Space.from_dict` reads it back."""
        from tradewind.space.formats import to_dict

        return to_dict(self)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Space:
        """A space from plain data: what `to_dict` gives, or names with short forms.

        A tuple is a range, `(1, 9)` or `(1e-4, 1e3, "log")`; a list is the choices, `["a", "b"]`,
        except that `[1e-4, 1e3, "log"]` is a range too; `bool` is `Bool()`. Parameters and
        mappings such as `{"type": "int", "low": 1, "high": 9}` may be mixed in."""
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
        """A space from a ConfigSpace JSON file (a path), its text or its parsed content."""
        from tradewind.space.formats import from_configspace

        return from_configspace(source)
