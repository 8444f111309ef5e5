"""Spaces as scikit-learn writes them."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import tradewind as tw
from tradewind.errors import SpaceError
from tradewind.space.distributions import Translation, translate


def drawn(translation: Translation, n: int = 200) -> list[dict[str, Any]]:
    """What random configurations mean."""
    space = translation.space
    rows = space.sample(n, rng=np.random.default_rng(0))
    return [translation.params(config) for config in space.decode(rows)]


# ---- spaces and short forms ----


def test_a_space_is_taken_as_it_is() -> None:
    space = tw.Space({"C": tw.Float(0, 1), "part": tw.TrainSize([0.5, 1.0])})
    translation = translate(space)
    assert translation.space is space
    assert translation.params({"C": 0.3, "part": 0.5}) == {"C": 0.3}


def test_the_short_forms_of_spaces_are_read() -> None:
    translation = translate(
        {
            "C": (1e-4, 1e3, "log"),
            "depth": (1, 12),
            "shrinking": bool,
            "gamma": [1e-3, 1e2, "log"],
            "kernel": ["rbf", "poly"],
            "degree": {"type": "int", "low": 2, "high": 5, "when": {"kernel": "poly"}},
            "width": tw.Ordinal([8, 4, 2]),
        }
    )
    assert dict(translation.space) == {
        "C": tw.Float(1e-4, 1e3, log=True),
        "depth": tw.Int(1, 12),
        "shrinking": tw.Bool(),
        "gamma": tw.Float(1e-3, 1e2, log=True),
        "kernel": tw.Categorical(["rbf", "poly"]),
        "degree": tw.Int(2, 5, when={"kernel": "poly"}),
        "width": tw.Ordinal([8, 4, 2]),
    }


def test_a_condition_may_refer_to_a_parameter_with_one_value() -> None:
    translation = translate({"kernel": ["poly"], "degree": tw.Int(2, 5, when={"kernel": "poly"})})
    assert list(translation.space) == ["kernel", "degree"]
    assert all(params["kernel"] == "poly" for params in drawn(translation))


def test_a_space_that_was_written_down_is_read() -> None:
    space = tw.Space({"a": tw.Int(1, 3), "b": tw.Bool()}, forbid=[{"a": 1, "b": True}])
    assert translate(space.to_dict()).space == space


# ---- lists ----


@pytest.mark.parametrize(
    ("values", "parameter"),
    [
        ([1, 10, 100], tw.Ordinal([1, 10, 100])),
        ([0.5, 0.1], tw.Ordinal([0.5, 0.1])),
        (range(1, 4), tw.Ordinal([1, 2, 3])),
        (np.logspace(-2, 1, 4), tw.Ordinal(np.logspace(-2, 1, 4))),
        (pd.Series([1, 2, 5]), tw.Ordinal([1, 2, 5])),
        ((1, 10, 100), tw.Ordinal([1, 10, 100])),
        ([3, 1, 2], tw.Categorical([3, 1, 2])),
        (["l1", "l2"], tw.Categorical(["l1", "l2"])),
        (("l1", "l2"), tw.Categorical(["l1", "l2"])),
        ([True, False], tw.Categorical([True, False])),
        ([None, 5, 10], tw.Categorical([None, 5, 10])),
        ([1, 2, "sqrt"], tw.Categorical([1, 2, "sqrt"])),
        (np.array(["a", "b"]), tw.Categorical(["a", "b"])),
        ([1, 2, 2, 1], tw.Ordinal([1, 2])),
    ],
    ids=lambda given: re.sub(r" at 0x\w+", "", str(given)),
)
def test_a_list_is_a_choice_in_an_order_where_numbers_have_one(
    values: Any, parameter: tw.Categorical
) -> None:
    assert translate({"p": values}).space["p"] == parameter


def test_one_feature_and_all_features_are_two_values() -> None:
    values = [params["max_features"] for params in drawn(translate({"max_features": [1, 1.0]}))]
    assert {type(value) for value in values} == {int, float}


def test_numbers_of_numpy_come_back_as_plain_numbers() -> None:
    translation = translate({"p": np.arange(3), "q": [np.float64(0.5), np.float64(1.5)]})
    kinds = {(type(params["p"]), type(params["q"])) for params in drawn(translation)}
    assert kinds == {(int, float)}


def square(x: float) -> float:
    return x * x


@pytest.mark.parametrize(
    "values",
    [
        [(1, 1), (1, 2)],
        [square, math.sin],
        [lambda x: x, lambda x: 2 * x],
        [StandardScaler(), MinMaxScaler(), "passthrough"],
        [math.nan, -1],
        [[50], [50, 50], None],
        [np.array([1, 2]), np.array([3, 4])],
        [object(), object()],
        [LogisticRegression, StandardScaler],
    ],
    ids=lambda given: re.sub(r" at 0x\w+", "", str(given)),
)
def test_values_that_no_space_can_hold_come_back_as_they_were(values: list[Any]) -> None:
    translation = translate({"p": values})
    assert len(translation.space["p"].choices) == len(values)  # type: ignore[attr-defined]
    found = [params["p"] for params in drawn(translation)]
    assert all(any(f is v for v in values) for f in found)
    assert all(any(f is v for f in found) for v in values)


def test_labels_are_the_same_in_another_process() -> None:
    class Thing:
        pass

    values = [(1, 2), square, Thing(), Thing(), StandardScaler(with_mean=False)]
    labels = translate({"p": values}).space["p"].choices  # type: ignore[attr-defined]
    here = test_labels_are_the_same_in_another_process.__qualname__
    assert labels == (
        "(1, 2)",
        f"{__name__}.square",
        f"{here}.<locals>.Thing",
        f"{here}.<locals>.Thing#2",
        "StandardScaler(with_mean=False)",
    )


def test_a_parameter_with_one_value_is_no_part_of_the_space() -> None:
    scaler = StandardScaler()
    translation = translate({"C": [1.0, 2.0], "penalty": ["l2"], "scale": [scaler]})
    assert list(translation.space) == ["C"]
    assert translation.params({"C": 2.0}) == {"C": 2.0, "penalty": "l2", "scale": scaler}


def test_a_space_of_single_values_has_one_configuration() -> None:
    translation = translate({"C": [1.0], "f": [square]})
    assert len(translation.space.grid()) == 1  # type: ignore[arg-type]
    assert drawn(translation, 1) == [{"C": 1.0, "f": square}]


# ---- distributions ----


@pytest.mark.parametrize(
    ("distribution", "parameter"),
    [
        (stats.uniform(2, 3), tw.Float(2, 5)),
        (stats.uniform, tw.Float(0, 1)),
        (stats.loguniform(1e-3, 1e2), tw.Float(1e-3, 1e2, log=True)),
        (stats.reciprocal(1e-3, 1e2), tw.Float(1e-3, 1e2, log=True)),
        (stats.loguniform(1, 10, scale=5), tw.Float(5, 50, log=True)),
        (stats.randint(1, 11), tw.Int(1, 10)),
        (stats.randint(0, 10, loc=5), tw.Int(5, 14)),
        (stats.randint(1, 10**9), tw.Int(1, 10**9 - 1)),
        (stats.binom(10, 0.5), tw.Int(0, 10)),
        (stats.rv_discrete(values=([1, 4, 9], [0.2, 0.3, 0.5])), tw.Ordinal([1, 4, 9])),
        (stats.rv_discrete(values=([1, 2, 3], [0.5, 0.0, 0.5])), tw.Ordinal([1, 3])),
    ],
    ids=lambda d: getattr(getattr(d, "dist", d), "name", str(d)),
)
def test_a_distribution_is_the_parameter_that_it_describes(
    distribution: Any, parameter: tw.Float
) -> None:
    assert translate({"p": distribution}).space["p"] == parameter


@pytest.mark.parametrize(
    "distribution",
    [stats.expon(scale=100), stats.norm(3, 2), stats.beta(2, 5), stats.loguniform(1, 9, loc=2)],
    ids=lambda d: d.dist.name,
)
def test_another_continuous_distribution_is_searched_in_its_quantiles(distribution: Any) -> None:
    translation = translate({"p": distribution})
    values = np.array([params["p"] for params in drawn(translation, 2000)])
    assert translation.space["p"] == tw.Float(0.001, 0.999)
    assert values.min() >= distribution.ppf(0.001)
    assert values.max() <= distribution.ppf(0.999)
    assert stats.kstest(values, distribution.cdf).pvalue > 0.01


def test_a_discrete_distribution_without_an_end_loses_its_tail() -> None:
    assert translate({"p": stats.poisson(20)}).space["p"] == tw.Int(0, stats.poisson(20).ppf(0.999))


def test_a_distribution_with_one_value_is_no_part_of_the_space() -> None:
    translation = translate({"a": stats.randint(3, 4), "b": [1, 2]})
    assert list(translation.space) == ["b"]
    assert translation.params({"b": 1}) == {"a": 3, "b": 1}


class Drawn:
    """What scikit-learn asks of a distribution, and no more."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def rvs(self, random_state: np.random.RandomState) -> Any:
        return self.values[random_state.randint(len(self.values))]


