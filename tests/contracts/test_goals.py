"""What every goal must do. A new one is one more line in `GOALS`."""

from __future__ import annotations

import pytest

from tradewind.engine import plan
from tradewind.goals import BestUnder, CheapestWithin, Frontier, Goal, Knee, Quality, Tradeoff
from tradewind.testing import GOAL, Check

GOALS: list[Goal] = [
    Quality(),
    Tradeoff(0.0),
    Tradeoff(0.3),
    Tradeoff(0.3, 20.0),
    Tradeoff(5.0, 1e-3),
    Tradeoff(0.3, 20.0, capped=True, by="memory"),
    Frontier(),
    Frontier(cost=(2.0, 20.0)),
    Frontier(alpha=(0.1, 0.9), reference=5.0),
    Frontier(search="hypervolume"),
    BestUnder(12.0),
    BestUnder(0.5),
    CheapestWithin(0.05),
    CheapestWithin("10%"),
    CheapestWithin("1se"),
    Knee(),
]


@pytest.mark.parametrize("goal", GOALS, ids=repr)
@pytest.mark.parametrize("check", GOAL, ids=str)
def test_a_goal_keeps_its_contract(check: Check[Goal], goal: Goal) -> None:
    check(lambda: goal)


@pytest.mark.parametrize("goal", GOALS, ids=repr)
def test_a_goal_of_ours_is_stored_as_plain_data(goal: Goal) -> None:
    assert plan.must_be_supplied(plan.encode(goal)) == []
    assert plan.decode(plan.encode(goal)) == goal
