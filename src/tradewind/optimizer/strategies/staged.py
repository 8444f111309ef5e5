"""Stages on growing parts of the training set (W15, algorithm 1): a strategy around a strategy.

A trial belongs to the stage whose fraction it is trained with, so which stages there are, and what
has happened in them, is in the history; nothing else is remembered.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tradewind.checks import one_of, real, whole
from tradewind.errors import SpaceError
from tradewind.goals import Goal
from tradewind.optimizer.history import History
from tradewind.optimizer.strategies.bayes import Bayes
from tradewind.optimizer.strategies.design import observed_best
from tradewind.optimizer.strategies.strategy import Strategy
from tradewind.space import Space
from tradewind.types import Mask, Origin, Prediction, Proposal

_ATTEMPTS = 2  # a configuration whose trials were abandoned so often is not carried over again


@dataclass(frozen=True)
class Staged(Strategy):
    """Stage after stage, each with a larger part of the training set (W15, algorithm 1).

    `fractions` are these parts. Each stage begins with the `carried` best configurations of the
    one before, in place of an initial design, and `inner` goes on from there, seeing the trials of
    its own stage only. `trials` is the number of trials of a stage, or one number for each; the
    last stage goes on as long as the search does. `final` says which trials may win: "last", those
    of the latest stage that has results, because results on less data are not comparable; or
    "all", as published.

    Nobody waits for the end of a stage: when all of its trials have been started, the best so far
    are carried over, more of them as long as the next stage has no result to go by, and what
    finishes later among the best is added. Failed trials count; abandoned ones do not, up to as
    many as the stage has trials. Trials with any other fraction belong to no stage: nothing is
    learned from them, and they win only as long as no stage has a result."""

    inner: Strategy = field(default_factory=Bayes)
    fractions: tuple[float, ...] = (0.3, 1.0)
    trials: int | tuple[int, ...] = 10
    carried: int = 3
    final: Literal["last", "all"] = "last"

    def __post_init__(self) -> None:
        _check_inner(self.inner)
        object.__setattr__(self, "fractions", _fractions(self.fractions))
        object.__setattr__(self, "trials", _trials(self.trials, len(self.fractions)))
        object.__setattr__(self, "carried", whole("carried", self.carried, 1))
        if len(self.fractions) > 1 and self.carried > min(self._limits):
            raise ValueError(
                "`carried ≤ trials` must hold in every stage, but got "
                f"carried={self.carried}, trials={self.trials}"
            )
        one_of("final", self.final, ("last", "all"))

    @property
    def _limits(self) -> tuple[int, ...]:
        """The number of trials of each stage."""
        return (self.trials,) * len(self.fractions) if isinstance(self.trials, int) else self.trials

    def suits(self, space: Space) -> None:
        if space.size_name is not None:
            raise SpaceError(
                "stages say how much data to train with, and so does a TrainSize: use one of them, "
                f"but got stages and the parameter {space.size_name!r}"
            )
        self.inner.suits(space)

    def eligible(self, history: History) -> Mask:
        sizes = history.sizes.finished
        known = [fraction for fraction in self.fractions if (sizes == fraction).any()]
        if not known:
            return np.ones(len(sizes), dtype=bool)
        return np.isin(sizes, known if self.final == "all" else known[-1:])

    def settle(self, goal: Goal, history: History) -> Goal:
        """By what trials cost with the data of the latest stage that has a cost: its own, and those
        of the stages before it, brought to its data. The largest cost of the carried trials alone
        would be no measure of cost: under a trade-off the cheap ones are carried over."""
        for stage in reversed(self._stages(goal, history)):
            if np.isfinite(stage.seen.cost).any():
                return stage.goal
        return self.inner.settle(goal, history)

    def propose(
        self, space: Space, goal: Goal, history: History, *, rng: np.random.Generator
    ) -> Proposal:
        stages = self._stages(goal, history)
        last = len(stages) - 1
        for s, (stage, limit) in enumerate(zip(stages, self._limits, strict=True)):
            full = s < last and _started(stage.seen, limit) >= limit
            proposal = self._carry(space, stages[: s + 1], full=full)
            if proposal is None and not full:
                towards = stage.goal if s else goal  # the first may need a design for it
                proposal = self.inner.propose(space, towards, stage.seen, rng=rng)
            if proposal is not None:
                return replace(proposal, train_size=self.fractions[s])
        raise AssertionError("the last stage is never full")

    def recommend(self, space: Space, goal: Goal, history: History) -> Prediction:
        rows = np.flatnonzero(self.eligible(history))
        known = [stage for stage in self._stages(goal, history) if len(stage.seen.X)]
        if known and self.final == "last":
            chosen = self.inner.recommend(space, known[-1].goal, known[-1].seen)
        elif known:
            chosen = observed_best(self.settle(goal, history), history.take(rows))
        else:
            chosen = self.inner.recommend(space, goal, history)
        return replace(chosen, index=int(rows[chosen.index]))

    def _stages(self, goal: Goal, history: History) -> list[_Stage]:
        stages: list[_Stage] = []
        for s, fraction in enumerate(self.fractions):
            seen = priced = history.trained_with(fraction)
            growth = 1.0
            if stages:
                before = stages[-1]
                best = {row.tobytes() for row in before.seen.X[before.ranking[: self.carried]]}
                initial = np.array([row.tobytes() in best for row in seen.X], dtype=bool)
                seen = replace(seen, initial=initial, staged=True)
                growth = _growth(before.seen, seen, default=fraction / self.fractions[s - 1])
                priced = _joined(before.priced, growth, seen)
            stages.append(_Stage(seen, priced, growth, self.inner.settle(goal, priced)))
        return stages

    def _carry(self, space: Space, stages: list[_Stage], *, full: bool) -> Proposal | None:
        """A configuration that the last of `stages` lacks: of the best of the stage before; or, if
        nothing here has finished that a model could go by, the best there is of any before."""
        *before, stage = stages
        here, growth = stage.seen, stage.growth
        tried = {row.tobytes() for row in np.vstack([here.X, here.failed, here.pending])}
        given_up = Counter(row.tobytes() for row in here.ignored)
        blind = not full and not len(here.X)
        for earlier in reversed(before):
            for i in earlier.ranking if blind else earlier.ranking[: self.carried]:
                row, cost = earlier.seen.X[i], float(earlier.seen.cost[i]) * growth
                config = space.decode(row[None, :])[0]
                # a user's own numbers are rounded when they are decoded: it may be there as either
                forms = {row.tobytes(), space.encode([config])[0].tobytes()}
                too_dear = not blind and here.max_cost is not None and cost > here.max_cost
                again = bool(forms & tried) or sum(given_up[f] for f in forms) >= _ATTEMPTS
                if not again and not too_dear:
                    expected = cost if math.isfinite(cost) else None
                    return Proposal(row, Origin.CARRIED, expected_cost=expected)
            if not blind:
                return None
            growth *= earlier.growth
        return None


@dataclass(frozen=True)
class _Stage:
    """What the inner strategy sees of a stage, where the best of the one before stand in for the
    initial design; the same with all trials before it, at what they would cost here; by what factor
    costs have grown; and the goal, settled by these costs."""

    seen: History
    priced: History
    growth: float
    goal: Goal

    @cached_property
    def ranking(self) -> NDArray[np.intp]:
        """The finished trials of the stage (indices), best first, one for each configuration."""
        utility = self.seen.quality
        if not self.goal.open:  # else no trial has a cost
            utility = self.goal.utility(utility, self.seen.cost)
        first: dict[bytes, int] = {}
        for i in np.argsort(-utility, kind="stable").tolist():  # an unknown utility comes last
            first.setdefault(self.seen.X[i].tobytes(), i)
        return np.array(list(first.values()), dtype=np.intp)


def _growth(before: History, stage: History, *, default: float) -> float:
    """By what factor the carried trials of a stage cost more than before, in the median."""
    known = {row.tobytes(): cost for row, cost in zip(before.X, before.cost, strict=True)}
    there = np.array([known.get(row.tobytes(), np.nan) for row in stage.X[stage.initial]])
    here = stage.cost[stage.initial]
    pairs = (there > 0.0) & np.isfinite(here)
    if not pairs.any():
        return default
    with np.errstate(over="ignore"):
        return float(np.clip(np.median(here[pairs] / there[pairs]), 1e-9, 1e9))


def _joined(before: History, growth: float, stage: History) -> History:
    """The stage with the finished trials of those before, at what they would cost in it."""
    with np.errstate(over="ignore"):
        earlier = replace(before, cost=before.cost * growth)
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(earlier, name), getattr(stage, name)])
        for name in ("X", "quality", "cost", "noise", "raced", "initial")
    }
    sizes = np.concatenate([earlier.sizes.finished, stage.sizes.finished])
    return replace(stage, **arrays, sizes=replace(stage.sizes, finished=sizes))


def _started(stage: History, limit: int) -> int:
    """The trials of a stage that count. Of those that were abandoned, only what goes beyond the
    number that it may have: a stage in which nothing can be finished ends too."""
    counted = len(stage.X) + len(stage.failed) + len(stage.pending)
    return counted + max(0, len(stage.ignored) - limit)


def _check_inner(inner: object) -> None:
    if isinstance(inner, type):
        raise TypeError(f"inner must be an object, but got the class: write {inner.__name__}()")
    if not all(callable(getattr(inner, m, None)) for m in ("propose", "recommend", "settle")):
        raise TypeError(f"inner must be a strategy such as Bayes(), but got {inner!r}")
    if isinstance(inner, Staged):
        raise TypeError(f"inner must be a strategy without stages of its own, but got {inner!r}")


def _fractions(given: Any) -> tuple[float, ...]:
    numbers = tuple(map(real, given)) if isinstance(given, Iterable) else ()
    growing = all(a < b for a, b in pairwise((0.0, *numbers)))
    if not numbers or not growing or numbers[-1] > 1:
        raise ValueError(f"fractions must be numbers that grow within (0, 1], but got {given!r}")
    return numbers


def _trials(given: Any, stages: int) -> int | tuple[int, ...]:
    if not isinstance(given, Iterable):
        return whole("trials", given, 1)
    each = tuple(whole("each of trials", number, 1) for number in given)
    if len(each) != stages:
        raise ValueError(
            f"trials must be a whole number, or one for each of {stages} stages, but got {given!r}"
        )
    return each
