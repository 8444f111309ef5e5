"""A choice in one sentence: what it costs and what it gains against the most accurate model."""

from __future__ import annotations

from dataclasses import dataclass

from tradewind.html import paragraph
from tradewind.study.compare import Comparison
from tradewind.study.words import cost_amount, cost_compared, share, size_compared, unit_of_cost
from tradewind.types import FinishedTrial


@dataclass(frozen=True, repr=False)
class Explanation:
    """What a choice costs and gains against the most accurate model. `str()` is the sentence.

    - `choice`: the best trial under a goal; `most_accurate`: the one with the best quality.
    - `comparison`: `choice` against `most_accurate`; its `gain` is usually negative.
    - `n_configurations`: how many configurations were finished.

    >>> explanation = study.explain()
    >>> explanation.choice.number, explanation.most_accurate.number
    (4, 5)
    """

    choice: FinishedTrial
    most_accurate: FinishedTrial
    comparison: Comparison
    n_configurations: int

    @property
    def is_most_accurate(self) -> bool:
        """Whether the choice is the most accurate model."""
        return self.choice.repeats(self.most_accurate)

    def __str__(self) -> str:
        return self._alone() if self.is_most_accurate else self._compared()

    def __repr__(self) -> str:
        return f"<Explanation: {self}>"

    def _repr_html_(self) -> str:
        return paragraph(str(self))

    def _alone(self) -> str:
        choice, (_, cost) = self.choice, self.comparison.costs
        rank = "the most accurate model"
        if self.n_configurations == 1:
            rank = "the only configuration that was finished"
        result = f"{'' if self.comparison.scale.maximize else 'a loss of '}{choice.value:.4g}"
        unit = unit_of_cost(choice, self.comparison.by)
        price = "" if cost is None else f" at a cost of {cost_amount(cost, unit)}"
        size = f", on {share(choice.train_size)}" * (choice.train_size < 1.0)
        return f"Trial {choice.number} is {rank}: {result}{price}{size}.{self._note()}"

    def _compared(self) -> str:
        it, choice, best = self.comparison, self.choice, self.most_accurate
        quality = it.scale.compared(it.gain, it.difference.margin(it.level))
        if it.gain >= 0.0:  # repeats or a model rank the other one higher, if not by much
            quality = "scores as well as" if it.scale.maximize else "has as small a loss as"
        words = f"Trial {choice.number} {quality} the most accurate model, trial {best.number}"
        cost, other = it.costs[1], it.costs[0]
        costs = cost_compared(cost, other, choice, it.by)
        size = size_compared(choice, best)
        if not costs:
            return f"{words}{f', {size}' if size else ''}; no cost is known.{self._note()}"
        return f"{words}; it {costs}{f', {size}' if size else ''}.{self._note()}"

    def _note(self) -> str:
        raced = [t.number for t in (self.choice, self.most_accurate) if t.raced]
        if not raced:
            return ""
        return f" (The value of trial {raced[0]} is an estimate: it was stopped after some folds.)"
