"""Events as lines of text, and back."""

from __future__ import annotations

import json
from collections import UserDict
from dataclasses import MISSING, fields
from enum import Enum
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from tests.events import created, later
from tests.samples import FIRST, LATER
from tradewind.log import codec
from tradewind.log.codec import FORMAT, decode, encode
from tradewind.log.events import (
    Abandoned,
    Claimed,
    Configured,
    Enqueued,
    Event,
    Failed,
    FinalTested,
    Finished,
    Proposed,
    Requeued,
    Started,
    Unknown,
)
from tradewind.plain import MAX_DEPTH
from tradewind.types import Origin, Outcome, Usage

# ---- round trips ----


@given(created | later)
def test_every_event_comes_back_as_it_was(event: Event) -> None:
    line = encode(event)
    assert decode(line) == event
    assert repr(decode(line)) == repr(event)  # 1, 1.0 and True are not the same


@given(created | later)
def test_a_line_is_one_object_in_printable_ascii(event: Event) -> None:
    line = encode(event)
    assert line.isascii()
    assert line.isprintable()
    read = json.loads(line, parse_constant=pytest.fail)
    assert (read["format"], type(read["event"])) == (FORMAT, str)


@given(created | later)
def test_a_decoded_line_is_encoded_as_the_same_line(event: Event) -> None:
    line = encode(event)
    assert encode(decode(line)) == line


def test_there_is_a_sample_of_every_event_of_the_table() -> None:
    kinds = {type(event) for event in [FIRST, *LATER]} - {Unknown}
    assert kinds == {kind for kind, _ in codec._EVENTS.values()}


@pytest.mark.parametrize("event", [FIRST, *LATER], ids=lambda e: type(e).__name__)
def test_every_sample_comes_back_as_it_was(event: Event) -> None:
    assert repr(decode(encode(event))) == repr(event)


@pytest.mark.parametrize(
    ("line", "event"),
    [  # the format, spelled out: users have files with these lines, so they must keep their meaning
        ('"configured"', Configured(None, None)),
        ('"enqueued","params":{"x":1}', Enqueued({"x": 1})),
        ('"claimed","number":7', Claimed(7, "", None)),
        (
            '"proposed","number":7,"params":{"x":1.5},"origin":"design","seen":3',
            Proposed(7, {"x": 1.5}, Origin.DESIGN, 3, {}, None, None),
        ),
        ('"started","number":7', Started(7, "", False, None)),
        (
            '"finished","number":7,"outcome":{"value":0.5}',
            Finished(7, Outcome(0.5, None, ()), None, None),
        ),
        (
            '"finished","number":7,"outcome":{"value":0.5,"cost":2.0,"folds":[0.25,0.75]},'
            '"usage":{"wall":3.0},"at":1.5',
            Finished(7, Outcome(0.5, 2.0, (0.25, 0.75)), Usage(3.0, None, 1.0, "cpu"), 1.5),
        ),
        ('"failed","number":7,"error":"E"', Failed(7, "E", None, True, None, None)),
        ('"abandoned","number":7,"reason":"R"', Abandoned(7, "R", None, None)),
        ('"requeued","number":7,"reason":"R"', Requeued(7, "R", True)),
    ],
)
def test_a_field_with_its_default_is_left_out(line: str, event: Event) -> None:
    line = f'{{"format":1,"event":{line}}}'
    assert encode(event) == line
    assert decode(line) == event


def test_the_table_has_every_field_of_every_event_in_its_order() -> None:
    for kind, table in codec._EVENTS.values():
        assert ["extra", *table] == [field.name for field in fields(kind)]


@pytest.mark.parametrize("event", [FIRST, *LATER[:-1]], ids=lambda e: type(e).__name__)
def test_a_field_with_its_default_may_be_written(event: Event) -> None:
    data = json.loads(encode(event))
    for field in fields(event):
        if field.default is None:
            data.setdefault(field.name, None)
        elif field.default is not MISSING:
            data.setdefault(field.name, field.default)
    assert decode(json.dumps(data)) == event


def test_numbers_come_back_to_the_last_bit() -> None:
    values = [0.1, 1 / 3, 5e-324, 1.7976931348623157e308, -0.0, 123456789012345678.0]
    whole = [2**53 + 1, -(2**200), 10**4000]
    event = Enqueued({f"{i}": value for i, value in enumerate([*values, *whole])})
    assert repr(decode(encode(event))) == repr(event)


