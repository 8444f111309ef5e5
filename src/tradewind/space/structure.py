"""Checks of a declared space: its names, their order, and its forbidden combinations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tradewind.checks import suggest
from tradewind.errors import SpaceError
from tradewind.plain import listed, shown
from tradewind.space.conditions import Condition, read_conditions
from tradewind.space.parameters import (
    Bool,
    Categorical,
    Float,
    Int,
    Ordinal,
    Parameter,
    TrainSize,
)

# A stranger's file must not keep us busy for long: each of these takes some microseconds to read,
# and again for every row that is sampled.
_MOST_PARAMETERS = 10_000
_MOST_CLAUSES = 10_000
_MOST_CONDITIONS = 100_000  # in all clauses together
_LONGEST_NAME = 1_000

_KINDS = (Float, Int, Categorical, Ordinal, Bool, TrainSize)


def check_parameters(parameters: Mapping[str, Parameter]) -> None:
    """Raise `SpaceError` unless this is a mapping from names to parameters."""
    if not isinstance(parameters, Mapping):
        raise SpaceError(
            f"a Space takes a mapping from names to parameters, but got {parameters!r}"
        )
    if not parameters:
        raise SpaceError("a Space needs at least one parameter, but got an empty mapping")
    if len(parameters) > _MOST_PARAMETERS:
        raise SpaceError(
            f"a Space takes up to {_MOST_PARAMETERS} parameters, but got {len(parameters)}"
        )
    for name, p in parameters.items():
        if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME:
            raise SpaceError(
                f"parameter names are strings of 1 to {_LONGEST_NAME} characters, but got "
                f"{shown(name)}"
            )
        if not isinstance(p, _KINDS):
            kinds = ", ".join(k.__name__ for k in _KINDS)
            raise SpaceError(
                f"{name!r} must be one of {kinds}, but got {p!r}; "
                "Space.from_dict takes plain values"
            )
    sizes = [name for name, p in parameters.items() if isinstance(p, TrainSize)]
    if len(sizes) > 1:
        raise SpaceError(f"a space has at most one TrainSize, but got {sizes}")


def parents_first(parameters: Mapping[str, Parameter]) -> tuple[str, ...]:
    """Names in an order in which every parent comes before its children."""
    if sum(len(p.when) for p in parameters.values()) > _MOST_CONDITIONS:
        raise SpaceError(f"a Space takes up to {_MOST_CONDITIONS} conditions in all")
    for name, p in parameters.items():
        for parent in p.when:
            if parent not in parameters:
                raise SpaceError(
                    f"{name!r} depends on {parent!r}, which is not a parameter of this space"
                    f"{suggest(parent, parameters)}; it has {listed(parameters)}"
                )
    level = _levels(parameters)
    cyclic = [name for name in parameters if name not in level]
    if cyclic:
        raise SpaceError(f"conditions form a cycle among {listed(cyclic)}")
    return tuple(sorted(parameters, key=level.__getitem__))  # the declared order within a level


def _levels(parameters: Mapping[str, Parameter]) -> dict[str, int]:
    """A parameter without parents is on level 0, any other one level below its lowest parent. Those
    of a cycle, and below one, are on none. In linear time, as a file may hold a long chain."""
    children: dict[str, list[str]] = {name: [] for name in parameters}
    for name, p in parameters.items():
        for parent in p.when:
            children[parent].append(name)
    missing = {name: len(p.when) for name, p in parameters.items()}  # parents that have no level
    level: dict[str, int] = {}
    ready, number = [name for name, count in missing.items() if not count], 0
    while ready:
        level |= dict.fromkeys(ready, number)
        number += 1
        below = [child for name in ready for child in children[name]]
        for child in below:
            missing[child] -= 1
        ready = [child for child in dict.fromkeys(below) if not missing[child]]
    return level


def read_forbid(given: Any) -> Iterator[dict[str, Condition]]:
    """The forbidden combinations: `[{"a": "x", "b": [1, 2]}]`."""
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise SpaceError(f"forbid must be a list of mappings, but got {given!r}")
    clauses = list(given)
    if len(clauses) > _MOST_CLAUSES:
        raise SpaceError(
            f"forbid= takes up to {_MOST_CLAUSES} combinations, but got {len(clauses)}"
        )
    total = 0
    for clause in clauses:
        conditions = read_conditions(clause, what="forbid=")
        if not conditions:  # it would forbid everything
            raise SpaceError(f"forbid= needs at least one name and value, but got {clause!r}")
        total += len(conditions)
        if total > _MOST_CONDITIONS:
            raise SpaceError(f"forbid= takes up to {_MOST_CONDITIONS} conditions in all")
        yield conditions
