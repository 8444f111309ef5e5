"""Spaces from ConfigSpace's JSON files, of both its formats (0.2 to 0.4, and 1.x).

Defaults, names and metadata are left out. A feature without a counterpart here (distributions
other than uniform, steps on a log scale, alternatives over several parents, relations) raises a
`SpaceError`: a space that silently differs from its file would be worse.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from os import PathLike
from typing import Any

from tradewind.errors import ConfigError, SpaceError
from tradewind.paths import open_file
from tradewind.plain import LONGEST, shown
from tradewind.space.conditions import AtLeast, Condition, OneOf
from tradewind.space.formats import check_mapping, read_json
from tradewind.space.parameters import Categorical, Float, Int, Ordinal
from tradewind.space.scales import key
from tradewind.space.space import Space
from tradewind.types import Value

_MOST_LISTED = 1000  # the most values that a condition can list
_MOST_LISTED_IN_ALL = 1_000_000  # about 2 s of reading, and a hundred times more than any real file
_Kind = Float | Int | Categorical | Ordinal
_Clause = dict[str, Condition]  # conditions on several parameters that must all hold


def from_configspace(source: str | PathLike[str] | Mapping[str, Any]) -> Space:
    """A space from a ConfigSpace JSON file (a path), its text or its parsed content."""
    if isinstance(source, str) and source.lstrip().startswith("{"):
        source = read_json(source, "a ConfigSpace file")
    elif isinstance(source, (str, PathLike)):
        source = read_json(_read_text(source), "a ConfigSpace file")
    data = check_mapping(source, "a ConfigSpace file")
    kinds: dict[str, _Kind] = {}
    for item in _items(data, "hyperparameters"):
        name = _key(item, "name", str)
        if name in kinds:
            raise SpaceError(f"hyperparameter names must be distinct, but {name!r} is given twice")
        try:
            kinds[name] = _read_parameter(item)
        except (SpaceError, TypeError) as error:
            raise SpaceError(f"{name!r}: {error}") from None
    when: dict[str, _Clause] = {name: {} for name in kinds}
    listed = 0  # values, or at least one, in all conditions
    for item in _items({"conditions": [], **data}, "conditions"):
        child = _key(item, "child", str)
        if child not in kinds:
            raise SpaceError(f"a condition is for {child!r}, which is not a hyperparameter")
        try:
            when[child] = _join_all([when[child], _read_condition(item, kinds)])
        except SpaceError as error:
            raise SpaceError(f"{child!r}: {error}") from None
        listed += sum(len(c.values) if isinstance(c, OneOf) else 1 for c in when[child].values())
        if listed > _MOST_LISTED_IN_ALL:
            raise SpaceError(
                f"the conditions of a file can list up to {_MOST_LISTED_IN_ALL} values in all"
            )
    forbid = [_read_forbidden(item) for item in _items({"forbiddens": [], **data}, "forbiddens")]
    return Space({name: replace(p, when=when[name]) for name, p in kinds.items()}, forbid=forbid)


# ---- parameters ----


def _read_parameter(item: Mapping[str, Any]) -> _Kind:
    match _key(item, "type", str):
        case "uniform_float":
            bounds = _key(item, "lower"), _key(item, "upper")
            return Float(*bounds, log=item.get("log", False), step=item.get("q"))
        case "uniform_int":
            bounds, step = (_key(item, "lower"), _key(item, "upper")), item.get("q")
            return Int(*bounds, log=item.get("log", False), step=1 if step is None else step)
        case "categorical":
            _refuse_weights(item)
            return Categorical(_list(item, "choices"))
        case "ordinal":
            return Ordinal(_list(item, "sequence"))
        case "constant" | "unparametrized":
            return Categorical([_key(item, "value")])
        case kind:
            raise SpaceError(
                "types uniform_float, uniform_int, categorical, ordinal and constant can be "
                f"read, but got {kind!r}"
            )


def _refuse_weights(item: Mapping[str, Any]) -> None:
    for name in ("weights", "probabilities"):
        weights = item.get(name)
        if weights is None:
            continue
        if not isinstance(weights, (list, tuple)) or any(w != weights[0] for w in weights):
            raise SpaceError(
                f"all choices are equally likely here, but got {name}={shown(weights)}"
            )


# ---- conditions ----


def _read_condition(item: Mapping[str, Any], kinds: Mapping[str, _Kind]) -> _Clause:
    """The conditions on each parent that together mean `item`."""
    kind = _key(item, "type", str)
    if kind in ("AND", "OR"):
        parts = [_read_condition(part, kinds) for part in _items(item, "conditions")]
        return _join_all(parts) if kind == "AND" else _join_any(parts, kinds)
    name = _key(item, "parent", str)
    if name not in kinds:
        raise SpaceError(f"its parent {name!r} is not a hyperparameter")
    try:
        return {name: _read_comparison(kind, item, kinds[name])}
    except (SpaceError, ConfigError) as error:
        raise SpaceError(f"condition {kind} on {name!r}: {error}") from None


def _read_comparison(kind: str, item: Mapping[str, Any], parent: _Kind) -> Condition:
    if kind == "IN":
        return OneOf(tuple(_list(item, "values")))
    if kind not in ("EQ", "NEQ", "GT", "LT"):
        raise SpaceError("the kinds EQ, NEQ, IN, GT, LT, AND and OR can be read")
    value = parent.check(_key(item, "value"))
    if kind == "EQ":
        return OneOf((value,))
    if kind == "NEQ":
        equal = OneOf((value,))
        return _one_of(v for v in _values(parent) if not equal.holds(v))
    if isinstance(parent, Categorical):
        raise SpaceError("its values have no order")
    if kind == "GT" and not isinstance(parent, Ordinal):
        assert isinstance(value, (int, float))
        return AtLeast(value + 1 if isinstance(parent, Int) else _next(parent, value))
    values = _values(parent)
    place = list(map(key, values)).index(key(value))  # ordinals are compared by place
    return _one_of(values[place + 1 :] if kind == "GT" else values[:place])


def _next(parameter: Float, value: float) -> float:
    """The smallest value above the given one after rounding to 12 digits."""
    below, above = parameter.to_unit(value), 1.0
    value = parameter.from_unit(below)
    if value == parameter.high:
        raise SpaceError(f"it can never hold: nothing is above {value!r}")
    while below < (middle := (below + above) / 2) < above:
        if parameter.from_unit(middle) > value:
            above = middle
        else:
            below = middle
    return parameter.from_unit(above)


def _join_all(clauses: Iterable[_Clause]) -> _Clause:
    """A clause that holds if all of them hold, with one condition per parameter."""
    result: _Clause = {}
    for clause in clauses:
        for name, c in clause.items():
            result[name] = _join_both(result[name], c) if name in result else c
    return result


def _join_both(a: Condition, b: Condition) -> Condition:
    if isinstance(a, AtLeast) and isinstance(b, AtLeast):
        return AtLeast(max(a.low, b.low))
    choice, other = (a, b) if isinstance(a, OneOf) else (b, a)
    assert isinstance(choice, OneOf)
    return _one_of(v for v in choice.values if other.holds(v))


def _join_any(clauses: list[_Clause], kinds: Mapping[str, _Kind]) -> _Clause:
    """A clause that holds if any of them holds. All must be about the same parameter."""
    names = {name for clause in clauses for name in clause}
    if len(names) != 1 or not all(clauses):
        raise SpaceError(
            f"an OR must be over the values of one parent, but got {shown(sorted(names))}: "
            "here all conditions of a parameter must hold at once"
        )
    (name,) = names
    options = [clause[name] for clause in clauses]
    lows = [c.low for c in options if isinstance(c, AtLeast)]
    if len(lows) == len(options):
        return {name: AtLeast(min(lows))}
    if not lows:
        return {name: _one_of(v for c in options if isinstance(c, OneOf) for v in c.values)}
    return {name: _one_of(v for v in _values(kinds[name]) if any(c.holds(v) for c in options))}


def _values(parameter: _Kind) -> list[Value]:
    """All values of a finite parameter with few of them."""
    if isinstance(parameter, Float) and parameter.step is None:
        raise SpaceError("on a float only GT has a counterpart (at_least)")
    if parameter.cells > _MOST_LISTED:
        raise SpaceError(
            f"a condition can list at most {_MOST_LISTED} values, but there are {parameter.cells}"
        )
    if isinstance(parameter, Float):
        return [parameter.grid_value(cell) for cell in range(parameter.cells)]
    if isinstance(parameter, Int):
        return list(range(parameter.low, parameter.high + 1, parameter.step))
    return list(parameter.choices)


def _one_of(values: Iterable[Value]) -> OneOf:
    allowed = tuple(values)
    if not allowed:
        raise SpaceError("it can never hold: no value is left")
    return OneOf(allowed)


# ---- forbidden combinations ----


def _read_forbidden(item: Mapping[str, Any]) -> _Clause:
    kind = _key(item, "type", str)
    if kind == "AND":
        return _join_all(_read_forbidden(part) for part in _items(item, "clauses"))
    if kind == "EQUALS":
        return {_key(item, "name", str): OneOf((_key(item, "value"),))}
    if kind == "IN":
        return {_key(item, "name", str): OneOf(tuple(_list(item, "values")))}
    raise SpaceError(
        "forbidden clauses EQUALS, IN and AND can be read, but got "
        f"{kind!r}: values of two parameters cannot be compared here"
    )


# ---- files and their parts ----


def _read_text(path: str | PathLike[str]) -> str:
    try:
        with open_file(path) as file:
            return file.read(LONGEST + 1).decode(
                "utf-8-sig"
            )  # some editors write a byte order mark
    except UnicodeDecodeError as error:
        raise SpaceError(f"a ConfigSpace file must be UTF-8 text, but got {error}") from None
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:  # not a file, or not even a path
        raise SpaceError(f"{shown(path)} cannot be read as a ConfigSpace file: {error}") from None


def _items(data: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    return [check_mapping(item, f"an item of {name!r}") for item in _list(data, name)]


def _list(item: Mapping[str, Any], name: str) -> list[Any]:
    given = _key(item, name)
    if not isinstance(given, (list, tuple)):
        raise SpaceError(f"{name!r} must be a list, but got {shown(given)}")
    return list(given)


def _key(item: Mapping[str, Any], name: str, kind: type = object) -> Any:
    if name not in item:
        raise SpaceError(f"the key {name!r} is missing in {shown(dict(item))}")
    if not isinstance(item[name], kind):
        raise SpaceError(f"{name!r} must be a {kind.__name__}, but got {shown(item[name])}")
    return item[name]
