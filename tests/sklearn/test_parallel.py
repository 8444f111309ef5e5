"""Candidates that are evaluated at the same time."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import cloudpickle
import joblib
import numpy as np
import pandas as pd
import psutil
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse, stats
from sklearn.metrics import accuracy_score, make_scorer

from tests.sklearn.models import Crashing, Fragile, Gate, Known, Slow, X, y
from tests.studies import environment
from tradewind.sklearn import TradeoffSearchCV
from tradewind.sklearn.evaluation import CrossValidatedObjective, Evaluation, TrainingData
from tradewind.sklearn.parallel import _share_arrays
from tradewind.space.distributions import translate

pytestmark = pytest.mark.filterwarnings("ignore:.* workers share .* core:UserWarning")


def search(estimator: Any, space: Any, **options: Any) -> TradeoffSearchCV:
    options = {"n_iter": 6, "cv": 2, "random_state": 0, "n_jobs": 2} | options
    return TradeoffSearchCV(estimator, space, **options)


def pids(folder: Path) -> set[int]:
    return {int(file.name.rpartition("-")[2]) for file in folder.iterdir()}


def test_processes_give_the_results_that_this_one_gives() -> None:
    space = {"quality": stats.uniform(0, 1), "other": [(1, 2), (3, 4), None]}
    options: dict[str, Any] = {"strategy": "random", "return_train_score": True}
    there = search(Known(), space, **options).fit(X, y).cv_results_
    here = search(Known(), space, n_jobs=None, **options).fit(X, y).cv_results_
    assert set(there) == set(here)
    for key in here:
        if "time" not in key:
            assert list(there[key]) == list(here[key]), key


def test_a_free_worker_does_not_wait_for_a_slow_one(tmp_path: Path) -> None:
    space = {"number": range(6), "folder": [str(tmp_path)]}
    fitted = search(Gate(), space, strategy="random", cv=[(range(10), range(10, 20))]).fit(X, y)
    assert np.isfinite(fitted.cv_results_["mean_test_score"]).all()
    assert len(pids(tmp_path) - {os.getpid()}) == 2  # this process refits
    slow = next(trial for trial in fitted.study_.trials if trial.params["number"] == 0)
    others = [trial for trial in fitted.study_.trials if trial is not slow]
    # the fourth of them lets it go on; some may have ended before its worker took it up
    assert sum(trial.ended < slow.ended for trial in others) >= 3


def test_no_more_candidates_run_than_there_are_jobs() -> None:
    space = {"quality": stats.uniform(0, 1), "seconds": stats.uniform(0.0, 0.05)}
    trials = search(Slow(), space, n_iter=12).fit(X, y).study_.trials
    for trial in trials:
        running = sum(t.started <= trial.started < t.ended for t in trials)
        assert running <= 2
    assert [trial.started for trial in trials] == sorted(trial.started for trial in trials)


def test_what_was_defined_here_arrives_there() -> None:
    class Local(Known):
        def score(self, X: Any, y: Any = None) -> float:
            return 2 * float(self.quality)

    fitted = search(Local(), {"quality": [0.1, 0.2, 0.3], "other": [lambda: 1, lambda: 2]})
    assert fitted.fit(X, y).best_score_ == pytest.approx(0.6)


def test_an_error_ends_the_search_from_another_process() -> None:
    with pytest.raises(RuntimeError, match="too good to be true"):
        search(Fragile(), {"quality": [0.1, 0.6]}, n_iter=2, error_score="raise").fit(X, y)


def test_a_process_that_dies_costs_its_candidate_only() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = search(Crashing(), {"quality": [0.1, 0.3, 0.8, 0.2]}, n_iter=4).fit(X, y)
    results = fitted.cv_results_
    assert_array_equal(np.isnan(results["mean_test_score"]), results["param_quality"] == 0.8)
    assert_array_equal(np.isnan(results["mean_fit_time"]), results["param_quality"] == 0.8)
    assert fitted.best_params_ == {"quality": 0.3}


def test_as_many_jobs_as_cores_and_none_are_understood() -> None:
    fitted = search(Known(), {"quality": [0.1, 0.3]}, n_iter=2, n_jobs=-1).fit(X, y)
    assert fitted.best_score_ == 0.3
    with pytest.raises(ValueError, match="n_jobs == 0"):
        search(Known(), {"quality": [0.1, 0.3]}, n_iter=2, n_jobs=0).fit(X, y)


# ---- memory ----


def test_arrays_are_mapped_into_the_memory_of_workers(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": np.arange(4.0), "b": list("wxyz")})
    data = TrainingData(
        X=sparse.csr_matrix(np.eye(4)),
        y=np.arange(2**17),
        groups=["a", "b", "c", "d"],
        fit_params={"frame": frame, "names": np.array(["a", None], dtype=object), "flag": True},
    )
    splits = [(np.arange(2), np.arange(2, 4))]
    scorer = make_scorer(accuracy_score)
    objective = CrossValidatedObjective(
        Evaluation(Known(), data, splits, scorer, np.nan), translate({"quality": [1, 2]}), "score"
    )
    blob = cloudpickle.dumps(_share_arrays(objective, str(tmp_path)))
    again: CrossValidatedObjective = pickle.loads(blob)
    shared = again.evaluation.data
    assert isinstance(shared.X.data, np.memmap)
    assert_array_equal(shared.X.toarray(), np.eye(4))
    assert isinstance(shared.y, np.memmap)  # what is small is copied, and can be written to
    assert shared.groups == data.groups
    assert shared.fit_params["frame"].equals(frame)
    assert shared.fit_params["flag"] is True
    assert_array_equal(shared.fit_params["names"], data.fit_params["names"])
    assert isinstance(again.evaluation.splits[0][0], np.memmap)
    assert_array_equal(again.evaluation.splits[0][1], [2, 3])


def test_nothing_is_left_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOBLIB_TEMP_FOLDER", str(tmp_path))
    search(Known(), {"quality": [0.1, 0.3]}, n_iter=2).fit(X, y)
    assert list(tmp_path.iterdir()) == []


# ---- joblib's backends ----


@pytest.mark.parametrize("backend", ["threading", "multiprocessing"])
def test_a_backend_of_joblib_is_used_if_the_user_chooses_one(backend: str, tmp_path: Path) -> None:
    space = {"quality": stats.uniform(0, 1), "folder": [str(tmp_path)]}
    with joblib.parallel_config(backend=backend, n_jobs=2):
        fitted = search(Slow(), space, n_iter=5, n_jobs=None).fit(X, y)
    assert len(fitted.cv_results_["params"]) == 5
    assert np.isfinite(fitted.cv_results_["mean_test_score"]).all()
    others = pids(tmp_path) - {os.getpid()}
    assert bool(others) == (backend == "multiprocessing")
    assert [trial.usage.concurrency for trial in fitted.study_.trials] == [2, 2, 2, 2, 1]


def test_an_error_ends_a_search_in_rounds() -> None:
    space = {"quality": [0.1, 0.2, 0.6]}
    with (
        joblib.parallel_config(backend="threading"),
        pytest.raises(RuntimeError, match="too good to be true"),
    ):
        search(Fragile(), space, n_iter=3, error_score="raise").fit(X, y)


def test_a_round_ends_with_its_candidates_when_time_is_up() -> None:
    with joblib.parallel_config(backend="threading"):
        fitted = search(
            Slow(), {"quality": stats.uniform(0, 1), "seconds": [0.3]}, n_iter=None, timeout=0.5
        ).fit(X, y)
    assert len(fitted.cv_results_["params"]) == 2


@pytest.mark.slow
def test_a_cluster_of_dask_is_used_through_joblib() -> None:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(2, processes=False, dashboard_address=":0") as cluster,
        Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        fitted = search(Known(), {"quality": stats.uniform(0, 1)}, n_iter=5, n_jobs=2).fit(X, y)
    assert np.isfinite(fitted.cv_results_["mean_test_score"]).all()


def test_a_search_inside_of_parallel_work_is_a_search() -> None:
    def best(seed: int) -> float:
        made = search(Known(), {"quality": [0.1, 0.3]}, n_iter=2, random_state=seed)
        return float(made.fit(X, y).best_score_)

    assert joblib.Parallel(n_jobs=2)(joblib.delayed(best)(seed) for seed in (0, 1)) == [0.3, 0.3]


# ---- interrupts ----

SEARCH = """
import sys
from tests.sklearn.models import Slow, X, y
from tradewind.sklearn import TradeoffSearchCV

space = {"quality": [0.1, 0.2, 0.3, 0.4], "seconds": [60.0], "folder": [sys.argv[1]]}
try:
    TradeoffSearchCV(Slow(), space, n_iter=4, n_jobs=2, cv=2).fit(X, y)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX systems")
def test_an_interrupted_search_leaves_no_process_behind(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", SEARCH, str(tmp_path)],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        until = time.monotonic() + 60
        while len(pids(tmp_path)) < 2 and time.monotonic() < until:
            time.sleep(0.05)
        workers = pids(tmp_path)
        assert len(workers) == 2
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)  # two signals at once may arrive as one
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60)[0].strip() == "interrupted"
        assert not any(map(psutil.pid_exists, workers))
    finally:
        process.kill()
        process.wait()
