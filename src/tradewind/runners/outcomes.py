"""Reading what an objective returned, or what a user told the study."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from tradewind.bounds import ATTRIBUTES, MOST_FOLDS, attribute, check_cost
from tradewind.checks import finite, mean
from tradewind.errors import OutcomeError
from tradewind.output import logger as _logger
from tradewind.plain import shown
from tradewind.types import Outcome

if TYPE_CHECKING:
    from tradewind.data.folds import Folds

_WARNINGS = 10  # about the attributes of one trial
_KEYS = ("value", "cost", "folds", "costs")


def read_outcome(answer: Any, *, cost_name: str, reported: Folds | None = None) -> Outcome:
    """The outcome in an answer: a number, or a mapping with "value" or "folds" and optionally
    "cost" or "costs". Everything else in it becomes the attributes. Folds that were `reported` need
    not be returned.

    The cost is the one returned as "cost" or, by the name of the study's cost, in "costs". It is
    None if there is none."""
    entries = _as_mapping(answer, reported)
    given = entries.get("value")
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
    raced = reported is not None and reported.raced
    if reported is not None and raced:
        value = finite("value", value + reported.ahead)
    costs = read_costs(entries.get("costs"))
    cost = costs.get(cost_name)
    if entries.get("cost") is not None:
        cost = _read_cost("cost", entries["cost"])
    attributes = read_attributes({k: v for k, v in entries.items() if k not in _KEYS})
    return Outcome(value, cost, folds, raced, costs=costs, attributes=attributes)


def read_costs(given: Any) -> dict[str, float]:
    """Costs by name. One that is no number ≥ 0 is left out with a warning: the training is over,
    and its result must not be lost."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise OutcomeError(f'costs must be a mapping such as {{"money": 3.2}}, but got {given!r}')
    costs: dict[str, float] = {}
    for name, cost in given.items():
        try:
            costs[_name(name)] = _read_cost(name, cost)
        except Exception as error:  # a cost is the user's object, and may raise anything
            _logger.warning("the cost %s was left out: %s", shown(name), error)
    return costs


def read_attributes(given: Mapping[Any, Any]) -> dict[str, Any]:
    """Attributes as plain data. What JSON cannot express is left out with a warning."""
    attributes: dict[str, Any] = {}
    left, refused = ATTRIBUTES, 0
    for name, value in given.items():
        try:
            attributes[_name(name)], size = attribute(_name(name), value, left)
            left -= size
        except Exception as error:  # a value is the user's object, and may raise anything
            refused += 1
            if refused <= _WARNINGS:
                _logger.warning("the attribute %s was left out: %s", shown(name), error)
    if refused > _WARNINGS:
        _logger.warning("of %d attributes, %d were left out", len(given), refused)
    return attributes


def _as_mapping(answer: Any, reported: Folds | None) -> Mapping[Any, Any]:
    if answer is None and reported is None:
        raise OutcomeError(
            'a number or {"value": ..., "cost": ...} must be returned, but got None: '
            "does the function end with a return?"
        )
    if isinstance(answer, (tuple, list)):
        raise OutcomeError(
            f"value must be a finite number, but got {shown(answer)}: "
            'return {"value": ..., "cost": ...} or {"folds": [...]}'
        )
    return answer if isinstance(answer, Mapping) else {"value": answer}


def _list_of(given: Any) -> list[Any]:
    try:
        return list(islice(() if given is None else given, MOST_FOLDS + 1))  # maybe endless
    except TypeError:
        raise OutcomeError(f"folds must be a list of numbers, but got {shown(given)}") from None


def _read_cost(name: Any, given: Any) -> float:
    cost = finite(str(name), given)
    check_cost(str(name), cost)
    return cost


def _name(given: Any) -> str:
    if not isinstance(given, str):
        raise TypeError(f"names must be text, but got {shown(given)}")
    return str.__str__(given)
