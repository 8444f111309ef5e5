"""Every error that Tradewind raises on purpose.

    TradewindError
    ├── SpaceError (ValueError)          a search space that contradicts itself
    ├── ConfigError (ValueError)         a configuration that does not fit its space
    ├── OutcomeError (ValueError)        a value or cost that no trial can have
    ├── TrialError (RuntimeError)        a trial in the wrong state: already ended, unknown
    ├── StudyPaused (RuntimeError)       a trial is wanted from a study that is paused
    ├── TrialFailed (RuntimeError)       a trial that failed under on_error="raise"
    ├── ProgramFailed (RuntimeError)     a program that gave no result
    ├── AlreadyTested (RuntimeError)     the test set was looked at before
    ├── BrokenObjective (RuntimeError)   an objective whose first trials all fail in the same way
    ├── NothingFinished (LookupError)    a result is wanted, but no trial has one yet
    │   └── NothingQualifies             trials have finished, but none meets the goal's condition
    ├── WorkerError (RuntimeError)       workers that cannot start, or a cluster that is gone
    ├── DataError (ValueError)           data or a saved model: damaged or of the wrong kind
    │   └── DataMissing (FileNotFoundError)  data or a saved model that is missing
    └── StorageError (RuntimeError)      a store that cannot be reached, read or written
        ├── FormatError                  a stored study: damaged, or of a newer format
        ├── LogDiverged                  a stored study: replaced by another state of it while open
        ├── StudyDiffers (ValueError)    a stored study: not the one that the caller describes
        ├── StudyExists (ValueError)     a name that the store has already
        └── NoSuchStudy (LookupError)    a name that the store does not have

Other wrong arguments raise `ValueError` (a wrong number, name or flag) or `TypeError` (an object
of the wrong kind).

>>> try:
...     study.tell(99, 0.5, cost=1.0)
... except tw.errors.TrialError as error:
...     print(error)
there is no trial 99 in this study
>>> tw.Int(8, 1)
Traceback (most recent call last):
    ...
tradewind.errors.SpaceError: Int: `low < high` must hold, but got low=8, high=1
"""

from __future__ import annotations

import os
import sys
import types
import warnings
from typing import NoReturn


class TradewindError(Exception):
    """Base class of all errors that Tradewind raises on purpose.

    >>> try:
    ...     tw.load_study("missing.db", "reviews")
    ... except tw.TradewindError as error:
    ...     print(type(error).__name__)
    NoSuchStudy
    """


class SpaceError(TradewindError, ValueError):
    """A search space that contradicts itself."""


class ConfigError(TradewindError, ValueError):
    """A configuration that does not fit its space."""


class OutcomeError(TradewindError, ValueError):
    """A value or cost that no trial can have."""


class TrialError(TradewindError, RuntimeError):
    """A trial that is not in the state that the call needs."""


class StudyPaused(TradewindError, RuntimeError):
    """A trial is wanted from a study that is paused."""


class TrialFailed(TradewindError, RuntimeError):
    """A trial failed without raising an exception, and `on_error="raise"` ends the search."""


class ProgramFailed(TradewindError, RuntimeError):
    """A program that a trial ran (`tw.Program`) has failed, or has printed no result."""


class AlreadyTested(TradewindError, RuntimeError):
    """The test set of a study was looked at before, and a second look was not asked for."""


class BrokenObjective(TradewindError, RuntimeError):
    """An objective whose first trials all fail in the same way, so that the search was stopped."""


class NothingFinished(TradewindError, LookupError):
    """A result is wanted, but no trial has finished yet, or none has the cost that is needed."""


class NothingQualifies(NothingFinished):
    """Trials have finished, but none of them meets the condition of the goal."""


class WorkerError(TradewindError, RuntimeError):
    """Workers that cannot start, or a cluster that has gone away."""


class DataError(TradewindError, ValueError):
    """Data, word vectors or a saved model that are missing, damaged, or of the wrong kind."""


class DataMissing(DataError, FileNotFoundError):
    """Data, word vectors or a saved model that are missing."""


class StorageError(TradewindError, RuntimeError):
    """A store that cannot be reached, read or written."""


class FormatError(StorageError):
    """A stored study that is damaged, or that a newer version of Tradewind wrote."""


class LogDiverged(StorageError):
    """A stored study that no longer continues what this process has read from it: a backup was
    restored, a standby promoted, or another file moved over it."""


class StudyDiffers(StorageError, ValueError):
    """A stored study has another space, direction, seed or cost than the caller says."""


class StudyExists(StorageError, ValueError):
    """A study of this name is already in the store."""


class NoSuchStudy(StorageError, LookupError):
    """No study of this name is in the store."""


_SUGGEST = 'write "x": tw.{} in the space, and read trial.params["x"] in the objective'
SUGGESTIONS = {  # what to write instead of these methods of a trial
    "suggest_float": _SUGGEST.format("Float(0.1, 1.0)"),
    "suggest_uniform": _SUGGEST.format("Float(0.1, 1.0)"),
    "suggest_loguniform": _SUGGEST.format("Float(1e-4, 1.0, log=True)"),
    "suggest_discrete_uniform": _SUGGEST.format("Float(0.1, 1.0, step=0.1)"),
    "suggest_int": _SUGGEST.format("Int(1, 10)"),
    "suggest_categorical": _SUGGEST.format('Categorical(["a", "b"])'),
    "report": "iterate over trial.folds(X, y), and report a score for each fold",
    "should_prune": "trial.folds(X, y) ends a cross-validation that is clearly behind",
    "set_user_attr": 'return {"value": score, "f1": f1}: what else you return is kept',
}


def no_attribute(owner: object, name: str, advice: dict[str, str]) -> NoReturn:
    """Raise the error for an attribute that `owner` does not have, with the advice for it."""
    text = f"{type(owner).__name__!r} object has no attribute {name!r}"
    if name in advice:
        text = f"{text}: {advice[name]}"
    raise AttributeError(text, name=name, obj=owner)


_PACKAGE = os.path.dirname(__file__) + os.sep


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the first caller outside this package, so that users see their own code.

    (`skip_file_prefixes` does the same, but only since Python 3.12.)"""
    level = 1
    caller: types.FrameType | None = sys._getframe()
    while caller is not None and caller.f_code.co_filename.startswith(_PACKAGE):
        level, caller = level + 1, caller.f_back
    warnings.warn(message, category, stacklevel=level)
