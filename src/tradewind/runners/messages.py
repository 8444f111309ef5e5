"""What travels between the driver and a worker process: the objective, once, and then messages.

The driver sends a `Trial`. The worker sends `Loaded` first, and `Begun` and `Answer` for each
trial.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from typing import Any

from tradewind.runners.run import Objective
from tradewind.runners.runner import Failure
from tradewind.types import Outcome, Usage

# The most bytes that an error and its exception take in a message. Such a message fits into the
# buffer of the channel (208 KiB on Linux), so a worker need not wait until the driver reads it.
_LARGEST = 64_000


@dataclass(frozen=True)
class Loaded:
    """The first message of a worker: it is ready, or `error` says why it cannot load the
    objective."""

    error: str | None = None


@dataclass(frozen=True)
class Begun:
    """The trial with this number has arrived and runs. If the worker dies after this, the trial has
    failed. `at` is the time on the monotonic clock, which all processes of a machine share."""

    number: int
    at: float


@dataclass(frozen=True)
class Answer:
    """The result of the trial with this number. `raised` is the pickled exception, if it can be
    pickled."""

    number: int
    result: Outcome | Failure
    usage: Usage
    raised: bytes | None = None

    @classmethod
    def of(cls, number: int, result: Outcome | Failure, usage: Usage) -> Answer:
        """The answer as the worker sends it, with an error that is not too long."""
        if not isinstance(result, Failure):
            return cls(number, result, usage)
        raised = None if result.raised is None else _pack_exception(result.raised)
        short = replace(result, error=shorten(result.error), raised=None)
        return cls(number, short, usage, raised)

    def unpack(self) -> Outcome | Failure:
        """The result, with the exception if it can be unpickled here."""
        if self.raised is None or not isinstance(self.result, Failure):
            return self.result
        try:
            raised = pickle.loads(self.raised)
            raised.add_note(f"In the worker process:\n\n{self.result.error.rstrip()}")
        except BaseException:  # unpickling runs the user's code
            return self.result
        return replace(self.result, raised=raised) if _is_exception(raised) else self.result


MESSAGE_CLASSES = (Loaded, Begun, Answer, Outcome, Failure, Usage)  # all that the driver unpickles


def pack(objective: Objective) -> bytes:
    """Pickle the objective by value, for other processes."""
    if not callable(objective):
        raise TypeError(f"the objective must be callable, but got {objective!r}")
    try:
        return _dumps(objective)
    except Exception as error:  # pickling runs the user's code
        raise TypeError(
            "the objective cannot be sent to worker processes, because it or something that it "
            f"refers to cannot be pickled: {type(error).__name__}: {error}. Make such things "
            "(open files, locks, connections, generators) inside the objective"
        ) from error


def shorten(text: str) -> str:
    """Cut the middle out of a text that is too long for a message, or for the log. A character may
    take four bytes."""
    most = _LARGEST // 16
    return text if len(text) <= 2 * most else f"{text[:most]}\n[...]\n{text[-most:]}"


def _dumps(thing: Any) -> bytes:
    try:
        import cloudpickle
    except ImportError:  # scikit-learn brings a copy of it
        from joblib.externals import cloudpickle
    return bytes(cloudpickle.dumps(thing))


def _pack_exception(error: BaseException) -> bytes | None:
    """The pickled exception; None if it is too large or does not survive pickling."""
    try:
        blob = _dumps(error)
        return blob if len(blob) <= _LARGEST // 2 and _is_exception(pickle.loads(blob)) else None
    except BaseException:  # the user's code, which may raise anything
        return None


def _is_exception(thing: object) -> bool:
    return issubclass(type(thing), BaseException)  # `isinstance` may run the user's code
