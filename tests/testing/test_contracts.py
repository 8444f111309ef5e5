"""A contract suite must notice what breaks the contract, and say which rule it was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tradewind as tw
from tradewind.goals import Beat, Goal, Seen
from tradewind.runners import Done, SerialRunner, TrialLimits, Workers
from tradewind.runners.run import Objective
from tradewind.strategies import EI, GaussianProcess, RandomSearch
from tradewind.types import Array, Normal, Origin, Partials, Proposal


@dataclass(frozen=True)
class Overconfident:
    """A surrogate that sorts the targets of its caller."""

    def fit(self, X: Array, y: Array, **options: Any) -> Any:
        y.sort()
        return GaussianProcess().fit(X, y, **options)


@dataclass(frozen=True)
class WrongSlope(EI):
    def partials(self, predicted: Normal, best: Array | float) -> Partials:
        worth = super().partials(predicted, best)
        return Partials(worth.value, 2.0 * worth.by_mean, worth.by_std)


@dataclass(frozen=True)
class Spendthrift(Goal):
    """The dearest is the best."""

    def utility(self, quality: Array, cost: Array, noise: Array | None = None) -> Array:
        return cost

    def aim(self, seen: Seen, *, rng: np.random.Generator) -> Beat:
        return Beat(score=0.0, quality=float(seen.quality.max()))


@dataclass(frozen=True)
class Stubborn(RandomSearch):
    """Proposes the same configuration for ever."""

    def propose(self, space: tw.Space, goal: Goal, history: Any, *, rng: Any) -> Proposal:
        row = space.sample(1, rng=np.random.default_rng(0))[0]
        return Proposal(row, Origin.DESIGN)


class Forgetful:
    """A runner that loses every second trial."""

    def open(self, objective: Objective, limits: TrialLimits) -> Workers:
        workers = SerialRunner().open(objective, limits)
        wait = workers.wait

        def forgetting(timeout: float | None = None) -> list[Done]:
            return [done for done in wait(timeout) if done.trial.number % 2]

        workers.wait = forgetting  # type: ignore[method-assign]
        return workers


@pytest.mark.parametrize(
    ("check", "make", "rule"),
    [
        (tw.testing.check_surrogate, Overconfident, "do not change the arrays that they get"),
        (tw.testing.check_acquisition, WrongSlope, "derivatives of the score"),
        (tw.testing.check_goal, Spendthrift, "the cheaper one is at least as good"),
        (tw.testing.check_strategy, Stubborn, "Another seed gives other trials"),
        (tw.testing.check_runner, Forgetful, "until `wait` has returned it"),
    ],
)
def test_a_broken_rule_is_named(check: Any, make: Any, rule: str) -> None:
    if make is Forgetful:  # the rule before would wait for ever for what is lost
        check = tw.testing.RUNNER[2]
    with pytest.raises(AssertionError, match=rule):
        check(make)


def test_an_exception_is_reported_with_the_rule_that_it_breaks() -> None:
    def make() -> Any:
        raise ValueError("no such model")

    with pytest.raises(AssertionError, match=r"in any space\. But: ValueError\('no such model'\)"):
        tw.testing.check_surrogate(make)


@pytest.mark.parametrize("suite", ["SURROGATE", "ACQUISITION", "GOAL", "RUNNER", "STRATEGY"])
def test_every_rule_is_one_sentence(suite: str) -> None:
    for check in getattr(tw.testing, suite):
        assert str(check) == check.name
        assert check.rule.endswith(".")
        assert ". " not in check.rule


def test_the_suites_pass_for_what_comes_with_tradewind() -> None:
    tw.testing.check_acquisition(EI)
    tw.testing.check_goal(tw.Quality)
    tw.testing.check_runner(SerialRunner)
    simulated = tw.runners.SimulatedRunner(2, duration=lambda trial: 1.0)
    tw.testing.check_runner(lambda: simulated, virtual=True)
    tw.testing.check_strategy(RandomSearch)
