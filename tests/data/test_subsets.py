"""Subsets are nested, keep classes, groups and time, and depend on nothing but their arguments."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.multiclass import type_of_target

from tradewind.data.subsets import _KINDS, nested_order, subset, take

FRACTIONS = (0.01, 0.1, 0.2, 1 / 3, 0.5, 0.8, 0.99, 1.0)
WORDS = ["red", "green", "blue", "a colour with a longer name"]

seeds = st.integers(0, 5)
fractions = st.floats(0.0, 1.0, exclude_min=True)
labels = st.lists(st.sampled_from(WORDS), min_size=1, max_size=60)
class_sizes = st.lists(st.integers(1, 60), min_size=1, max_size=12)


def random(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def rows_of(sizes: list[int], seed: int = 0) -> NDArray[np.intp]:
    """Shuffled class numbers, so many of each."""
    return random(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))


def same(first: NDArray[np.intp], second: NDArray[np.intp]) -> bool:
    return first.tolist() == second.tolist()


def chosen(y: Any) -> list[str]:
    """The kinds that choose the rows that "auto" chooses."""
    orders = {kind: nested_order(y, kind=kind) for kind in _KINDS if kind_fits(y, kind)}
    auto = nested_order(y)
    return [
        kind
        for kind, order in orders.items()
        if kind != "auto" and same(order.place, auto.place) and order.least == auto.least
    ]


def kind_fits(y: Any, kind: str) -> bool:
    try:
        nested_order(y, kind=kind)
    except TypeError:
        return False
    return True


# ---- nested, and of the right size ----


@given(y=labels, groups=st.none() | st.integers(1, 20), kind=st.sampled_from(_KINDS), seed=seeds)
def test_every_subset_contains_the_smaller_ones(
    y: list[str], groups: int | None, kind: str, seed: int
) -> None:
    target: Any = [WORDS.index(word) + 0.5 for word in y] if kind == "bins" else y
    group = None if groups is None else random(seed).integers(0, groups, len(y))
    rows: set[int] = set()
    for fraction in FRACTIONS:
        larger = subset(target, fraction, seed=seed, kind=kind, groups=group).tolist()
        assert larger == sorted(set(larger))
        assert rows <= set(larger)
        rows = set(larger)
    assert rows == set(range(len(y)))


@given(n=st.integers(1, 300), fraction=fractions, seed=seeds)
def test_a_subset_has_the_rounded_fraction_of_the_rows(n: int, fraction: float, seed: int) -> None:
    assert len(subset(n, fraction, seed=seed)) == max(1, round(fraction * n))


@given(sizes=class_sizes, fraction=fractions, seed=seeds)
def test_a_stratified_subset_is_larger_only_to_keep_every_class(
    sizes: list[int], fraction: float, seed: int
) -> None:
    y = rows_of(sizes, seed)
    rows = subset(y, fraction, seed=seed, kind="classes")
    assert len(rows) == max(len(sizes), round(fraction * len(y)))


def test_rows_are_indices_of_the_native_size() -> None:
    assert subset([0, 1, 0, 1], 0.5).dtype == np.intp


def test_one_order_gives_the_subsets_of_all_fractions() -> None:
    y = rows_of([50, 30, 20])
    order = nested_order(y, seed=3)
    for fraction in FRACTIONS:
        assert same(order.first(fraction), subset(y, fraction, seed=3))


@pytest.mark.parametrize("y", [["only"], [np.nan], [None], [2.5], 1, np.zeros((1, 3))], ids=repr)
def test_a_single_row_is_always_taken(y: Any) -> None:
    assert subset(y, 0.001).tolist() == subset(y, 1.0).tolist() == [0]


def test_seeds_choose_different_rows() -> None:
    found = {tuple(subset(100, 0.1, seed=seed)) for seed in range(20)}
    assert len(found) == 20


def test_every_row_is_as_likely_as_any_other() -> None:
    y = rows_of([20, 20, 10])
    often = Counter(row for seed in range(2000) for row in subset(y, 0.2, seed=seed).tolist())
    spread = np.array([often[row] for row in range(50)])
    assert abs(spread.mean() - 400) < 1e-9
    assert np.abs(spread - 400).max() < 5 * np.sqrt(2000 * 0.2 * 0.8)


# ---- classes ----


@given(sizes=class_sizes, fraction=fractions, seed=seeds)
def test_every_class_keeps_a_row(sizes: list[int], fraction: float, seed: int) -> None:
    y = rows_of(sizes, seed)
    assert set(y[subset(y, fraction, seed=seed, kind="classes")]) == set(range(len(sizes)))


@given(sizes=st.lists(st.integers(1, 9) | st.integers(1, 400), min_size=1, max_size=12), seed=seeds)
def test_each_class_has_its_share_to_less_than_two_rows(sizes: list[int], seed: int) -> None:
    y = rows_of(sizes, seed)
    order = nested_order(y, seed=seed, kind="classes")
    share = np.array(sizes) / len(y)
    for m in range(len(sizes), len(y) + 1):
        counts = np.bincount(y[order.first(m / len(y))], minlength=len(sizes))
        assert counts.sum() == m
        due = [share * (m - r) for r in range(int((counts == 1).sum()) + 1)]  # r as in the docs
        assert any(
            all((abs(counts - d) < 2 - 1e-9) | ((counts == 1) & (d < 2 - 1e-9))) for d in due
        )


def test_many_classes_of_similar_sizes_have_their_shares() -> None:
    sizes = list(range(30, 70))
    y = rows_of(sizes)
    order = nested_order(y)
    for m in range(200, len(y), 7):
        counts = np.bincount(y[order.first(m / len(y))])
        assert np.abs(counts - m * np.array(sizes) / len(y)).max() < 2


def test_many_small_classes_do_not_crowd_out_a_large_one() -> None:
    y = rows_of([990, *[10] * 99])
    order = nested_order(y)
    for m in range(400, 1980, 7):
        assert abs(np.sum(y[order.first(m / 1980)] == 0) - m / 2) < 2


@given(a=st.integers(1, 80), b=st.integers(1, 80), seed=seeds)
def test_two_classes_have_their_shares_to_half_a_row(a: int, b: int, seed: int) -> None:
    y = rows_of([a, b], seed)
    order = nested_order(y, seed=seed, kind="classes")
    for m in range(2, a + b + 1):
        count = np.sum(y[order.first(m / (a + b))] == 0)
        due = m * a / (a + b)
        assert abs(count - due) <= 0.5 + 1e-9 or count in (1, m - 1)


@given(size=st.integers(1, 30), k=st.integers(1, 12), seed=seeds)
def test_classes_of_one_size_differ_by_one_row_at_most(size: int, k: int, seed: int) -> None:
    y = rows_of([size] * k, seed)
    order = nested_order(y, seed=seed, kind="classes")
    for m in range(k, size * k + 1):
        assert np.ptp(np.bincount(y[order.first(m / len(y))])) <= 1


def test_a_class_that_appears_first_is_not_favoured() -> None:
    y = np.tile(np.arange(5), 20)
    extra = Counter(
        int(np.bincount(y[subset(y, 0.06, seed=seed)]).argmax()) for seed in range(400)
    )  # 6 rows of 5 classes: one of them has two
    assert set(extra) == set(range(5))
    assert min(extra.values()) > 40


def test_a_missing_label_is_a_class_of_its_own() -> None:
    nothing = [None, float("nan"), np.float64("nan"), pd.NA, pd.NaT, np.datetime64("NaT", "s")]
    y = ["a"] * 50 + nothing * 5 + ["b"] * 20
    for fraction in FRACTIONS:
        counts = Counter(y[i] if isinstance(y[i], str) else "?" for i in subset(y, fraction))
        assert set(counts) == {"a", "b", "?"}
        assert abs(counts["?"] - 30 * fraction) < 2


# ---- what the labels are made of does not matter ----

CLASSES = [WORDS[i] for i in rows_of([40, 25, 20, 3])]
NUMBERS = [WORDS.index(word) for word in CLASSES]

SAME_CLASSES: Mapping[str, Any] = {
    "tuple": tuple(CLASSES),
    "str array": np.array(CLASSES),
    "bytes array": np.array([word.encode() for word in CLASSES]),
    "object array": np.array(CLASSES, dtype=object),
    "str scalars": [np.str_(word) for word in CLASSES],
    "series": pd.Series(CLASSES, index=range(500, 500 + len(CLASSES))),
    "object series": pd.Series(CLASSES, dtype=object),
    "categorical": pd.Series(pd.Categorical(CLASSES, categories=[*WORDS[::-1], "unused"])),
    "index": pd.Index(CLASSES),
    "frame of one column": pd.DataFrame({"y": CLASSES}),
    "column": np.array(CLASSES)[:, None],
    "tuples": [(word, 1) for word in CLASSES],
    "intervals": pd.cut(pd.Series(NUMBERS), [-1, 0, 1, 2, 3]),
    "dates": np.datetime64("2024-01-01") + np.array(NUMBERS),
    "ints": NUMBERS,
    "int8": np.array(NUMBERS, dtype=np.int8),
    "uint64": np.array(NUMBERS, dtype=np.uint64) + np.uint64(2**63),
    "negative": -np.array(NUMBERS),
    "floats": np.array(NUMBERS, dtype=float),
    "float list": [float(i) for i in NUMBERS],
    "float32": np.array(NUMBERS, dtype=np.float32),
    "object ints": np.array(NUMBERS, dtype=object),
    "int scalars": [np.int16(i) for i in NUMBERS],
    "huge ints": [10**30 + i for i in NUMBERS],
    "Int64": pd.Series(NUMBERS, dtype="Int64"),
    "number categories": pd.Series(NUMBERS).astype("category"),
    "nested lists": [[i] for i in NUMBERS],
    "list of arrays": [np.array([i, 0]) for i in NUMBERS],
    "one-hot": np.eye(4)[NUMBERS],
    "one-hot bools": np.eye(4, dtype=bool)[NUMBERS].tolist(),
    "one-hot frame": pd.get_dummies(pd.Series(CLASSES)),
    "two named columns": pd.DataFrame({"a": CLASSES, "b": NUMBERS}),
}


@pytest.mark.parametrize("name", SAME_CLASSES)
@pytest.mark.parametrize("kind", ["auto", "classes"])
def test_the_same_classes_of_any_type_give_the_same_rows(name: str, kind: str) -> None:
    for fraction in (0.02, 0.3, 0.77):
        rows = subset(SAME_CLASSES[name], fraction, seed=2, kind=kind)
        assert same(rows, subset(CLASSES, fraction, seed=2))


@pytest.mark.parametrize("name", SAME_CLASSES)
def test_the_same_groups_of_any_type_give_the_same_rows(name: str) -> None:
    fine = [f"{word} {i % 5}" for i, word in enumerate(CLASSES)]
    wanted = subset(fine, 0.3, seed=2, groups=CLASSES)
    assert same(subset(fine, 0.3, seed=2, groups=SAME_CLASSES[name]), wanted)


@given(sizes=class_sizes, names=st.permutations(list("abcdefghijkl")), seed=seeds)
def test_renaming_the_classes_changes_nothing(
    sizes: list[int], names: list[str], seed: int
) -> None:
    y = rows_of(sizes, seed)
    renamed = [names[i] for i in y]
    for fraction in (0.1, 0.5):
        assert same(
            subset(renamed, fraction, seed=seed, kind="classes"),
            subset(y, fraction, seed=seed, kind="classes"),
        )


MISSING: Mapping[str, Any] = {
    "floats": np.array([0.0, 1.0, np.nan] * 20),
    "nan list": [0, 1, float("nan")] * 20,
    "None": [0, 1, None] * 20,
    "Int64": pd.Series([0, 1, None] * 20, dtype="Int64"),
    "boolean": pd.Series([False, True, None] * 20, dtype="boolean"),
    "strings": pd.Series(["a", "b", None] * 20),
    "string": pd.Series(["a", "b", pd.NA] * 20, dtype="string"),
    "categorical": pd.Series(["a", "b", None] * 20, dtype="category"),
    "different": [*["a", "b", None, "a", "b", float("nan")] * 9, *["a", "b", pd.NA] * 2],
}


@pytest.mark.parametrize("name", MISSING)
def test_missing_labels_of_any_type_give_the_same_rows(name: str) -> None:
    for fraction in (0.02, 0.3):
        wanted = subset([0, 1, 2] * 20, fraction, seed=1)
        assert same(subset(MISSING[name], fraction, seed=1), wanted)


def test_continuous_targets_of_any_type_give_the_same_rows() -> None:
    y = np.append(random().normal(size=97), [np.nan] * 3)
    holes = [None if np.isnan(v) else v for v in y.tolist()]
    wanted = subset(y, 0.3)
    for other in (
        holes,
        y.tolist(),
        y.astype(object),
        pd.Series(holes, dtype="Float64"),
        pd.DataFrame({"y": y}),
    ):
        assert same(subset(other, 0.3), wanted)


SCRIPT = """
from tradewind.subsets import subset
y = ["red", "green", "blue", "blue"] * 25
groups = [f"patient {i * i % 17}" for i in range(100)]
print(subset(y, 0.3, seed=4).tolist(), subset(y, 0.3, seed=4, groups=groups).tolist())
print(subset([(word, None) for word in y], 0.3, seed=4).tolist())
"""


def test_the_rows_are_the_same_in_every_process() -> None:
    printed = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(printed) == 1


def test_the_rows_are_those_of_earlier_versions() -> None:
    y = list("aabacbaabacdabcaabca")
    groups = np.arange(20) // 3
    assert subset(20, 0.3, seed=7).tolist() == [3, 8, 12, 13, 14, 16]
    assert subset(y, 0.3, seed=7).tolist() == [3, 8, 10, 11, 14, 16]
    assert subset(np.sqrt(np.arange(20)), 0.3, seed=7).tolist() == [3, 7, 9, 13, 14, 17]
    assert subset(y, 0.3, seed=7, groups=groups).tolist() == [0, 1, 2, 9, 10, 11, 18, 19]


# ---- numbers, and what auto makes of a target ----


@given(
    values=st.lists(st.floats(-3, 3).map(lambda v: round(v, 1)), min_size=1, max_size=200),
    seed=seeds,
)
def test_every_bin_has_its_share_to_less_than_two_rows(values: list[float], seed: int) -> None:
    y = np.array(values)
    edges = np.sort(y)[np.maximum(np.arange(1, 10) * len(y) // 10 - 1, 0)]
    bins = np.searchsorted(edges, y)
    order = nested_order(y, seed=seed, kind="bins")
    for m in range(1, len(y) + 1):
        rows = order.first(m / len(y))
        assert len(rows) == m
        counts, sizes = (np.bincount(b, minlength=10) for b in (bins[rows], bins))
        assert np.abs(counts - m * sizes / len(y)).max() < 2


def test_a_continuous_target_keeps_its_distribution() -> None:
    y = random().lognormal(size=2000)
    deciles = np.quantile(y, np.arange(1, 10) / 10)
    for fraction in (0.05, 0.2, 0.6):
        rows = subset(y, fraction)
        share = np.searchsorted(deciles, y[rows]).astype(np.intp)
        assert np.ptp(np.bincount(share, minlength=10)) <= 2


def test_ten_numbers_are_ten_bins() -> None:
    y = np.sqrt(random().permutation(30))
    thirds = np.argsort(np.argsort(y)) // 3
    assert all(set(thirds[subset(y, 1 / 3, seed=seed)]) == set(range(10)) for seed in range(20))


def test_the_zeros_of_a_target_keep_their_share() -> None:
    y = np.maximum(random().normal(size=1000), 0.0)
    for m in range(10, 1000, 10):
        rows = subset(y, m / 1000)
        assert abs(np.sum(y[rows] == 0) - m * np.mean(y == 0)) < 2


def test_missing_numbers_are_a_bin_of_their_own() -> None:
    y = random().normal(size=500)
    y[::5] = np.nan
    for fraction in (0.02, 0.1, 0.5):
        assert abs(np.isnan(y[subset(y, fraction)]).sum() - 100 * fraction) < 2


@pytest.mark.parametrize("value", [0.5, np.nan, np.inf], ids=repr)
def test_a_constant_target_is_sampled_at_random(value: float) -> None:
    assert len(subset(np.full(50, value), 0.3, kind="bins")) == 15


def test_infinite_targets_are_binned_with_the_rest() -> None:
    y = np.concatenate([random().normal(size=80), [np.inf] * 10, [-np.inf] * 10])
    rows = subset(y, 0.5)
    assert len(rows) == 50
    assert abs(np.isposinf(y[rows]).sum() - 5) <= 2


TARGETS: Mapping[str, Any] = {
    "two words": ["yes", "no"] * 30,
    "bools": random().random(60) < 0.3,
    "digits": random().integers(0, 10, 400),
    "whole floats": random().integers(0, 4, 90).astype(float),
    "a hundred classes": np.arange(100).repeat(20),
    "reals": random().normal(size=60),
    "halves": random().integers(0, 4, 90) / 2,
    "one-hot": np.eye(5)[random().integers(0, 5, 200)],
    "labels, few at once": random().integers(0, 2, (300, 3)),
    "two classes each": random().integers(0, 3, (300, 2)),
    "two reals each": random().normal(size=(60, 2)),
}
MEANS = {
    "binary": "classes",
    "multiclass": "classes",
    "continuous": "bins",
    "multilabel-indicator": "classes",
    "multiclass-multioutput": "classes",
    "continuous-multioutput": "random",
}


@pytest.mark.parametrize("name", TARGETS)
def test_auto_sees_the_type_of_target_that_scikit_learn_sees(name: str) -> None:
    y = TARGETS[name]
    assert chosen(y) == [MEANS[type_of_target(y)]]


class Dataset:
    """What Hugging Face's data sets offer."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, i: int | str) -> Any:
        return [row[i] for row in self.rows] if isinstance(i, str) else self.rows[i]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def select(self, indices: Any) -> Dataset:
        return Dataset([self.rows[i] for i in indices])


