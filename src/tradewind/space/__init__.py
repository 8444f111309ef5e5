"""What is searched: parameters, conditions, and the space they make."""

from tradewind.space.conditions import AtLeast, Condition, OneOf, at_least
from tradewind.space.parameters import (
    Bool,
    Categorical,
    Float,
    Int,
    Ordinal,
    Parameter,
    TrainSize,
)
from tradewind.space.space import Space

__all__ = [
    "AtLeast",
    "Bool",
    "Categorical",
    "Condition",
    "Float",
    "Int",
    "OneOf",
    "Ordinal",
    "Parameter",
    "Space",
    "TrainSize",
    "at_least",
]
