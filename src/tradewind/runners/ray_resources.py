"""The resources that a trial needs of a Ray cluster, with our names and with Ray's."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

_OPTIONS = {"cpu": "num_cpus", "gpu": "num_gpus", "memory": "memory"}  # of an actor
_NAMES = {"cpu": "CPU", "gpu": "GPU"}  # of the resources of a node


def normalize(resources: Mapping[str, float]) -> dict[str, float]:
    """The resources with cpu, gpu and memory in lower case, and one CPU if none is named."""
    wrong = {name: amount for name, amount in resources.items() if not 0 <= amount < math.inf}
    if wrong:
        raise ValueError(f"resources must be finite amounts ≥ 0, but got {wrong}")
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
