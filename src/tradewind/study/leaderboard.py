"""The best configurations of a study. Repeats of a configuration count as one, with an interval."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tradewind.data.estimates import Estimate, ResultNoise, mean_of_runs
from tradewind.html import table, table_lines
from tradewind.optimizer.history import History
from tradewind.optimizer.repeats import configurations, whole_runs
from tradewind.study.words import assigned, cost_amount, percent, plus_minus, unit_of_cost
from tradewind.types import FinishedTrial


@dataclass(frozen=True)
class Entry:
    """One configuration.

    - `trial`: its first trial that may win. `runs`: all its finished trials.
    - `value`: the mean over the runs, and its standard error if the noise of results is known. If
      some runs were raced, it is the mean over the others, and so is the cost.
    - `believed`: the value that it is believed to have. If results are noisy, this is closer to
      that of similar configurations than `value` is.
    - `cost`: the mean cost of one training; None if unknown."""

    trial: FinishedTrial
    runs: tuple[FinishedTrial, ...]
    value: Estimate
    believed: float
    cost: float | None


@dataclass(frozen=True, repr=False)
class Leaderboard:
    """The best configurations under a goal, best first. Printed, it is a table. `left_out` would
    be listed if they were not much like one that is.

    >>> board = study.leaderboard(3)
    >>> [entry.trial.number for entry in board]
    [4, 5, 3]
    """

    entries: tuple[Entry, ...]
    level: float
    by: str | None = None
    left_out: int = 0

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __getitem__(self, index: int) -> Entry:
        return self.entries[index]

    def __str__(self) -> str:
        lines = table_lines([self._columns(), *map(self._row, self.entries)])
        return "\n".join(filter(None, [*lines, self._note()]))

    def __repr__(self) -> str:
        return f"<Leaderboard of {len(self)} configurations>"

    def _repr_html_(self) -> str:
        return table(self._columns(), map(self._row, self.entries), note=self._note())

    def _columns(self) -> list[str]:
        value = next((e.trial.metric for e in self.entries if e.trial.metric), "value")
        return ["trial", "runs", value, "believed", "cost", "parameters"]

    def _note(self) -> str:
        known = any(entry.value.error is not None for entry in self.entries)
        n = self.left_out
        similar = f"{n} much like one of these {'is' if n == 1 else 'are'} left out"
        return "; ".join([f"± at {percent(self.level)}"] * known + [similar] * (n > 0))

    def _row(self, entry: Entry) -> list[str]:
        mean, margin = entry.value.mean, entry.value.margin(self.level)
        value = f"{mean:.4g}" if margin is None else plus_minus(mean, margin)
        unit = unit_of_cost(entry.trial, self.by)
        cost = "-" if entry.cost is None else cost_amount(entry.cost, unit)
        params = assigned(entry.trial.params)
        runs = str(len(entry.runs))
        return [str(entry.trial.number), runs, value, f"{entry.believed:.4g}", cost, params]


def leaderboard(
    trials: Sequence[FinishedTrial],
    history: History,
    believed: History,
    order: list[int],
    *,
    noise: ResultNoise | None,
    level: float,
    by: str | None,
    left_out: int,
) -> Leaderboard:
    """The entries of the trials in this `order`, of which each has another configuration. `noise`
    is that of one result."""
    numbers = configurations(history)
    entries = []
    for i in order:
        rows, cost = np.flatnonzero(numbers == numbers[i]), float(believed.cost[i])
        runs = tuple(trials[row] for row in rows.tolist())
        whole = whole_runs(history, rows)
        value = mean_of_runs((history.sign * history.quality[whole]).tolist(), noise)
        quality = float(history.sign * believed.quality[i])
        entries.append(Entry(trials[i], runs, value, quality, cost if cost == cost else None))
    return Leaderboard(tuple(entries), level, by, left_out)
