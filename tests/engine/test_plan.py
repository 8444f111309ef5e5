"""Goals and strategies as data: they come back as they were, and nothing else comes to life."""

from __future__ import annotations

import ast
import json
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tradewind as tw
from tradewind import log, recipes
from tradewind.engine import plan
from tradewind.errors import FormatError
from tradewind.strategies import (
    EI,
    MGFI,
    MIES,
    PI,
    UCB,
    Bayes,
    Design,
    Exponential,
    GaussianProcess,
    Improvement,
    Linear,
    LocalSearch,
    LogNormal,
    MultiFidelity,
    Output,
    Published,
    RandomForest,
    RandomSearch,
    Sampling,
    Staged,
)

# ---- every part there is ----

positive = st.floats(1e-3, 50.0)
counts = st.integers(1, 1000)
designs = st.builds(Design, counts, st.sampled_from(Sampling), st.booleans())
surrogates = st.one_of(
    st.builds(
        GaussianProcess,
        length_mean=st.floats(-5, 5),
        length_std=positive,
        noise_mean=st.floats(-20, 0),
        noise_std=positive,
        amplitude_std=positive,
        apart=st.booleans(),
        max_steps=counts,
        fit_points=counts,
    ),
    st.builds(RandomForest, trees=counts, leaf=counts, features=st.floats(0.01, 1.0)),
)
schedules = st.one_of(
    st.builds(Linear, positive, positive, horizon=counts),
    st.builds(Exponential, positive, positive, horizon=counts),
    st.builds(LogNormal, st.floats(-3, 3), positive),
)
acquisitions = st.one_of(
    st.just(EI()),
    st.just(PI()),
    st.builds(UCB, positive),
    st.builds(MGFI, positive | schedules, spread=st.floats(0.0, 50.0)),
)
maximizers = st.one_of(
    st.builds(LocalSearch, counts, counts, counts, counts, counts),
    st.builds(
        MIES,
        parents=st.integers(1, 9),
        offspring=st.integers(9, 99),
        generations=counts,
        patience=st.none() | counts,
    ),
)
# Published() works with EI() only.
rules = st.tuples(acquisitions, st.just(Improvement())) | st.just((EI(), Published()))
bayes = rules.flatmap(
    lambda pair: st.builds(
        Bayes,
        design=designs,
        surrogate=surrogates,
        cost_surrogate=st.none() | surrogates,
        acquisition=st.just(pair[0]),
        rule=st.just(pair[1]),
        maximizer=maximizers,
        output=st.sampled_from(Output),
        largest_reference=st.booleans(),
        max_points=st.integers(4, 5000),
        reference_points=st.integers(0, 50),
    )
)
stages = st.lists(st.integers(1, 100), min_size=1, max_size=4, unique=True).flatmap(
    lambda percents: st.builds(
        Staged,
        bayes | st.just(RandomSearch()),
        st.just(tuple(p / 100 for p in sorted(percents))),
        trials=st.integers(5, 99) | st.tuples(*[st.integers(5, 99) for _ in percents]),
        carried=st.integers(1, 5),
        final=st.sampled_from(["last", "all"]),
    )
)
goals = st.one_of(
    st.just(tw.Quality()), st.builds(tw.Tradeoff, st.floats(0, 1e6), st.none() | positive)
)
parts = st.one_of(
    goals,
    bayes,
    stages,
    designs,
    surrogates,
    schedules,
    acquisitions,
    maximizers,
    st.just(RandomSearch()),
)


@given(part=parts)
def test_every_part_comes_back_as_it_was_through_json(part: Any) -> None:
    data = json.loads(json.dumps(plan.encode(part), allow_nan=False))
    assert plan.must_be_supplied(data) == []
    back = plan.decode(data)
    assert back == part
    assert type(back) is type(part)
    assert plan.encode(back) == data


RECIPES = [
    recipes.auto(),
    recipes.random_search(),
    recipes.wang2015(),
    recipes.wang2015(fractions=(0.1, 0.5, 1.0), trials=(9, 8, 7), published=False),
    recipes.wang2020(),
    recipes.wang2020(k=7, published=False),
    recipes.mip_ego(),
    recipes.mip_ego(acquisition=EI(), loss="identity", trees=5, maximizer=LocalSearch()),
]


