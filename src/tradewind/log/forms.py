"""How the fields of events are written as plain data and read from it.

A form is a pair of functions. Both raise TypeError or ValueError with the rule and what they got;
whoever called them adds the place. On the way out they take NumPy's scalars, arrays and tuples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from enum import Enum
from math import isfinite
from operator import index
from typing import Any, NamedTuple

DEPTH = 100  # of nested data: far more than a strategy hands over, far less than JSON can read


class Form(NamedTuple):
    write: Callable[[Any], Any]
    read: Callable[[Any], Any]
    keys: frozenset[str] = frozenset()  # the keys of a nested record


# ---- scalars: one check serves both ways, as JSON gives nothing but plain Python ----


def _whole(value: Any) -> int:
    number: int = value if type(value) is int else _integer(value)
    if number < 0:
        raise ValueError(f"must be a whole number from 0 on, but got {shown(value)}")
    return number


def _integer(value: Any) -> int:
    if not isinstance(value, bool):
        try:
            return index(value)  # takes NumPy's integers, refuses floats
        except TypeError:
            pass
    raise TypeError(f"must be a whole number, but got {shown(value)}")


def _real(value: Any) -> float:
    number: float
    if type(value) is float:
        number = value
    elif isinstance(value, (str, bool)):
        raise TypeError(f"must be a number, but got {shown(value)}")
    else:
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            raise TypeError(f"must be a number, but got {shown(value)}") from None
    if not isfinite(number):
        raise ValueError(f"must be a finite number, but got {number!r}")
    return number


def _flag(value: Any) -> bool:
    if type(value) is bool:
        return value
    value = value.tolist() if hasattr(value, "tolist") else value  # NumPy's
    if type(value) is not bool:
        raise TypeError(f"must be true or false, but got {shown(value)}")
    return value


def _text(value: Any) -> str:
    if type(value) is str:
        return value
    if not isinstance(value, str):
        raise TypeError(f"must be text, but got {shown(value)}")
    return str.__str__(value)


def _both(check: Callable[[Any], Any]) -> Form:
    return Form(check, check)


WHOLE, INTEGER, REAL = _both(_whole), _both(_integer), _both(_real)
FLAG, TEXT = _both(_flag), _both(_text)


# ---- composites ----


def _plain(value: Any, depth: int = 0) -> Any:
    """`value` as what JSON can say."""
    kind = type(value)
    if value is None or kind is str or kind is int or kind is bool:
        return value
    if isinstance(value, float):
        return _real(value)
    if depth > DEPTH:
        raise ValueError(f"must not be nested more than {DEPTH} deep")
    if isinstance(value, Mapping):
        return {_text(key): _plain_at(key, item, depth) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, depth + 1) for item in value]
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    unpacked = value.tolist() if hasattr(value, "tolist") else value  # NumPy's and its like
    if type(unpacked) is kind:
        raise TypeError(
            f"must be plain data (numbers, text, lists, mappings), but got {shown(value)}"
        )
    return _plain(unpacked, depth + 1)


def _plain_at(key: Any, item: Any, depth: int) -> Any:
    try:
        return _plain(item, depth + 1)
    except (TypeError, ValueError) as error:
        raise _at(key, error) from None


def mapping(value: Any) -> dict[str, Any]:
    """`value`, if it is one of JSON's."""
    if type(value) is not dict:
        raise TypeError(f"must be a mapping, but got {shown(value)}")
    return value


def _plain_mapping(value: Any) -> dict[str, Any]:
    return mapping(_plain(value))


_SCALARS = frozenset((str, int, float, bool, type(None)))


def _params(value: Any) -> dict[str, Any]:
    for name, item in mapping(value).items():
        if type(item) not in _SCALARS:
            raise TypeError(
                f"{name!r}: must be text, a number, true, false or none, but got {shown(item)}"
            )
    return mapping(value)


def _reals(value: Any) -> tuple[float, ...]:
    if type(value) is not list:
        raise TypeError(f"must be a list of numbers, but got {shown(value)}")
    return tuple([_real(item) for item in value])


DATA = Form(_plain_mapping, mapping)
PARAMS = Form(lambda value: _params(_plain(value)), _params)
REALS = Form(lambda value: list(_reals(_plain(value))), _reals)


def optional(form: Form) -> Form:
    write, read, keys = form
    return Form(
        lambda value: None if value is None else write(value),
        lambda value: None if value is None else read(value),
        keys,
    )


def member(kind: type[Enum]) -> Form:
    members = {member.value: member for member in kind}

    def read(value: Any) -> Enum:
        if type(value) is not str or value not in members:
            raise ValueError(f"must be one of {', '.join(members)}, but got {shown(value)}")
        return members[value]

    return Form(lambda value: kind(value).value, read)


def record(kind: type, forms: Mapping[str, Form]) -> Form:
    """A dataclass as a mapping of its fields. A field that has a default is left out if it has that
    value, and may be missing. All other fields must be there.

    If the dataclass has a field `extra`, it keeps the keys that this version does not know, those
    of nested records included. Otherwise there must be none."""
    defaults: dict[str, Any] = {}
    for field in fields(kind):
        if field.name == "extra":
            continue
        if field.default is not MISSING:
            defaults[field.name] = forms[field.name].write(field.default)
        elif field.default_factory is not MISSING:
            defaults[field.name] = forms[field.name].write(field.default_factory())
    needed = forms.keys() - defaults.keys()
    keeps_extra = any(field.name == "extra" for field in fields(kind))

    def write(value: Any) -> dict[str, Any]:
        if not isinstance(value, kind):
            raise TypeError(f"must be of type {kind.__name__}, but got {shown(value)}")
        data: dict[str, Any] = {}
        for key, form in forms.items():
            try:
                written = form.write(getattr(value, key))
            except (TypeError, ValueError) as error:
                raise _at(key, error) from None
            if key in needed or written != defaults[key]:
                data[key] = written
        if keeps_extra and value.extra:
            _merge(data, _plain_mapping(value.extra))
        return data

    def read(data: Any) -> Any:
        given: dict[str, Any] = {}
        extra: dict[str, Any] = {}
        for key, value in mapping(data).items():
            form = forms.get(key)
            if form is None:
                extra[key] = value
                continue
            if keeps_extra and form.keys and type(value) is dict and not value.keys() <= form.keys:
                extra[key] = {k: v for k, v in value.items() if k not in form.keys}
                value = {k: v for k, v in value.items() if k in form.keys}
            try:
                given[key] = form.read(value)
            except (TypeError, ValueError) as error:
                raise _at(key, error) from None
        if extra and not keeps_extra:
            known = ", ".join(map(repr, forms))
            raise ValueError(f"has no key {min(extra)!r}: it takes {known}")
        if not needed <= given.keys():
            raise ValueError(f"needs the key {min(needed - given.keys())!r}")
        return kind(**given, extra=extra) if extra else kind(**given)

    return Form(write, read, frozenset(forms))


def _merge(data: dict[str, Any], extra: dict[str, Any]) -> None:
    """Add what is not in the data, one level deep."""
    for key, value in extra.items():
        if key not in data:
            data[key] = value
        elif isinstance(data[key], dict) and isinstance(value, dict):
            data[key] = value | data[key]


def _at(key: Any, error: Exception) -> Exception:
    kind = TypeError if isinstance(error, TypeError) else ValueError
    return kind(f"{key!r}: {error}")


def shown(value: Any) -> str:
    """`value` for a message, which is not to be longer than a line."""
    try:
        text = repr(value)
    except ValueError:  # a whole number of more digits than Python writes
        return "a huge number"
    return text if len(text) <= 80 else text[:77] + "..."
