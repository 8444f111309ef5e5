"""The Ray runner on a real cluster: what is lost, what has failed, and what becomes of the rest."""

from __future__ import annotations

import logging
import math
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tradewind as tw
from tests.runners.clusters import WORKERS, connected_ray, disconnected_ray, imported_ray
from tests.runners.scenes import alive, driver_pid, eventually, written
from tests.runners.test_dask import endless
from tests.runners.trials import NO_LIMITS, all_of, the_one, trial
from tests.studies import environment
from tradewind.runners import ray as runner_module
from tradewind.runners.ray import (
    RayRunner,
    RayWorkers,
    actor_options,
    count_fitting,
    normalize,
)
from tradewind.runners.run import Objective, Run
from tradewind.runners.runner import Failure, Lost, Stopped, TrialLimits
from tradewind.types import Outcome, State

Open = Callable[..., RayWorkers]


@pytest.fixture
def opened() -> Iterator[Open]:
    connected_ray()
    workers: list[RayWorkers] = []

    def opening(objective: Objective, **given: Any) -> RayWorkers:
        limits = TrialLimits(given.pop("timeout", None), given.pop("memory", None))
        workers.append(RayRunner(**given).open(objective, limits))
        return workers[-1]

    yield opening
    for some in workers:
        some.close()


@pytest.mark.slow
def test_trials_run_at_the_same_time(opened: Open) -> None:
    def objective(run: Run) -> float:
        time.sleep(0.5)
        return float(os.getpid())

    workers = opened(objective)
    for number in range(WORKERS):
        workers.submit(trial(number))
    done = all_of(workers, WORKERS)
    assert len({d.result.value for d in done}) == WORKERS  # type: ignore[union-attr]
    assert all(d.usage and 1.0 < d.usage.concurrency <= WORKERS for d in done)


@pytest.mark.slow
def test_a_trial_whose_ray_worker_is_killed_is_lost_once_and_work_goes_on(
    opened: Open, tmp_path: Path
) -> None:
    file = tmp_path / "pids"

    def objective(run: Run) -> Any:
        return 1.0 if file.exists() or run.number else endless(file)(run)

    workers = opened(objective)
    for number in (0, 1):
        workers.submit(trial(number))
    own, ray = written(file)
    os.kill(ray, signal.SIGKILL)
    found = {d.trial.number: type(d.result) for d in all_of(workers, 2)}
    assert found == {0: Lost, 1: Outcome}
    assert workers.wait() == []
    eventually(lambda: not alive(own))
    for _ in range(WORKERS):
        workers.submit(trial(0))
    assert [type(d.result) for d in all_of(workers, WORKERS)] == [Outcome] * WORKERS


@pytest.mark.slow
def test_a_process_that_crashes_costs_one_trial(opened: Open) -> None:
    def objective(run: Run) -> float:
        if run.number == 0:
            os.kill(os.getpid(), signal.SIGSEGV)
        return float(driver_pid())

    workers = opened(objective)
    results = [the_one(workers, number=number).result for number in (1, 0, 1)]
    assert [type(result) for result in results] == [Outcome, Failure, Outcome]
    assert results[0].value == results[2].value  # type: ignore[union-attr]  # the same Ray worker


@pytest.mark.slow
@pytest.mark.parametrize("how", ["stop", "within", "close"])
def test_the_process_of_a_stopped_trial_ends(opened: Open, tmp_path: Path, how: str) -> None:
    workers = opened(endless(tmp_path / "pids", after=1))
    the_one(workers, number=0)  # so that its process is there
    workers.submit(trial(1), within=1.0 if how == "within" else None)
    own, _ = written(tmp_path / "pids")
    if how == "close":
        workers.close()
    else:
        if how == "stop":
            workers.stop([1], "enough")
        (done,) = all_of(workers, 1)
        assert isinstance(done.result, Stopped)
        assert done.usage is not None
    eventually(lambda: not alive(own))


