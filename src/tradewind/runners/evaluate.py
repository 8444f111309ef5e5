"""One evaluation: call the objective, and measure what it costs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tradewind.checks import suggest
from tradewind.errors import OutcomeError, ProgramFailed
from tradewind.plain import shown
from tradewind.runners.clocks import CLOCKS, REPORTED, Meter, uses_gpu
from tradewind.runners.messages import describe, shorten
from tradewind.runners.outcomes import read_outcome
from tradewind.runners.run import Objective, Run
from tradewind.runners.runner import Failure
from tradewind.types import Outcome, Trial, Usage


def evaluate(
    objective: Objective, trial: Trial, device: str = "cpu"
) -> tuple[Outcome | Failure, Usage]:
    """Call the objective. Whatever it raises or returns becomes an outcome or a failure.

    >>> from tradewind.runners.evaluate import evaluate
    >>> outcome, usage = evaluate(objective, study.trials[3])
    """
    run, meter = Run(trial, device), Meter(device)
    try:
        answer = objective(run)
    except ProgramFailed as error:  # it says what the program did; our own lines add nothing
        usage = meter.usage(run.fingerprint)
        return Failure(shorten(str(error)), usage.wall), usage
    except BaseException as error:  # recorded as a failed trial; the loop decides what follows
        usage = meter.usage(run.fingerprint)
        return Failure(describe(error), usage.wall, error), usage
    usage = meter.usage(run.fingerprint)
    try:
        return _read_answer(answer, run, usage)
    except OutcomeError as error:
        return Failure(f"the objective's answer cannot be used: {error}", usage.wall), usage
    except BaseException as error:  # the answer is the user's object: reading it may run their code
        return Failure(describe(error), usage.wall), usage


def _read_answer(answer: Any, run: Run, usage: Usage) -> tuple[Outcome, Usage]:
    """The outcome with its cost, reported or measured, and the usage with the clock of the cost."""
    trial = run.trial
    outcome = read_outcome(answer, cost_name=trial.cost_name, reported=run.reported)
    if trial.per_training:
        outcome = replace(outcome, trainings=max(1, len(outcome.folds)))
    clock = REPORTED
    if outcome.cost is None:
        cost, clock = _measured_cost(run, usage, outcome)
        outcome = replace(outcome, cost=cost)
        if outcome.raced and not trial.per_training:
            assert run.reported is not None
            share = len(run.reported.reported) / len(run.reported)
            outcome = replace(outcome, share=share)
    if run.timed is not None and run.clock and run.clock not in (clock, trial.cost_name):
        timed = {run.clock: run.timed / outcome.trainings}  # it is not the cost of this study
        outcome = replace(outcome, costs={**timed, **outcome.costs})
    return outcome, replace(usage, clock=clock)


def _measured_cost(run: Run, usage: Usage, outcome: Outcome) -> tuple[float, str]:
    """What one training has cost, and the clock that measured it."""
    name = run.trial.cost_name
    if name not in CLOCKS:
        wanted = f'{{"value": ..., "costs": {{{name!r}: ...}}}}'
        raise OutcomeError(
            f"the cost of this study is {name!r}{suggest(name, CLOCKS)}, so {wanted} "
            f"must be returned, but got costs={shown(dict(outcome.costs))}"
        )
    if name == "memory":
        if usage.memory is None:
            raise OutcomeError(
                "the cost of this study is peak memory, which this system does not tell: "
                'return {"value": ..., "costs": {"memory": ...}}'
            )
        return usage.memory, name
    clock = run.clock or name
    if clock == "gpu" and not uses_gpu():
        raise OutcomeError(
            "the cost is GPU time, but PyTorch uses no GPU in this process: "
            "move the model to trial.device, or use the clock 'wall' or 'cpu'"
        )
    seconds = run.timed
    if seconds is None:
        seconds = usage.cpu if clock == "cpu" and usage.cpu is not None else usage.wall
    return seconds / outcome.trainings, clock
