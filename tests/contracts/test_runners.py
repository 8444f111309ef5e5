"""What every runner must do; a new one is one more line in RUNNERS."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.runners.clusters import connected_ray, dask_client
from tradewind.runners import (
    DaskRunner,
    ProcessRunner,
    RayRunner,
    Runner,
    SerialRunner,
    SimulatedRunner,
)
from tradewind.testing import RUNNER, Check
from tradewind.testing.runners import STOPPING

RUNNERS: dict[str, Callable[[], Runner]] = {
    "serial": SerialRunner,
    "simulated": lambda: SimulatedRunner(2, duration=lambda trial: 1.0),
    "processes": lambda: ProcessRunner(2, grace=0.5),
    "dask": lambda: DaskRunner(dask_client()),
    "ray": lambda: connected_ray() and RayRunner(),
}
CLUSTERS = {"dask", "ray"}  # slow to start
ALL = [pytest.param(name, marks=pytest.mark.slow) if name in CLUSTERS else name for name in RUNNERS]
REAL = [one for one in ALL if one != "simulated"]  # trials take the time that their objectives take

pytestmark = pytest.mark.filterwarnings("ignore:.* workers share:UserWarning")


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("check", RUNNER, ids=str)
def test_a_runner_keeps_its_contract(check: Check[Runner], name: str) -> None:
    check(RUNNERS[name])


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("check", STOPPING, ids=str)
def test_a_runner_stops_trials(check: Check[Runner], name: str) -> None:
    check(RUNNERS[name])
