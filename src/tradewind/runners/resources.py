"""What a slot gets of the machine: its share of the cores, and a device."""

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
_UNCOUNTED = ("dev/dxg", "dev/kfd", "dev/nvgpu", "dev/nvhost-gpu")  # of WSL, AMD's and Jetsons


def usable_cores() -> int:
    """The cores that this process may use, by its affinity and by the quota of its container."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        cores = os.cpu_count() or 1
    return max(1, min(cores, _quota(_CGROUP) or cores))


def _quota(cgroup: Path) -> int | None:
    """The whole cores that a container may use; None without a limit."""
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


def with_threads(environment: Mapping[str, str], share: int) -> dict[str, str]:
    """The environment in which numerical libraries use so many threads, or the fewer that the
    user has set."""
    threads = {}
    for name in _THREADS:
        given = environment.get(name, "")
        first = given.partition(",")[0].strip()  # OpenMP takes a list, for nested loops
        if not (first.isdecimal() and 1 <= int(first) <= share):
            threads[name] = str(share)
    return {**environment, **threads}


def gpus_there() -> int | None:
    """How many GPUs there are at most; None where that cannot be found out."""
    return _gpus(_ROOT)


def _gpus(root: Path) -> int | None:
    """By what NVIDIA's driver shows. A container may show the files of one folder only, and those
    of /dev may come with the first use of a GPU: the more count."""
    if any((root / kind).exists() for kind in _UNCOUNTED):
        return None
    driver = root / "proc/driver/nvidia"
    nodes = sum(node.name.removeprefix("nvidia").isdecimal() for node in root.glob("dev/nvidia*"))
    parts = sum(1 for _ in driver.glob("capabilities/gpu*/mig/gi*/ci*"))  # of GPUs that are divided
    return max(nodes, sum(1 for _ in driver.glob("gpus/*"))) + parts


def visible_devices(
    gpus: Sequence[int | str], environment: Mapping[str, str], *, there: int | None
) -> list[str]:
    """The devices as CUDA calls them. Integers count those that the driver may see itself.
    `there` is how many the machine has, if that is known."""
    listed = environment.get(VISIBLE)
    if listed is None:
        devices = [str(gpu) for gpu in gpus]
    else:
        # CUDA itself ends its reading of the list at the first -1.
        seen = [entry.strip() for entry in listed.split(",")]
        seen = seen[: seen.index("-1")] if "-1" in seen else [entry for entry in seen if entry]
        beyond = [gpu for gpu in gpus if isinstance(gpu, int) and gpu >= len(seen)]
        if beyond:
            raise ValueError(
                f"gpus must count from 0 the devices in {VISIBLE}={listed!r}, which has "
                f"{len(seen)}, but got {beyond[0]}"
            )
        devices = [seen[gpu] if isinstance(gpu, int) else gpu for gpu in gpus]
    if there is not None:
        missing = [d for d in devices if (int(d) >= there if d.isdecimal() else not there)]
        if missing:
            raise ValueError(
                "gpus must be devices that are there, counted from 0, but got "
                f"{missing[0]} and there {'is' if there == 1 else 'are'} {there or 'none'}"
            )
    if len(set(devices)) < len(devices):
        raise ValueError(f"gpus must be distinct, but they are {', '.join(devices)}")
    return devices
