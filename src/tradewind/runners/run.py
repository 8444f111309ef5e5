"""One evaluation: the live trial that an objective receives, and what becomes of its answer."""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from tradewind.errors import OutcomeError
from tradewind.racing import ERROR
from tradewind.runners.folds import Folds
from tradewind.runners.reading import finite, mean, shown
from tradewind.subsets import subset
from tradewind.targets import Rows
from tradewind.types import Config, Outcome, Trial, Usage

Objective: TypeAlias = Callable[["Run"], Any]

_KEYS = ("value", "cost", "folds")


class Params(Config):
    """The active parameters of a trial; asking for another one says what there is."""

    def __missing__(self, name: object) -> Any:
        raise KeyError(f"{name!r} is not active in this trial, which has {', '.join(self)}")


class Run:
    """A trial while it runs: what an objective sees of it."""

    def __init__(self, trial: Trial, device: str = "cpu") -> None:
        self.device = device
        self.params: Config = Params(trial.params)
        self.settings: Config = Params(trial.settings)
        self.number = trial.number
        self.seed = trial.seed
        self.train_size = trial.train_size
        self.timed: float | None = None
        self._folds: Folds | None = None
        self._trial = trial
        self._timers = 0

    def __repr__(self) -> str:
        return f"Run(number={self.number}, params={self.params})"

    @contextmanager
    def timer(self) -> Iterator[None]:
        """Only the time spent inside counts as the cost; several uses add up. A GPU that PyTorch
        uses in this process is waited for before the clock is read."""
        begin = _clock(self.device)
        self._timers += 1
        try:
            yield
        finally:
            self._timers -= 1
            if not self._timers:  # a timer inside another is part of it
                self.timed = (self.timed or 0.0) + _clock(self.device) - begin

    def subset(self, y: Any, *, groups: Any = None, time: Any = None, kind: str = "auto") -> Rows:
        """The rows of this trial's training size: nested, and the same for all trials."""
        seed = self._trial.data_seed
        return subset(y, self.train_size, seed=seed, kind=kind, groups=groups, time=time)

    def folds(
        self,
        X: Any,
        y: Any = None,
        cv: Any = 5,
        *,
        groups: Any = None,
        time: Any = None,
        error: float | None = ERROR,
    ) -> Folds:
        """The folds of a cross-validation, the same for all trials of the study: go through them,
        and report each. What was reported is the outcome; nothing needs to be returned.

        `cv` is a number of folds (stratified where `y` has classes, whole groups where there are
        `groups`), a splitter of scikit-learn, or pairs of rows. The rows to train with are cut to
        the trial's training size as `subset` does; with `time`, or a `TimeSeriesSplit`, the latest
        are kept. The loop ends early where the trial
        is clearly behind the best one so far: `raced` says so, the value is then an estimate of the
        mean over all folds, and a measured cost what was really spent, of which a model knows
        that it is a part; a cost that is returned is taken as it is. A trial whose true mean is
        that of the best is stopped with a probability of at most `error` (the best of many is
        partly lucky, and looks better than it is: see racing.py); None stops none."""
        if self._folds is not None:
            raise OutcomeError("the folds of a trial can be asked for once")
        self._folds = Folds(self._trial, X, y, cv, groups=groups, time=time, error=error)
        return self._folds

    @property
    def raced(self) -> bool:
        """Whether the trial was stopped before its last fold."""
        return self._folds is not None and self._folds.raced


@dataclass(frozen=True)
class Failure:
    """An evaluation that gave no outcome, and the `seconds` that it took in all, whatever a timer
    saw of it and the unit of costs is. `raised` is the exception, where there was one."""

    error: str
    seconds: float | None = None
    raised: BaseException | None = None


def cause(error: str) -> str:
    """The line of a traceback that names the exception, or the first line of any other text."""
    lines = error.strip().splitlines() or [""]
    if not lines[0].startswith("Traceback"):
        return lines[0]
    last = max((i for i, line in enumerate(lines) if line.startswith('  File "')), default=0)
    behind = (line for line in lines[last + 1 :] if not line.startswith("  "))
    return next(behind, lines[-1])


def evaluate(objective: Objective, trial: Trial, device: str = "cpu") -> Outcome | Failure:
    """Call the objective; whatever it raises or returns becomes an outcome or a failure."""
    run = Run(trial, device)
    begin = _clock(device)
    try:
        answer = objective(run)
    except BaseException as error:  # recorded as a failed trial; the loop decides whether to go on
        return Failure(traceback.format_exc(), _clock(device) - begin, error)
    seconds = _clock(device) - begin
    try:
        cost = seconds if run.timed is None else run.timed
        return outcome(answer, default_cost=cost, reported=run._folds)
    except OutcomeError as error:
        return Failure(f"the objective's answer cannot be used: {error}", seconds)
    except Exception:  # the answer is an object of the user's, and reading it may run their code
        return Failure(traceback.format_exc(), seconds)


def measured(
    objective: Objective, trial: Trial, device: str = "cpu"
) -> tuple[Outcome | Failure, Usage]:
    """`evaluate`, and what it took."""
    wall, cpu = time.perf_counter(), _cpu_seconds()
    result = evaluate(objective, trial, device)
    return result, Usage(time.perf_counter() - wall, _cpu_seconds() - cpu, device=device)


def _clock(device: str) -> float:
    """The time in seconds, once the GPU has done what it was told: it works while Python goes on.
    Only a GPU that PyTorch has been using here is asked; nothing is imported for it."""
    torch = sys.modules.get("torch")
    with suppress(Exception):  # a GPU in trouble has shown, or will show, that elsewhere
        if torch is not None and torch.cuda.is_initialized():
            torch.cuda.synchronize(device if device.startswith("cuda") else None)
    return time.perf_counter()


def _cpu_seconds() -> float:
    """Of this process and of those of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def outcome(answer: Any, *, default_cost: float | None, reported: Folds | None = None) -> Outcome:
    """Read what an objective returned, or what a user tells: a number, or a mapping with
    "value" or "folds", and perhaps "cost". Folds that were `reported` need not be returned."""
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
    folds = tuple(finite("every fold", v) for v in _sequence(answer.get("folds")))
    if reported is not None and not folds:
        if given is None and not reported.complete:
            raise OutcomeError(
                f"all {len(reported)} folds must be reported, but {len(reported.reported)} were: "
                "return a value where that is meant"
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


def _sequence(given: Any) -> list[Any]:
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
