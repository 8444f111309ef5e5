"""Each kind of parameter: what it takes, what it refuses, and its way to [0, 1] and back."""

from __future__ import annotations

import math
import pickle
from collections import Counter
from dataclasses import replace
from enum import StrEnum
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import tradewind.space
from tests.space.generate import floats, ints, parameters, property_test, resolution, train_sizes
from tradewind.errors import ConfigError, SpaceError
from tradewind.space import Bool, Categorical, Float, Int, Ordinal, Space, TrainSize, at_least

unit = st.floats(0, 1)

# ---- there and back ----


@property_test
@given(parameters(), unit)
def test_a_decoded_value_is_one_that_the_parameter_takes(p: Any, u: float) -> None:
    value = p.from_unit(u)
    assert p.check(value) == value
    assert type(p.check(value)) is type(value)


@property_test
@given(parameters(), unit)
def test_a_decoded_value_comes_back_as_itself(p: Any, u: float) -> None:
    value = p.from_unit(u)
    again = p.from_unit(p.to_unit(value))
    assert again == value
    assert type(again) is type(value)


@property_test
@given(st.one_of(floats(), ints()))
def test_the_bounds_of_a_number_come_back_as_themselves(p: Any) -> None:
    assert p.from_unit(p.to_unit(p.low)) == p.low
    assert p.from_unit(p.to_unit(p.high)) == p.high


@property_test
@given(st.one_of(floats(), ints()), unit, unit)
def test_decoding_never_reverses_the_order_of_numbers(p: Any, u: float, v: float) -> None:
    assert (p.from_unit(min(u, v))) <= p.from_unit(max(u, v))


@property_test
@given(floats(), unit)
def test_a_float_is_never_decoded_outside_its_range(p: Float, u: float) -> None:
    assert p.low <= p.from_unit(u) <= p.high


@property_test
@given(floats(), unit)
@example(Float(1e15, 1e15 + 1000), 0.5)
@example(Float(-1e3, 1e3), 0.5 + 1e-10)
@example(Float(5e-324, 1e308, log=True), 0.9)
def test_a_float_is_decoded_to_about_twelve_digits(p: Float, u: float) -> None:
    assert abs(p.to_unit(p.from_unit(u)) - u) <= resolution(p)


@pytest.mark.parametrize(
    ("p", "u", "value"),
    [
        (Float(0, 1), 1 / 3, 0.333333333333),
        (Float(0, 1000), 1 / 3, 333.333333333),
        (Float(1e-4, 1e4, log=True), 0.5, 1.0),
        (Float(1, 1000, log=True), 1 / 3, 10.0),
    ],
)
def test_floats_are_rounded_to_twelve_digits(p: Float, u: float, value: float) -> None:
    assert p.from_unit(u) == value


@pytest.mark.parametrize("u", [0.0, 1e-16, 1.0, 1 - 1e-16])
def test_bounds_with_more_than_twelve_digits_stay_exact(u: float) -> None:
    p = Float(0.00010000000000000009, 999.9999999999998, log=True)
    assert p.from_unit(u) in (p.low, p.high)


def test_the_ends_of_an_extremely_narrow_float_are_both_reachable() -> None:
    p = Float(1.0, math.nextafter(1.0, 2.0))
    assert [p.from_unit(u) for u in (0.0, 1.0)] == [p.low, p.high]


@pytest.mark.parametrize("u", [-0.5, -1e-300, 1.5, math.inf, -math.inf])
def test_numbers_outside_the_unit_interval_are_decoded_to_the_bounds(u: float) -> None:
    assert Float(2, 3).from_unit(u) == (2.0 if u < 0 else 3.0)


@pytest.mark.parametrize("low", [-(2**50), 0, 2**60, 3])
def test_the_widest_int_tells_neighbours_apart(low: int) -> None:
    p = Int(low, low + 2**50 - 1)
    for start in (p.low, p.low + 2**49, p.high - 100):
        for value in range(start, start + 101):
            assert p.from_unit(p.to_unit(value)) == value


def test_the_widest_log_int_tells_neighbours_apart() -> None:
    p = Int(1, 2**40, log=True)
    for start in (1, 2**20, 2**40 - 100):
        for value in range(start, start + 101):
            assert p.from_unit(p.to_unit(value)) == value


# ---- equal cells ----


