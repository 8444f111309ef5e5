"""Goals as text and as tables: one grammar for Python, the command line and run files.

    quality                          the best quality, whatever it costs
    tradeoff:ALPHA[@REFERENCE]       quality against cost: the reference cost is worth ALPHA
    under:COST                       the best quality with a cost of at most COST
    within:TOLERANCE                 the cheapest within 0.01, 1% or 1se of the best
    knee                             where the frontier bends
    frontier                         all efficient models

`1%` and `1se` alone mean `within:1%` and `within:1se`. Options follow after commas:
`under:10,by=money`, `tradeoff:0.1@60,capped=true`, `frontier,cost=1..60`. As a table:
`{type = "tradeoff", alpha = 0.1, reference = 60}`. A cost is a number, or has a unit: `500ms`,
`10min`, `1h30m`, `2GB`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from typing import Any, TypeAlias

from tradewind import checks
from tradewind.amounts import GivenAmount, cost
from tradewind.goals.frontier import Frontier, Knee
from tradewind.goals.goal import Goal
from tradewind.goals.limits import BestUnder, CheapestWithin
from tradewind.goals.quality import Quality
from tradewind.goals.tradeoff import Tradeoff
from tradewind.plain import shown

AnyGoal: TypeAlias = Goal | str  # what functions take that call `read_goal`

_KINDS: dict[str, type[Any]] = {
    "quality": Quality,
    "tradeoff": Tradeoff,
    "under": BestUnder,
    "within": CheapestWithin,
    "knee": Knee,
    "frontier": Frontier,
}
_MAIN = {"tradeoff": "alpha", "under": "cost", "within": "tolerance"}  # what follows the colon
_RULE = (
    "a goal is quality, tradeoff:ALPHA or tradeoff:ALPHA@COST, under:COST, within:TOLERANCE, "
    "knee or frontier"
)


# ---- reading ----


def read_goal(given: AnyGoal) -> Goal:
    """A goal, or the one in a text. TypeError or ValueError with the rule for anything else."""
    return parse_goal(given) if isinstance(given, str) else _checked(given)


def _checked(given: Any) -> Any:
    """An object that has all that a goal has. TypeError says what it lacks."""
    example = 'tw.BestUnder("2s"), text such as "under:2s", or your own subclass of goals.Goal'
    has = [name for name in vars(Goal) if not name.startswith("_")]
    methods = [name for name in has if callable(vars(Goal)[name])]
    checks.has_methods("goal", given, methods, example)
    for name in has:
        if not hasattr(given, name):
            raise TypeError(
                f"goal must be an object such as {example}, but got {given!r}, which has no {name}"
            )
    return given


def metric_name(name: str, given: Any) -> str:
    """The name of a quality, such as "accuracy": short enough for the header of a table."""
    known = isinstance(given, str) and given.strip() and given.isprintable() and len(given) <= 40
    if not known or given.strip() == "cost":
        raise ValueError(
            f'{name} must name the quality in at most 40 letters, such as "accuracy", but got '
            f"{given!r}"
        )
    return str.__str__(given).strip()


def parse_goal(given: Any) -> Goal:
    """The goal in a text or in a table. ValueError says what is possible."""
    if isinstance(given, str):
        return _make(given, *_split(given))
    if not isinstance(given, Mapping):
        raise ValueError(f"{_RULE}, as text, or a table with a type, but got {shown(given)}")
    values = dict(given)
    kind = values.pop("type", None)
    if not isinstance(kind, str):
        raise ValueError(
            f'a goal as a table needs a type, such as {{type = "tradeoff", alpha = 0.1}}, but got '
            f"{shown(dict(given))}"
        )
    return _make(kind, _kind(kind), values)


def _split(text: str) -> tuple[str, dict[str, Any]]:
    """The kind and the values of a goal as text."""
    head, *options = text.strip().split(",")
    if ":" not in head and head.strip().endswith(("%", "1se")):
        head = f"within:{head}"
    name, colon, rest = head.partition(":")
    kind, values = _kind(name), dict[str, Any]()
    if colon:
        if kind not in _MAIN:
            raise ValueError(f"{kind} takes nothing after a colon, but got {shown(text)}")
        main, at, reference = rest.partition("@")
        values[_MAIN[kind]] = main.strip()
        if at and kind != "tradeoff":
            raise ValueError(f"only tradeoff takes an @COST, but got {shown(text)}")
        if at:
            values["reference"] = reference.strip()
    for option in options:
        key, equals, value = option.partition("=")
        if not equals:
            raise ValueError(f"options of a goal are written key=value, but got {shown(option)}")
        if key.strip() in values:
            raise ValueError(f"{key.strip()!r} is given twice in {shown(text)}")
        values[key.strip()] = value.strip()
    return kind, values


def _kind(name: str) -> str:
    kind = name.strip().lower()
    if kind not in _KINDS:
        raise ValueError(f"{_RULE}, but got {shown(name)}{checks.suggest(kind, _KINDS)}")
    return kind


def _make(given: str, kind: str, values: Mapping[str, Any]) -> Goal:
    keys = [field.name for field in _options(kind)]
    for key in values:
        if key not in keys:
            raise ValueError(
                f"the goal {shown(given)} has no {shown(key)}{checks.suggest(key, keys)}: "
                f"it takes {', '.join(keys) or 'no options'}"
            )
    if kind in _MAIN and _MAIN[kind] not in values:
        raise ValueError(f"{_RULE}, but {shown(given)} has no {_MAIN[kind]}")
    try:
        goal: Goal = _KINDS[kind](**{key: _value(key, value) for key, value in values.items()})
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError(f"the goal {shown(given)} cannot be read: {error}") from None
    return goal


def _options(kind: str) -> list[Field[Any]]:
    """The options of a kind of goal."""
    return [field for field in fields(_KINDS[kind]) if field.metadata.get("stored", True)]


def _value(key: str, given: Any) -> Any:
    """An option as Python has it. The goal checks it."""
    if key in ("cost", "alpha") and isinstance(given, str) and ".." in given:
        given = given.split("..")
    if isinstance(given, (list, tuple)):
        return tuple(_value(key, end) for end in given)
    if key in ("by", "search") or not isinstance(given, str):
        return given
    if key in ("cost", "reference"):
        return cost(key, given)
    words = {"true": True, "false": False, "none": None}
    if given.lower() in words:
        return words[given.lower()]
    try:
        return float(given)
    except ValueError:
        return given


# ---- writing ----


def goal_text(goal: Goal) -> str:
    """The goal in the grammar; for a goal of the user's own, its repr."""
    kind = next((name for name, kind in _KINDS.items() if kind is type(goal)), None)
    if kind is None:
        return repr(goal)
    values = {
        field.name: _written(getattr(goal, field.name))
        for field in _options(kind)
        if field.default is MISSING or getattr(goal, field.name) != field.default
    }
    text = f"{kind}:{values.pop(_MAIN[kind])}" if kind in _MAIN else kind
    if kind == "tradeoff" and "reference" in values:
        text += f"@{values.pop('reference')}"
    return "".join([text, *(f",{key}={value}" for key, value in values.items())])


def _written(value: Any) -> str:
    if isinstance(value, tuple):
        return "..".join(map(_written, value))
    if isinstance(value, GivenAmount):
        return value.text.replace(" ", "")
    if isinstance(value, float) and float(f"{value:.12g}") == value:
        return f"{value:.12g}"
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)
