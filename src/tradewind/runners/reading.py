"""Strict reading of what an objective reports: one finite number, or an `OutcomeError`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tradewind.errors import OutcomeError

_LONGEST = 200  # characters of a value that an error message shows


def finite(what: str, given: Any) -> float:
    """`given` as a number: a scalar, or an array or tensor with one element."""
    item = getattr(given, "item", None)  # arrays and tensors of one element, of any library
    try:
        plain = item() if callable(item) else given
        number = math.nan if isinstance(plain, (str, bytes)) else float(plain)
    except (TypeError, ValueError, OverflowError, RuntimeError):  # the last is PyTorch's
        number = math.nan
    if not math.isfinite(number):
        raise OutcomeError(f"{what} must be a finite number, but got {shown(given)}")
    return number


def mean(folds: Sequence[float]) -> float:
    try:
        return math.fsum(folds) / len(folds)
    except OverflowError:
        raise OutcomeError(f"the sum of folds must be finite, but got {shown(folds)}") from None


def shown(given: Any) -> str:
    """`given` for an error message, which must not fail in turn."""
    try:
        text = repr(given)
    except Exception:  # the user's own, or that of an integer with too many digits to print
        return f"an unprintable {type(given).__name__}"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
