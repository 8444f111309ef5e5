"""Tradewind selects machine-learning models for how well they predict and how much they cost."""

from tradewind import errors, recipes, strategies
from tradewind.errors import TradewindError
from tradewind.goals import Quality, Tradeoff
from tradewind.space import Bool, Categorical, Float, Int, Ordinal, Space, TrainSize, at_least
from tradewind.study import Recommendation, Study, create_study
from tradewind.types import Trial

__version__ = "0.1.0"

__all__ = [
    "Bool",
    "Categorical",
    "Float",
    "Int",
    "Ordinal",
    "Quality",
    "Recommendation",
    "Space",
    "Study",
    "Tradeoff",
    "TradewindError",
    "TrainSize",
    "Trial",
    "at_least",
    "create_study",
    "errors",
    "recipes",
    "strategies",
]
