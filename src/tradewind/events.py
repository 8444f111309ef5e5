"""What can happen to a study: the entries of its log.

State is a fold over these (history.py). They hold plain data and the declarative objects that
the study was created with; nothing in them is code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tradewind.types import Config, Origin, Outcome


@dataclass(frozen=True)
class Enqueued:
    """The user asked for this configuration to be evaluated next; what they left out is drawn."""

    params: Config


@dataclass(frozen=True)
class Claimed:
    """A driver took this trial number; `enqueued` is the place of the entry it took from the
    queue, if it took one."""

    number: int
    enqueued: int | None = None


@dataclass(frozen=True)
class Proposed:
    """The configuration of a claimed trial, made from the log as it was at position `seen`."""

    number: int
    params: Config
    origin: Origin
    seen: int
    handover: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Finished:
    """A trial reported its outcome."""

    number: int
    outcome: Outcome


@dataclass(frozen=True)
class Failed:
    """A trial ended without an outcome, after `cost` if that is known."""

    number: int
    error: str
    cost: float | None = None


Event: TypeAlias = Enqueued | Claimed | Proposed | Finished | Failed
