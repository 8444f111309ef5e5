"""What becomes of a trial that gave no outcome: it fails, runs again, or is abandoned."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from tradewind.engine.limits import Prices
from tradewind.engine.restore import Result
from tradewind.engine.session import Session
from tradewind.errors import BrokenObjective, TrialFailed
from tradewind.interrupts import Terminated
from tradewind.log.events import Failed, Finished
from tradewind.output import logger as _logger
from tradewind.runners.messages import shorten
from tradewind.runners.runner import Done, Failure, Lost, Stopped, cause
from tradewind.types import Outcome, State, Trial

# An objective that raises these wants to end its trial. They would end a program without a word.
_EXITS = (SystemExit, GeneratorExit)
_SHOWN = 5  # kinds of failures in a summary


@dataclass(frozen=True)
class Policy:
    """What to do about failures, and for how long a trial is leased. After `give_up_after` failures
    of the same kind, and none of its trials finished, a study has a broken objective. A store that
    does not answer is tried again for `patience` seconds."""

    catch: tuple[type[BaseException], ...] = (Exception,)
    on_error: Literal["penalize", "ignore", "raise"] = "penalize"
    max_retries: int = 0
    lease: float = 30.0
    give_up_after: int | None = 5
    patience: float = 30.0

    def catches(self, failure: Failure) -> bool:
        """Whether the search goes on after this failure."""
        return not failure.is_a(BaseException) or failure.is_a(*self.catch, *_EXITS)


def report(session: Session, policy: Policy, done: Done, prices: Callable[[], Prices]) -> Trial:
    """Report a result without an outcome, and return the trial. If it waits again, it will be run
    again. `prices` tells what trials have cost."""
    number = done.trial.number
    match done.result:
        case Failure(error) as failure:
            if _is_retried(policy, done.trial, failure):
                return _run_again(session.requeue(number, cause(error), mine=True), cause(error))
            penalize = policy.on_error == "penalize"
            cost = prices().cost_of(done.result, done.usage)
            return session.fail(number, error, cost, done.usage, penalize=penalize, mine=True)
        case Lost(reason):
            return _run_again(session.lose(number, reason), reason)
        case Stopped(reason):
            cost = prices().cost_of(done.result, done.usage)
            return session.abandon(number, f"stopped: {reason}", cost, mine=True)
    raise AssertionError(f"{done.result} is an outcome")


def results_of(
    unrecorded: Iterable[Done], policy: Policy, prices: Prices | None, *, at: float
) -> list[Result]:
    """The results that were not recorded, without those whose trials will run again anyway."""
    results = []
    for done in unrecorded:
        trial, usage = done.trial, done.usage
        match done.result:
            case Outcome() as outcome:
                results.append(Result.of(trial, Finished(trial.number, outcome, usage, at)))
            case Failure(raised=Terminated() | KeyboardInterrupt()):
                pass
            case Failure(error) as failure if not _is_retried(policy, trial, failure):
                cost = prices.cost_of(failure, usage) if prices else None
                penalize = policy.on_error == "penalize"
                end = Failed(trial.number, shorten(error), cost, penalize, usage, at)
                results.append(Result.of(trial, end))
    return results


def _is_retried(policy: Policy, trial: Trial, failure: Failure) -> bool:
    return trial.retries - trial.losses < policy.max_retries and policy.catches(failure)


def _run_again(trial: Trial, reason: str) -> Trial:
    if trial.state is State.WAITING:  # a trial that was lost too often is abandoned instead
        _logger.warning("trial %d runs again: %s", trial.number, reason)
    return trial


def raise_if_due(policy: Policy, failure: Failure, *, failed: bool) -> None:
    """Raise what must end the search: the exception, or the text of one of another process.
    `failed` is false for a trial that will run again, or that was ended elsewhere."""
    raised = failure.raised
    if not failed or (policy.catches(failure) and policy.on_error != "raise"):
        return
    if raised is None or failure.is_a(*_EXITS):
        said = cause(failure.error)
        text = failure.error if failure.error.startswith(said) else f"{said}\n\n{failure.error}"
        raise TrialFailed(text) from raised
    raise raised


class FailureTally:
    """The failures of one search, grouped by their cause."""

    def __init__(self) -> None:
        self._works = False  # whether any trial of the study has finished
        self._errors: dict[str, list[str]] = {}  # by cause, without the numbers in it

    def add(self, error: str) -> None:
        """Count a trial that failed with this error."""
        self._errors.setdefault(re.sub(r"\d+", "#", cause(error)), []).append(error)

    def check(self, session: Session, most: int | None) -> None:
        """Raise `BrokenObjective` if no trial of the study has finished and this many have failed
        in the same way."""
        errors = max(self._errors.values(), key=len, default=[])
        if self._works or most is None or len(errors) < most:
            return
        self._works = any(trial.finished for trial in session.read_state().trials.values())
        if self._works:
            return
        self._errors = {}  # the exception says it
        raise BrokenObjective(
            f"no trial has finished, and {len(errors)} have failed in the same way, so the search "
            f"was stopped. Correct the objective, or go on with give_up_after=None. "
            f"The first failure was:\n\n{errors[0].rstrip()}"
        )

    def log_summary(self, ended: int) -> None:
        """Log how many of the trials that ended have failed, and why."""
        groups = sorted(self._errors.values(), key=len, reverse=True)
        if groups:
            failed = sum(map(len, groups))
            kinds = [f"{len(group)} × {cause(group[0])}" for group in groups]
            if len(kinds) > _SHOWN:
                kinds[_SHOWN:] = [f"{len(kinds) - _SHOWN} other kinds"]
            _logger.warning("%d of %d trials failed: %s", failed, ended, "; ".join(kinds))
