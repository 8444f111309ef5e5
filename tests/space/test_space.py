"""The space: a read-only mapping, and the way from configurations to rows and back."""

from __future__ import annotations

import itertools
import math
import pickle
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.space.generate import property_test, resolution, seeds, spaces, spaces_and_rows
from tradewind.errors import ConfigError, SpaceError
from tradewind.space import (
    Bool,
    Categorical,
    Float,
    Int,
    Ordinal,
    Space,
    TrainSize,
    at_least,
)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def same_rows(A: Any, B: Any) -> bool:
    """Equal to the bit: rows are told apart by their bytes."""
    return bool(A.shape == B.shape and A.tobytes() == B.tobytes())


SVM = Space(
    {
        "C": Float(1e-4, 1e3, log=True),
        "kernel": Categorical(["linear", "poly"]),
        "degree": Int(2, 5, when={"kernel": "poly"}),
        "width": Ordinal([32, 64, 128]),
        "shuffle": Bool(),
        "train_size": TrainSize([0.5, 1.0]),
    }
)
LINEAR = {"C": 1.0, "kernel": "linear", "width": 64, "shuffle": True, "train_size": 1.0}
POLY = {**LINEAR, "kernel": "poly", "degree": 3}

# Four levels of conditions, declared children first.
DEEP = Space(
    {
        "e": Float(0, 1, when={"d": at_least(0.25)}),
        "d": Float(0, 1, when={"c": "on"}),
        "c": Categorical(["off", "on"], when={"b": at_least(2)}),
        "b": Int(1, 3, when={"a": True}),
        "a": Bool(),
    }
)


# ---- configurations <-> rows ----


@property_test
@given(spaces_and_rows())
def test_a_decoded_configuration_is_encoded_and_decoded_as_itself(given: tuple[Space, Any]) -> None:
    space, U = given
    configs = space.decode(U)
    again = space.decode(space.encode(configs))
    assert again == configs
    assert repr(again) == repr(configs)  # True is not 1, and 1 is not 1.0


@property_test
@given(spaces_and_rows())
def test_encoding_what_was_decoded_gives_the_snapped_rows(given: tuple[Space, Any]) -> None:
    space, U = given
    S = space.snap(U)
    E = space.encode(space.decode(U))
    assert same_rows(np.isnan(E), np.isnan(S))
    finite = space.columns.cells > 0
    assert same_rows(E[:, finite], S[:, finite])
    for j, p in enumerate(space.values()):
        if isinstance(p, Float):
            assert not (np.abs(E[:, j] - S[:, j]) > resolution(p)).any()


@property_test
@given(spaces_and_rows())
def test_snapping_twice_is_snapping_once(given: tuple[Space, Any]) -> None:
    space, U = given
    S = space.snap(U)
    assert same_rows(space.snap(S), S)


@property_test
@given(spaces_and_rows())
def test_encoded_rows_are_snapped(given: tuple[Space, Any]) -> None:
    space, U = given
    E = space.encode(space.decode(U))
    assert same_rows(space.snap(E), E)


@property_test
@given(spaces_and_rows(forbidding=False))
def test_a_decoded_configuration_is_valid(given: tuple[Space, Any]) -> None:
    space, U = given
    for config in space.decode(U):
        assert space.validate(config) == config


@property_test
@given(spaces_and_rows())
def test_exactly_the_active_parameters_are_in_a_configuration(given: tuple[Space, Any]) -> None:
    space, U = given
    active = ~np.isnan(space.snap(U))
    for row, config in zip(active, space.decode(U), strict=True):
        assert list(config) == [name for name, on in zip(space, row, strict=True) if on]


@property_test
@given(spaces_and_rows())
def test_a_row_is_allowed_where_its_configuration_is_valid(given: tuple[Space, Any]) -> None:
    space, U = given
    for config, allowed in zip(space.decode(U), space.allowed(space.snap(U)), strict=True):
        if allowed:
            assert space.validate(config) == config
        else:
            with pytest.raises(ConfigError, match="forbidden combination"):
                space.validate(config)


@property_test
@given(spaces(), seeds)
def test_samples_are_snapped_allowed_and_valid(space: Space, seed: int) -> None:
    X = space.sample(8, rng=rng(seed))
    assert same_rows(space.snap(X), X)
    assert space.allowed(X).all()
    for config in space.decode(X):
        assert space.validate(config) == config


