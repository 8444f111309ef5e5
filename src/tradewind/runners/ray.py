"""The runner that evaluates on a Ray cluster.

Ray chooses the node and reserves the resources that a trial needs. There the trial runs in a
process of its own beside Ray's worker, so limits can be enforced and a crash costs only one trial.
"""

from __future__ import annotations

import logging
import math
import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tradewind.checks import not_negative, or_none, whole
from tradewind.errors import WorkerError
from tradewind.interrupts import Interruptible
from tradewind.output import logger as _logger
from tradewind.runners.apart import Assignment, answer
from tradewind.runners.cluster import ClusterWorkers, RunningTrials, import_extra
from tradewind.runners.messages import encode, pack, shorten
from tradewind.runners.run import Objective
from tradewind.runners.runner import Done, Failure, Lost, Result, TrialLimits
from tradewind.types import Trial

_ANSWER = 3.0  # seconds within which a server must answer
_SETTINGS = b"\x04"  # the type of the first frame from each side in HTTP/2, which gRPC speaks
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + _SETTINGS + bytes(5)
_IDLE = 5.0  # seconds after which an actor without a trial is ended, to free its resources

_OPTIONS = {"cpu": "num_cpus", "gpu": "num_gpus", "memory": "memory"}  # of an actor
_NAMES = {"cpu": "CPU", "gpu": "GPU"}  # of the resources of a node


