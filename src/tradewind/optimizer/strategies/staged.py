"""Stages on growing parts of the training set (W15, algorithm 1): a strategy around a strategy.

A trial belongs to the stage whose fraction it is trained with, so the history alone says what has
happened in each stage.
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

from tradewind.checks import has_methods, one_of, real, whole
from tradewind.errors import SpaceError
from tradewind.goals import Goal, Quality, best_first
from tradewind.optimizer.history import History
from tradewind.optimizer.strategies.bayes import Bayes
from tradewind.optimizer.strategies.observed import believed_best
from tradewind.optimizer.strategies.strategy import Strategy
from tradewind.space import Space
from tradewind.types import Array, Indices, Mask, Origin, Prediction, Proposal

_MOST_STAGES = 100
_MOST_TRIALS = 10**9  # of a stage
_ATTEMPTS = 2  # how often a configuration is carried over if its trials are abandoned


@dataclass(frozen=True)
class Staged(Strategy):
    """Stage after stage, each with a larger part of the training set (W15, algorithm 1).

    - `fractions` are these parts.
    - Each stage begins with the `carried` best configurations of the stage before, in place of an
      initial design. Then `inner` continues; it sees only the trials of the stage.
    - `trials` is the number of trials of a stage, or one number for each. The last stage goes on as
      long as the search does.
    - `final` says which trials may win. With "last" they are those of the latest stage that has
      results, because results on less data are not comparable; with "all", as published, all.

    No worker waits for the end of a stage. When all its trials have started, the best so far are
    carried over. Until the next stage has a result, the next best follow. A trial that finishes
    later and is among the best is carried over, too. Failed trials count as trials of the stage.
    Abandoned ones do not, unless there are more of them than the stage has trials. A trial with any
    other fraction belongs to no stage: nothing is learned from it, and it wins only while no stage
    has a result.

    >>> strategy = tw.strategies.Staged(tw.recipes.auto(), (0.3, 1.0), 10, 3)
    >>> study = tw.create_study(space, strategy=strategy, seed=0)
    """

    inner: Strategy = field(default_factory=Bayes)
    fractions: tuple[float, ...] = (0.3, 1.0)
    trials: int | tuple[int, ...] = 10
    carried: int = 3
    final: Literal["last", "all"] = "last"

    def __post_init__(self) -> None:
        methods = ("propose", "recommend", "settle", "suits", "eligible")
        has_methods("inner", self.inner, methods, "Bayes()")
        if isinstance(self.inner, Staged):
            raise TypeError(f"inner must be a strategy without stages, but got {self.inner!r}")
        object.__setattr__(self, "fractions", _fractions(self.fractions))
        object.__setattr__(self, "trials", _trials(self.trials, len(self.fractions)))
        object.__setattr__(self, "carried", whole("carried", self.carried, 1, _MOST_TRIALS))
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
                "stages decide how much data to train with, and so does a TrainSize: use one of "
                f"them, but got stages and the parameter {space.size_name!r}"
            )
        self.inner.suits(space)

    def eligible(self, history: History) -> Mask:
        finished = self._finished(history)
        if not finished:
            return self.inner.eligible(history)
        mask = np.zeros(len(history.X), dtype=bool)
        for fraction in finished if self.final == "all" else finished[-1:]:
            stage = trained_with(history, fraction)
            mask[history.sizes.finished == fraction] = self.inner.eligible(stage)
        return mask

    def settle(self, goal: Goal, history: History) -> Goal:
        """The reference is the largest cost at the data of the latest stage that has a cost. Costs
        of the stages before it count, scaled to its data. (The largest cost of the carried trials
        alone would be no measure: under a trade-off, cheap configurations are carried over.)"""
        for stage in reversed(self._stages(goal, history)):
            if stage.seen.has_costs:
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
                # the first stage may need a design that finds the reference
                towards = stage.goal if s else goal
                proposal = self.inner.propose(space, towards, stage.seen, rng=rng)
            if proposal is not None:
                return replace(proposal, train_size=self.fractions[s])
        raise AssertionError("the last stage is never full")

    def recommend(self, space: Space, goal: Goal, history: History) -> Prediction:
        finished = self._finished(history)
        if not finished:
            return self.inner.recommend(space, goal, history)
        if self.final == "all":
            rows = np.flatnonzero(self.eligible(history))
            chosen = believed_best(space, self.settle(goal, history), history.take(rows))
        else:
            rows = np.flatnonzero(history.sizes.finished == finished[-1])
            stage = self._stages(goal, history)[self.fractions.index(finished[-1])]
            chosen = self.inner.recommend(space, stage.goal, stage.seen)
        return replace(chosen, index=int(rows[chosen.index]))

    def _finished(self, history: History) -> list[float]:
        """The fractions of the stages in which a trial has finished."""
        return [f for f in self.fractions if (history.sizes.finished == f).any()]

    def _stages(self, goal: Goal, history: History) -> list[_Stage]:
        stages: list[_Stage] = []
        for s, fraction in enumerate(self.fractions):
            seen = priced = trained_with(history, fraction)
            growth = 1.0
            if stages:
                before = stages[-1]
                best = {row.tobytes() for row in before.seen.X[before.ranking[: self.carried]]}
                seen = replace(
                    seen,
                    initial=_among(seen.X, best),
                    staged=True,
                    provisional=before.seen.provisional or bool(_among(seen.pending, best).any()),
                )
                growth = _growth(before.seen, seen, default=fraction / self.fractions[s - 1])
                priced = _joined(before.priced, growth, seen)
            stages.append(_Stage(seen, priced, growth, self.inner.settle(goal, priced)))
        return stages

    def _carry(self, space: Space, stages: list[_Stage], *, full: bool) -> Proposal | None:
        """A configuration to carry over into the last of `stages`, if one is left.

        It is one of the best of the stage before. If nothing has finished in the stage, so that a
        model would have no data, it is the best one left of any stage before."""
        *before, stage = stages
        here, growth = stage.seen, stage.growth
        tried = {row.tobytes() for row in np.vstack([here.X, here.failed, here.pending])}
        abandoned = Counter(row.tobytes() for row in here.ignored)
        no_data = not full and not len(here.X)
        for earlier in reversed(before):
            for i in earlier.ranking if no_data else earlier.ranking[: self.carried]:
                row, cost = earlier.seen.X[i], float(earlier.seen.cost[i]) * growth
                config = space.decode(row[None, :])[0]
                # Decoding rounds a user's own numbers, so the row may be there in either form.
                keys = {row.tobytes(), space.encode([config])[0].tobytes()}
                too_dear = not no_data and here.max_cost is not None and cost > here.max_cost
                again = bool(keys & tried) or sum(abandoned[key] for key in keys) >= _ATTEMPTS
                if not again and not too_dear:
                    expected = cost if math.isfinite(cost) else None
                    return Proposal(row, Origin.CARRIED, expected_cost=expected)
            if not no_data:
                return None
            growth *= earlier.growth
        return None


@dataclass(frozen=True)
class _Stage:
    """One stage of a search.

    - `seen`: its history, as the inner strategy sees it. The carried trials replace the design.
    - `priced`: the same with the finished trials of earlier stages, at the cost they would have
      here.
    - `growth`: the factor by which costs have grown since the stage before.
    - `goal`: the goal with a reference from the costs of `priced`."""

    seen: History
    priced: History
    growth: float
    goal: Goal

    @cached_property
    def ranking(self) -> Indices:
        """The finished trials of the stage (indices), best first, one for each configuration. They
        are ranked by quality alone until a cost is known. Cost decides between equals only if the
        goal asks for it: a search that ignores cost must not depend on how long trials took."""
        seen, goal = self.seen, self.goal if self.seen.has_costs else Quality()
        utility = goal.utility(seen.quality, seen.cost, seen.noise)
        first: dict[bytes, int] = {}
        for i in best_first(utility, seen.cost if goal.needs_cost else None).tolist():
            first.setdefault(self.seen.X[i].tobytes(), i)
        return np.array(list(first.values()), dtype=np.intp)


def trained_with(history: History, size: float) -> History:
    """The history with only the trials of this training size."""
    sizes = history.sizes
    failed, pending, ignored = (
        group == size for group in (sizes.failed, sizes.pending, sizes.ignored)
    )
    finished = history.take(np.flatnonzero(sizes.finished == size))
    return replace(
        finished,
        failed=history.failed[failed],
        pending=history.pending[pending],
        ignored=history.ignored[ignored],
        sizes=replace(
            finished.sizes,
            failed=sizes.failed[failed],
            pending=sizes.pending[pending],
            ignored=sizes.ignored[ignored],
        ),
    )


def _among(X: Array, keys: set[bytes]) -> Mask:
    """Which rows of X are in the set (n,)."""
    return np.array([row.tobytes() in keys for row in X], dtype=bool)


def _growth(before: History, stage: History, *, default: float) -> float:
    """The median factor by which the carried trials of a stage cost more than before."""
    cost_before = {row.tobytes(): cost for row, cost in zip(before.X, before.cost, strict=True)}
    there = np.array([cost_before.get(row.tobytes(), np.nan) for row in stage.X[stage.initial]])
    here = stage.cost[stage.initial]
    pairs = (there > 0.0) & np.isfinite(here)
    if not pairs.any():
        return default
    with np.errstate(over="ignore"):
        return float(np.clip(np.median(here[pairs] / there[pairs]), 1e-9, 1e9))


def _joined(before: History, growth: float, stage: History) -> History:
    """The stage with the finished trials of those before, at the cost they would have in it."""
    with np.errstate(over="ignore"):
        earlier = replace(before, cost=before.cost * growth)
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(earlier, name), getattr(stage, name)])
        for name in ("X", "quality", "cost", "noise", "raced", "initial")
    }
    sizes = np.concatenate([earlier.sizes.finished, stage.sizes.finished])
    return replace(stage, **arrays, sizes=replace(stage.sizes, finished=sizes))


def _started(stage: History, limit: int) -> int:
    """The number of trials of a stage that count. Abandoned trials count only beyond `limit`, so
    that a stage in which no trial ever finishes still ends."""
    counted = len(stage.X) + len(stage.failed) + len(stage.pending)
    return counted + max(0, len(stage.ignored) - limit)


def _fractions(given: Any) -> tuple[float, ...]:
    numbers = tuple(map(real, given)) if isinstance(given, Iterable) else ()
    growing = all(a < b for a, b in pairwise((0.0, *numbers)))
    if len(numbers) > _MOST_STAGES:  # every proposal looks at all of them
        raise ValueError(f"there may be up to {_MOST_STAGES} fractions, but got {len(numbers)}")
    if not numbers or not growing or numbers[-1] > 1:
        raise ValueError(f"fractions must be numbers that grow within (0, 1], but got {given!r}")
    return numbers


def _trials(given: Any, stages: int) -> int | tuple[int, ...]:
    if not isinstance(given, Iterable):
        return whole("trials", given, 1, _MOST_TRIALS)
    each = tuple(whole("each of trials", number, 1, _MOST_TRIALS) for number in given)
    if len(each) != stages:
        raise ValueError(
            f"trials must be a whole number, or one for each of {stages} stages, but got {given!r}"
        )
    return each
