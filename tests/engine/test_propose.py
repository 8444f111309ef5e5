"""Proposals: what a strategy may propose, and when two proposals are almost the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.engine.scripted import always
from tests.histories import proposed, state_of
from tests.studies import drive, told
from tradewind.engine.propose import Proposer
from tradewind.errors import ConfigError
from tradewind.log.events import Claimed, Proposed
from tradewind.strategies import RandomSearch
from tradewind.types import Origin, Prediction, Proposal, Value


def is_like_recent(x: float, since: int, **config: Value) -> bool:
    """Whether x is almost a trial proposed since then: trial 0 is at x = 9 and position 1, trial 1
    at x = 5 and position 3."""
    state = state_of(Claimed(0), proposed(0, 9.0), Claimed(1), proposed(1, 5.0))
    params: dict[str, Value] = {"x": x, "kernel": "linear", "size": 0.5, **config}
    return Proposer(state).is_like_recent(params, since)


@pytest.mark.parametrize(
    ("x", "is_alike"), [(5.0, True), (5.09, True), (5.11, False), (9.0, False)]
)
def test_two_configurations_are_alike_within_a_hundredth_of_every_range(
    x: float, is_alike: bool
) -> None:
    assert is_like_recent(x, since=3) is is_alike


def test_only_trials_proposed_since_then_are_compared() -> None:
    assert is_like_recent(9.0, since=1)
    assert not is_like_recent(9.0, since=2)
    assert not is_like_recent(5.0, since=4)


def test_another_category_or_size_is_not_alike() -> None:
    assert not is_like_recent(5.0, since=0, kernel="poly", degree=2)
    assert not is_like_recent(5.0, since=0, size=1.0)


def test_inactive_parameters_do_not_decide_whether_configurations_are_alike() -> None:
    near: dict[str, Value] = {"x": 5.0, "kernel": "poly", "degree": 3, "size": 0.5}
    proposer = Proposer(state_of(Claimed(0), Proposed(0, near, Origin.DESIGN, seen=0)))
    assert proposer.is_like_recent(near, 0)
    assert not proposer.is_like_recent({**near, "degree": 4}, 0)
    assert not proposer.is_like_recent({"x": 5.0, "kernel": "linear", "size": 0.5}, 0)


@pytest.mark.parametrize(
    "answer", [None, {"x": 0.5}, np.array([0.5, 0.5]), Proposal(np.array([0.5, 0.5]), "design")]
)
def test_a_strategy_that_returns_no_proposal_is_named(answer: Any) -> None:
    class Careless(RandomSearch):
        def propose(self, *_: Any, **__: Any) -> Any:
            return answer

    session = drive(strategy=Careless())
    with pytest.raises(ConfigError, match=r"propose\(\) must return a Proposal.*Careless"):
        session.ask()
    assert session.trials() == []


@pytest.mark.parametrize("row", [[np.nan, 0.5], [[0.5, 0.5], [0.1, 0.1]], [0.5], [0.5, 1.5]])
def test_a_row_outside_the_space_is_refused(row: Any) -> None:
    with pytest.raises(ConfigError, match="proposed"):
        drive(strategy=always(np.array(row))).ask()


@pytest.mark.parametrize(
    ("expected", "recorded"),
    [(2.5, 2.5), (1e300, 1e300), (1e301, None), (np.inf, None), (np.nan, None), (-1.0, None)],
)
def test_an_expected_cost_that_no_trial_can_have_is_left_out(
    expected: float, recorded: float | None
) -> None:
    class Extrapolating(RandomSearch):
        def propose(self, *arguments: Any, **options: Any) -> Proposal:
            proposal = super().propose(*arguments, **options)
            return replace(proposal, expected_cost=expected)

    assert drive(strategy=Extrapolating()).ask().expected_cost == recorded


def test_a_recommendation_or_a_mask_of_the_wrong_size_is_refused() -> None:
    class Beyond(RandomSearch):
        def recommend(self, *_: Any) -> Any:
            return Prediction(7, 1.0, None)

    class Short(RandomSearch):
        def eligible(self, history: Any) -> Any:
            return [True]

    study = told((1.0, None), (2.0, None), strategy=Beyond())
    with pytest.raises(ValueError, match=r"recommend\(\) must return a Prediction"):
        study.recommend()
    study = told((1.0, None), (2.0, None), strategy=Short())
    with pytest.raises(ValueError, match=r"eligible\(\) must return a mask for 2 trials"):
        _ = study.best
