"""Making very many objects at once."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_gc() -> Iterator[None]:
    """Without the search for cyclic garbage, which would look through all objects made so far again
    and again: reading a log makes none, and takes half the time."""
    if not gc.isenabled():  # the user's choice, or another thread is reading: it goes on as it was
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
