"""The study: a thin object over log, strategy and loop.

Quality is maximized everywhere below; here the user's own sign and words come in and go out.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from tradewind import arguments as check
from tradewind.budget import Limits
from tradewind.checks import fraction, is_whole, one_of, or_none, positive
from tradewind.driver import Driver
from tradewind.errors import (
    ConfigError,
    NothingFinished,
    OutcomeError,
    StorageError,
    TrialError,
)
from tradewind.exports import DTYPES, columns, write_study
from tradewind.goals import Goal
from tradewind.history import History
from tradewind.log.log import Log
from tradewind.loop import Loop, Policy
from tradewind.progress import Progress
from tradewind.record import Record
from tradewind.results import Recommendation, frontier, recommendation, winner
from tradewind.runners.processes import ProcessRunner
from tradewind.runners.run import Objective, outcome
from tradewind.runners.runner import Runner, TrialLimits
from tradewind.runners.serial import SerialRunner
from tradewind.strategies.strategy import Strategy
from tradewind.types import Outcome, State, Trial

if TYPE_CHECKING:
    import pandas as pd

_logger = logging.getLogger("tradewind")

Callback: TypeAlias = Callable[["Study", Trial], None]


class Study:
    """Everything that happened in one search, and the way to go on. Made by `create_study`."""

    def __init__(
        self, log: Log, record: Record, *, goal: Goal, strategy: Strategy, name: str
    ) -> None:
        self.name, self.space, self.seed = name, record.space, record.seed
        self.direction: Literal["maximize", "minimize"] = (
            "maximize" if record.sign > 0 else "minimize"
        )
        self._driver = Driver(log, record, goal=goal, strategy=strategy)
        self._stops = 0

    @property
    def strategy(self) -> Strategy:
        """Whatever chooses the trials."""
        return self._driver.strategy

    def __repr__(self) -> str:
        trials = self.trials
        done = sum(t.finished for t in trials)
        return (
            f"<Study {self.name!r}: {len(trials)} trials, {done} finished, goal {self.goal}, "
            f"seed {self.seed}>"
        )

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

        Limits: `n_trials` trials of this call; `timeout` seconds; `max_cost`, the total of what
        its trials cost. Near a limit, trials are proposed that will stay within it, one that is
        expected not to is not started, and what still runs when it is reached is stopped and
        abandoned. `trial_timeout` (seconds) and `trial_memory` (bytes) are for each trial: one
        that exceeds them is killed and has failed.

        Where: one trial after the other in this process; with `n_workers` or `gpus` (a number of
        GPUs, or which), or limits for each trial, in worker processes, a `slots_per_gpu` of them
        sharing each GPU; or wherever `runner` says.

        Failures: an exception among `catch` makes a failed trial and the search goes on; any
        other is recorded and raised. A trial that fails is run again up to `max_retries` times.
        `on_error` says what a failure means: "penalize" believes it to be as bad as the worst
        result, "ignore" learns nothing from it, "raise" ends the search. A trial whose driver has
        died goes back to the queue when it has not been heard of for `lease` seconds.

        `show_progress=None` shows a bar at a terminal and in a notebook, and now and then a line
        elsewhere; True says more, False nothing."""
        if not callable(objective):
            raise TypeError(f"objective must be a function of a trial, but got {objective!r}")
        limits = Limits(
            check.count("n_trials", n_trials),
            check.limit("timeout", timeout),
            check.limit("max_cost", max_cost),
        )
        if limits == Limits():
            raise ValueError("optimize needs an end: give n_trials, timeout or max_cost")
        policy = Policy(
            check.exceptions(catch),
            one_of("on_error", on_error, ("penalize", "ignore", "raise")),
            check.count("max_retries", max_retries) or 0,
            positive("lease", lease),
        )
        each = TrialLimits(
            check.limit("trial_timeout", trial_timeout, positive),
            None if (m := check.limit("trial_memory", trial_memory, positive)) is None else int(m),
        )
        called = check.functions(callbacks)
        chosen = _runner(runner, n_workers, gpus, slots_per_gpu, each, limits.n_trials)
        stops = self._stops
        with closing(chosen.open(objective, each)) as workers:
            progress = Progress(
                total=limits.n_trials,
                timeout=limits.timeout,
                show=None if show_progress is None else bool(show_progress),
                best=lambda: self.best,
                clock=workers.now,
            )
            stopped, watch = lambda: self._stops > stops, _Watch(self, progress, called)
            with progress:
                Loop(self._driver, workers, limits, policy, stopped, watch).run()

    def _beyond_reference(self, trial: Trial) -> bool:
        """Say so if a trial costs more than a reference that the user never saw."""
        if not self._driver.goal.open or trial.cost is None or not trial.finished:
            return False
        reference = getattr(self.goal, "reference", None)
        if reference is None or trial.cost <= reference:
            return False
        _logger.warning(
            "trial %d cost %.3g, but all costs above %.3g, the largest of the initial design, "
            "count the same: give the goal a reference to say what is too much",
            trial.number,
            trial.cost,
            reference,
        )
        return True

    def stop(self) -> None:
        """Let `optimize` end after the trials that are running; for objectives and callbacks.

        It ends every `optimize` of this study that is under way, and none that begins later."""
        self._stops += 1

    # ---- owning the loop ----

    def ask(self, *, max_cost: float | None = None, lease: float | None = None) -> Trial:
        """The next trial to evaluate; report it with `tell` or `fail`.

        With `max_cost`, one that will stay within it, as far as the strategy can tell
        (`trial.expected_cost`). With a `lease`, a trial that is not reported within so many
        seconds goes back to the queue, unless `beat` renews the lease."""
        trial = self._driver.ask(
            max_cost=check.limit("max_cost", max_cost),
            lease=or_none(positive, "lease", lease),
        )
        return self._driver.with_rival(trial)

    def beat(self, trial: Trial | int, lease: float) -> None:
        """Keep an asked trial for `lease` seconds from now; a `TrialError` if it has been given to
        somebody else meanwhile, or has ended."""
        driver = trial.driver if isinstance(trial, Trial) else None
        self._driver.beat(self._number(trial), positive("lease", lease), driver=driver)

    def tell(
        self,
        trial: Trial | int,
        value: float | None = None,
        *,
        cost: float | None = None,
        folds: Iterable[float] | None = None,
    ) -> Trial:
        """Report what an asked trial achieved: its value (or one per fold) and its cost."""
        result = self._outcome(value, cost, folds)
        return self._driver.finish(self._number(trial), result)

    def fail(self, trial: Trial | int, reason: str = "failed") -> Trial:
        """Report that an asked trial gave no result, which counts as a bad one."""
        return self._driver.fail(self._number(trial), str(reason))

    def abandon(self, trial: Trial | int, reason: str = "abandoned") -> Trial:
        """Give up an asked trial; nothing is learned from it."""
        return self._driver.abandon(self._number(trial), str(reason))

    def requeue(self, trial: Trial | int, reason: str = "requeued") -> Trial:
        """Put an asked trial back, for the next who asks."""
        return self._driver.requeue(self._number(trial), str(reason))

    def add(
        self,
        params: Mapping[str, Any],
        value: float | None = None,
        *,
        cost: float | None = None,
        folds: Iterable[float] | None = None,
        train_size: float | None = None,
    ) -> Trial:
        """A result that you already have, as a finished trial. `train_size` is the fraction of the
        training set that it was trained with, all of it by default; where it is a parameter of the
        space, `params` says it."""
        size = self._train_size(train_size)
        return self._driver.add(params, self._outcome(value, cost, folds), size)

    def enqueue(self, params: Mapping[str, Any], *, train_size: float | None = None) -> None:
        """Have this configuration evaluated next, by default on all of the training set (see
        `add`); parameters left out are drawn at random."""
        self._driver.enqueue(params, self._train_size(train_size))

    def _train_size(self, given: float | None) -> float | None:
        size, name = or_none(fraction, "train_size", given), self.space.size_name
        if size is not None and name is not None:
            raise ConfigError(
                f"the training size is the parameter {name!r} here: give it in params"
            )
        return size

    def export(self, path: str | PathLike[str]) -> None:
        """Write the study to a file: `.jsonl` holds everything, for `import_study`; `.csv` is a
        table of the trials."""
        write_study(path, self._driver.log, self.trials, self.space)

    def _outcome(
        self, value: float | None, cost: float | None, folds: Iterable[float] | None
    ) -> Outcome:
        told = outcome({"value": value, "cost": cost, "folds": folds}, default_cost=None)
        goal = self._driver.goal
        if told.cost is None and goal.needs_cost:
            raise OutcomeError(f"the goal {goal} needs a cost, but got cost=None")
        return told

    def _number(self, trial: Trial | int) -> int:
        given: Any = getattr(trial, "number", trial)
        if not is_whole(given):
            raise TypeError(f"a trial or its number is needed, but got {trial!r}")
        number = int(given)
        known = self._driver.trial(number)
        if isinstance(trial, Trial):  # a user may have popped some of its params
            for name, value in trial.params.items():
                if name not in known.params or known.params[name] != value:
                    raise TrialError(
                        f"trial {number} of this study has other parameters: {known.params}, "
                        f"but got {trial.params}"
                    )
        return number

    # ---- what came of it ----

    @property
    def goal(self) -> Goal:
        """The goal; a reference cost that the data decide is shown once they have."""
        return self._settled(self._driver.goal, self._driver.state()[1])

    @property
    def trials(self) -> list[Trial]:
        """All trials by number, in any state."""
        return self._driver.trials()

    @property
    def best(self) -> Trial:
        """The finished trial that is best under the study's goal."""
        return self.best_for(self._driver.goal)

    def best_for(self, goal: Goal) -> Trial:
        """The finished trial that is best under any goal."""
        finished, history = self._priced(check.goal(goal))
        return winner(finished, history, self._settled(goal, history), self.strategy)

    def frontier(self) -> list[Trial]:
        """The efficient trials, cheapest first: of those that may win, none of the others is both
        better and cheaper."""
        return frontier(*self._finished(), self.strategy)

    def recommend(self) -> Recommendation:
        """What to train, by the model where it knows more than the best single result."""
        goal = self._driver.goal
        finished, history = self._priced(goal)
        return recommendation(finished, history, goal, self.strategy, self.space)

    def to_frame(self) -> pd.DataFrame:
        """All trials as a pandas data frame, one row each; `score` is what the goal maximizes."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install 'tradewind[pandas]'") from error
        trials, history = self._driver.state()
        goal = self._settled(self._driver.goal, history)
        score = np.full(len(trials), np.nan)
        score[[t.finished for t in trials]] = (
            goal.utility(history.quality, history.cost) if len(history.X) else []
        )
        table = columns(trials, self.space)
        frame = pd.DataFrame(table).astype(DTYPES)
        frame.insert(list(frame).index("cost") + 1, "score", score)
        return frame

    def _finished(self) -> tuple[list[Trial], History]:
        trials, history = self._driver.state()
        finished = [t for t in trials if t.finished]
        if not finished:
            failed = [t.error for t in trials if t.state is State.FAILED]
            why = f"; the last failure was:\n{failed[-1]}" if failed else ""
            raise NothingFinished(f"no trial of this study has finished{why}")
        return finished, history

    def _priced(self, goal: Goal) -> tuple[list[Trial], History]:
        """What has finished, for a goal that may need costs."""
        finished, history = self._finished()
        if goal.needs_cost and not np.isfinite(history.cost).any():
            raise NothingFinished(f"{goal} needs costs, but no finished trial has one")
        return finished, history

    def _settled(self, goal: Goal, history: History) -> Goal:
        """`goal` with a reference: its own, the study's, or the strategy's choice."""
        given = getattr(self._driver.goal, "reference", None)
        if given is not None:
            goal = goal.settle(np.array([given]))
        return self.strategy.settle(goal, history)


class _Watch:
    """Shows progress, warns of a reference that is too small, and calls the callbacks."""

    def __init__(self, study: Study, progress: Progress, callbacks: tuple[Callback, ...]) -> None:
        self._study, self._progress, self._callbacks = study, progress, callbacks
        self._warned = False

    def started(self, running: int) -> None:
        with suppress(StorageError):  # what is only shown ends no search
            self._progress.started(running)

    def done(self, trial: Trial, running: int) -> None:
        with suppress(StorageError):
            self._warned = self._warned or self._study._beyond_reference(trial)
            self._progress.done(trial, running)
        for callback in self._callbacks:
            callback(self._study, trial)


def _runner(
    runner: Runner | None,
    n_workers: int | None,
    gpus: int | Iterable[int | str] | None,
    slots_per_gpu: int,
    each: TrialLimits,
    n_trials: int | None,
) -> Runner:
    """What was given, or worker processes where anything asks for them, or this process."""
    if runner is not None:
        if n_workers is not None or gpus is not None or slots_per_gpu != 1:
            raise ValueError("a runner knows its workers: give either runner or n_workers and gpus")
        if isinstance(runner, type) or not callable(getattr(runner, "open", None)):
            raise TypeError(
                f"runner must be an object such as ProcessRunner(4), but got {runner!r}"
            )
        return runner
    if gpus is None and n_workers is None and slots_per_gpu == 1:
        return SerialRunner() if each == TrialLimits() else ProcessRunner(1)
    chosen = ProcessRunner(n_workers, gpus=gpus, slots_per_gpu=slots_per_gpu)
    if n_trials and chosen.n_workers is not None and n_trials < chosen.n_workers:
        return replace(chosen, n_workers=n_trials)
    return chosen
