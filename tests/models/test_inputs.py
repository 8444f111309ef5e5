"""The checks that the models use."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tradewind.checks import finite_number, whole_numbers
from tradewind.models.inputs import fold_rows


@pytest.mark.parametrize("value", [3, -2, 0.5, np.float32(0.5), np.int64(7)])
def test_a_finite_number_is_returned_as_a_float(value: Any) -> None:
    number = finite_number("bias", value)
    assert type(number) is float
    assert number == value


@pytest.mark.parametrize("value", [None, "1", True, float("nan"), float("inf"), [1.0], 10**400])
def test_other_things_are_not_finite_numbers(value: Any) -> None:
    with pytest.raises(ValueError, match="bias must be a finite number, but got"):
        finite_number("bias", value)


@pytest.mark.parametrize("value", [[1, 2], (1, 2), np.array([1, 2]), range(1, 3)])
def test_whole_numbers_are_returned_as_a_tuple(value: Any) -> None:
    assert whole_numbers("sizes", value, 1) == (1, 2)


@pytest.mark.parametrize("value", [3, np.array(3), "12", b"12", [], None])
def test_only_a_list_has_whole_numbers(value: Any) -> None:
    with pytest.raises(ValueError, match="sizes must be a list of whole numbers, but got"):
        whole_numbers("sizes", value, 1)


@pytest.mark.parametrize("value", [[1, 0], [1, 2.5], [1, "2"], [True]])
def test_each_of_the_whole_numbers_is_checked(value: Any) -> None:
    with pytest.raises(ValueError, match="each of sizes must be a whole number ≥ 1, but got"):
        whole_numbers("sizes", value, 1)


def test_the_rows_of_a_fold_are_numbers_or_a_mask() -> None:
    assert fold_rows([2, 0], 3).tolist() == [2, 0]
    assert fold_rows([True, False, True], 3).tolist() == [0, 2]
