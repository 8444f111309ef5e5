"""One evaluation: call the objective, and read what it returned."""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from tradewind.checks import finite, mean, shown
from tradewind.data.folds import Folds
from tradewind.errors import OutcomeError
from tradewind.runners.run import Objective, Params, Run
from tradewind.runners.runner import Failure
from tradewind.types import Outcome, Trial, Usage

_KEYS = ("value", "cost", "folds")


def evaluate(
    objective: Objective, trial: Trial, device: str = "cpu"
) -> tuple[Outcome | Failure, Usage]:
    """Call the objective. Whatever it raises or returns becomes an outcome or a failure."""
    now = partial(clock, device)
    run = Run(
        number=trial.number,
        params=Params(trial.params),
        settings=Params({n: v for n, v in trial.params.items() if n != trial.size_name}),
        seed=trial.seed,
        train_size=trial.train_size,
        device=device,
        trial=trial,
        clock=now,
    )
    cpu, begin = _cpu_seconds(), now()
    result: Outcome | Failure
    try:
        answer = objective(run)
    except BaseException as error:  # recorded as a failed trial; the loop decides what follows
        result = Failure(traceback.format_exc(), now() - begin, error)
    else:
        result = _read_answer(answer, run, now() - begin)
    return result, Usage(now() - begin, _cpu_seconds() - cpu, device=device)


def _read_answer(answer: Any, run: Run, seconds: float) -> Outcome | Failure:
    try:
        cost = seconds if run.timed is None else run.timed
        return read_outcome(answer, default_cost=cost, reported=run.reported)
    except OutcomeError as error:
        return Failure(f"the objective's answer cannot be used: {error}", seconds)
    except Exception:  # the answer is the user's object, and reading it may run their code
        return Failure(traceback.format_exc(), seconds)


def clock(device: str) -> float:
    """The time in seconds, after the GPU has finished what it was told: it works asynchronously.
    Only a GPU that PyTorch already uses in this process is waited for."""
    torch = sys.modules.get("torch")
    with suppress(Exception):  # a broken GPU shows up elsewhere
        if torch is not None and torch.cuda.is_initialized():
            torch.cuda.synchronize(device if device.startswith("cuda") else None)
    return time.perf_counter()


def _cpu_seconds() -> float:
    """CPU seconds of this process and of those of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def read_outcome(
    answer: Any, *, default_cost: float | None, reported: Folds | None = None
) -> Outcome:
    """What an objective returned, or a user tells: a number, or a mapping with "value" or "folds",
    and optionally "cost". Folds that were `reported` need not be returned."""
    if answer is None and reported is None:
        raise OutcomeError(
            'a number or {"value": ..., "cost": ...} must be returned, but got None: '
            "does the objective end with a return?"
        )
    if isinstance(answer, (tuple, list)):
        raise OutcomeError(
            f"value must be a finite number, but got {shown(answer)}: "
            'return {"value": ..., "cost": ...} or {"folds": [...]}'
        )
    if not isinstance(answer, Mapping):
        answer = {"value": answer}
    unknown = [key for key in answer if key not in _KEYS]
    if unknown:
        raise OutcomeError(
            f"an outcome has the keys {', '.join(_KEYS)}, but got {shown(unknown[0])}"
        )
    given, cost = answer.get("value"), answer.get("cost")
    folds = tuple(finite("every fold", v) for v in _list_of(answer.get("folds")))
    if reported is not None and not folds:
        if given is None and not reported.complete:
            raise OutcomeError(
                f"all {len(reported)} folds must be reported, but {len(reported.reported)} were: "
                "return a value if that is intended"
            )
        folds = reported.reported
    if given is None and not folds:
        raise OutcomeError(f"an outcome needs a value or folds, but got {shown(dict(answer))}")
    value = mean(folds) if given is None else finite("value", given)
    spent = _cost(default_cost if cost is None else cost)
    if reported is None or not reported.raced:
        return Outcome(value, spent, folds)
    value = finite("value", value + reported.ahead)
    share = len(reported.reported) / len(reported) if cost is None else 1.0
    return Outcome(value, spent, folds, True, share)


def _list_of(given: Any) -> list[Any]:
    if given is None:
        return []
    try:
        return list(given)
    except TypeError:
        raise OutcomeError(f"folds must be a list of numbers, but got {shown(given)}") from None


def _cost(given: Any) -> float | None:
    if given is None:
        return None
    cost = finite("cost", given)
    if cost < 0:
        raise OutcomeError(f"cost ≥ 0 must hold, but got {shown(given)}")
    return cost
