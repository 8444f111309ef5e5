"""Where values stand along an axis, and which values label it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.space.generate import property_test
from tradewind.charts.chart import Axis, Bars, Line, Panel, Points
from tradewind.charts.scales import Scale, scales, written

FORMATS = ("number", "percent", "seconds", "bytes")
numbers = st.floats(-1e300, 1e300)
positive = st.floats(1e-300, 1e300)


def texts(axis: Axis, low: float, high: float, count: int = 5) -> list[str]:
    return [tick.text for tick in Scale(axis, low, high).ticks(count)]


@pytest.mark.parametrize(
    ("axis", "low", "high", "expected"),
    [
        (Axis("x"), 0.0, 1.0, ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (Axis("x"), -3.0, 12.0, ["0", "5", "10"]),
        (Axis("x"), 2e6, 1e7, ["2e6", "4e6", "6e6", "8e6", "1e7"]),
        (Axis("x", format="percent"), 0.9, 0.95, ["90%", "91%", "92%", "93%", "94%", "95%"]),
        (Axis("x", format="seconds"), 0.0, 90.0, ["0", "30 s", "1 min", "1.5 min"]),
        (
            Axis("x", format="seconds"),
            0.0,
            0.5,
            ["0", "100 ms", "200 ms", "300 ms", "400 ms", "500 ms"],
        ),
        (
            Axis("x", format="seconds"),
            0.0,
            100.0,
            ["0", "30 s", "1 min", "1.5 min"],
        ),
        (
            Axis("x", format="seconds"),
            0.0,
            150.0,
            ["0", "30 s", "1 min", "1.5 min", "2 min", "2.5 min"],
        ),
        (Axis("x", format="seconds"), 0.0, 10000.0, ["0", "1 h", "2 h"]),
        (Axis("x", format="seconds"), 0.0, 2e5, ["0", "12 h", "1 day", "1.5 days", "2 days"]),
        (Axis("x", format="bytes"), 0.0, 4e9, ["0", "1 GB", "2 GB", "3 GB", "4 GB"]),
        (Axis("x", "log"), 1e-4, 1e3, ["0.0001", "0.01", "1", "100"]),
        (Axis("x", "log"), 1.0, 9.0, ["1", "2", "5"]),
        (Axis("x", "log", "seconds"), 2.0, 5000.0, ["10 s", "1 min", "10 min", "1 h"]),
        (
            Axis("x", "log", "bytes"),
            1e5,
            1e10,
            ["100 kB", "1 MB", "10 MB", "100 MB", "1 GB", "10 GB"],
        ),
        (Axis("x", format="clock"), 1.7e9, 1.7e9 + 3600, ["22:15", "22:30", "22:45", "23:00"]),
    ],
)
def test_ticks_are_round_in_the_unit_of_the_axis(
    axis: Axis, low: float, high: float, expected: list[str]
) -> None:
    assert texts(axis, low, high) == expected


@property_test
@given(st.lists(numbers, min_size=1), st.sampled_from(FORMATS))
def test_every_finite_value_has_a_place_on_a_linear_axis(values: list[float], form: str) -> None:
    scale = Scale.of(Axis("x", format=form), values)  # type: ignore[arg-type]
    places = scale.at(values)
    assert ((places >= 0.0) & (places <= 1.0)).all()
    ticks = scale.ticks()
    assert len(ticks) < 60
    assert all(math.isfinite(tick.value) for tick in ticks)


@property_test
@given(st.lists(positive, min_size=1), st.sampled_from(FORMATS))
def test_every_positive_value_has_a_place_on_a_log_axis(values: list[float], form: str) -> None:
    scale = Scale.of(Axis("x", "log", form), values)  # type: ignore[arg-type]
    places = scale.at(values)
    assert ((places >= 0.0) & (places <= 1.0)).all()
    assert (np.diff(scale.at(sorted(values))) >= 0.0).all()
    assert 1 <= len(scale.ticks()) < 60


def test_what_has_no_value_has_no_place() -> None:
    assert np.isnan(Scale.of(Axis("x"), [1.0, 2.0]).at([None, math.nan])).all()
    assert np.isnan(Scale.of(Axis("x", "log"), [1.0, 2.0]).at([0.0, -1.0])).all()


def test_bars_begin_at_zero_and_categories_have_equal_room() -> None:
    bars = Bars([3.0, 5.0], low=[2.0, 4.0], high=[4.0, 9.0])
    x, y = scales(Panel(Axis("n"), Axis("", "category", labels=("a", "b")), (bars,)))
    assert x.low == 0.0
    assert x.high > 9.0
    assert y.at([0, 1]).tolist() == [0.25, 0.75]


def test_an_axis_of_amounts_begins_where_the_data_are_and_never_below_zero() -> None:
    axis = Axis("training time", format="seconds")
    assert Scale.of(axis, [40.0, 60.0]).low == pytest.approx(39.2)
    assert Scale.of(axis, [0.1, 60.0]).low == 0.0


def test_a_panel_shows_all_its_layers() -> None:
    layers = (Points([1.0], [5.0]), Line([0.0, None, 9.0], [1.0, None, 2.0]))
    x, y = scales(Panel(Axis("x"), Axis("y"), layers))
    assert (x.low, x.high) == (pytest.approx(-0.36), pytest.approx(9.36))
    assert (y.low, y.high) == (pytest.approx(0.84), pytest.approx(5.16))


def test_many_categories_are_thinned() -> None:
    labels = tuple(map(str, range(100)))
    assert len(Scale.of(Axis("x", "category", labels=labels), []).ticks(10)) == 10


@pytest.mark.parametrize(
    ("value", "step", "text"),
    [(0.0, 0.1, "0"), (0.1 + 0.2, 0.1, "0.3"), (1234567.0, 0.0, "1.23e6"), (2e-7, 1e-7, "2e-7")],
)
def test_numbers_have_the_decimals_of_the_step(value: float, step: float, text: str) -> None:
    assert written(value, step) == text
