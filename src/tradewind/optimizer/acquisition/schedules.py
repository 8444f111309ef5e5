"""Schedules for MGFI's t (H §5.3): small t exploits, large t explores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tradewind.checks import between, positive, whole

WIDEST = 50.0  # of log t: ten stds away, t is still a finite number


class Schedule(Protocol):
    """t as a function of the trial number."""

    def at(self, number: int, *, rng: np.random.Generator) -> float: ...


@dataclass(frozen=True)
class Linear:
    """t falls on a line from `start` at trial 0 to `end` at trial `horizon`, and stays there.

    >>> cooled = tw.strategies.MGFI(tw.strategies.Linear(start=2.0, end=0.1, horizon=100))
    """

    start: float = 2.0
    end: float = 0.1
    horizon: int = 1000

    def __post_init__(self) -> None:
        _check_cooling(self.start, self.end, self.horizon)

    def at(self, number: int, *, rng: np.random.Generator) -> float:
        share = min(number / self.horizon, 1.0)
        return self.start + (self.end - self.start) * share


@dataclass(frozen=True)
class Exponential:
    """t falls by the same factor with every trial, from `start` to `end` at trial `horizon`, and
    stays there.

    >>> cooled = tw.strategies.MGFI(tw.strategies.Exponential(start=2.0, end=0.1, horizon=100))
    """

    start: float = 2.0
    end: float = 0.1
    horizon: int = 1000

    def __post_init__(self) -> None:
        _check_cooling(self.start, self.end, self.horizon)

    def at(self, number: int, *, rng: np.random.Generator) -> float:
        share = min(number / self.horizon, 1.0)
        return float(self.start * (self.end / self.start) ** share)


@dataclass(frozen=True)
class LogNormal:
    """Every proposal draws a new t: mostly small, sometimes large (H §3).

    >>> drawn = tw.strategies.MGFI(tw.strategies.LogNormal(mean=0.0, std=1.0))
    """

    mean: float = 0.0  # of log t
    std: float = 1.0

    def __post_init__(self) -> None:
        between("mean", self.mean, -WIDEST, WIDEST)
        between("std", self.std, 0.0, WIDEST)

    def at(self, number: int, *, rng: np.random.Generator) -> float:
        return float(np.exp(self.mean + self.std * rng.standard_normal()))


def _check_cooling(start: float, end: float, horizon: int) -> None:
    positive("start", start)
    positive("end", end)
    whole("horizon", horizon, 1, 10**9)
