"""What every strategy must do; a new one is one more line in STRATEGIES, or in SIZED."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tradewind as tw
from tests.space.generate import spaces
from tradewind import recipes
from tradewind.optimizer.maximizers.evolution import MIES
from tradewind.strategies import Bayes, Design, MultiFidelity, RandomSearch, Strategy
from tradewind.testing import STRATEGY, Check
from tradewind.testing.strategies import GENERAL, GOALS, proposals_are_valid

STRATEGIES: dict[str, Strategy] = {
    "bayes": Bayes(design=Design(4)),
    "random": RandomSearch(),
    "wang2020": recipes.wang2020(),
    "mip_ego": recipes.mip_ego(  # with less effort than published
        loss="identity", trees=5, maximizer=MIES(generations=10)
    ),
}
SIZED: dict[str, Strategy] = {"multifidelity": MultiFidelity()}  # for spaces with sizes


@pytest.mark.parametrize("name", [*STRATEGIES, *SIZED])
@pytest.mark.parametrize("check", STRATEGY, ids=str)
def test_a_strategy_keeps_its_contract(check: Check[Strategy], name: str) -> None:
    check(lambda: {**STRATEGIES, **SIZED}[name])


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("check", GENERAL, ids=str)
def test_a_strategy_for_any_space_keeps_its_contract(check: Check[Strategy], name: str) -> None:
    check(lambda: STRATEGIES[name])


@pytest.mark.parametrize("name", STRATEGIES)
@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(space=spaces(), seed=st.integers(0, 2**32), data=st.data())
def test_every_proposal_is_a_configuration_of_any_space(
    name: str, space: tw.Space, seed: int, data: st.DataObject
) -> None:
    goal = data.draw(st.sampled_from(GOALS))
    ends = data.draw(st.lists(st.sampled_from("tttfr"), min_size=7, max_size=7))
    proposals_are_valid(STRATEGIES[name], space, goal, seed=seed, ends=ends)
