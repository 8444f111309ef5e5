"""Events as lines of text, and back. A line is one JSON object in ASCII.

`{"format":1,"event":"finished","number":3,"outcome":{"value":0.91,"cost":12.5}}`

One closed table says how each event is decoded; nothing is evaluated or unpickled. A field that has
a default in events.py or types.py is left out if it has that value, and may be missing. All other
fields must be there. What a newer version added is kept: unknown fields in the event's `extra`, an
unknown event as `Unknown`. Any text comes back as it was, with one exception: two surrogates that
form a pair come back as the character they stand for, because JSON cannot tell the two apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tradewind.errors import FormatError, OutcomeError
from tradewind.fields import (
    ATTRIBUTES,
    CONFIG,
    COST,
    FLAG,
    INTEGER,
    NUMBER,
    OUTCOME,
    PLAIN_DATA,
    TEXT,
    USAGE,
    VALUE,
    WHOLE,
    WHOLES,
    DataclassCodec,
    FieldCodec,
    one_of,
    optional,
)
from tradewind.log.events import (
    Abandoned,
    Claimed,
    Configured,
    Confirming,
    Created,
    Enqueued,
    Event,
    Failed,
    FinalTested,
    FinalTrained,
    Finished,
    Paused,
    Proposed,
    Requeued,
    Resumed,
    Spent,
    Started,
    Stopped,
    Unknown,
)
from tradewind.plain import mapping, parse_json, parse_together, plain, shown, write_json
from tradewind.types import Origin

__all__ = ["FORMAT", "as_stored", "decode", "decode_lines", "encode"]

FORMAT = 1  # raise it for a change that older versions would misread

_ORIGIN = one_of(Origin)
_EVENTS: dict[str, tuple[type, dict[str, FieldCodec]]] = {
    "created": (
        Created,
        {
            "space": PLAIN_DATA,
            "goal": PLAIN_DATA,
            "strategy": PLAIN_DATA,
            "maximize": FLAG,
            "seed": INTEGER,
            "at": NUMBER,
            "data_seed": optional(WHOLE),
            "cost": TEXT,
            "per_training": FLAG,
            "metric": optional(TEXT),
        },
    ),
    "configured": (
        Configured,
        {
            "goal": optional(PLAIN_DATA),
            "strategy": optional(PLAIN_DATA),
            "metric": optional(TEXT),
        },
    ),
    "enqueued": (Enqueued, {"params": CONFIG, "train_size": optional(NUMBER)}),
    "claimed": (Claimed, {"number": WHOLE, "driver": TEXT, "enqueued": optional(WHOLE)}),
    "proposed": (
        Proposed,
        {
            "number": WHOLE,
            "params": CONFIG,
            "origin": _ORIGIN,
            "seen": WHOLE,
            "handover": PLAIN_DATA,
            "max_cost": optional(NUMBER),
            "expected_cost": optional(COST),
            "train_size": optional(NUMBER),
        },
    ),
    "started": (
        Started,
        {"number": WHOLE, "driver": TEXT, "leased": FLAG, "at": optional(NUMBER)},
    ),
    "finished": (
        Finished,
        {"number": WHOLE, "outcome": OUTCOME, "usage": optional(USAGE), "at": optional(NUMBER)},
    ),
    "failed": (
        Failed,
        {
            "number": WHOLE,
            "error": TEXT,
            "cost": optional(COST),
            "penalize": FLAG,
            "usage": optional(USAGE),
            "at": optional(NUMBER),
        },
    ),
    "abandoned": (
        Abandoned,
        {"number": WHOLE, "reason": TEXT, "cost": optional(COST), "at": optional(NUMBER)},
    ),
    "spent": (Spent, {"number": WHOLE, "cost": COST, "at": optional(NUMBER)}),
    "requeued": (Requeued, {"number": WHOLE, "reason": TEXT, "retry": FLAG, "lost": FLAG}),
    "stopped": (Stopped, {"reason": TEXT, "at": optional(NUMBER)}),
    "paused": (Paused, {"reason": TEXT, "at": optional(NUMBER)}),
    "resumed": (Resumed, {"at": optional(NUMBER)}),
    "confirming": (
        Confirming,
        {
            "trials": WHOLES,
            "top": WHOLE,
            "goal": PLAIN_DATA,
            "first": WHOLE,
            "at": optional(NUMBER),
        },
    ),
    "final_trained": (
        FinalTrained,
        {"number": WHOLE, "cost": optional(COST), "at": optional(NUMBER)},
    ),
    "final_tested": (
        FinalTested,
        {"look": WHOLE, "value": VALUE, "attributes": ATTRIBUTES, "at": optional(NUMBER)},
    ),
}
_CODECS = {name: DataclassCodec(kind, codecs) for name, (kind, codecs) in _EVENTS.items()}
_NAMES = {kind: name for name, (kind, _) in _EVENTS.items()}


def encode(event: Event) -> str:
    """The event as a line. TypeError or ValueError if it holds anything but plain data."""
    name = _NAMES.get(type(event), type(event).__name__)
    try:
        if isinstance(event, Unknown):
            return write_json(_unknown(event))
        if name not in _CODECS:
            raise TypeError(f"must be an event, but got {shown(event)}")
        data = _CODECS[name].encode(event)
        if event.extra and not data.keys().isdisjoint(("format", "event")):
            raise ValueError("'extra': must not hold 'format' or 'event'")
        return write_json({"format": FORMAT, "event": name, **data})
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name!r} cannot be stored: {error}") from None


def as_stored(event: Event) -> Any:
    """The event as a log gives it back. `OutcomeError` if no log can hold it."""
    try:
        return decode(encode(event))
    except (TypeError, ValueError, FormatError) as error:
        raise OutcomeError(str(error)) from None


def decode(line: Any) -> Event:
    """The event in a line, or `FormatError`."""
    try:
        if not isinstance(line, str):
            raise TypeError(f"it must be text, but got {shown(line)}")
        data = parse_json(line)
    except (TypeError, ValueError) as error:
        raise FormatError(f"an event cannot be read: {error}") from None
    return _decode(data)


def _decode(data: Any) -> Event:
    """The event in the data of a line."""
    what = "an event"
    try:
        name = _name(mapping(data))
        if name not in _CODECS:
            return Unknown(data)
        what = f"a {name!r} event"
        del data["format"], data["event"]
        event: Event = _CODECS[name].decode(data)
    except (TypeError, ValueError) as error:
        raise FormatError(f"{what} cannot be read: {error}") from None
    return event


def decode_lines(lines: Sequence[str], first: int, place: str) -> list[Event]:
    """The events in lines without digests; `first` is the position of the first one."""
    events: list[Event] = []
    parsed = parse_together(lines)
    for i, line in enumerate(lines):
        try:
            events.append(decode(line) if parsed is None else _decode(parsed[i]))
        except FormatError as error:
            raise FormatError(f"{place}, event {first + len(events)}: {error}") from None
    return events


def _name(data: dict[str, Any]) -> str:
    """The name of an event whose format this version can read."""
    version, name = data.get("format"), data.get("event")
    if type(version) is not int or version < 1:
        raise ValueError(f"'format' must be {FORMAT}, but got {shown(version)}")
    if version > FORMAT:
        raise ValueError(
            f"a newer version of Tradewind wrote it: its format is {shown(version)}, "
            f"but this version reads {FORMAT}; update Tradewind"
        )
    if type(name) is not str:
        raise TypeError(f"'event' must be text, but got {shown(name)}")
    return name


def _unknown(event: Unknown) -> dict[str, Any]:
    data = mapping(plain(event.data))
    if _name(data) in _CODECS:
        raise ValueError(f"{data['event']!r} is not an unknown event")
    return data
