"""Running the trials of a search: the study evaluates candidates until `n_iter` or a limit is
reached. `TradeoffSearchCV.fit` calls this between its preparations and its table of results."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import numpy as np

from tradewind.errors import NothingFinished, WorkerError, warn
from tradewind.optimizer.strategies.fidelity import MultiFidelity
from tradewind.output import logger
from tradewind.sklearn.callbacks import Task
from tradewind.sklearn.evaluation import CandidateFailed, CrossValidatedObjective, Fit
from tradewind.sklearn.parallel import open_workers
from tradewind.study.study import Study
from tradewind.types import State, Trial

ENDED = (State.FINISHED, State.FAILED)


def run_trials(
    search: Any, study: Study, objective: CrossValidatedObjective, task: Task
) -> dict[int, list[Fit]]:
    """Evaluate what is left of `n_iter` candidates. Returns their fits by trial number. `task` is
    the whole fit, for scikit-learn's callbacks."""
    n_splits = len(objective.evaluation.splits)
    before = {trial.number for trial in study.trials if trial.state in ENDED}
    n, fits = _count_candidates(search, study), dict[int, list[Fit]]()
    if n is not None:
        n -= len(before)
        if n <= 0:
            return fits
    if search.verbose > 0:
        total = "" if n is None else f" of {n} candidates, totalling {n * n_splits} fits"
        print(f"Fitting {n_splits} folds for each{total or ' candidate'}")
    searching = task.parts("search", None if n is None else n * n_splits)
    searching.begin()
    objective = replace(objective, evaluation=replace(objective.evaluation, task=searching))
    ended: list[Trial] = []
    callbacks = [lambda _, trial: ended.append(trial), *([_print] if search.verbose > 1 else [])]
    with (
        _unhandled_lines_dropped(search.verbose),
        open_workers(objective, fits, search.n_jobs, n) as (keeping, runner),
    ):

        def optimize(n_trials: int | None) -> None:
            study.optimize(
                keeping,
                n_trials=n_trials,
                timeout=search.timeout,
                max_cost=search.max_cost,
                runner=runner,
                catch=CandidateFailed,
                give_up_after=None,
                callbacks=callbacks,
                show_progress=None if search.verbose == 1 else False,
            )

        has_limit = search.timeout is not None or search.max_cost is not None
        if n is None or n < 2 or has_limit or not isinstance(study.strategy, MultiFidelity):
            optimize(n)
        else:
            optimize(n - 1)
            if len(ended) == n - 1:  # fewer if the user stopped the search
                _enqueue_recommended(study)
                optimize(1)
    _add_lost_fits(search, study, fits, before, n_splits)
    searching.end()
    return fits


@contextmanager
def _unhandled_lines_dropped(verbose: int) -> Iterator[None]:
    """At verbose=0, Python does not print log lines that no handler of the user takes: a
    `FitFailedWarning` says what failed."""
    handler = logging.NullHandler()
    if verbose <= 0:
        logger.logger.addHandler(handler)
    try:
        yield
    finally:
        logger.logger.removeHandler(handler)


def _count_candidates(search: Any, study: Study) -> int | None:
    """`n_iter`, or the number of configurations if that is smaller. None means no such limit."""
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
    """Enqueue the configuration that the study recommends, unless it was already evaluated with
    the largest training size. The last trial then tests what the smaller sizes suggest."""
    with suppress(NothingFinished):
        recommended = study.recommend()
        if recommended.trial is None:
            study.enqueue(recommended.params)


def _add_lost_fits(
    search: Any, study: Study, fits: dict[int, list[Fit]], before: set[int], n_splits: int
) -> None:
    """Add failed fits for the candidates whose worker died before it could report any."""
    known = {*fits, *before}
    for trial in study.trials:
        if trial.state is not State.FAILED or trial.number in known:
            continue
        if isinstance(search.error_score, str):
            raise WorkerError(f"candidate {trial.number}: {trial.error}")
        lost = Fit(np.nan, np.nan, {}, {}, np.nan, error=trial.error)
        fits[trial.number] = [lost] * n_splits


def _print(study: Study, trial: Trial) -> None:
    """Print one line for a candidate."""
    result = (
        f"score {trial.value:.4g} in {trial.cost:.3g} s" if trial.finished else trial.state.value
    )
    behind = ", clearly behind" * trial.raced
    size = f", {trial.train_size:.0%} of the rows" * (trial.train_size < 1.0)
    print(f"[{trial.number}] {result}{behind}{size}: {dict(trial.params)}")
