"""The runner that evaluates on a Dask cluster.

Dask chooses the worker; there, the trial runs in a process of its own beside that of the worker,
so that limits hold and a crash costs one trial.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from tradewind.checks import or_none, whole
from tradewind.errors import WorkerError
from tradewind.runners.cluster import Account, ClusterWorkers, Order
from tradewind.runners.run import Objective
from tradewind.runners.runner import Done, Lost, Result, TrialLimits
from tradewind.runners.worker import packed
from tradewind.types import Trial, Usage

_logger = logging.getLogger("tradewind")

_FETCH = 30.0  # seconds for a small result to arrive


class DaskRunner:
    """Trials on a Dask cluster.

    `client` is a `distributed.Client`, the address of a scheduler, or None for a cluster of
    processes on this machine that is closed with the workers. As many trials run at the same time
    as the cluster has threads, `resources` permitting, or `n_workers`. `resources` are Dask's own,
    such as `{"GPU": 1}`, and every trial needs them. On a worker that limits CUDA_VISIBLE_DEVICES,
    trials that need a resource named after GPUs have the device "cuda:0".

    A trial whose worker goes away comes back as `Lost`; what Dask would do about it does not count.
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
        opened = time.monotonic()
        gpu = any("gpu" in name.lower() for name in self.resources)
        order = Order(packed(objective), limits, gpu=gpu)
        client, own = self._connected()
        try:
            return DaskWorkers(self, client, order, own=own, opened=opened)
        except BaseException:
            _close(own)
            raise

    def _connected(self) -> tuple[Any, list[Any]]:
        """The client, and what has to be closed afterwards."""
        distributed = _distributed()
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
    """A Dask cluster at work; `own` are the things that have to be closed with it."""

    def __init__(
        self, runner: DaskRunner, client: Any, order: Order, *, own: list[Any], opened: float
    ) -> None:
        super().__init__(n_workers=runner.n_workers, synchronous=runner.synchronous, opened=opened)
        self._client, self._own = client, own
        self._resources = runner.resources
        self._address = str(client.scheduler.address)
        self._news: SimpleQueue[tuple[str, str | None]] = SimpleQueue()
        self._where: dict[str, str] = {}  # the worker on which a trial has begun
        self._account: Account[str, Any] = Account(
            lambda future: future.release(), device=order.device
        )
        self._name, self._sent, self._closed = f"tradewind-{uuid.uuid4().hex}", 0, False
        self._look()
        if self._workers and not self._room:
            _logger.warning("no Dask worker has what a trial needs: %s", self._resources)
        self._send(order)

    def _send(self, order: Order) -> None:
        from tradewind.runners.dask_worker import Objectives

        for again in (True, True, False):
            try:
                self._client.register_plugin(Objectives(order), name=self._name)
                break
            except OSError as error:  # a worker has gone meanwhile
                if not again:
                    raise self._gone() from error
            except Exception as error:  # Dask does not keep the types of such
                with suppress(Exception):
                    self._client.unregister_worker_plugin(self._name)
                raise _not_evaluated(error) from error
        self._client.subscribe_topic(self._name, self._begun)

    def _begun(self, event: tuple[float, dict[str, str]]) -> None:
        """Called in the client's thread."""
        self._news.put((event[1]["key"], event[1]["worker"]))

    def submit(self, trial: Trial, *, within: float | None = None) -> None:
        from tradewind.runners.dask_worker import evaluate

        self._check()
        self._sent += 1
        key = f"{self._name}-{trial.number}-{self._sent}"
        future = self._client.submit(
            evaluate,
            self._name,
            trial,
            within,
            key=key,
            pure=False,
            resources=self._resources or None,
        )
        self._account.add(key, trial, future, within)
        future.add_done_callback(lambda future: self._news.put((key, None)))

    def _hear(self, patience: float) -> None:
        with suppress(Empty):
            key, worker = self._news.get(timeout=patience)
            while True:
                if key in self._account:
                    self._heard(key, worker)
                key, worker = self._news.get_nowait()
        self._look_now_and_then()

    def _heard(self, key: str, worker: str | None) -> None:
        if worker is None:
            self._ended(key)
        elif self._where.setdefault(key, worker) != worker:  # Dask has begun it once more
            self._settle(key, Lost(f"its Dask worker {self._where[key]} went away"))

    def _ended(self, key: str) -> None:
        from distributed import CancelledError, KilledWorker

        self._check()  # a lost connection cancels all that is out
        try:
            done: Done = self._account[key].result(timeout=_FETCH)
        except KilledWorker as error:
            self._settle(key, Lost(f"its Dask workers went away: {error}"))
        except CancelledError:
            self._settle(key, Lost("Dask has cancelled it"))
        except TimeoutError:
            self._settle(key, Lost("its result went away with its Dask worker"))
        except Exception as error:  # whatever the cluster has to say
            raise _not_evaluated(error) from error
        else:
            self._settle(key, done.result, done.usage)

    def _settle(self, key: str, result: Result, usage: Usage | None = None) -> None:
        self._where.pop(key, None)
        self._account.settle(key, result, usage).release()

    def _look(self) -> None:
        """See which workers there are; what had begun on one that has gone is lost."""
        self._check()
        try:
            self._workers = self._client.scheduler_info(n_workers=-1)["workers"]
        except OSError as error:
            raise self._gone() from error
        self._room = sum(_room(worker, self._resources) for worker in self._workers.values())
        self._looked = time.monotonic()
        for key, worker in list(self._where.items()):
            if key not in self._account:
                del self._where[key]
            elif worker not in self._workers:
                self._settle(key, Lost(f"its Dask worker {worker} went away"))

    def _check(self) -> None:
        if self._client.status != "running":
            raise self._gone()

    def _gone(self) -> WorkerError:
        return WorkerError(
            f"the Dask scheduler at {self._address} cannot be reached any more, or the client is "
            f"closed: {len(self._account)} trials that ran there are gone with it"
        )

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        for future in self._account.clear():
            future.release()
        if self._client.status == "running":
            with suppress(OSError, RuntimeError, ValueError):  # workers may go meanwhile
                self._client.unsubscribe_topic(self._name)
                self._client.unregister_worker_plugin(self._name)
        _close(self._own)


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise ImportError("DaskRunner needs distributed: pip install 'tradewind[dask]'") from error
    return distributed


def _not_evaluated(error: Exception) -> WorkerError:
    return WorkerError(
        "a trial cannot be evaluated on the Dask cluster, whose workers must be able to import "
        f"Tradewind and what the objective needs: {error}"
    )


def _room(worker: Mapping[str, Any], resources: Mapping[str, float]) -> int:
    """How many trials a worker takes at the same time."""
    has = worker["resources"]
    return int(min([worker["nthreads"], *(has.get(r, 0) / n for r, n in resources.items() if n)]))


def _close(things: Iterable[Any]) -> None:
    for thing in things:
        with suppress(OSError, RuntimeError, TimeoutError):  # it may have gone before us
            thing.close()
