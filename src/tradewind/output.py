"""What Tradewind prints and logs. That must not end a search: the streams are the user's, and an
objective may have closed or replaced them."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from typing import Any


def quietly() -> suppress:
    """Ignore what the user's streams raise."""
    return suppress(Exception, SystemExit, GeneratorExit)


def fill_standard_streams() -> None:
    """Open the null device for standard streams that are closed, as in some daemons. Otherwise the
    next file that we open would get such a number, and what others print would end up in it."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # it gets this number


class _Logger(logging.LoggerAdapter[logging.Logger]):
    """Writes log lines, whatever the streams behind it raise."""

    def log(self, level: int, msg: object, *args: object, **options: Any) -> None:
        with quietly():
            super().log(level, msg, *args, **{"stacklevel": 2, **options})


logger = _Logger(logging.getLogger("tradewind"), {})
