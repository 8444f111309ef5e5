"""One evaluation: the live trial that an objective receives, and what becomes of its answer."""

from __future__ import annotations

import math
import os
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from tradewind.errors import OutcomeError
from tradewind.types import Config, Outcome, Trial, Usage

Objective: TypeAlias = Callable[["Run"], Any]

_KEYS = ("value", "cost", "folds")
_LONGEST = 200  # characters of a value that an error message shows


class Params(Config):
    """The active parameters of a trial; asking for another one says what there is."""

    def __missing__(self, name: object) -> Any:
        raise KeyError(f"{name!r} is not active in this trial, which has {', '.join(self)}")


class Run:
    """A trial while it runs: what an objective sees of it."""

    def __init__(self, trial: Trial, device: str = "cpu") -> None:
        self.device = device
        self.params: Config = Params(trial.params)
        self.number = trial.number
        self.seed = trial.seed
        self.train_size = trial.train_size
        self.timed: float | None = None
        self._timers = 0

    def __repr__(self) -> str:
        return f"Run(number={self.number}, params={self.params})"

    @contextmanager
    def timer(self) -> Iterator[None]:
        """Only the time spent inside counts as the cost; several uses add up."""
        begin = time.perf_counter()
        self._timers += 1
        try:
            yield
        finally:
            self._timers -= 1
            if not self._timers:  # a timer inside another is part of it
                self.timed = (self.timed or 0.0) + time.perf_counter() - begin


@dataclass(frozen=True)
class Failure:
    """An evaluation that gave no outcome. `raised` is the exception, where there was one."""

    error: str
    cost: float | None = None
    raised: BaseException | None = None


def evaluate(objective: Objective, trial: Trial, device: str = "cpu") -> Outcome | Failure:
    """Call the objective; whatever it raises or returns becomes an outcome or a failure."""
    run = Run(trial, device)
    begin = time.perf_counter()

    def spent() -> float:
        elapsed = time.perf_counter() - begin
        return elapsed if run.timed is None else run.timed

    try:
        answer = objective(run)
    except BaseException as error:  # recorded as a failed trial; the loop decides whether to go on
        return Failure(traceback.format_exc(), spent(), error)
    cost = spent()
    try:
        return outcome(answer, default_cost=cost)
    except OutcomeError as error:
        return Failure(f"the objective's answer cannot be used: {error}", cost)
    except Exception:  # the answer is an object of the user's, and reading it may run their code
        return Failure(traceback.format_exc(), cost)


def measured(
    objective: Objective, trial: Trial, device: str = "cpu"
) -> tuple[Outcome | Failure, Usage]:
    """`evaluate`, and what it took."""
    wall, cpu = time.perf_counter(), _cpu_seconds()
    result = evaluate(objective, trial, device)
    return result, Usage(time.perf_counter() - wall, _cpu_seconds() - cpu, device=device)


def _cpu_seconds() -> float:
    """Of this process and of those of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def outcome(answer: Any, *, default_cost: float | None) -> Outcome:
    """Read what an objective returned, or what a user tells: a number, or a mapping with
    "value" or "folds", and perhaps "cost"."""
    if answer is None:
        raise OutcomeError(
            'a number or {"value": ..., "cost": ...} must be returned, but got None: '
            "does the objective end with a return?"
        )
    if isinstance(answer, (tuple, list)):
        raise OutcomeError(
            f"value must be a finite number, but got {_shown(answer)}: "
            'return {"value": ..., "cost": ...} or {"folds": [...]}'
        )
    if not isinstance(answer, Mapping):
        return Outcome(_finite("value", answer), _cost(default_cost))
    unknown = [key for key in answer if key not in _KEYS]
    if unknown:
        raise OutcomeError(
            f"an outcome has the keys {', '.join(_KEYS)}, but got {_shown(unknown[0])}"
        )
    folds = tuple(_finite("every fold", v) for v in _sequence(answer.get("folds")))
    given = answer.get("value")
    if given is None and not folds:
        raise OutcomeError(f"an outcome needs a value or folds, but got {_shown(dict(answer))}")
    value = _mean(folds) if given is None else _finite("value", given)
    cost = answer.get("cost")
    return Outcome(value, _cost(default_cost if cost is None else cost), folds)


def _sequence(given: Any) -> list[Any]:
    if given is None:
        return []
    try:
        return list(given)
    except TypeError:
        raise OutcomeError(f"folds must be a list of numbers, but got {_shown(given)}") from None


def _mean(folds: tuple[float, ...]) -> float:
    try:
        return math.fsum(folds) / len(folds)
    except OverflowError:
        raise OutcomeError(f"the sum of folds must be finite, but got {_shown(folds)}") from None


def _finite(what: str, given: Any) -> float:
    item = getattr(given, "item", None)  # arrays and tensors of one element, of any library
    try:
        plain = item() if callable(item) else given
        number = math.nan if isinstance(plain, (str, bytes)) else float(plain)
    except (TypeError, ValueError, OverflowError, RuntimeError):  # the last is PyTorch's
        number = math.nan
    if not math.isfinite(number):
        raise OutcomeError(f"{what} must be a finite number, but got {_shown(given)}")
    return number


def _cost(given: Any) -> float | None:
    if given is None:
        return None
    cost = _finite("cost", given)
    if cost < 0:
        raise OutcomeError(f"cost ≥ 0 must hold, but got {_shown(given)}")
    return cost


def _shown(given: Any) -> str:
    """`given` for an error message, which must not fail in turn."""
    try:
        text = repr(given)
    except Exception:  # the user's own, or that of an integer with too many digits to print
        return f"an unprintable {type(given).__name__}"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
