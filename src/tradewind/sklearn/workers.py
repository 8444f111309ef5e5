"""Where the candidates of a search are evaluated, when that is not one after the other.

With `n_jobs` they run in worker processes of Tradewind's own, which take the next trial as soon
as they are free; joblib's own way to hand out work lazily would propose up to `n_jobs` trials too
many ahead of their results. Where the user has chosen another backend of joblib, trials go to that
in rounds.
"""

from __future__ import annotations

import os
import pickle
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
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
from tradewind.sklearn.evaluation import Fit, Objective
from tradewind.types import Outcome, Trial, Usage

_LARGE = 2**20  # bytes; what is mapped cannot be written to, and joblib maps no less either


@contextmanager
def workers(
    objective: Objective, fits: dict[int, list[Fit]], n_jobs: int | None, n_trials: int | None
) -> Iterator[tuple[Objective, Runner | None]]:
    """The objective as it is to be run, and where; what it keeps of its trials goes to `fits`."""
    n = joblib.effective_n_jobs(n_jobs)
    n = n if n_trials is None else min(n, n_trials)
    if n == 1:
        yield replace(objective, keep=fits.__setitem__), None
    elif os.name != "posix" or not isinstance(get_active_backend()[0], LokyBackend):
        yield objective, Rounds(n, fits)
    else:
        where = os.environ.get("JOBLIB_TEMP_FOLDER")
        with tempfile.TemporaryDirectory(prefix="tradewind-", dir=where) as folder:
            try:
                yield _shared(replace(objective, keep=_ToFile(folder)), folder), ProcessRunner(n)
            finally:
                for file in Path(folder).glob("*.fits"):
                    fits[int(file.stem)] = pickle.loads(file.read_bytes())


# ---- processes ----


@dataclass(frozen=True)
class _ToFile:
    """Keeps what is known of a trial in a file, where another process finds it."""

    folder: str

    def __call__(self, number: int, fits: list[Fit]) -> None:
        file = Path(self.folder, f"{number}.fits")
        aside = file.with_suffix(".part")  # a worker may be killed while it writes
        aside.write_bytes(pickle.dumps(fits))
        aside.replace(file)


class _OnDisk:
    """A stand-in for what was dumped: who unpickles it gets that, mapped into memory."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return joblib.load, (self.path, "r")


def _shared(objective: Objective, folder: str) -> Objective:
    """The same objective with its arrays in files, of which all processes share the memory."""

    def shared(value: Any, name: str) -> Any:
        if isinstance(value, Mapping):
            return {key: shared(each, f"{name}-{i}") for i, (key, each) in enumerate(value.items())}
        if not _is_array(value):
            return value
        path = os.path.join(folder, f"{name}.data")
        joblib.dump(value, path)
        return _OnDisk(path)

    evaluation = objective.evaluation
    data = evaluation.data
    names = ("X", "y", "groups", "fit_params", "score_params")
    data = replace(data, **{name: shared(getattr(data, name), name) for name in names})
    splits: Any = _OnDisk(joblib.dump(evaluation.splits, os.path.join(folder, "splits.data"))[0])
    return replace(objective, evaluation=replace(evaluation, data=data, splits=splits))


def _is_array(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return bool(value.dtype != object and value.nbytes >= _LARGE)
    return hasattr(value, "iloc") or bool(issparse(value))


# ---- joblib ----


@dataclass(frozen=True)
class Rounds:
    """Evaluates with whatever backend joblib has, as many trials at a time as it has workers."""

    n_workers: int
    fits: dict[int, list[Fit]]

    def open(self, objective: Any, limits: TrialLimits) -> RoundWorkers:
        return RoundWorkers(self, objective)


class RoundWorkers:
    """joblib at work: a round of trials runs inside `wait`, whatever the timeout of that."""

    synchronous = True

    def __init__(self, rounds: Rounds, objective: Objective) -> None:
        self.slots = rounds.n_workers
        self._fits, self._objective = rounds.fits, objective
        self.opened = self.now()
        self._waiting: list[Trial] = []
        self._stopped: list[Done] = []
        self._parallel = joblib.Parallel(n_jobs=self.slots, batch_size=1)
        self._parallel.__enter__()  # keeps the workers from round to round

    @property
    def free(self) -> int:
        return self.slots - len(self._waiting)

    def submit(self, trial: Trial, *, within: float | None = None) -> None:
        self._waiting.append(trial)

    def wait(self, timeout: float | None = None) -> list[Done]:
        trials, self._waiting = self._waiting, []
        done, self._stopped = self._stopped, []
        work = joblib.delayed(_evaluated)
        results = self._parallel(work(self._objective, trial) for trial in trials)
        for trial, (result, usage, fits) in zip(trials, results, strict=True):
            self._fits.update(fits)
            concurrent = replace(usage, concurrency=float(len(trials)))
            done.append(Done(trial, result, concurrent))
        return done

    def stop(self, numbers: Iterable[int], reason: str) -> None:
        """Only what has not begun: the caller cannot be here while a round runs."""
        named = set(numbers)
        stopped = [trial for trial in self._waiting if trial.number in named]
        self._waiting = [trial for trial in self._waiting if trial.number not in named]
        self._stopped += [Done(trial, Stopped(reason)) for trial in stopped]

    def now(self) -> float:
        return time.monotonic()

    def close(self) -> None:
        self._waiting, self._stopped = [], []
        self._parallel.__exit__(None, None, None)


def _evaluated(
    objective: Objective, trial: Trial
) -> tuple[Outcome | Failure, Usage, dict[int, list[Fit]]]:
    fits: dict[int, list[Fit]] = {}
    result, usage = evaluate(replace(objective, keep=fits.__setitem__), trial)
    return result, usage, fits