def test_what_can_only_be_drawn_from_is_searched_by_a_sample() -> None:
    wide = translate({"p": Drawn(list(np.linspace(10, 20, 1001)))})
    values = np.array([params["p"] for params in drawn(wide, 1000)])
    assert wide.space["p"] == tw.Float(0, 1)
    assert 10 <= values.min() < 10.5 < 14.5 < values.mean() < 15.5 < 19.5 < values.max() <= 20
    assert translate({"p": Drawn([3, 1, 2])}).space["p"] == tw.Ordinal([1, 2, 3])
    pairs = translate({"p": Drawn([(1, 1), (1, 2)])})
    assert {params["p"] for params in drawn(pairs)} == {(1, 1), (1, 2)}


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_a_uniform_distribution_is_never_left(loc: float, scale: float) -> None:
    params = drawn(translate({"p": stats.uniform(loc, scale)}), 5)
    assert all(loc <= one["p"] <= loc + scale for one in params)


# ---- several spaces ----


def test_of_several_spaces_each_has_its_own_parameters() -> None:
    translation = translate(
        [
            {"kernel": ["linear"], "C": stats.loguniform(1e-3, 1e3)},
            {"kernel": ["rbf"], "C": stats.loguniform(1e-3, 1e3), "gamma": [0.1, 1.0]},
            {},
        ]
    )
    found = {tuple(sorted(params)) for params in drawn(translation)}
    assert found == {("C", "kernel"), ("C", "gamma", "kernel"), ()}
    for params in drawn(translation):
        assert ("gamma" in params) == (params.get("kernel") == "rbf")


