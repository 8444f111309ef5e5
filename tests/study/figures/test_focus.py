"""Which values the figure of the frontier shows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tradewind as tw
from tests.space.generate import property_test
from tests.studies import told
from tradewind.study.figures.focus import focus
from tradewind.types import Array

GOOD = [0.90, 0.93, 0.94, 0.95, 0.945, 0.94, 0.91]
FRONTIER = np.array([0.90, 0.93, 0.94, 0.95])


def shown(quality: Array, matters: Array, chosen: float | None) -> tuple[float, float]:
    found = focus(quality, matters, chosen, most=1 / 3)
    assert found is not None
    return found


def test_a_bad_trial_does_not_flatten_the_frontier() -> None:
    low, high = shown(np.array([*GOOD, 0.2]), FRONTIER, 0.94)
    assert 0.85 < low < 0.90
    assert 0.95 < high < 0.96


def test_all_values_are_shown_if_the_frontier_takes_most_of_the_height() -> None:
    assert focus(np.array([*GOOD, 0.89]), FRONTIER, None, most=1 / 3) is None


def test_a_cheap_model_that_is_good_for_nothing_is_left_out_too() -> None:
    low, _ = shown(np.array([*GOOD, 0.1, 0.12]), np.array([0.1, 0.12, *FRONTIER]), 0.94)
    assert low > 0.85


def test_but_not_if_it_is_chosen_or_one_of_few() -> None:
    assert focus(np.array([*GOOD, 0.1]), np.array([0.1, *FRONTIER]), 0.1, most=1 / 3) is None
    assert focus(np.array([*GOOD, 0.1]), np.array([0.1, 0.93, 0.95]), None, most=1 / 3) is None


@pytest.mark.parametrize("values", [[], [0.0, 0.0], [0.5, 0.5, 0.5], [-2.0, -2.0]])
def test_equal_values_need_no_focus(values: list[float]) -> None:
    assert focus(np.array(values), np.array(values[:1]), None, most=1 / 3) is None


@property_test
@given(st.lists(st.floats(-1.7e308, 1.7e308), min_size=1, max_size=30), st.data())
def test_the_best_and_the_chosen_are_in_the_picture(
    values: list[float], data: st.DataObject
) -> None:
    efficient = data.draw(st.lists(st.sampled_from(values), max_size=8))
    chosen = data.draw(st.sampled_from(values))
    found = focus(np.array(values), np.array([*efficient, max(values)]), chosen, most=1 / 3)
    if found is not None:
        assert np.isfinite(found).all()
        assert found[0] < chosen
        assert found[1] >= min(max(values), 1e308)
        assert sum(value < found[0] for value in values) <= len(values) / 3


@pytest.mark.parametrize(
    ("minimize", "said"),
    [
        (False, "The triangle at the lower edge is a trial below this range, at 0.2."),
        (True, "Triangles at the upper edge are 2 trials above this range, from 0.5 to 0.7."),
    ],
)
def test_the_note_says_what_the_picture_leaves_out(minimize: bool, said: str) -> None:
    values = [1.0 - v if minimize else v for v in GOOD] + ([0.7, 0.5] if minimize else [0.2])
    results = [(value, 1.0 + i) for i, value in enumerate(values)]
    study = told(*results, direction="minimize" if minimize else "maximize")
    chart = study.plot.frontier().chart
    assert said in chart.note
    limits = chart.panels[0].y.limits
    assert limits is not None
    beyond = [v for v in values if not limits[0] <= v <= limits[1]]
    assert len(beyond) == 1 + minimize


def test_at_most_a_third_of_the_trials_is_left_out() -> None:
    converged = np.linspace(0.9, 0.91, 40)
    low, _ = shown(np.append(converged, np.linspace(0.1, 0.7, 19)), converged[-1:], None)
    assert 0.7 < low < 0.9
    low, _ = shown(np.append(converged, np.linspace(0.1, 0.7, 40)), converged[-1:], None)
    assert 0.4 < low < 0.6


def test_a_frontier_without_outliers_has_no_limits() -> None:
    study = told((0.90, 1.0), (0.93, 2.0), (0.95, 3.0), goal=tw.Tradeoff(0.01, 1.0))
    assert study.plot.frontier().chart.panels[0].y.limits is None
