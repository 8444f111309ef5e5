"""A space as plain data: a versioned form for storage, and short forms for people.

Everything is read by one closed table of types and keys; nothing is evaluated or unpickled.
What cannot be read is a `SpaceError` that names the place, the rule and the value.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from tradewind.errors import SpaceError
from tradewind.space.conditions import AtLeast, Condition, OneOf, number
from tradewind.space.configspace import from_configspace
from tradewind.space.parameters import (
    Bool,
    Categorical,
    Float,
    Int,
    Ordinal,
    Parameter,
    TrainSize,
)
from tradewind.space.reading import keys, mapping, parsed
from tradewind.space.space import Space

__all__ = ["FORMAT", "from_configspace", "from_dict", "from_json", "to_dict", "to_json"]

FORMAT = 1  # a change that older readers would misread gets the next number

# type -> the class, its keys that must be there, and those that may
_TYPES: dict[str, tuple[Callable[..., Parameter], tuple[str, ...], tuple[str, ...]]] = {
    "float": (Float, ("low", "high"), ("log", "when")),
    "int": (Int, ("low", "high"), ("log", "when")),
    "categorical": (Categorical, ("choices",), ("when",)),
    "ordinal": (Ordinal, ("choices",), ("when",)),
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
        "parameters": {name: _written(name, p) for name, p in space.items()},
        "forbid": [_written_conditions(clause) for clause in space.forbid],
    }


def to_json(space: Space) -> str:
    """`to_dict` as JSON text, in ASCII."""
    return json.dumps(to_dict(space), allow_nan=False)


def _written(name: str, p: Parameter) -> dict[str, Any]:
    if type(p) not in _NAMES:
        raise SpaceError(f"{name!r} is a {type(p).__name__}, which has no form as data")
    data: dict[str, Any] = {"type": _NAMES[type(p)]}
    if isinstance(p, (Float, Int)):
        data |= {"low": p.low, "high": p.high}
        if p.log:
            data["log"] = True
    elif isinstance(p, (Categorical, Ordinal, TrainSize)):
        data["choices"] = list(p.choices)
    if p.when:
        data["when"] = _written_conditions(p.when)
    return data


def _written_conditions(clause: Mapping[str, Condition]) -> dict[str, Any]:
    return {
        name: {"at_least": c.low} if isinstance(c, AtLeast) else {"in": list(c.values)}
        for name, c in clause.items()
    }


# ---- reading ----


def from_dict(given: Mapping[str, Any]) -> Space:
    """A space from what `to_dict` gives, or from names with short forms:

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
    data = mapping(given, "a space")
    version = data.get("format")
    if isinstance(version, bool) or not isinstance(version, (int, float)):
        return Space({name: _named(name, _short, form) for name, form in data.items()})
    if version != FORMAT:
        raise SpaceError(
            f"this version of Tradewind reads spaces of format {FORMAT}, but got "
            f"format {version!r}" + ("; a newer version wrote it" if version > FORMAT else "")
        )
    keys(data, "a space", ("format", "parameters"), ("forbid",))
    parameters = mapping(data["parameters"], "'parameters'")
    forbid = data.get("forbid", [])
    if not isinstance(forbid, list):
        raise SpaceError(f"'forbid' must be a list, but got {forbid!r}")
    return Space(
        {name: _named(name, _spelled_out, form) for name, form in parameters.items()},
        forbid=[_read_conditions(clause, "'forbid'") for clause in forbid],
    )


def from_json(text: str) -> Space:
    """A space from the text of `to_json`, or from short forms written as JSON."""
    if not isinstance(text, str):
        raise TypeError(f"from_json() takes text, but got {text!r}")
    return from_dict(parsed(text, "a space"))


def _short(form: Any) -> Parameter:
    if type(form) in _NAMES:
        parameter: Parameter = form
        return parameter
    if form is bool:
        return Bool()
    if isinstance(form, Mapping):
        return _spelled_out(form)
    if isinstance(form, tuple) or (isinstance(form, list) and _is_range(form) and len(form) == 3):
        if not _is_range(form):
            raise SpaceError(
                "a tuple is a range, (low, high) or (low, high, 'log') with two numbers, but got "
                f"{form!r}; choices are a list"
            )
        low, high, *log = form
        whole = isinstance(number(low), int) and isinstance(number(high), int)
        return (Int if whole else Float)(low, high, log=bool(log))
    if isinstance(form, list):
        return Categorical(form)
    raise SpaceError(
        "a parameter is written as a tuple (a range), a list (choices), bool, "
        f"a mapping with a 'type', or a parameter such as Float(0, 1), but got {form!r}"
    )


def _is_range(form: list[Any] | tuple[Any, ...]) -> bool:
    numbers = len(form) in (2, 3) and number(form[0]) is not None and number(form[1]) is not None
    return numbers and (len(form) == 2 or (isinstance(form[2], str) and form[2] == "log"))


def _spelled_out(form: Any) -> Parameter:
    data = mapping(form, "a parameter")
    kind = data.get("type")
    if not isinstance(kind, str) or kind not in _TYPES:
        raise SpaceError(f"'type' must be one of {', '.join(_TYPES)}, but got {form!r}")
    make, needed, optional = _TYPES[kind]
    keys(data, f"type {kind!r}", ("type", *needed), optional)
    given = {key: value for key, value in data.items() if key != "type"}
    if "when" in given:
        given["when"] = _read_conditions(given["when"], "'when'")
    if "choices" in given and not isinstance(given["choices"], (list, tuple)):
        raise SpaceError(f"'choices' must be a list, but got {given['choices']!r}")
    try:
        return make(**given)
    except TypeError as error:  # only the type of `log` is left to go wrong
        raise SpaceError(str(error)) from None


def _read_conditions(given: Any, what: str) -> dict[str, Any]:
    """`{"kernel": {"in": ["poly"]}, "layers": {"at_least": 2}}`; also plain values and lists."""
    read = {}
    for name, form in mapping(given, what).items():
        try:
            read[name] = _read_condition(form)
        except SpaceError as error:
            raise SpaceError(f"{what} {name!r}: {error}") from None
    return read


def _read_condition(form: Any) -> Any:
    if not isinstance(form, Mapping):
        return form
    if form.keys() == {"in"} and isinstance(form["in"], list):
        return OneOf(tuple(form["in"]))
    if form.keys() == {"at_least"} and number(form["at_least"]) is not None:
        return AtLeast(form["at_least"])
    raise SpaceError(
        f"a condition is {{'in': [values]}} or {{'at_least': number}}, but got {form!r}"
    )


def _named(name: str, read: Callable[[Any], Parameter], form: Any) -> Parameter:
    try:
        return read(form)
    except SpaceError as error:
        raise SpaceError(f"{name!r}: {error}") from None
