"""The frozen values that pass between the parts.

Surrogates and acquisitions meet in `Normal`, surrogates and spaces in `Columns`,
strategies, runners and the log in `Trial`. Nothing here computes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Value: TypeAlias = str | int | float | bool | None
Config: TypeAlias = dict[str, Value]


@dataclass(frozen=True)
class Normal:
    """Independent normal marginals: `mean` and `std`, both of shape (n,), std ≥ 0."""

    mean: Array
    std: Array


@dataclass(frozen=True)
class Columns:
    """What a model may know about the d columns of an encoded space.

    `cells[j]` is the number of values of column j (0: continuous), `categorical[j]` says that
    their order means nothing, `conditional[j]` that the parameter may be inactive, and `size[j]`
    marks the training-set size, of which `fractions` are the values.
    """

    cells: NDArray[np.int64]
    categorical: Mask
    conditional: Mask
    size: Mask
    fractions: tuple[float, ...] = ()

    @property
    def d(self) -> int:
        return len(self.cells)


class State(Enum):
    """What has become of a trial."""

    WAITING = "waiting"  # proposed or given back, not started
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    ABANDONED = "abandoned"  # given up before it could show anything


class Origin(Enum):
    """Who chose the configuration of a trial."""

    ADDED = "added"  # a result the user already had
    ENQUEUED = "enqueued"  # the user asked for it
    DESIGN = "design"  # the initial design, or random search
    CARRIED = "carried"  # an earlier stage, where it was among the best
    MODEL = "model"  # a fitted model


@dataclass(frozen=True)
class Outcome:
    """What a finished evaluation reports, in the user's own sign and units. If it was `raced`, it
    was clearly behind after the given folds and did not go through the rest; its value is then
    what the mean over all folds is expected to be, and its cost only this `share` of what all
    would have cost."""

    value: float
    cost: float | None = None
    folds: tuple[float, ...] = ()
    raced: bool = False
    share: float = 1.0


@dataclass(frozen=True)
class Rival:
    """The folds of the trial to beat, in the user's own numbers; `sign` is +1 where larger is
    better. A quality that is worse by `margin` might still win, because it may be cheaper."""

    folds: tuple[float, ...]
    sign: float = 1.0
    margin: float = 0.0


@dataclass(frozen=True)
class Usage:
    """What one evaluation took: seconds on the wall, and of CPU with all its children; how many
    trials ran at the same time, itself included, in the mean; and on which device it ran."""

    wall: float
    cpu: float | None = None
    concurrency: float = 1.0
    device: str = "cpu"


@dataclass(frozen=True)
class Proposal:
    """A configuration to evaluate, who chose it, and what its maker hands to the next one.

    `handover` is plain data (numbers, strings, lists, dicts): it is stored with the proposal.
    `expected_cost` is the median cost that its maker predicts, where it has a model of that.
    `train_size` is the fraction to train with where that is not one of the parameters.
    """

    params: Config
    origin: Origin
    handover: Mapping[str, Any] = field(default_factory=dict)
    expected_cost: float | None = None
    train_size: float | None = None


@dataclass(frozen=True)
class Prediction:
    """A finished trial by its place among the finished, and what quality and cost to expect of
    its configuration (quality is maximized, cost is raw), trained with `train_size` of the data if
    that is another fraction than it was trained with."""

    index: int
    quality: float
    cost: float | None
    train_size: float | None = None


@dataclass(frozen=True, repr=False)
class Trial:
    """One evaluation of one configuration, as the log knows it.

    `params` are all active parameters; `size_name` is the training size among them, if any.
    `value` and `cost` are the user's own numbers and None unless the trial is finished
    (a failed trial may know the cost it had run up); `error` is the traceback of a failed one, or
    why another was abandoned. `retries` counts how often it went back to the queue, `losses`
    how often of these because its worker or driver had died. `driver` is
    who started it (host:process:name), `started` and `ended` are seconds since 1970, and `usage` is
    what the evaluation took. `seed` is the trial's own; `data_seed` is the same for all trials of a
    study, for what they share: subsets and folds. `rival` travels with a trial that is submitted.
    """

    number: int
    params: Mapping[str, Value]
    state: State
    origin: Origin
    seed: int
    train_size: float = 1.0
    value: float | None = None
    cost: float | None = None
    folds: tuple[float, ...] = ()
    raced: bool = False
    error: str | None = None
    retries: int = 0
    losses: int = 0
    expected_cost: float | None = None
    driver: str | None = field(default=None, compare=False)
    started: float | None = None
    ended: float | None = None
    usage: Usage | None = None
    data_seed: int = 0
    size_name: str | None = None
    rival: Rival | None = field(default=None, compare=False)

    @property
    def finished(self) -> bool:
        return self.state is State.FINISHED

    @property
    def settings(self) -> Config:
        """The parameters without the training size: what to make a model with."""
        return {name: value for name, value in self.params.items() if name != self.size_name}

    def __repr__(self) -> str:
        shown = {"value": self.value, "cost": self.cost, "error": self.error}
        more = "".join(f", {name}={it!r}" for name, it in shown.items() if it is not None)
        size = f", train_size={self.train_size:g}" * (self.size_name is None)
        return f"Trial({self.number}, {self.state.value}, {dict(self.params)}{size}{more})"
