"""What to train, from the finished trials. `trials` are the finished ones, in the order of their
history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tradewind.errors import NothingFinished
from tradewind.goals import Goal
from tradewind.html import table
from tradewind.optimizer.history import History
from tradewind.optimizer.strategies.strategy import Strategy, may_win
from tradewind.space import Space
from tradewind.study.ranking import typical
from tradewind.study.words import as_sentence, assigned, number, percent, share, shown
from tradewind.types import FinishedTrial, Prediction, State, Trial, Value


@dataclass(frozen=True, repr=False)
class Recommendation:
    """What to train: the parameters, the fraction of the data, and the value and cost to expect.

    `trial` is the trial with exactly this configuration, or None if it was never run. `metric` is
    the name of the value. `reason` says why this is not `study.best`; it is empty if it is.

    >>> recommended = study.recommend()
    >>> recommended.params["depth"], recommended.cost, recommended.trial.number
    (5, 50.0, 4)
    """

    params: Mapping[str, Value]
    train_size: float
    value: float
    cost: float | None
    trial: Trial | None
    metric: str | None = None
    reason: str = ""

    def __str__(self) -> str:
        size = f", on {share(self.train_size)}" * (self.train_size < 1.0)
        cost = "" if self.cost is None else f" at a cost of {number(self.cost)}"
        value = f"{self.metric or 'value'} {shown(self.value)}"
        said = f"Train {assigned(self.params)}{size}: expect {value}{cost} ({self._run})."
        return f"{said} {as_sentence(self.reason)}" if self.reason else said

    def __repr__(self) -> str:
        return f"<Recommendation: {self}>"

    @property
    def _run(self) -> str:
        return "not run yet" if self.trial is None else f"trial {self.trial.number}"

    def _repr_html_(self) -> str:
        facts = [(self.metric or "value", number(self.value))]
        facts += [] if self.cost is None else [("cost", number(self.cost))]
        facts += [("training size", percent(self.train_size))]
        facts += [(name, shown(value)) for name, value in self.params.items()]
        return table(["recommended", self._run], facts, note=self.reason)


def finished_of(trials: Sequence[Trial]) -> list[FinishedTrial]:
    """The finished trials, or `NothingFinished`."""
    finished = [t for t in trials if isinstance(t, FinishedTrial)]
    if not finished:
        failed = [t.error for t in trials if t.state is State.FAILED]
        why = f"; the last failure was:\n{failed[-1]}" if failed else ""
        raise NothingFinished(f"no trial of this study has finished{why}")
    return finished


def check_costs(goal: Goal, history: History) -> None:
    """Raise `NothingFinished` if the goal needs costs and no finished trial has one."""
    if goal.needs_cost and not history.has_costs:
        which = "cost" if goal.by is None else f"cost named {goal.by!r}"
        raise NothingFinished(f"{goal!r} needs costs, but no finished trial has a {which}")
    if goal.needs_noise and not history.noise.any():
        raise NothingFinished(
            f"{goal!r} needs standard errors, but no trial has folds or repeats that differ"
        )


def recommendation(
    trials: Sequence[Trial],
    history: History,
    goal: Goal,
    strategy: Strategy,
    space: Space,
    best: Trial | None,
) -> Recommendation:
    """The strategy's recommendation, possibly at a training size that was never run. `best` is the
    best trial; None if none meets the goal."""
    chosen = strategy.recommend(space, goal, history)
    if not isinstance(chosen, Prediction) or not 0 <= chosen.index < len(trials):
        raise ValueError(
            f"a strategy's recommend() must return a Prediction for one of the {len(trials)} "
            f"finished trials, but {strategy!r} returned {chosen!r}"
        )
    allowed, index = may_win(strategy, history), chosen.index
    trial: Trial | None = trials[typical([index], history, allowed)[0] if allowed[index] else index]
    assert trial is not None
    params, size = dict(trial.params), trial.train_size
    if chosen.train_size is not None and chosen.train_size != size:
        size = chosen.train_size
        if space.size_name is not None:
            params[space.size_name] = size
        trial = next((t for t in trials if (t.params, t.train_size) == (params, size)), None)
    value = float(history.sign * chosen.quality)
    metric, reason = trials[chosen.index].metric, _reason(trial, best)
    return Recommendation(params, size, value, chosen.cost, trial, metric, reason)


def _reason(recommended: Trial | None, best: Trial | None) -> str:
    """Why a strategy recommends something else than the best trial; empty if it does not."""
    if best is None:
        return "no finished trial meets the goal, and this one comes closest"
    if recommended is None:
        return f"a model expects more of it than of trial {best.number}, but it was never run"
    if recommended.repeats(best):
        return ""
    return f"the strategy expects more of it than of trial {best.number}, the best so far"
