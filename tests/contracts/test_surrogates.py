"""What every surrogate must do; a new one is one more line in CASES."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.space.generate import spaces
from tradewind.optimizer.surrogates.surrogate import Surrogate
from tradewind.space import Space
from tradewind.strategies import GaussianProcess, RandomForest
from tradewind.testing import SURROGATE, Check, surrogates

# Each surrogate, and by how much (of y's std, root mean square) its mean may move when only what it
# draws at random, or the order in which it sums, has changed.
CASES: dict[str, tuple[Surrogate, float]] = {
    "forest": (RandomForest(), 0.1),
    "gp": (GaussianProcess(), 1e-3),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("check", SURROGATE, ids=str)
def test_a_surrogate_keeps_its_contract(check: Check[Surrogate], name: str) -> None:
    check(lambda: CASES[name][0])


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(space=spaces(), n=st.integers(1, 25), seed=st.integers(0, 2**32 - 1))
def test_predictions_are_finite_and_std_is_not_negative_in_any_space(
    name: str, space: Space, n: int, seed: int
) -> None:
    surrogates.predicts_soundly(CASES[name][0], space, n, seed)


@pytest.mark.parametrize("name", CASES)
def test_order_and_labels_matter_no_more_than_its_own_chance(name: str) -> None:
    surrogate, chance = CASES[name]
    surrogates.the_order_of_the_observations_does_not_matter(surrogate, chance)
    surrogates.the_labels_of_categories_do_not_matter(surrogate, chance)
