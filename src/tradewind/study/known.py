"""What the finished trials say under one goal: the choice, the efficient trials, the sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tradewind.goals import Goal, Quality
from tradewind.optimizer.history import History
from tradewind.optimizer.repeats import configurations
from tradewind.optimizer.strategies.strategy import Strategy
from tradewind.study.compare import compare_trials
from tradewind.study.explain import Explanation
from tradewind.study.ranking import Contest, efficient_trials
from tradewind.study.words import Scale
from tradewind.types import FinishedTrial


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

    @cached_property
    def contest(self) -> Contest:
        return Contest.of(self.history, self.believed, self.strategy)

    @cached_property
    def choice(self) -> int:
        """The best trial under the goal. `NothingQualifies` if none meets its condition."""
        return self.contest.winner(self.goal)

    @cached_property
    def efficient(self) -> list[int]:
        """The efficient trials, cheapest first."""
        return efficient_trials(self.history, self.believed, self.strategy)

    def explain(self, choice: int) -> Explanation:
        """What this choice costs and gains against the most accurate trial."""
        best = self._most_accurate
        comparison = compare_trials(
            self.trials, self.history, best, choice, scale=self.scale, by=self.goal.by
        )
        return Explanation(
            self.trials[choice], self.trials[best], comparison, self._n_configurations
        )

    @cached_property
    def _most_accurate(self) -> int:
        return self.contest.winner(Quality())

    @cached_property
    def _n_configurations(self) -> int:
        return len(np.unique(configurations(self.history)))