def test_what_is_the_same_in_several_spaces_is_one_parameter() -> None:
    translation = translate(
        [{"C": [1, 2, 3], "a": [1, 2]}, {"C": [1, 2, 3], "a": [5, 6]}, {"C": [1, 2, 3]}]
    )
    assert list(translation.space) == ["subspace", "C", "a", "a#2"]
    assert not translation.space["C"].when
    seen = {(params["C"], params.get("a")) for params in drawn(translation, 500)}
    assert seen == {(c, a) for c in (1, 2, 3) for a in (1, 2, 5, 6, None)}


def test_values_with_labels_are_kept_apart_in_several_spaces() -> None:
    one, other = (lambda x: x), (lambda x: -x)
    translation = translate([{"f": [one, abs], "k": ["a"]}, {"f": [other, abs], "k": ["b"]}])
    for params in drawn(translation):
        assert params["f"] in ((one, abs) if params["k"] == "a" else (other, abs))


def test_a_list_of_one_space_is_that_space() -> None:
    assert list(translate([{"C": [1, 2]}]).space) == ["C"]


def test_a_parameter_may_have_the_name_that_tells_spaces_apart() -> None:
    translation = translate([{"subspace": [1, 2]}, {"C": [1, 2]}])
    assert {tuple(params) for params in drawn(translation)} == {("subspace",), ("C",)}


# ---- what cannot be read ----


@pytest.mark.parametrize("given", [None, 3, "C", [], [1], [{"C": [1]}, 3]], ids=str)
def test_what_is_no_space_is_refused(given: Any) -> None:
    with pytest.raises(TypeError, match="a space is a Space, a mapping"):
        translate(given)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ([], "at least one value"),
        ("abc", "is written as a tuple"),
        (5, "is written as a tuple"),
        (stats.uniform(0, -1), "valid arguments"),
        (stats.randint, "low"),
    ],
    ids=["empty", "text", "number", "invalid", "unfrozen"],
)
def test_what_is_no_parameter_is_refused_by_name(form: Any, message: str) -> None:
    with pytest.raises(SpaceError, match="'p'") as caught:
        translate({"p": form, "q": [1, 2]})
    assert message in str(caught.value)