@property_test
@given(spaces(), seeds)
def test_the_same_seed_gives_the_same_samples(space: Space, seed: int) -> None:
    assert same_rows(space.sample(5, rng=rng(seed)), space.sample(5, rng=rng(seed)))


@property_test
@given(spaces_and_rows(), st.randoms(use_true_random=False))
def test_the_declared_order_changes_only_the_order_of_columns(
    given: tuple[Space, Any], random: Any
) -> None:
    space, U = given
    order = list(range(len(space)))
    random.shuffle(order)
    other = Space({space.names[j]: space[space.names[j]] for j in order}, forbid=space.forbid)
    assert same_rows(other.snap(U[:, order]), space.snap(U)[:, order])
    assert other.decode(U[:, order]) == space.decode(U)
    assert [list(c) for c in other.decode(U[:, order])] == [
        [name for name in other if name in c] for c in space.decode(U)
    ]


def test_rows_outside_the_cube_are_snapped_to_its_faces() -> None:
    space = Space({"x": Float(2, 3), "n": Int(1, 4), "c": Categorical(["a", "b"])})
    X = np.array([[-5.0, -1e-9, -1.0], [7.0, 1.0, 1e9], [np.inf, -np.inf, np.inf]])
    assert space.decode(X) == [
        {"x": 2.0, "n": 1, "c": "a"},
        {"x": 3.0, "n": 4, "c": "b"},
        {"x": 3.0, "n": 1, "c": "b"},
    ]


def test_an_active_coordinate_that_is_nan_gets_the_centre_of_its_range() -> None:
    space = Space({"x": Float(0, 1), "n": Int(1, 3)})
    assert space.decode(np.full((1, 2), np.nan)) == [{"x": 0.5, "n": 2}]


def test_snapping_leaves_its_argument_alone() -> None:
    U = rng().random((5, len(SVM)))
    before = U.copy()
    U.flags.writeable = False
    SVM.snap(U)
    assert same_rows(U, before)


@pytest.mark.parametrize("shape", [(6,), (2, 5), (2, 7), (1, 2, 6)])
def test_rows_of_the_wrong_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"rows must have shape \(n, 6\), but got"):
        SVM.snap(np.zeros(shape))


def test_no_configurations_are_no_rows() -> None:
    assert SVM.encode([]).shape == (0, 6)
    assert SVM.decode(np.zeros((0, 6))) == []
    assert SVM.sample(0, rng=rng()).shape == (0, 6)


def test_an_inactive_parameter_is_absent_and_nan() -> None:
    X = SVM.encode([LINEAR, POLY])
    assert np.isnan(X[:, 2]).tolist() == [True, False]
    assert SVM.decode(X) == [LINEAR, POLY]


def test_encoding_one_by_one_or_together_is_the_same_to_the_bit() -> None:
    space = Space({"n": Int(1, 3000, log=True), "m": Int(1, 10**6, log=True), "x": SVM["C"]})
    X = space.encode(space.decode(space.sample(500, rng=rng())))
    singly = np.vstack([space.encode([c]) for c in space.decode(X)])
    assert same_rows(X, singly)
    assert same_rows(space.snap(X), X)


def test_encoding_a_name_that_is_not_in_the_space_fails() -> None:
    with pytest.raises(KeyError, match="depth"):
        SVM.encode([{**LINEAR, "depth": 1}])


@pytest.mark.parametrize(
    ("p", "count"), [(Int(1, 5), 5), (Categorical(["a", None, True, 1]), 4), (Bool(), 2)]
)
def test_samples_are_uniform_over_values(p: Any, count: int) -> None:
    space = Space({"p": p})
    n = 20_000
    counts = Counter(repr(c["p"]) for c in space.decode(space.sample(n, rng=rng(1))))
    assert len(counts) == count
    spread = 5 * math.sqrt(n / count)
    assert all(abs(c - n / count) < spread for c in counts.values())


# ---- conditions ----


