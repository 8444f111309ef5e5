"""What a worker process gets of the machine: its share of the cores, and a GPU."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

VISIBLE = "CUDA_VISIBLE_DEVICES"

_THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "LOKY_MAX_CPU_COUNT",
)
_CGROUP = Path("/sys/fs/cgroup")
_ROOT = Path("/")
_UNCOUNTED = ("dev/dxg", "dev/kfd", "dev/nvgpu", "dev/nvhost-gpu")  # WSL, AMD and Jetson


def usable_cores() -> int:
    """The number of cores that this process may use: its affinity and its container limit it."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        cores = os.cpu_count() or 1
    return max(1, min(cores, _quota(_CGROUP) or cores))


def _quota(cgroup: Path) -> int | None:
    """The number of whole cores that a container may use; None if it has no limit."""
    try:
        if (cgroup / "cpu.max").exists():  # version 2: "200000 100000", or "max 100000"
            quota, period = (cgroup / "cpu.max").read_text().split()
        else:
            quota = (cgroup / "cpu/cpu.cfs_quota_us").read_text()
            period = (cgroup / "cpu/cpu.cfs_period_us").read_text()
        microseconds = int(quota)  # -1 means no limit in version 1
        return max(1, microseconds // int(period)) if microseconds > 0 else None
    except (OSError, ValueError, ZeroDivisionError):
        return None


def limit_threads(environment: Mapping[str, str], most: int) -> dict[str, str]:
    """The environment in which numerical libraries use `most` threads, or fewer if the user has set
    fewer."""
    threads = {}
    for name in _THREADS:
        given = environment.get(name, "")
        first = given.partition(",")[0].strip()  # OpenMP takes a list, for nested loops
        if not (first.isdecimal() and 1 <= int(first) <= most):
            threads[name] = str(most)
    return {**environment, **threads}


def count_gpus() -> int | None:
    """The largest number of GPUs that this machine can have; None if it cannot be found out."""
    return _count_gpus(_ROOT)


def _count_gpus(root: Path) -> int | None:
    """Counts the files of NVIDIA's driver in /dev and in /proc, and takes the larger number: a
    container may show only one of the two, and the files in /dev may appear only with the first use
    of a GPU."""
    if any((root / kind).exists() for kind in _UNCOUNTED):
        return None
    driver = root / "proc/driver/nvidia"
    nodes = sum(node.name.removeprefix("nvidia").isdecimal() for node in root.glob("dev/nvidia*"))
    parts = sum(1 for _ in driver.glob("capabilities/gpu*/mig/gi*/ci*"))  # MIG instances
    return max(nodes, sum(1 for _ in driver.glob("gpus/*"))) + parts


def visible_devices(
    gpus: Sequence[int | str], environment: Mapping[str, str], *, n_gpus: int | None
) -> list[str]:
    """CUDA's names of the devices. An integer is an index among the GPUs that the driver sees.
    `n_gpus` is the number of GPUs of the machine, if it is known."""
    listed = environment.get(VISIBLE)
    if listed is None:
        devices = [str(gpu) for gpu in gpus]
    else:
        # CUDA reads the list up to the first -1.
        seen = [entry.strip() for entry in listed.split(",")]
        seen = seen[: seen.index("-1")] if "-1" in seen else [entry for entry in seen if entry]
        beyond = [gpu for gpu in gpus if isinstance(gpu, int) and gpu >= len(seen)]
        if beyond:
            raise ValueError(
                f"gpus must be indices from 0 into {VISIBLE}={listed!r}, which has {len(seen)} "
                f"devices, but got {beyond[0]}"
            )
        devices = [seen[gpu] if isinstance(gpu, int) else gpu for gpu in gpus]
    if n_gpus is not None:
        missing = [d for d in devices if (int(d) >= n_gpus if d.isdecimal() else not n_gpus)]
        if missing:
            raise ValueError(
                "gpus must be devices of this machine, counted from 0, but got "
                f"{missing[0]} and the machine has {n_gpus or 'no'} GPU{'s' * (n_gpus != 1)}"
            )
    if len(set(devices)) < len(devices):
        raise ValueError(f"gpus must be distinct, but got {', '.join(devices)}")
    return devices