@pytest.mark.slow
def test_the_next_trial_waits_for_the_end_of_a_stopped_one(opened: Open, tmp_path: Path) -> None:
    file = tmp_path / "pids"

    def objective(run: Run) -> Any:
        return endless(file)(run) if run.number == 0 else float(driver_pid())

    workers = opened(objective, resources={"cpu": WORKERS})
    workers.submit(trial(0))
    _, ray = written(file)
    workers.stop([0], "enough")
    workers.submit(trial(1))
    found = {d.trial.number: d.result for d in all_of(workers, 2)}
    assert found == {0: Stopped("enough"), 1: found[1]}
    assert isinstance(found[1], Outcome)
    assert found[1].value == ray


@pytest.mark.slow
def test_all_come_back_where_more_are_asked_for_than_there_is_room(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_module, "_IDLE", 0.1)
    workers = opened(lambda run: 1.0, n_workers=WORKERS + 1)
    assert workers.free == WORKERS + 1
    for number in range(WORKERS + 2):
        workers.submit(trial(number))
    assert {type(d.result) for d in all_of(workers, WORKERS + 2)} == {Outcome}


@pytest.mark.slow
def test_what_no_node_has_is_waited_for_but_not_beyond_the_deadline(
    opened: Open, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "tradewind"):
        workers = opened(lambda run: 1.0, resources={"special": 9})
    assert "no node" in caplog.text
    assert workers.slots == 1
    assert isinstance(the_one(workers, within=0.3).result, Stopped)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("resources", "slots"),
    [({}, WORKERS), ({"cpu": 2}, 1), ({"GPU": 0.5}, 2), ({"special": 1, "cpu": 0.5}, 3)],
)
def test_slots_are_what_the_nodes_admit(opened: Open, resources: Any, slots: int) -> None:
    assert opened(lambda run: 1.0, resources=resources).slots == slots


@pytest.mark.slow
def test_a_trial_that_gets_a_gpu_is_told_so(opened: Open) -> None:
    for resources, device in (({"gpu": 0.5}, "cuda:0"), ({}, "cpu")):
        workers = opened(lambda run: float(run.device == "cuda:0"), resources=resources)
        done = the_one(workers)
        workers.close()
        assert isinstance(done.result, Outcome)
        assert done.result.value == (device == "cuda:0")
        assert done.usage is not None
        assert done.usage.device == device


@pytest.mark.slow
def test_a_connection_that_is_closed_on_the_way_is_an_error_and_no_wait_for_ever() -> None:
    ray = connected_ray()
    workers = RayRunner().open(lambda run: time.sleep(600), NO_LIMITS)
    workers.submit(trial(0))
    ray.shutdown()
    with pytest.raises(RuntimeError, match="no longer connected"):
        workers.wait()
    with pytest.raises(RuntimeError, match="no longer connected"):
        workers.submit(trial(1))
    workers.stop([0], "enough")
    workers.close()
    assert not ray.is_initialized()


@pytest.mark.slow
def test_a_cluster_of_its_own_comes_and_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disconnected_ray()
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    workers = RayRunner(n_workers=1).open(endless(tmp_path / "pids"), NO_LIMITS)
    assert (workers.slots, workers.free) == (1, 1)
    workers.submit(trial(0))
    own, ray = written(tmp_path / "pids")
    workers.close()
    workers.close()
    eventually(lambda: not alive(own) and not alive(ray))


TOLD_TO_END = """
import os, signal, threading, time
import tradewind as tw
from tests.runners.clusters import imported_ray

imported_ray()
study = tw.create_study({"x": (0.0, 1.0)}, seed=0, storage="runs.db")

def objective(run):
    open("began", "w").close()
    time.sleep(600)

def end():
    while not os.path.exists("began"):
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGTERM)

threading.Thread(target=end, daemon=True).start()
study.optimize(objective, n_trials=1, runner=tw.runners.RayRunner(n_workers=1))
"""


