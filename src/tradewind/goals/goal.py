"""The seam between what is wanted and how it is searched for.

A goal is data. It never sees the user's sign: quality is maximized here, and cost is raw.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from tradewind.types import Array, Incumbent, Normal, Partials


class Acquisition(Protocol):
    """What a predicted quality is worth, compared with the best quality so far.

    `log_form` says that scores are logarithms of expectations, which can be averaged over an
    uncertain cost. `at` returns the acquisition for one trial, fixing whatever varies with the
    trial number; `pending` is the number of other trials that are still running."""

    @property
    def log_form(self) -> bool: ...
    def __call__(self, predicted: Normal, best: Array | float) -> Array: ...
    def partials(self, predicted: Normal, best: Array | float) -> Partials: ...
    def at(self, number: int, *, pending: int = 0, rng: np.random.Generator) -> Acquisition: ...


class TradeoffRule(Protocol):
    """How predicted quality and predicted cost become one score.

    `log_cost` says what the cost model predicts: log(cost / reference), or σ itself."""

    @property
    def log_cost(self) -> bool: ...

    def accepts(self, acquisition: Acquisition) -> bool:
        """Whether the rule can work with this acquisition."""
        ...

    def partials(
        self,
        acquisition: Acquisition,
        quality: Normal,
        cost: Normal,
        *,
        incumbent: Incumbent,
        alpha: float,
    ) -> Partials: ...


class Goal(Protocol):
    """What is wanted of a trial. `cost_scale`, `utility` and `score` need a goal that is not
    `open`: call `settle` first."""

    @property
    def needs_cost(self) -> bool:
        """Whether trials must report a cost."""
        ...

    @property
    def open(self) -> bool:
        """Whether the goal still needs a reference cost."""
        ...

    @property
    def reference(self) -> float | None:
        """The reference cost, if the goal has one."""
        ...

    @property
    def provisional(self) -> bool:
        """Whether the reference was decided by trials and may still change."""
        ...

    def settle(self, costs: Array, *, provisional: bool = False) -> Goal:
        """The goal with the largest of `costs` as its reference, if it needs one."""
        ...

    def cost_scale(self, cost: Array, *, log: bool) -> Array:
        """Costs as they are modelled: log(cost / reference), or σ."""
        ...

    def utility(self, quality: Array, cost: Array) -> Array:
        """How good finished trials are (n,); larger is better."""
        ...

    def score(
        self,
        quality: Normal,
        cost: Normal | None,
        *,
        incumbent: Incumbent,
        acquisition: Acquisition,
        rule: TradeoffRule,
        unit: float,
    ) -> Partials:
        """The worth of predictions. Quality and incumbent are standardized, with `unit` as their
        standard deviation in natural quality. `cost` is on the rule's scale."""
        ...


def log_relative_cost(cost: Array, reference: float) -> Array:
    """log(cost / reference). A cost below 1e-9 of the reference counts as 1e-9 of it."""
    ratio = np.log(np.maximum(cost, 5e-324)) - np.log(reference)  # cost / reference may overflow
    return np.asarray(np.maximum(ratio, np.log(1e-9)))
