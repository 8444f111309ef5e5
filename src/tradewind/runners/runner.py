"""The seam of the runners: where trials are evaluated.

A `Runner` is a description that a user can write down; `open` brings it to life for one objective
as `Workers`. The loop talks to those from one thread. Time is theirs: `now()` may be virtual.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from tradewind.runners.run import Failure, Objective
from tradewind.types import Outcome, Trial, Usage


@dataclass(frozen=True)
class Lost:
    """An evaluation that went away with its worker, through no fault of its own."""

    reason: str


@dataclass(frozen=True)
class Stopped:
    """An evaluation that was stopped because it was told to, or was out of time."""

    reason: str


Result: TypeAlias = Outcome | Failure | Lost | Stopped

TOO_LATE = Stopped("there was no time left to begin")
OUT_OF_TIME = Stopped("it was not done in the time that was left")


def overtime(limit: float) -> str:
    """What is said of a trial that took longer than any may."""
    return f"a trial may take {limit:g} seconds, and this one took longer"


@dataclass(frozen=True)
class Done:
    """What became of a submitted trial, and what that took."""

    trial: Trial
    result: Result
    usage: Usage | None = None


@dataclass(frozen=True)
class TrialLimits:
    """What one evaluation may take, in seconds and in bytes with all its children; a trial that
    takes more is killed and has failed."""

    timeout: float | None = None
    memory: int | None = None


class Workers(Protocol):
    """A runner at work. A trial that is submitted comes back from `wait` exactly once."""

    @property
    def slots(self) -> int:
        """How many trials run at the same time."""
        ...

    @property
    def free(self) -> int:
        """How many more trials would start at once."""
        ...

    @property
    def synchronous(self) -> bool:
        """Whether trials go in rounds: all slots are filled when all are free."""
        ...

    @property
    def opened(self) -> float:
        """When they were opened, on their clock: a search is timed from then."""
        ...

    def submit(self, trial: Trial, *, within: float | None = None) -> None:
        """Start a trial. If it is not done `within` so many seconds it comes back as `Stopped`."""
        ...

    def wait(self, timeout: float | None = None) -> list[Done]:
        """Block until at least one trial is done or `timeout` seconds have passed, and give all
        that are done; with nothing running, return at once."""
        ...

    def stop(self, numbers: Iterable[int], reason: str) -> None:
        """Stop these trials if they still run; `wait` gives them as `Stopped`."""
        ...

    def now(self) -> float:
        """Seconds, on the clock by which these workers work; it never goes back."""
        ...

    def close(self) -> None:
        """End everything, also what still runs. May be called twice."""
        ...


class Runner(Protocol):
    """Where and how trials run."""

    def open(self, objective: Objective, limits: TrialLimits) -> Workers:
        """Start the workers for one objective."""
        ...
