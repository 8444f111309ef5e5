"""Nested, stratified subsets of a training set.

>>> rows = tw.subsets.subset(["spam", "ham"] * 50, 0.2, seed=0)
"""

from tradewind.data.subsets import Order, nested_order, subset, take

__all__ = ["Order", "nested_order", "subset", "take"]
