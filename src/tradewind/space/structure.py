"""What a space is declared as: its names, their order, and what is forbidden, all checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from tradewind.errors import SpaceError
from tradewind.space.conditions import Condition, conditions
from tradewind.space.parameters import (
    Bool,
    Categorical,
    Float,
    Int,
    Ordinal,
    Parameter,
    TrainSize,
)
from tradewind.types import Columns

_KINDS = (Float, Int, Categorical, Ordinal, Bool, TrainSize)


def checked(parameters: Mapping[str, Parameter]) -> dict[str, Parameter]:
    """The parameters of a space, in the declared order."""
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
    return dict(parameters)


def parents_first(parameters: Mapping[str, Parameter]) -> tuple[str, ...]:
    """Names in an order in which every parent comes before its children."""
    for name, p in parameters.items():
        for parent in p.when:
            if parent not in parameters:
                raise SpaceError(
                    f"{name!r} depends on {parent!r}, which is not a parameter of this space; "
                    f"it has {listed(parameters)}"
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


def clauses(forbid: Any) -> Iterator[dict[str, Condition]]:
    """The forbidden combinations."""
    if isinstance(forbid, (str, bytes, Mapping)) or not isinstance(forbid, Iterable):
        raise SpaceError(f"forbid must be a list of mappings, but got {forbid!r}")
    for given in forbid:
        clause = conditions(given, what="forbid=")
        if not clause:  # it would forbid everything
            raise SpaceError(f"forbid= needs at least one name and value, but got {given!r}")
        yield clause


def columns_of(parameters: Iterable[Parameter]) -> Columns:
    """What a model may know about the encoded parameters."""
    kinds = list(parameters)
    return Columns(
        cells=np.array([p.cells for p in kinds], dtype=np.int64),
        categorical=np.array([isinstance(p, (Categorical, Bool)) for p in kinds]),
        conditional=np.array([bool(p.when) for p in kinds]),
        size=np.array([isinstance(p, TrainSize) for p in kinds]),
        fractions=next((p.fractions for p in kinds if isinstance(p, TrainSize)), ()),
    )


def size_name(parameters: Mapping[str, Parameter]) -> str | None:
    """The name of the training size, if there is one."""
    sizes = [name for name, p in parameters.items() if isinstance(p, TrainSize)]
    if len(sizes) > 1:
        raise SpaceError(f"a space has at most one TrainSize, but got {sizes}")
    return sizes[0] if sizes else None


def listed(names: Iterable[str]) -> str:
    """Names for an error message."""
    return ", ".join(map(repr, names))