@pytest.mark.parametrize(
    ("config", "active"),
    [
        ({"a": False}, "a"),
        ({"a": True, "b": 1}, "ba"),
        ({"a": True, "b": 2, "c": "off"}, "cba"),
        ({"a": True, "b": 2, "c": "on", "d": 0.1}, "dcba"),
        ({"a": True, "b": 3, "c": "on", "d": 0.25, "e": 1.0}, "edcba"),
    ],
)
def test_conditions_reach_four_levels_deep(config: dict[str, Any], active: str) -> None:
    assert "".join(DEEP.validate(config)) == active
    X = DEEP.encode([config])
    assert same_rows(DEEP.snap(X), X)
    assert DEEP.decode(X) == [config]


def test_a_child_of_an_inactive_parent_is_inactive_whatever_its_coordinate() -> None:
    X = DEEP.snap(np.array([[1.0, 1.0, 1.0, 1.0, 0.0]]))
    assert np.isnan(X[0]).tolist() == [True, True, True, True, False]


def test_a_parameter_with_two_parents_needs_both() -> None:
    space = Space({"a": Bool(), "b": Bool(), "x": Float(0, 1, when={"a": True, "b": [False]})})
    rows = space.encode([{"a": a, "b": b} for a in (False, True) for b in (False, True)])
    assert np.isnan(space.snap(rows)[:, 2]).tolist() == [True, True, False, True]


def test_a_bound_on_a_float_agrees_between_rows_and_configurations_next_to_it() -> None:
    for bound in (1 / 3, 0.5, 0.1 + 0.2, 1e-13):
        space = Space({"x": Float(0, 1), "y": Bool(when={"x": at_least(bound)})})
        near = [bound + k * step for k in range(-5, 6) for step in (1e-16, 1e-13, 1e-12)]
        U = np.array([[u, 0.0] for u in near if u >= 0])
        configs = space.decode(U)
        assert [space.validate(c) for c in configs] == configs
        assert same_rows(np.isnan(space.encode(configs)), np.isnan(space.snap(U)))


def test_a_thousand_levels_declared_in_reverse_are_put_in_order() -> None:
    n = 1000
    chain = {f"x{i}": Bool(when={f"x{i - 1}": True} if i else None) for i in reversed(range(n))}
    assert sum(map(len, Space(chain).decode(np.ones((1, n))))) == n


def test_parents_come_level_by_level_and_in_the_declared_order_within_a_level() -> None:
    space = Space(
        {
            "low": Bool(when={"top": True, "middle": True}),
            "second": Bool(),
            "middle": Bool(when={"top": True}),
            "other": Bool(when={"second": True}),
            "top": Bool(),
        }
    )
    assert space._order == ("second", "top", "middle", "other", "low")


@pytest.mark.parametrize(
    ("parameters", "forbid", "message"),
    [
        ({f"x{i}": Bool() for i in range(10_001)}, [], "up to 10000 parameters, but got 10001"),
        ({"x": Bool()}, [{"x": True}] * 10_001, "up to 10000 combinations, but got 10001"),
        (
            {f"x{i}": Bool() for i in range(11)},
            [{f"x{i}": True for i in range(11)}] * 10_000,
            "forbid= takes up to 100000 conditions in all",
        ),
        (
            {f"x{i}": Bool() for i in range(400)}
            | {f"y{i}": Bool(when={f"x{j}": True for j in range(400)}) for i in range(300)},
            [],
            "up to 100000 conditions in all",
        ),
        ({"x" * 1001: Bool()}, [], "strings of 1 to 1000 characters, but got 'xxx"),
        (
            {f"x{i}": Bool() for i in range(9_000)},
            [{f"x{i}": [True, False]} for i in range(9_000)],
            r"every configuration is forbidden by \[\{'x0'",
        ),
    ],
    ids=["parameters", "clauses", "conditions to forbid", "conditions", "names", "all forbidden"],
)
def test_a_space_that_would_take_too_long_to_read_is_refused(
    parameters: dict[str, Bool], forbid: list[dict[str, Any]], message: str
) -> None:
    with pytest.raises(SpaceError, match=message) as caught:
        Space(parameters, forbid=forbid)
    assert len(str(caught.value)) < 500


