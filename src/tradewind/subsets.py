"""Nested, stratified subsets of a training set."""

from tradewind.data.subsets import Order, nested_order, subset, take

__all__ = ["Order", "nested_order", "subset", "take"]
