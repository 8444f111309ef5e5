"""Spaces as plain data: there and back, and short forms."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.space.generate import property_test, spaces
from tradewind.errors import SpaceError
from tradewind.space import (
    Bool,
    Categorical,
    Float,
    Int,
    OneOf,
    Ordinal,
    Space,
    TrainSize,
    at_least,
)

SPACE = Space(
    {
        "C": Float(1e-4, 1e3, log=True, when={"kernel": ["poly", None], "layers": at_least(2)}),
        "kernel": Categorical(["linear", "poly", None]),
        "layers": Int(1, 4),
        "model__width": Ordinal([32, 64.5, "wide", True]),
        "a.b\nλ": Bool(when={"model__width": True}),
        "train_size": TrainSize([0.5, 1.0]),
    },
    forbid=[{"kernel": "poly", "layers": [1, 2]}, {"C": at_least(10.0)}],
)
DATA = {
    "format": 1,
    "parameters": {
        "C": {
            "type": "float",
            "low": 1e-4,
            "high": 1e3,
            "log": True,
            "when": {"kernel": {"in": ["poly", None]}, "layers": {"at_least": 2}},
        },
        "kernel": {"type": "categorical", "choices": ["linear", "poly", None]},
        "layers": {"type": "int", "low": 1, "high": 4},
        "model__width": {"type": "ordinal", "choices": [32, 64.5, "wide", True]},
        "a.b\nλ": {"type": "bool", "when": {"model__width": {"in": [True]}}},
        "train_size": {"type": "train_size", "choices": [0.5, 1.0]},
    },
    "forbid": [
        {"kernel": {"in": ["poly"]}, "layers": {"in": [1, 2]}},
        {"C": {"at_least": 10.0}},
    ],
}

# ---- there and back ----


@property_test
@given(spaces())
def test_every_space_comes_back_from_json_as_itself(space: Space) -> None:
    again = Space.from_json(space.to_json())
    assert again == space
    assert repr(again) == repr(space)  # to the type of every value, in the same order


@property_test
@given(spaces())
def test_every_space_comes_back_from_plain_data_as_itself(space: Space) -> None:
    assert repr(Space.from_dict(space.to_dict())) == repr(space)


@property_test
@given(spaces())
def test_plain_data_is_what_json_makes_of_it(space: Space) -> None:
    data = space.to_dict()
    assert repr(json.loads(json.dumps(data))) == repr(data)


def test_the_form_is_the_documented_one() -> None:
    assert SPACE.to_dict() == DATA
    assert list(SPACE.to_dict()["parameters"]) == list(SPACE)
    assert Space.from_dict(DATA) == SPACE


def test_json_text_is_ascii_in_one_line() -> None:
    assert SPACE.to_json().isascii()
    assert "\n" not in SPACE.to_json()


def test_reading_leaves_the_data_alone() -> None:
    data = copy.deepcopy(DATA)
    Space.from_dict(data)
    assert data == DATA


def test_what_was_written_does_not_share_with_the_space() -> None:
    data = SPACE.to_dict()
    data["parameters"]["kernel"]["choices"].append("rbf")
    data["parameters"].pop("C")
    assert SPACE.to_dict() == DATA


def test_forbid_may_be_left_out_of_the_data() -> None:
    assert Space.from_dict({"format": 1, "parameters": {"b": {"type": "bool"}}}) == Space(
        {"b": Bool()}
    )


def test_conditions_may_be_written_as_plain_values_and_lists() -> None:
    data = {
        "format": 1,
        "parameters": {
            "k": {"type": "categorical", "choices": ["a", "b", "c"]},
            "x": {"type": "bool", "when": {"k": "a"}},
            "y": {"type": "bool", "when": {"k": ["a", "b"]}},
        },
        "forbid": [{"k": "b", "y": True}],
    }
    space = Space.from_dict(data)
    assert space["x"].when == {"k": OneOf(("a",))}
    assert space["y"].when == {"k": OneOf(("a", "b"))}
    assert space.forbid == ({"k": OneOf(("b",)), "y": OneOf((True,))},)


def test_a_parameter_of_ones_own_kind_has_no_form() -> None:
    class Odd(Float):
        pass

    with pytest.raises(SpaceError, match="'x' is a Odd, which cannot be written as data"):
        Space({"x": Odd(0, 1)}).to_dict()


# ---- what is refused ----


def changed(path: list[Any], value: Any) -> Any:
    """The data with one place replaced, or removed where `value` is `...`."""
    data = copy.deepcopy(DATA)
    place: Any = data
    for step in path[:-1]:
        place = place[step]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return data


C, KERNEL, LAYERS = (["parameters", name] for name in ("C", "kernel", "layers"))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (changed(["format"], 2), "reads spaces of format 1, but got format 2; a newer version"),
        (changed(["format"], 0), "reads spaces of format 1, but got format 0$"),
        (changed(["format"], 1.5), "reads spaces of format 1, but got format 1.5"),
        (changed(["format"], "1"), "'format': a parameter is written as .*, but got '1'"),
        (changed(["format"], True), "'format': a parameter is written as .*, but got True"),
        (changed(["format"], ...), "'parameters': 'type' must be one of .*, but got {'C'"),
        (changed(["parameters"], ...), "a space needs the key 'parameters', but got {'format'"),
        (changed(["parameters"], []), r"'parameters' must be a mapping, but got \[\]"),
        (changed(["parameters"], {}), "a Space needs at least one parameter"),
        (changed(["forbid"], {}), "'forbid' must be a list, but got {}"),
        (changed(["forbid"], None), "'forbid' must be a list, but got None"),
        (changed(["forbid", 0], "kernel"), "'forbid' must be a mapping, but got 'kernel'"),
        (changed(["forbid", 0], {}), "forbid= needs at least one name and value, but got {}"),
        (changed(["forbid", 0], {"x": 1}), "forbid= names 'x', which is not a parameter"),
        (changed(["forbid", 1, "C"], {"at_most": 1}), "'forbid' 'C': a condition is .*'at_most'"),
        (changed(["extra"], 1), "a space has no key 'extra': it takes 'format', 'parameters', 'fo"),
        (changed(C, []), r"'C': a parameter must be a mapping, but got \[\]"),
        (changed(C, "float"), "'C': a parameter must be a mapping, but got 'float'"),
        (changed(C, [1, 2, "log"]), "'C': a parameter must be a mapping, but got"),
        (changed([*C, "type"], "real"), "'C': 'type' must be one of float, int, .*'real'"),
        (changed([*C, "type"], 3), "'C': 'type' must be one of float, int, .*3"),
        (changed([*C, "type"], ["float"]), r"'C': 'type' must be one of .*\['float'\]"),
        (changed([*C, "type"], ...), "'C': 'type' must be one of float, int"),
        (changed([*C, "low"], ...), "'C': type 'float' needs the key 'low', but got"),
        (changed([*C, "low"], "0"), "'C': Float needs two finite bounds, but got low='0'"),
        (changed([*C, "low"], None), "'C': Float needs two finite bounds, but got low=None"),
        (changed([*C, "low"], True), "'C': Float needs two finite bounds, but got low=True"),
        (changed([*C, "low"], [0]), r"'C': Float needs two finite bounds, but got low=\[0\]"),
        (changed([*C, "low"], 1e9), "'C': Float: `low < high` must hold, but got low=1000000000"),
        (changed([*C, "log"], 1), "'C': log must be True or False, but got 1"),
        (changed([*C, "log"], None), "'C': log must be True or False, but got None"),
        (
            changed([*C, "lgo"], True),
            "'C': type 'float' has no key 'lgo' .*: it takes 'type',",
        ),
        (changed([*C, "when"], []), r"'C': 'when' must be a mapping, but got \[\]"),
        (changed([*C, "when"], None), "'C': 'when' must be a mapping, but got None"),
        (changed([*C, "when", "kernel"], {"in": []}), "'C': 'when' 'kernel': .*at least one value"),
        (changed([*C, "when", "kernel"], {"in": "poly"}), "'kernel': a condition is .*'in': 'pol"),
        (changed([*C, "when", "kernel"], {"in": [[]]}), "'kernel': .* numbers, .*, but got"),
        (
            changed([*C, "when", "kernel"], {}),
            "'C': 'when' 'kernel': a condition is .*, but got {}",
        ),
        (changed([*C, "when", "layers"], {"at_least": "2"}), "'layers': a condition is .*'2'"),
        (changed([*C, "when", "layers"], {"at_least": True}), "'layers': a condition is .*True"),
        (
            changed([*C, "when", "layers"], {"at_least": 2, "in": [3]}),
            "'layers': a condition is .*'in': .3",
        ),
        (changed([*C, "when", "layer"], 1), "'C' depends on 'layer', which is not a parameter"),
        (changed([*KERNEL, "choices"], ...), "type 'categorical' needs the key 'choices'"),
        (changed([*KERNEL, "choices"], "abc"), "'kernel': 'choices' must be a list, but got 'abc'"),
        (changed([*KERNEL, "choices"], {"a": 1}), "'kernel': 'choices' must be a list, but got {"),
        (changed([*KERNEL, "choices"], []), "'kernel': Categorical needs at least one value"),
        (
            changed([*KERNEL, "choices"], [["a"]]),
            r"'kernel': Categorical takes .*, but got \['a'\]",
        ),
        (
            changed([*LAYERS, "high"], 4.5),
            "'layers': Int: high must be a whole number, but got 4.5",
        ),
        (changed([*LAYERS, "choices"], [1]), "'layers': type 'int' has no key 'choices'"),
        ([], r"a space must be a mapping, but got \[\]"),
        (None, "a space must be a mapping, but got None"),
        ({1: Bool()}, "a space must be keyed by text, but got 1"),
        ({}, "a Space needs at least one parameter"),
    ],
)
def test_damaged_data_is_refused_by_place_rule_and_value(data: Any, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        Space.from_dict(data)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a space must be JSON text, but it cannot be read: Expecting value"),
        ("{", "a space must be JSON text, but it cannot be read: Expecting property name"),
        ("null", "a space must be a mapping, but got None"),
        ("[1]", r"a space must be a mapping, but got \[1\]"),
        ('"x"', "a space must be a mapping, but got 'x'"),
        ("__import__('os')", "a space must be JSON text, but it cannot be read"),
        ('{"x": [0, NaN]}', "cannot be read: numbers must be finite, but got NaN"),
        (
            '{"x": [-Infinity, 1, "log"]}',
            "numbers must be finite, but got -Infinity",
        ),
        ('{"x": [true, false], "x": [1]}', "read: keys must be distinct, but 'x'"),
        (
            '{"x": {"type": "float", "low": 0, "high": 1e999}}',
            "must be finite, but got '1e999'",
        ),
        ("[" * 100_000, "a space must be JSON text, but it cannot be read"),
        ('{"x": ' + "1" * 5000 + "}", "a space must be JSON text, but it cannot be read"),
    ],
)
def test_text_that_is_no_space_is_refused(text: str, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        Space.from_json(text)


def test_truncated_text_is_refused_wherever_it_was_cut() -> None:
    text = SPACE.to_json()
    for end in range(len(text)):
        with pytest.raises(SpaceError, match="must be JSON text, but it cannot be read"):
            Space.from_json(text[:end])


@pytest.mark.parametrize("text", [None, 3, {"x": [1]}, b"{}"])
def test_from_json_takes_text_only(text: Any) -> None:
    with pytest.raises(TypeError, match=r"from_json\(\) takes text, but got"):
        Space.from_json(text)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "low", "in", "when", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)
PLACES = [
    ["format"],
    ["parameters"],
    ["forbid"],
    ["forbid", 0],
    ["forbid", 1, "C"],
    C,
    [*C, "type"],
    [*C, "low"],
    [*C, "log"],
    [*C, "when"],
    [*C, "when", "kernel"],
    [*KERNEL, "choices"],
]


@property_test
@given(st.sampled_from(PLACES), json_values)
def test_any_value_in_any_place_is_read_or_refused_as_a_space_error(
    path: list[Any], value: Any
) -> None:
    try:
        space = Space.from_dict(changed(path, value))
    except SpaceError:
        return
    assert Space.from_dict(space.to_dict()) == space


# ---- short forms ----


@pytest.mark.parametrize(
    ("form", "parameter"),
    [
        ((1, 9), Int(1, 9)),
        ((0.0, 1), Float(0, 1)),
        ((0, 1.5), Float(0, 1.5)),
        ((1, 9, "log"), Int(1, 9, log=True)),
        ((1e-4, 1e3, "log"), Float(1e-4, 1e3, log=True)),
        ((np.int64(1), np.int32(9)), Int(1, 9)),
        ((np.float64(0), np.int32(9)), Float(0, 9)),
        ([1e-4, 1e3, "log"], Float(1e-4, 1e3, log=True)),
        ([1, 1000, "log"], Int(1, 1000, log=True)),
        ([1, 9], Categorical([1, 9])),
        ([0.5, 1.5], Categorical([0.5, 1.5])),
        ([1, 2, 3], Categorical([1, 2, 3])),
        (["a", "b"], Categorical(["a", "b"])),
        (["a", 1, "log"], Categorical(["a", 1, "log"])),
        ([1, 2, "exp"], Categorical([1, 2, "exp"])),
        ([True, False, "log"], Categorical([True, False, "log"])),
        ([None], Categorical([None])),
        (bool, Bool()),
        ({"type": "int", "low": 1, "high": 9, "log": True}, Int(1, 9, log=True)),
        ({"type": "train_size", "choices": [0.5, 1]}, TrainSize([0.5, 1.0])),
        (Ordinal([3, 1]), Ordinal([3, 1])),
    ],
)
def test_a_short_form_is_the_parameter_it_stands_for(form: Any, parameter: Any) -> None:
    assert repr(Space.from_dict({"x": form})["x"]) == repr(parameter)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ((1,), r"'x': a tuple is a range, .*, but got \(1,\); choices are a list"),
        (("a", "b"), r"'x': a tuple is a range, .*, but got \('a', 'b'\); choices are a list"),
        ((1, 2, 3), r"'x': a tuple is a range, .*, but got \(1, 2, 3\)"),
        ((1, 2, "exp"), r"'x': a tuple is a range, .*, but got \(1, 2, 'exp'\)"),
        ((True, False), r"'x': a tuple is a range, .*, but got \(True, False\)"),
        ((0, math.inf), r"'x': a tuple is a range, .* two numbers, but got \(0, inf\)"),
        ((9, 1), "'x': Int: `low < high` must hold, but got low=9, high=1"),
        ((0, 9, "log"), r"'x': Int\(log=True\): `low >= 1` must hold, but got low=0"),
        ([], "'x': Categorical needs at least one value"),
        ([[1, 2]], r"'x': Categorical takes .*, but got \[1, 2\]"),
        (5, "'x': a parameter is written as .*, but got 5"),
        ("abc", "'x': a parameter is written as .*, but got 'abc'"),
        (None, "'x': a parameter is written as .*, but got None"),
        (float, "'x': a parameter is written as .*, but got <class 'float'>"),
        ({1, 2}, "'x': a parameter is written as .*, but got {1, 2}"),
        ({}, "'x': 'type' must be one of float, int, .*, but got {}"),
    ],
)
def test_what_is_no_short_form_is_refused(form: Any, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        Space.from_dict({"x": form})


def test_short_forms_may_be_written_as_json() -> None:
    text = '{"C": [1e-4, 1e3, "log"], "kernel": ["linear", "poly"]}'
    assert Space.from_json(text) == Space(
        {"C": Float(1e-4, 1e3, log=True), "kernel": Categorical(["linear", "poly"])}
    )


@pytest.mark.parametrize("name", ["format", "parameters", "forbid", "type", "when"])
def test_a_short_form_may_have_any_name(name: str) -> None:
    assert Space.from_dict({name: ["a", "b"]}) == Space({name: Categorical(["a", "b"])})


def test_a_space_is_its_own_short_form() -> None:
    assert Space.from_dict(SPACE) == SPACE
