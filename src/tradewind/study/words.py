"""Results in words: differences, costs and training sizes as a person would say them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tradewind.amounts import GivenAmount, as_given, memory
from tradewind.amounts import between as between
from tradewind.amounts import number as number
from tradewind.amounts import percent as percent
from tradewind.amounts import spoken as spoken
from tradewind.goals import BestUnder, Goal
from tradewind.types import FinishedTrial, Trial

_CLOCKS = ("wall", "cpu", "gpu")
_SAME = 0.02  # costs that differ by less than this share count as the same
_TIMES = 1.1  # costs with a smaller ratio are compared in percent
_EXACT = 1e-9  # of an amount: a smaller margin is rounding, as of repeats that are equal


@dataclass(frozen=True)
class Scale:
    """How the values of a study are said.

    If larger is better and all values are within [0, 1], they look like scores, and 0.01 is called
    a point. Any other value is said as it is. `metric` is the user's name for the quality; without
    one, a minimized value is called a loss."""

    maximize: bool
    points: bool
    metric: str | None = None

    @classmethod
    def of(cls, values: Iterable[float], *, maximize: bool, metric: str | None = None) -> Scale:
        points = maximize and all(0.0 <= value <= 1.0 for value in values)
        return cls(maximize, points, metric)

    @property
    def name(self) -> str:
        """The name of the values in figures, tables and sentences: `accuracy`, `value`, `loss`."""
        return self.metric or ("value" if self.maximize else "loss")

    def amount(self, difference: float, margin: float | None = None) -> str:
        """`1.2 ± 0.4 points`, or `0.031`. A margin of zero is left out."""
        factor = 100.0 if self.points else 1.0
        size = abs(difference) * factor
        text = number(size)
        if margin is not None and margin * factor > _EXACT * size:
            text = plus_minus(size, margin * factor)
        if not self.points:
            return text
        return f"{text} point{'' if text == '1' else 's'}"

    def bounds(self, low: float, high: float) -> str:
        """`between 0.1 and 1.5`, in the unit of `amount`."""
        factor, width = (100.0 if self.points else 1.0), high - low
        low, high, width = low * factor, high * factor, width * factor
        return f"between {rounded(low, width / 2)} and {rounded(high, width / 2)}"

    def compared(self, gain: float, margin: float | None = None) -> str:
        """`scores 1.2 points lower than`; a gain means better."""
        return f"{self.differs(gain, margin)} {'as' if gain == 0.0 else 'than'}"

    def differs(self, gain: float, margin: float | None = None) -> str:
        """`scores 1.2 points lower`; a gain means better."""
        amount = self.amount(gain, margin)
        if gain == 0.0:
            return "scores the same" if self.maximize else f"has the same {self.name}"
        if self.maximize:
            return f"scores {amount} {'higher' if gain > 0 else 'lower'}"
        if self.metric:
            return f"has {amount} {'less' if gain > 0 else 'more'} {self.metric}"
        return f"has a loss {amount} {'lower' if gain > 0 else 'higher'}"

    def said(self, value: float) -> str:
        """`accuracy 0.912`, `0.912` or `a loss of 0.34`."""
        if self.metric:
            return f"{self.metric} {shown(value)}"
        return shown(value) if self.maximize else f"a loss of {shown(value)}"

    @property
    def best(self) -> str:
        """`the best accuracy`, `the best value` or `the lowest loss`."""
        return f"the {'best' if self.maximize or self.metric else 'lowest'} {self.name}"


def shown(value: object) -> str:
    """A value of a trial or a parameter wherever it is written: a float has four digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def assigned(params: Mapping[str, Any]) -> str:
    """`depth=5, rate=0.1`."""
    return ", ".join(f"{name}={shown(value)}" for name, value in params.items())


def rounded(value: float, error: float) -> str:
    """A number with as many decimals as its error has in `number`."""
    if error <= 0.0 or not math.isfinite(error) or abs(value) >= 1e6:
        return number(value)
    decimals = max(0, 1 - math.floor(math.log10(error)))
    return f"{round(value, decimals):.{min(decimals, 12)}f}".removeprefix("-" * (value == 0))


def plus_minus(value: float, margin: float) -> str:
    """`1.2 ± 0.4`."""
    return f"{rounded(value, margin)} ± {rounded(margin, margin)}"


def unit_of_cost(trial: Trial, by: str | None = None) -> str:
    """The unit of a trial's cost, or of the one that `by` names: "s", "bytes", or the name of a
    cost that the objective returned; nothing if it returned a cost without a name."""
    name = trial.cost_name if by is None else by
    if name in _CLOCKS:
        measured = trial.usage is not None and trial.usage.clock != "reported"
        return "s" if measured or by is not None else ""
    return "bytes" if name == "memory" else name


def unit_of_costs(trials: Iterable[Trial], by: str | None = None) -> str:
    """The unit of the costs of these trials; nothing if none has finished."""
    return next((unit_of_cost(trial, by) for trial in trials if trial.finished), "")


