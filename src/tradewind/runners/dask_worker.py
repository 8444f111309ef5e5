"""What runs on a worker of a Dask cluster: the objective that it was sent, and one trial."""

from __future__ import annotations

from typing import Any

from distributed import WorkerPlugin, get_worker

from tradewind.errors import WorkerError
from tradewind.runners.cluster import Order
from tradewind.runners.runner import Done
from tradewind.types import Trial


class Objectives(WorkerPlugin):
    """An order for trials. As a plugin it travels once to every worker, also to later ones."""

    def __init__(self, order: Order) -> None:
        self.order = order


def evaluate(name: str, trial: Trial, within: float | None) -> Done:
    """Evaluate a trial of the order that is known here by `name`, after telling the driver where.

    Dask cannot end a running task, but it marks one that nobody waits for any more, because it was
    cancelled or the driver has gone: the trial ends then."""
    worker: Any = get_worker()
    key = worker.get_current_task()
    plugin = worker.plugins.get(name)
    if plugin is None:
        raise WorkerError(f"the objective has not arrived at {worker.address}: see its log")
    worker.log_event(name, {"key": key, "worker": worker.address})

    def stopped() -> str | None:
        task = worker.state.tasks.get(key)
        wanted = task is not None and task.state in ("executing", "long-running")
        return None if wanted else "nobody waits for it"

    done: Done = plugin.order.evaluate(trial, within=within, stopped=stopped)
    return done
