"""A space in words, for tables: what a parameter is, what it ranges over, and when it is active."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tradewind.html import table
from tradewind.plain import listed
from tradewind.space.conditions import AtLeast, Condition
from tradewind.space.parameters import Float, Int, Parameter, TrainSize, _Choices

if TYPE_CHECKING:
    from tradewind.space.space import Space

_KINDS = {
    "Float": "real number",
    "Int": "integer",
    "Categorical": "category",
    "Ordinal": "ordered choice",
    "Bool": "yes or no",
    "TrainSize": "training size",
}


def kind(parameter: Parameter) -> str:
    """`integer`, `category`."""
    name = type(parameter).__name__
    return _KINDS.get(name, name)


def values(parameter: Parameter) -> str:
    """`0.0001 to 1000, on a log scale`, `'linear', 'poly'`, `20%, 60%, 100%`."""
    if isinstance(parameter, TrainSize):
        return ", ".join(f"{100 * size:.6g}%" for size in parameter.fractions)
    if isinstance(parameter, _Choices):
        return listed(parameter.choices)
    if not isinstance(parameter, (Float, Int)):
        return repr(parameter)
    step = parameter.step if parameter.step != 1 or isinstance(parameter, Float) else None
    steps = "" if step is None else f", in steps of {step:.12g}"
    log = ", on a log scale" * parameter.log
    return f"{parameter.low:.12g} to {parameter.high:.12g}{steps}{log}"


def rule(conditions: Mapping[str, Condition]) -> str:
    """`kernel is 'poly' and layers is at least 2`; nothing without conditions."""
    return " and ".join(f"{name} is {_condition(it)}" for name, it in conditions.items())


def _condition(condition: Condition) -> str:
    if isinstance(condition, AtLeast):
        return f"at least {condition.low!r}"
    *others, last = map(repr, condition.values)
    return f"{', '.join(others)} or {last}" if others else last


def space_table(space: Space) -> str:
    """The table that a notebook shows of a space."""
    rows = ([name, kind(p), values(p), rule(p.when) or "always"] for name, p in space.items())
    forbidden = "; ".join(map(rule, space.forbid))
    return table(
        ["parameter", "kind", "values", "active"],
        rows,
        caption=f"Space of {len(space)} parameter{'s' * (len(space) != 1)}",
        note=f"Never proposed: {forbidden}" if forbidden else "",
    )