def test_a_pair_of_surrogates_comes_back_as_the_character_it_is() -> None:
    assert decode(encode(Claimed(0, "\ud83d" + "\ude00"))) == Claimed(0, "\U0001f600")


# ---- writing ----


def handed_over(value: Any) -> Any:
    event = decode(encode(Proposed(0, {}, Origin.MODEL, 0, handover={"given": value})))
    assert isinstance(event, Proposed)
    return event.handover["given"]


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.float64(0.1), 0.1),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (np.array(2.5), 2.5),
        (np.arange(3), [0, 1, 2]),
        (np.eye(2), [[1.0, 0.0], [0.0, 1.0]]),
        (np.array(["a", None], dtype=object), ["a", None]),
        ((1, (2, 3)), [1, [2, 3]]),
        (UserDict({"a": np.zeros(2)}), {"a": [0.0, 0.0]}),
        ({"a": {"b": (np.int8(1),)}}, {"a": {"b": [1]}}),
    ],
)
def test_a_handover_becomes_plain_data(value: Any, plain: Any) -> None:
    assert repr(handed_over(value)) == repr(plain)


class Colour(Enum):
    RED = "red"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), np.array([0.0, np.nan])])
def test_a_number_that_is_not_finite_is_not_written(value: Any) -> None:
    with pytest.raises(ValueError, match="'proposed' cannot be stored: 'handover': 'given': must"):
        handed_over(value)


@pytest.mark.parametrize(
    "value",
    [object(), {1: 2}, {1, 2}, b"bytes", 1j, Colour.RED, print, np.datetime64("2020-01-01")],
)
def test_a_value_that_is_not_plain_data_is_not_written(value: Any) -> None:
    with pytest.raises(TypeError, match=r"'proposed' cannot be stored: 'handover': .*must"):
        handed_over(value)


def test_data_nested_too_deeply_is_not_written() -> None:
    deep: Any = []
    for _ in range(10_000):
        deep = [deep]
    with pytest.raises(ValueError, match="nested"):
        handed_over(deep)
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(ValueError, match="nested"):
        handed_over(endless)


def test_data_nested_as_deeply_as_allowed_comes_back() -> None:
    deep: Any = 0
    for _ in range(MAX_DEPTH - 1):
        deep = [deep]
    assert handed_over(deep) == deep


def test_numpy_numbers_are_written_as_plain_numbers() -> None:
    finished = Finished(
        np.int64(3),  # type: ignore[arg-type]
        Outcome(np.float32(0.5), np.float64(2.0), (np.float64(1.0),)),  # type: ignore[arg-type]
    )
    assert repr(decode(encode(finished))) == repr(Finished(3, Outcome(0.5, 2.0, (1.0,))))


@pytest.mark.parametrize(
    "event",
    [
        Claimed("0"),  # type: ignore[arg-type]
        Claimed(True),
        Claimed(-1),
        Claimed(0, driver=None),  # type: ignore[arg-type]
        Enqueued({"x": [1]}),  # type: ignore[dict-item]
        Enqueued({1: 1}),  # type: ignore[dict-item]
        Enqueued([]),  # type: ignore[arg-type]
        Failed(0, "", cost=float("nan")),
        Failed(0, "", cost=-1.0),
        FinalTested(0, 1e301),
        FinalTested(0, "1.0"),  # type: ignore[arg-type]
        Finished(0, 1.0),  # type: ignore[arg-type]
        Failed(0, "", penalize=1),  # type: ignore[arg-type]
        Proposed(0, {}, "elsewhere", 0),  # type: ignore[arg-type]
        Enqueued({"x": 10**5000}),  # more digits than Python reads
        Unknown({}),
        Unknown({"format": 2, "event": "new"}),
        Unknown({"format": 1, "event": "finished"}),
        Claimed(b"1"),  # type: ignore[arg-type]
        FinalTested(0, b"1.0"),  # type: ignore[arg-type]
        "claimed",
    ],
    ids=lambda event: type(event).__name__,
)
def test_an_event_that_could_not_be_decoded_is_not_written(event: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="cannot be stored"):
        encode(event)