def cost_amount(cost: float, unit: str, digits: int | None = None) -> str:
    """A cost with its unit: `12 ms`, `190 MB`, `3.2 (money)`."""
    if unit == "s":
        return spoken(cost, digits)
    if unit == "bytes":
        return memory(cost, digits)
    return number(cost, digits) + (f" ({unit})" if unit else "")


def at_cost(cost: float, unit: str) -> str:
    """`in 12 s`, `with 190 MB of memory`, `at a cost of 3.2 (money)`."""
    amount = cost_amount(cost, unit)
    if unit == "s":
        return f"in {amount}"
    return f"with {amount} of memory" if unit == "bytes" else f"at a cost of {amount}"


def within(limit: float, unit: str) -> str:
    """`within 10 min`, `within 2 GB`, `within a cost of 3.2 (money)`."""
    has_unit = unit in ("s", "bytes") or isinstance(limit, GivenAmount)
    return f"within {'' if has_unit else 'a cost of '}{exact(limit, unit)}"


def goal_in_words(goal: Goal, unit: str, metric: str | None = None) -> str:
    """The goal in words, with the name of the quality if it has one, and with costs in seconds or
    bytes if that is their unit: `the best accuracy with a cost of at most 95 min`."""
    named = unit not in ("s", "bytes")  # a cost of another name is named already
    said = goal.describe() if named else goal.in_words(lambda cost: exact(cost, unit))
    return said.replace("quality", metric or "quality", 1)


def chance_to_keep(goal: Goal, cost: float | None) -> str:
    """`a new training keeps the limit with a probability of 93%`, if the goal is a limit and the
    trial is within it; nothing if that is as good as certain."""
    if cost is None or not isinstance(goal, BestUnder) or cost > goal.cost:
        return ""
    kept = goal.probability(cost)
    chance = percent(round(kept, 2))
    return f"a new training keeps the limit with a probability of {chance}" if kept < 0.99 else ""


def exact(cost: float, unit: str) -> str:
    """An amount that the user has chosen, as it was given. A number becomes `3.25 (money)` or
    `1.234 GB`, and time in a unit in which it is round: `90 s`, `95 min`, and only otherwise
    `1.5 s`."""
    return as_given(cost, lambda number: _exact(number, unit))


def _exact(cost: float, unit: str) -> str:
    if unit != "s":
        return memory(cost, 9) if unit == "bytes" else f"{cost:g}" + (f" ({unit})" if unit else "")
    units = (("h", 3600.0), ("min", 60.0), ("s", 1.0), ("ms", 1e-3))
    amounts = [(round(cost / length, 9), name) for name, length in units]
    fit = [it for it in amounts if 1.0 <= it[0] < 1000.0 and float(f"{it[0]:.4g}") == it[0]]
    fit.sort(key=lambda it: not it[0].is_integer())
    return f"{fit[0][0]:g} {fit[0][1]}" if fit else spoken(cost, 4)


def cost_compared(
    cost: float | None, other: float | None, trial: FinishedTrial, by: str | None
) -> str:
    """`trains 6.4 times faster`, `takes 1.4 times as long`, or `takes 4% longer`, for a trial that
    costs `cost` where another costs `other`; nothing if one of the two is unknown."""
    if cost is None or other is None:
        return ""
    less, times, more, note = _cost_words(trial, by)
    if abs(cost - other) <= _SAME * max(cost, other):
        return f"costs the same{note}"
    if cost == 0.0:
        return f"costs nothing{note} where the other costs {number(other)}"
    if other == 0.0:
        return f"costs {number(cost)}{note} where the other costs nothing"
    ratio = max(cost / other, other / cost)
    if ratio < _TIMES:
        by_much = percent(round(abs(cost - other) / other, 2))
        return (less if cost < other else more).format(by_much)
    return (less if cost < other else times).format(f"{number(ratio)} times")


def _cost_words(trial: FinishedTrial, by: str | None) -> tuple[str, str, str, str]:
    """How to say that a trial costs less than another, so many times as much, or so many percent
    more; and a note that names the cost."""
    unit = unit_of_cost(trial, by)
    if unit == "s":
        return "trains {} faster", "takes {} as long", "takes {} longer", ""
    if unit == "bytes":
        needs = "needs {} less memory", "needs {} as much memory", "needs {} more memory"
        return *needs, " in memory"
    note = f" ({unit})" if unit else ""
    return f"costs {{}} less{note}", f"costs {{}} as much{note}", f"costs {{}} more{note}", note


def share(size: float) -> str:
    """`40% of the data`, `all of the data`."""
    return f"{percent(size)} of the data" if size < 1.0 else "all of the data"


def as_sentence(text: str) -> str:
    """The first line of an error's text, as a sentence."""
    line = text.partition("\n")[0]
    return f"{line[:1].upper()}{line[1:]}."
