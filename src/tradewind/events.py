"""What can happen to a study: the entries of its log.

State is a fold over these (record.py). They hold plain data only (numbers, text, lists, mappings
and the frozen values of types.py), so that every log can write them as JSON (log/codec.py).
Times `at` are seconds since 1970 by the writer's clock: for people to read; nothing depends on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tradewind.types import Config, Origin, Outcome, Usage

Data: TypeAlias = Mapping[str, Any]  # what JSON can say


@dataclass(frozen=True)
class Created:
    """The study, as plain data: always the first event, and the only one of its kind."""

    space: Data
    goal: Data
    strategy: Data
    maximize: bool
    seed: int
    at: float


@dataclass(frozen=True)
class Configured:
    """From here on another goal, or another strategy; None leaves it as it was."""

    goal: Data | None = None
    strategy: Data | None = None


@dataclass(frozen=True)
class Enqueued:
    """The user asked for this configuration to be evaluated next, trained with this fraction of
    the data; what they left out is drawn."""

    params: Config
    train_size: float | None = None


@dataclass(frozen=True)
class Claimed:
    """A driver took this trial number to propose it; `enqueued` is the place of the entry it took
    from the queue, if it took one. A claim whose driver has died is taken over by a later one."""

    number: int
    driver: str = ""
    enqueued: int | None = None


@dataclass(frozen=True)
class Proposed:
    """The configuration of a claimed trial, made from the log as it was at position `seen`.

    `max_cost` is what it was asked to stay within, `expected_cost` the median that its maker
    predicts, and `train_size` the fraction to train with if no parameter says it."""

    number: int
    params: Config
    origin: Origin
    seen: int
    handover: Data = field(default_factory=dict)
    max_cost: float | None = None
    expected_cost: float | None = None
    train_size: float | None = None


@dataclass(frozen=True)
class Started:
    """A driver began to evaluate a trial. If it is `leased`, the driver keeps a lease on it, and
    without one the trial is lost; otherwise it runs until somebody tells what became of it."""

    number: int
    driver: str = ""
    leased: bool = False
    at: float | None = None


@dataclass(frozen=True)
class Finished:
    """A trial reported its outcome."""

    number: int
    outcome: Outcome
    usage: Usage | None = None
    at: float | None = None


@dataclass(frozen=True)
class Failed:
    """A trial ended without an outcome, after `cost` if that is known. A model believes it to be
    bad, unless `penalize` is off."""

    number: int
    error: str
    cost: float | None = None
    penalize: bool = True
    usage: Usage | None = None
    at: float | None = None


@dataclass(frozen=True)
class Abandoned:
    """A trial was given up before it could show anything, after `cost` if that is known."""

    number: int
    reason: str
    cost: float | None = None
    at: float | None = None


@dataclass(frozen=True)
class Requeued:
    """A trial goes back to the queue; `retry` says that this counts as one more attempt, and `lost`
    that its worker or driver is to blame."""

    number: int
    reason: str
    retry: bool = True
    lost: bool = False


@dataclass(frozen=True)
class Unknown:
    """An event of the same format that this version does not know: kept, and passed over."""

    data: Data


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
    | Requeued
    | Unknown
)
