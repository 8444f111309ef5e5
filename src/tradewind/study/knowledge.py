"""What a study knows: its finished trials, what is believed of them, and goals with references.

Answers, figures and confirmations ask here, so that they agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from tradewind.data.estimates import ResultNoise
from tradewind.engine.propose import single_threaded
from tradewind.engine.session import Session
from tradewind.goals import CheapestWithin, Goal
from tradewind.goals.text import AnyGoal, read_goal
from tradewind.optimizer.belief import Belief, usual_costs
from tradewind.optimizer.believed import believed, noise_of_one_result, with_noise
from tradewind.optimizer.history import History
from tradewind.optimizer.strategies.strategy import Strategy
from tradewind.seeds import proposal_rng
from tradewind.study.compare import find
from tradewind.study.known import Known
from tradewind.study.recommend import check_costs, finished_of
from tradewind.study.words import Scale
from tradewind.types import Array, FinishedTrial, Trial

T = TypeVar("T")


class Knowledge:
    """What the trials of a session say, as of each question."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._answers: dict[Callable[..., Any], tuple[object, Any]] = {}

    @property
    def strategy(self) -> Strategy:
        return self._session.plan.strategy

    def finished(self, by: str | None = None) -> tuple[list[FinishedTrial], History]:
        """The finished trials and their history with the cost of this name, by default that of the
        study. `NothingFinished` if there are none."""
        trials, history = self._session.snapshot(by=by)
        return finished_of(trials), history

    def asked(self, goal: AnyGoal | None) -> Goal:
        """The goal that is asked for, by default that of the study."""
        return self._session.plan.goal if goal is None else read_goal(goal)

    def known_for(self, goal: AnyGoal | None) -> tuple[list[FinishedTrial], History, Goal]:
        """The finished trials, their history, and the settled goal, by default that of the
        study."""
        goal = self.asked(goal)
        trials, history = self.finished(goal.by)
        return trials, *self.settled(history, goal)

    def settled(self, history: History, goal: Goal) -> tuple[History, Goal]:
        """The history with the noise that repeats reveal, and the goal with its reference."""
        history = with_noise(history, self.noise(history))
        check_costs(goal, history)
        return history, self.ready(goal, history)

    def best(self, goal: AnyGoal | None) -> FinishedTrial:
        """The best trial under a goal, by default that of the study."""
        known = self.known(goal)
        return known.trials[known.choice]

    def known(self, goal: AnyGoal | None, *, believed: bool = True) -> Known:
        """The finished trials under a goal, by default that of the study, with their results as a
        model believes them or as they are."""
        goal = self.asked(goal)
        trials, history = self.finished(goal.by)
        return self.known_from(trials, history, goal, believed=believed)

    def known_from(
        self,
        trials: list[FinishedTrial],
        history: History,
        goal: Goal,
        *,
        believed: bool = True,
    ) -> Known:
        """These finished trials under a goal. Their history uses the cost of the goal."""
        noise = self.noise(history)
        history, goal = self.settled(history, goal)
        known = self.as_believed(history) if believed else history
        return Known(
            trials,
            history,
            known,
            goal,
            self.strategy,
            self.scale(trials),
            noise,
            lambda: self._usual(history, goal.by)[1],
        )

    def find(self, trial: Trial | int) -> FinishedTrial:
        """The finished trial that is given, as a trial or by its number."""
        trials, _ = self.finished()
        return trials[find(trials, trial)]

    def best_first(self, goal: AnyGoal) -> list[FinishedTrial]:
        """The first trials of all configurations that may win, the best one first."""
        known = self.known(goal)
        return [known.trials[i] for i in known.qualified().best_first(known.goal)]

    def as_believed(self, history: History) -> History:
        """The history as it is believed."""
        facts = history.X, history.quality, history.cost, history.noise, history.failed
        return self._answer(facts, believed, history)

    def scale(self, trials: Sequence[FinishedTrial]) -> Scale:
        """How the values of these trials are said."""
        state = self._session.state
        values = (t.value for t in trials)
        return Scale.of(values, maximize=state.sign > 0, metric=state.metric)

    def settle(self, goal: Goal, history: History) -> Goal:
        """The goal with a reference: its own, or that of the study's goal if both are about the
        same cost, or one from the trials."""
        own, name = self._session.plan.goal, self._session.state.cost_name
        if own.reference is not None and (goal.by or name) == (own.by or name):
            goal = goal.settle(np.array([own.reference]))
        return self.strategy.settle(goal, history)

    def ready(self, goal: Goal, history: History) -> Goal:
        """The goal with a reference, which also knows how much costs vary."""
        return self.settle(goal, history).with_spread(lambda: self._usual(history, goal.by)[0])

    def _usual(self, history: History, by: str | None) -> tuple[float, Array]:
        """How much costs vary, and what trials cost usually."""
        trials = list(self._session.state.trials.values())  # another thread may add to them
        return self._answer((history.X, history.cost, by), usual_costs, history, trials, by)

    def noise(self, history: History) -> ResultNoise | None:
        """How much one result varies; see `noise_of_one_result`."""
        facts = history.X, history.quality, history.noise, history.failed
        return self._answer(facts, noise_of_one_result, history)

    def _answer(
        self, facts: Iterable[object], ask: Callable[..., T], history: History, *more: object
    ) -> T:
        """What `ask` says of the history. Fitting a model takes time, so its last answer is kept
        until the facts that it depends on change."""
        arrays = [it.tobytes() if isinstance(it, np.ndarray) else it for it in facts]
        key = (history.number, *arrays)
        kept = self._answers.get(ask)  # read once: another thread may replace it
        if kept is None or kept[0] != key:
            found = single_threaded(ask, self._session.state.space, history, *more)
            kept = self._answers[ask] = (key, found)
        answer: T = kept[1]
        return answer

    def negligible(
        self, history: History, known: History, tolerance: float | str | None
    ) -> tuple[Array | float, float]:
        """The difference in quality (for each trial), and the share of a cost, that count as
        nothing. Quality is that of `known`, and the noise of costs that of the history."""
        if tolerance is None:
            return 0.0, 0.0
        goal = CheapestWithin(tolerance)
        check_costs(goal, known)
        better: Array | float = np.sqrt(known.noise)
        if not goal.needs_noise:
            better = float(known.quality.max()) - goal.threshold(known.quality)
        rng = proposal_rng(history.seed, history.number)
        noise = single_threaded(Belief.of, self._session.state.space, history, rng=rng).cost_noise
        return better, 1.0 - math.exp(-noise)  # the noise is that of the logarithm of a cost
