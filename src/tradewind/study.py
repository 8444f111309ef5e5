"""The study: a thin object over log, strategy and loop.

Quality is maximized everywhere below; here the user's own sign and words come in and go out.
"""

from __future__ import annotations

import logging
import math
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from tradewind import recipes
from tradewind.errors import NothingFinished, OutcomeError, TrialError
from tradewind.goals import Goal, Quality, best_of, efficient
from tradewind.history import History
from tradewind.log.memory import MemoryLog
from tradewind.loop import Driver, Limits, run
from tradewind.progress import Progress
from tradewind.runners.run import Failure, Objective, outcome
from tradewind.runners.serial import SerialRunner
from tradewind.space import Space
from tradewind.strategies.strategy import Strategy
from tradewind.types import Outcome, Trial, Value

if TYPE_CHECKING:
    import pandas as pd

_logger = logging.getLogger("tradewind")

Callback: TypeAlias = Callable[["Study", Trial], None]


@dataclass(frozen=True)
class Recommendation:
    """What to train: `params`, the fraction of the data, and what to expect of it."""

    params: Mapping[str, Value]
    train_size: float
    value: float
    cost: float | None
    trial: Trial | None


def create_study(
    space: Space | Mapping[str, Any],
    *,
    goal: Goal | None = None,
    strategy: Strategy | Literal["auto", "random"] = "auto",
    direction: Literal["maximize", "minimize"] = "maximize",
    seed: int | None = None,
    name: str = "study",
) -> Study:
    """A new study of `space`: a `Space`, or a dictionary that `Space.from_dict` reads.

    `goal` is `Quality()` unless given. `direction` says whether the objective's number is a
    quality or a loss. The same `seed` and outcomes give the same trials; without one it is drawn
    and shown as `study.seed`."""
    if not isinstance(space, Mapping):
        raise TypeError(f"space must be a Space, or a dict as Space.from_dict reads, got {space!r}")
    if direction not in ("maximize", "minimize"):
        raise ValueError(f"direction is 'maximize' or 'minimize', but got {direction!r}")
    return Study(
        space if isinstance(space, Space) else Space.from_dict(space),
        goal=Quality() if goal is None else _goal(goal),
        strategy=_strategy(strategy),
        direction=direction,
        seed=_seed(seed),
        name=name,
    )


