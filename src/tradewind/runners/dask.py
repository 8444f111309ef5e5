"""The runner that evaluates on a Dask cluster.

Dask chooses the worker. There the trial runs in a process of its own beside the worker's process,
so limits can be enforced and a crash costs only one trial.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from tradewind.checks import or_none, whole
from tradewind.errors import WorkerError
from tradewind.interrupts import Interruptible
from tradewind.output import logger as _logger
from tradewind.runners.apart import Assignment
from tradewind.runners.cluster import ClusterWorkers, RunningTrials, import_extra
from tradewind.runners.messages import encode, pack, shorten
from tradewind.runners.run import Objective
from tradewind.runners.runner import Failure, Lost, Result, TrialLimits
from tradewind.types import Trial

_FETCH_TIMEOUT = 30.0  # seconds for a small result to arrive


class DaskRunner:
    """Trials on a Dask cluster.

    `client` is a `distributed.Client`, the address of a scheduler, or None for a cluster of
    processes on this machine that is closed with the workers. `n_workers` trials run at the same
    time; by default, as many as the cluster has threads and `resources` for. `resources` are the
    Dask resources that every trial needs, such as `{"GPU": 1}`. If the name of a resource contains
    "gpu" and the worker sets CUDA_VISIBLE_DEVICES, trials have the device "cuda:0".

    A trial whose worker dies comes back as `Lost`, even if Dask restarts it elsewhere.

    >>> runner = tw.runners.DaskRunner("tcp://scheduler:8786", n_workers=8)
    >>> study.optimize(objective, n_trials=100, runner=runner)  # doctest: +SKIP
    """

    def __init__(
        self,
        client: Any = None,
        *,
        n_workers: int | None = None,
        resources: Mapping[str, float] | None = None,
        synchronous: bool = False,
    ) -> None:
        n_workers = or_none(whole, "n_workers", n_workers, 1)
        self.client, self.n_workers = client, n_workers
        self.resources, self.synchronous = dict(resources or {}), synchronous

    def open(self, objective: Objective, limits: TrialLimits) -> DaskWorkers:
        gpu = any("gpu" in name.lower() for name in self.resources)
        assignment = Assignment(pack(objective), limits, gpu=gpu)
        client, to_close = Interruptible(self._connect)()
        try:
            return DaskWorkers(self, client, assignment, to_close=to_close)
        except BaseException:
            _close(to_close)
            raise

    def _connect(self) -> tuple[Any, list[Any]]:
        """The client, and what must be closed after the search."""
        distributed = import_extra("distributed", "DaskRunner")
        if isinstance(self.client, distributed.Client):
            if self.client.asynchronous:
                raise ValueError("the client must not be asynchronous: leave out asynchronous=True")
            return self.client, []
        if isinstance(self.client, str):
            try:
                client = distributed.Client(self.client, set_as_default=False)
            except OSError as error:
                raise WorkerError(f"no Dask scheduler answers at {self.client}: {error}") from error
            return client, [client]
        if self.client is not None:
            raise TypeError(
                "client must be a distributed.Client, the address of a scheduler or None, "
                f"but got {self.client!r}"
            )
        cluster = distributed.LocalCluster(
            n_workers=self.n_workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            resources=self.resources or None,
        )
        client = distributed.Client(cluster, set_as_default=False)
        return client, [client, cluster]


class DaskWorkers(ClusterWorkers[str, Any]):
    """The workers of a Dask cluster. Closing them closes `to_close` as well."""

    def __init__(
        self, runner: DaskRunner, client: Any, assignment: Assignment, *, to_close: list[Any]
    ) -> None:
        super().__init__(n_workers=runner.n_workers, synchronous=runner.synchronous)
        self._client, self._to_close = client, to_close
        self._resources = runner.resources
        self._address = str(client.scheduler.address)
        # The key of a trial, with the worker on which it has begun, or with None when it is done.
        self._reports: SimpleQueue[tuple[str, str | None]] = SimpleQueue()
        self._worker_of: dict[str, str] = {}  # the worker on which a trial has begun, by key
        self._trials = RunningTrials[str, Any](lambda it: it.release(), device=assignment.device)
        self._name, self._sent, self._closed = f"tradewind-{uuid.uuid4().hex}", 0, False
        self._refresh()
        if self._workers and not self._capacity:
            _logger.warning("no Dask worker has what a trial needs: %s", self._resources)
        self._send(assignment)

    def _send(self, assignment: Assignment) -> None:
        from tradewind.runners.dask_worker import AssignmentPlugin

        for try_again in (True, True, False):
            try:
                self._client.register_plugin(AssignmentPlugin(assignment), name=self._name)
                break
            except OSError as error:  # a worker has died meanwhile
                if not try_again:
                    raise self._connection_lost() from error
            except Exception as error:  # Dask does not keep the type of a worker's error
                with suppress(Exception):
                    self._client.unregister_worker_plugin(self._name)
                raise _cannot_evaluate(error) from error
        self._client.subscribe_topic(self._name, self._on_begun)

    def _on_begun(self, event: tuple[float, dict[str, str]]) -> None:
        """Called in the client's thread."""
        self._reports.put((event[1]["key"], event[1]["worker"]))

    def submit(self, trial: Trial, *, within: float | None = None) -> None:
        from tradewind.runners.dask_worker import evaluate

        self._check_connection()
        self._sent += 1
        key = f"{self._name}-{trial.number}-{self._sent}"
        future = self._client.submit(
            evaluate,
            self._name,
            encode(trial),
            within,
            key=key,
            pure=False,
            resources=self._resources or None,
        )
        self._trials.add(key, trial, future, within)
        future.add_done_callback(lambda future: self._reports.put((key, None)))

    def _receive(self, timeout: float) -> None:
        with suppress(Empty):
            key, worker = self._reports.get(timeout=timeout)
            while True:
                if key in self._trials:
                    self._read_report(key, worker)
                key, worker = self._reports.get_nowait()
        self._refresh_if_due()

    def _read_report(self, key: str, worker: str | None) -> None:
        if worker is None:
            self._fetch_result(key)
        elif self._worker_of.setdefault(key, worker) != worker:  # Dask has started it again
            self._finish(key, Lost(f"its Dask worker {self._worker_of[key]} went away"))

    def _fetch_result(self, key: str) -> None:
        from distributed import CancelledError, KilledWorker

        self._check_connection()  # Dask cancels all futures when the connection is lost
        try:
            answer = self._trials[key].result(timeout=_FETCH_TIMEOUT)
        except KilledWorker as error:
            self._finish(key, Lost(f"its Dask workers went away: {error}"))
        except CancelledError:
            self._finish(key, Lost("Dask has cancelled it"))
        except TimeoutError:
            self._finish(key, Lost("its result was lost with its Dask worker"))
        except Exception as error:  # any other error of the cluster
            self._finish(key, Failure(shorten(str(_cannot_evaluate(error)))))
        else:
            self._worker_of.pop(key, None)
            self._trials.read(key, answer).release()

    def _finish(self, key: str, result: Result) -> None:
        self._worker_of.pop(key, None)
        self._trials.finish(key, result).release()

    def _refresh(self) -> None:
        """Ask which workers there are. Trials that had begun on a worker that is gone are lost."""
        self._check_connection()
        try:
            self._workers = self._client.scheduler_info(n_workers=-1)["workers"]
        except OSError as error:
            raise self._connection_lost() from error
        self._capacity = sum(_capacity(w, self._resources) for w in self._workers.values())
        self._refreshed = time.monotonic()
        for key, worker in list(self._worker_of.items()):
            if key not in self._trials:
                del self._worker_of[key]
            elif worker not in self._workers:
                self._finish(key, Lost(f"its Dask worker {worker} went away"))

    def _check_connection(self) -> None:
        if self._client.status != "running":
            raise self._connection_lost()

    def _connection_lost(self) -> WorkerError:
        return WorkerError(
            f"the Dask scheduler at {self._address} cannot be reached any more, or the client is "
            f"closed: {len(self._trials)} running trials are lost"
        )

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        for future in self._trials.clear():
            future.release()
        if self._client.status == "running":
            with suppress(OSError, RuntimeError, ValueError):  # a worker may die meanwhile
                self._client.unsubscribe_topic(self._name)
                self._client.unregister_worker_plugin(self._name)
        _close(self._to_close)


def _cannot_evaluate(error: Exception) -> WorkerError:
    return WorkerError(
        "a trial cannot be evaluated on the Dask cluster, whose workers must be able to import "
        f"Tradewind and what the objective needs: {error}"
    )


def _capacity(worker: Mapping[str, Any], resources: Mapping[str, float]) -> int:
    """How many trials a worker can run at the same time."""
    has = worker["resources"]
    return int(min([worker["nthreads"], *(has.get(r, 0) / n for r, n in resources.items() if n)]))


def _close(things: Iterable[Any]) -> None:
    for thing in things:
        with suppress(OSError, RuntimeError, TimeoutError):  # it may be closed already
            thing.close()
