"""Tradewind selects machine-learning models for how well they predict and how much they cost."""

import typing as _typing

from tradewind import errors, models, recipes, runners, strategies, subsets
from tradewind.errors import TradewindError
from tradewind.goals import Quality, Tradeoff
from tradewind.replaying import Replay, replay
from tradewind.results import Recommendation
from tradewind.space import Bool, Categorical, Float, Int, Ordinal, Space, TrainSize, at_least
from tradewind.studies import (
    StudySummary,
    create_study,
    delete_study,
    import_study,
    list_studies,
    load_study,
    rename_study,
)
from tradewind.study import Study
from tradewind.types import Trial

if _typing.TYPE_CHECKING:
    from tradewind.search_cv import TradeoffSearchCV

__version__ = "0.1.0"

__all__ = [
    "Bool",
    "Categorical",
    "Float",
    "Int",
    "Ordinal",
    "Quality",
    "Recommendation",
    "Replay",
    "Space",
    "Study",
    "StudySummary",
    "Tradeoff",
    "TradeoffSearchCV",
    "TradewindError",
    "TrainSize",
    "Trial",
    "at_least",
    "create_study",
    "delete_study",
    "errors",
    "import_study",
    "list_studies",
    "load_study",
    "models",
    "recipes",
    "rename_study",
    "replay",
    "runners",
    "strategies",
    "subsets",
]


def __getattr__(name: str) -> _typing.Any:
    if name == "TradeoffSearchCV":  # scikit-learn is heavy: only for those who ask
        from tradewind.search_cv import TradeoffSearchCV

        return TradeoffSearchCV
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