@pytest.mark.parametrize(
    "p",
    [
        Int(0, 6),
        Int(-3, 3),
        Int(2**60, 2**60 + 9),
        Categorical(["a", None, True, 1, 2.5]),
        Ordinal([3, 1, 2]),
        Bool(),
        TrainSize(),
    ],
    ids=repr,
)
def test_every_value_has_an_equal_share_of_the_unit_interval(p: Any) -> None:
    each = 10
    n = each * p.cells
    counts = Counter(repr(p.from_unit((i + 0.5) / n)) for i in range(n))
    assert set(counts.values()) == {each}
    assert len(counts) == p.cells


def test_the_cells_of_a_log_int_are_as_wide_as_its_logarithms_say() -> None:
    p = Int(1, 8, log=True)
    n = 100_000
    counts = Counter(p.from_unit((i + 0.5) / n) for i in range(n))
    whole = math.log(8.5) - math.log(0.5)
    for value in range(1, 9):
        share = (math.log(value + 0.5) - math.log(value - 0.5)) / whole
        assert counts[value] / n == pytest.approx(share, abs=1.1 / n)


@property_test
@given(ints(), unit)
def test_cells_begin_and_end_at_their_edges(p: Int, u: float) -> None:
    value = p.from_unit(u)
    cell = p.cell(value)
    assert p.edge(cell) < p.to_unit(value) < p.edge(cell + 1)


@property_test
@given(ints(), st.lists(unit, min_size=1, max_size=20))
def test_the_centres_of_a_log_int_are_those_of_its_values_to_the_bit(
    p: Int, units: list[float]
) -> None:
    if p.log:
        for centre in p.centres(np.array(units)).tolist():
            assert centre == p.to_unit(p.from_unit(centre))


# ---- what is taken ----


@pytest.mark.parametrize(
    "value", [np.float32(0.5), np.float64(0.5), np.int64(0), np.array(0.5), 1, np.uint8(1)]
)
def test_a_float_takes_numpy_scalars_and_whole_numbers(value: Any) -> None:
    assert Float(0, 1).check(value) == float(value)
    assert type(Float(0, 1).check(value)) is float


@pytest.mark.parametrize("value", [np.int8(3), np.int64(3), 3.0, np.float32(3), np.array(3)])
def test_an_int_takes_whole_numbers_of_any_type(value: Any) -> None:
    assert Int(1, 5).check(value) == 3
    assert type(Int(1, 5).check(value)) is int


@pytest.mark.parametrize(
    ("value", "plain"),
    [(np.str_("a"), "a"), (np.int64(1), 1), (np.True_, True), (np.float64(2.5), 2.5), (1.0, 1)],
)
def test_a_categorical_takes_numpy_scalars_for_its_own_values(value: Any, plain: Any) -> None:
    taken = Categorical(["a", 1, True, 2.5, None]).check(value)
    assert taken == plain
    assert type(taken) is type(plain)


def test_parameters_take_numpy_scalars_as_bounds_and_choices() -> None:
    assert Float(np.float32(0.5), np.int64(2)) == Float(0.5, 2.0)
    assert Int(np.int64(1), np.float64(5)) == Int(1, 5)
    assert Categorical(np.array(["a", "b"])) == Categorical(["a", "b"])
    assert TrainSize(np.array([0.5, 1.0])) == TrainSize([0.5, 1])


def test_members_of_a_string_enum_become_plain_text() -> None:
    class Kernel(StrEnum):
        RBF = "rbf"

    assert type(Categorical([Kernel.RBF]).choices[0]) is str
    assert Categorical([Kernel.RBF]).check(Kernel.RBF) == "rbf"


def test_choices_may_come_from_any_ordered_iterable() -> None:
    assert Ordinal(range(3)) == Ordinal([0, 1, 2])
    assert Categorical(c for c in "ab") == Categorical(("a", "b"))


@pytest.mark.parametrize(
    ("p", "least"),
    [
        (Float(1e15, 1e15 + 10), 81),  # all floats between the ends
        (Float(-1e15 - 10, -1e15), 81),
        (Float(1.0, 1.0 + 1e-13), 400),
        (Float(1e300, 1e300 * (1 + 1e-13)), 400),
        (Float(1e10, 1e10 + 1), 1000),
        (Float(5e-324, 1e-320), 2000),
        (Float(1e-320, 1e-319, log=True), 9000),
        (Float(1e-300, 1e300, log=True), 9000),
        (Int(2**60, 2**60 + 10), 11),
        (Int(10**300, 10**300 + 3), 4),
    ],
    ids=str,
)
def test_what_lies_between_the_ends_of_an_odd_range_is_searched(p: Float | Int, least: int) -> None:
    values = {p.from_unit(u) for u in np.linspace(0.0, 1.0, 10_001).tolist()}
    assert len(values) >= least
    for value in values:
        assert p.check(value) == value
        assert p.from_unit(p.to_unit(value)) == value


