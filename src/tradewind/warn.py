"""Warnings at the line of the user's that gave cause for them."""

from __future__ import annotations

import os
import sys
import warnings
from types import FrameType

_PACKAGE = os.path.dirname(__file__) + os.sep


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn as if the first caller outside of this package did (`skip_file_prefixes`, which Python
    has since 3.12)."""
    level = 1
    caller: FrameType | None = sys._getframe()
    while caller is not None and caller.f_code.co_filename.startswith(_PACKAGE):
        level, caller = level + 1, caller.f_back
    warnings.warn(message, category, stacklevel=level)
