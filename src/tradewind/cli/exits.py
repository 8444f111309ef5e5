"""From any error to one or two plain sentences and an exit code."""

from __future__ import annotations

import re
from enum import IntEnum

from tradewind.errors import (
    BrokenObjective,
    NoSuchStudy,
    NothingFinished,
    StorageError,
    StudyExists,
    TradewindError,
)


class Exit(IntEnum):
    """What the exit code of `tradewind` says."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOTHING = 3
    STORE = 4
    INTERRUPTED = 130
    PIPE = 141
    TERMINATED = 143


class UsageFault(TradewindError, ValueError):
    """A wrong argument, option or run file."""


class NotThere(TradewindError, LookupError):
    """A path or a store that does not exist."""


EXITS = """Exit codes: 0 done; 1 failed; 2 wrong usage or run file; 3 nothing there or nothing
finished yet; 4 a store or file cannot be reached, read or written; 130 interrupted."""


# What Python users are told to do, and what to do instead.
_COMMANDS = (
    ("choose another name, or open it with load_study", "choose another name with --name"),
    ("predict() needs", "a prediction needs"),
    ("study.export wrote", "`tradewind export` wrote"),
    ("tradewind.repair keeps", "`tradewind repair` keeps"),
    ("give it in params", "give it with -p"),
    (
        'give strategy= again, or strategy="auto" to look at it',
        'write strategy = "auto" in [study]',
    ),
)


def exit_code(error: BaseException) -> Exit:
    """The exit code for an error."""
    match error:
        case KeyboardInterrupt():
            return Exit.INTERRUPTED
        case BrokenPipeError():
            return Exit.PIPE
        case NoSuchStudy() | NothingFinished() | NotThere():
            return Exit.NOTHING
        case StudyExists():
            return Exit.USAGE
        case BrokenObjective():
            return Exit.FAILED
        case StorageError() | OSError():
            return Exit.STORE
        case TradewindError() if isinstance(error, (ValueError, TypeError)):
            return Exit.USAGE
        case ValueError() | TypeError() if not isinstance(error, TradewindError):
            return Exit.USAGE
    return Exit.FAILED


def sentence(error: BaseException) -> str:
    """What has happened, for a person: what Tradewind says itself, and the type of any other
    exception."""
    text = str(error).strip()
    if isinstance(error, BrokenObjective):
        return _shortened(text)
    known = isinstance(error, (TradewindError, ValueError, TypeError, ImportError))
    if isinstance(error, OSError) and not isinstance(error, TradewindError):
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror or text or type(error).__name__}"
    for python, command in _COMMANDS:
        text = text.replace(python, command)
    if not known:
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return text or type(error).__name__


def _shortened(text: str) -> str:
    """A broken objective: what to do, and the line of the traceback that names the exception."""
    from tradewind.runners.runner import cause

    advice, _, trace = text.partition("\n\n")
    advice = advice.replace(", or go on with give_up_after=None", "")
    more = "\n`tradewind status --errors` shows it in full" * (trace.strip() != cause(trace))
    return f"{advice}\n{cause(trace)}{more}" if trace else advice


# ---- secrets ----

_PASSWORD = re.compile(r"((?:postgresql|postgres)://[^\s:/@'\"]*):([^\s'\"]*)@", re.IGNORECASE)
_IN_QUERY = re.compile(r"([?&]password=)([^\s&'\"]*)", re.IGNORECASE)


def without_passwords(text: str) -> str:
    """A text in which the passwords of URLs are hidden."""
    return _IN_QUERY.sub(r"\1***", _PASSWORD.sub(r"\1:***@", text))
