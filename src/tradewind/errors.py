"""Every error that Tradewind raises on purpose.

    TradewindError
    ├── SpaceError (ValueError)          a search space that contradicts itself
    ├── ConfigError (ValueError)         a configuration that does not fit its space
    ├── OutcomeError (ValueError)        a value or cost that no trial can have
    ├── TrialError (RuntimeError)        a trial in the wrong state: already ended, unknown
    ├── StudyPaused (RuntimeError)       a trial is wanted from a study that is paused
    ├── TrialFailed (RuntimeError)       a failed trial that ends the search
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
    """A search space that contradicts itself.

    >>> tw.Float(1.0, 0.1)
    Traceback (most recent call last):
        ...
    tradewind.errors.SpaceError: Float: `low < high` must hold, but got low=1.0, high=0.1
    """


class ConfigError(TradewindError, ValueError):
    """A configuration that does not fit its space.

    >>> study.enqueue({"depth": 99})
    Traceback (most recent call last):
        ...
    tradewind.errors.ConfigError: 'depth' must be from 1 to 8, but got 99
    """


class OutcomeError(TradewindError, ValueError):
    """A value or cost that no trial can have.

    >>> study.tell(study.ask(), float("nan"), cost=1.0)
    Traceback (most recent call last):
        ...
    tradewind.errors.OutcomeError: value must be a finite number, but got nan
    """


class TrialError(TradewindError, RuntimeError):
    """A trial that is not in the state that the call needs.

    >>> study.tell(99, 0.5, cost=1.0)
    Traceback (most recent call last):
        ...
    tradewind.errors.TrialError: there is no trial 99 in this study
    """


class StudyPaused(TradewindError, RuntimeError):
    """A trial is wanted from a study that is paused.

    >>> study.pause("new data")
    >>> study.ask()
    Traceback (most recent call last):
        ...
    tradewind.errors.StudyPaused: a paused study starts no trials, and this one is ...
    """


class TrialFailed(TradewindError, RuntimeError):
    """A failed trial ends the search, and there is no exception in this process to raise. If a
    worker raised one, the message has its text and traceback.

    >>> study.optimize(lambda trial: float("nan"), n_trials=1, on_error="raise")
    Traceback (most recent call last):
        ...
    tradewind.errors.TrialFailed: the objective's answer cannot be used: value must be ...
    """


class ProgramFailed(TradewindError, RuntimeError):
    """A program that a trial ran (`tw.Program`) has failed, or has printed no result.

    >>> program = tw.Program(["false", "{depth}", "{rate}"])
    >>> def objective(trial):
    ...     try:
    ...         return program(trial)
    ...     except tw.errors.ProgramFailed as error:
    ...         print(error)
    ...         return {"value": 0.0, "cost": 1.0}
    >>> study.optimize(objective, n_trials=1)
    the program ended with exit code 1
    """


class AlreadyTested(TradewindError, RuntimeError):
    """The test set of a study was looked at before, and a second look was not asked for.

    >>> final = study.finish(lambda trial: "a model", lambda model: 0.91)
    >>> study.finish(lambda trial: "a model", lambda model: 0.91)
    Traceback (most recent call last):
        ...
    tradewind.errors.AlreadyTested: the test set may be looked at once, but it was looked at on ...
    """


class BrokenObjective(TradewindError, RuntimeError):
    """An objective whose first trials all fail in the same way, so that the search was stopped.

    >>> study = tw.create_study(space, seed=0)
    >>> study.optimize(lambda trial: trial.params["Depth"], n_trials=20)
    Traceback (most recent call last):
        ...
    tradewind.errors.BrokenObjective: no trial has finished, and 5 have failed in the same way, ...
    """


class NothingFinished(TradewindError, LookupError):
    """A result is wanted, but no trial has finished yet, or none has the cost that is needed.

    >>> tw.create_study(space, seed=0).best
    Traceback (most recent call last):
        ...
    tradewind.errors.NothingFinished: no trial of this study has finished
    """


class NothingQualifies(NothingFinished):
    """Trials have finished, but none of them meets the condition of the goal.

    >>> study.best_for(tw.BestUnder(1.0))
    Traceback (most recent call last):
        ...
    tradewind.errors.NothingQualifies: no finished trial is within ... comes closest, ...
    """


class WorkerError(TradewindError, RuntimeError):
    """Workers that cannot start, or a cluster that has gone away.

    >>> class Camera:
    ...     def __reduce__(self):  # what a worker does to get a copy of it
    ...         return int, ("there is only one",)
    >>> camera = Camera()
    >>> study.optimize(lambda trial: camera.see(trial.params), n_trials=1, n_workers=2)
    Traceback (most recent call last):
        ...
    tradewind.errors.WorkerError: a worker process could not start: ...
    """


class DataError(TradewindError, ValueError):
    """Data, word vectors or a saved model that are missing, damaged, or of the wrong kind.

    >>> from pathlib import Path
    >>> _ = Path("words.txt").write_text("not vectors")
    >>> tw.models.read_vectors("words.txt")
    Traceback (most recent call last):
        ...
    tradewind.errors.DataError: words.txt holds no word vectors: it begins with b'not vectors'
    """


class DataMissing(DataError, FileNotFoundError):
    """Data, word vectors or a saved model that are missing.

    >>> tw.models.load_mr("an-empty-folder")
    Traceback (most recent call last):
        ...
    tradewind.errors.DataMissing: an-empty-folder has no mr.pos.txt ...
    """


class StorageError(TradewindError, RuntimeError):
    """A store that cannot be reached, read or written.

    >>> tw.load_study("no-such-folder/runs.db")
    Traceback (most recent call last):
        ...
    tradewind.errors.StorageError: ... cannot be a SQLite file: there is no folder ...
    """


class FormatError(StorageError):
    """A stored study that is damaged, or that a newer version of Tradewind wrote.

    >>> from pathlib import Path
    >>> _ = Path("notes.db").write_text("not a study")
    >>> tw.load_study("notes.db")
    Traceback (most recent call last):
        ...
    tradewind.errors.FormatError: ...notes.db is not a SQLite file; it was not changed; ...
    """


class LogDiverged(StorageError):
    """A stored study that no longer continues what this process has read from it: a backup was
    restored, a standby promoted, or another file moved over it.

    >>> from sqlite3 import connect
    >>> study = tw.create_study(space, seed=0, storage="runs.db")
    >>> runs, backup = connect("runs.db"), connect("backup.db")
    >>> runs.backup(backup)
    >>> told = study.tell(study.ask(), 0.9, cost=10.0)
    >>> backup.backup(runs)  # what was told since the backup is gone
    >>> runs.close()
    >>> backup.close()
    >>> study.ask()
    Traceback (most recent call last):
        ...
    tradewind.errors.LogDiverged: ...
    """


class StudyDiffers(StorageError, ValueError):
    """A stored study has another space, direction, seed or cost than the caller says.

    >>> study = tw.create_study(space, seed=0, storage="runs.db")
    >>> tw.create_study({"depth": (1, 99)}, seed=0, storage="runs.db", load_if_exists=True)
    Traceback (most recent call last):
        ...
    tradewind.errors.StudyDiffers: the stored study 'study' is different: ...
    """


class StudyExists(StorageError, ValueError):
    """A study of this name is already in the store.

    >>> study = tw.create_study(space, seed=0, storage="runs.db")
    >>> tw.create_study(space, seed=0, storage="runs.db")
    Traceback (most recent call last):
        ...
    tradewind.errors.StudyExists: there is already a study 'study' in ...
    """


class NoSuchStudy(StorageError, LookupError):
    """No study of this name is in the store.

    >>> tw.load_study("runs.db", "nightly")
    Traceback (most recent call last):
        ...
    tradewind.errors.NoSuchStudy: ...
    """


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


def missing(what: str, *packages: str) -> ImportError:
    """The error for `what` that needs packages which are not installed, with the command that
    installs them."""
    return ImportError(f"{what} needs a package: pip install {' '.join(packages)}")


_PACKAGE = os.path.dirname(__file__) + os.sep


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the first caller outside this package, so that users see their own code.

    (`skip_file_prefixes` does the same, but only since Python 3.12.)"""
    level = 1
    caller: types.FrameType | None = sys._getframe()
    while caller is not None and caller.f_code.co_filename.startswith(_PACKAGE):
        level, caller = level + 1, caller.f_back
    warnings.warn(message, category, stacklevel=level)
