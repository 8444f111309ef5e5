"""One evaluation: call the objective, and read what it returned."""

from __future__ import annotations

import os
import traceback
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tradewind.checks import finite, mean
from tradewind.errors import OutcomeError
from tradewind.plain import shown
from tradewind.runners.run import Objective, Run, clock
from tradewind.runners.runner import Failure
from tradewind.types import Outcome, Trial, Usage

if TYPE_CHECKING:
    from tradewind.data.folds import Folds

_KEYS = ("value", "cost", "folds")


def evaluate(
    objective: Objective, trial: Trial, device: str = "cpu"
) -> tuple[Outcome | Failure, Usage]:
    """Call the objective. Whatever it raises or returns becomes an outcome or a failure."""
    run = Run(trial, device)
    cpu, begin = _cpu_seconds(), clock(device)
    result: Outcome | Failure
    try:
        answer = objective(run)
    except BaseException as error:  # recorded as a failed trial; the loop decides what follows
        result = Failure(traceback.format_exc(), clock(device) - begin, error)
    else:
        result = _read_answer(answer, run, clock(device) - begin)
    return result, Usage(clock(device) - begin, _cpu_seconds() - cpu, device=device)


def _read_answer(answer: Any, run: Run, seconds: float) -> Outcome | Failure:
    try:
        cost = seconds if run.timed is None else run.timed
        return read_outcome(answer, default_cost=cost, reported=run.reported)
    except OutcomeError as error:
        return Failure(f"the objective's answer cannot be used: {error}", seconds)
    except Exception:  # the answer is the user's object, and reading it may run their code
        return Failure(traceback.format_exc(), seconds)


def _cpu_seconds() -> float:
    """CPU seconds of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def read_outcome(
    answer: Any, *, default_cost: float | None, reported: Folds | None = None
) -> Outcome:
    """The outcome in what an objective returned, or in what a user told the study: a number, or a
    mapping with "value" or "folds" and optionally "cost". Folds that were `reported` need not be
    returned."""
    entries = _as_mapping(answer, reported)
    given, cost = entries.get("value"), entries.get("cost")
    folds = tuple(finite("every fold", v) for v in _list_of(entries.get("folds")))
    if reported is not None and not folds:
        if given is None and not reported.complete:
            raise OutcomeError(
                f"all {len(reported)} folds must be reported, but {len(reported.reported)} were: "
                "return a value if that is intended"
            )
        folds = reported.reported
    if given is None and not folds:
        raise OutcomeError(f"an outcome needs a value or folds, but got {shown(dict(entries))}")
    value = mean(folds) if given is None else finite("value", given)
    spent = _read_cost(default_cost if cost is None else cost)
    if reported is None or not reported.raced:
        return Outcome(value, spent, folds)
    value = finite("value", value + reported.ahead)
    share = len(reported.reported) / len(reported) if cost is None else 1.0
    return Outcome(value, spent, folds, True, share)


def _as_mapping(answer: Any, reported: Folds | None) -> Mapping[Any, Any]:
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
        return {"value": answer}
    unknown = [key for key in answer if key not in _KEYS]
    if unknown:
        raise OutcomeError(
            f"an outcome has the keys {', '.join(_KEYS)}, but got {shown(unknown[0])}"
        )
    return answer


def _list_of(given: Any) -> list[Any]:
    if given is None:
        return []
    try:
        return list(given)
    except TypeError:
        raise OutcomeError(f"folds must be a list of numbers, but got {shown(given)}") from None


def _read_cost(given: Any) -> float | None:
    if given is None:
        return None
    cost = finite("cost", given)
    if cost < 0:
        raise OutcomeError(f"cost ≥ 0 must hold, but got {shown(given)}")
    return cost
