"""Events as lines of text: one JSON object each, in ASCII, and back.

`{"format":1,"event":"finished","number":3,"outcome":{"value":0.91,"cost":12.5}}`

Everything is read by one closed table; nothing is evaluated or unpickled. A field that has a
default in events.py or types.py is left out where it has that value, and may be left out; all
others must be there, and nothing else may be. An event of the same format that is not in the table
is `Unknown`. Text survives whatever it holds; only two surrogates that form a pair come back as
their character, as JSON cannot tell the two apart.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

from tradewind.errors import FormatError
from tradewind.log.events import (
    Abandoned,
    Claimed,
    Configured,
    Created,
    Enqueued,
    Event,
    Failed,
    Finished,
    Proposed,
    Requeued,
    Started,
    Unknown,
)
from tradewind.log.forms import (
    DATA,
    FLAG,
    INTEGER,
    PARAMS,
    REAL,
    REALS,
    TEXT,
    WHOLE,
    Form,
    mapping,
    member,
    optional,
    record,
    shown,
)
from tradewind.types import Origin, Outcome, Usage

__all__ = ["FORMAT", "decode", "encode"]

FORMAT = 1  # a change that older readers would misread gets the next number

_ORIGIN = member(Origin)
_OUTCOME = record(
    Outcome,
    {"value": REAL, "cost": optional(REAL), "folds": REALS, "raced": FLAG, "share": REAL},
)
_USAGE = record(Usage, {"wall": REAL, "cpu": optional(REAL), "concurrency": REAL, "device": TEXT})
_TABLE: dict[str, tuple[type, dict[str, Form]]] = {
    "created": (
        Created,
        {
            "space": DATA,
            "goal": DATA,
            "strategy": DATA,
            "maximize": FLAG,
            "seed": INTEGER,
            "at": REAL,
            "data_seed": optional(WHOLE),
        },
    ),
    "configured": (Configured, {"goal": optional(DATA), "strategy": optional(DATA)}),
    "enqueued": (Enqueued, {"params": PARAMS, "train_size": optional(REAL)}),
    "claimed": (Claimed, {"number": WHOLE, "driver": TEXT, "enqueued": optional(WHOLE)}),
    "proposed": (
        Proposed,
        {
            "number": WHOLE,
            "params": PARAMS,
            "origin": _ORIGIN,
            "seen": WHOLE,
            "handover": DATA,
            "max_cost": optional(REAL),
            "expected_cost": optional(REAL),
            "train_size": optional(REAL),
        },
    ),
    "started": (
        Started,
        {"number": WHOLE, "driver": TEXT, "leased": FLAG, "at": optional(REAL)},
    ),
    "finished": (
        Finished,
        {"number": WHOLE, "outcome": _OUTCOME, "usage": optional(_USAGE), "at": optional(REAL)},
    ),
    "failed": (
        Failed,
        {
            "number": WHOLE,
            "error": TEXT,
            "cost": optional(REAL),
            "penalize": FLAG,
            "usage": optional(_USAGE),
            "at": optional(REAL),
        },
    ),
    "abandoned": (
        Abandoned,
        {"number": WHOLE, "reason": TEXT, "cost": optional(REAL), "at": optional(REAL)},
    ),
    "requeued": (Requeued, {"number": WHOLE, "reason": TEXT, "retry": FLAG, "lost": FLAG}),
}
_READ = {name: record(kind, forms).read for name, (kind, forms) in _TABLE.items()}
_WRITE = {kind: (name, record(kind, forms).write) for name, (kind, forms) in _TABLE.items()}


def encode(event: Event) -> str:
    """The event as one line; TypeError or ValueError if something in it is not plain data."""
    name = type(event).__name__
    try:
        if isinstance(event, Unknown):
            return _ENCODER.encode(_unknown(event))
        if type(event) not in _WRITE:
            raise TypeError(f"must be an event, but got {shown(event)}")
        name, write = _WRITE[type(event)]
        return _ENCODER.encode({"format": FORMAT, "event": name, **write(event)})
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name!r} cannot be stored: {error}") from None


def decode(text: Any) -> Event:
    """The event of such a line, or `FormatError`."""
    what = "an event"
    try:
        if not isinstance(text, str):
            raise TypeError(f"it must be text, but got {shown(text)}")
        data = mapping(_DECODER.decode(text))
        name = _name(data)
        if name not in _READ:
            return Unknown(data)
        what = f"a {name!r} event"
        del data["format"], data["event"]
        event: Event = _READ[name](data)
    except (TypeError, ValueError, RecursionError) as error:
        raise FormatError(f"{what} cannot be read: {error}") from None
    return event


def _name(data: dict[str, Any]) -> str:
    version, name = data.get("format"), data.get("event")
    if type(version) is not int or version < 1:
        raise ValueError(f"'format' must be {FORMAT}, but got {shown(version)}")
    if version > FORMAT:
        raise ValueError(
            f"a newer version of Tradewind wrote it: its format is {shown(version)}, "
            f"and this version reads {FORMAT}"
        )
    if type(name) is not str:
        raise TypeError(f"'event' must be text, but got {shown(name)}")
    return name


def _unknown(event: Unknown) -> dict[str, Any]:
    data: dict[str, Any] = DATA.write(event.data)
    if _name(data) in _READ:
        raise ValueError(f"{data['event']!r} is a known event")
    return data


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"keys must be distinct, but {twice!r} is given twice")
    return data


def _finite(text: str) -> float:
    value = float(text)
    if value - value != 0.0:  # 1e999 is infinite
        raise ValueError(f"numbers must be finite, but got {shown(text)}")
    return value


def _not_json(constant: str) -> NoReturn:
    raise ValueError(f"numbers must be finite, but got {constant}")


_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
_DECODER = json.JSONDecoder(
    object_pairs_hook=_distinct, parse_float=_finite, parse_constant=_not_json
)
