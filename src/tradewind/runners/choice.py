"""Which runner the arguments of a search mean."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tradewind import checks
from tradewind.runners.processes import ProcessRunner
from tradewind.runners.runner import Runner, TrialLimits
from tradewind.runners.serial import SerialRunner


def choose_runner(
    runner: Runner | None,
    n_workers: int | None,
    gpus: int | Iterable[int | str] | None,
    slots_per_gpu: int,
    each: TrialLimits,
    n_trials: int | None,
) -> Runner:
    """The given runner, worker processes if any argument asks for them, or else this process."""
    if runner is not None:
        if n_workers is not None or gpus is not None or slots_per_gpu != 1:
            raise ValueError("a runner has its own workers: give runner, or n_workers and gpus")
        return checks.has_methods("runner", runner, ("open",), "ProcessRunner(4)")
    if gpus is None and n_workers is None and slots_per_gpu == 1:
        return SerialRunner() if each == TrialLimits() else ProcessRunner(1)
    chosen = ProcessRunner(n_workers, gpus=gpus, slots_per_gpu=slots_per_gpu)
    if n_trials and chosen.n_workers is not None and n_trials < chosen.n_workers:
        return replace(chosen, n_workers=n_trials)
    return chosen
