"""The results of a study: the winner under a goal, the efficient trials, and what to train.

Everything here only reads. `Study` adds what changes a study.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Literal

import numpy as np

from tradewind import checks
from tradewind.engine.session import Session
from tradewind.errors import NothingFinished
from tradewind.goals import Goal, best_of, efficient
from tradewind.optimizer.history import History
from tradewind.optimizer.strategies.strategy import Strategy, may_win
from tradewind.space import Space
from tradewind.study.tables import data_frame, write_study
from tradewind.types import Array, Prediction, State, Trial, Value

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Recommendation:
    """What to train: the parameters, the fraction of the data, and the value and cost to expect.

    `trial` is the trial with exactly this configuration, or None if it was never run."""

    params: Mapping[str, Value]
    train_size: float
    value: float
    cost: float | None
    trial: Trial | None


class StudyResults:
    """What can be asked of a study without changing it."""

    def __init__(self, session: Session, *, name: str) -> None:
        state = session.state
        self.name, self.space, self.seed = name, state.space, state.seed
        self.direction: Literal["maximize", "minimize"] = (
            "maximize" if state.sign > 0 else "minimize"
        )
        self._session = session

    @property
    def strategy(self) -> Strategy:
        """The strategy that chooses the trials."""
        return self._session.plan.strategy

    def __repr__(self) -> str:
        trials = self.trials
        done = sum(t.finished for t in trials)
        return (
            f"<Study {self.name!r}: {len(trials)} trials, {done} finished, goal {self.goal}, "
            f"seed {self.seed}>"
        )

    @property
    def goal(self) -> Goal:
        """The goal. If the trials decide its reference cost, it is shown as soon as it is known,
        and marked as provisional while it may still change."""
        return self._settle(self._session.plan.goal, self._session.snapshot()[1])

    @property
    def trials(self) -> list[Trial]:
        """All trials by number, in any state."""
        return self._session.trials()

    @property
    def best(self) -> Trial:
        """The best finished trial under the study's goal."""
        return self.best_for(self._session.plan.goal)

    def best_for(self, goal: Goal) -> Trial:
        """The best finished trial under any goal."""
        checks.goal(goal)
        trials, history = self._finished()
        _check_costs(goal, history)
        return _winner(trials, history, self._settle(goal, history), self.strategy)

    def frontier(self) -> list[Trial]:
        """The efficient trials, cheapest first: no other trial is both better and cheaper."""
        return _frontier(*self._finished(), self.strategy)

    def recommend(self) -> Recommendation:
        """What to train. This may differ from `best`, which may be lucky if results are noisy."""
        goal = self._session.plan.goal
        trials, history = self._finished()
        _check_costs(goal, history)
        return _recommendation(trials, history, goal, self.strategy, self.space)

    def to_frame(self) -> pd.DataFrame:
        """All trials as a pandas data frame, one row each. `score` is what the goal maximizes."""
        trials, history = self._session.snapshot()
        goal = self._settle(self._session.plan.goal, history)
        return data_frame(trials, self.space, history, goal)

    def export(self, path: str | PathLike[str]) -> None:
        """Write the study to a file: `.jsonl` holds everything, for `import_study`; `.csv` is a
        table of the trials."""
        write_study(path, self._session.log, self.trials, self.space)

    def _finished(self) -> tuple[list[Trial], History]:
        trials, history = self._session.snapshot()
        return _finished_of(trials), history

    def _settle(self, goal: Goal, history: History) -> Goal:
        return _settle(goal, self._session.plan.goal, self.strategy, history)


# ---- from trials to answers: `trials` are the finished ones, in the order of the history ----


def _finished_of(trials: Sequence[Trial]) -> list[Trial]:
    """The finished trials, or `NothingFinished`."""
    finished = [t for t in trials if t.finished]
    if not finished:
        failed = [t.error for t in trials if t.state is State.FAILED]
        why = f"; the last failure was:\n{failed[-1]}" if failed else ""
        raise NothingFinished(f"no trial of this study has finished{why}")
    return finished


def _check_costs(goal: Goal, history: History) -> None:
    """Raise `NothingFinished` if the goal needs costs and no finished trial has one."""
    if goal.needs_cost and not history.has_costs:
        raise NothingFinished(f"{goal} needs costs, but no finished trial has one")


def _settle(goal: Goal, study_goal: Goal, strategy: Strategy, history: History) -> Goal:
    """The goal with a reference: its own, or that of the study's goal, or one from the trials."""
    if study_goal.reference is not None:
        goal = goal.settle(np.array([study_goal.reference]))
    return strategy.settle(goal, history)


def _winner(trials: Sequence[Trial], history: History, goal: Goal, strategy: Strategy) -> Trial:
    """The best trial under a settled goal, among those that may win."""
    utility = goal.utility(history.quality, history.cost)
    candidates = np.flatnonzero(may_win(strategy, history))
    return trials[int(candidates[best_of(utility[candidates])])]


def _frontier(trials: Sequence[Trial], history: History, strategy: Strategy) -> list[Trial]:
    """The efficient trials, cheapest first, among those that may win."""
    counts = may_win(strategy, history) & ~history.raced  # the cost of a raced trial is a guess
    cost: Array = np.where(counts, history.cost, np.nan)
    return [trials[i] for i in efficient(history.quality, cost)]


def _recommendation(
    trials: Sequence[Trial], history: History, goal: Goal, strategy: Strategy, space: Space
) -> Recommendation:
    """What the strategy recommends, possibly at a training size that was never run."""
    chosen = strategy.recommend(space, goal, history)
    if not isinstance(chosen, Prediction) or not 0 <= chosen.index < len(trials):
        raise ValueError(
            f"a strategy's recommend() must return a Prediction for one of the {len(trials)} "
            f"finished trials, but {strategy!r} returned {chosen!r}"
        )
    trial: Trial | None = trials[chosen.index]
    assert trial is not None
    params, size = dict(trial.params), trial.train_size
    if chosen.train_size is not None and chosen.train_size != size:
        size = chosen.train_size
        if space.size_name is not None:
            params[space.size_name] = size
        trial = next((t for t in trials if (t.params, t.train_size) == (params, size)), None)
    value = float(history.sign * chosen.quality)
    return Recommendation(params, size, value, chosen.cost, trial)
