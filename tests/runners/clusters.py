"""Real clusters on this machine, one of each kind for all tests of a process, on loopback only."""

from __future__ import annotations

import atexit
import os
import secrets
from functools import cache
from typing import Any

WORKERS = 2
TOKEN = secrets.token_hex(32)  # for the Ray of these tests, which keeps the first one it sees


def local_dask(n_workers: int = WORKERS, **options: Any) -> Any:
    """A Dask cluster of processes with one thread each."""
    from distributed import LocalCluster

    return LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs="CRITICAL",
        **options,
    )


@cache
def dask_client() -> Any:
    from distributed import Client

    cluster = local_dask()
    client = Client(cluster, set_as_default=False)
    atexit.register(cluster.close)
    atexit.register(client.close)  # first
    return client


def imported_ray() -> Any:
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # read on import: stay on loopback
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_AUTH_MODE"] = "token"
    os.environ["RAY_AUTH_TOKEN"] = TOKEN  # so that none of the user's is read, or made
    import ray

    return ray


def connected_ray() -> Any:
    """The package ray, connected to a cluster with `WORKERS` CPUs and a made-up GPU."""
    ray = imported_ray()
    if not ray.is_initialized():
        ray.init(
            "local",
            num_cpus=WORKERS,
            num_gpus=1,
            resources={"special": 3},
            include_dashboard=False,
            log_to_driver=False,
            logging_level="CRITICAL",
        )
    return ray


def disconnected_ray() -> Any:
    ray = imported_ray()
    ray.shutdown()
    return ray