@pytest.mark.parametrize("strategy", RECIPES, ids=lambda s: type(s).__name__)
def test_every_recipe_comes_back_as_it_was(strategy: Any) -> None:
    assert plan.decode(json.loads(json.dumps(plan.encode(strategy)))) == strategy


def test_every_public_part_of_a_strategy_is_in_the_table() -> None:
    """A new part that is not would have to be given again by everybody who uses it."""
    made = {
        type(part)
        for part in (
            *(Bayes(), MultiFidelity(), RandomSearch(), Staged(), Design(4)),
            *(GaussianProcess(), RandomForest()),
            *(EI(), PI(), MGFI(), UCB(), Linear(), Exponential(), LogNormal()),
            *(Improvement(), Published(), LocalSearch(), MIES(), Output.CLIP, Sampling.SOBOL),
        )
    }
    public = {
        kind
        for kind in map(tw.strategies.__dict__.get, tw.strategies.__all__)
        if isinstance(kind, type) and not getattr(kind, "_is_protocol", False)
    }
    assert public == made
    goals = {tw.Quality, tw.Tradeoff, tw.Frontier, tw.BestUnder, tw.CheapestWithin, tw.Knee}
    assert public | goals == set(plan._TYPES.values())


def test_a_trade_off_that_version_0_1_wrote_stays_capped() -> None:
    old = {"type": "Tradeoff", "alpha": 0.3, "reference": 2.0}
    assert plan.decode(old) == tw.Tradeoff(0.3, 2.0, capped=True)
    assert plan.decode(plan.encode(tw.Tradeoff(0.3, 2.0))) == tw.Tradeoff(0.3, 2.0)


def test_all_that_matters_to_a_part_is_written() -> None:
    """What `==` compares is what is written, so that what is read is the same."""
    for kind in plan._TYPES.values():
        assert is_dataclass(kind) or issubclass(kind, Enum)
        if is_dataclass(kind):
            assert all(f.init and f.compare for f in fields(kind)), kind


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        (Bayes(max_points=np.int64(9)), Bayes(max_points=9)),
        (Bayes(largest_reference=np.True_), Bayes(largest_reference=True)),
        (tw.Tradeoff(np.float32(0.5), reference=np.int64(3)), tw.Tradeoff(0.5, reference=3.0)),
        (Design(np.int32(7)), Design(7)),
    ],
    ids=["int", "bool", "float", "checked int"],
)
def test_numbers_of_numpy_are_written_plainly(given: Any, plain: Any) -> None:
    data = plan.encode(given)
    assert json.loads(json.dumps(data)) == plan.encode(plain)
    assert plan.decode(data) == plain


# ---- parts of one's own ----


@dataclass(frozen=True)
class Mine(EI):
    """Not in the table, though what it descends from is."""


class Bayes2(Bayes):
    """Nor this."""


class Disguised(RandomSearch):
    """Nor this, whatever it is called."""


Disguised.__name__ = "RandomSearch"


@pytest.mark.parametrize(
    ("strategy", "names"),
    [
        (Bayes2(), ["Bayes2"]),
        (Disguised(), ["Disguised"]),
        (Bayes(acquisition=Mine()), ["Mine"]),
        (Staged(Bayes2()), ["Bayes2"]),
        (Mine(), ["Mine"]),
    ],
    ids=["strategy", "disguised", "part", "inner", "alone"],
)
def test_a_part_of_ones_own_is_written_by_name_and_must_be_given_again(
    strategy: Any, names: list[str]
) -> None:
    data = json.loads(json.dumps(plan.encode(strategy)))
    assert plan.must_be_supplied(data) == [f"{__name__}.{name}" for name in names]


def test_several_parts_of_ones_own_are_all_named() -> None:
    class Forest(RandomForest):
        """Of one's own."""

    data = plan.encode(Bayes(acquisition=Mine(), surrogate=Forest()))
    assert [name.rpartition(".")[2] for name in plan.must_be_supplied(data)] == ["Forest", "Mine"]


