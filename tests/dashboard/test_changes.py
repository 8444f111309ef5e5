"""What has changed between two pictures, as a small message."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tradewind.dashboard.changes import apply, difference

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | st.text(max_size=2)
DATA = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=20,
)


def same(a: Any, b: Any) -> bool:
    return json.dumps(a) == json.dumps(b)


@given(DATA, DATA)
def test_a_change_makes_the_new_of_the_old(old: Any, new: Any) -> None:
    before = copy.deepcopy(old)
    change = json.loads(json.dumps(difference(old, new)))
    found = apply(old, change)
    assert json.loads(json.dumps(found, sort_keys=True)) == json.loads(json.dumps(new))
    assert json.dumps(found, sort_keys=True) == json.dumps(new, sort_keys=True)
    assert same(old, before)


@given(DATA)
def test_nothing_has_changed_between_equal_data(data: Any) -> None:
    assert difference(data, copy.deepcopy(data)) is None


def test_one_more_row_is_a_small_change() -> None:
    rows = [[n, "finished", n / 7] for n in range(10_000)]
    new = [*rows, [10_000, "running", None]]
    change = difference({"rows": rows}, {"rows": new})
    assert change == {"{": {"rows": {"[": [10_000, 0, [[10_000, "running", None]]]}}}


def test_one_cell_of_one_row_is_a_small_change() -> None:
    rows = [[n, "running", None] for n in range(1000)]
    new = [*rows[:500], [500, "finished", None], *rows[501:]]
    assert difference(rows, new) == {"#": {"500": {"[": [1, 1, ["finished"]]}}}


def test_a_number_of_another_type_is_a_change() -> None:
    assert difference([1], [True]) == {"[": [0, 1, [True]]}
    assert difference(1, 1.0) == {"=": 1.0}
