"""The frozen values that travel between rooms.

Surrogates and acquisitions meet in `Normal`; acquisitions, goals and maximizers in `Partials`;
surrogates and spaces in `Columns`; strategies, runners and the log in `Trial`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from tradewind.amounts import memory, number, spoken
from tradewind.bounds import check_outcome
from tradewind.errors import SUGGESTIONS, no_attribute
from tradewind.html import Sliced, shortened, table

Array: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Indices: TypeAlias = NDArray[np.intp]  # row numbers
Value: TypeAlias = str | int | float | bool | None
Config: TypeAlias = dict[str, Value]


@dataclass(frozen=True)
class Normal:
    """Independent normal marginals: `mean` and `std`, both of shape (n,), std ≥ 0.

    >>> import numpy as np
    >>> from tradewind.types import Normal
    >>> predicted = Normal(mean=np.array([0.91, 0.87]), std=np.array([0.01, 0.03]))
    """

    mean: Array
    std: Array


@dataclass(frozen=True)
class Partials:
    """A score (n,) and its derivatives by the mean and std of the predicted quality and, where the
    score depends on it, of the predicted cost.

    >>> import numpy as np
    >>> from tradewind.types import Partials
    >>> mean = Partials(np.array([0.91, 0.87]), by_mean=np.ones(2), by_std=np.zeros(2))
    """

    value: Array
    by_mean: Array
    by_std: Array
    by_cost_mean: Array | None = None
    by_cost_std: Array | None = None


@dataclass(frozen=True)
class CostDriver:
    """A column whose value may drive the cost: the training size, a parameter on a log scale, or
    one that the user named. At the coordinates `knots` (k,) the logarithm of its value, relative to
    a fixed one, is `logs` (k,), and it is linear between them. The cost is expected to grow like
    value^`power`."""

    column: int
    knots: Array
    logs: Array
    power: float


@dataclass(frozen=True)
class Columns:
    """What a model may know about the d columns of an encoded space.

    `cells[j]` is the number of values of column j (0 for a continuous one). `categorical[j]` says
    that their order means nothing, `conditional[j]` that the parameter may be inactive, and
    `size[j]` that column j is the training size, whose values are `fractions`. `drivers` are the
    columns whose logarithm a cost may follow.

    >>> space.columns.cells, space.columns.categorical
    (array([8, 0]), array([False, False]))
    """

    cells: NDArray[np.int64]
    categorical: Mask
    conditional: Mask
    size: Mask
    fractions: tuple[float, ...] = ()
    drivers: tuple[CostDriver, ...] = ()


class State(Enum):
    """Where a trial stands.

    >>> study.best.state
    <State.FINISHED: 'finished'>
    """

    WAITING = "waiting"  # proposed or requeued, not started
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    ABANDONED = "abandoned"  # given up without a result


class Origin(Enum):
    """Who chose the configuration of a trial.

    >>> study.trials[0].origin
    <Origin.ENQUEUED: 'enqueued'>
    """

    ADDED = "added"  # a result the user already had
    ENQUEUED = "enqueued"  # the user asked for it
    DESIGN = "design"  # the initial design, or random search
    CARRIED = "carried"  # carried over from an earlier stage, where it was among the best
    MODEL = "model"  # a fitted model


@dataclass(frozen=True)
class Outcome:
    """What a finished evaluation reports, in the user's own sign and units.

    - `cost`: the cost of one training. An evaluation over several folds ran this many `trainings`
      and spent `cost * trainings`.
    - `raced`: the evaluation was stopped after some of its folds because it was clearly behind.
      Its value estimates the mean over all folds.
    - `share`: for raced results of older studies, and for those that a user adds: the part of the
      folds that `cost` covers.
    - `costs`: further costs of one training, by name. `attributes`: anything else that the
      objective returned, as plain data.

    >>> from tradewind.types import Outcome
    >>> Outcome(0.91, cost=12.5, attributes={"f1": 0.88}).value
    0.91
    """

    value: float
    cost: float | None = None
    folds: tuple[float, ...] = ()
    raced: bool = False
    share: float = 1.0
    costs: Mapping[str, float] = field(default_factory=dict, hash=False)
    attributes: Mapping[str, Any] = field(default_factory=dict, hash=False)
    trainings: int = 1

    __post_init__ = check_outcome  # type: ignore[misc]  # every outcome that is made is possible


@dataclass(frozen=True)
class Rival:
    """The folds of the trial to beat, in the user's own numbers. `sign` is +1 if larger is better.
    A trial that is worse by up to `margin` might still win by being cheaper."""

    folds: tuple[float, ...]
    sign: float = 1.0
    margin: float = 0.0
    data: str | None = None  # the fingerprint of the data; None if it is unknown


@dataclass(frozen=True)
class Usage:
    """What one evaluation took, with all its folds.

    - `wall`: seconds. `cpu`: CPU seconds, including those of ended children.
    - `concurrency`: the mean number of trials that ran at the same time (itself included).
    - `device`: where it ran.
    - `memory`: the most memory that its process occupied meanwhile, in bytes; None if unknown.
    - `clock`: how the cost was measured: "wall", "cpu", "gpu" or "memory", or "reported" if the
      objective returned it.
    - `data`: the fingerprint of what the objective gave to `folds` or `subset`.

    >>> study.best.usage.concurrency
    1.0
    """

    wall: float
    cpu: float | None = None
    concurrency: float = 1.0
    device: str = "cpu"
    memory: float | None = None
    clock: str = "wall"
    data: str | None = None


@dataclass(frozen=True)
class Proposal:
    """A configuration to evaluate, as a row (d,) of the encoded space.

    `handover` is plain data for the next proposal (numbers, strings, lists, dicts); the log stores
    it. `expected_cost` is the predicted median cost, if the strategy models cost. `train_size` is
    the fraction to train with, if no parameter of the space says it.

    >>> from tradewind.types import Origin, Proposal
    >>> proposal = Proposal(space.encode([{"depth": 3, "rate": 0.1}])[0], Origin.MODEL)
    """

    row: Array
    origin: Origin
    handover: Mapping[str, Any] = field(default_factory=dict)
    expected_cost: float | None = None
    train_size: float | None = None


@dataclass(frozen=True)
class Prediction:
    """A finished trial, by its `index` among the finished ones, and the quality and cost to expect
    of its configuration. Quality is maximized and cost is raw. `train_size` is the fraction of the
    data that the prediction is for, if the trial was trained with another.

    >>> from tradewind.types import Prediction
    >>> Prediction(index=4, quality=0.94, cost=50.0).quality
    0.94
    """

    index: int
    quality: float
    cost: float | None
    train_size: float | None = None


@dataclass(frozen=True, repr=False)
class Trial:
    """One evaluation of one configuration, as the log knows it.

    - `params`: all active parameters. `size_name` names the training size among them, if any.
    - `value`, `cost`: the user's own numbers. Only a finished trial has a value. The cost of a
      finished trial is that of one training; that of a failed or abandoned one is all it spent.
    - `cost_name`: which cost of the trial `cost` is, such as "wall" or "money".
    - `metric`: what `value` is, such as "accuracy"; None if the study does not name it.
    - `folds`, `raced`, `share`, `costs`, `attributes`, `trainings`: see `Outcome`.
    - `error`: the traceback of a failed trial, or why a trial was abandoned. A failed trial counts
      as a bad result only if it is `penalized`.
    - `retries`: how often the trial was requeued for another attempt (preemption does not count);
      `losses`: how many of these were because its worker or driver died.
    - `driver`: who started it (host:process:name). `started` and `ended`: seconds since 1970.
    - `seed`: the trial's own seed. `data_seed`: the same for all trials of a study; it decides
      subsets and folds.
    - `rival`: the trial to beat; it is set only while the trial runs.
    - `per_training`: false in studies of version 0.1, where a measured cost is that of all folds.

    >>> trial = study.ask()
    >>> trial.number, trial.state, trial.value
    (8, <State.RUNNING: 'running'>, None)
    """

    number: int
    params: Mapping[str, Any]
    state: State
    origin: Origin
    seed: int
    train_size: float = 1.0
    value: float | None = None
    cost: float | None = None
    folds: tuple[float, ...] = ()
    raced: bool = False
    share: float = 1.0
    error: str | None = None
    penalized: bool = True
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
    costs: Mapping[str, float] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    trainings: int = 1
    cost_name: str = "wall"
    per_training: bool = True
    metric: str | None = None

    @property
    def finished(self) -> bool:
        """Whether it has a value."""
        return self.state is State.FINISHED

    @property
    def settings(self) -> Config:
        """The parameters without the training size: what to make a model with."""
        return {name: value for name, value in self.params.items() if name != self.size_name}

    def repeats(self, other: Trial) -> bool:
        """Whether both have the same configuration and the same training size."""
        return (self.params, self.train_size) == (other.params, other.train_size)

    def cost_of(self, name: str) -> float | None:
        """A cost of one training by its name: the cost of the study, a cost that the objective
        reported, or "wall", "cpu" or "memory". None if it is unknown."""
        if name == self.cost_name:
            return self.cost
        if name in self.costs:
            return self.costs[name]
        if self.usage is None:
            return None
        if name == self.usage.clock and name != "reported":
            return self.cost
        if name == "memory":
            return self.usage.memory
        seconds = {"wall": self.usage.wall, "cpu": self.usage.cpu}.get(name)
        return None if seconds is None else seconds / self.trainings

    def __repr__(self) -> str:
        shown = {"value": self.value, "cost": self.cost, "error": self.error}
        more = "".join(f", {name}={it!r}" for name, it in shown.items() if it is not None)
        size = f", train_size={self.train_size:g}" * (self.size_name is None)
        return f"Trial({self.number}, {self.state.value}, {dict(self.params)}{size}{more})"

    def _repr_html_(self) -> str:
        facts = [(self.metric or "value", _shown(self.value)), ("cost", _cost(self))]
        facts += [("folds", ", ".join(map(_shown, self.folds)))]
        facts += [("training size", f"{self.train_size:.4g}")] * (self.size_name is None)
        facts += [("error", (self.error or "").strip().rpartition("\n")[2])]
        facts += [(name, _shown(value)) for name, value in self.params.items()]
        facts += [(f"{name} (attribute)", str(it)) for name, it in self.attributes.items()]
        header = [f"trial {self.number}", self.state.value]
        return table(header, [fact for fact in facts if fact[1]])

    if not TYPE_CHECKING:  # mypy would take every name for an attribute

        def __getattr__(self, name: str) -> NoReturn:
            no_attribute(self, name, SUGGESTIONS)


@dataclass(frozen=True, repr=False)
class FinishedTrial(Trial):
    """A trial that has a value.

    >>> round(1.0 - study.best.value, 2)  # always a number
    0.06
    """

    value: float = math.nan


TrialType = TypeVar("TrialType", bound=Trial)


class Trials(Sliced[TrialType]):
    """A list of trials, which a notebook shows as a table. A slice of it is one, too."""

    def __repr__(self) -> str:
        lines = [repr(trial) for trial in self[:_MOST_LINES]]
        more = [f"… and {len(self) - _MOST_LINES:,} more"] * (len(self) > _MOST_LINES)
        return "[" + ",\n ".join(lines + more) + "]"

    def _repr_html_(self) -> str:
        rows = ([t.number, t.state.value, _shown(t.value), _cost(t), _params(t)] for t in self)
        count = f"{len(self):,} trial{'s' * (len(self) != 1)}"
        value = next((t.metric for t in self if t.metric), "value")
        return table(["trial", "state", value, "cost", "parameters"], rows, caption=count)


_MOST_LINES = 20  # of a list of trials as text
_AMOUNTS = {"wall": spoken, "cpu": spoken, "gpu": spoken, "memory": memory}


def _shown(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _cost(trial: Trial) -> str:
    """`12 ms`, `3.2 (money)`, or a number if the objective returned it without a name."""
    if trial.cost is None:
        return ""
    if trial.cost_name not in _AMOUNTS:
        return f"{number(trial.cost)} ({trial.cost_name})"
    measured = trial.usage is not None and trial.usage.clock != "reported"
    return (_AMOUNTS[trial.cost_name] if measured else number)(trial.cost)


def _params(trial: Trial) -> str:
    return ", ".join(f"{name}={shortened(_shown(it))}" for name, it in trial.params.items())
