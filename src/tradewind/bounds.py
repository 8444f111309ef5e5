"""What a trial may report: the bounds of values, costs and attributes.

Outcomes check themselves with `check_outcome` when they are made, written and read. So there is one
check for what an objective returns, a worker answers, or a user tells, and for what is loaded: what
was written can be read. Whatever is within these bounds fits into a message of a worker.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tradewind.errors import OutcomeError
from tradewind.plain import plain, shown, write_json

LARGEST = 1e300  # of values and costs: the sum of 100 million of them is still a finite number
MESSAGE = 2**20  # bytes of all that a worker says about a trial
ATTRIBUTES = 32_000  # characters of all attributes as JSON, and of the names of all costs
MOST_FOLDS = 10_000
_MOST_TRAININGS = 10**9
_MOST_COSTS = 1_000  # further costs of a trial


def check_outcome(outcome: Any) -> None:
    """`OutcomeError` unless a trial can have this `Outcome`."""
    check_value("value", outcome.value)
    for value in outcome.folds:
        check_value("every fold", value)
    if len(outcome.folds) > MOST_FOLDS:
        raise OutcomeError(f"there may be up to {MOST_FOLDS} folds, but got {len(outcome.folds)}")
    if not 1 <= outcome.trainings <= _MOST_TRAININGS:
        raise OutcomeError(
            f"trainings must be a whole number from 1 to {_MOST_TRAININGS}, but got "
            f"{shown(outcome.trainings)}"
        )
    if outcome.share != 1.0 and not (outcome.raced and 0.0 < outcome.share < 1.0):
        raise OutcomeError(
            f"a share within (0, 1) is for raced results only, but got share={outcome.share!r}"
        )
    if outcome.cost is not None:
        # a model sees the cost of all folds, and a limit that of all trainings
        most = min(LARGEST * outcome.share, LARGEST / outcome.trainings)
        check_cost("cost", outcome.cost, most)
    costs = outcome.costs
    if len(costs) > _MOST_COSTS or sum(map(len, costs)) > ATTRIBUTES:
        raise OutcomeError(
            f"there may be up to {_MOST_COSTS} costs, with names of up to {ATTRIBUTES} characters "
            f"together, but got {shown(costs)}"
        )
    for name, cost in costs.items():
        check_cost(name, cost)


def check_value(name: str, value: float) -> None:
    """`OutcomeError` unless the value of a trial can be this number."""
    if not abs(float(value)) <= LARGEST:  # NaN is not
        raise OutcomeError(
            f"{name} must be a finite number within ±{LARGEST}, but got {shown(value)}"
        )


def check_cost(name: str, cost: float, most: float = LARGEST) -> None:
    """`OutcomeError` unless the cost of a trial can be this number."""
    if not 0.0 <= float(cost) <= most:
        raise OutcomeError(f"0 ≤ {name} ≤ {most:.3g} must hold, but got {shown(cost)}")


def attribute(name: str, given: Any, left: int = ATTRIBUTES) -> tuple[Any, int]:
    """An attribute as plain data, and how many of the characters that are left it takes as JSON."""
    value = plain(given, depth=1)  # it is stored in a mapping
    size = len(write_json({name: value}))
    if size > left:
        raise ValueError(
            f"all attributes of a trial may take {ATTRIBUTES} characters as JSON, "
            f"but {shown(name)} takes {size}"
        )
    return value, size


def check_attributes(given: Mapping[str, Any]) -> None:
    """ValueError unless a trial can have all these attributes."""
    left = ATTRIBUTES
    for name, value in given.items():
        left -= attribute(name, value, left)[1]
