"""Evaluating several candidates at the same time.

With `n_jobs`, candidates run in Tradewind's own worker processes, which take the next trial as soon
as they are free. joblib's lazy dispatch would need up to `n_jobs` proposals ahead of their results.
If the user has chosen another joblib backend, trials run there in rounds.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from joblib.parallel import LokyBackend, get_active_backend
from scipy.sparse import issparse

from tradewind.runners.evaluate import evaluate
from tradewind.runners.processes import ProcessRunner
from tradewind.runners.runner import Done, Failure, Runner, Stopped, TrialLimits
from tradewind.sklearn.evaluation import CrossValidatedObjective, Fit
from tradewind.types import Outcome, Trial, Usage

_LARGE = 2**20  # bytes, as in joblib: smaller arrays are copied, because mapped ones are read-only


@contextmanager
def open_workers(
    objective: CrossValidatedObjective,
    fits: dict[int, list[Fit]],
    n_jobs: int | None,
    n_trials: int | None,
) -> Iterator[tuple[CrossValidatedObjective, Runner | None]]:
    """The objective to run and the runner to use (None: this process). The fits of the trials are
    in `fits` at the latest when the context ends."""
    n = joblib.effective_n_jobs(n_jobs)
    n = n if n_trials is None else min(n, n_trials)
    if n == 1:
        yield replace(objective, keep=fits.__setitem__), None
    elif os.name != "posix" or not isinstance(get_active_backend()[0], LokyBackend):
        yield objective, JoblibRunner(n, fits)
    else:
        where = os.environ.get("JOBLIB_TEMP_FOLDER")
        with tempfile.TemporaryDirectory(prefix="tradewind-", dir=where) as folder:
            try:
                keeping = replace(objective, keep=_WriteFits(folder))
                yield _share_arrays(keeping, folder), ProcessRunner(n)
            finally:
                for file in Path(folder).glob("*.fits"):
                    with suppress(TypeError, ValueError, KeyError, AttributeError):  # not from us
                        fits[int(file.stem)] = list(map(_read_fit, json.loads(file.read_bytes())))


# ---- processes ----


@dataclass(frozen=True)
class _WriteFits:
    """Writes the fits of a trial to a file, for the process that runs the search."""

    folder: str

    def __call__(self, number: int, fits: list[Fit]) -> None:
        file = Path(self.folder, f"{number}.fits")
        aside = file.with_suffix(".part")  # a worker may be killed while it writes
        aside.write_text(json.dumps(list(map(vars, fits))))
        aside.replace(file)


def _read_fit(data: Any) -> Fit:
    """A fit that a worker has written: data, as all that workers answer."""
    test, train = (
        {str(name): float(score) for name, score in data[part].items()}
        for part in ("test", "train")
    )
    error, unscored = (data[text] and str(data[text]) for text in ("error", "unscored"))
    seconds, scoring, rows = (float(data[name]) for name in ("fit_time", "score_time", "rows"))
    return Fit(seconds, scoring, test, train, rows, error, unscored)


class _MappedFile:
    """A stand-in for an object that joblib dumped to a file. Unpickling the stand-in gives that
    object, with its arrays mapped into memory."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return joblib.load, (self.path, "r")


def _share_arrays(objective: CrossValidatedObjective, folder: str) -> CrossValidatedObjective:
    """The same objective with its large arrays in files, so that all processes share the memory."""

    def share(value: Any, name: str) -> Any:
        if isinstance(value, Mapping):
            return {key: share(each, f"{name}-{i}") for i, (key, each) in enumerate(value.items())}
        if not _is_large_array(value):
            return value
        path = os.path.join(folder, f"{name}.data")
        joblib.dump(value, path)
        return _MappedFile(path)

    evaluation = objective.evaluation
    data = evaluation.data
    names = ("X", "y", "groups", "fit_params", "score_params")
    data = replace(data, **{name: share(getattr(data, name), name) for name in names})
    path = joblib.dump(evaluation.splits, os.path.join(folder, "splits.data"))[0]
    splits: Any = _MappedFile(path)
    return replace(objective, evaluation=replace(evaluation, data=data, splits=splits))


def _is_large_array(value: Any) -> bool:
    """Whether to share this value. Data frames and sparse matrices are shared whatever their
    size."""
    if isinstance(value, np.ndarray):
        return bool(value.dtype != object and value.nbytes >= _LARGE)
    return hasattr(value, "iloc") or bool(issparse(value))


# ---- joblib ----


@dataclass(frozen=True)
class JoblibRunner:
    """Evaluates trials with joblib's active backend, in rounds of `n_workers` trials."""

    n_workers: int
    fits: dict[int, list[Fit]]

    def open(self, objective: Any, limits: TrialLimits) -> JoblibWorkers:
        return JoblibWorkers(self, objective)


class JoblibWorkers:
    """The workers of a `JoblibRunner`. A round of trials runs inside `wait`, whatever its timeout
    is."""

    synchronous = True

    def __init__(self, runner: JoblibRunner, objective: CrossValidatedObjective) -> None:
        self.slots = runner.n_workers
        self._fits, self._objective = runner.fits, objective
        self._waiting: list[Trial] = []
        self._stopped: list[Done] = []
        self._parallel = joblib.Parallel(n_jobs=self.slots, batch_size=1)
        self._parallel.__enter__()  # keeps joblib's workers between rounds

    @property
    def free(self) -> int:
        return self.slots - len(self._waiting)

    def submit(self, trial: Trial, *, within: float | None = None) -> None:
        self._waiting.append(trial)

    def wait(self, timeout: float | None = None) -> list[Done]:
        trials, self._waiting = self._waiting, []
        done, self._stopped = self._stopped, []
        work = joblib.delayed(_evaluate_candidate)
        results = self._parallel(work(self._objective, trial) for trial in trials)
        for trial, (result, usage, fits) in zip(trials, results, strict=True):
            self._fits.update(fits)
            concurrent = replace(usage, concurrency=float(len(trials)))
            done.append(Done(trial, result, concurrent))
        return done

    def stop(self, numbers: Iterable[int], reason: str) -> None:
        """Stop trials that have not begun. Nobody can call this while a round runs."""
        named = set(numbers)
        stopped = [trial for trial in self._waiting if trial.number in named]
        self._waiting = [trial for trial in self._waiting if trial.number not in named]
        self._stopped += [Done(trial, Stopped(reason)) for trial in stopped]

    def now(self) -> float:
        return time.monotonic()

    def close(self) -> None:
        self._waiting, self._stopped = [], []
        self._parallel.__exit__(None, None, None)


def _evaluate_candidate(
    objective: CrossValidatedObjective, trial: Trial
) -> tuple[Outcome | Failure, Usage, dict[int, list[Fit]]]:
    """Evaluate one trial in a joblib worker, and return its fits along with the result."""
    fits: dict[int, list[Fit]] = {}
    result, usage = evaluate(replace(objective, keep=fits.__setitem__), trial)
    return result, usage, fits
