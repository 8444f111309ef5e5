from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tradewind.checks import (
    flag,
    fraction,
    is_whole,
    not_negative,
    one_of,
    or_none,
    positive,
    real,
    seconds,
    seed_of,
    share,
    suggest,
    unpacked,
    whole,
)

NO_NUMBERS = [None, True, np.True_, "1", b"1", [1], (1,), np.array([1]), 1j, object(), float]
RANGES: dict[Callable[[str, Any], float], Callable[[float], bool]] = {
    positive: lambda x: 0 < x < math.inf,
    not_negative: lambda x: 0 <= x < math.inf,
    fraction: lambda x: 0 < x <= 1,
    share: lambda x: 0 <= x < 1,
}


def is_refused(check: Callable[..., Any], *arguments: Any) -> bool:
    try:
        check("it", *arguments)
    except ValueError as error:
        message = str(error)
        return message.startswith("it must be ") and message.endswith(f", but got {arguments[0]!r}")
    return False


# ---- numbers ----


@pytest.mark.parametrize("check", [whole, *RANGES], ids=lambda check: check.__name__)
@pytest.mark.parametrize("bad", NO_NUMBERS)
def test_what_is_no_number_is_a_value_error(check: Callable[..., Any], bad: Any) -> None:
    assert is_refused(check, bad)


@pytest.mark.parametrize("check", RANGES, ids=lambda check: check.__name__)
@given(number=st.floats() | st.integers() | st.fractions() | st.sampled_from([10**400, -(10**400)]))
def test_numbers_are_accepted_in_their_range_alone(
    check: Callable[[str, Any], float], number: float | Fraction
) -> None:
    fits = RANGES[check](real(number))
    assert is_refused(check, number) is not fits
    if fits:
        assert check("it", number) == float(number)


@pytest.mark.parametrize(
    "given",
    [0.5, np.float64(0.5), np.float32(0.5), np.longdouble(0.5), np.array(0.5), Fraction(1, 2)],
    ids=repr,
)
@pytest.mark.parametrize("check", RANGES, ids=lambda check: check.__name__)
def test_numbers_of_any_kind_become_floats(check: Callable[[str, Any], float], given: Any) -> None:
    number = check("it", given)
    assert number == 0.5
    assert type(number) is float


@pytest.mark.parametrize(
    ("check", "rule"),
    [
        (positive, "a number > 0"),
        (not_negative, "a number ≥ 0"),
        (fraction, "a number in (0, 1]"),
        (share, "a number in [0, 1)"),
        (whole, "a whole number ≥ 0"),
    ],
)
def test_a_message_says_the_rule_and_what_was_given(
    check: Callable[[str, Any], float], rule: str
) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011
        check("lease", "a")
    assert str(raised.value) == f"lease must be {rule}, but got 'a'"


def test_what_is_no_number_is_in_no_range() -> None:
    assert all(math.isnan(real(bad)) for bad in NO_NUMBERS)
    assert math.isnan(real(10**400))
    assert real(np.int8(3)) == 3.0
    assert real(math.inf) == math.inf


@pytest.mark.parametrize("given", [3, np.int64(3), np.uint8(3), np.array(3)], ids=repr)
def test_whole_numbers_of_any_kind_become_plain(given: Any) -> None:
    assert is_whole(given)
    assert whole("it", given) == 3
    assert type(whole("it", given)) is int


@pytest.mark.parametrize("given", [3.0, np.float64(3), Fraction(3), False, math.inf], ids=repr)
def test_a_float_is_no_whole_number(given: Any) -> None:
    assert not is_whole(given)
    assert is_refused(whole, given)


@given(number=st.integers(), least=st.integers(-5, 5), most=st.none() | st.integers(0, 9))
def test_a_whole_number_has_bounds(number: int, least: int, most: int | None) -> None:
    fits = least <= number and (most is None or number <= most)
    assert is_refused(whole, number, least, most) is not fits


def test_both_bounds_are_named() -> None:
    with pytest.raises(ValueError, match="leaves must be a whole number from 2 to 9, but got 1"):
        whole("leaves", 1, 2, 9)


# ---- names, flags, seeds ----


def test_one_of_several_names_is_given() -> None:
    assert one_of("final", "all", ("last", "all")) == "all"
    with pytest.raises(ValueError, match="final must be one of 'last', 'all', but got 'al'"):
        one_of("final", "al", ("last", "all"))


@pytest.mark.parametrize("bad", [None, 1, ["last"], {}, b"last"], ids=repr)
def test_a_name_is_a_string(bad: Any) -> None:
    assert is_refused(one_of, bad, ("last", "all"))


@pytest.mark.parametrize("given", [True, False, np.True_, np.False_])
def test_flags_of_numpy_become_plain(given: Any) -> None:
    assert flag("it", given) is bool(given)


@pytest.mark.parametrize("bad", [0, 1, "yes", None, np.array([True])], ids=repr)
def test_nothing_but_true_and_false_is_a_flag(bad: Any) -> None:
    assert is_refused(flag, bad)


@pytest.mark.parametrize("given", [7, np.int32(7)])
def test_a_number_is_its_own_seed(given: Any) -> None:
    assert seed_of(given) == 7


@pytest.mark.parametrize("bad", [-1, 2**63, True])
def test_not_every_whole_number_is_a_seed(bad: int) -> None:
    with pytest.raises(ValueError, match="random_state must be a whole number from 0 to"):
        seed_of(bad)


def test_a_generator_gives_one_seed_after_the_other() -> None:
    seeds = np.random.RandomState(0).randint(2**31, size=2).tolist()
    state = np.random.RandomState(0)
    assert [seed_of(state), seed_of(state)] == seeds


# ---- the rest ----


def test_none_is_not_checked_where_it_may_be_given() -> None:
    assert or_none(whole, "it", None, 1) is None
    assert or_none(whole, "it", 1, 1) == 1
    with pytest.raises(ValueError, match="it must be a whole number ≥ 1, but got 0"):
        or_none(whole, "it", 0, 1)


@pytest.mark.parametrize("value", [[1], "a", None, {}, float, np.float64, np.zeros(1)], ids=repr)
def test_what_is_no_scalar_of_numpy_stays_as_it_is(value: Any) -> None:
    assert unpacked(value) is value


# ---- durations and misspelt words ----


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("45s", 45),
        ("90min", 5400),
        ("2h", 7200),
        ("1h30m", 5400),
        ("1.5 h", 5400),
        ("1d 2H", 93600),
    ],
)
def test_a_duration_may_be_text(text: str, expected: float) -> None:
    assert seconds("it", text) == expected


@pytest.mark.parametrize("bad", ["", "90", "h", "2x", "1h1h", "-1h", "1h and more", "two hours"])
def test_other_text_is_no_duration(bad: str) -> None:
    assert is_refused(seconds, bad)


@given(st.floats() | st.none() | st.integers())
def test_numbers_of_seconds_stay_as_they_are(number: float | None) -> None:
    assert seconds("it", number) is number


def test_only_a_name_that_is_close_is_suggested() -> None:
    assert suggest("aplha", ["alpha", "beta"]) == " (did you mean 'alpha'?)"
    assert suggest("depth", ["width", "beta"]) == ""
    assert suggest("c", ["C", "gamma"]) == " (did you mean 'C'?)"
    assert suggest(3, ["alpha"]) == ""
