"""How long the rest of a study will take, and what it will cost.

Durations are wall-clock seconds of whole trials, as they were recorded. Costs are the costs of the
study times the number of trainings, so that a trial with five folds costs five trainings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tradewind.engine.propose import single_threaded
from tradewind.errors import NothingFinished
from tradewind.goals import Goal
from tradewind.html import paragraph
from tradewind.optimizer.belief import comparable
from tradewind.optimizer.history import History
from tradewind.optimizer.strategies.strategy import Strategy
from tradewind.seeds import proposal_rng
from tradewind.space import Space
from tradewind.study.predictions import Interval, believe, quantile_levels
from tradewind.study.words import spoken, unit_of_cost
from tradewind.types import Array, Proposal, State, Trial

_RECENT = 20  # at least so many of the latest trials stand for those to come, or half of all
_FUTURES = 400  # that are simulated


@dataclass(frozen=True, repr=False)
class Forecast:
    """What to expect of the next trial, and of `trials` more trials on `workers` workers.

    Durations are in seconds. What is not known is None: everything before the first trial has
    finished, and the next trial before a few have. `trials` is None if no number was given; then
    there is nothing to say about the rest. `unit` is that of the costs: "s", "bytes", the name of a
    cost, or nothing. Peak memory cannot be added up, so its total is None. Printed, a forecast is a
    sentence or two.

    >>> forecast = study.forecast(20, n_workers=4)
    >>> forecast.trials, forecast.finished
    (20, 8)
    """

    trials: int | None
    workers: int
    finished: int
    next_duration: Interval | None
    next_cost: Interval | None
    duration: Interval | None
    cost: Interval | None
    unit: str = ""

    def __str__(self) -> str:
        if not self.finished:
            return "Nothing is known about durations and costs yet: no trial has finished."
        parts = [
            _sentence("The next trial", self.next_duration, self.next_cost, self.unit),
            _sentence(_more(self.trials, self.workers), self.duration, self.cost, self.unit),
        ]
        return " ".join(part for part in parts if part) or (
            "Nothing is known about durations and costs: no trial has recorded them."
        )

    def __repr__(self) -> str:
        return f"<Forecast: {self}>"

    def _repr_html_(self) -> str:
        return paragraph(str(self))


def forecast(
    space: Space,
    trials: Sequence[Trial],
    history: History,
    goal: Goal,
    strategy: Strategy,
    *,
    n_trials: int | None,
    n_workers: int,
    level: float,
) -> Forecast:
    """The forecast after these trials, all of the study in the order of their numbers."""
    ended = [t for t in trials if t.state in (State.FINISHED, State.FAILED)]
    finished = [t for t in ended if t.finished]
    nothing = Forecast(n_trials, n_workers, len(finished), None, None, None, None)
    if not finished:
        return nothing
    seconds = np.array([wall_seconds(t) for t in finished])
    spent = np.array([_spent(t) for t in finished])
    unit = unit_of_cost(finished[-1])
    following = _next(space, history, goal, strategy)
    known = replace(
        nothing,
        next_duration=_of_next(space, history, seconds, following, level),
        next_cost=_of_next(space, history, spent, following, level),
        unit=unit,
    )
    if n_trials is None:
        return known
    every = np.array([wall_seconds(t) for t in ended])  # a failed trial takes time, too
    rng = proposal_rng(history.seed, history.number)
    duration = _simulate(every, n_trials, lambda d: _end(d, n_workers), level, rng)
    if unit == "bytes":
        return replace(known, duration=duration)
    cost = _simulate(spent, n_trials, lambda c: c.sum(axis=1), level, rng)
    return replace(known, duration=duration, cost=cost)


def wall_seconds(trial: Trial) -> float:
    """How long a trial took, with all its folds; NaN if that is unknown."""
    if trial.usage is not None:
        return trial.usage.wall
    if trial.started is not None and trial.ended is not None:
        return trial.ended - trial.started
    return np.nan


def _spent(trial: Trial) -> float:
    """What a trial cost, with all its folds."""
    return np.nan if trial.cost is None else trial.cost * trial.trainings


# ---- the next trial ----


def _next(space: Space, history: History, goal: Goal, strategy: Strategy) -> Proposal:
    """What the strategy would propose now."""
    rng = proposal_rng(history.seed, history.number)
    return single_threaded(strategy.propose, space, goal, history, rng=rng)


def _of_next(
    space: Space, history: History, amounts: Array, proposal: Proposal, level: float
) -> Interval | None:
    """What a model of these amounts (n,), positive or unknown, predicts for a proposal."""
    seen = replace(history, cost=amounts).take(np.flatnonzero(amounts > 0.0))
    seen = comparable(space, seen, proposal.train_size)
    try:
        belief = believe(space, seen, settings=8, what="forecast")
    except NothingFinished:
        return None
    levels = quantile_levels(level)
    quantiles = single_threaded(belief.cost_quantiles, proposal.row[None, :], levels)
    assert quantiles is not None
    return Interval(*quantiles[0].tolist())


# ---- the rest ----


def _simulate(
    amounts: Array,
    n: int,
    add_up: Callable[[Array], Array],
    level: float,
    rng: np.random.Generator,
) -> Interval | None:
    """What n more trials add up to, if they are like the latest ones: amounts (m,) are log-normal,
    and each future has its own mean and spread that agree with those of the latest trials."""
    amounts = amounts[np.isfinite(amounts)]
    recent = amounts[-max(_RECENT, len(amounts) // 2) :]
    if not len(recent):
        return None
    logs = np.log(np.maximum(recent, max(float(recent.max()), 1e-300) * 1e-9))
    freedom = max(len(logs) - 1, 3)  # fewer would allow any spread
    spread = logs.std() * np.sqrt(len(logs) / rng.chisquare(freedom, size=_FUTURES))
    centre = logs.mean() + spread / np.sqrt(len(logs)) * rng.standard_normal(_FUTURES)
    drawn = centre[:, None] + spread[:, None] * rng.standard_normal((_FUTURES, n))
    totals = add_up(np.exp(np.minimum(drawn, 700.0)))
    middle, low, high = map(float, np.quantile(totals, quantile_levels(level)))
    return Interval(middle, low, high)


def _end(durations: Array, workers: int) -> Array:
    """When the last of the trials (f, n) ends, if each starts on the first worker that is free."""
    free = np.zeros((len(durations), workers))
    futures = np.arange(len(durations))
    for column in durations.T:
        free[futures, free.argmin(axis=1)] += column
    return np.asarray(free.max(axis=1))


# ---- in words ----


def _more(trials: int | None, workers: int) -> str:
    on = f" on {workers} workers" * (workers > 1)
    return f"{trials} more trial{'s' * (trials != 1)}{on}"


def _sentence(what: str, duration: Interval | None, cost: Interval | None, unit: str) -> str:
    """`The next trial will take about 12 s (9 s to 17 s) and cost about 3.1 (…).`"""
    said = []
    if duration is not None:
        said.append(f"take about {duration.said(spoken)}")
    if cost is not None:
        said.append(f"cost about {cost.as_cost(unit)}")
    return f"{what} will {' and '.join(said)}." if said else ""