# ---- what is refused: spaces ----


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "a Space needs at least one parameter, but got an empty mapping"),
        ([("x", Bool())], "a Space takes a mapping from names to parameters, but got"),
        (None, "a Space takes a mapping from names to parameters, but got None"),
        ({"": Bool()}, "parameter names are strings of 1 to 1000 characters, but got ''"),
        ({1: Bool()}, "parameter names are strings of 1 to 1000 characters, but got 1"),
        ({"x": (0, 1)}, r"'x' must be one of Float, Int, .*, but got \(0, 1\); .*from_dict"),
        ({"x": Bool}, "'x' must be one of Float, Int, .*, but got <class"),
        ({"x": Bool(when={"x": True})}, r"conditions form a cycle among 'x'"),
        (
            {"x": Bool(when={"y": True}), "y": Bool(when={"x": True}), "z": Bool()},
            r"conditions form a cycle among 'x', 'y'",
        ),
        ({"x": Bool(when={"y": 1})}, "'x' depends on 'y', which is not a parameter .* has 'x'"),
        (
            {"k": Categorical(["a"]), "x": Bool(when={"k": "b"})},
            r"'x': when= 'k' must be one of \['a'\], but got 'b'",
        ),
        (
            {"n": Int(1, 3), "x": Bool(when={"n": at_least(4)})},
            "'x': when= 'n' >= 4 can never hold: the largest value is 3",
        ),
        (
            {"f": Float(0, 1), "x": Bool(when={"f": 0.5})},
            "'x': when= 'f' is a Float: compare it by at_least",
        ),
        (
            {"a": TrainSize(), "b": TrainSize()},
            r"a space has at most one TrainSize, but got \['a', 'b'\]",
        ),
    ],
)
def test_a_space_that_contradicts_itself_is_refused(parameters: Any, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        Space(parameters)


@pytest.mark.parametrize(
    ("forbid", "message"),
    [
        (None, "forbid must be a list of mappings, but got None"),
        ({"kernel": "poly"}, "forbid must be a list of mappings, but got {'kernel': 'poly'}"),
        ("kernel", "forbid must be a list of mappings, but got 'kernel'"),
        (3, "forbid must be a list of mappings, but got 3"),
        (["kernel"], "forbid= must be a mapping from names to values, but got 'kernel'"),
        ([{}], "forbid= needs at least one name and value, but got {}"),
        ([None], "forbid= needs at least one name and value, but got None"),
        ([{"kernel": []}], "forbid= 'kernel': a condition needs at least one value"),
        ([{"depth": 1}], "forbid= names 'depth', which is not a parameter .* it has 'C', 'kernel'"),
        ([{"kernel": "rbf"}], r"forbid= 'kernel' must be one of \['linear', 'poly'\], but got 'rb"),
        ([{"C": 1.0}], "forbid= 'C' is a Float: compare it by at_least"),
        ([{"kernel": ["linear", "poly"]}], r"\(nearly\) every configuration is forbidden by \[{"),
        ([{"kernel": "linear"}, {"degree": at_least(2)}], r"every configuration is forbidden"),
        ([{"C": at_least(1e-4)}], r"every configuration is forbidden"),
    ],
)
def test_an_impossible_forbid_is_refused(forbid: Any, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        Space(SVM, forbid=forbid)


# ---- what is refused: configurations ----


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({**LINEAR, "depth": 1}, "unknown parameter 'depth': this space has 'C', 'kernel', 'degr"),
        ({**LINEAR, 3: 1}, "unknown parameter 3: this space has 'C'"),
        ({**LINEAR, "C": 1e4}, r"'C' must be from 0\.0001 to 1000\.0, but got 10000\.0"),
        ({**LINEAR, "C": math.nan}, "'C' must be a finite number, but got nan"),
        ({**LINEAR, "C": 10**400}, "'C' must be a finite number, but got 1000"),
        ({**LINEAR, "kernel": "rbf"}, r"'kernel' must be one of \['linear', .*\], but got 'rbf'"),
        ({**LINEAR, "shuffle": 1}, r"'shuffle' must be one of \[False, True\], but got 1"),
        (
            {**LINEAR, "degree": 3},
            r"'degree' must be left out: it needs 'kernel' in \['poly'\], but got 'linear'",
        ),
        ({**LINEAR, "kernel": "poly"}, "'degree' is active and must be given"),
        ({}, "'C' is active and must be given"),
        (None, "a configuration is a mapping from names to values, but got None"),
        ([("C", 1)], "a configuration is a mapping from names to values, but got"),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused(config: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        SVM.validate(config)


def test_a_grandchild_of_an_inactive_parameter_must_be_left_out() -> None:
    with pytest.raises(ConfigError, match="'c' must be left out: its parent 'b' is inactive"):
        DEEP.validate({"a": False, "c": "on"})


def test_a_forbidden_combination_is_refused_and_shown() -> None:
    space = Space(SVM, forbid=[{"kernel": "poly", "width": [64, 128]}])
    message = r"forbidden combination \('kernel' in \['poly'\], 'width' in \[64, 128\]\): got {'C'"
    with pytest.raises(ConfigError, match=message):
        space.validate(POLY)
    assert space.validate({**POLY, "width": 32}) == {**POLY, "width": 32}


def test_a_combination_with_an_inactive_parameter_is_not_forbidden() -> None:
    space = Space(SVM, forbid=[{"degree": [2, 3, 4]}])
    assert space.validate(LINEAR) == LINEAR
    assert space.allowed(space.encode([LINEAR, {**POLY, "degree": 5}])).all()
    assert {c.get("degree") for c in space.decode(space.sample(200, rng=rng()))} == {None, 5}


def test_a_validated_configuration_is_plain_and_in_declared_order() -> None:
    given = {name: POLY[name] for name in reversed(POLY)}
    given |= {
        "C": np.float32(2),
        "degree": np.int64(3),
        "shuffle": np.True_,
        "kernel": np.str_("poly"),
    }
    config = SVM.validate(given)
    assert list(config) == list(SVM)
    assert [type(v) for v in config.values()] == [float, str, int, int, bool, float]


def test_names_may_be_anything_but_empty() -> None:
    names = ["a.b", "model__C", "λ", "new\nline", " ", "'", "\x00", "when"]
    space = Space({name: Int(0, 3) for name in names})
    config = dict.fromkeys(names, 2)
    assert space.decode(space.encode([space.validate(config)])) == [config]


# ---- rare allowed corners ----


def test_samples_are_found_where_one_in_ten_thousand_is_allowed() -> None:
    space = Space({"n": Int(0, 9999), "b": Bool()}, forbid=[{"n": at_least(1)}])
    assert {c["n"] for c in space.decode(space.sample(20, rng=rng()))} == {0}


def test_sampling_around_what_is_forbidden_stays_uniform() -> None:
    space = Space({"n": Int(0, 9)}, forbid=[{"n": [3, 4, 5]}])
    counts = Counter(c["n"] for c in space.decode(space.sample(14_000, rng=rng(2))))
    assert sorted(counts) == [0, 1, 2, 6, 7, 8, 9]
    assert all(abs(c - 2000) < 250 for c in counts.values())


# ---- complete ----


@property_test
@given(spaces(), seeds, st.data())
def test_a_part_of_a_valid_configuration_can_be_completed(
    space: Space, seed: int, data: st.DataObject
) -> None:
    config = space.decode(space.sample(1, rng=rng(seed)))[0]
    keep = data.draw(st.lists(st.sampled_from(list(config)), unique=True))
    part = {name: config[name] for name in keep}
    full = space.complete(part, rng=rng(seed))
    assert space.validate(full) == full
    assert {name: full[name] for name in keep} == part


def test_completing_a_child_chooses_its_ancestors() -> None:
    ten = list("abcdefghij")
    space = Space(
        {
            "p": Categorical(ten),
            "q": Categorical(ten, when={"p": "j"}),
            "r": Categorical(ten, when={"q": ["a", "i"]}),
            "s": Float(0, 1, when={"r": "h"}),
            "t": Int(1, 9, when={"s": at_least(0.999)}),
        }
    )
    full = space.complete({"t": 5}, rng=rng())
    assert full["p"] == "j"
    assert full["q"] in ("a", "i")
    assert full["r"] == "h"
    assert full["t"] == 5


def test_completing_nothing_draws_everything() -> None:
    assert SVM.validate(full := SVM.complete({}, rng=rng())) == full


def test_completing_everything_draws_nothing() -> None:
    assert SVM.complete(POLY, rng=rng()) == POLY


def test_completing_takes_numpy_scalars() -> None:
    space = Space({"n": Int(1, 9), "f": Bool(), "x": Int(1, 2, when={"n": at_least(5), "f": True})})
    full = space.complete({"n": np.int64(6), "f": np.True_}, rng=rng())
    assert "x" in full


def test_completing_is_the_same_for_the_same_seed() -> None:
    assert SVM.complete({"C": 1}, rng=rng(3)) == SVM.complete({"C": 1}, rng=rng(3))


@pytest.mark.parametrize(
    ("partial", "message"),
    [
        ({"depth": 1}, "unknown parameter 'depth': this space has"),
        ({"C": 1e9}, r"'C' must be from 0\.0001 to 1000\.0, but got"),
        (
            {"kernel": "linear", "degree": 3},
            r"no configuration .*: 'degree' needs 'kernel' in \['poly'\], but got 'lin",
        ),
        (None, "a configuration is a mapping from names to values, but got None"),
    ],
)
def test_a_part_that_fits_nothing_is_refused(partial: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        SVM.complete(partial, rng=rng())


def test_a_part_whose_ancestors_exclude_it_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"'c': 'on'}: 'b' needs 'a' in \[True\], but got False"):
        DEEP.complete({"a": False, "c": "on"}, rng=rng())


@pytest.mark.parametrize("partial", [{"kernel": "poly"}, {"degree": 3}, POLY])
def test_a_part_all_of_whose_completions_are_forbidden_is_refused(partial: Any) -> None:
    space = Space(SVM, forbid=[{"kernel": "poly"}])
    with pytest.raises(
        ConfigError, match=r"no configuration of this space fits .*: forbidden comb"
    ):
        space.complete(partial, rng=rng())


def test_children_that_exclude_each_other_cannot_be_completed() -> None:
    space = Space({"k": Bool(), "x": Bool(when={"k": True}), "y": Bool(when={"k": False})})
    with pytest.raises(ConfigError, match=r"no configuration of this space fits {'x': True, 'y'"):
        space.complete({"x": True, "y": True}, rng=rng())


# ---- grid ----


def brute_force(space: Space) -> set[str]:
    """All valid configurations of a small space, by trying every combination of values."""
    values = [[p.from_unit((i + 0.5) / 99) for i in range(99)] for p in space.values()]
    distinct = [list({repr(v): v for v in column}.values()) for column in values]
    found = set()
    for size in range(len(space) + 1):
        for names in itertools.combinations(range(len(space)), size):
            for chosen in itertools.product(*[distinct[j] for j in names]):
                try:
                    config = space.validate(
                        {space.names[j]: v for j, v in zip(names, chosen, strict=True)}
                    )
                except ConfigError:
                    continue
                found.add(repr(config))
    return found


@pytest.mark.parametrize("forbid", [[], [{"n": [2, 3], "k": "a"}], [{"k": "b", "m": at_least(2)}]])
def test_the_grid_is_every_valid_configuration_once(forbid: Any) -> None:
    space = Space(
        {
            "m": Int(1, 3, log=True, when={"k": "b"}),
            "k": Categorical(["a", "b"]),
            "n": Int(1, 3),
            "f": Bool(when={"m": at_least(2)}),
        },
        forbid=forbid,
    )
    X = space.grid()
    assert X is not None
    configs = [repr(space.validate(c)) for c in space.decode(X)]
    assert len(configs) == len(set(configs))
    assert set(configs) == brute_force(space)


def test_grid_rows_are_encoded_rows_to_the_bit() -> None:
    space = Space(
        {"n": Int(1, 90, log=True), "k": Bool(), "m": Int(1, 7, log=True, when={"k": True})}
    )
    X = space.grid()
    assert X is not None
    assert same_rows(space.snap(X), X)
    assert same_rows(space.encode(space.decode(X)), X)


def test_samples_of_a_finite_space_are_rows_of_its_grid_to_the_bit() -> None:
    space = Space({"n": Int(1, 90, log=True), "m": Int(-3, 5), "k": Categorical(["a", "b", "c"])})
    X = space.grid()
    assert X is not None
    rows = {row.tobytes() for row in X}
    assert all(row.tobytes() in rows for row in space.sample(500, rng=rng()))


@pytest.mark.parametrize(
    "parameters",
    [
        {"x": Float(0, 1), "b": Bool()},
        {"n": Int(1, 30_000)},
        {f"n{i}": Int(0, 9) for i in range(9)},
    ],
)
def test_a_continuous_or_large_space_has_no_grid(parameters: Any) -> None:
    assert Space(parameters).grid() is None


def test_a_space_of_very_many_constants_has_a_grid() -> None:
    space = Space({f"c{i}": Categorical([i]) for i in range(100)} | {"b": Bool()})
    X = space.grid()
    assert X is not None
    assert X.shape == (2, 101)
    X = Space({f"c{i}": Categorical([i]) for i in range(100)}).grid()
    assert X is not None
    assert len(X) == 1


def test_the_grid_cannot_be_changed() -> None:
    X = Space({"b": Bool()}).grid()
    assert X is not None
    with pytest.raises(ValueError, match="read-only"):
        X[0] = 0.0


# ---- what models may know ----


def test_columns_tell_models_the_kinds_of_parameters() -> None:
    assert len(SVM.columns.cells) == 6
    assert SVM.columns.cells.tolist() == [0, 2, 4, 3, 2, 2]
    assert SVM.columns.categorical.tolist() == [False, True, False, False, True, False]
    assert SVM.columns.size.tolist() == [False] * 5 + [True]
    assert SVM.size_name == "train_size"
    assert DEEP.size_name is None


# ---- the mapping ----


def test_a_space_is_a_mapping_in_declared_order() -> None:
    assert (
        list(SVM) == list(SVM.names) == ["C", "kernel", "degree", "width", "shuffle", "train_size"]
    )
    assert len(SVM) == 6
    assert SVM["degree"] == Int(2, 5, when={"kernel": "poly"})
    assert "degree" in SVM
    assert "depth" not in SVM
    assert dict(SVM)["shuffle"] == Bool()


def test_a_space_is_read_only() -> None:
    with pytest.raises(TypeError, match="does not support item assignment"):
        SVM["C"] = Bool()  # type: ignore[index]
    with pytest.raises(TypeError, match="does not support item deletion"):
        del SVM["C"]  # type: ignore[attr-defined]


def test_a_space_keeps_what_was_declared_when_its_source_changes() -> None:
    source = {"x": Bool()}
    space = Space(source)
    source["y"] = Bool()
    assert list(space) == ["x"]


def test_an_unknown_name_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="depth"):
        SVM["depth"]


@property_test
@given(spaces())
def test_a_space_equals_its_copies_and_survives_pickling(space: Space) -> None:
    assert Space(space, forbid=space.forbid) == space
    assert pickle.loads(pickle.dumps(space)) == space


@pytest.mark.parametrize(
    "other",
    [
        {"a": Int(0, 1), "b": Bool()},
        Space({"b": Bool(), "a": Int(0, 1)}),
        Space({"a": Int(0, 2), "b": Bool()}),
        Space({"a": Int(0, 1), "c": Bool()}),
        Space({"a": Int(0, 1), "b": Categorical([False, True])}),
        Space({"a": Int(0, 1), "b": Bool(when={"a": 0})}),
        Space({"a": Int(0, 1), "b": Bool()}, forbid=[{"a": 0, "b": False}]),
    ],
)
def test_spaces_that_differ_are_not_equal(other: Any) -> None:
    assert Space({"a": Int(0, 1), "b": Bool()}) != other


def test_a_space_shows_how_it_was_made() -> None:
    import tradewind.space

    space = Space(SVM, forbid=[{"kernel": "poly", "C": at_least(1)}])
    assert eval(repr(space), vars(tradewind.space)) == space


def test_the_narrowest_condition_decides_what_is_drawn_for_a_parent() -> None:
    space = Space(
        {
            "x": Int(1, 10**6),
            "b": Int(1, 2, when={"x": at_least(2)}),
            "a": Int(1, 2, when={"x": at_least(999_990)}),
        }
    )
    config = space.complete({"a": 1, "b": 1}, rng=np.random.default_rng(0))
    assert config["x"] >= 999_990
