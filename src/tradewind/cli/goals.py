"""Goals as text and as tables: the one grammar of the command line and of run files.

    quality                          the best quality, whatever it costs
    tradeoff:ALPHA[@REFERENCE]       quality against cost: the reference cost is worth ALPHA
    under:COST                       the best quality with a cost of at most COST
    within:TOLERANCE                 the cheapest within 0.01, 1% or 1se of the best
    knee                             where the frontier bends
    frontier                         all efficient models

Options follow after commas: `under:10,by=money`, `tradeoff:0.1@60,capped=true`,
`frontier,cost=1..60`. As a table: `{type = "tradeoff", alpha = 0.1, reference = 60}`.
A cost is a number, or has a unit: `500ms`, `10min`, `1h30m`, `2GB`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tradewind.checks import seconds, suggest
from tradewind.cli.exits import UsageFault
from tradewind.plain import shown

if TYPE_CHECKING:
    from tradewind.goals import Goal

_UNITS = {"ms": 1e-3, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12}
_AMOUNT = re.compile(r"([0-9.eE+-]+)\s*(ms|kb|mb|gb|tb)", re.IGNORECASE)

RULE = (
    "a goal is quality, tradeoff:ALPHA or tradeoff:ALPHA@COST, under:COST, within:TOLERANCE, "
    "knee or frontier"
)
EXAMPLES = (
    "quality",
    "tradeoff:0.1",
    "tradeoff:0.1@60",
    "under:10min",
    "within:1%",
    "knee",
    "frontier",
)


# ---- reading what stands for a value ----


def amount(given: Any) -> Any:
    """A cost as a number; text may have a unit."""
    if not isinstance(given, str):
        return given
    text = given.strip()
    try:
        return float(text)
    except ValueError:
        pass
    if (found := _AMOUNT.fullmatch(text)) is not None:
        return _number(found[1]) * _UNITS[found[2].lower()]
    return seconds("a cost", text)


def _number(given: Any) -> Any:
    """A number; anything else is left for the goal to refuse."""
    try:
        return float(given) if isinstance(given, str) else given
    except ValueError:
        raise ValueError(f"a number is needed, but got {shown(given)}") from None


def _tolerance(given: Any) -> Any:
    text = given.strip() if isinstance(given, str) else given
    try:
        return float(text) if isinstance(text, str) else text
    except ValueError:
        return text


def _flag(given: Any) -> Any:
    return (
        {"true": True, "false": False}.get(given.lower(), given)
        if isinstance(given, str)
        else given
    )


def _pair(given: Any) -> Any:
    """`1..60`, or a list of two."""
    ends = given.split("..") if isinstance(given, str) else given
    return tuple(map(amount, ends)) if isinstance(ends, (list, tuple)) else ends


def _word(given: Any) -> Any:
    return given


@dataclass(frozen=True)
class _Kind:
    """A kind of goal: its class, the keys that it takes, and which of them follow `:` and `@`."""

    name: str
    keys: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    main: str | None = None
    reference: str | None = None


_KINDS = {
    "quality": _Kind("Quality"),
    "tradeoff": _Kind(
        "Tradeoff",
        {"alpha": _number, "reference": amount, "capped": _flag, "by": _word},
        main="alpha",
        reference="reference",
    ),
    "under": _Kind("BestUnder", {"cost": amount, "by": _word}, main="cost"),
    "within": _Kind("CheapestWithin", {"tolerance": _tolerance, "by": _word}, main="tolerance"),
    "knee": _Kind("Knee", {"by": _word}),
    "frontier": _Kind(
        "Frontier",
        {"cost": _pair, "alpha": _pair, "reference": amount, "search": _word, "by": _word},
    ),
}


# ---- reading ----


def read_goal(given: Any) -> Goal:
    """The goal in a text or a table. `UsageFault` says what is possible."""
    if isinstance(given, str):
        return _make(given, *_split(given))
    if not isinstance(given, Mapping):
        raise UsageFault(f"{RULE}, as text, or a table with a type, but got {shown(given)}")
    values = dict(given)
    kind = values.pop("type", None)
    if not isinstance(kind, str):
        raise UsageFault(
            f'a goal as a table needs a type, such as {{type = "tradeoff", alpha = 0.1}}, but got '
            f"{shown(dict(given))}"
        )
    return _make(kind, _kind(kind), values)


def _split(text: str) -> tuple[_Kind, dict[str, Any]]:
    """The kind and the values of a goal as text."""
    head, *options = text.strip().split(",")
    name, colon, rest = head.partition(":")
    kind, values = _kind(name), dict[str, Any]()
    if colon:
        if kind.main is None:
            raise UsageFault(f"{name.strip()} takes nothing after a colon, but got {shown(text)}")
        main, at, reference = rest.partition("@")
        values[kind.main] = main.strip()
        if at and kind.reference is None:
            raise UsageFault(f"only tradeoff takes an @COST, but got {shown(text)}")
        if at and kind.reference is not None:
            values[kind.reference] = reference.strip()
    for option in options:
        key, equals, value = option.partition("=")
        if not equals:
            raise UsageFault(f"options of a goal are written key=value, but got {shown(option)}")
        if key.strip() in values:
            raise UsageFault(f"{key.strip()!r} is given twice in {shown(text)}")
        values[key.strip()] = value.strip()
    return kind, values


def _kind(name: str) -> _Kind:
    found = _KINDS.get(name.strip().lower())
    if found is None:
        raise UsageFault(f"{RULE}, but got {shown(name)}{suggest(name.strip().lower(), _KINDS)}")
    return found


def _make(given: str, kind: _Kind, values: Mapping[str, Any]) -> Goal:
    from tradewind import goals

    for key in values:
        if key not in kind.keys:
            takes = ", ".join(kind.keys) or "no options"
            raise UsageFault(
                f"the goal {shown(given)} has no {shown(key)}{suggest(key, kind.keys)}: "
                f"it takes {takes}"
            )
    if kind.main is not None and kind.main not in values:
        raise UsageFault(f"{RULE}, but {shown(given)} has no {kind.main}")
    try:
        made = {key: kind.keys[key](value) for key, value in values.items()}
        goal: Goal = getattr(goals, kind.name)(**made)
    except (ValueError, TypeError, OverflowError) as error:
        raise UsageFault(f"the goal {shown(given)} cannot be read: {error}") from None
    return goal


# ---- writing ----


def goal_text(goal: Goal) -> str:
    """The goal in the grammar; for a goal of the user's own, its repr."""
    name = next((n for n, kind in _KINDS.items() if kind.name == type(goal).__name__), None)
    if name is None:
        return repr(goal)
    kind = _KINDS[name]
    values = {key: getattr(goal, key) for key in kind.keys}
    text = name
    if kind.main is not None:
        text += f":{_written(values.pop(kind.main))}"
    if kind.reference is not None:
        reference = values.pop(kind.reference)
        text += "" if reference is None else f"@{_written(reference)}"
    if name == "frontier" and values["search"] == "draws":  # the default
        del values["search"]
    used = {key: value for key, value in values.items() if value is not None and value is not False}
    return "".join([text, *(f",{key}={_written(value)}" for key, value in used.items())])


def _written(value: Any) -> str:
    if isinstance(value, tuple):
        return "..".join(map(_written, value))
    if value is True:
        return "true"
    return (
        f"{value:.12g}"
        if isinstance(value, float) and float(f"{value:.12g}") == value
        else str(value)
    )
