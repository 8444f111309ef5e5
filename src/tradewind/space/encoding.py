"""Configurations <-> arrays: the only place where a dict becomes a row and a row a dict.

An encoded configuration is a row of the unit cube with one column per parameter, in declared
order. Values of finite parameters are at the centres of their cells, and inactive parameters are
NaN. Such a row is called *snapped*. Strategies work on rows only; the log, the objective and the
user see dicts only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from tradewind.errors import SpaceError
from tradewind.space.drivers import cost_drivers
from tradewind.space.parameters import Bool, Categorical, Int, Parameter, TrainSize
from tradewind.types import Array, Columns, Config, Mask

# Where a condition on one column holds: the column, and the ends of intervals [a, b), ascending.
Edges: TypeAlias = tuple[int, Array]

_ROUNDS = 100  # of rejection sampling before a space counts as forbidden throughout
_BATCH = 4096  # rows per round, after doubling: about one allowed row in 100,000 is found
_WORK = (
    2**26
)  # coordinates and conditions to look at meanwhile, about 3 s: big spaces get fewer rows
_GRID_LIMIT = 20_000  # the most cells of a finite space that are enumerated


class Encoding(Mapping[str, Parameter]):
    """Parameters by name, and the crossing between their configurations and arrays.

    `when` has the conditions of each conditional parameter, parents before children; `forbidden`
    has the conditions that must not hold together. Space checks both and adds what users need."""

    def __init__(
        self,
        parameters: Mapping[str, Parameter],
        when: Mapping[str, Sequence[Edges]],
        forbidden: Sequence[Sequence[Edges]],
    ) -> None:
        self._parameters = dict(parameters)
        self.names = tuple(parameters)
        self.columns = _columns(list(parameters.values()))
        self.size_name = next((n for n, p in self.items() if isinstance(p, TrainSize)), None)
        self._to_unit = {name: (j, p.to_unit) for j, (name, p) in enumerate(self.items())}
        self._from_unit = [(name, p.from_unit) for name, p in self.items()]
        self._log_ints = [
            (j, p) for j, p in enumerate(self.values()) if isinstance(p, Int) and p.log
        ]
        self._even = self.columns.cells > 0  # columns whose cells have the same width
        self._even[[j for j, _ in self._log_ints]] = False
        self._any_even = bool(self._even.any())
        self._cells = np.where(self._even, self.columns.cells, 1)
        self._when = _group(when, {name: j for j, name in enumerate(self.names)})
        self._forbidden = forbidden

    def __getitem__(self, name: str) -> Parameter:
        return self._parameters[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __len__(self) -> int:
        return len(self._parameters)

    # ---- between dicts and rows ----

    def encode(self, configs: Sequence[Mapping[str, Any]]) -> Array:
        """Valid configurations as snapped rows, shape (n, d)."""
        inactive = [np.nan] * len(self)
        rows = []
        for config in configs:
            row = inactive.copy()
            for name, value in config.items():
                j, to_unit = self._to_unit[name]
                row[j] = to_unit(value)
            rows.append(row)
        return np.array(rows, dtype=float).reshape(len(rows), len(self))

    def decode(self, X: Array) -> list[Config]:
        """Rows of the unit cube (n, d) as configurations, without inactive parameters."""
        return [
            {
                name: from_unit(u)
                for (name, from_unit), u in zip(self._from_unit, row, strict=True)
                if u == u  # not NaN
            }
            for row in self.snap(X).tolist()
        ]

    # ---- rows ----

    def snap(self, X: Array) -> Array:
        """The nearest snapped rows: finite columns at the centres of their cells, inactive NaN.

        An active coordinate that is NaN becomes the centre of its range."""
        X = np.clip(X, 0.0, 1.0)
        if X.ndim != 2 or X.shape[1] != len(self):
            raise ValueError(f"rows must have shape (n, {len(self)}), but got {X.shape}")
        X[np.isnan(X)] = 0.5
        if self._any_even:
            k = self._cells
            centres = (np.minimum(np.floor(X * k), k - 1) + 0.5) / k
            X = np.where(self._even, centres, X)
        for j, p in self._log_ints:
            X[:, j] = p.centres(X[:, j])
        for conditions, columns in self._when:  # parents come first: theirs are final by now
            inactive = np.flatnonzero(~_hold(X, conditions))
            X[inactive[:, None], columns] = np.nan
        return X

    def allowed(self, X: Array) -> Mask:
        """Which snapped rows (n, d) are not forbidden."""
        allowed = np.ones(len(X), dtype=bool)
        for conditions in self._forbidden:
            allowed &= ~_hold(X, conditions)
        return allowed

    def sample(self, n: int, *, rng: np.random.Generator) -> Array:
        """n allowed snapped rows, uniform on the cube.

        If too few rows are allowed to find n of them, some are repeated."""
        X = self.snap(rng.random((n, len(self))))
        if not self._forbidden:
            return X
        bad = np.flatnonzero(~self.allowed(X))
        most = _WORK // (len(self) + sum(map(len, self._forbidden)) + len(self._when))
        for i in range(_ROUNDS):
            if not len(bad):
                return X
            size = max(len(bad), min(2**i, _BATCH, 1 + most // 64))
            most -= size + 256  # a look at few rows takes as long as at some hundreds
            if most < 0:
                break
            drawn = self.snap(rng.random((size, len(self))))
            drawn = drawn[self.allowed(drawn)][: len(bad)]
            X[bad[: len(drawn)]] = drawn
            bad = bad[len(drawn) :]
        if len(bad) < n:
            X[bad] = rng.choice(X[np.setdiff1d(np.arange(n), bad)], size=len(bad))
            return X
        raise SpaceError("(nearly) every configuration is forbidden")

    def grid(self) -> Array | None:
        """All allowed snapped rows of a finite space, read-only. None if the space is continuous or
        has too many of them."""
        return self._grid

    @cached_property
    def _grid(self) -> Array | None:
        cells = [p.cells for p in self.values()]
        if 0 in cells or np.prod(cells, dtype=float) > _GRID_LIMIT:
            return None
        n, several = int(np.prod(cells)), [j for j, k in enumerate(cells) if k > 1]
        index = np.zeros((n, len(cells)), dtype=np.int64)  # of the cell in each column
        if several:  # at most 14 columns; all of them might exceed NumPy's 64 dimensions
            places = np.unravel_index(np.arange(n), [cells[j] for j in several])
            index[:, several] = np.stack(places, axis=1)
        X = (index + 0.5) / cells
        for j, p in self._log_ints:
            X[:, j] = np.array([p.to_unit(p.low + i) for i in range(p.cells)])[index[:, j]]
        X = self.snap(X)
        if self._when:  # many rows differ only in inactive columns
            X = self.snap(np.unique(np.nan_to_num(X, nan=-1.0), axis=0))
        X = X[self.allowed(X)]
        X.flags.writeable = False
        return X


def within(u: Array, edges: Array) -> Mask:
    """Which coordinates (n,) lie in the intervals [edges[0], edges[1]), [edges[2], edges[3]), …

    NaN lies in none. Coordinates of finite parameters must be at the centres of their cells."""
    if len(edges) == 2:
        inside: Mask = (u >= edges[0]) & (u < edges[1])
    else:  # an odd number of edges lies below a coordinate that is inside
        inside = np.searchsorted(edges, u, side="right") % 2 == 1
    return inside


def _hold(X: Array, conditions: Sequence[Edges]) -> Mask:
    """In which rows (n, d) all conditions hold. None holds for an inactive coordinate."""
    masks = [within(X[:, j], edges) for j, edges in conditions]
    return masks[0] if len(masks) == 1 else np.logical_and.reduce(masks)


def _group(
    when: Mapping[str, Sequence[Edges]], places: Mapping[str, int]
) -> list[tuple[Sequence[Edges], list[int]]]:
    """Conditions, parents first, each with the columns of all parameters that have them."""
    groups: dict[object, tuple[Sequence[Edges], list[int]]] = {}
    for name, conditions in when.items():
        same = frozenset((j, edges.tobytes()) for j, edges in conditions)
        groups.setdefault(same, (conditions, []))[1].append(places[name])
    return list(groups.values())


def _columns(parameters: Sequence[Parameter]) -> Columns:
    return Columns(
        cells=np.array([p.cells for p in parameters], dtype=np.int64),
        categorical=np.array([isinstance(p, (Categorical, Bool)) for p in parameters]),
        conditional=np.array([bool(p.when) for p in parameters]),
        size=np.array([isinstance(p, TrainSize) for p in parameters]),
        fractions=next((p.fractions for p in parameters if isinstance(p, TrainSize)), ()),
        drivers=cost_drivers(parameters),
    )
