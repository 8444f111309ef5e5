"""One consistent look at a study, which all figures share: what the log says, and what follows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tradewind.charts.chart import Format
from tradewind.errors import NothingFinished
from tradewind.goals import Goal
from tradewind.goals.text import AnyGoal
from tradewind.optimizer.history import History
from tradewind.optimizer.strategies.strategy import Strategy
from tradewind.space import Space
from tradewind.study.compare import LEVEL
from tradewind.study.insights import Effects, Importance, effects
from tradewind.study.known import Known
from tradewind.study.words import (
    Scale,
    as_sentence,
    cost_amount,
    goal_in_words,
    share,
    shown,
    unit_of_cost,
)
from tradewind.types import Array, FinishedTrial, Indices, State, Trial

if TYPE_CHECKING:
    from tradewind.study.results import StudyResults

_SETTINGS, _MODELLED = 4, 200  # of the models behind figures, which are made in seconds

NOTHING_FINISHED = "No trial has finished yet."
NO_COSTS = "No finished trial has a cost."

_TIMES = {
    "wall": "training time",
    "cpu": "CPU time of training",
    "gpu": "GPU time of training",
}


@dataclass(frozen=True)
class Cost:
    """The cost that counts: its `name` in the study, its unit (see `unit_of_cost`), and how an axis
    shows it."""

    name: str
    unit: str
    title: str
    format: Format

    @classmethod
    def of(cls, name: str, unit: str) -> Cost:
        if unit == "s":
            return cls(name, unit, _TIMES[name], "seconds")
        if unit == "bytes":
            return cls(name, unit, "peak memory", "bytes")
        return cls(name, unit, unit or "cost", "number")

    def say(self, cost: float) -> str:
        """`3.2 min`."""
        return cost_amount(cost, self.unit)


@dataclass(frozen=True)
class Facts:
    """A study at one moment.

    - `trials`: all of them by number.
    - `known`: what the finished ones say under the goal; None if none has finished, or if the goal
      needs costs and there are none. `history` has the finished ones in any case.
    - `goal`: settled, if there are costs; `wanted`: as it was given.
    - `cost`: the one that counts under the goal; `cost_name`: that of the study.
    - `paused`, `stopped`, `queued`: what the log says besides the trials.
    - `made`: when this was looked at, and `created`: when the study was made (seconds since
      1970)."""

    name: str
    space: Space
    maximize: bool
    seed: int
    goal: Goal
    wanted: Goal
    strategy: Strategy
    trials: list[Trial]
    history: History
    known: Known | None
    scale: Scale
    cost: Cost
    cost_name: str
    made: float
    created: float
    paused: dict[str, Any] | None
    stopped: str | None
    queued: int
    settle: Callable[[Goal], Goal]

    @classmethod
    def of(cls, study: StudyResults, goal: AnyGoal | None = None) -> Facts:
        """The facts under a goal, by default that of the study."""
        session = study._session
        asked = study._knowledge.asked(goal)
        trials, history = session.snapshot(by=asked.by)
        state = session.state
        pause = state.paused
        finished = [t for t in trials if isinstance(t, FinishedTrial)]
        known, settled = None, asked
        if finished:
            try:
                known = study._knowledge.known_from(finished, history, asked)
                settled = known.goal
            except NothingFinished:  # the goal needs costs, and there are none
                known = None
        name = asked.by or study.cost_name
        return cls(
            name=study.name,
            space=study.space,
            maximize=study.direction == "maximize",
            seed=study.seed,
            goal=settled,
            wanted=asked,
            strategy=study.strategy,
            trials=trials,
            history=history,
            known=known,
            scale=study._knowledge.scale(finished),
            cost=Cost.of(name, _unit(finished, name, asked.by)),
            cost_name=study.cost_name,
            made=session.clock(),
            created=state.created,
            paused=None if pause is None else {"reason": pause.reason, "at": pause.at},
            stopped=state.stopped,
            queued=len(state.queue),
            settle=lambda goal: study._knowledge.ready(goal, history),
        )

    @property
    def goal_in_words(self) -> str:
        return goal_in_words(self.goal, self.cost.unit, self.scale.metric)

    # ---- trials ----

    @cached_property
    def finished(self) -> list[FinishedTrial]:
        """In the order of the history."""
        return [t for t in self.trials if isinstance(t, FinishedTrial)]

    def count(self, state: State) -> int:
        return sum(t.state is state for t in self.trials)

    @cached_property
    def numbers(self) -> list[int]:
        """The numbers of the finished trials."""
        return [t.number for t in self.finished]

    # ---- what is believed, and chosen ----

    @cached_property
    def choice(self) -> int | None:
        """The index of the best finished trial under the goal; None if there is none."""
        return self._answer if isinstance(self._answer, int) else None

    @property
    def unanswered(self) -> str:
        """Why no trial is chosen, as a sentence; nothing if one is."""
        return self._answer if isinstance(self._answer, str) else ""

    @cached_property
    def _answer(self) -> int | str:
        if self.known is None:
            if self.finished:
                return f"The goal needs costs. {NO_COSTS}"
            failed = self.count(State.FAILED) and not self.count(State.RUNNING)
            return "Every trial that has ended has failed." if failed else NOTHING_FINISHED
        text = self.known.shortfall
        return as_sentence(text) if text else self.known.choice

    @cached_property
    def efficient(self) -> list[int]:
        """The indices of the efficient trials, cheapest first."""
        return [] if self.known is None else self.known.efficient

    @cached_property
    def value(self) -> Array:
        """The values of the finished trials (n,), as they are believed."""
        believed = self.history if self.known is None else self.known.believed
        return np.asarray(self.history.sign * believed.quality)

    @cached_property
    def measured(self) -> Array:
        """The values of the finished trials (n,), as they were measured."""
        return np.asarray(self.history.sign * self.history.quality)

    @cached_property
    def paid(self) -> Array:
        """The costs of the finished trials (n,), as they are believed; NaN where unknown."""
        return self.history.cost if self.known is None else self.known.believed.cost

    @property
    def is_noisy(self) -> bool:
        """Whether what is believed differs from what was measured."""
        return not np.array_equal(self.value, self.measured)

    @cached_property
    def effects(self) -> Effects | None:
        """What moves quality and cost; None as long as there are too few trials to say."""
        try:
            return effects(self.space, self.history, settings=_SETTINGS, max_points=_MODELLED)
        except NothingFinished:
            return None

    @cached_property
    def importances(self) -> list[Importance]:
        """The importance of all parameters, if the effects are known."""
        return [] if self.effects is None else self.effects.importance(level=LEVEL)

    # ---- words ----

    def say_value(self, value: float) -> str:
        """`0.9124`."""
        return shown(value)

    def say(self, index: int) -> str:
        """`trial 12 (0.9124 for 3.2 min)`, for a finished trial."""
        cost, result = float(self.history.cost[index]), self._result(index)
        price = f"{',' * (',' in result)} for {self.cost.say(cost)}" if np.isfinite(cost) else ""
        return f"trial {self.numbers[index]} ({result}{price})"

    def _result(self, i: int) -> str:
        """`0.9124`, or `0.9124, believed 0.9101`."""
        said, believed = (self.say_value(float(it[i])) for it in (self.measured, self.value))
        return said if said == believed else f"{said}, believed {believed}"

    def texts(self, rows: Indices) -> list[str]:
        """What a reader sees of finished trials on hovering."""
        return [self._texts[i] for i in rows]

    @cached_property
    def _texts(self) -> list[str]:
        return [self._text(i) for i in range(len(self.finished))]

    def _text(self, i: int) -> str:
        trial, cost = self.finished[i], float(self.history.cost[i])
        said = [f"trial {trial.number}", self._result(i)]
        if np.isfinite(cost):
            said.append(self.cost.say(cost))
        if trial.train_size < 1.0:
            said.append(share(trial.train_size))
        if trial.raced:
            said.append("stopped after some folds")
        return " · ".join(said)


def _unit(finished: list[FinishedTrial], name: str, by: str | None) -> str:
    """The unit of the cost, as the latest trial that has one says."""
    for trial in reversed(finished):
        if trial.cost_of(name) is not None:
            return unit_of_cost(trial, by)
    clocks = {"wall": "s", "cpu": "s", "gpu": "s", "memory": "bytes"}
    return clocks.get(name, name)
