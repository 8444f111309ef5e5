"""What runs on a worker of a Dask cluster: the plugin that brings the objective, and one trial."""

from __future__ import annotations

from typing import Any

from distributed import WorkerPlugin, get_worker

from tradewind.errors import WorkerError
from tradewind.runners.apart import Assignment, answer
from tradewind.runners.runner import Done
from tradewind.types import Trial


class AssignmentPlugin(WorkerPlugin):
    """Dask sends a plugin once to every worker, also to those that join later."""

    def __init__(self, assignment: Assignment) -> None:
        self.assignment = assignment


def evaluate(name: str, message: str, within: float | None) -> str:
    """The answer about the trial in a message. `name` is the plugin's name."""
    return answer(message, lambda trial: _evaluate(name, trial, within))


def _evaluate(name: str, trial: Trial, within: float | None) -> Done:
    """Tell the driver which worker has the trial, then evaluate it.

    Dask cannot end a running task. But when a task is cancelled or its driver is gone, Dask changes
    the task's state on the worker, and the trial then ends."""
    worker: Any = get_worker()
    key = worker.get_current_task()
    plugin = worker.plugins.get(name)
    if plugin is None:
        raise WorkerError(f"the objective has not reached {worker.address}: see that worker's log")
    worker.log_event(name, {"key": key, "worker": worker.address})

    def why_stop() -> str | None:
        task = worker.state.tasks.get(key)
        wanted = task is not None and task.state in ("executing", "long-running")
        return None if wanted else "nobody waits for it"

    done: Done = plugin.assignment.evaluate(trial, within=within, why_stop=why_stop)
    return done
