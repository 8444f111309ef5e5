"""The study, the front door: it checks the user's arguments and runs the loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import replace
from typing import Any, Literal, Never, TypeAlias

from tradewind import checks
from tradewind.amounts import size
from tradewind.checks import one_of, or_none, positive
from tradewind.engine.failures import Policy
from tradewind.engine.limits import Limits
from tradewind.engine.loop import Loop
from tradewind.engine.session import Session
from tradewind.engine.signals import Signals
from tradewind.engine.steering import Pause, pause, paused, resume
from tradewind.goals.text import AnyGoal, read_goal
from tradewind.optimizer.stopping import StoppingRule
from tradewind.runners.processes import ProcessRunner
from tradewind.runners.run import Objective, Run
from tradewind.runners.runner import Runner, TrialLimits
from tradewind.runners.serial import SerialRunner
from tradewind.study.compare import LEVEL
from tradewind.study.confirm import Confirmation, Unraced, confirm
from tradewind.study.finish import Final, finish
from tradewind.study.own_loop import OwnLoop
from tradewind.study.progress import Progress
from tradewind.types import Trial

Callback: TypeAlias = Callable[["Study", Trial], None]

_ADVICE = {  # for keywords of other tools
    "n_jobs": "write n_workers=4, the number of worker processes",
    "gc_after_trial": "with n_workers=1, trials run in a process of their own",
    "show_progress_bar": "write show_progress=True",
    "n_iter": "write n_trials=100",
    "max_evals": "write n_trials=100",
}


class Study(OwnLoop):
    """One search: what happened in it so far, and how to continue it. `create_study` makes one.
    The examples of its methods go on with this study:

    >>> def objective(trial):
    ...     depth = trial.params["depth"]
    ...     return {"value": 0.95 - (depth - 6) ** 2 / 100, "cost": 10.0 * depth}
    >>> space = tw.Space({"depth": tw.Int(1, 8), "rate": tw.Float(0.01, 1.0, log=True)})
    >>> goal = tw.Tradeoff(alpha=0.1, reference=60.0)
    >>> study = tw.create_study(space, goal=goal, seed=0, name="reviews")
    >>> for depth in range(1, 9):
    ...     study.enqueue({"depth": depth, "rate": 0.1})
    >>> study.optimize(objective, n_trials=8)
    >>> print(study.explain(tw.Quality()))
    Trial 5 has the best value: 0.95 at a cost of 60.
    """

    def __init__(self, session: Session, *, name: str) -> None:
        super().__init__(session, name=name)
        self._stops = 0

    # ---- running ----

    def optimize(
        self,
        objective: Objective,
        n_trials: int | None = None,
        *,
        timeout: float | str | None = None,
        max_cost: float | None = None,
        n_workers: int | None = None,
        gpus: int | Iterable[int | str] | None = None,
        slots_per_gpu: int = 1,
        runner: Runner | None = None,
        trial_timeout: float | str | None = None,
        trial_memory: float | str | None = None,
        catch: type[BaseException] | tuple[type[BaseException], ...] = Exception,
        on_error: Literal["penalize", "ignore", "raise"] = "penalize",
        max_retries: int = 0,
        give_up_after: int | None = 5,
        lease: float = 30.0,
        patience: float | str | None = 30.0,
        only_queued: bool = False,
        stop: StoppingRule | Iterable[StoppingRule] | None = None,
        callbacks: Iterable[Callback] = (),
        show_progress: bool | None = None,
        **unknown: Never,
    ) -> None:
        """Evaluate `objective` on proposed trials until a limit is reached.

        Limits: `n_trials` of this call, `timeout` in seconds or as text such as "2h", and
        `max_cost`, the total cost of this call's trials with all their folds. Near a limit, only
        trials that are expected to stay within it are started, and trials still running when it is
        reached are stopped and abandoned. For each trial, `trial_timeout` (seconds) and
        `trial_memory` (bytes, or "500MB") are limits too: a trial that exceeds them is killed and
        counts as failed. With `only_queued`, the search ends when the queue is empty.

        Where trials run: one after the other in this process; in worker processes if you give
        `n_workers`, `gpus` (how many, or which) or a limit for each trial, with `slots_per_gpu`
        workers sharing each GPU; or wherever `runner` says.

        Failures: an exception of a type in `catch` fails its trial, and the search goes on; so does
        `sys.exit()`. Any other exception is recorded and raised; one of a worker, as `TrialFailed`.
        A failed trial is run again up to `max_retries` times. `on_error` says what a failure means:
        "penalize" treats it as a bad result, "ignore" learns nothing from it, and "raise" ends the
        search. If a driver dies, its trials go back to the queue `lease` seconds after it last
        renewed their leases. If no trial of the study has finished and `give_up_after` trials have
        failed in the same way, `BrokenObjective` is raised with the first error; None never gives
        up. At the end, a warning says how many trials failed and why.

        If the store does not answer, it is tried again for `patience` (seconds, or text such as
        "10m"; None for ever). Then the search ends, and results that could not be recorded wait in
        a file, which the next `optimize` or `restore` records.

        `stop` is a rule, or several, that may end the search earlier. It is asked after each
        result, and `study.stopped` then says why. While the study is paused (`pause`), nothing is
        started, but the limits still count.

        `show_progress=None` shows a bar in a terminal or a notebook, and an occasional line
        elsewhere; True shows more lines, False nothing.

        >>> study.optimize(objective, n_trials=2)
        >>> len(study.trials)
        10
        >>> study.optimize(objective, timeout="2h", stop=tw.stopping.NoImprovement(trials=3))
        """
        if unknown:
            raise checks.unknown_keyword(self.optimize, unknown, _ADVICE)
        if not callable(objective):
            raise TypeError(f"objective must be a function of a trial, but got {objective!r}")
        limits = Limits(
            checks.count("n_trials", n_trials),
            checks.limit("timeout", checks.seconds("timeout", timeout)),
            checks.limit("max_cost", max_cost),
            checks.flag("only_queued", only_queued),
        )
        rules = checks.stopping_rules(stop, self._session.plan.goal)
        if limits == Limits() and not rules:
            raise ValueError("optimize needs a limit: give n_trials, timeout, max_cost or stop")
        if limits.max_cost is not None and self.cost_name == "memory":
            raise ValueError(
                "max_cost adds up the costs of trials, but the cost of this study is peak memory: "
                "give n_trials or timeout, and trial_memory for each trial"
            )
        policy = Policy(
            checks.exceptions(catch),
            one_of("on_error", on_error, ("penalize", "ignore", "raise")),
            checks.count("max_retries", max_retries) or 0,
            positive("lease", lease),
            or_none(checks.whole, "give_up_after", give_up_after, 1),
            checks.patience("patience", patience),
        )
        if isinstance(trial_memory, str):
            trial_memory = size("trial_memory", trial_memory)
        memory = checks.limit("trial_memory", trial_memory, positive)
        each = TrialLimits(
            checks.limit("trial_timeout", checks.seconds("trial_timeout", trial_timeout), positive),
            None if memory is None else int(memory),
        )
        functions = checks.callbacks(callbacks)
        where = _choose_runner(runner, n_workers, gpus, slots_per_gpu, each, limits.n_trials)
        stops = self._stops
        with Signals() as signals, closing(where.open(objective, each)) as workers:
            signals.listen()
            progress = Progress(
                total=limits.n_trials,
                timeout=limits.timeout,
                show=None if show_progress is None else bool(show_progress),
                study=self,
                callbacks=functions,
                clock=workers.now,
            )
            stopped = lambda: self._stops > stops  # noqa: E731
            loop = Loop(self._session, workers, limits, policy, stopped, progress, rules, signals)
            try:
                with progress:
                    loop.run()
            finally:
                loop.log_failures(shown=progress.bar is not None)

    def stop(self) -> None:
        """End every `optimize` of this study when its running trials have ended. Objectives and
        callbacks may call it.

        >>> def stop_when_good(study, trial):
        ...     if trial.value is not None and trial.value > 0.8:
        ...         study.stop()
        >>> study.optimize(objective, n_trials=100, callbacks=[stop_when_good])
        >>> len(study.trials) < 20
        True
        """
        self._stops += 1

    @property
    def stopped(self) -> str | None:
        """Why a stopping rule ended the last search; None if it ended otherwise.

        >>> study.optimize(objective, 50, stop=tw.stopping.NoImprovement(trials=3, min_trials=5))
        >>> print(study.stopped)
        the last 3 trials have not improved the best one
        """
        return self._session.read_state().stopped

    # ---- steering: from any process that has the study open ----

    def pause(self, reason: str = "") -> None:
        """Start nothing more, in any process, until `resume`. Running trials go on. The pause is
        stored with the study, so it outlives every process.

        >>> study.pause("the cluster is needed for something else")
        >>> print(study.paused.reason)
        the cluster is needed for something else
        """
        if not isinstance(reason, str):
            raise TypeError(f"reason must be text, but got {reason!r}")
        pause(self._session, reason)

    def resume(self) -> None:
        """Go on after a `pause`.

        >>> study.pause()
        >>> study.resume()
        >>> study.paused is None
        True
        """
        resume(self._session)

    @property
    def paused(self) -> Pause | None:
        """Why the study is paused, and since when; None if it is not.

        >>> study.paused is None
        True
        >>> study.pause("lunch")
        >>> study.paused.reason
        'lunch'
        """
        return paused(self._session)

    def change_goal(self, goal: AnyGoal) -> None:
        """Search with another goal from the next proposal on, in every process. A goal of your own
        is stored by its name only, so other processes must be given it when they load the study.

        >>> study.change_goal("quality")
        >>> print(study.explain())
        Trial 5 has the best value: 0.95 at a cost of 60.
        """
        self._session.change_goal(read_goal(goal))

    # ---- ending well ----

    def confirm(
        self,
        objective: Objective,
        top: int = 5,
        *,
        repeats: int = 3,
        goal: AnyGoal | None = None,
        level: float = LEVEL,
        timeout: float | str | None = None,
        n_workers: int | None = None,
        gpus: int | Iterable[int | str] | None = None,
        slots_per_gpu: int = 1,
        runner: Runner | None = None,
        max_retries: int = 0,
        patience: float | str | None = 30.0,
        show_progress: bool | None = None,
    ) -> Confirmation:
        """Run the `top` configurations under a goal again, each `repeats` times with another seed,
        and report their means with intervals that hold with probability `level`.

        The repeats are ordinary trials of the study, and none is stopped after some of its folds.
        If this is interrupted, or called again, only the repeats that are missing are run. Whatever
        else waits in the queue is run too. The other arguments are those of `optimize`.

        >>> print(study.confirm(objective, top=2, repeats=2))
        trial     value  runs  cost  against the winner
            4  0.94 ± 0     2    50  winner
            5  0.95 ± 0     2    60  1 point better: probably real
        4 runs finished; ± at 90%
        """
        unraced = Unraced(objective)

        def run(count: int) -> None:
            self.optimize(
                unraced,
                count,
                only_queued=True,
                timeout=timeout,
                n_workers=n_workers,
                gpus=gpus,
                slots_per_gpu=slots_per_gpu,
                runner=runner,
                max_retries=max_retries,
                patience=patience,
                show_progress=show_progress,
            )

        return confirm(self, run, top=top, repeats=repeats, goal=goal, level=level)

    def finish(
        self,
        train: Callable[[Run], Any],
        test: Callable[[Any], Any],
        *,
        goal: AnyGoal | None = None,
        trial: Trial | int | None = None,
        again: bool = False,
    ) -> Final:
        """Train the chosen model once, look at the test set once, and record both.

        `train(run)` gets what an objective gets, for the best trial under the goal (or for the
        given `trial`), and returns a model. `test(model)` returns a number, or a mapping with
        "value" and whatever else is to be kept.

        The look is recorded before `test` is called, so a test that fails counts as a look. A
        second look raises `AlreadyTested` unless you ask for it with `again`.

        >>> def train(trial):
        ...     return {"depth": trial.params["depth"]}  # your trained model
        >>> def test(model):
        ...     return 0.93  # its result on the test set
        >>> final = study.finish(train, test)
        >>> final.value, final.model
        (0.93, {'depth': 5})
        """
        return finish(self, train, test, goal=goal, trial=trial, again=again)


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
