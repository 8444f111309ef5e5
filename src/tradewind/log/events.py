"""What can happen to a study: the entries of its log.

The state of a study is a fold over its events (state.py). Events hold plain data only (numbers,
text, lists, mappings and the frozen values of types.py), so every log can write them as JSON
(codec.py). Times `at` are seconds since 1970 by the writer's clock; nothing depends on them.

A newer version may add fields. This one keeps the fields it does not know in `extra`, so that they
survive when a study is exported and imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tradewind.types import Config, Origin, Outcome, Usage

PlainData: TypeAlias = Mapping[str, Any]  # what JSON can express


@dataclass(frozen=True, kw_only=True)
class _Event:
    extra: PlainData = field(default_factory=dict, repr=False, hash=False)


@dataclass(frozen=True)
class Created(_Event):
    """A new study as plain data: always the first event of a log, and only the first.

    `data_seed` decides subsets and folds. Older studies do not store it. `cost` names the cost of
    the study. A measured cost is that of one training; in older studies, which have `per_training`
    false, it is that of all folds that ran. `metric` names the quality, if the user did."""

    space: PlainData
    goal: PlainData
    strategy: PlainData
    maximize: bool
    seed: int
    at: float
    data_seed: int | None = None
    cost: str = "wall"
    per_training: bool = False
    metric: str | None = None


@dataclass(frozen=True)
class Configured(_Event):
    """The goal, the strategy or the name of the quality has changed; None means that it has not."""

    goal: PlainData | None = None
    strategy: PlainData | None = None
    metric: str | None = None


@dataclass(frozen=True)
class Enqueued(_Event):
    """The user wants this configuration evaluated next, on `train_size` of the data."""

    params: Config
    train_size: float | None = None


@dataclass(frozen=True)
class Claimed(_Event):
    """A driver took this trial number in order to propose it. `enqueued` is the place of the queue
    entry it took, if any. If the driver dies, another claims the number again."""

    number: int
    driver: str = ""
    enqueued: int | None = None


@dataclass(frozen=True)
class Proposed(_Event):
    """The configuration of a claimed trial, computed from the first `seen` events of the log.

    `max_cost` is the cost it was asked to stay within, `expected_cost` the predicted median cost,
    and `train_size` the fraction to train with, if no parameter says it."""

    number: int
    params: Config
    origin: Origin
    seen: int
    handover: PlainData = field(default_factory=dict)
    max_cost: float | None = None
    expected_cost: float | None = None
    train_size: float | None = None


@dataclass(frozen=True)
class Started(_Event):
    """A driver began to evaluate a trial. A `leased` trial is lost when its driver stops renewing
    the lease. Any other trial runs until somebody reports on it."""

    number: int
    driver: str = ""
    leased: bool = False
    at: float | None = None


@dataclass(frozen=True)
class Finished(_Event):
    """A trial reported its outcome."""

    number: int
    outcome: Outcome
    usage: Usage | None = None
    at: float | None = None


@dataclass(frozen=True)
class Failed(_Event):
    """A trial ended without an outcome, after spending `cost` if that is known. With `penalize`, a
    model treats it as a bad result; otherwise it ignores the trial."""

    number: int
    error: str
    cost: float | None = None
    penalize: bool = True
    usage: Usage | None = None
    at: float | None = None


@dataclass(frozen=True)
class Abandoned(_Event):
    """A trial was given up without a result, after spending `cost` if that is known."""

    number: int
    reason: str
    cost: float | None = None
    at: float | None = None


@dataclass(frozen=True)
class Spent(_Event):
    """What a trial had spent when its driver stopped it, because somebody else had abandoned it."""

    number: int
    cost: float
    at: float | None = None


@dataclass(frozen=True)
class Requeued(_Event):
    """A trial went back to the queue. `retry` says that it counts as one more attempt, and `lost`
    that its worker or driver died."""

    number: int
    reason: str
    retry: bool = True
    lost: bool = False


@dataclass(frozen=True)
class Stopped(_Event):
    """A stopping rule ended a search, for this reason."""

    reason: str
    at: float | None = None


@dataclass(frozen=True)
class Paused(_Event):
    """Nothing more is started until the study is resumed. Running trials go on."""

    reason: str = ""
    at: float | None = None


@dataclass(frozen=True)
class Resumed(_Event):
    """Trials may be started again."""

    at: float | None = None


@dataclass(frozen=True)
class Confirming(_Event):
    """The finalists under a goal are run again, to see how good they are without luck.

    `trials` are the `top` best, and `first` is the number of the first trial after this event."""

    trials: tuple[int, ...]
    top: int
    goal: PlainData
    first: int
    at: float | None = None


@dataclass(frozen=True)
class FinalTrained(_Event):
    """The configuration of a trial was trained as the final model, for this cost if it is known. It
    is written before the model is tested: from here on, the test set has been looked at."""

    number: int
    cost: float | None = None
    at: float | None = None


@dataclass(frozen=True)
class FinalTested(_Event):
    """The result of a look at the test set. `look` counts the `FinalTrained` events from 0."""

    look: int
    value: float
    attributes: PlainData = field(default_factory=dict)
    at: float | None = None


@dataclass(frozen=True)
class Unknown:
    """An event that this version does not know, from a newer one. It is kept and ignored."""

    data: PlainData


Event: TypeAlias = (
    Created
    | Configured
    | Enqueued
    | Claimed
    | Proposed
    | Started
    | Finished
    | Failed
    | Abandoned
    | Spent
    | Requeued
    | Stopped
    | Paused
    | Resumed
    | Confirming
    | FinalTrained
    | FinalTested
    | Unknown
)
