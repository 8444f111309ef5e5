"""What a trial needs of a Ray cluster, in its words and in ours: cpu, gpu, memory, and others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

_OPTIONS = {"cpu": "num_cpus", "gpu": "num_gpus", "memory": "memory"}  # of a remote class
_NAMES = {"cpu": "CPU", "gpu": "GPU"}  # as nodes call them


def needs(resources: Mapping[str, float]) -> dict[str, float]:
    """What one trial needs, with Ray's own kinds in lower case; a CPU unless it says otherwise."""
    wrong = {name: amount for name, amount in resources.items() if not 0 <= amount < math.inf}
    if wrong:
        raise ValueError(f"resources are finite amounts ≥ 0, but got {wrong}")
    own = {name: name.lower() if name.lower() in _OPTIONS else name for name in resources}
    return {"cpu": 1, **{own[name]: amount for name, amount in resources.items()}}


def options(needed: Mapping[str, float]) -> dict[str, Any]:
    """The same as options of a remote class."""
    special = {name: amount for name, amount in needed.items() if name not in _OPTIONS}
    own = {option: needed[name] for name, option in _OPTIONS.items() if name in needed}
    return {**own, "resources": special}


def room(node: Mapping[str, float], needed: Mapping[str, float]) -> int:
    """How many trials a node admits; who needs a part of a GPU cannot have it of two."""
    admitted = math.inf
    for name, amount in needed.items():
        has = node.get(_NAMES.get(name, name), 0.0)
        if name == "gpu" and 0 < amount < 1:
            admitted = min(admitted, int(has) * _times(1.0, amount))
        elif amount:
            admitted = min(admitted, _times(has, amount))
    return int(admitted) if admitted < math.inf else 1


def _times(has: float, amount: float) -> int:
    return int(has / amount + 1e-9)  # a third of a GPU fits three times
