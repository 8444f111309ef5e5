"""The runner that evaluates in the calling process, one trial after the other."""

from __future__ import annotations

from tradewind.runners.run import Failure, Objective, evaluate
from tradewind.types import Outcome, Trial


class SerialRunner:
    """Evaluates in this process, one trial at a time."""

    def __init__(self, objective: Objective) -> None:
        self._objective = objective
        self._waiting: list[Trial] = []

    @property
    def free(self) -> int:
        return 1 - len(self._waiting)

    def submit(self, trial: Trial) -> None:
        self._waiting.append(trial)

    def wait(self) -> list[tuple[Trial, Outcome | Failure]]:
        trials, self._waiting = self._waiting, []
        return [(trial, evaluate(self._objective, trial)) for trial in trials]

    def close(self) -> None:
        self._waiting = []
