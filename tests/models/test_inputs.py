"""The checks that the models use, and the rows on which TextCNN stops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tradewind.checks import finite_number, whole_numbers
from tradewind.models.inputs import fold_rows
from tradewind.models.textcnn.validation import stratified_rows
from tradewind.subsets import subset


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


# ---- stratified rows ----

LABELS = st.lists(st.integers(0, 4), min_size=2, max_size=60)
FRACTIONS = st.floats(0.01, 1.0)


@given(LABELS, FRACTIONS, st.integers(0, 99))
def test_stratified_rows_have_every_class_and_the_right_number(
    labels: list[int], fraction: float, seed: int
) -> None:
    rows = stratified_rows(np.array(labels), fraction, seed=seed)
    n_classes = len(set(labels))
    assert rows.tolist() == sorted(set(rows.tolist()))
    assert len(rows) == max(n_classes, round(fraction * len(labels)))
    assert {labels[row] for row in rows} == set(labels)


@given(st.lists(st.booleans(), min_size=2, max_size=60), FRACTIONS, st.integers(0, 99))
def test_with_two_classes_stratified_rows_are_those_of_a_subset(
    labels: list[bool], fraction: float, seed: int
) -> None:
    names = np.where(labels, "good", "bad")
    expected = subset(names, fraction, seed=seed, kind="classes")
    assert stratified_rows(names, fraction, seed=seed).tolist() == expected.tolist()


@pytest.mark.parametrize("seed", range(5))
def test_stratified_rows_keep_the_shares_of_the_classes(seed: int) -> None:
    labels = np.repeat([0, 1, 2], [100, 200, 700])
    kept = np.bincount(labels[stratified_rows(labels, 0.9, seed=seed)])
    assert np.abs(kept - [90, 180, 630]).max() <= 1
