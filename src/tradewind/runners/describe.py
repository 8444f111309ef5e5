"""What the user's code has raised, as text: readable, of bounded length, and without fail."""

from __future__ import annotations

import sys
import traceback
from types import TracebackType

from tradewind.runners.messages import shorten


def describe(error: BaseException) -> str:
    """The traceback of the exception that is being handled.

    An exception is the user's own code and data, so making text of it may itself raise anything: a
    `SyntaxError` whose line is no text, groups nested thousands deep, a `__str__`."""
    trace = sys.exc_info()[2]
    try:
        text = "".join(traceback.format_exception(error))
    except BaseException:
        text = _describe_plainly(error, trace)
    return shorten(text.encode("utf-8", "backslashreplace").decode())


def _describe_plainly(error: BaseException, trace: TracebackType | None) -> str:
    """Where it was raised, its type, and its message if there is one."""
    try:
        where = "".join(traceback.format_tb(trace))
        return f"Traceback (most recent call last):\n{where}{type(error).__name__}: {_text(error)}"
    except BaseException:
        return "an exception that cannot be described"


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException:
        return "(its message cannot be read)"
