"""Plain data: strict JSON, and values that become plain data."""

from __future__ import annotations

import json
from collections import OrderedDict, UserDict
from enum import StrEnum
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from tests.events import data
from tradewind.plain import (
    LONGEST,
    MAX_DEPTH,
    finite,
    listed,
    located,
    mapping,
    parse_json,
    plain,
    shown,
    write_json,
)

# ---- JSON ----


@given(data)
def test_data_that_is_written_comes_back(value: Any) -> None:
    text = write_json(value)
    assert text.isascii()
    assert "\n" not in text
    assert repr(parse_json(text)) == repr(value)
    assert repr(parse_json(text.encode())) == repr(value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a":1,"a":2}', "keys must be distinct, but 'a' appears twice"),
        ('[{"b":{"a":1,"a":1}}]', "keys must be distinct, but 'a' appears twice"),
        ("NaN", "numbers must be finite, but got NaN"),
        ("[Infinity]", "numbers must be finite, but got Infinity"),
        ('{"a":-Infinity}', "numbers must be finite, but got -Infinity"),
        ("1e999", "numbers must be finite, but got '1e999'"),
        ("[-1e999]", "numbers must be finite, but got '-1e999'"),
        ("", "Expecting value"),
        ("{", "Expecting property name"),
        ("{} {}", "Extra data"),
        ("{'a': 1}", "Expecting property name"),
        (b"\xff", "can't decode"),
        ("9" * 10_000, "digits"),
        ("[" * 200_000, "it is nested too deeply"),
        ('{"a":' * 200_000, "it is nested too deeply"),
        ("[" * 121 + "]" * 121, "it is nested more than 120 levels deep"),
        ('{"a":' * 121 + "1" + "}" * 121, "it is nested more than 120 levels deep"),
        (
            '"' + "x" * LONGEST + '"',
            f"up to {LONGEST} characters as JSON, but it has {LONGEST + 2}",
        ),
    ],
    ids=lambda text: repr(text)[:30],
)
def test_text_that_is_not_strict_json_is_refused(text: str | bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as error:
        parse_json(text)
    assert len(str(error.value)) < 300


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [float("-inf")]])
def test_numbers_that_are_not_finite_are_not_written(value: Any) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(value)


# ---- plain data ----


@given(data)
def test_plain_data_stays_as_it_is(value: Any) -> None:
    assert repr(plain(value)) == repr(value)


class Text(str):
    """Text of another type."""


class Word(StrEnum):
    YES = "yes"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float64(0.1), 0.1),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (np.array(2.5), 2.5),
        (np.eye(2), [[1.0, 0.0], [0.0, 1.0]]),
        (np.array(["a", None], dtype=object), ["a", None]),
        ((1, (2, 3)), [1, [2, 3]]),
        (UserDict({"a": np.zeros(2)}), {"a": [0.0, 0.0]}),
        (OrderedDict(a=1), {"a": 1}),
        ({np.str_("a"): 1}, {"a": 1}),
        (Text("a"), "a"),
        ({Text("a"): 1}, {"a": 1}),
        (Word.YES, "yes"),
    ],
)
def test_values_are_converted_to_plain_data(value: Any, expected: Any) -> None:
    assert repr(plain(value)) == repr(expected)
    assert json.loads(write_json(plain(value))) == expected


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (object(), "must be plain data"),
        ({1, 2}, "must be plain data"),
        (b"bytes", "must be plain data"),
        (1j, "must be plain data"),
        (np.datetime64("2020-01-01"), "must be plain data"),
        ({"a": {"b": [print]}}, "'a': 'b': must be plain data"),
        ({1: 2}, "keys must be text, but got 1"),
        ({"a": {None: 2}}, "'a': keys must be text, but got None"),
    ],
)
def test_other_values_are_refused_with_their_place(value: Any, reason: str) -> None:
    with pytest.raises(TypeError, match=reason):
        plain(value)


@pytest.mark.parametrize(
    "value", [float("nan"), np.float64("inf"), np.array([1.0, np.nan]), {"a": float("inf")}]
)
def test_numbers_that_are_not_finite_are_not_plain_data(value: Any) -> None:
    with pytest.raises(ValueError, match="must be a finite number"):
        plain(value)


def test_what_is_written_can_be_read() -> None:
    deep: Any = 0
    for _ in range(120):
        deep = [deep]
    wide = [[[]] * 1000] * 10
    for value in (deep, wide, "x" * (LONGEST - 2)):
        assert parse_json(write_json(value)) == value
    with pytest.raises(ValueError, match=f"up to {LONGEST} characters as JSON"):
        write_json("x" * (LONGEST - 1))


def test_a_list_is_shown_in_part() -> None:
    assert listed(["a", 1]) == "'a', 1"
    assert listed(range(500)) == ", ".join(map(str, range(20))) + ", ... (20 of 500)"


def test_plain_data_must_not_be_nested_too_deeply() -> None:
    deep: Any = 0
    for _ in range(MAX_DEPTH):
        deep = [deep]
    assert plain(deep) == deep
    endless: list[Any] = []
    endless.append(endless)
    for value in ([[deep]], endless, {"a": endless}):
        with pytest.raises(ValueError, match=f"must not be nested more than {MAX_DEPTH} levels"):
            plain(value)


# ---- small checks ----


@pytest.mark.parametrize("value", [None, [], "{}", UserDict(), OrderedDict()])
def test_a_mapping_is_a_dict(value: Any) -> None:
    with pytest.raises(TypeError, match="must be a mapping, but got"):
        mapping(value)


def test_a_mapping_is_returned_as_it_is() -> None:
    value = {"a": 1}
    assert mapping(value) is value


def test_a_finite_number_becomes_a_plain_float() -> None:
    assert type(finite(np.float64(0.5))) is float
    assert finite(3) == 3.0
    for value in (float("nan"), float("-inf")):
        with pytest.raises(ValueError, match="must be a finite number"):
            finite(value)


@pytest.mark.parametrize(
    ("error", "kind"),
    [(TypeError("x"), TypeError), (ValueError("x"), ValueError), (UnicodeError("x"), ValueError)],
)
def test_a_located_error_has_its_key_and_its_type(error: Exception, kind: type) -> None:
    found = located("a", error)
    assert (type(found), str(found)) == (kind, "'a': x")


class Rude:
    def __repr__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a\nb", r"'a\nb'"),
        (Rude(), "an unprintable Rude"),
        (10**5000, "an unprintable int"),
        ([10**5000], "an unprintable list"),
    ],
    ids=["text", "rude", "number", "list"],
)
def test_any_value_can_be_shown(value: Any, text: str) -> None:
    assert shown(value) == text


def test_a_value_is_shown_on_one_short_line() -> None:
    assert shown("x" * 1000) == "'" + "x" * 76 + "..."
    assert "\n" not in shown(np.eye(2))
