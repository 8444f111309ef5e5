"""The runner that evaluates on a Ray cluster.

Ray chooses the node and holds the resources that a trial needs; there, the trial runs in a process
of its own beside Ray's worker, so that limits hold and a crash costs one trial.
"""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tradewind.checks import or_none, whole
from tradewind.errors import WorkerError
from tradewind.runners.cluster import Account, ClusterWorkers, Order
from tradewind.runners.ray_resources import needs, options, room
from tradewind.runners.run import Objective
from tradewind.runners.runner import Done, Failure, Lost, Result, TrialLimits
from tradewind.runners.worker import packed
from tradewind.types import Trial

_logger = logging.getLogger("tradewind")

_IDLE = 5.0  # seconds after which an actor without a trial gives back its resources


class RayRunner:
    """Trials on a Ray cluster.

    `address` is that of a cluster, as `ray.init` takes it; a process that is connected to one
    stays so. None is the cluster that RAY_ADDRESS names, or else one on this machine that is shut
    down with the workers. `resources` are what one trial needs, such as `{"gpu": 0.5, "cpu": 2,
    "memory": 2**30, "special": 1}`, and one CPU unless they say otherwise. As many trials run at
    the same time as the nodes admit, or `n_workers`. Trials that need GPUs have the device
    "cuda:0". `log_to_driver` shows here what Ray's workers print.

    A trial whose node or Ray worker goes away comes back as `Lost`; one whose own process crashes
    has failed, and so has one that Ray kills because its node is short of memory.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        n_workers: int | None = None,
        resources: Mapping[str, float] | None = None,
        synchronous: bool = False,
        log_to_driver: bool = False,
    ) -> None:
        n_workers = or_none(whole, "n_workers", n_workers, 1)
        self.address, self.n_workers, self.resources = address, n_workers, needs(resources or {})
        self.synchronous, self.log_to_driver = synchronous, log_to_driver
        if n_workers is None and not any(self.resources.values()):
            raise ValueError("give n_workers, because trials that need nothing are not limited")

    def open(self, objective: Objective, limits: TrialLimits) -> RayWorkers:
        opened = time.monotonic()
        order = Order(packed(objective), limits, gpu=self.resources.get("gpu", 0) > 0)
        ray = _ray()
        connected = ray.is_initialized()
        if not connected:
            self._connect(ray)
        try:
            return RayWorkers(self, ray, order, disconnect=not connected, opened=opened)
        except BaseException:
            if not connected:
                ray.shutdown()
            raise

    def _connect(self, ray: Any) -> None:
        quiet = {"log_to_driver": self.log_to_driver, "logging_level": logging.ERROR}
        address = self.address or os.environ.get("RAY_ADDRESS") or "local"
        if address != "local":
            ray.init(address, **quiet)
            return
        cpus = self.n_workers and math.ceil(self.n_workers * self.resources["cpu"])
        ray.init(address, num_cpus=cpus or None, include_dashboard=False, **quiet)
        nodes = [node["Resources"] for node in ray.nodes()]
        if not any(room(node, self.resources) for node in nodes):
            ray.shutdown()
            raise ValueError(f"a trial needs {self.resources}, which this machine does not have")


@dataclass(frozen=True)
class _Call:
    """A trial in the hands of an actor."""

    number: int
    actor: Any
    reference: Any


class RayWorkers(ClusterWorkers[Any, _Call]):
    """A Ray cluster at work: a pool of actors, each of which evaluates one trial at a time.

    Trials are no tasks of Ray, because to cancel a task that is just ending may crash the driver
    (Check failed: "Tried to complete task that was not pending"); an actor can be asked to stop.
    """

    def __init__(
        self, runner: RayRunner, ray: Any, order: Order, *, disconnect: bool, opened: float
    ) -> None:
        super().__init__(n_workers=runner.n_workers, synchronous=runner.synchronous, opened=opened)
        self._ray, self._disconnect = ray, disconnect
        self._needed = runner.resources
        self._account: Account[Any, _Call] = Account(self._end, device=order.device)
        self._ending: dict[Any, _Call] = {}  # by reference: stopped, but not gone yet
        self._idle: list[tuple[Any, float]] = []  # actors, and since when
        self._calls, self._closed = 0, False
        self._look()
        if not self._room:
            _logger.warning("no node of the Ray cluster has what a trial needs: %s", self._needed)
        self._order = ray.put(order)
        given = {"concurrency_groups": {"control": 1}, **options(self._needed)}
        self._actor = ray.remote(**given)(_Evaluator)

    def submit(self, trial: Trial, *, within: float | None = None) -> None:
        self._check()
        self._calls += 1
        actor = self._taken()
        reference = actor.evaluate.remote(self._calls, trial, within)
        self._account.add(reference, trial, _Call(self._calls, actor, reference), within)

    def _taken(self) -> Any:
        """An actor that is idle, or new, or else one that is likely to be idle soon."""
        if self._idle:
            return self._idle.pop()[0]
        unfinished = self._unfinished()
        if len(unfinished) < self.slots:
            return self._actor.remote(self._order)
        return unfinished[0].actor

    def _unfinished(self) -> list[_Call]:
        return [*self._ending.values(), *self._account.handles()]

    def _hear(self, patience: float) -> None:
        references = [*self._account.keys(), *self._ending]
        if self._ray.wait(references, timeout=patience)[0]:
            ready, _ = self._ray.wait(references, num_returns=len(references), timeout=0)
            for reference in ready:
                self._ended(reference)
        self._retire()

    def _ended(self, reference: Any) -> None:
        stopped = self._ending.pop(reference, None)
        try:
            done: Done = self._ray.get(reference)
        except Exception as error:  # whatever the cluster has to say
            if stopped is None:
                self._account.settle(reference, self._mishap(error))
            return
        call = stopped or self._account.settle(reference, done.result, done.usage)
        if all(other.actor is not call.actor for other in self._unfinished()):
            self._idle.append((call.actor, time.monotonic()))

    def _mishap(self, error: Exception) -> Result:
        """What an error that is not the objective's makes of a trial; raised if that has none."""
        errors, text = self._ray.exceptions, str(error)
        if isinstance(error, errors.OutOfMemoryError):
            return Failure(f"Ray has killed it: {text}")
        gone = (errors.RayActorError, errors.ObjectLostError, errors.NodeDiedError)
        started = "failed to import" not in text and "creation task" not in text
        if isinstance(error, gone) and started:
            return Lost(f"its Ray worker or node went away: {text}")
        raise WorkerError(
            "a trial cannot be evaluated on the Ray cluster, whose nodes must be able to import "
            f"Tradewind and what the objective needs: {text}"
        ) from error

    def _retire(self) -> None:
        """Give back what idle actors hold: other trials may wait for it, or other people."""
        last = time.monotonic() - _IDLE
        for actor in [actor for actor, since in self._idle if since < last]:
            self._ray.kill(actor)
        self._idle = [(actor, since) for actor, since in self._idle if since >= last]

    def _look(self) -> None:
        self._check()
        try:
            nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        except self._ray.exceptions.RayError as error:
            raise WorkerError(f"the Ray cluster cannot be reached any more: {error}") from error
        self._room = sum(room(node, self._needed) for node in nodes)
        self._looked = time.monotonic()

    def _check(self) -> None:
        if not self._ray.is_initialized():  # the next call would quietly start a cluster
            raise WorkerError(
                "this process is no longer connected to its Ray cluster: "
                f"{len(self._account)} trials that ran there are gone"
            )

    def _end(self, call: _Call) -> None:
        if self._ray.is_initialized():
            call.actor.stop.options(concurrency_group="control").remote(call.number)
            self._ending[call.reference] = call

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        unfinished = [*self._ending.values(), *self._account.clear()]
        if self._ray.is_initialized():
            for actor in [actor for actor, _ in self._idle] + [call.actor for call in unfinished]:
                self._ray.kill(actor)
            if self._disconnect:
                self._ray.shutdown()


class _Evaluator:
    """Runs in a worker of Ray."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._stopped: set[int] = set()

    def evaluate(self, call: int, trial: Trial, within: float | None) -> Done:
        def stopped() -> str | None:
            return "nobody waits for it" if call in self._stopped else None

        return self._order.evaluate(trial, within=within, stopped=stopped)

    def stop(self, call: int) -> None:
        self._stopped.add(call)


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise ImportError("RayRunner needs ray: pip install 'tradewind[ray]'") from error
    return ray
