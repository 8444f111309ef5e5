"""Where trials run: in this process, in worker processes, on clusters, or on a virtual clock.

Every public name is loaded when it is first used, so a worker process loads only what it needs.

>>> study.optimize(objective, n_trials=8, runner=tw.runners.SimulatedRunner(4))
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

if _TYPE_CHECKING:
    from tradewind.runners.dask import DaskRunner as DaskRunner
    from tradewind.runners.processes import ProcessRunner as ProcessRunner
    from tradewind.runners.ray import RayRunner as RayRunner
    from tradewind.runners.run import Run as Run
    from tradewind.runners.runner import Done as Done
    from tradewind.runners.runner import Failure as Failure
    from tradewind.runners.runner import Lost as Lost
    from tradewind.runners.runner import Runner as Runner
    from tradewind.runners.runner import Stopped as Stopped
    from tradewind.runners.runner import TrialLimits as TrialLimits
    from tradewind.runners.runner import Workers as Workers
    from tradewind.runners.serial import SerialRunner as SerialRunner
    from tradewind.runners.simulated import SimulatedRunner as SimulatedRunner

_HOMES = {
    "DaskRunner": "dask",
    "Done": "runner",
    "Failure": "runner",
    "Lost": "runner",
    "ProcessRunner": "processes",
    "RayRunner": "ray",
    "Run": "run",
    "Runner": "runner",
    "SerialRunner": "serial",
    "SimulatedRunner": "simulated",
    "Stopped": "runner",
    "TrialLimits": "runner",
    "Workers": "runner",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> _Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(_import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value  # the next use finds it without asking
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
