"""What the finished trials say under one goal: the choice, the efficient trials, the sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tradewind.amounts import percent
from tradewind.data.estimates import ResultNoise
from tradewind.errors import NothingQualifies
from tradewind.goals import BestUnder, Frontier, Goal, Quality
from tradewind.optimizer.history import History
from tradewind.optimizer.repeats import configurations
from tradewind.optimizer.strategies.strategy import Strategy
from tradewind.study.compare import compare_trials
from tradewind.study.explain import Explanation
from tradewind.study.ranking import Contest, efficient_trials
from tradewind.study.words import (
    Scale,
    at_cost,
    chance_to_keep,
    goal_in_words,
    unit_of_costs,
    within,
)
from tradewind.types import Array, FinishedTrial


@dataclass(frozen=True)
class Known:
    """The finished `trials`, their `history`, and the history as it is `believed`, under a settled
    `goal`. Trials are named by their index in the history."""

    trials: Sequence[FinishedTrial]
    history: History
    believed: History
    goal: Goal
    strategy: Strategy
    scale: Scale
    noise: ResultNoise | None  # of one result
    usual: Callable[[], Array]  # what the trials cost usually

    @cached_property
    def contest(self) -> Contest:
        return Contest.of(self.history, self.believed, self.strategy, self.usual)

    def qualified(self) -> Contest:
        """The contest, or `NothingQualifies` if no trial that may win meets the condition of the
        goal."""
        if self.shortfall:
            raise NothingQualifies(self.shortfall)
        return self.contest

    @cached_property
    def choice(self) -> int:
        """The best trial under the goal. `NothingQualifies` if none meets its condition."""
        return self.qualified().winner(self.goal)

    @cached_property
    def shortfall(self) -> str:
        """That no trial meets the condition of the goal, and which one comes closest; nothing if
        one does."""
        goal, seen = self.goal, self.contest.seen
        if goal.qualifies(seen.quality, self.contest.cost(goal), seen.noise).any():
            return ""
        unit = unit_of_costs(self.trials, goal.by)
        said = f"no finished trial meets the goal, {goal_in_words(goal, unit, self.scale.metric)}"
        if not seen.has_costs:
            return f"{said}: none that may win has a known cost"
        closest = self.contest.winner(goal)
        trial, cost = self.trials[closest], float(self.history.cost[closest])
        result = self.scale.said(trial.value) + (f" {at_cost(cost, unit)}" if cost == cost else "")
        kept = chance_to_keep(goal, cost)
        if isinstance(goal, BestUnder):
            sure = f" with a probability of {percent(goal.confidence)}" * bool(kept)
            said = f"no finished trial is {within(goal.cost, unit)}{sure}"
        kept = f", and {kept}" * bool(kept)
        return f"{said}: trial {trial.number} comes closest, with {result}{kept}"

    @cached_property
    def efficient(self) -> list[int]:
        """The efficient trials, cheapest first."""
        return efficient_trials(self.history, self.believed, self.strategy)

    def explain(self, choice: int, goal: Goal | None = None, *, within: str = "") -> Explanation:
        """Why this trial is the choice under a settled goal, by default this one, and what the one
        with the best quality would change. `within` is the limit in words, if not that of the
        goal."""
        goal = self.goal if goal is None else goal
        best, quality = self._best, self.believed.quality
        comparison = compare_trials(
            self.trials,
            self.history,
            *(best, choice),
            scale=self.scale,
            noise=self.noise,
            by=goal.by,
        )
        counted = self.contest.cost(goal)[self.contest.rows == choice]
        values = [float(self.history.sign * quality[i]) for i in (choice, best)]
        return Explanation(
            self.trials[choice],
            self.trials[best],
            comparison,
            self._n_configurations,
            goal,
            None if np.array_equal(quality, self.history.quality) else (values[0], values[1]),
            tuple(self.trials[i] for i in self.efficient) if isinstance(goal, Frontier) else (),
            within,
            float(counted[0]) if len(counted) else None,
            self._lucky(choice, goal),
        )

    def _lucky(self, choice: int, goal: Goal) -> tuple[FinishedTrial, float] | None:
        """The best of the trials that are better than the choice and were once below the limit, and
        the probability that it keeps the limit when it is trained again."""
        if not isinstance(goal, BestUnder) or goal.spread == 0.0:
            return None
        seen, cost = self.contest.seen, self.contest.cost(goal)
        better = seen.quality > self.believed.quality[choice]
        lucky = better & (seen.cost <= goal.cost) & ~goal.qualifies(seen.quality, cost, seen.noise)
        if not lucky.any():
            return None
        best = int(np.argmax(np.where(lucky, seen.quality, -np.inf)))
        return self.trials[int(self.contest.rows[best])], goal.probability(float(cost[best]))

    @cached_property
    def _best(self) -> int:
        return self.contest.winner(Quality())

    @cached_property
    def _n_configurations(self) -> int:
        return len(np.unique(configurations(self.history)))
