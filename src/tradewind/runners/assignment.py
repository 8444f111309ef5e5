"""What a runner on a cluster sends to the workers of that cluster, and what they do with it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from tradewind.runners.apart import evaluate_apart
from tradewind.runners.resources import VISIBLE
from tradewind.runners.runner import Done, TrialLimits
from tradewind.types import Trial


@dataclass(frozen=True)
class Assignment:
    """What a worker of a cluster must do with every trial: call the pickled objective, within
    limits, and on a GPU if the trials were given one."""

    blob: bytes
    limits: TrialLimits
    gpu: bool

    @property
    def device(self) -> str:
        return "cuda:0" if self.gpu else "cpu"

    def evaluate(
        self,
        trial: Trial,
        *,
        within: float | None,
        why_stop: Callable[[], str | None] | None = None,
    ) -> Done:
        """Evaluate a trial on this machine, in a process of its own beside the calling one."""
        return evaluate_apart(
            self.blob,
            trial,
            limits=self.limits,
            device=self.device if _sees_gpu() else "cpu",
            within=within,
            why_stop=why_stop,
        )


def _sees_gpu() -> bool:
    """Whether CUDA_VISIBLE_DEVICES shows this process a GPU. An unset variable shows none: a
    cluster that gives GPUs to trials sets it."""
    return os.environ.get(VISIBLE, "") not in ("", "-1", "NoDevFiles")
