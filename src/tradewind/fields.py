"""How the fields of an event or a message are encoded as plain data, and decoded from it.

Every function raises TypeError or ValueError with the rule and what it got; the caller adds the
place. Encoding also accepts NumPy scalars, arrays and tuples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from enum import Enum
from operator import index
from typing import Any, NamedTuple

from tradewind.bounds import check_attributes, check_cost, check_value
from tradewind.plain import finite, located, mapping, plain, shown
from tradewind.types import Outcome, Usage


class FieldCodec(NamedTuple):
    """A pair of functions: to encode the value of one field, and to decode it from JSON."""

    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]
    keys: frozenset[str] = frozenset()  # if the value is a dataclass: its fields
    as_is: type | None = None  # JSON values of this type are decoded already


# ---- single values: one check serves both ways, as JSON holds plain Python values only ----


def _whole(value: Any) -> int:
    number: int = value if type(value) is int else _integer(value)
    if number < 0:
        raise ValueError(f"must be a whole number ≥ 0, but got {shown(value)}")
    return number


def _integer(value: Any) -> int:
    if not isinstance(value, bool):
        try:
            return index(value)  # accepts NumPy integers, refuses floats
        except TypeError:
            pass
    raise TypeError(f"must be a whole number, but got {shown(value)}")


def _number(value: Any) -> float:
    if type(value) is float:
        return finite(value)
    try:
        number = None if isinstance(value, (str, bytes, bool)) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None:
        raise TypeError(f"must be a number, but got {shown(value)}")
    return finite(number)


def _flag(value: Any) -> bool:
    if type(value) is bool:
        return value
    value = value.tolist() if hasattr(value, "tolist") else value  # a NumPy boolean
    if type(value) is not bool:
        raise TypeError(f"must be true or false, but got {shown(value)}")
    return value


def _text(value: Any) -> str:
    if type(value) is str:
        return value
    if not isinstance(value, str):
        raise TypeError(f"must be text, but got {shown(value)}")
    return str.__str__(value)


def _value(value: Any) -> float:
    number = _number(value)
    check_value("it", number)
    return number


def _cost(value: Any) -> float:
    number = _number(value)
    check_cost("it", number)
    return number


WHOLE = FieldCodec(_whole, _whole)
INTEGER = FieldCodec(_integer, _integer, as_is=int)
NUMBER = FieldCodec(_number, _number, as_is=float)  # JSON is read with finite numbers only
VALUE = FieldCodec(_value, _value)
COST = FieldCodec(_cost, _cost)
FLAG = FieldCodec(_flag, _flag, as_is=bool)
TEXT = FieldCodec(_text, _text, as_is=str)


def optional(codec: FieldCodec) -> FieldCodec:
    """The same field, which may also be None."""
    encode, decode, keys, as_is = codec
    return FieldCodec(
        lambda value: None if value is None else encode(value),
        lambda value: None if value is None else decode(value),
        keys,
        as_is,
    )


def one_of(kind: type[Enum]) -> FieldCodec:
    """A member of an enum, encoded as its value."""
    members = {member.value: member for member in kind}

    def decode(value: Any) -> Enum:
        if type(value) is not str or value not in members:
            raise ValueError(f"must be one of {', '.join(members)}, but got {shown(value)}")
        return members[value]

    return FieldCodec(lambda value: kind(value).value, decode)


# ---- lists and mappings ----

_SCALARS = frozenset((str, int, float, bool, type(None)))


def _config(value: Any) -> dict[str, Any]:
    if not _SCALARS.issuperset(map(type, mapping(value).values())):
        name, item = next(pair for pair in value.items() if type(pair[1]) not in _SCALARS)
        raise TypeError(
            f"{shown(name)}: must be text, a number, true, false or none, but got {shown(item)}"
        )
    return mapping(value)


def _many(one: Callable[[Any], Any], of: str) -> FieldCodec:
    """A list, decoded as a tuple."""

    def decode(value: Any) -> tuple[Any, ...]:
        if type(value) is not list:
            raise TypeError(f"must be a list of {of}, but got {shown(value)}")
        return tuple([one(item) for item in value])

    return FieldCodec(lambda value: list(decode(plain(value))), decode)


def _costs(value: Any) -> dict[str, float]:
    costs = {}
    for name, cost in mapping(value).items():
        try:
            costs[name] = _number(cost)
        except (TypeError, ValueError) as error:
            raise located(name, error) from None
    return costs


def _attributes(value: Any) -> dict[str, Any]:
    check_attributes(mapping(value))
    return mapping(value)


ATTRIBUTES = FieldCodec(lambda value: _attributes(plain(value)), _attributes)
PLAIN_DATA = FieldCodec(lambda value: mapping(plain(value)), mapping, as_is=dict)
CONFIG = FieldCodec(lambda value: _config(plain(value)), _config)
COSTS = FieldCodec(lambda value: _costs(plain(value)), _costs)
WHOLES = _many(_whole, "whole numbers")
NUMBERS = _many(_number, "numbers")
TEXTS = _many(_text, "texts")


# ---- dataclasses ----


class DataclassCodec:
    """Encodes a dataclass as a mapping of its fields, and decodes it.

    A field with a default is left out if it has that value, and may be missing. All other fields
    must be there. Keys that this version does not know go into the field `extra`, if the dataclass
    has one, including the unknown keys of a nested dataclass. Otherwise they are ignored, as the
    dataclass around this one keeps them."""

    def __init__(self, kind: type, codecs: Mapping[str, FieldCodec]) -> None:
        self._kind, self._codecs = kind, codecs
        self._keeps_extra = any(field.name == "extra" for field in fields(kind))
        self._defaults: dict[str, Any] = {}
        for field in fields(kind):
            if field.name in codecs and field.default is not MISSING:
                self._defaults[field.name] = codecs[field.name].encode(field.default)
            elif field.name in codecs and field.default_factory is not MISSING:
                self._defaults[field.name] = codecs[field.name].encode(field.default_factory())
        self._check = getattr(kind, "__post_init__", None)
        self._constants = {f.name: f.default for f in fields(kind) if f.default is not MISSING}
        self._mappings = [f.name for f in fields(kind) if f.default_factory is dict]
        self._required = codecs.keys() - self._defaults.keys()
        self._as_is = {key: codec.as_is for key, codec in codecs.items() if codec.as_is}

    def as_field(self) -> FieldCodec:
        """The codec of a field that holds such a dataclass."""
        return FieldCodec(self.encode, self.decode, frozenset(self._codecs))

    def encode(self, value: Any) -> dict[str, Any]:
        if not isinstance(value, self._kind):
            raise TypeError(f"must be of type {self._kind.__name__}, but got {shown(value)}")
        if self._check is not None:
            self._check(value)  # a mapping in it may have changed
        data: dict[str, Any] = {}
        for key, codec in self._codecs.items():
            try:
                encoded = codec.encode(getattr(value, key))
            except (TypeError, ValueError) as error:
                raise located(key, error) from None
            if key in self._required or encoded != self._defaults[key]:
                data[key] = encoded
        if extra := getattr(value, "extra", None):
            try:
                self._add_extra(data, mapping(plain(extra)))
            except (TypeError, ValueError) as error:
                raise located("extra", error) from None
        return data

    def _add_extra(self, data: dict[str, Any], extra: dict[str, Any]) -> None:
        """Put unknown fields back where they were."""
        for key, value in extra.items():
            if key not in self._codecs:
                data[key] = value
                continue
            known, nested = self._codecs[key].keys, data.get(key)
            can_merge = bool(known) and type(nested) is dict and type(value) is dict
            if not can_merge or value.keys() & known:
                raise ValueError(f"must hold unknown fields only, but got {key!r}: {shown(value)}")
            data[key] = {**data[key], **value}

    def decode(self, data: Any) -> Any:
        values: dict[str, Any] = {}
        extra: dict[str, Any] = {}
        as_is = self._as_is
        for key, value in mapping(data).items():
            if as_is.get(key) is type(value):
                values[key] = value
                continue
            codec = self._codecs.get(key)
            if codec is None:
                extra[key] = value
                continue
            try:
                values[key] = codec.decode(value)
            except (TypeError, ValueError) as error:
                raise located(key, error) from None
            if codec.keys and value is not None and not value.keys() <= codec.keys:
                extra[key] = {k: v for k, v in value.items() if k not in codec.keys}
        if not self._required <= values.keys():
            raise ValueError(f"needs the key {min(self._required - values.keys())!r}")
        if extra and self._keeps_extra:
            values["extra"] = extra
        return self._make(values)

    def _make(self, values: dict[str, Any]) -> Any:
        if self._check is not None:
            return self._kind(**values)
        state = self._constants | values
        for name in self._mappings:
            state.setdefault(name, {})
        made: Any = object.__new__(self._kind)  # __init__ of a frozen dataclass takes twice as long
        object.__setattr__(made, "__dict__", state)
        return made


OUTCOME = DataclassCodec(
    Outcome,
    {
        "value": NUMBER,
        "cost": optional(NUMBER),
        "folds": NUMBERS,
        "raced": FLAG,
        "share": NUMBER,
        "costs": COSTS,
        "attributes": ATTRIBUTES,
        "trainings": WHOLE,
    },
).as_field()
USAGE = DataclassCodec(
    Usage,
    {
        "wall": VALUE,
        "cpu": optional(VALUE),
        "concurrency": VALUE,
        "device": TEXT,
        "memory": optional(VALUE),
        "clock": TEXT,
        "data": optional(TEXT),
    },
).as_field()
