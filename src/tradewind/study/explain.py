"""A choice in one or two sentences: the answer to what was asked, and what it gives up."""

from __future__ import annotations

from dataclasses import dataclass

from tradewind.amounts import percent
from tradewind.goals import BestUnder, CheapestWithin, Frontier, Goal, Knee, Quality, Tradeoff
from tradewind.html import paragraph
from tradewind.study.compare import Comparison
from tradewind.study.words import (
    Scale,
    at_cost,
    chance_to_keep,
    cost_compared,
    share,
    shown,
    unit_of_cost,
    within,
)
from tradewind.types import FinishedTrial


@dataclass(frozen=True, repr=False)
class Explanation:
    """The best trial under a goal, and what the one with the best quality would change. `str()`
    says it in a sentence or two.

    - `choice`: the best trial under `goal`; `best_quality`: the one with the best quality.
    - `comparison`: `choice` against `best_quality`; its `gain` is usually negative.
    - `n_configurations`: how many configurations were finished.
    - `believed`: the values that a model believes the two to have, if results are noisy.
    - `efficient`: the efficient trials, cheapest first, if the goal is the whole frontier.
    - `within`: the limit in words, if not that of the goal.
    - `usual_cost`: the cost of the choice that counts under a limit.
    - `lucky`: a better trial that was below the limit by luck, and the probability that a new
      training of it stays there.

    >>> explanation = study.explain()
    >>> explanation.choice.number, explanation.best_quality.number
    (4, 5)
    """

    choice: FinishedTrial
    best_quality: FinishedTrial
    comparison: Comparison
    n_configurations: int
    goal: Goal
    believed: tuple[float, float] | None = None
    efficient: tuple[FinishedTrial, ...] = ()
    within: str = ""
    usual_cost: float | None = None
    lucky: tuple[FinishedTrial, float] | None = None

    @property
    def has_best_quality(self) -> bool:
        """Whether the choice has the best quality, too."""
        return self.choice.repeats(self.best_quality)

    def __str__(self) -> str:
        other = "" if self.n_configurations == 1 or self.efficient else self._other()
        parts = [self._range(), self._answer(), self._why_not(), other, self._note()]
        return " ".join(filter(None, parts))

    def __repr__(self) -> str:
        return f"<Explanation: {self}>"

    def _repr_html_(self) -> str:
        return paragraph(str(self))

    def _range(self) -> str:
        """The range of efficient trials, for a goal that asks for it."""
        if len(self.efficient) < 2:
            return ""
        first, last = (
            f"trial {t.number}, {self._said(t)}{self._price(t)}"
            for t in (self.efficient[0], self.efficient[-1])
        )
        return f"{len(self.efficient)} trials are efficient, from {first}, to {last}."

    def _answer(self) -> str:
        choice, rank = self.choice, self._rank()
        value = shown(choice.value) if rank.endswith(self._scale.best) else self._said(choice)
        if self.believed is not None and shown(self.believed[0]) != shown(choice.value):
            value += f" (believed {shown(self.believed[0])})"
        size = f", on {share(choice.train_size)}" * (choice.train_size < 1.0)
        kept = chance_to_keep(self.goal, self.usual_cost)
        answer = f"Trial {choice.number} {rank}: {value}{self._price(choice)}{size}."
        return f"{answer} {kept[0].upper()}{kept[1:]}." if kept else answer

    def _rank(self) -> str:
        """`is the best within 2 s`: what the choice is, in the words of the goal."""
        if self.n_configurations == 1:
            return "is the only configuration that has finished"
        match self.goal:
            case BestUnder(cost=limit):
                unit = unit_of_cost(self.choice, self.goal.by)
                return f"is the best {self.within or within(limit, unit)}"
            case CheapestWithin(tolerance=tolerance):
                return f"is the cheapest within {self._tolerance(tolerance)} of {self._scale.best}"
            case Tradeoff(alpha=alpha) if alpha > 0:
                return "is the best trade-off"
            case Frontier() if len(self.efficient) == 1:
                return "is the only efficient one"
            case Knee() | Frontier():
                return "is where the frontier bends"
            case Quality() | Tradeoff():
                return f"has {self._scale.best}"
            case _:
                return "is the best under the goal"

    def _tolerance(self, tolerance: float | str) -> str:
        if isinstance(tolerance, str):
            return "one standard error" if tolerance == "1se" else tolerance
        return self._scale.amount(tolerance)

    def _other(self) -> str:
        """What the trial with the best quality would change; nothing if the goal asks for it."""
        limited = isinstance(self.goal, BestUnder)
        if self.has_best_quality:
            if not self.goal.needs_cost:
                return ""
            also = (
                "is the best without the limit, too" if limited else f"also has {self._scale.best}"
            )
            return f"It {also}."
        it, best = self.comparison, self.best_quality
        other = f"trial {best.number}"
        if self.believed is not None:
            other += f", believed to be the best ({shown(self.believed[1])}),"
        elif not limited:
            other += f", which has {self._scale.best},"
        other = f"Without the limit, {other}" if limited else other.capitalize()
        quality = self._scale.differs(-it.gain, it.difference.margin(it.level))
        costs = cost_compared(*it.costs, best, it.by)
        size = "" if best.train_size == self.choice.train_size else f", on {share(best.train_size)}"
        return f"{other} {' and '.join(filter(None, [quality, costs]))}{size}."

    def _why_not(self) -> str:
        if self.lucky is None:
            return ""
        trial, kept = self.lucky
        return (
            f"Trial {trial.number}, {self._said(trial)}{self._price(trial)}, is not chosen: a new "
            f"training of it keeps the limit with a probability of only {percent(round(kept, 2))}."
        )

    @property
    def _scale(self) -> Scale:
        return self.comparison.scale

    def _said(self, trial: FinishedTrial) -> str:
        return self._scale.said(trial.value)

    def _price(self, trial: FinishedTrial) -> str:
        by = self.goal.by
        cost = trial.cost if by is None else trial.cost_of(by)
        return "" if cost is None else f" {at_cost(cost, unit_of_cost(trial, by))}"

    def _note(self) -> str:
        raced = [t.number for t in (self.choice, self.best_quality) if t.raced]
        if not raced:
            return ""
        return f"(The value of trial {raced[0]} is an estimate: it was stopped after some folds.)"
