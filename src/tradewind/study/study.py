"""The study, the front door: it checks the user's arguments and calls the session and the loop.

Values and costs are in the user's own sign and units here. `optimizer/history.py` turns values into
qualities that are maximized.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from tradewind import checks
from tradewind.checks import fraction, one_of, or_none, positive
from tradewind.engine.failures import Policy
from tradewind.engine.limits import Limits
from tradewind.engine.loop import Loop
from tradewind.engine.session import Session
from tradewind.errors import ConfigError, OutcomeError
from tradewind.log.events import Failed, Finished
from tradewind.runners.evaluate import read_outcome
from tradewind.runners.processes import ProcessRunner
from tradewind.runners.run import Objective
from tradewind.runners.runner import Runner, TrialLimits
from tradewind.runners.serial import SerialRunner
from tradewind.study.progress import Progress
from tradewind.study.results import StudyResults
from tradewind.types import Outcome, State, Trial

Callback: TypeAlias = Callable[["Study", Trial], None]


class Study(StudyResults):
    """One search: what happened in it so far, and how to continue it. `create_study` makes one."""

    def __init__(self, session: Session, *, name: str) -> None:
        super().__init__(session, name=name)
        self._stops = 0

    # ---- running ----

    def optimize(
        self,
        objective: Objective,
        n_trials: int | None = None,
        *,
        timeout: float | None = None,
        max_cost: float | None = None,
        n_workers: int | None = None,
        gpus: int | Iterable[int | str] | None = None,
        slots_per_gpu: int = 1,
        runner: Runner | None = None,
        trial_timeout: float | None = None,
        trial_memory: float | None = None,
        catch: type[BaseException] | tuple[type[BaseException], ...] = Exception,
        on_error: Literal["penalize", "ignore", "raise"] = "penalize",
        max_retries: int = 0,
        lease: float = 30.0,
        callbacks: Iterable[Callback] = (),
        show_progress: bool | None = None,
    ) -> None:
        """Evaluate `objective` on proposed trials until a limit is reached.

        Limits: `n_trials` of this call, `timeout` in seconds, and `max_cost`, the total cost of
        this call's trials. Near a limit, only trials that are expected to stay within it are
        started, and trials still running when it is reached are stopped and abandoned. For each
        trial, `trial_timeout` (seconds) and `trial_memory` (bytes) are limits too: a trial that
        exceeds them is killed and counts as failed.

        Where trials run: one after the other in this process; in worker processes if you give
        `n_workers`, `gpus` (how many, or which) or a limit for each trial, with `slots_per_gpu`
        workers sharing each GPU; or wherever `runner` says.

        Failures: an exception of a type in `catch` fails its trial, and the search goes on. Any
        other exception is recorded and raised. A failed trial is run again up to `max_retries`
        times. `on_error` says what a failure means: "penalize" treats it as a bad result, "ignore"
        learns nothing from it, and "raise" ends the search. If a driver dies, its trials go back to
        the queue `lease` seconds after it last renewed their leases.

        `show_progress=None` shows a bar in a terminal or a notebook, and an occasional line
        elsewhere; True shows more lines, False nothing."""
        if not callable(objective):
            raise TypeError(f"objective must be a function of a trial, but got {objective!r}")
        limits = Limits(
            checks.count("n_trials", n_trials),
            checks.limit("timeout", timeout),
            checks.limit("max_cost", max_cost),
        )
        if limits == Limits():
            raise ValueError("optimize needs an end: give n_trials, timeout or max_cost")
        policy = Policy(
            checks.exceptions(catch),
            one_of("on_error", on_error, ("penalize", "ignore", "raise")),
            checks.count("max_retries", max_retries) or 0,
            positive("lease", lease),
        )
        memory = checks.limit("trial_memory", trial_memory, positive)
        each = TrialLimits(
            checks.limit("trial_timeout", trial_timeout, positive),
            None if memory is None else int(memory),
        )
        functions = checks.callbacks(callbacks)
        where = _choose_runner(runner, n_workers, gpus, slots_per_gpu, each, limits.n_trials)
        stops = self._stops
        with closing(where.open(objective, each)) as workers:
            progress = Progress(
                total=limits.n_trials,
                timeout=limits.timeout,
                show=None if show_progress is None else bool(show_progress),
                study=self,
                callbacks=functions,
                clock=workers.now,
            )
            stopped = lambda: self._stops > stops  # noqa: E731
            with progress:
                Loop(self._session, workers, limits, policy, stopped, progress).run()

    def stop(self) -> None:
        """End every `optimize` of this study when its running trials have ended. Objectives and
        callbacks may call it."""
        self._stops += 1

    # ---- owning the loop ----

    def ask(self, *, max_cost: float | None = None, lease: float | None = None) -> Trial:
        """The next trial to evaluate. Report on it with `tell` or `fail`.

        With `max_cost`, the strategy proposes a trial that it expects to cost at most that much
        (see `trial.expected_cost`). With a `lease`, a trial that is not reported within that many
        seconds goes back to the queue, unless `beat` renews the lease."""
        trial = self._session.ask(
            max_cost=checks.limit("max_cost", max_cost), lease=or_none(positive, "lease", lease)
        )
        return self._session.with_rival(trial)

    def beat(self, trial: Trial | int, lease: float) -> None:
        """Keep an asked trial for `lease` seconds from now. Raises `TrialError` if it has ended, or
        if another driver holds it now."""
        number, params = _identify(trial)
        driver = trial.driver if isinstance(trial, Trial) else None
        self._session.renew(number, positive("lease", lease), driver=driver, params=params)

    def tell(
        self,
        trial: Trial | int,
        value: float | None = None,
        *,
        cost: float | None = None,
        folds: Iterable[float] | None = None,
    ) -> Trial:
        """Report the value of an asked trial (or its value on each fold) and its cost."""
        outcome = self._outcome(value, cost, folds)
        number, params = _identify(trial)
        return self._session.finish(number, outcome, params=params)

    def fail(self, trial: Trial | int, reason: str = "failed") -> Trial:
        """Report that an asked trial gave no result. It counts as a bad result."""
        number, params = _identify(trial)
        return self._session.fail(number, str(reason), params=params)

    def abandon(self, trial: Trial | int, reason: str = "abandoned") -> Trial:
        """Give up an asked trial. Nothing is learned from it."""
        number, params = _identify(trial)
        return self._session.abandon(number, str(reason), params=params)

    def requeue(self, trial: Trial | int, reason: str = "requeued") -> Trial:
        """Put an asked trial back into the queue, for whoever asks next."""
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
    ) -> Trial:
        """Add a result that you already have, as a finished trial.

        `train_size` is the fraction of the training set it was trained with, 1 by default; if the
        space has a `TrainSize`, give it in `params`. For a result that was `raced` (stopped after
        some of its folds), `value` is the estimate of the mean over all folds, and `share` is the
        part of the folds that `cost` covers."""
        outcome = replace(
            self._outcome(value, cost, folds),
            raced=checks.flag("raced", raced),
            share=fraction("share", share),
        )
        if outcome.share < 1.0 and not outcome.raced:
            raise ValueError(f"share is for raced results only, but got share={share!r}")
        return self._session.add(params, outcome, train_size=self._train_size(train_size))

    def add_trials(self, trials: Iterable[Trial]) -> list[Trial]:
        """Copy the finished and failed trials of another study, such as `other.trials`, with their
        costs, folds and usage. Trials in any other state are left out. If one of the trials does
        not fit this study, none is copied."""
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

    def _result_of(self, trial: Trial) -> Finished | Failed | None:
        """How a trial of another study ended; None if it neither finished nor failed."""
        if not isinstance(trial, Trial):
            raise TypeError(f"trials must be trials of a study, but got {trial!r}")
        if trial.state is State.FAILED:
            error = trial.error or ""
            return Failed(0, error, trial.cost, trial.penalized, trial.usage, trial.ended)
        if not trial.finished:
            return None
        outcome = self._outcome(trial.value, trial.cost, trial.folds)
        outcome = replace(outcome, raced=trial.raced, share=trial.share)
        return Finished(0, outcome, trial.usage, trial.ended)

    def enqueue(self, params: Mapping[str, Any], *, train_size: float | None = None) -> None:
        """Put this configuration into the queue, by default for the whole training set (see `add`).
        Parameters that you leave out are drawn at random."""
        self._session.enqueue(params, self._train_size(train_size))

    def _train_size(self, given: float | None) -> float | None:
        size, name = or_none(fraction, "train_size", given), self.space.size_name
        if size is not None and name is not None:
            raise ConfigError(
                f"the training size is the parameter {name!r} of this space: give it in params"
            )
        return size

    def _outcome(
        self, value: float | None, cost: float | None, folds: Iterable[float] | None
    ) -> Outcome:
        answer = {"value": value, "cost": cost, "folds": folds}
        outcome = read_outcome(answer, default_cost=None)
        goal = self._session.plan.goal
        if outcome.cost is None and goal.needs_cost:
            raise OutcomeError(f"the goal {goal} needs a cost, but got cost=None")
        return outcome


def _identify(trial: Trial | int) -> tuple[int, Mapping[str, Any] | None]:
    """The number of a trial, and its params if they are known. A user may have removed some."""
    if isinstance(trial, Trial):
        return trial.number, trial.params
    given: Any = getattr(trial, "number", trial)
    if not checks.is_whole(given):
        raise TypeError(f"a trial or its number is needed, but got {trial!r}")
    return int(given), None


def _choose_runner(
    runner: Runner | None,
    n_workers: int | None,
    gpus: int | Iterable[int | str] | None,
    slots_per_gpu: int,
    each: TrialLimits,
    n_trials: int | None,
) -> Runner:
    """The given runner, worker processes if any argument asks for them, or else this process."""
    if runner is not None:
        if n_workers is not None or gpus is not None or slots_per_gpu != 1:
            raise ValueError("a runner has its own workers: give runner, or n_workers and gpus")
        return checks.has_methods("runner", runner, ("open",), "ProcessRunner(4)")
    if gpus is None and n_workers is None and slots_per_gpu == 1:
        return SerialRunner() if each == TrialLimits() else ProcessRunner(1)
    chosen = ProcessRunner(n_workers, gpus=gpus, slots_per_gpu=slots_per_gpu)
    if n_trials and chosen.n_workers is not None and n_trials < chosen.n_workers:
        return replace(chosen, n_workers=n_trials)
    return chosen
