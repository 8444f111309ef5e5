"""Outlasting a store that does not answer for a moment."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from tradewind.errors import FormatError, NoSuchStudy, StorageError

_logger = logging.getLogger("tradewind")

T = TypeVar("T")

PATIENCE = 30.0  # seconds


def patiently(work: Callable[[], T], patience: float = PATIENCE) -> T:
    """Repeat `work` while the store cannot be reached, so that running trials are not lost."""
    pause, until = 0.1, time.monotonic() + patience
    while True:
        try:
            return work()
        except (NoSuchStudy, FormatError):
            raise
        except StorageError as error:
            if time.monotonic() + pause > until:
                raise
            _logger.warning("trying again in %.2g s: %s", pause, error)
            time.sleep(pause)
            pause *= 2