def test_a_name_that_was_written_is_never_looked_up() -> None:
    with pytest.raises(FormatError):
        plan.decode({"given": "os.system"})


# ---- what is read ----


@pytest.mark.parametrize(
    "data",
    [
        {"type": "os.system", "command": "true"},
        {"type": "builtins.eval", "source": "1"},
        {"type": "__import__", "name": "os"},
        {"type": "Bayes.__init__"},
        {"type": "tradewind.goals.Quality"},
        {"type": "quality"},
        {"type": "Quality", "__class__": "os"},
        {"type": "Tradeoff", "alpha": {"type": "eval", "value": "1"}},
    ],
    ids=lambda data: data["type"],
)
def test_what_is_not_in_the_table_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(FormatError):
        plan.decode(data)


def test_nothing_that_reads_a_store_can_evaluate_or_import() -> None:
    """No module that reads stored data uses a function that could do it."""
    files = [Path(plan.__file__), *Path(log.__file__).parent.glob("*.py")]
    assert len(files) > 5
    for file in files:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        used |= {
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.Import)
            for alias in node.names
        }
        assert not used & {
            "eval",
            "exec",
            "compile",
            "__import__",
            "importlib",
            "pickle",
            "marshal",
        }


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, r"stored as \{'type': ...\}"),
        ({"type": 3}, r"stored as \{'type': ...\}"),
        ({"type": None}, r"stored as"),
        ({"type": ["Quality"]}, r"stored as"),
        ({"type": "Nothing"}, "has no part of type 'Nothing'"),
        ({"type": ""}, "part of type ''"),
        ({"type": "Quality", "x": 1}, "cannot be read as Quality"),
        ({"type": "Tradeoff"}, "cannot be read as Tradeoff"),
        ({"type": "Tradeoff", "alpha": "0.3"}, "alpha must be a number"),
        ({"type": "Tradeoff", "alpha": -1.0}, "alpha must be a number ≥ 0"),
        ({"type": "Tradeoff", "alpha": 10**400}, "cannot be read as Tradeoff"),
        ({"type": "Tradeoff", "alpha": {"type": "Quality"}}, "alpha must be a number"),
        ({"type": "Design", "size": 0}, "Design: size must be a whole number from 1"),
        ({"type": "Design", "size": 4, "sampling": "dice"}, "sampling must be one of"),
        ({"type": "Design", "size": 4, "sampling": {"type": "Sampling", "value": "dice"}}, "dice"),
        ({"type": "Output"}, "cannot be read as Output"),
        ({"type": "Output", "value": ["clip"]}, "cannot be read as Output"),
        ({"type": "Bayes", "design": {"type": "EI"}}, r"but got EI\(\), which has no points\(\)"),
        ({"type": "Bayes", "acquisition": "EI"}, "acquisition must be an object"),
        ({"type": "Bayes", "max_points": 1}, "max_points must be a whole number from 4"),
        ({"type": "Bayes", "max_points": "many"}, "cannot be read as Bayes"),
        ({"type": "MGFI", "t": [1.0]}, "t, unless it is a schedule, must be a number ≥ 0"),
        ({"type": "Staged", "fractions": [1.0, 0.3]}, "fractions must be numbers that grow"),
        ({"type": "Staged", "fractions": "0.3"}, "fractions must be numbers that grow"),
        ({"type": "Staged", "fractions": [0.3, "1"]}, "a list must hold numbers only"),
        ({"type": "Staged", "fractions": [0.3, True]}, "a list must hold numbers only"),
        ({"type": "Staged", "fractions": [[0.3], 1.0]}, "a list must hold numbers only"),
        ({"type": "Staged", "fractions": [{"type": "EI"}]}, "a list must hold numbers only"),
        ({"type": "Staged", "trials": []}, "one for each of 2 stages"),
        ({"type": "Staged", "trials": [10**400, 1.5]}, "each of trials must be a whole number"),
        (
            {"type": "Staged", "inner": {"type": "Quality"}},
            r"which has no propose\(\)",
        ),
        (
            {"type": "Staged", "inner": {"type": "Staged"}},
            "must be a strategy without stages",
        ),
        ({"type": "MIES", "parents": 9, "offspring": 1}, "parents <= offspring"),
        ({"type": "MIES", "generations": "few"}, "cannot be read as MIES"),
        ({"type": "RandomForest", "trees": 0}, "trees must be a whole number from 1"),
        ({"type": "Linear", "horizon": -1}, "horizon must be a whole number from 1"),
        ({"type": "LocalSearch", "candidates": "many"}, "cannot be read as LocalSearch"),
        ({"type": "GaussianProcess", "length_std": "wide"}, "cannot be read as GaussianProcess"),
        ({"given": "mine.Own"}, "stored as"),
        ({"type": "Bayes", "largest_reference": 1}, "largest_reference must be true or false"),
        # sizes that would use up a machine
        ({"type": "Design", "size": 10**9}, "from 1 to 100000, but got 1000000000"),
        ({"type": "MIES", "generations": 10**12}, "from 0 to 1000000, but got"),
        ({"type": "MIES", "offspring": 10**9}, "from 1 to 10000, but got"),
        ({"type": "RandomForest", "trees": 10**9}, "from 1 to 10000, but got"),
        ({"type": "LocalSearch", "candidates": 10**10}, "from 1 to 1000000, but got"),
        ({"type": "Exponential", "horizon": 10**300}, "from 1 to 1000000000, but got"),
        ({"type": "LogNormal", "mean": 1e300}, "mean must be a number from -50 to 50"),
        ({"type": "Improvement", "nodes": 10**9}, "nodes must be a whole number from 1 to 100"),
        ({"type": "GaussianProcess", "fit_points": 10**9}, "fit_points must be a whole number"),
        ({"type": "GaussianProcess", "noise_mean": 1e9}, "noise_mean must be a number from"),
        ({"type": "GaussianProcess", "length_std": 0.0}, "length_std must be a number from"),
        ({"type": "Bayes", "reference_points": 10**9}, "reference_points must be a whole number"),
        ({"type": "Bayes", "cost_power": 1e300}, "cost_power must be a number from 0 to 100"),
        (
            {"type": "Staged", "fractions": [i / 10**6 for i in range(1, 10**6)]},
            "up to 100 fractions, but got 999999",
        ),
    ],
    ids=lambda case: str(case)[:60],
)
def test_what_is_no_part_is_refused_with_the_reason(data: Any, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        plan.decode(data)


def test_data_that_is_nested_without_end_is_refused() -> None:
    data: dict[str, Any] = {"type": "Quality"}
    for _ in range(2000):
        data = {"type": "Bayes", "design": data}
    with pytest.raises(FormatError):
        plan.decode(data)


names = st.sampled_from([*plan._TYPES, "os.system", "", "type", "given"])
keys = st.sampled_from(
    ["type", "given", "value", "alpha", "reference", "design", "size", "t", "trees", "surrogate"]
)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | names
anything = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(keys, inner, max_size=4)
        | st.tuples(names, st.dictionaries(keys, inner, max_size=4)).map(
            lambda pair: {**pair[1], "type": pair[0]}
        )
    ),
    max_leaves=12,
)


@settings(max_examples=400)
@given(data=anything)
def test_any_data_is_a_part_or_refused(data: Any) -> None:
    plan.must_be_supplied(data)
    try:
        part = plan.decode(data)
    except FormatError:
        return
    assert type(part) in plan._TYPES.values()
    assert plan.must_be_supplied(plan.encode(part)) == []


def test_a_stored_acquisition_that_the_published_rule_ignored_is_read_as_ei() -> None:
    """Version 0.1 took `Bayes(rule=Published(), acquisition=PI())` and used EI all the same."""
    stored = dict(plan.encode(recipes.wang2020())) | {"acquisition": plan.encode(PI())}
    assert plan.decode(stored) == recipes.wang2020()
