"""A space as plain data: a versioned form for storage, and short forms for people.

One closed table of types and keys decides what can be read; nothing is evaluated or unpickled.
Anything else raises a `SpaceError` with the place, the rule and the value.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tradewind.checks import suggest
from tradewind.errors import SpaceError
from tradewind.plain import parse_json, shown
from tradewind.space.conditions import AtLeast, Condition, OneOf, number
from tradewind.space.parameters import (
    Bool,
    Categorical,
    Float,
    Int,
    Ordinal,
    Parameter,
    TrainSize,
)
from tradewind.space.space import Space

FORMAT = 1  # increases with each change that older readers would misread

# type -> the class, its required keys, its optional keys
_TYPES: dict[str, tuple[Callable[..., Parameter], tuple[str, ...], tuple[str, ...]]] = {
    "float": (Float, ("low", "high"), ("log", "step", "drives_cost", "when")),
    "int": (Int, ("low", "high"), ("log", "step", "drives_cost", "when")),
    "categorical": (Categorical, ("choices",), ("when",)),
    "ordinal": (Ordinal, ("choices",), ("drives_cost", "when")),
    "bool": (Bool, (), ("when",)),
    "train_size": (TrainSize, ("choices",), ()),
}
_NAMES = {kind: name for name, (kind, _, _) in _TYPES.items()}


# ---- writing ----


def to_dict(space: Space) -> dict[str, Any]:
    """The space as plain data, in the declared order.

    `{"format": 1, "parameters": {"degree": {"type": "int", "low": 2, "high": 5,
    "when": {"kernel": {"in": ["poly"]}}}, ...}, "forbid": [{"C": {"at_least": 10.0}}]}`
    """
    return {
        "format": FORMAT,
        "parameters": {name: _parameter_to_dict(name, p) for name, p in space.items()},
        "forbid": [_conditions_to_dict(clause) for clause in space.forbid],
    }


def to_json(space: Space) -> str:
    """`to_dict` as JSON text, in ASCII."""
    return json.dumps(to_dict(space), allow_nan=False)


def _parameter_to_dict(name: str, p: Parameter) -> dict[str, Any]:
    if type(p) not in _NAMES:
        raise SpaceError(f"{name!r} is a {type(p).__name__}, which cannot be written as data")
    data: dict[str, Any] = {"type": _NAMES[type(p)]}
    if isinstance(p, (Float, Int)):
        data |= {"low": p.low, "high": p.high}
        if p.log:
            data["log"] = True
        if p.step not in (None, 1) or (isinstance(p, Float) and p.step is not None):
            data["step"] = p.step
    elif isinstance(p, (Categorical, Ordinal, TrainSize)):
        data["choices"] = list(p.choices)
    if isinstance(p, (Float, Int, Ordinal)) and p.drives_cost:
        data["drives_cost"] = True
    if p.when:
        data["when"] = _conditions_to_dict(p.when)
    return data


def _conditions_to_dict(clause: Mapping[str, Condition]) -> dict[str, Any]:
    return {
        name: {"at_least": c.low} if isinstance(c, AtLeast) else {"in": list(c.values)}
        for name, c in clause.items()
    }


# ---- reading ----


def from_dict(given: Mapping[str, Any]) -> Space:
    """A space from what `to_dict` returns, or from names with short forms:

    | form                              | parameter                                           |
    |-----------------------------------|-----------------------------------------------------|
    | a tuple `(low, high)`             | a range: `Int` for whole numbers, `Float` otherwise |
    | a tuple `(low, high, "log")`      | the same on a log scale                             |
    | a list `[low, high, "log"]`       | as the tuple, for JSON, which has no tuples         |
    | any other list                    | `Categorical`, so `[1, 2]` is the choice of 1 and 2 |
    | `bool`                            | `Bool()`                                            |
    | a mapping `{"type": "int", ...}`  | as in `to_dict`                                     |
    | a parameter                       | itself                                              |

    A mapping whose "format" is a number is read as the form of `to_dict`.
    """
    if isinstance(given, Space):
        return given
    data = check_mapping(given, "a space")
    version = data.get("format")
    if isinstance(version, bool) or not isinstance(version, (int, float)):
        return Space({name: _read_at(name, _read_short, form) for name, form in data.items()})
    if version != FORMAT:
        raise SpaceError(
            f"this version of Tradewind reads spaces of format {FORMAT}, but got "
            f"format {version!r}" + ("; a newer version wrote it" if version > FORMAT else "")
        )
    _check_keys(data, "a space", ("format", "parameters"), ("forbid",))
    parameters = check_mapping(data["parameters"], "'parameters'")
    forbid = data.get("forbid", [])
    if not isinstance(forbid, list):
        raise SpaceError(f"'forbid' must be a list, but got {shown(forbid)}")
    return Space(
        {name: _read_at(name, _read_parameter, form) for name, form in parameters.items()},
        forbid=[_read_conditions(clause, "'forbid'") for clause in forbid],
    )


def from_json(text: str) -> Space:
    """A space from the text of `to_json`, or from short forms written as JSON."""
    if not isinstance(text, str):
        raise TypeError(f"from_json() takes text, but got {shown(text)}")
    return from_dict(read_json(text, "a space"))


def read_json(text: str, what: str) -> Any:
    """JSON text as data; errors begin with `what`."""
    try:
        return parse_json(text)
    except ValueError as error:
        raise SpaceError(f"{what} must be JSON text, but it cannot be read: {error}") from None


def _read_short(form: Any) -> Parameter:
    if type(form) in _NAMES:
        parameter: Parameter = form
        return parameter
    if form is bool:
        return Bool()
    if isinstance(form, Mapping):
        return _read_parameter(form)
    if isinstance(form, tuple) or is_range(form):
        if not is_range(form):
            raise SpaceError(
                "a tuple is a range, (low, high) or (low, high, 'log') with two numbers, but got "
                f"{shown(form)}; choices are a list"
            )
        low, high, *log = form
        whole = isinstance(number(low), int) and isinstance(number(high), int)
        return (Int if whole else Float)(low, high, log=bool(log))
    if isinstance(form, list):
        return Categorical(form)
    raise SpaceError(
        "a parameter is written as a tuple (a range), a list (choices), bool, "
        f"a mapping with a 'type', or a parameter such as Float(0, 1), but got {shown(form)}"
    )


def is_range(form: Any) -> bool:
    """Whether it is a tuple `(low, high)`, or a tuple or list `(low, high, "log")`."""
    if not isinstance(form, (list, tuple)) or len(form) not in (2, 3):
        return False
    if number(form[0]) is None or number(form[1]) is None:
        return False
    if len(form) == 2:
        return isinstance(form, tuple)
    return isinstance(form[2], str) and form[2] == "log"


def _read_parameter(form: Any) -> Parameter:
    data = check_mapping(form, "a parameter")
    kind = data.get("type")
    if not isinstance(kind, str) or kind not in _TYPES:
        raise SpaceError(f"'type' must be one of {', '.join(_TYPES)}, but got {shown(form)}")
    make, required, optional = _TYPES[kind]
    _check_keys(data, f"type {kind!r}", ("type", *required), optional)
    given = {key: value for key, value in data.items() if key != "type"}
    if "when" in given:
        given["when"] = _read_conditions(given["when"], "'when'")
    if "choices" in given and not isinstance(given["choices"], (list, tuple)):
        raise SpaceError(f"'choices' must be a list, but got {shown(given['choices'])}")
    try:
        return make(**given)
    except TypeError as error:  # `log` or `drives_cost` is not a bool; all else raises SpaceError
        raise SpaceError(str(error)) from None


def _read_conditions(given: Any, what: str) -> dict[str, Any]:
    """`{"kernel": {"in": ["poly"]}, "layers": {"at_least": 2}}`; also plain values and lists."""
    conditions = {}
    for name, form in check_mapping(given, what).items():
        try:
            conditions[name] = _read_condition(form)
        except SpaceError as error:
            raise SpaceError(f"{what} {name!r}: {error}") from None
    return conditions


def _read_condition(form: Any) -> Any:
    if not isinstance(form, Mapping):
        return form
    if form.keys() == {"in"} and isinstance(form["in"], list):
        return OneOf(tuple(form["in"]))
    if form.keys() == {"at_least"} and number(form["at_least"]) is not None:
        return AtLeast(form["at_least"])
    raise SpaceError(
        f"a condition is {{'in': [values]}} or {{'at_least': number}}, but got {shown(form)}"
    )


def _read_at(name: str, read: Callable[[Any], Parameter], form: Any) -> Parameter:
    """The parameter that `read` returns; its errors begin with `name`."""
    try:
        return read(form)
    except SpaceError as error:
        raise SpaceError(f"{name!r}: {error}") from None


def check_mapping(given: Any, what: str) -> Mapping[str, Any]:
    """`given`, if it is a mapping with text as keys."""
    if not isinstance(given, Mapping):
        raise SpaceError(f"{what} must be a mapping, but got {shown(given)}")
    for name in given:
        if not isinstance(name, str):
            raise SpaceError(f"{what} must be keyed by text, but got {name!r}")
    return given


def _check_keys(
    given: Mapping[str, Any], what: str, required: Sequence[str], optional: Sequence[str]
) -> None:
    """Refuse unknown keys, so that a typo does not go unnoticed, and require the others."""
    for key in required:
        if key not in given:
            raise SpaceError(f"{what} needs the key {key!r}, but got {shown(dict(given))}")
    for key in given:
        if key not in required and key not in optional:
            allowed = ", ".join(map(repr, (*required, *optional)))
            near = suggest(key, (*required, *optional))
            raise SpaceError(f"{what} has no key {key!r}{near}: it takes {allowed}")
