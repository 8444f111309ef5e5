"""Checks of a declared space: its names, their order, and its forbidden combinations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tradewind.checks import suggest
from tradewind.errors import SpaceError
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

_KINDS = (Float, Int, Categorical, Ordinal, Bool, TrainSize)


def check_parameters(parameters: Mapping[str, Parameter]) -> None:
    """Raise `SpaceError` unless this is a mapping from names to parameters."""
    if not isinstance(parameters, Mapping):
        raise SpaceError(
            f"a Space takes a mapping from names to parameters, but got {parameters!r}"
        )
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
    sizes = [name for name, p in parameters.items() if isinstance(p, TrainSize)]
    if len(sizes) > 1:
        raise SpaceError(f"a space has at most one TrainSize, but got {sizes}")


def parents_first(parameters: Mapping[str, Parameter]) -> tuple[str, ...]:
    """Names in an order in which every parent comes before its children."""
    for name, p in parameters.items():
        for parent in p.when:
            if parent not in parameters:
                raise SpaceError(
                    f"{name!r} depends on {parent!r}, which is not a parameter of this space"
                    f"{suggest(parent, parameters)}; it has {join_names(parameters)}"
                )
    order: dict[str, None] = {}
    waiting = list(parameters)
    while waiting:
        ready = [n for n in waiting if parameters[n].when.keys() <= order.keys()]
        if not ready:
            raise SpaceError(f"conditions form a cycle among {waiting}")
        order.update(dict.fromkeys(ready))
        waiting = [n for n in waiting if n not in order]
    return tuple(order)


def read_forbid(given: Any) -> Iterator[dict[str, Condition]]:
    """The forbidden combinations: `[{"a": "x", "b": [1, 2]}]`."""
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise SpaceError(f"forbid must be a list of mappings, but got {given!r}")
    for clause in given:
        conditions = read_conditions(clause, what="forbid=")
        if not conditions:  # it would forbid everything
            raise SpaceError(f"forbid= needs at least one name and value, but got {clause!r}")
        yield conditions


def join_names(names: Iterable[str]) -> str:
    """Names for an error message."""
    return ", ".join(map(repr, names))
