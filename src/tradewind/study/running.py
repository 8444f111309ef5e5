"""What runs now, and when each trial is expected to end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tradewind.study.forecast import wall_seconds
from tradewind.types import State, Trial, Value

CLOCKS = ("wall", "cpu", "gpu")  # costs in seconds
_RECENT = 200  # of the latest finished trials say how long a trial takes


@dataclass(frozen=True)
class RunningTrial:
    """A trial that runs now: who runs it, since when, and when it should end (seconds since 1970;
    None where that is unknown)."""

    trial: int
    worker: str
    started: float | None
    expected_end: float | None
    params: Mapping[str, Value]


def running_trials(
    trials: Iterable[Trial], seconds: Mapping[int, float | None]
) -> list[RunningTrial]:
    """The running ones of these trials, the oldest start first. `seconds` says by number how long
    each is expected to take."""
    found = [
        RunningTrial(
            t.number, worker_name(t), t.started, _end(t, seconds.get(t.number)), dict(t.params)
        )
        for t in trials
        if t.state is State.RUNNING
    ]
    return sorted(found, key=lambda t: (t.started is None, t.started or 0.0, t.trial))


def worker_name(trial: Trial) -> str:
    """Who runs a trial: `host:process`, without the rest of its name."""
    return ":".join((trial.driver or "").split(":")[:2])


def expected_seconds(
    running: Sequence[Trial], ended: Iterable[Trial], costs: Mapping[int, float | None]
) -> dict[int, float | None]:
    """How long each running trial is expected to take, by number; None if no trial has finished.

    `costs` are predicted costs by number. Where the cost of the study is a clock, a trial takes its
    predicted cost times what finished trials took per second of cost: folds and whatever the clock
    leaves out are in that factor. Otherwise it takes as long as a trial usually does."""
    finished = [t for t in ended if t.finished][-_RECENT:]
    usual = _median([wall_seconds(t) for t in finished])
    factor = _median([_factor(t) for t in finished])
    expected: dict[int, float | None] = {}
    for trial in running:
        cost = costs.get(trial.number)
        expected[trial.number] = usual if cost is None or factor is None else cost * factor
    return expected


def _end(trial: Trial, seconds: float | None) -> float | None:
    if trial.started is None or seconds is None or not np.isfinite(seconds):
        return None
    return trial.started + seconds


def _factor(trial: Trial) -> float:
    """The seconds that a trial took per second of its cost; NaN if its cost is no time."""
    if trial.cost_name not in CLOCKS or not trial.cost:
        return np.nan
    return wall_seconds(trial) / trial.cost


def _median(values: Sequence[float]) -> float | None:
    known = [value for value in values if np.isfinite(value)]
    return float(np.median(known)) if known else None
