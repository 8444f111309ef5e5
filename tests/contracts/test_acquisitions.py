"""What every acquisition must do. A new one is one more line in `ACQUISITIONS`."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tradewind.goals import Acquisition
from tradewind.strategies import EI, MGFI, PI, UCB
from tradewind.testing import ACQUISITION, Check, acquisitions

ACQUISITIONS: list[Acquisition] = [
    EI(),
    PI(),
    MGFI(0.0),
    MGFI(0.5),
    MGFI(2.0),
    UCB(0.0),
    UCB(1.5),
]


@pytest.mark.parametrize("acquisition", ACQUISITIONS, ids=repr)
@pytest.mark.parametrize("check", ACQUISITION, ids=str)
def test_an_acquisition_keeps_its_contract(
    check: Check[Acquisition], acquisition: Acquisition
) -> None:
    check(lambda: acquisition)


@pytest.mark.parametrize("acquisition", ACQUISITIONS, ids=repr)
@settings(max_examples=40)
@given(mean=st.floats(-1.0, 1.0), std=st.floats(0.1, 3.0), z=st.floats(-60.0, 30.0))
def test_partials_are_the_derivatives_of_the_score_anywhere(
    acquisition: Acquisition, mean: float, std: float, z: float
) -> None:
    acquisitions.partials_are_right_at(acquisition, mean, std, z)


def test_some_acquisitions_are_logarithms_and_some_are_not() -> None:
    assert {a.log_form for a in ACQUISITIONS} == {True, False}
