"""Recording results that the log of their study lacks.

Two things bring such results: a store that could not be reached when they came (spool.py), and a
store that went back to an earlier state after they were recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from tradewind.engine.session import Session
from tradewind.errors import ConfigError, StorageError
from tradewind.log.events import Claimed, Event, Failed, Finished, Proposed
from tradewind.log.state import OPEN, StudyState
from tradewind.types import Config, Origin, Outcome, State, Trial

_WORDS = {"space": "space", "sign": "direction", "cost_name": "cost"}


@dataclass(frozen=True)
class Result:
    """How a trial ended, and which configuration it had. `train_size` is None if a parameter of the
    space says it."""

    params: Config
    train_size: float | None
    end: Finished | Failed

    @classmethod
    def of(cls, trial: Trial, end: Finished | Failed) -> Result:
        """The result of a trial that ends like this."""
        sized = trial.size_name is not None
        return cls(dict(trial.params), None if sized else trial.train_size, end)


def result_of(trial: Trial) -> Result | None:
    """The result of a trial as the log has it; None if it neither finished nor failed."""
    if trial.state is State.FAILED:
        number, error, cost = trial.number, trial.error or "", trial.cost
        failed = Failed(number, error, cost, trial.penalized, trial.usage, trial.ended)
        return Result.of(trial, failed)
    if not trial.finished or trial.value is None:
        return None
    said = {each.name: getattr(trial, each.name) for each in fields(Outcome)}
    return Result.of(trial, Finished(trial.number, Outcome(**said), trial.usage, trial.ended))


def restore(session: Session) -> list[int]:
    """Accept the log as it is now, even if it was replaced, and put back what it lacks of the
    results that this session knows. Returns the numbers of the trials that have changed.

    If that fails, the session still knows them, and it can be tried again."""
    before = session.journal
    state = before.latest().state
    known = [result_of(trial) for trial in state.in_order()]
    now = before.reopened()
    _check_same_study(state, now.latest().state)
    try:
        session.use(now)
        return put_back(session, [result for result in known if result is not None])
    except BaseException:
        session.use(before)
        raise


def _check_same_study(known: StudyState, found: StudyState) -> None:
    for what in ("space", "sign", "cost_name"):
        if getattr(known, what) != getattr(found, what):
            raise StorageError(
                "the store has another study of this name, to which these results do not belong: "
                f"its {_WORDS[what]} is not the same"
            )


def put_back(session: Session, results: Sequence[Result]) -> list[int]:
    """Record what the log lacks of these results, all or none, and return the numbers of the trials
    that have changed.

    If the trial of a result still waits, runs or was abandoned, it ends like this. If the log has
    the result already, nothing is recorded. Otherwise somebody has used its number for another
    configuration, or ran it again, and the result becomes a trial of its own. So putting the same
    results back twice changes nothing."""
    checked = [_checked(session.state, result) for result in results]
    return session.record(lambda state: _decide(state, checked))


def _checked(state: StudyState, result: Result) -> Result:
    """The result, if this study can have it."""
    size = result.train_size
    if not state.allows_size(size):
        raise ConfigError(f"no trial of this study can have the training size {size!r}")
    return replace(result, params=state.space.validate(result.params))


def _decide(state: StudyState, results: Sequence[Result]) -> tuple[list[int], list[Event]]:
    """The numbers of the trials that change, and the events that change them."""
    known = _Known(state)
    changed: dict[int, Result] = {}
    events: list[Event] = []
    added = 0
    for result in results:
        if known.has(result):
            continue
        number = result.end.number
        if number in changed or not can_end(state.trials.get(number), result):
            number, added = state.claims + added, added + 1
            params, size = result.params, result.train_size
            proposed = Proposed(number, params, Origin.ADDED, state.position, train_size=size)
            events += [Claimed(number), proposed]
        events.append(replace(result.end, number=number))
        changed[number] = result
        known.add(result)
    return list(changed), events


class _Known:
    """The results that a log has. A result is one of them if its trial ended like this, or if
    another did at the same time: that is how a result looks that became a trial of its own."""

    def __init__(self, state: StudyState) -> None:
        self._by_number: dict[int, list[Result]] = {}
        self._by_time: dict[float | None, list[Result]] = {}
        for trial in state.trials.values():
            result = result_of(trial)
            if result is not None:
                self.add(result)

    def add(self, result: Result) -> None:
        self._by_number.setdefault(result.end.number, []).append(result)
        self._by_time.setdefault(result.end.at, []).append(result)

    def has(self, result: Result) -> bool:
        end = result.end
        near = [*self._by_number.get(end.number, ()), *self._by_time.get(end.at, ())]
        return any(is_same(result, other) for other in near)


def is_same(a: Result, b: Result) -> bool:
    """Whether both have the same configuration and say the same about it."""
    return a.params == b.params and said(a.end) == said(b.end)


def said(end: Finished | Failed) -> Outcome | str:
    """What a trial gave: an outcome or an error."""
    return end.outcome if isinstance(end, Finished) else end.error


def can_end(trial: Trial | None, result: Result) -> bool:
    """Whether a trial is the one that gave this result, and can still end like this."""
    if trial is None or dict(trial.params) != result.params:
        return False
    late = trial.state is State.ABANDONED and isinstance(result.end, Finished)
    return trial.state in OPEN or late
