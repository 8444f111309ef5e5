"""The Dask runner on real clusters: what is lost, what has failed, and what becomes of the rest."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tradewind as tw
from tests.runners.clusters import WORKERS, dask_client, local_dask
from tests.runners.scenes import alive, driver_pid, eventually, written
from tests.runners.trials import NO_LIMITS, all_of, the_one, trial
from tradewind.runners.dask import DaskRunner, DaskWorkers
from tradewind.runners.run import Objective, Run
from tradewind.runners.runner import Failure, Lost, Stopped, TrialLimits
from tradewind.types import Outcome

pytestmark = pytest.mark.slow

Open = Callable[..., DaskWorkers]


def endless(file: Path, *, after: int = 0) -> Objective:
    """An objective that writes down its process, and that of the worker of the cluster;
    `after` so many trials that do not."""

    def objective(run: Run) -> float:
        if run.number < after:
            return 1.0
        file.with_suffix(".part").write_text(f"{os.getpid()} {driver_pid()}")
        file.with_suffix(".part").rename(file)
        time.sleep(600)
        return 1.0

    return objective


@pytest.fixture
def client() -> Any:
    shared = dask_client()
    eventually(lambda: len(shared.nthreads()) == WORKERS)  # a killed one has been replaced
    return shared


@pytest.fixture
def opened(client: Any) -> Iterator[Open]:
    workers: list[DaskWorkers] = []

    def opening(objective: Objective, *, to: Any = None, **options: Any) -> DaskWorkers:
        limits = TrialLimits(options.pop("timeout", None), options.pop("memory", None))
        workers.append(DaskRunner(to or client, **options).open(objective, limits))
        return workers[-1]

    yield opening
    for some in workers:
        some.close()


def test_a_closure_travels_with_what_it_holds(opened: Open) -> None:
    data = list(range(1000))
    workers = opened(lambda run: float(sum(data)) + run.number)
    for number in range(5):
        workers.submit(trial(number))
    values = {d.trial.number: d.result.value for d in all_of(workers, 5)}  # type: ignore[union-attr]
    assert values == {number: 499500.0 + number for number in range(5)}


def test_trials_run_beside_the_workers_of_dask_and_at_the_same_time(opened: Open) -> None:
    start = time.time()

    def objective(run: Run) -> dict[str, Any]:
        time.sleep(0.5)
        return {"value": os.getpid(), "folds": [start - time.time()]}

    workers = opened(objective)
    for number in range(WORKERS):
        workers.submit(trial(number))
    done = all_of(workers, WORKERS)
    pids = {d.result.value for d in done}  # type: ignore[union-attr]
    assert len(pids) == WORKERS
    assert not pids & set(dask_client().run(os.getpid).values())
    assert all(d.usage and 1.0 < d.usage.concurrency <= WORKERS for d in done)


def test_a_trial_whose_dask_worker_is_killed_is_lost_once_and_work_goes_on(
    opened: Open, tmp_path: Path
) -> None:
    file = tmp_path / "pids"

    def objective(run: Run) -> Any:
        return 1.0 if file.exists() or run.number else endless(file)(run)

    workers = opened(objective)
    for number in (0, 1):
        workers.submit(trial(number))
    own, dask = written(file)
    time.sleep(0.2)  # Dask has told that it began
    os.kill(dask, signal.SIGKILL)
    found = {d.trial.number: type(d.result) for d in all_of(workers, 2)}
    assert found == {0: Lost, 1: Outcome}
    assert workers.wait() == []
    eventually(lambda: not alive(own))
    assert isinstance(the_one(workers, number=0).result, Outcome)


def test_a_trial_is_lost_where_nobody_could_take_it_over(opened: Open, tmp_path: Path) -> None:
    workers = opened(endless(tmp_path / "pids"))
    for number in range(WORKERS):
        workers.submit(trial(number))
    eventually(lambda: workers.wait(0.1) == [] and len(workers._worker_of) == WORKERS)
    for pid in dask_client().run(os.getpid).values():
        os.kill(pid, signal.SIGKILL)
    assert {type(d.result) for d in all_of(workers, WORKERS)} == {Lost}


@pytest.mark.parametrize(
    "crash", [lambda: os._exit(3), lambda: os.kill(os.getpid(), signal.SIGSEGV)]
)
def test_a_process_that_crashes_costs_one_trial(opened: Open, crash: Any) -> None:
    def objective(run: Run) -> float:
        if run.number == 0:
            crash()
        return 1.0

    workers = opened(objective)
    before = dask_client().run(os.getpid)
    assert isinstance(the_one(workers, number=0).result, Failure)
    assert isinstance(the_one(workers, number=1).result, Outcome)
    assert dask_client().run(os.getpid) == before


def test_memory_can_be_limited(opened: Open) -> None:
    def objective(run: Run) -> float:
        blocks = []
        for _ in range(200):
            blocks.append(bytearray(os.urandom(1000)) * 10_000)
            time.sleep(0.02)
        return float(len(blocks))

    result = the_one(opened(objective, memory=300_000_000)).result
    assert isinstance(result, Failure)
    assert "memory" in result.error


@pytest.mark.parametrize("how", ["stop", "within", "close"])
def test_the_process_of_a_stopped_trial_ends(opened: Open, tmp_path: Path, how: str) -> None:
    workers = opened(endless(tmp_path / "pids", after=WORKERS), n_workers=WORKERS)
    for number in range(WORKERS):
        workers.submit(trial(number))
    all_of(workers, WORKERS)  # so that their processes are there
    workers.submit(trial(WORKERS), within=1.0 if how == "within" else None)
    own, dask = written(tmp_path / "pids")
    if how == "close":
        workers.close()
    else:
        if how == "stop":
            workers.stop([WORKERS], "enough")
        (done,) = all_of(workers, 1)
        assert isinstance(done.result, Stopped)
        assert done.usage is not None
    eventually(lambda: not alive(own))
    assert alive(dask)


def test_trials_end_when_their_driver_has_gone(tmp_path: Path) -> None:
    from distributed import Client

    client = Client(dask_client().scheduler.address, set_as_default=False)
    workers = DaskRunner(client).open(endless(tmp_path / "pids"), NO_LIMITS)
    workers.submit(trial(1))
    own, _ = written(tmp_path / "pids")
    client.close()
    eventually(lambda: not alive(own))
    with pytest.raises(RuntimeError, match="client is closed"):
        workers.wait()
    workers.close()


def test_slots_are_the_threads_of_the_cluster_unless_they_are_given(opened: Open) -> None:
    assert opened(float).slots == WORKERS
    workers = opened(float, n_workers=5)
    assert (workers.slots, workers.free) == (5, 5)


def test_slots_follow_the_cluster(opened: Open) -> None:
    workers = opened(float)
    dask_client().cluster.scale(WORKERS + 1)
    eventually(lambda: workers.slots == WORKERS + 1)
    dask_client().cluster.scale(WORKERS)
    eventually(lambda: workers.slots == WORKERS)


def test_a_cluster_of_its_own_comes_and_goes(tmp_path: Path) -> None:
    workers = DaskRunner(n_workers=1).open(endless(tmp_path / "pids"), NO_LIMITS)
    assert (workers.slots, workers.free) == (1, 1)
    workers.submit(trial(0))
    own, dask = written(tmp_path / "pids")
    workers.close()
    eventually(lambda: not alive(own) and not alive(dask))


def test_a_client_that_was_given_stays_open() -> None:
    workers = DaskRunner(dask_client()).open(float, NO_LIMITS)
    workers.close()
    assert dask_client().status == "running"
    assert dask_client().submit(lambda: 1, pure=False).result() == 1


def test_a_gpu_that_a_worker_shows_is_the_device() -> None:
    with local_dask(1, resources={"GPU": 2}, env={"CUDA_VISIBLE_DEVICES": "3"}) as cluster:
        found = []
        for resources in ({"GPU": 1}, {}):
            runner = DaskRunner(cluster.scheduler_address, resources=resources)
            workers = runner.open(lambda run: float(run.device == "cuda:0"), NO_LIMITS)
            done = the_one(workers)
            workers.close()
            assert isinstance(done.result, Outcome)
            assert done.usage is not None
            found.append((done.result.value, done.usage.device))
        assert found == [(1.0, "cuda:0"), (0.0, "cpu")]
        workers = DaskRunner(cluster.scheduler_address, resources={"GPU": 3}).open(float, NO_LIMITS)
        workers.submit(trial(0), within=0.2)  # nobody has three of them
        assert isinstance(all_of(workers, 1)[0].result, Stopped)
        workers.close()


def test_a_cluster_that_is_closed_on_the_way_is_an_error_and_no_wait_for_ever() -> None:
    from distributed import Client

    def objective(run: Run) -> float:
        time.sleep(600)
        return 1.0

    cluster = local_dask(1)
    client = Client(cluster, set_as_default=False)
    workers = DaskRunner(client).open(objective, NO_LIMITS)
    workers.submit(trial(0))
    cluster.close()
    with pytest.raises(RuntimeError, match="cannot be reached"):
        all_of(workers, 1)
    with pytest.raises(RuntimeError, match="cannot be reached"):
        workers.submit(trial(1))
    workers.close()
    client.close()


def test_workers_without_tradewind_are_an_error_that_says_so() -> None:
    def forget() -> None:
        sys.modules["tradewind"] = None  # type: ignore[assignment]

    with local_dask(1) as cluster, cluster.get_client() as client:
        client.run(forget)
        with pytest.raises(RuntimeError, match="must be able to import Tradewind"):
            DaskRunner(client).open(float, NO_LIMITS)


def test_without_the_package_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"pip install distributed"):
        DaskRunner().open(float, NO_LIMITS)


def test_wrong_arguments_are_refused(client: Any) -> None:
    with pytest.raises(ValueError, match="n_workers must be a whole number ≥ 1, but got 0"):
        DaskRunner(n_workers=0)
    with pytest.raises(TypeError, match=r"must be a distributed\.Client"):
        DaskRunner(42).open(float, NO_LIMITS)
    lock = threading.Lock()
    with pytest.raises(TypeError, match="cannot be pickled"):
        DaskRunner(client).open(lambda run: float(lock.locked()), NO_LIMITS)


def test_a_study_runs_on_a_cluster(client: Any) -> None:
    study = tw.create_study({"x": (0.0, 1.0)}, seed=0)
    study.optimize(lambda trial: -((trial.params["x"] - 0.3) ** 2), 8, runner=DaskRunner(client))
    assert [trial.finished for trial in study.trials] == [True] * 8
