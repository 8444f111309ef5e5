"""Conditions as data, and the regions of the unit interval in which they hold."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.space.generate import conditions_on, floats, parameters, property_test
from tradewind.errors import SpaceError
from tradewind.space import (
    AtLeast,
    Bool,
    Categorical,
    Float,
    Int,
    OneOf,
    Ordinal,
    TrainSize,
    at_least,
)
from tradewind.space.conditions import read_conditions
from tradewind.space.encoding import within
from tradewind.space.regions import Region

unit = st.floats(0, 1)


def read(given: Any) -> Any:
    return Float(0, 1, when={"a": given}).when["a"]


# ---- writing them ----


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("poly", OneOf(("poly",))),
        (None, OneOf((None,))),
        (2, OneOf((2,))),
        (["a", "b"], OneOf(("a", "b"))),
        (("a", "b"), OneOf(("a", "b"))),
        ({"b", "a"}, OneOf(("a", "b"))),
        (range(2, 4), OneOf((2, 3))),
        (np.array([1, 2]), OneOf((1, 2))),
        (np.int64(3), OneOf((3,))),
        ([np.str_("a"), np.True_], OneOf(("a", True))),
        (OneOf(("x",)), OneOf(("x",))),
        (at_least(2), AtLeast(2)),
    ],
)
def test_a_condition_is_a_value_or_a_list_or_a_bound(given: Any, stored: Any) -> None:
    assert read(given) == stored


@pytest.mark.parametrize("low", [np.int64(3), np.float32(3), 3.0, np.array(3)])
def test_at_least_takes_numpy_scalars(low: Any) -> None:
    assert at_least(low) == AtLeast(3)


def test_conditions_survive_being_shown() -> None:
    for c in (OneOf(("a", 1, None)), AtLeast(2.5)):
        assert eval(repr(c), {"OneOf": OneOf, "AtLeast": AtLeast}) == c


def test_no_conditions_may_be_written_as_none_or_an_empty_mapping() -> None:
    assert Float(0, 1, when=None) == Float(0, 1, when={}) == Float(0, 1)


@pytest.mark.parametrize(
    ("when", "message"),
    [
        ("kernel", "when= must be a mapping from names to values, but got 'kernel'"),
        (["kernel"], r"when= must be a mapping from names to values, but got \['kernel'\]"),
        (3, "when= must be a mapping from names to values, but got 3"),
        ({1: "a"}, "when= must be keyed by parameter names, but got 1"),
        ({"a": []}, "when= 'a': a condition needs at least one value, but got an empty list"),
        ({"a": {"x": 1}}, "when= 'a': .* takes strings, numbers, booleans and None, but got {"),
        ({"a": [[1]]}, r"when= 'a': .* takes strings, numbers, booleans and None, but got \[1\]"),
        ({"a": len}, "when= 'a': .* takes strings, numbers, booleans and None, but got <built"),
        ({"a": b"x"}, "when= 'a': .* takes strings, numbers, booleans and None, but got b'x'"),
        ({"a": math.nan}, "when= 'a': a condition takes finite numbers, but got nan"),
    ],
)
def test_what_is_not_a_condition_is_refused_by_rule_and_value(when: Any, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        Float(0, 1, when=when)


@pytest.mark.parametrize("low", ["2", True, None, [1], np.True_])
def test_at_least_takes_numbers_only(low: Any) -> None:
    with pytest.raises(TypeError, match=r"at_least\(\) takes a number, but got"):
        at_least(low)


@pytest.mark.parametrize("low", [math.nan, math.inf, -math.inf, 10**400])
def test_at_least_takes_finite_numbers_only(low: Any) -> None:
    with pytest.raises(SpaceError, match=r"at_least\(\) takes a finite number, but got"):
        at_least(low)


def test_a_list_of_no_values_is_refused_where_it_is_made() -> None:
    with pytest.raises(SpaceError, match="a condition needs at least one value"):
        OneOf(())


def test_a_forbidden_combination_is_named_in_its_errors() -> None:
    with pytest.raises(SpaceError, match="forbid= 'a': a condition needs at least one value"):
        read_conditions({"a": []}, what="forbid=")


# ---- when they hold ----


def test_true_is_not_one_and_false_is_not_zero() -> None:
    assert not OneOf((1, 0)).holds(True)
    assert not OneOf((True,)).holds(1)
    assert OneOf((1,)).holds(1.0)


def test_conditions_on_true_and_on_one_are_not_equal() -> None:
    assert OneOf((1,)) != OneOf((True,))
    assert OneOf((1,)) == OneOf((1.0,))
    assert OneOf((1,)) != AtLeast(1)


@pytest.mark.parametrize("value", ["9", None, True])
def test_only_numbers_are_at_least_something(value: Any) -> None:
    assert not AtLeast(0).holds(value)


def test_at_least_includes_its_bound() -> None:
    assert AtLeast(2).holds(2)
    assert AtLeast(2).holds(2.5)
    assert not AtLeast(2).holds(1.999)


# ---- as regions of the unit interval ----


@st.composite
def regions(draw: st.DrawFn) -> tuple[Any, Region]:
    p = draw(parameters())
    return p, Region(p, draw(conditions_on(p)))


def contains(region: Region, u: float) -> bool:
    return bool(within(np.array([u]), region.edges)[0])


@property_test
@given(regions(), unit)
def test_a_decoded_value_meets_a_condition_where_its_coordinate_does(
    given: tuple[Any, Region], u: float
) -> None:
    p, region = given
    value = p.from_unit(u)
    u = u if p.cells == 0 else p.to_unit(value)
    assert region.holds(value) == contains(region, u) == contains(region, p.to_unit(value))


@property_test
@given(regions(), unit)
def test_the_region_of_a_finite_parameter_is_where_its_condition_holds(
    given: tuple[Any, Region], u: float
) -> None:
    p, region = given
    if p.cells:
        value = p.from_unit(u)
        assert contains(region, p.to_unit(value)) == region.condition.holds(value)


@property_test
@given(floats(), st.data())
def test_a_float_at_or_above_its_bound_is_in_the_region(p: Float, data: st.DataObject) -> None:
    inside = st.floats(p.low, p.high)
    low, value = sorted([data.draw(inside), data.draw(inside)])
    region = Region(p, at_least(low))
    assert region.holds(value)
    assert region.holds(low)


@property_test
@given(floats(), st.data())
def test_a_float_clearly_below_its_bound_is_outside_the_region(
    p: Float, data: st.DataObject
) -> None:
    inside = st.floats(p.low, p.high)
    value, low = sorted([data.draw(inside), data.draw(inside)])
    if p.to_unit(low) - p.to_unit(value) > 1e-10:
        assert not Region(p, at_least(low)).holds(value)


@property_test
@given(regions())
def test_nan_is_in_no_region(given: tuple[Any, Region]) -> None:
    assert not contains(given[1], math.nan)


@property_test
@given(regions(), unit)
def test_a_share_of_a_region_is_inside_it(given: tuple[Any, Region], u: float) -> None:
    p, region = given
    inside = region.stretch(0.01 + 0.98 * u)  # its ends belong to the cells beside it
    assert region.holds(p.from_unit(inside))


def test_a_list_that_skips_values_is_a_region_of_several_parts() -> None:
    p = Int(0, 9)
    region = Region(p, OneOf((1, 2, 5, 9)))
    held = [v for v in range(10) if contains(region, p.to_unit(v))]
    assert held == [1, 2, 5, 9]
    assert not contains(region, math.nan)


def test_neighbours_of_a_listed_value_are_outside_even_among_very_many() -> None:
    p = Int(0, 10**13)
    region = Region(p, OneOf((5,)))
    assert [contains(region, p.to_unit(v)) for v in (4, 5, 6)] == [False, True, False]


def test_at_least_compares_the_values_of_choices_not_their_places() -> None:
    p = Ordinal([3, 1, 2, "many", None, True])
    region = Region(p, at_least(2))
    assert [contains(region, p.to_unit(v)) for v in p.choices] == [1, 0, 1, 0, 0, 0]


@pytest.mark.parametrize(
    ("p", "condition", "message"),
    [
        (Float(0, 1), OneOf((0.5,)), r"is a Float: compare it by at_least\(...\), not by equality"),
        (Float(0, 1), at_least(1.5), r">= 1\.5 can never hold: the largest value is 1\.0"),
        (Int(1, 5), at_least(5.5), r">= 5\.5 can never hold: the largest value is 5"),
        (Int(1, 5), OneOf((6,)), "must be from 1 to 5, but got 6"),
        (Int(1, 5), OneOf((True,)), "must be a whole number, but got True"),
        (Int(1, 5), OneOf((1, "a")), "must be a whole number, but got 'a'"),
        (Categorical(["a"]), OneOf(("b",)), r"must be one of \['a'\], but got 'b'"),
        (Categorical(["a"]), at_least(0), r">= 0 can never hold: it takes \['a'\]"),
        (Bool(), OneOf((1,)), r"must be one of \[False, True\], but got 1"),
        (Bool(), at_least(0), r">= 0 can never hold: it takes \[False, True\]"),
        (TrainSize([0.5]), at_least(0.6), r">= 0\.6 can never hold: it takes \[0\.5\]"),
    ],
)
def test_a_condition_that_can_never_hold_is_refused(p: Any, condition: Any, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        Region(p, condition)


@pytest.mark.parametrize("low", [-1e300, -5, 0.5])
def test_a_bound_below_the_range_holds_everywhere(low: float) -> None:
    for p in (Float(0.5, 1), Int(1, 3)):
        region = Region(p, at_least(low))
        assert all(contains(region, p.to_unit(v)) for v in (p.low, p.high))


def test_a_bound_at_the_very_top_holds_only_there() -> None:
    region = Region(Float(0, 1), at_least(1.0))
    assert contains(region, 1.0)
    assert not contains(region, 0.999)
    assert Float(0, 1).from_unit(region.stretch(0.3)) == 1.0
