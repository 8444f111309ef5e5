"""Where objectives are evaluated: here, in worker processes, on clusters, or virtually."""

from tradewind.runners.dask import DaskRunner
from tradewind.runners.processes import ProcessRunner
from tradewind.runners.ray import RayRunner
from tradewind.runners.run import Run
from tradewind.runners.runner import Done, Failure, Lost, Runner, Stopped, TrialLimits, Workers
from tradewind.runners.serial import SerialRunner
from tradewind.runners.simulated import SimulatedRunner

__all__ = [
    "DaskRunner",
    "Done",
    "Failure",
    "Lost",
    "ProcessRunner",
    "RayRunner",
    "Run",
    "Runner",
    "SerialRunner",
    "SimulatedRunner",
    "Stopped",
    "TrialLimits",
    "Workers",
]
