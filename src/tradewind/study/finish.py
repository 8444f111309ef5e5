"""Ending well: train the chosen model once, and look at the test set once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tradewind import checks
from tradewind.errors import AlreadyTested, OutcomeError
from tradewind.goals.text import AnyGoal
from tradewind.html import paragraph
from tradewind.log.events import Event, FinalTested, FinalTrained
from tradewind.log.state import StudyState
from tradewind.runners.clocks import Meter
from tradewind.runners.outcomes import read_outcome
from tradewind.runners.run import Run
from tradewind.study.words import share, spoken
from tradewind.types import FinishedTrial, Trial

if TYPE_CHECKING:
    from tradewind.study.results import StudyResults


@dataclass(frozen=True, repr=False)
class Final:
    """The final model and its result on the test set.

    - `trial`: the trial whose configuration and training size were used.
    - `value`: the result on the test set; None if the test began and its result was never recorded.
    - `cost`: the seconds that training took, all of them or those inside `run.timer()`.
    - `attributes`: whatever else the test returned.
    - `looks`: how often the test set has been looked at, this time included.
    - `model`: what `train` returned; None in a study that was loaded.

    >>> final = study.finish(lambda trial: "a model", lambda model: 0.93)
    >>> final.trial.number, final.value, final.looks
    (4, 0.93, 1)
    """

    trial: FinishedTrial
    value: float | None
    cost: float | None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    looks: int = 1
    model: Any = field(default=None, compare=False)

    def __str__(self) -> str:
        size = f" on {share(self.trial.train_size)}" * (self.trial.train_size < 1.0)
        trained = f"trial {self.trial.number}, trained again{size}"
        cost = "" if self.cost is None else f" in {spoken(self.cost)}"
        if self.value is None:
            return f"{trained}{cost}: its test began, but no result was recorded"
        result = f"{self.value:.4g} on the test set, {self.trial.value:.4g} in the search"
        note = f" (look {self.looks} at the test set: the best of several looks is partly luck)"
        return f"{trained}{cost}: {result}" + note * (self.looks > 1)

    def __repr__(self) -> str:
        return f"<Final: {self}>"

    def _repr_html_(self) -> str:
        return paragraph(str(self))


def finish(
    study: StudyResults,
    train: Callable[[Run], Any],
    test: Callable[[Any], Any],
    *,
    goal: AnyGoal | None,
    trial: Trial | int | None,
    again: bool,
) -> Final:
    """Train the chosen configuration and test the model, with a record of both."""
    for name, function in (("train", train), ("test", test)):
        if not callable(function):
            raise TypeError(f"{name} must be a function, but got {function!r}")
    checks.flag("again", again)
    session = study._session
    chosen = study._knowledge.best(goal) if trial is None else study._knowledge.find(trial)
    _check_first(session.read_state(), again=again)  # before the training is paid for
    run = Run(chosen)
    meter = Meter(run.device)
    model = train(run)
    cost = meter.usage().wall if run.timed is None else run.timed

    def begin_look(state: StudyState) -> tuple[int, list[Event]]:
        _check_first(state, again=again)
        return len(state.looks), [FinalTrained(chosen.number, cost, session.clock())]

    look = session.record(begin_look)
    answer = test(model)
    try:
        outcome = read_outcome(answer, cost_name=chosen.cost_name)
    except OutcomeError as error:
        raise OutcomeError(f"the answer of test cannot be used: {error}") from None
    tested = FinalTested(look, outcome.value, dict(outcome.attributes), session.clock())
    session.record(lambda state: (None, [tested]))
    return Final(chosen, outcome.value, cost, tested.attributes, look + 1, model)


def recorded(state: StudyState) -> Final | None:
    """The latest final model in the log; None if there is none."""
    if not state.looks:
        return None
    trained, tested = state.looks[-1]
    trial = state.trials[trained.number]
    assert isinstance(trial, FinishedTrial)
    value, attributes = (None, {}) if tested is None else (tested.value, dict(tested.attributes))
    return Final(trial, value, trained.cost, attributes, len(state.looks))


def _check_first(state: StudyState, *, again: bool) -> None:
    if again or not state.looks:
        return
    trained, tested = state.looks[-1]
    try:
        when = "" if trained.at is None else time.strftime(" on %Y-%m-%d", time.gmtime(trained.at))
    except (OverflowError, OSError, ValueError):  # beyond the calendar
        when = ""
    got = "and its result was never recorded: the test failed, or its process ended"
    if tested is not None:
        got = f"and gave {tested.value:.4g}"
    raise AlreadyTested(
        f"the test set may be looked at once, but it was looked at{when} for trial "
        f"{trained.number}, {got}. To look again, pass again=True; choosing a model by its test "
        "result makes that result too good to be true"
    )
