"""Callbacks that show a search in the tracking tools that you use already.

A tracker never slows or ends a search: it works in a thread of its own, and if its server cannot be
reached, that is logged once. The study has all results, and `log(study)` sends them later.

Every public name is loaded when it is first used.

>>> tracker = tw.integrations.TensorBoard("runs")
>>> study.optimize(objective, n_trials=2, callbacks=[tracker])
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

if _TYPE_CHECKING:
    from tradewind.integrations.mlflow import MLflow as MLflow
    from tradewind.integrations.tensorboard import TensorBoard as TensorBoard

_HOMES = {"MLflow": "mlflow", "TensorBoard": "tensorboard"}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> _Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(_import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value  # the next use finds it without asking
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
