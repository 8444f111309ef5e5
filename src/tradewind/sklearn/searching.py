"""The search itself: the study evaluates candidates until `n_iter` or a limit is reached."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from tradewind.errors import NothingFinished, WorkerError, warn
from tradewind.optimizer.strategies.fidelity import MultiFidelity
from tradewind.sklearn.evaluation import CandidateFailed, Fit, Objective
from tradewind.sklearn.workers import workers
from tradewind.study.study import Study
from tradewind.types import State, Trial

ENDED = (State.FINISHED, State.FAILED)


def evaluated(search: Any, study: Study, objective: Objective) -> dict[int, list[Fit]]:
    """Let the study evaluate what is left of `n_iter` candidates; their fits, by number."""
    n_splits = len(objective.evaluation.splits)
    before = {trial.number for trial in study.trials if trial.state in ENDED}
    n, fits = _candidates(search, study), dict[int, list[Fit]]()
    if n is not None:
        n -= len(before)
        if n <= 0:
            return fits
    if search.verbose > 0:
        total = "" if n is None else f" of {n} candidates, totalling {n * n_splits} fits"
        print(f"Fitting {n_splits} folds for each{total or ' candidate'}")
    ended: list[Trial] = []
    callbacks = [lambda _, trial: ended.append(trial), *([_show] if search.verbose > 1 else [])]
    with workers(objective, fits, search.n_jobs, n) as (run, runner):

        def optimize(n_trials: int | None) -> None:
            study.optimize(
                run,
                n_trials=n_trials,
                timeout=search.timeout,
                max_cost=None if search.max_cost is None else search.max_cost / n_splits,
                runner=runner,
                catch=CandidateFailed,
                callbacks=callbacks,
                show_progress=None if search.verbose == 1 else False,
            )

        limited = search.timeout is not None or search.max_cost is not None
        if n is None or n < 2 or limited or not isinstance(study.strategy, MultiFidelity):
            optimize(n)
        else:
            optimize(n - 1)
            if len(ended) == n - 1:  # not if the user has ended it
                _enqueue_recommended(study)
                optimize(1)
    _give_up(search, study, fits, before, n_splits)
    return fits


def _candidates(search: Any, study: Study) -> int | None:
    """`n_iter`, or as many as there are."""
    grid, n_iter = study.space.grid(), search.n_iter
    if grid is None or search.stages is not None:
        return None if n_iter is None else int(n_iter)
    if n_iter is None or n_iter <= len(grid):
        return len(grid) if n_iter is None else int(n_iter)
    warn(
        f"The total space of parameters {len(grid)} is smaller than n_iter={n_iter}. "
        f"Running {len(grid)} iterations."
    )
    return len(grid)


def _enqueue_recommended(study: Study) -> None:
    """What small sizes recommend for the largest is evaluated there before it is believed."""
    with suppress(NothingFinished):
        advice = study.recommend()
        if advice.trial is None:
            study.enqueue(advice.params)


def _give_up(
    search: Any, study: Study, fits: dict[int, list[Fit]], before: set[int], n_splits: int
) -> None:
    """Candidates that ended with their worker have kept nothing: their fits have failed."""
    known = {*fits, *before}
    for trial in study.trials:
        if trial.state is not State.FAILED or trial.number in known:
            continue
        if isinstance(search.error_score, str):
            raise WorkerError(f"candidate {trial.number}: {trial.error}")
        nothing = Fit(np.nan, np.nan, {}, {}, np.nan, error=trial.error)
        fits[trial.number] = [nothing] * n_splits


def _show(study: Study, trial: Trial) -> None:
    """A line for a candidate."""
    came = f"score {trial.value:.4g} in {trial.cost:.3g} s" if trial.finished else trial.state.value
    behind = ", clearly behind" * trial.raced
    size = f", {trial.train_size:.0%} of the rows" * (trial.train_size < 1.0)
    print(f"[{trial.number}] {came}{behind}{size}: {dict(trial.params)}")