@pytest.mark.slow
def test_a_search_that_is_told_to_end_requeues_its_trials_although_ray_has_a_handler(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", TOLD_TO_END],
        cwd=tmp_path,
        env={**environment(), "PYTHONWARNINGS": "default"},
        timeout=120,
    )
    assert done.returncode == 128 + signal.SIGTERM
    (trial,) = tw.load_study(tmp_path / "runs.db").trials
    assert (trial.state, trial.retries) == (State.WAITING, 0)


def test_a_cluster_of_its_own_that_could_never_begin_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class OneCpu:  # stands in for the package
        connected = False

        def is_initialized(self) -> bool:
            return self.connected

        def init(self, address: str, **options: Any) -> None:
            assert (address, options["num_cpus"]) == ("local", 1)
            self.connected = True

        def nodes(self) -> list[dict[str, Any]]:
            return [{"Alive": True, "Resources": {"CPU": 1.0}}]

        def shutdown(self) -> None:
            self.connected = False

    stand_in = OneCpu()
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setitem(sys.modules, "ray", stand_in)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="this machine does not have"):
        RayRunner(n_workers=1, resources={"special": 1}).open(lambda run: 1.0, NO_LIMITS)
    assert not stand_in.connected


def answer(server: socket.socket, says: bytes) -> None:
    client, _ = server.accept()
    with client:
        client.sendall(says)


@pytest.mark.parametrize("says", [b"", b"HTTP/1.1 400 Bad Request", None])
def test_an_address_without_a_cluster_is_an_error_that_names_it(
    says: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that says nothing, one of another kind, and none."""
    monkeypatch.setattr(runner_module, "_ANSWER", 0.1)
    monkeypatch.setattr(imported_ray(), "is_initialized", lambda: False)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        if says is None:
            server.close()
        elif says:
            threading.Thread(target=answer, args=(server, says)).start()
        for given in (address, f"ray://{address}"):
            with pytest.raises(tw.errors.WorkerError, match=f"reached at '{given}'.*ray start"):
                RayRunner(given).open(lambda run: 1.0, NO_LIMITS)


def test_without_the_package_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"pip install ray"):
        RayRunner().open(lambda run: 1.0, NO_LIMITS)


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="n_workers must be a whole number ≥ 1, but got 0"):
        RayRunner(n_workers=0)
    for amount in (-1, "2", math.inf, None):
        with pytest.raises(ValueError, match="the amount of gpu in resources must be a number ≥ 0"):
            RayRunner(resources={"gpu": amount})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="give n_workers"):
        RayRunner(resources={"cpu": 0})
    lock = threading.Lock()
    with pytest.raises(TypeError, match="cannot be pickled"):
        RayRunner().open(lambda run: float(lock.locked()), NO_LIMITS)


def test_resources_are_named_as_ray_names_them() -> None:
    needed = normalize({"GPU": 0.5, "memory": 1024, "special": 2})
    assert needed == {"cpu": 1, "gpu": 0.5, "memory": 1024, "special": 2}
    assert actor_options(needed) == {
        "num_cpus": 1,
        "num_gpus": 0.5,
        "memory": 1024,
        "resources": {"special": 2},
    }


@pytest.mark.parametrize(
    ("needed", "admitted"),
    [
        ({"cpu": 1}, 8),
        ({"cpu": 3}, 2),
        ({"cpu": 9}, 0),
        ({"cpu": 1, "gpu": 1}, 2),
        ({"cpu": 1, "gpu": 0.4}, 4),  # two on each: a part of a GPU is a part of one
        ({"cpu": 1, "gpu": 1 / 3}, 6),
        ({"cpu": 0.1, "gpu": 0.1}, 20),
        ({"cpu": 1, "memory": 3e9}, 5),
        ({"cpu": 1, "special": 1}, 0),
        ({"cpu": 0}, 1),
    ],
)
def test_a_node_admits_what_fits(needed: dict[str, float], admitted: int) -> None:
    assert count_fitting({"CPU": 8.0, "GPU": 2.0, "memory": 16e9}, needed) == admitted