# ---- what is refused: values ----

WIDE = Float(-1e300, 1e300)


@pytest.mark.parametrize(
    ("p", "value", "message"),
    [
        (Float(0, 1), 1.5, r"must be from 0\.0 to 1\.0, but got 1\.5"),
        (Float(0, 1), -1e-9, r"must be from 0\.0 to 1\.0, but got -1e-09"),
        (WIDE, math.nan, "must be a finite number, but got nan"),
        (WIDE, math.inf, "must be a finite number, but got inf"),
        (WIDE, np.float64("-inf"), r"must be a finite number, but got .*-inf"),
        (WIDE, 10**400, "must be a finite number, but got 1000"),
        (WIDE, "0.5", "must be a finite number, but got '0.5'"),
        (WIDE, True, "must be a finite number, but got True"),
        (WIDE, np.True_, "must be a finite number, but got .*True"),
        (WIDE, None, "must be a finite number, but got None"),
        (WIDE, [0.5], r"must be a finite number, but got \[0\.5\]"),
        (WIDE, np.array([0.5]), r"must be a finite number, but got array"),
        (WIDE, 1j, "must be a finite number, but got 1j"),
        (Int(1, 5), 6, "must be from 1 to 5, but got 6"),
        (Int(1, 5), 2.5, r"must be a whole number, but got 2\.5"),
        (Int(1, 5), math.nan, "must be a whole number, but got nan"),
        (Int(1, 5), math.inf, "must be a whole number, but got inf"),
        (Int(1, 5), 10**400, "must be a whole number, but got 1000"),
        (Int(1, 5), True, "must be a whole number, but got True"),
        (Int(1, 5), "3", "must be a whole number, but got '3'"),
        (Categorical(["a", "b"]), "c", r"must be one of \['a', 'b'\], but got 'c'"),
        (Categorical([0, 1]), True, r"must be one of \[0, 1\], but got True"),
        (Categorical([0, 1]), np.True_, r"must be one of \[0, 1\], but got .*True"),
        (Categorical(["a"]), math.nan, r"must be one of \['a'\], but got nan"),
        (Categorical(["a"]), ["a"], r"must be one of \['a'\], but got \['a'\]"),
        (Categorical(["a"]), np.array(["a", "b"]), r"must be one of \['a'\], but got array"),
        (Bool(), 1, r"must be one of \[False, True\], but got 1"),
        (Bool(), "True", r"must be one of \[False, True\], but got 'True'"),
        (Bool(), None, r"must be one of \[False, True\], but got None"),
        (TrainSize([0.5, 1]), 0.7, r"must be one of \[0\.5, 1\.0\], but got 0\.7"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_rule_and_value(
    p: Any, value: Any, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        p.check(value)


# ---- what is refused: parameters ----


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Float(1, 1), r"Float: `low < high` must hold, but got low=1, high=1"),
        (lambda: Float(2, 1), r"Float: `low < high` must hold, but got low=2, high=1"),
        (lambda: Float(2**60, 2**60 + 1), "`low < high` must hold, but both are 1.15.*e.18"),
        (lambda: Float(0, math.inf), "Float needs two finite bounds, but got low=0, high=inf"),
        (lambda: Float(math.nan, 1), "Float needs two finite bounds, but got low=nan"),
        (lambda: Float("0", 1), "Float needs two finite bounds, but got low='0'"),
        (lambda: Float(None, 1), "Float needs two finite bounds, but got low=None"),
        (lambda: Float(False, 1), "Float needs two finite bounds, but got low=False"),
        (lambda: Float(0, 10**400), "Float needs two finite bounds, but got low=0, high=1000"),
        (lambda: Float(-1e308, 1e308), r"Float: the range must be finite, but got low=-1e\+308"),
        (lambda: Float(0, 1, log=True), r"Float\(log=True\): `low > 0` must hold, but got low=0"),
        (lambda: Float(-1, 1, log=True), r"`low > 0` must hold, but got low=-1"),
        (
            lambda: Float(1e10, 1e10 + 2e-6, log=True),
            "must differ by more than 1e-09 of low.*low=1000000",
        ),
        (lambda: Int(5, 5), "Int: `low < high` must hold, but got low=5, high=5"),
        (lambda: Int(1, 2.5), "Int: high must be a whole number, but got 2.5"),
        (lambda: Int(0.5, 2), "Int: low must be a whole number, but got 0.5"),
        (lambda: Int(0, 9, log=True), r"Int\(log=True\): `low >= 1` must hold, but got low=0"),
        (lambda: Int(0, 2**50), r"`high - low < 2\*\*50` must hold, but got low=0, high=11258999"),
        (lambda: Int(1, 2**40 + 1, log=True), r"`high <= 2\*\*40` must hold, but got high=10995"),
        (lambda: Int(0, 10**400), "Int needs two finite bounds, but got low=0, high=1000"),
        (lambda: Categorical([]), "Categorical needs at least one value, but got an empty list"),
        (lambda: Categorical("abc"), "Categorical takes a list of values, but got 'abc'"),
        (lambda: Categorical(b"abc"), "Categorical takes a list of values, but got b'abc'"),
        (lambda: Categorical({"a": 1}), "Categorical takes a list of values, but got {'a': 1}"),
        (lambda: Categorical({"a"}), "Categorical takes values in a fixed order: a list, not {'a'"),
        (lambda: Categorical(3), "Categorical takes a list of values, but got 3"),
        (lambda: Categorical(["a", "a"]), "needs distinct values, but 'a' is listed twice"),
        (lambda: Ordinal([1, 1.0]), "Ordinal needs distinct values, but 1.0 is listed twice"),
        (lambda: Categorical([0.0, -0.0]), "needs distinct values, but -0.0 is listed twice"),
        (lambda: Categorical([math.nan]), "Categorical takes finite numbers, but got nan"),
        (lambda: Ordinal([1, math.inf]), "Ordinal takes finite numbers, but got inf"),
        (lambda: Ordinal([10**400]), "Ordinal takes finite numbers, but got 1000"),
        (lambda: Categorical([(1, 2)]), r"strings, numbers, booleans and None, but got \(1, 2\)"),
        (lambda: Categorical([np.zeros(2)]), "strings, numbers, booleans and None, but got array"),
        (lambda: Categorical([len]), "strings, numbers, booleans and None, but got <built-in"),
        (lambda: TrainSize([]), "TrainSize needs at least one value, but got an empty list"),
        (lambda: TrainSize([0, 1]), r"TrainSize takes fractions in \(0, 1\], but got 0"),
        (lambda: TrainSize([0.5, 1.5]), r"TrainSize takes fractions in \(0, 1\], but got 1.5"),
        (lambda: TrainSize([True]), r"TrainSize takes fractions in \(0, 1\], but got True"),
        (lambda: TrainSize(["all"]), r"TrainSize takes fractions in \(0, 1\], but got 'all'"),
        (
            lambda: TrainSize([1.0, 0.5]),
            r"TrainSize takes fractions in ascending order, but got \[1",
        ),
        (lambda: TrainSize(0.5), "TrainSize takes a list of values, but got 0.5"),
        (lambda: TrainSize([1.0], when={"a": 1}), "TrainSize cannot be conditional"),
    ],
)
def test_an_impossible_parameter_is_refused_by_rule_and_value(make: Any, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        make()


@pytest.mark.parametrize("kind", [Float, Int])
@pytest.mark.parametrize("log", [1, "yes", None, np.True_])
def test_log_is_true_or_false_and_nothing_else(kind: Any, log: Any) -> None:
    with pytest.raises(TypeError, match="log must be True or False, but got"):
        kind(1, 2, log=log)


# ---- as values ----


@property_test
@given(st.one_of(parameters(), train_sizes()))
def test_a_parameter_survives_pickling(p: Any) -> None:
    p.to_unit(p.from_unit(0.3))
    assert pickle.loads(pickle.dumps(p)) == p


@property_test
@given(st.one_of(parameters(), train_sizes()))
def test_an_unchanged_copy_of_a_parameter_is_equal_and_hashes_alike(p: Any) -> None:
    assert replace(p) == p
    assert hash(replace(p)) == hash(p)


def test_a_copy_of_a_parameter_may_change_one_thing() -> None:
    p = Int(1, 9, log=True, when={"a": 1})
    assert replace(p, high=20) == Int(1, 20, log=True, when={"a": 1})
    assert replace(p, when=None) == Int(1, 9, log=True)


@pytest.mark.parametrize(
    "written",
    [
        "Float(1.0, 2.0, log=True)",
        "Float(0.0, 1.0, step=0.1)",
        "Int(8, 64, step=8, when={'a': 1})",
        "Int(1, 9, when={'a': ['x', None], 'n': at_least(2)})",
        "Categorical(['a', None])",
        "Ordinal([1, 2], when={'a': True})",
        "Bool()",
        "TrainSize([0.5, 1.0])",
    ],
)
def test_a_parameter_is_shown_as_it_was_written(written: str) -> None:
    parameter = eval(written, vars(tradewind.space))
    assert repr(parameter) == written


# ---- steps ----


def test_a_step_makes_a_grid_of_short_numbers() -> None:
    p = Float(0, 1, step=0.1)
    assert [p.from_unit((i + 0.5) / 11) for i in range(11)] == [
        *(0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    ]
    assert p.check(0.1 + 0.2) == 0.3  # a sum that is not quite 0.3
    assert Int(8, 32, step=8).cells == 4
    assert {Int(8, 32, step=8).from_unit(u) for u in np.linspace(0, 1, 99)} == {8, 16, 24, 32}
    assert Int(1, 5, step=1) == Int(1, 5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Float(0, 1, step=0.3), "but got low=0.0, .*step=0.3; write high=0.9 or 1.2"),
        (lambda: Int(1, 100, step=10), "write high=91 or 101"),
        (lambda: Float(0, 1, step=5), "write high=5"),
        (lambda: Float(0.1, 1, log=True, step=0.1), "a log scale has no step"),
        (lambda: Int(1, 9, log=True, step=2), "a log scale has no step"),
        (lambda: Float(0, 1, step=0), "step must be a number > 0, but got 0"),
        (lambda: Int(1, 9, step=-1), "step must be a number > 0, but got -1"),
        (lambda: Int(1, 2, step=0.5), "step must be a whole number, but got 0.5"),
        (lambda: Int(1, 9, step=None), "step must be a number > 0, but got None"),
        (lambda: Float(1e9, 2e9, step=0.01), "step must be at least 1e-10 of the larger bound"),
        (lambda: Categorical("a", "b"), r"write Categorical\(\['a', 'b'\]\)"),
        (lambda: TrainSize(0.5, 1.0), r"write TrainSize\(\[0.5, 1.0\]\)"),
    ],
)
def test_a_step_or_a_list_that_cannot_be_meant_is_refused(make: Any, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        make()


@pytest.mark.parametrize(
    ("p", "value", "message"),
    [
        (
            Float(0, 1, step=0.25),
            0.3,
            "0.0 plus a whole number of steps .*nearest is 0.25",
        ),
        (Int(8, 32, step=8), 12, "8 plus a whole number of steps of 8, but got 12"),
    ],
)
def test_a_value_between_two_steps_is_refused(p: Any, value: float, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        p.check(value)


def test_conditions_know_the_steps() -> None:
    rate = Float(0, 1, step=0.1)
    space = Space({"rate": rate, "a": Bool(when={"rate": [0.1, 0.1 + 0.2]})})
    assert space.validate({"rate": 0.3, "a": True})
    assert space.validate({"rate": 0.4})
    above = Space({"n": Int(0, 30, step=10), "a": Bool(when={"n": at_least(11)})})
    assert [len(config) for config in above.decode(above.grid())] == [1, 1, 2, 2, 2, 2]


def test_a_parameter_cannot_be_changed() -> None:
    with pytest.raises(AttributeError, match="cannot assign"):
        Float(0, 1).low = -1.0  # type: ignore[misc]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (Categorical([0, 1]), Categorical([False, True])),
        (Categorical([0, 1]), Categorical([1, 0])),
        (Categorical([0, 1]), Ordinal([0, 1])),
        (Bool(), Categorical([False, True])),
        (TrainSize([1.0]), Ordinal([1.0])),
        (Int(1, 5), Float(1, 5)),
        (Float(1, 5), Float(1, 5, log=True)),
        (Float(1, 5), Float(1, 5, when={"a": 1})),
        (Float(1, 5, when={"a": 1}), Float(1, 5, when={"a": True})),
        (Float(1, 5, when={"a": 1}), Float(1, 5, when={"a": at_least(1)})),
    ],
)
def test_parameters_that_differ_are_not_equal(a: Any, b: Any) -> None:
    assert a != b