DATASET = Dataset([{"text": f"text {i}", "label": i % 2} for i in range(60)])

NOTHING_TO_STRATIFY_BY: Mapping[str, Any] = {
    "a number": 60,
    "a NumPy number": np.int32(60),
    "features": random().normal(size=(60, 30)),
    "pixels": random().integers(0, 255, (60, 30)),
    "images": np.zeros((60, 4, 4)),
    "no columns": np.zeros((60, 0)),
    "frame": pd.DataFrame({"a": range(60), "b": [f"word {i}" for i in range(60)]}),
    "sparse": sparse.random(60, 5, density=0.5, random_state=0),
    "data set": DATASET,
    "texts": [f"text number {i}" for i in range(60)],
    "tokens": [[1] * (i % 7) for i in range(60)],
    "dicts": [{"text": "same"}] * 60,
}


@pytest.mark.parametrize("name", NOTHING_TO_STRATIFY_BY)
def test_auto_is_random_where_there_are_no_classes(name: str) -> None:
    assert same(subset(NOTHING_TO_STRATIFY_BY[name], 0.3), subset(60, 0.3))


@pytest.mark.parametrize("name", [*TARGETS, *NOTHING_TO_STRATIFY_BY])
def test_random_rows_do_not_depend_on_the_target(name: str) -> None:
    y = {**TARGETS, **NOTHING_TO_STRATIFY_BY}[name]
    n = 60 if name in NOTHING_TO_STRATIFY_BY else len(y)
    assert same(subset(y, 0.3, kind="random"), subset(n, 0.3))


