"""Spaces from ConfigSpace's JSON files, and what of them has no counterpart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tradewind.errors import SpaceError
from tradewind.space import Categorical, Float, Int, OneOf, Ordinal, Space, at_least


def hyper(name: str, kind: str, **keys: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **keys}


PARENTS = [
    hyper("k", "categorical", choices=["a", "b", "c"]),
    hyper("n", "uniform_int", lower=1, upper=5, log=False),
    hyper("many", "uniform_int", lower=1, upper=5000, log=False),
    hyper("f", "uniform_float", lower=0.0, upper=1.0, log=False),
    hyper("o", "ordinal", sequence=["low", "mid", "high"]),
    hyper("t", "categorical", choices=[True, False]),
]


def load(*conditions: Any, forbiddens: Any = (), parameters: Any = PARENTS) -> Space:
    child = hyper("x", "uniform_float", lower=0.0, upper=1.0, log=False)
    return Space.from_configspace(
        {
            "hyperparameters": [*parameters, child],
            "conditions": list(conditions),
            "forbiddens": list(forbiddens),
        }
    )


def condition(kind: str, parent: str, value: Any) -> dict[str, Any]:
    key = "values" if kind == "IN" else "value"
    return {"child": "x", "parent": parent, "type": kind, key: value}


def combined(kind: str, *parts: Any) -> dict[str, Any]:
    return {"child": "x", "type": kind, "conditions": list(parts)}


OLD = {
    "hyperparameters": [
        hyper("alpha", "uniform_float", log=True, lower=1e-3, upper=1e3, default=1.0),
        hyper(
            "booster",
            "categorical",
            choices=["gblinear", "gbtree", "dart"],
            default="gblinear",
            probabilities=None,
        ),
        hyper("nrounds", "uniform_int", log=True, lower=7, upper=2981, default=144, q=None),
        hyper("eta", "uniform_float", log=False, lower=0.0, upper=1.0, default=0.5),
        hyper("rate_drop", "uniform_float", log=False, lower=0.0, upper=1.0, default=0.5),
    ],
    "conditions": [
        {"child": "eta", "parent": "booster", "type": "IN", "values": ["dart", "gbtree"]},
        {"child": "rate_drop", "parent": "booster", "type": "EQ", "value": "dart"},
    ],
    "forbiddens": [],
    "python_module_version": "0.4.18",
    "json_format_version": 0.2,
}
NEW = {
    "name": "xgb",
    "hyperparameters": [
        {**h, "default_value": 0, "meta": {"unit": "s"}, "weights": None}
        for h in OLD["hyperparameters"]  # type: ignore[attr-defined]
    ]
    + [hyper("seed", "constant", value=7, meta=None)],
    "conditions": OLD["conditions"],
    "forbiddens": [
        {
            "type": "AND",
            "clauses": [
                {"type": "EQUALS", "name": "booster", "value": "dart"},
                {"type": "IN", "name": "nrounds", "values": [7, 8]},
            ],
        }
    ],
    "python_module_version": "1.2.0",
    "format_version": 0.4,
}
XGB = {
    "alpha": Float(1e-3, 1e3, log=True),
    "booster": Categorical(["gblinear", "gbtree", "dart"]),
    "nrounds": Int(7, 2981, log=True),
    "eta": Float(0, 1, when={"booster": ["dart", "gbtree"]}),
    "rate_drop": Float(0, 1, when={"booster": "dart"}),
}


def test_a_configspace_file_of_the_old_format_is_read() -> None:
    assert Space.from_configspace(OLD) == Space(XGB)


def test_a_configspace_file_of_the_new_format_is_read() -> None:
    assert Space.from_configspace(NEW) == Space(
        {**XGB, "seed": Categorical([7])}, forbid=[{"booster": "dart", "nrounds": [7, 8]}]
    )


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("kind", [str, Path])
def test_a_configspace_file_is_read_from_its_path(tmp_path: Path, kind: Any, encoding: str) -> None:
    path = tmp_path / "config_space.json"
    path.write_text(json.dumps(OLD), encoding=encoding)
    assert Space.from_configspace(kind(path)) == Space(XGB)


def test_a_missing_configspace_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Space.from_configspace(tmp_path / "none.json")


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe\xfa", b'{"hyperparameters": [NaN]}'])
def test_a_file_that_is_no_json_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "config_space.json"
    path.write_bytes(content)
    with pytest.raises(SpaceError, match="a ConfigSpace file"):
        Space.from_configspace(path)


@pytest.mark.parametrize(
    ("item", "parameter"),
    [
        (hyper("p", "uniform_int", lower=1, upper=9), Int(1, 9)),
        (hyper("p", "uniform_int", lower=1, upper=9, q=1), Int(1, 9)),
        (hyper("p", "uniform_float", lower=0, upper=9, q=None), Float(0, 9)),
        (hyper("p", "ordinal", sequence=[1, "b"]), Ordinal([1, "b"])),
        (hyper("p", "constant", value="x"), Categorical(["x"])),
        (hyper("p", "unparametrized", value=3), Categorical([3])),
        (hyper("p", "categorical", choices=("a", "b")), Categorical(["a", "b"])),
        (hyper("p", "categorical", choices=["a", "b"], weights=[2, 2]), Categorical(["a", "b"])),
        (
            hyper("p", "categorical", choices=["a", "b"], probabilities=[0.5, 0.5]),
            Categorical(["a", "b"]),
        ),
        (hyper("p", "uniform_float", lower=0, upper=1, q=0.1), Float(0, 1, step=0.1)),
        (hyper("p", "uniform_int", lower=0, upper=8, q=2), Int(0, 8, step=2)),
    ],
)
def test_hyperparameters_become_parameters(item: Any, parameter: Any) -> None:
    assert Space.from_configspace({"hyperparameters": [item]})["p"] == parameter


@pytest.mark.parametrize(
    ("given", "when"),
    [
        (condition("EQ", "k", "a"), {"k": "a"}),
        (condition("EQ", "t", True), {"t": True}),
        (condition("IN", "k", ["a", "b"]), {"k": ["a", "b"]}),
        (condition("IN", "n", (1, 2)), {"n": [1, 2]}),
        (condition("NEQ", "k", "b"), {"k": ["a", "c"]}),
        (condition("NEQ", "n", 3), {"n": [1, 2, 4, 5]}),
        (condition("NEQ", "t", True), {"t": False}),
        (condition("GT", "n", 3), {"n": at_least(4)}),
        (condition("GT", "many", 4000), {"many": at_least(4001)}),
        (condition("GT", "o", "low"), {"o": ["mid", "high"]}),
        (condition("GT", "f", 0.5), {"f": at_least(0.500000000001)}),
        (condition("LT", "n", 3), {"n": [1, 2]}),
        (condition("LT", "o", "high"), {"o": ["low", "mid"]}),
        (
            combined("AND", condition("EQ", "k", "a"), condition("GT", "n", 2)),
            {"k": "a", "n": at_least(3)},
        ),
        (
            combined("AND", condition("GT", "n", 1), condition("LT", "n", 4)),
            {"n": [2, 3]},
        ),
        (
            combined("AND", condition("GT", "f", 0), condition("GT", "f", 0.5)),
            {"f": at_least(0.500000000001)},
        ),
        (combined("OR", condition("EQ", "k", "a"), condition("EQ", "k", "b")), {"k": ["a", "b"]}),
        (combined("OR", condition("GT", "n", 2), condition("GT", "n", 3)), {"n": at_least(3)}),
        (combined("OR", condition("GT", "n", 3), condition("EQ", "n", 1)), {"n": [1, 4, 5]}),
        (
            combined(
                "AND",
                combined("OR", condition("EQ", "k", "a"), condition("IN", "k", ["c"])),
                condition("EQ", "t", False),
            ),
            {"k": ["a", "c"], "t": False},
        ),
    ],
)
def test_conditions_are_mapped_to_when(given: Any, when: Any) -> None:
    assert load(given)["x"].when == Float(0, 1, when=when).when


def test_greater_than_a_float_leaves_that_float_out() -> None:
    space = load(condition("GT", "f", 0.0), parameters=[PARENTS[3]])
    assert space.validate({"f": 0.0}) == {"f": 0.0}
    assert space.validate({"f": 1e-9, "x": 0.5}) == {"f": 1e-9, "x": 0.5}
    assert space.decode(space.encode([{"f": 0.0}])) == [{"f": 0.0}]


def test_several_conditions_of_one_child_must_all_hold() -> None:
    space = load(condition("IN", "k", ["a", "b"]), condition("NEQ", "k", "a"))
    assert space["x"].when == {"k": OneOf(("b",))}


def test_forbidden_clauses_of_one_parameter_are_joined() -> None:
    clauses = [
        {"type": "IN", "name": "n", "values": [1, 2, 3]},
        {"type": "IN", "name": "n", "values": [2, 3, 4]},
    ]
    space = load(forbiddens=[{"type": "AND", "clauses": clauses}])
    assert space.forbid == ({"n": OneOf((2, 3))},)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (condition("NEQ", "f", 0.5), "'x': condition NEQ on 'f': on a float only GT has a counter"),
        (condition("LT", "f", 0.5), "'x': condition LT on 'f': on a float only GT has a counterp"),
        (condition("EQ", "f", 0.5), "'x': when= 'f' is a Float: compare it by at_least"),
        (
            condition("NEQ", "many", 3),
            "condition NEQ on 'many': .* at most 1000 values, but there are",
        ),
        (
            condition("LT", "many", 3),
            "condition LT on 'many': .* at most 1000 values, but there are",
        ),
        (condition("GT", "k", "a"), "condition GT on 'k': its values have no order"),
        (condition("LT", "k", "b"), "condition LT on 'k': its values have no order"),
        (condition("GT", "o", "high"), "condition GT on 'o': it can never hold: no value is left"),
        (condition("LT", "n", 1), "condition LT on 'n': it can never hold: no value is left"),
        (condition("GT", "n", 5), "'x': when= 'n' >= 6 can never hold: the largest value is 5"),
        (condition("GT", "f", 1.0), "condition GT on 'f': it can never hold: nothing is above 1.0"),
        (condition("GT", "n", 9), "condition GT on 'n': must be from 1 to 5, but got 9"),
        (condition("EQ", "k", "z"), r"condition EQ on 'k': must be one of \['a', .*, but got 'z'"),
        (condition("EQ", "t", 1), r"condition EQ on 't': must be one of \[True, .*, but got 1"),
        (condition("EQ", "z", 1), "'x': its parent 'z' is not a hyperparameter"),
        (condition("XOR", "k", "a"), "condition XOR on 'k': the kinds EQ, NEQ, IN, GT, LT, AND"),
        (
            condition("IN", "k", "abc"),
            "condition IN on 'k': 'values' must be a list, but got 'abc'",
        ),
        (condition("IN", "k", []), "condition IN on 'k': a condition needs at least one value"),
        (
            combined("OR", condition("EQ", "k", "a"), condition("EQ", "n", 1)),
            r"'x': an OR must be over the values of one parent, but got \['k', 'n'\]",
        ),
        (combined("OR"), r"'x': an OR must be over the values of one parent, but got \[\]"),
        (
            combined("OR", condition("GT", "many", 9), condition("EQ", "many", 1)),
            "'x': .* at most 1000 values, but there are 5000",
        ),
        (
            combined("AND", condition("EQ", "k", "a"), condition("EQ", "k", "b")),
            "'x': it can never hold: no value is left",
        ),
        ({"child": "z", "type": "EQ"}, "a condition is for 'z', which is not a hyperparameter"),
        ({"child": "x", "parent": "k", "type": "EQ"}, "the key 'value' is missing in {'child'"),
        ({"child": "x", "type": "AND"}, "'x': the key 'conditions' is missing in"),
        ({"parent": "k", "type": "EQ", "value": "a"}, "the key 'child' is missing in"),
        ({"child": "x", "parent": "k", "value": "a"}, "the key 'type' is missing in"),
        ({"child": ["x"], "type": "EQ"}, r"'child' must be a str, but got \['x'\]"),
        ("EQ", "an item of 'conditions' must be a mapping, but got 'EQ'"),
        (condition("EQ", "x", 0.5), "'x'"),
    ],
)
def test_a_condition_without_a_counterpart_is_refused(given: Any, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        load(given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"type": "RELATION", "left": "n", "right": "f", "lambda": "LT"}, "got 'RELATION': values"),
        ({"type": "RELATION_GT", "left": "n", "right": "f"}, "EQUALS, IN and AND can be read, but"),
        (
            {"type": "EQUALS", "name": "z", "value": 1},
            "forbid= names 'z', which is not a parameter",
        ),
        ({"type": "EQUALS", "name": "f", "value": 0.5}, "forbid= 'f' is a Float: compare it by"),
        ({"type": "EQUALS", "name": "k"}, "the key 'value' is missing in"),
        ({"type": "AND"}, "the key 'clauses' is missing in"),
        ({"type": "AND", "clauses": []}, "forbid= needs at least one name and value"),
        ({"name": "k", "value": "a"}, "the key 'type' is missing in"),
    ],
)
def test_a_forbidden_clause_without_a_counterpart_is_refused(given: Any, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        load(forbiddens=[given])


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (hyper("p", "normal_float", mu=0, sigma=1), "'p': types uniform_float, .* got 'normal_fl"),
        (
            hyper("p", "beta_int", alpha=1, beta=2),
            "'p': types uniform_float, .* but got 'beta_int'",
        ),
        (
            hyper("p", "uniform_float", lower=0.1, upper=1, q=0.1, log=True),
            "'p': Float: a log scale has no step",
        ),
        (
            hyper("p", "uniform_int", lower=0, upper=9, q=2),
            "'p': Int: high must be low plus a whole number of steps",
        ),
        (
            hyper("p", "categorical", choices=["a", "b"], weights=[1, 2]),
            r"'p': all choices are equally likely here, but got weights=\[1, 2\]",
        ),
        (
            hyper("p", "categorical", choices=["a", "b"], probabilities=[0.9, 0.1]),
            r"'p': all choices are equally likely here, but got probabilities=\[0.9, 0.1\]",
        ),
        (hyper("p", "categorical", choices=["a"], weights="x"), "equally likely .* weights='x'"),
        (hyper("p", "categorical", choices=[["a"]]), r"'p': Categorical takes .*, but got \['a'\]"),
        (hyper("p", "categorical"), "'p': the key 'choices' is missing in"),
        (hyper("p", "uniform_int", lower=1), "'p': the key 'upper' is missing in"),
        (hyper("p", "uniform_int", lower=1, upper="9"), "'p': Int needs two finite bounds"),
        (hyper("p", "uniform_float", lower=0, upper=1, log=True), "'p': .* `low > 0` must hold"),
        (hyper("p", "uniform_float", lower=1, upper=2, log="x"), "'p': log must be True or False"),
        (hyper("f", "constant", value=1), "names must be distinct, but 'f' is given twice"),
        ({"type": "constant", "value": 1}, "the key 'name' is missing in"),
        ({"name": 3, "type": "constant"}, "'name' must be a str, but got 3"),
        ({"name": "p"}, "the key 'type' is missing in"),
        ("p", "an item of 'hyperparameters' must be a mapping, but got 'p'"),
    ],
)
def test_a_hyperparameter_without_a_counterpart_is_refused(item: Any, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        load(parameters=[*PARENTS, item])


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({}, "the key 'hyperparameters' is missing in {}"),
        ({"hyperparameters": {}}, "'hyperparameters' must be a list, but got {}"),
        ({"hyperparameters": []}, "a Space needs at least one parameter"),
        (None, "a ConfigSpace file must be a mapping, but got None"),
        ([], r"a ConfigSpace file must be a mapping, but got \[\]"),
    ],
)
def test_what_is_no_configspace_is_refused(source: Any, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        Space.from_configspace(source)
