"""The search space of the thesis, and how its parameters translate into those of TextCNN."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from tradewind.checks import whole
from tradewind.models.base import add_train_size
from tradewind.models.textcnn.model import ACTIVATIONS
from tradewind.space import Bool, Categorical, Float, Int, Parameter, Space, at_least

_MOST = 100  # filter sizes
# s is the number of filter sizes, k0, k1, … are the sizes, f0, f1, … the number of filters of each
_NUMBERED = re.compile(r"s|[kf][0-9]{1,2}")


def published_space(s: int | None, train_sizes: Iterable[float] | None) -> Space:
    """Table 1 of the thesis, with `s` filter sizes. If `s` is None, it is a parameter, too."""
    parameters: dict[str, Parameter] = {
        "channels": Categorical(["static", "nonstatic", "multichannel"]),
        "activation": Categorical(list(ACTIVATIONS)),
        "bias": Bool(),
        "balance": Bool(),
        "optimizer": Categorical(["adam", "adadelta"]),
        "hidden": Int(0, 100),
        "d0": Float(0.0, 0.95),
        "d1": Float(0.0, 0.95),
        "d2": Float(0.0, 0.95, when={"hidden": at_least(1)}),
    }
    if s is None:
        parameters["s"] = Int(1, 10)
    for i in range(10 if s is None else whole("s", s, 1, _MOST)):
        when = {"s": at_least(i + 1)} if s is None and i else None
        parameters[f"k{i}"] = Int(1, 15, when=when)
        parameters[f"f{i}"] = Int(1, 100, when=when)
    return Space(add_train_size(parameters, train_sizes))


def read_filters(params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of TextCNN: s, k0, f0, k1, f1, … become `filter_sizes` and `filters`."""
    numbered = {name: value for name, value in params.items() if _NUMBERED.fullmatch(name)}
    others = {name: value for name, value in params.items() if name not in numbered}
    if not numbered:
        return others
    if both := [name for name in ("filter_sizes", "filters") if name in others]:
        raise ValueError(
            f"give the filters either by {', '.join(numbered)} or by {' and '.join(both)}, but not "
            "by both"
        )
    given = max((int(name[1:]) + 1 for name in numbered if name != "s"), default=0)
    s = whole("s", numbered.get("s", given), 1, _MOST)
    lacking = [name for i in range(s) for name in (f"k{i}", f"f{i}") if name not in numbered]
    if lacking:
        raise ValueError(f"{s} filter sizes need {', '.join(lacking)} as well: give them")
    sizes, counts = (tuple(numbered[f"{letter}{i}"] for i in range(s)) for letter in "kf")
    return {**others, "filter_sizes": sizes, "filters": counts}
