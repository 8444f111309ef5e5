"""Time since a study began, without the pauses between its searches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradewind.charts.chart import Axis
from tradewind.study.figures.draw import counted
from tradewind.study.figures.facts import Facts
from tradewind.study.words import spoken
from tradewind.types import Array

_SHORTEST = 60.0  # seconds without a running trial, before they count as a pause


@dataclass(frozen=True)
class WorkingTime:
    """Clock times and the working times that belong to them, ascending; between two of them, time
    passes evenly. `pauses` are the seconds of each pause."""

    clock: Array
    working: Array
    pauses: tuple[float, ...]

    @classmethod
    def of(cls, facts: Facts) -> WorkingTime | None:
        """None if no trial has recorded a time."""
        spans = sorted(
            (
                t.ended if t.started is None else t.started,
                facts.made if t.ended is None else t.ended,
            )
            for t in facts.trials
            if t.started is not None or t.ended is not None
        )
        if not spans:
            return None
        longest = max(end - start for start, end in spans)  # type: ignore[operator]
        clock, working, pauses = [spans[0][0]], [0.0], list[float]()
        reached = spans[0][0]
        for start, end in spans:
            if start - reached > max(_SHORTEST, longest):  # type: ignore[operator]
                passed = reached - clock[-1]  # type: ignore[operator]
                pauses.append(start - reached)  # type: ignore[operator]
                clock += [reached, start]
                working += [working[-1] + passed] * 2
            reached = max(reached, end)  # type: ignore[type-var]
        working.append(working[-1] + reached - clock[-1])  # type: ignore[operator]
        clock.append(reached)
        return cls(np.array(clock, dtype=float), np.array(working), tuple(pauses))

    def at(self, times: Array) -> Array:
        """Seconds of working time at these clock times; NaN stays NaN."""
        return np.asarray(np.interp(times, self.clock, self.working))

    @property
    def total(self) -> float:
        return float(self.working[-1])

    @property
    def axis(self) -> Axis:
        pauses = f", without {counted(len(self.pauses), 'pause')}" if self.pauses else ""
        return Axis(f"time since the start{pauses}", format="seconds")

    @property
    def note(self) -> str:
        if not self.pauses:
            return ""
        if len(self.pauses) == 1:
            return f"A pause of {spoken(self.pauses[0])}, in which nothing ran, is left out."
        longest = spoken(max(self.pauses))
        return f"{len(self.pauses)} pauses of up to {longest}, in which nothing ran, are left out."
