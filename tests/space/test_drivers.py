"""Parameters that may drive the cost: how users say so, and the logarithms that models see."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tradewind.errors import SpaceError
from tradewind.space import Bool, Categorical, Float, Int, Ordinal, Parameter, Space, TrainSize

DRIVING = {
    "int": Int(1, 30, drives_cost=True),
    "log int": Int(1, 1000, log=True, drives_cost=True),
    "steps": Int(10, 100, step=10, drives_cost=True),
    "float": Float(0.1, 20.0, drives_cost=True),
    "ordinal": Ordinal([64, 32, 128.5], drives_cost=True),
}


@pytest.mark.parametrize("parameter", DRIVING.values(), ids=DRIVING)
def test_the_logarithm_of_a_value_is_found_at_its_coordinate(parameter: Parameter) -> None:
    space = Space({"x": Bool(), "it": parameter})
    (driver,) = space.columns.drivers
    assert (driver.column, driver.power) == (1, 1.0)
    X = space.sample(50, rng=np.random.default_rng(0))
    logs = np.log([config["it"] for config in space.decode(X)])
    off = np.interp(X[:, 1], driver.knots, driver.logs) - logs
    np.testing.assert_allclose(off, off[0], atol=0.003)


def test_sizes_and_log_scales_may_drive_the_cost_without_being_named() -> None:
    space = Space(
        {
            "plain": Int(1, 30),
            "rate": Float(1e-4, 1.0, log=True),
            "one": Ordinal([5], drives_cost=True),
            "kind": Categorical([1, 2, 3]),
            "width": Ordinal([1, 2, 3]),
            "size": TrainSize([0.1, 1.0]),
        }
    )
    assert [(d.column, d.power) for d in space.columns.drivers] == [(1, 0.0), (5, 1.0)]


@pytest.mark.parametrize("parameter", DRIVING.values(), ids=DRIVING)
def test_it_is_stored_and_shown_only_when_it_is_set(parameter: Any) -> None:
    space = Space({"it": parameter})
    data = space.to_dict()
    assert data["parameters"]["it"]["drives_cost"] is True
    assert Space.from_dict(data) == space
    assert eval(repr(parameter)) == parameter
    del data["parameters"]["it"]["drives_cost"]
    other = Space.from_dict(data)
    assert other != space
    assert "drives_cost" not in str(other.to_dict()) + repr(other)


@pytest.mark.parametrize(
    ("make", "wrong"),
    [
        (lambda: Int(0, 3, drives_cost=True), "0"),
        (lambda: Float(-1.5, 3, drives_cost=True), "-1.5"),
        (lambda: Ordinal(["s", "m"], drives_cost=True), "'s'"),
        (lambda: Ordinal([1, True], drives_cost=True), "True"),
        (lambda: Ordinal([1, 0], drives_cost=True), "0"),
    ],
)
def test_a_cost_can_only_be_proportional_to_positive_numbers(make: Any, wrong: str) -> None:
    with pytest.raises(SpaceError, match=rf"drives_cost=True\) takes numbers > 0, but got {wrong}"):
        make()


def test_it_is_true_or_false() -> None:
    with pytest.raises(TypeError, match="drives_cost must be True or False, but got 'yes'"):
        Int(1, 3, drives_cost="yes")  # type: ignore[arg-type]
    with pytest.raises(SpaceError, match="drives_cost must be True or False, but got 1"):
        Space.from_dict({"x": {"type": "int", "low": 1, "high": 3, "drives_cost": 1}})