@pytest.mark.parametrize(
    ("y", "kind"),
    [
        (np.arange(1000), "bins"),  # counts, prices, identifiers
        (np.arange(1000) // 9, "bins"),
        (np.arange(1000) // 10, "classes"),
        (np.arange(1000) % 101, "bins"),
        (np.arange(60) // 4, "classes"),
        (np.arange(200) // 10.0, "classes"),
        (np.arange(10), "bins"),
        ([f"class {i // 2}" for i in range(1000)], "classes"),
        ([f"text {i % 501}" for i in range(1000)], "random"),
        ([(i // 3, 0) for i in range(900)], "random"),
        (np.eye(300)[np.arange(900) // 3], "random"),
    ],
)
def test_auto_takes_values_for_classes_only_where_they_repeat(y: Any, kind: str) -> None:
    assert chosen(y) == [kind]


@pytest.mark.parametrize("y", [[0, 1], ["a", "b"], [True, False], [1.0, 0.0]], ids=repr)
def test_two_values_are_classes_however_few_the_rows(y: list[Any]) -> None:
    assert subset(y, 0.1).tolist() == [0, 1]


# ---- groups ----


@given(
    groups=st.lists(st.integers(0, 15), min_size=1, max_size=80),
    k=st.integers(1, 4),
    fraction=fractions,
    seed=seeds,
)
def test_groups_stay_whole(groups: list[int], k: int, fraction: float, seed: int) -> None:
    y = random(seed).integers(0, k, len(groups))
    rows = subset(y, fraction, seed=seed, kind="classes", groups=groups)
    inside = np.isin(np.arange(len(groups)), rows)
    assert not set(np.array(groups)[inside]) & set(np.array(groups)[~inside])
    assert set(y[inside]) == set(y)
    assert len(rows) >= max(1, round(fraction * len(groups)))


@given(groups=st.lists(st.integers(0, 15), min_size=1, max_size=80), fraction=fractions)
def test_no_more_groups_are_taken_than_needed(groups: list[int], fraction: float) -> None:
    sizes = Counter(groups)
    rows = subset(len(groups), fraction, groups=groups)
    order = nested_order(len(groups), groups=groups)
    last = max(set(np.array(groups)[rows]), key=lambda g: order.place[groups.index(g)])
    assert len(rows) - sizes[last] < max(1, round(fraction * len(groups)))


def test_groups_of_one_class_keep_the_shares_of_the_classes() -> None:
    group = random().integers(0, 300, 3000)
    y = (group % 10 == 0).astype(int)
    for fraction in (0.1, 0.3, 0.7):
        rows = subset(y, fraction, groups=group)
        assert abs(y[rows].mean() - y.mean()) < 20 / len(rows)  # a group or two of some ten rows


def test_groups_of_one_row_each_are_as_good_as_none() -> None:
    y = rows_of([60, 30, 10])
    assert same(subset(y, 0.3, groups=np.arange(100)), subset(y, 0.3))


def test_one_group_is_taken_whole() -> None:
    assert len(subset(["a", "b"] * 10, 0.1, groups=["g"] * 20)) == 20


def test_large_groups_are_not_preferred() -> None:
    groups = np.repeat(np.arange(11), [50, *[5] * 10])
    orders = [nested_order(100, groups=groups, seed=seed) for seed in range(1100)]
    first = Counter(int(groups[order.place == 0][0]) for order in orders)
    assert all(60 < first[group] < 150 for group in range(11))


def test_rows_without_a_group_are_a_group() -> None:
    groups = ["a", None, "b", float("nan")] * 10
    rows = subset(40, 0.1, groups=groups).tolist()
    absent = [i for i in range(40) if i % 2]
    assert set(absent) <= set(rows) or not set(absent) & set(rows)


def test_groups_may_be_named_by_several_columns() -> None:
    pairs = pd.DataFrame({"clinic": np.arange(60) % 3, "patient": np.arange(60) % 4})
    assert same(subset(60, 0.3, groups=pairs), subset(60, 0.3, groups=np.arange(60) % 12))


# ---- time ----


@given(stamps=st.lists(st.integers(0, 30), min_size=1, max_size=80), fraction=fractions, seed=seeds)
def test_the_latest_rows_are_taken(stamps: list[int], fraction: float, seed: int) -> None:
    time = np.array(stamps)
    rows = subset(rows_of([len(stamps)]), fraction, seed=seed, time=time)
    assert len(rows) == max(1, round(fraction * len(stamps)))
    left = np.delete(time, rows)
    assert not len(left) or left.max() <= time[rows].min()


def test_rows_in_order_of_time_need_no_stamps() -> None:
    assert subset(["a", "b"] * 5, 0.3, time=True).tolist() == [7, 8, 9]
    assert same(subset(["a", "b"] * 5, 0.3, time=False), subset(["a", "b"] * 5, 0.3))


def test_of_equal_stamps_the_last_rows_are_taken() -> None:
    assert subset(6, 0.5, time=[1, 2, 1, 2, 2, 2]).tolist() == [3, 4, 5]


DAYS = [datetime(2024, 1, 1) + timedelta(days=int(i)) for i in random().permutation(40)]


@pytest.mark.parametrize(
    "time",
    [
        DAYS,
        tuple(DAYS),
        np.array(DAYS, dtype="datetime64[s]"),
        pd.Series(DAYS, index=range(9, 49)),
        pd.Series(DAYS).dt.tz_localize("Europe/Paris"),
        pd.DatetimeIndex(DAYS),
        pd.PeriodIndex(DAYS, freq="D"),
        [day.isoformat() for day in DAYS],
        [day.timestamp() for day in DAYS],
        [pd.Timestamp(day) if i % 2 else day for i, day in enumerate(DAYS)],
        [i if i % 2 else float(i) for i in np.argsort(np.argsort(DAYS))],
        pd.Series(DAYS).rank().astype("Int64"),
    ],
    ids=lambda t: f"{type(t).__name__} of {type(t[9]).__name__}",
)
def test_stamps_may_be_of_any_type_that_sorts(time: Any) -> None:
    assert same(subset(40, 0.25, time=time), np.sort(np.argsort(DAYS)[-10:]))


# ---- taking rows ----

ROWS = np.array([0, 3, 4])
MATRIX = np.arange(10.0).reshape(5, 2)


@pytest.mark.parametrize("form", ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"])
@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csr_array])
def test_rows_are_taken_of_every_sparse_format(form: str, make: Any) -> None:
    taken = take(make(MATRIX).asformat(form), ROWS)
    assert sparse.issparse(taken)
    assert taken.toarray().tolist() == MATRIX[ROWS].tolist()


@pytest.mark.parametrize(
    "data", [MATRIX, MATRIX[:, 0], MATRIX[:, :, None], np.array(list("abcde"))]
)
def test_rows_are_taken_of_arrays(data: NDArray[Any]) -> None:
    assert np.array_equal(take(data, ROWS), data[ROWS])


def test_rows_of_pandas_objects_are_taken_by_position() -> None:
    frame = pd.DataFrame(MATRIX, index=[4, 3, 2, 1, 0], columns=["a", "b"])
    assert take(frame, ROWS).equals(frame.iloc[ROWS])
    assert take(frame["a"], ROWS).index.tolist() == [4, 1, 0]
    categories = pd.Series(list("abcab"), index=list("vwxyz"), dtype="category")
    assert take(categories, ROWS).tolist() == ["a", "a", "b"]
    assert take(pd.Index(list("abcde")), ROWS).tolist() == ["a", "d", "e"]


def test_rows_are_taken_of_lists_and_tuples_of_texts() -> None:
    assert take(["v", "w", "x", "y", "z"], ROWS) == ["v", "y", "z"]
    assert take(("v", "w", "x", "y", "z"), [4, 0]) == ("z", "v")
    assert take(range(10, 15), ROWS) == [10, 13, 14]


def test_rows_are_selected_of_a_data_set() -> None:
    rows = subset(DATASET["label"], 0.1)
    taken = take(DATASET, rows)
    assert isinstance(taken, Dataset)
    assert taken["text"] == [f"text {i}" for i in rows]


def test_tensors_are_stratified_and_taken_as_tensors() -> None:
    import torch

    y = torch.tensor([0, 1, 1, 1] * 10)
    rows = subset(y, 0.2)
    assert same(rows, subset(y.tolist(), 0.2))
    assert same(rows, subset(list(y), 0.2))
    assert torch.equal(take(y, rows), torch.tensor([y[i] for i in rows]))
    weights = torch.linspace(0, 1, 40, requires_grad=True)
    assert same(subset(weights, 0.2), subset(weights.tolist(), 0.2))
    assert take(weights, rows).requires_grad


def test_of_nothing_nothing_is_taken() -> None:
    assert take(None, ROWS) is None


@pytest.mark.parametrize("data", [MATRIX, sparse.coo_array(MATRIX), pd.DataFrame(MATRIX)])
def test_no_rows_can_be_taken(data: Any) -> None:
    assert take(data, []).shape == (0, 2)


@pytest.mark.parametrize(
    "data",
    [MATRIX, sparse.csc_array(MATRIX), pd.Series(range(5)), list("abcde"), tuple("abcde"), DATASET],
    ids=lambda d: type(d).__name__,
)
@pytest.mark.parametrize("rows", [[0, 60], [-1]], ids=repr)
def test_rows_out_of_range_are_refused(data: Any, rows: list[int]) -> None:
    with pytest.raises(IndexError):
        take(data, rows)


@pytest.mark.parametrize("rows", [[True, False], [0.5], ["a"], 3, [[0, 1]], slice(3), None])
def test_rows_must_be_indices(rows: Any) -> None:
    for data in (MATRIX, None):
        with pytest.raises(TypeError, match="rows must be a one-dimensional list of row numbers"):
            take(data, rows)


@pytest.mark.parametrize(
    "data", ["text", b"text", {"a": [1]}, {1, 2}, 5, 2.5, np.array(3), iter([1]), object()]
)
def test_rows_cannot_be_taken_of_anything_else(data: Any) -> None:
    with pytest.raises(TypeError, match="data must be an array, a frame or a list, but got"):
        take(data, [0])


# ---- what is refused ----


@pytest.mark.parametrize("fraction", [0, 0.0, -0.1, 1.0001, 2, np.nan, np.inf, -np.inf])
def test_a_fraction_is_above_zero_and_at_most_one(fraction: float) -> None:
    with pytest.raises(ValueError, match=r"fraction must be a number in \(0, 1\], but got"):
        subset([0, 1], fraction)


@pytest.mark.parametrize("fraction", [True, np.True_, "0.5", None, [0.5], 0.5j, np.array([0.5])])
def test_a_fraction_is_a_number(fraction: Any) -> None:
    with pytest.raises(ValueError, match=r"fraction must be a number in \(0, 1\], but got"):
        subset([0, 1], fraction)


@pytest.mark.parametrize("one", [1, 1.0, np.float32(1), np.int8(1)])
def test_a_fraction_may_be_any_number(one: Any) -> None:
    assert len(subset(10, one)) == 10


@pytest.mark.parametrize("y", [[], (), np.array([]), pd.Series([]), np.zeros((0, 3)), 0, -5])
def test_an_empty_target_is_refused(y: Any) -> None:
    with pytest.raises(ValueError, match="y must have at least one row"):
        subset(y, 0.5)


@pytest.mark.parametrize(
    "y", [None, "abc", b"abc", {"a": 1}, {1, 2}, True, 2.5, iter([1]), object(), np.array(3)]
)
def test_a_target_has_an_entry_for_each_row(y: Any) -> None:
    with pytest.raises(TypeError, match="y must have an entry for each row, but got"):
        subset(y, 0.5)


@pytest.mark.parametrize("what", ["groups", "time"])
@pytest.mark.parametrize("length", [0, 3, 5])
def test_groups_and_stamps_are_as_long_as_the_target(what: str, length: int) -> None:
    for values in (list(range(length)), np.arange(length), pd.Series(range(length))):
        with pytest.raises(ValueError, match=f"{what} must be as long as y, but has {length} rows"):
            subset(["a", "b"] * 2, 0.5, **{what: values})


@pytest.mark.parametrize("what", ["groups", "time"])
@pytest.mark.parametrize("values", [4, "abcd", {"a": 1}, {1, 2, 3, 4}, 2.5])
def test_groups_and_stamps_have_an_entry_for_each_row(what: str, values: Any) -> None:
    with pytest.raises(TypeError, match=f"{what} must have an entry for each row, but got"):
        subset(["a", "b"] * 2, 0.5, **{what: values})


def test_groups_must_be_labels() -> None:
    with pytest.raises(TypeError, match="groups must have a label for each row, but got list"):
        subset(4, 0.5, groups=[{}, {}, {}, {}])


def test_groups_and_time_exclude_each_other() -> None:
    with pytest.raises(ValueError, match="time cannot be combined with groups or kind"):
        subset(4, 0.5, groups=[0, 0, 1, 1], time=True)
    with pytest.raises(ValueError, match="time cannot be combined with groups or kind"):
        subset([0, 1, 0, 1], 0.5, kind="classes", time=[1, 2, 3, 4])


@pytest.mark.parametrize(
    "time", [[1, "a"], [DAYS[0], 3], [{}, {}], [1j, "x"], [object(), object()]]
)
def test_stamps_must_sort(time: list[Any]) -> None:
    with pytest.raises(TypeError, match="time must be sortable, but"):
        subset(2, 0.5, time=time)


@pytest.mark.parametrize(
    "time", [[1.0, np.nan], [DAYS[0], None], np.array(["2024", "NaT"], "M8[D]"), ["a", None],
             pd.Series([1, None], dtype="Int64")],
)  # fmt: skip
def test_no_stamp_may_be_missing(time: Any) -> None:
    with pytest.raises(ValueError, match="time must have no missing values"):
        subset(2, 0.5, time=time)


def test_a_row_has_one_stamp() -> None:
    with pytest.raises(ValueError, match=r"one stamp for each row, but its shape is \(2, 2\)"):
        subset(2, 0.5, time=[[1, 2], [3, 4]])


@pytest.mark.parametrize("kind", ["stratified", "", None, 3, ["auto"]])
def test_a_kind_is_one_of_four(kind: Any) -> None:
    with pytest.raises(ValueError, match="kind must be one of 'auto', 'bins', 'classes', 'random'"):
        subset([0, 1], 0.5, kind=kind)


@pytest.mark.parametrize("y", [["a", "b"], 2, np.eye(2), DATASET, sparse.eye_array(2)])
def test_bins_need_numbers(y: Any) -> None:
    with pytest.raises(TypeError, match="kind='bins' needs a number for each row, but y is"):
        subset(y, 0.5, kind="bins")


@pytest.mark.parametrize(
    "y", [2, [{}, {}], np.zeros((2, 2, 2)), np.full((2, 2), 0.5), DATASET, sparse.eye_array(2)]
)
def test_classes_need_labels(y: Any) -> None:
    with pytest.raises(TypeError, match="kind='classes' needs a label for each row, but y is"):
        subset(y, 0.5, kind="classes")


def test_labels_that_hold_lists_are_refused() -> None:
    with pytest.raises(TypeError, match="labels must be hashable, but got an unhashable type"):
        subset([("a", [1]), ("b", [2])], 0.5)


@pytest.mark.parametrize("seed", [None, 0.5, 1.0, True, "0", [1]])
def test_a_seed_is_a_whole_number(seed: Any) -> None:
    with pytest.raises(ValueError, match="seed must be a whole number ≥ 0, but got"):
        subset([0, 1], 0.5, seed=seed)


def test_a_seed_is_not_negative() -> None:
    with pytest.raises(ValueError, match="seed must be a whole number ≥ 0, but got -1"):
        subset([0, 1], 0.5, seed=-1)


def test_nothing_that_is_given_is_changed() -> None:
    y, groups = rows_of([20, 10]), np.arange(30) // 3
    before = y.copy(), groups.copy()
    subset(y, 0.4, groups=groups)
    assert same(y, before[0])
    assert same(groups, before[1])
