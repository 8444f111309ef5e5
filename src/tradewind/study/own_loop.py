"""Owning the loop: asking for trials, reporting on them, and adding what is known already.

Values and costs are in the user's own sign and units here. `optimizer/history.py` turns values into
qualities that are maximized.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from tradewind import checks
from tradewind.checks import fraction, or_none, positive
from tradewind.engine.leases import renew_lease
from tradewind.engine.restore import Result, can_end, restore
from tradewind.engine.spool import catch_up, not_recorded, record_spooled
from tradewind.errors import ConfigError, OutcomeError, StorageError, TrialError
from tradewind.log.events import Failed, Finished
from tradewind.runners.clocks import CLOCKS
from tradewind.runners.messages import shorten
from tradewind.runners.outcomes import read_attributes, read_outcome
from tradewind.study.results import StudyResults
from tradewind.types import Outcome, State, Trial


class OwnLoop(StudyResults):
    """What a study offers to those who evaluate trials themselves."""

    def ask(self, *, max_cost: float | None = None, lease: float | None = None) -> Trial:
        """The next trial to evaluate. Report on it with `tell` or `fail`. Raises `StudyPaused`
        while the study is paused.

        With `max_cost`, the strategy proposes a trial that it expects to cost at most that much
        (see `trial.expected_cost`). With a `lease`, a trial that is not reported within that many
        seconds goes back to the queue, unless `beat` renews the lease.

        >>> trial = study.ask()
        >>> trial.state
        <State.RUNNING: 'running'>
        >>> cheap = study.ask(max_cost=20.0, lease=600.0)
        """
        trial = self._session.ask(
            max_cost=checks.limit("max_cost", max_cost), lease=or_none(positive, "lease", lease)
        )
        if self._session.spooled:
            catch_up(self._session)
        return self._session.with_rival(trial)

    def beat(self, trial: Trial | int, lease: float) -> None:
        """Keep an asked trial for `lease` seconds from now. Raises `TrialError` if it has ended, or
        if another driver holds it now.

        >>> trial = study.ask(lease=60.0)
        >>> study.beat(trial, lease=60.0)  # call it again and again, while the trial runs
        """
        number, params = _identify(trial)
        driver = trial.driver if isinstance(trial, Trial) else None
        renew_lease(self._session, number, positive("lease", lease), driver=driver, params=params)

    def tell(
        self,
        trial: Trial | int,
        value: float | None = None,
        *,
        cost: float | None = None,
        folds: Iterable[float] | None = None,
        costs: Mapping[str, float] | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> Trial:
        """Report the value of an asked trial (or its value on each fold) and its cost: the cost of
        one training. `costs` are further costs by name, and `attributes` is anything else that you
        want to keep, as JSON values.

        Telling the same result twice records it once. So if the store cannot be reached, you may
        tell it again. If you do not, it waits in a file, and is recorded when the store is back.

        >>> trial = study.ask()
        >>> told = study.tell(trial, value=0.91, cost=12.5, attributes={"f1": 0.88})
        >>> told.value, told.attributes["f1"]
        (0.91, 0.88)
        """
        outcome = self._outcome(value, cost, folds, costs, attributes)
        number, params = _identify(trial)
        with self._kept(Finished(number, outcome, at=self._session.clock()), params):
            return self._session.finish(number, outcome, params=params)

    def fail(self, trial: Trial | int, reason: str = "failed") -> Trial:
        """Report that an asked trial gave no result. It counts as a bad result. As with `tell`, the
        same report may be made again.

        >>> trial = study.ask()
        >>> study.fail(trial, "out of memory").error
        'out of memory'
        """
        number, params = _identify(trial)
        error = shorten(str(reason))
        with self._kept(Failed(number, error, at=self._session.clock()), params):
            return self._session.fail(number, error, params=params)

    @contextmanager
    def _kept(self, end: Finished | Failed, params: Mapping[str, Any] | None) -> Iterator[None]:
        """Keep a result that cannot be recorded, and record it once the store is back."""
        try:
            yield
        except StorageError as error:
            with suppress(TrialError):  # not a trial of this study, as far as we know
                trial = self._session.state.find(end.number, params)
                result = Result.of(trial, end)
                if can_end(trial, result):
                    raise not_recorded(self._session, [result], error) from error
            raise
        if self._session.spooled:
            catch_up(self._session)

    def abandon(self, trial: Trial | int, reason: str = "abandoned") -> Trial:
        """Give up a trial. Nothing is learned from it. If a search runs it, in this process or in
        another, it is stopped within a second.

        >>> trial = study.ask()
        >>> study.abandon(trial, "the machine is needed").state
        <State.ABANDONED: 'abandoned'>
        """
        number, params = _identify(trial)
        return self._session.abandon(number, str(reason), params=params)

    def requeue(self, trial: Trial | int, reason: str = "requeued") -> Trial:
        """Put an asked trial back into the queue, for whoever asks next.

        >>> trial = study.ask()
        >>> study.requeue(trial).state
        <State.WAITING: 'waiting'>
        >>> study.ask().number == trial.number
        True
        """
        number, params = _identify(trial)
        return self._session.requeue(number, str(reason), params=params)

    def add(
        self,
        params: Mapping[str, Any],
        value: float | None = None,
        *,
        cost: float | None = None,
        folds: Iterable[float] | None = None,
        train_size: float | None = None,
        raced: bool = False,
        share: float = 1.0,
        costs: Mapping[str, float] | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> Trial:
        """Add a result that you already have, as a finished trial; for `cost`, `costs` and
        `attributes` see `tell`.

        `train_size` is the fraction of the training set it was trained with, 1 by default; if the
        space has a `TrainSize`, give it in `params`. For a result that was `raced` (stopped after
        some of its folds), `value` is the estimate of the mean over all folds, and `share` is the
        part of the folds that `cost` covers.

        >>> study.add({"depth": 7, "rate": 0.5}, 0.94, cost=70.0)
        Trial(8, finished, {'depth': 7, 'rate': 0.5}, train_size=1, value=0.94, cost=70.0)
        """
        outcome = replace(
            self._outcome(value, cost, folds, costs, attributes),
            raced=checks.flag("raced", raced),
            share=fraction("share", share),
        )
        return self._session.add(params, outcome, train_size=self._train_size(train_size))

    def add_trials(self, trials: Iterable[Trial]) -> list[Trial]:
        """Copy the finished and failed trials of another study, such as `other.trials`, with their
        costs, folds and usage. Trials in any other state are left out. If one of the trials does
        not fit this study, none is copied.

        >>> other = tw.create_study(space, seed=1)
        >>> copies = other.add_trials(study.trials)
        >>> len(copies)
        8
        """
        if isinstance(trials, (Trial, StudyResults)) or not isinstance(trials, Iterable):
            raise TypeError(f"trials must be a list such as other.trials, but got {trials!r}")
        ended = [(trial, self._result_of(trial)) for trial in trials]
        copies = [(trial, result) for trial, result in ended if result is not None]
        for trial, _ in copies:
            self.space.validate(trial.params)
        sized = self.space.size_name is not None
        return [
            self._session.add(trial.params, result, train_size=None if sized else trial.train_size)
            for trial, result in copies
        ]

    def restore(self) -> list[Trial]:
        """Continue after `LogDiverged`: the store went back in time, for instance because a backup
        was restored. The study continues with what the store has now, and the results that this
        process knows and the store lacks are recorded again. Returns the trials they belong to.

        A result whose number was given to another configuration meanwhile gets a new number.
        Results that wait in a file because the store could not be reached are recorded, too.

        >>> study.restore()  # nothing was lost
        []
        """
        changed = [*restore(self._session), *record_spooled(self._session)]
        return [self._session.trial(number) for number in changed]

    def _result_of(self, trial: Trial) -> Finished | Failed | None:
        """How a trial of another study ended; None if it neither finished nor failed."""
        if not isinstance(trial, Trial):
            raise TypeError(f"trials must be trials of a study, but got {trial!r}")
        if trial.state is State.FAILED:
            error = trial.error or ""
            return Failed(0, error, trial.cost, trial.penalized, trial.usage, trial.ended)
        if not trial.finished:
            return None
        cost = trial.cost_of(self.cost_name)
        outcome = self._outcome(trial.value, cost, trial.folds, trial.costs, trial.attributes)
        outcome = replace(outcome, raced=trial.raced, share=trial.share, trainings=trial.trainings)
        return Finished(0, outcome, trial.usage, trial.ended)

    def enqueue(self, params: Mapping[str, Any], *, train_size: float | None = None) -> None:
        """Put this configuration into the queue, by default for the whole training set (see `add`).
        Parameters that you leave out are drawn at random.

        >>> study.enqueue({"depth": 3})  # the rate is drawn at random
        >>> study.ask().params["depth"]
        3
        """
        self._session.enqueue(params, self._train_size(train_size))

    def _train_size(self, given: float | None) -> float | None:
        size, name = or_none(fraction, "train_size", given), self.space.size_name
        if size is not None and name is not None:
            raise ConfigError(
                f"the training size is the parameter {name!r} of this space: give it in params"
            )
        return size

    def _outcome(
        self,
        value: float | None,
        cost: float | None,
        folds: Iterable[float] | None,
        costs: Mapping[str, float] | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> Outcome:
        if not isinstance(attributes, Mapping | None):
            raise TypeError(f"attributes must be a mapping, but got {attributes!r}")
        answer = {"value": value, "cost": cost, "folds": folds, "costs": costs}
        outcome = read_outcome(answer, cost_name=self.cost_name)
        goal = self._session.plan.goal
        if outcome.cost is None and goal.needs_cost and goal.by is None:
            raise OutcomeError(f"the goal {goal!r} needs a cost, but got cost=None")
        if outcome.cost is None and self.cost_name not in CLOCKS:
            raise OutcomeError(
                f"the cost of this study is {self.cost_name!r}: give it as cost, or in costs"
            )
        return replace(outcome, attributes=read_attributes(attributes or {}))


def _identify(trial: Trial | int) -> tuple[int, Mapping[str, Any] | None]:
    """The number of a trial, and its params if they are known. A user may have removed some."""
    if isinstance(trial, Trial):
        return trial.number, trial.params
    given: Any = getattr(trial, "number", trial)
    if not checks.is_whole(given):
        raise TypeError(f"a trial or its number is needed, but got {trial!r}")
    return int(given), None