class Study:
    """Everything that happened in one search, and the way to go on. Made by `create_study`."""

    def __init__(
        self,
        space: Space,
        *,
        goal: Goal,
        strategy: Strategy,
        direction: Literal["maximize", "minimize"],
        seed: int,
        name: str,
    ) -> None:
        self.space, self.strategy, self.direction = space, strategy, direction
        self.seed, self.name = seed, name
        self._driver = Driver(
            MemoryLog(),
            space,
            goal=goal,
            strategy=strategy,
            seed=seed,
            maximize=direction == "maximize",
        )
        self._stops = 0

    def __repr__(self) -> str:
        trials = self.trials
        done = sum(t.finished for t in trials)
        return (
            f"<Study {self.name!r}: {len(trials)} trials, {done} finished, goal {self.goal}, "
            f"seed {self.seed}>"
        )

    # ---- running ----

    def optimize(
        self,
        objective: Objective,
        n_trials: int | None = None,
        *,
        timeout: float | None = None,
        max_cost: float | None = None,
        catch: type[BaseException] | tuple[type[BaseException], ...] = Exception,
        callbacks: Iterable[Callback] = (),
        show_progress: bool | None = None,
    ) -> None:
        """Evaluate `objective` on proposed trials, one after the other, in this process.

        Stops after `n_trials` trials of this call, or starts no new one once `timeout` seconds
        have passed or the trials of this call have cost `max_cost`. An exception among `catch`
        makes a failed trial and the search goes on; any other is recorded and raised.
        `show_progress=None` shows a bar at a terminal and in a notebook."""
        if not callable(objective):
            raise TypeError(f"objective must be a function of a trial, but got {objective!r}")
        if n_trials is None and timeout is None and max_cost is None:
            raise ValueError("optimize needs an end: give n_trials, timeout or max_cost")
        limits = Limits(_count(n_trials), _limit("timeout", timeout), _limit("max_cost", max_cost))
        caught, called = _exceptions(catch), _functions(callbacks)
        stops = self._stops
        with Progress(limits.n_trials, show=show_progress) as progress:
            warned = False

            def on_done(trial: Trial) -> None:
                nonlocal warned
                warned = warned or self._beyond_reference(trial)
                progress.update(trial, lambda: self.best)
                for callback in called:
                    callback(self, trial)

            run(
                self._driver,
                SerialRunner(objective),
                limits,
                catch=caught,
                stopped=lambda: self._stops > stops,
                on_done=on_done,
            )

    def _beyond_reference(self, trial: Trial) -> bool:
        """Say so if a trial costs more than a reference that the user never saw."""
        if not self._driver.goal.open or trial.cost is None:
            return False
        reference = getattr(self.goal, "reference", None)
        if reference is None or trial.cost <= reference:
            return False
        _logger.warning(
            "trial %d cost %.3g, but all costs above %.3g, the largest of the initial design, "
            "count the same: give the goal a reference to say what is too much",
            trial.number,
            trial.cost,
            reference,
        )
        return True

    def stop(self) -> None:
        """Let `optimize` end after the trials that are running; for objectives and callbacks.

        It ends every `optimize` of this study that is under way, and none that begins later."""
        self._stops += 1

    # ---- owning the loop ----

    def ask(self) -> Trial:
        """The next trial to evaluate; report it with `tell` or `fail`."""
        return self._driver.ask()

    def tell(
        self,
        trial: Trial | int,
        value: float | None = None,
        *,
        cost: float | None = None,
        folds: Iterable[float] | None = None,
    ) -> Trial:
        """Report what an asked trial achieved: its value (or one per fold) and its cost."""
        result = self._outcome(value, cost, folds)
        return self._driver.finish(self._number(trial), result)

    def fail(self, trial: Trial | int, reason: str = "failed") -> Trial:
        """Report that an asked trial gave no result."""
        return self._driver.finish(self._number(trial), Failure(str(reason)))

    def add(
        self,
        params: Mapping[str, Any],
        value: float | None = None,
        *,
        cost: float | None = None,
        folds: Iterable[float] | None = None,
    ) -> Trial:
        """A result that you already have, as a finished trial."""
        return self._driver.add(params, self._outcome(value, cost, folds))

    def enqueue(self, params: Mapping[str, Any]) -> None:
        """Have this configuration evaluated next; parameters left out are drawn at random."""
        self._driver.enqueue(params)

    def _outcome(
        self, value: float | None, cost: float | None, folds: Iterable[float] | None
    ) -> Outcome:
        told = outcome({"value": value, "cost": cost, "folds": folds}, default_cost=None)
        goal = self._driver.goal
        if told.cost is None and goal.needs_cost:
            raise OutcomeError(f"the goal {goal} needs a cost, but got cost=None")
        return told

    def _number(self, trial: Trial | int) -> int:
        given = getattr(trial, "number", trial)
        number = given.item() if isinstance(given, np.generic) else given
        if isinstance(number, bool) or not isinstance(number, int):
            raise TypeError(f"a trial or its number is needed, but got {trial!r}")
        known = self._driver.trial(number)
        if isinstance(trial, Trial):  # a user may have popped some of its params
            for name, value in trial.params.items():
                if name not in known.params or known.params[name] != value:
                    raise TrialError(
                        f"trial {number} of this study has other parameters: {known.params}, "
                        f"but got {trial.params}"
                    )
        return number

    # ---- what came of it ----

    @property
    def goal(self) -> Goal:
        """The goal; a reference cost that the data decide is shown once they have."""
        return self._settled(self._driver.goal, self._driver.state()[1])

    @property
    def trials(self) -> list[Trial]:
        """All trials by number, in any state."""
        return self._driver.trials()

    @property
    def best(self) -> Trial:
        """The finished trial that is best under the study's goal."""
        return self.best_for(self._driver.goal)

    def best_for(self, goal: Goal) -> Trial:
        """The finished trial that is best under any goal."""
        finished, history = self._finished()
        if _goal(goal).needs_cost and not np.isfinite(history.cost).any():
            raise NothingFinished(f"{goal} needs costs, but no finished trial has one")
        utility = self._settled(goal, history).utility(history.quality, history.cost)
        return finished[best_of(utility)]

    def frontier(self) -> list[Trial]:
        """The efficient trials, cheapest first: none of the others is both better and cheaper."""
        finished, history = self._finished()
        return [finished[i] for i in efficient(history.quality, history.cost)]

    def recommend(self) -> Recommendation:
        """What to train, by the model where it knows more than the best single result."""
        finished, history = self._finished()
        chosen = self.strategy.recommend(self.space, self._driver.goal, history)
        trial = finished[chosen.index]
        return Recommendation(
            trial.params, trial.train_size, history.sign * chosen.quality, chosen.cost, trial
        )

    def to_frame(self) -> pd.DataFrame:
        """All trials as a pandas data frame, one row each; `score` is what the goal maximizes."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install 'tradewind[pandas]'") from error
        trials, history = self._driver.state()
        goal = self._settled(self._driver.goal, history)
        score = np.full(len(trials), np.nan)
        score[[t.finished for t in trials]] = (
            goal.utility(history.quality, history.cost) if len(history.X) else []
        )
        columns = {
            "number": pd.Series([t.number for t in trials], dtype=int),
            "state": pd.Series([t.state.value for t in trials], dtype=str),
            "value": pd.Series([t.value for t in trials], dtype=float),
            "cost": pd.Series([t.cost for t in trials], dtype=float),
            "score": pd.Series(score, dtype=float),
            "train_size": pd.Series([t.train_size for t in trials], dtype=float),
            "origin": pd.Series([t.origin.value for t in trials], dtype=str),
            "error": [t.error for t in trials],
        }
        for name in self.space:
            columns[f"params_{name}"] = [t.params.get(name) for t in trials]
        return pd.DataFrame(columns)

    def _finished(self) -> tuple[list[Trial], History]:
        trials, history = self._driver.state()
        finished = [t for t in trials if t.finished]
        if not finished:
            failed = [t.error for t in trials if t.error]
            why = f"; the last failure was:\n{failed[-1]}" if failed else ""
            raise NothingFinished(f"no trial of this study has finished{why}")
        return finished, history

    def _settled(self, goal: Goal, history: History) -> Goal:
        """`goal` with a reference: its own, the study's, or the strategy's choice."""
        given = getattr(self._driver.goal, "reference", None)
        if given is not None:
            goal = goal.settle(np.array([given]))
        return self.strategy.settle(goal, history)


def _goal(goal: Goal) -> Goal:
    if not _offers(goal, "cost_scale", "score", "settle", "utility"):
        raise TypeError(f"a goal such as Quality() or Tradeoff(alpha=0.3) is needed, got {goal!r}")
    return goal


def _strategy(strategy: Strategy | str) -> Strategy:
    if isinstance(strategy, str):
        named: dict[str, Callable[[], Strategy]] = {
            "auto": recipes.auto,
            "random": recipes.random_search,
        }
        if strategy not in named:
            raise ValueError(f"strategy is one of {sorted(named)} or an object, got {strategy!r}")
        return named[strategy]()
    if not _offers(strategy, "propose", "recommend", "settle"):
        raise TypeError(
            "a strategy is 'auto', 'random' or an object with propose(), recommend() and settle(), "
            f"but got {strategy!r}"
        )
    return strategy


def _offers(thing: object, *methods: str) -> bool:
    """Whether it is an object with these methods; a class is not, though it has them too."""
    return not isinstance(thing, type) and all(callable(getattr(thing, m, None)) for m in methods)


def _seed(seed: int | None) -> int:
    if seed is None:
        return secrets.randbits(31)
    item = seed.item() if isinstance(seed, np.generic) else seed
    if isinstance(item, bool) or not isinstance(item, int) or item < 0:
        raise ValueError(f"seed must be an integer ≥ 0, but got {seed!r}")
    return item


def _limit(name: str, given: float | None) -> float | None:
    if given is None:
        return None
    item = given.item() if isinstance(given, np.generic) else given
    if isinstance(item, bool) or not isinstance(item, (int, float)) or not item >= 0:
        raise ValueError(f"{name} must be a number ≥ 0, but got {given!r}")
    return item


def _count(n_trials: int | None) -> int | None:
    limit = _limit("n_trials", n_trials)
    if limit is None:
        return None
    if limit == math.inf or limit != int(limit):
        raise ValueError(f"n_trials must be a whole number, but got {n_trials!r}")
    return int(limit)


def _exceptions(
    catch: type[BaseException] | tuple[type[BaseException], ...],
) -> tuple[type[BaseException], ...]:
    kinds = catch if isinstance(catch, tuple) else (catch,)
    if not all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in kinds):
        raise TypeError(f"catch is an exception class or a tuple of them, but got {catch!r}")
    return kinds


def _functions(callbacks: Iterable[Callback]) -> tuple[Callback, ...]:
    called = tuple(callbacks) if isinstance(callbacks, Iterable) else (callbacks,)
    if not isinstance(callbacks, Iterable) or not all(map(callable, called)):
        raise TypeError(f"callbacks are functions of (study, trial) in a list, got {callbacks!r}")
    return called