class RayRunner:
    """Trials on a Ray cluster.

    `address` is the address of a cluster, as for `ray.init`. It is not used if this process is
    connected already. None is the cluster that RAY_ADDRESS names, or else a cluster on this machine
    that is shut down with the workers. `resources` are what one trial needs, such as `{"gpu": 0.5,
    "cpu": 2, "memory": 2**30, "special": 1}`; without "cpu", one CPU. `n_workers` trials
    run at the same time; by default, as many as fit on the nodes. Trials that need GPUs have the
    device "cuda:0". `log_to_driver` prints in this process what Ray's workers print.

    A trial whose node or Ray worker dies comes back as `Lost`. A trial whose own process crashes
    has failed, and so has a trial that Ray kills because its node is short of memory.

    >>> runner = tw.runners.RayRunner(n_workers=8, resources={"gpu": 0.5, "cpu": 2})
    >>> study.optimize(objective, n_trials=100, runner=runner)  # doctest: +SKIP
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
        self.address, self.n_workers = address, n_workers
        self.resources = normalize(resources or {})
        self.synchronous, self.log_to_driver = synchronous, log_to_driver
        if n_workers is None and not any(self.resources.values()):
            raise ValueError(
                f"resources must name an amount > 0, but got {self.resources}: give n_workers, "
                "because nothing else limits how many trials run"
            )

    def open(self, objective: Objective, limits: TrialLimits) -> RayWorkers:
        gpu = self.resources.get("gpu", 0) > 0
        assignment = Assignment(pack(objective), limits, gpu=gpu)
        ray = import_extra("ray", "RayRunner")
        connected = ray.is_initialized()
        if not connected:
            Interruptible(self._connect)(ray)
        try:
            return RayWorkers(self, ray, assignment, disconnect=not connected)
        except BaseException:
            if not connected:
                ray.shutdown()
            raise

    def _connect(self, ray: Any) -> None:
        quiet = {"log_to_driver": self.log_to_driver, "logging_level": logging.ERROR}
        address = self.address or os.environ.get("RAY_ADDRESS") or "local"
        if address != "local":
            _check_reachable(address)
            try:
                ray.init(address, **quiet)
            except (ConnectionError, ray.exceptions.RayError) as error:
                raise WorkerError(
                    f"no Ray cluster can be used at {address!r}: {error}. If a cluster runs there, "
                    "its token is missing here: set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN to what "
                    "`ray get-auth-token` prints on its head node"
                ) from error
            return
        cpus = self.n_workers and math.ceil(self.n_workers * self.resources["cpu"])
        ray.init(address, num_cpus=cpus or None, include_dashboard=False, **quiet)
        nodes = [node["Resources"] for node in ray.nodes()]
        if not any(count_fitting(node, self.resources) for node in nodes):
            ray.shutdown()
            raise ValueError(
                f"a trial needs {self.resources}, which this machine does not have: "
                "ask for less, or give the address of a cluster"
            )


@dataclass(frozen=True)
class _Call:
    """A trial that an actor evaluates."""

    number: int
    actor: Any
    reference: Any


class RayWorkers(ClusterWorkers[Any, _Call]):
    """A pool of Ray actors. Each evaluates one trial at a time.

    Trials are not Ray tasks, because cancelling a task that is just ending can crash the driver
    (Check failed: "Tried to complete task that was not pending"). An actor can be asked to stop.
    """

    def __init__(
        self, runner: RayRunner, ray: Any, assignment: Assignment, *, disconnect: bool
    ) -> None:
        super().__init__(n_workers=runner.n_workers, synchronous=runner.synchronous)
        self._ray, self._disconnect = ray, disconnect
        self._needed = runner.resources
        self._trials = RunningTrials[Any, _Call](self._stop_call, device=assignment.device)
        self._stopping: dict[Any, _Call] = {}  # by reference: asked to stop, but not done yet
        self._idle: list[tuple[Any, float]] = []  # actors, and since when
        self._calls, self._closed = 0, False
        self._refresh()
        if not self._capacity:
            _logger.warning("no node of the Ray cluster has what a trial needs: %s", self._needed)
        self._assignment = ray.put(assignment)
        options = {"concurrency_groups": {"control": 1}, **actor_options(self._needed)}
        self._actor = ray.remote(**options)(_Evaluator)

    def submit(self, trial: Trial, *, within: float | None = None) -> None:
        self._check_connection()
        self._calls += 1
        actor = self._choose_actor()
        reference = actor.evaluate.remote(self._calls, encode(trial), within)
        self._trials.add(reference, trial, _Call(self._calls, actor, reference), within)

    def _choose_actor(self) -> Any:
        """An idle actor, or a new one, or else one that is likely to be idle soon."""
        if self._idle:
            return self._idle.pop()[0]
        unfinished = self._unfinished()
        if len(unfinished) < self.slots:
            return self._actor.remote(self._assignment)
        return unfinished[0].actor

    def _unfinished(self) -> list[_Call]:
        return [*self._stopping.values(), *self._trials.handles()]

    def _receive(self, timeout: float) -> None:
        references = [*self._trials.keys(), *self._stopping]
        if self._ray.wait(references, timeout=timeout)[0]:
            ready, _ = self._ray.wait(references, num_returns=len(references), timeout=0)
            for reference in ready:
                self._fetch_result(reference)
        self._kill_idle_actors()

    def _fetch_result(self, reference: Any) -> None:
        stopped = self._stopping.pop(reference, None)
        try:
            answer = self._ray.get(reference)
        except Exception as error:  # any error of the cluster
            if stopped is None:
                self._trials.finish(reference, self._result_of_error(error))
            return
        call = stopped or self._trials.read(reference, answer)
        if all(other.actor is not call.actor for other in self._unfinished()):
            self._idle.append((call.actor, time.monotonic()))

    def _result_of_error(self, error: Exception) -> Result:
        """The result of a trial that the cluster could not evaluate. Raises WorkerError if workers
        cannot even start."""
        errors, text = self._ray.exceptions, str(error)
        if isinstance(error, errors.OutOfMemoryError):
            return Failure(f"Ray has killed the trial: {text}")
        lost = (errors.RayActorError, errors.ObjectLostError, errors.NodeDiedError)
        started = "failed to import" not in text and "creation task" not in text
        if isinstance(error, lost) and started:
            return Lost(f"its Ray worker or node went away: {text}")
        text = (
            "a trial cannot be evaluated on the Ray cluster, whose nodes must be able to import "
            f"Tradewind and what the objective needs: {text}"
        )
        if isinstance(error, lost):
            raise WorkerError(text) from error
        return Failure(shorten(text))

    def _kill_idle_actors(self) -> None:
        """Free the resources of idle actors, for which other trials or other users may wait."""
        last = time.monotonic() - _IDLE
        for actor in [actor for actor, since in self._idle if since < last]:
            self._ray.kill(actor)
        self._idle = [(actor, since) for actor, since in self._idle if since >= last]

    def _refresh(self) -> None:
        self._check_connection()
        try:
            nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        except self._ray.exceptions.RayError as error:
            raise WorkerError(f"the Ray cluster cannot be reached any more: {error}") from error
        self._capacity = sum(count_fitting(node, self._needed) for node in nodes)
        self._refreshed = time.monotonic()

    def _check_connection(self) -> None:
        if not self._ray.is_initialized():  # the next call of Ray would silently start a cluster
            raise WorkerError(
                "this process is no longer connected to its Ray cluster: "
                f"{len(self._trials)} running trials are lost"
            )

    def _stop_call(self, call: _Call) -> None:
        if self._ray.is_initialized():
            call.actor.stop.options(concurrency_group="control").remote(call.number)
            self._stopping[call.reference] = call

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        unfinished = [*self._stopping.values(), *self._trials.clear()]
        if self._ray.is_initialized():
            for actor in [actor for actor, _ in self._idle] + [call.actor for call in unfinished]:
                self._ray.kill(actor)
            if self._disconnect:
                self._ray.shutdown()


class _Evaluator:
    """The actor: it runs in a worker of Ray."""

    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment
        self._stopped: set[int] = set()

    def evaluate(self, call: int, message: str, within: float | None) -> str:
        def why_stop() -> str | None:
            return "nobody waits for it" if call in self._stopped else None

        def evaluate(trial: Trial) -> Done:
            return self._assignment.evaluate(trial, within=within, why_stop=why_stop)

        return answer(message, evaluate)

    def stop(self, call: int) -> None:
        self._stopped.add(call)


def _check_reachable(address: str) -> None:
    """`WorkerError` unless a gRPC server answers: Ray itself would try again and again."""
    host, _, port = address.rpartition("//")[2].partition("/")[0].rpartition(":")
    if not port.isdecimal() or "RAY_USE_TLS" in os.environ:  # or it is "auto", or another name
        return
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER) as server:
            server.sendall(_HELLO)
            if server.recv(9)[3:4] != _SETTINGS:
                raise OSError("another kind of server answers there")
    except OSError as error:
        raise WorkerError(
            f"no Ray cluster can be reached at {address!r}: {error}. An address is host:port of a "
            "head node, as `ray start` prints it, or ray://host:10001"
        ) from error


# ---- what a trial needs, with our names and with Ray's ----


def normalize(resources: Mapping[str, float]) -> dict[str, float]:
    """The resources with cpu, gpu and memory in lower case, and one CPU if none is named."""
    for name, amount in resources.items():
        not_negative(f"the amount of {name} in resources", amount)
    names = {name: name.lower() if name.lower() in _OPTIONS else name for name in resources}
    return {"cpu": 1, **{names[name]: amount for name, amount in resources.items()}}


def actor_options(needed: Mapping[str, float]) -> dict[str, Any]:
    """The resources as options of a Ray actor."""
    built_in = {option: needed[name] for name, option in _OPTIONS.items() if name in needed}
    custom = {name: amount for name, amount in needed.items() if name not in _OPTIONS}
    return {**built_in, "resources": custom}


def count_fitting(node: Mapping[str, float], needed: Mapping[str, float]) -> int:
    """How many trials fit on a node. A part of a GPU must be a part of one GPU, not of two."""
    fitting = math.inf
    for name, amount in needed.items():
        has = node.get(_NAMES.get(name, name), 0.0)
        if name == "gpu" and 0 < amount < 1:
            fitting = min(fitting, int(has) * _divide(1.0, amount))
        elif amount:
            fitting = min(fitting, _divide(has, amount))
    return int(fitting) if fitting < math.inf else 1


def _divide(has: float, amount: float) -> int:
    return int(has / amount + 1e-9)  # a third of a GPU fits three times
