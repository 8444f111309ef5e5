"""What runs inside a worker process: load the objective once, then evaluate trial after trial.

The process is started clean, by `BOOT`, and not by `multiprocessing`: no script needs a
`__main__` guard for it, and functions of notebooks, closures and lambdas arrive by value.
"""

from __future__ import annotations

import gc
import mmap
import os
import pickle
import signal
import sys
import time
import traceback
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Any

from tradewind.runners.evaluate import evaluate
from tradewind.runners.run import Objective
from tradewind.runners.runner import Failure
from tradewind.types import Outcome, Trial, Usage

# How a worker begins: with the driver's import path, before anything else is imported, and with
# the package as a name whose contents are loaded when somebody asks for one of them. All of the
# package would take every worker 0.35 s and 45 MB, for SciPy and models that few objectives use.
BOOT = """\
import sys
told, sys.path[:] = sys.argv[1:5], sys.argv[5:]
del sys.argv[1:]
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
class Package(ModuleType):
    def __getattr__(self, name):
        if find_spec("tradewind." + name):
            return import_module("tradewind." + name)
        self.__class__ = ModuleType
        self.__spec__.loader.exec_module(self)
        return getattr(self, name)
package = sys.modules["tradewind"] = module_from_spec(find_spec("tradewind"))
package.__class__ = Package
from tradewind.runners.worker import main
main(*told)
"""

_PACKAGE = b"\x8c\x09tradewind"  # the name of the package, and no more, in a pickle

# Bytes of a message. It must fit into the buffer of the channel (208 KiB on Linux), so that
# neither side ever waits for the other and a killed one leaves no half of a message.
_LARGEST = 64_000


@dataclass(frozen=True)
class Loaded:
    """The first message of a worker: it is ready, or cannot load the objective."""

    error: str | None = None


@dataclass(frozen=True)
class Begun:
    """A trial has arrived and runs: if the worker dies from now on, that is the trial's failure.
    `at` is by the clock that all processes of a machine share."""

    at: float


@dataclass(frozen=True)
class Answer:
    """What became of a trial. `raised` is the pickled exception, where it can be pickled."""

    result: Outcome | Failure
    usage: Usage
    raised: bytes | None = None

    def unpacked(self) -> Outcome | Failure:
        """The result as the driver takes it, with the exception if it arrives in one piece."""
        if self.raised is None or not isinstance(self.result, Failure):
            return self.result
        try:
            raised = pickle.loads(self.raised)
            raised.add_note(f"In the worker process:\n\n{self.result.error.rstrip()}")
        except (Exception, SystemExit):  # unpickling runs code of the user's
            return self.result
        return replace(self.result, raised=raised) if _raisable(raised) else self.result


def packed(objective: Objective) -> bytes:
    """The objective on its way to other processes."""
    if not callable(objective):
        raise TypeError(f"the objective must be callable, but got {objective!r}")
    try:
        return _dumps(objective)
    except Exception as error:  # pickling runs code of the user's
        raise TypeError(
            "the objective cannot be sent to worker processes, because it or something that it "
            f"refers to cannot be pickled: {type(error).__name__}: {error}. Make such things "
            "(open files, locks, connections, generators) inside the objective"
        ) from error


def _dumps(thing: Any) -> bytes:
    try:
        import cloudpickle
    except ImportError:  # scikit-learn brings a copy of it
        from joblib.externals import cloudpickle
    return bytes(cloudpickle.dumps(thing))


def main(channel: str, blob: str, device: str, idle: str) -> None:
    """Serve the driver at the other end of `channel` until it closes that, or until it has asked
    for nothing during `idle` seconds ("" for ever)."""
    descriptors = int(channel), int(blob)
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    _forget_signals()
    connection = Connection(descriptors[0])
    try:
        objective = _load(descriptors[1])
    except BaseException:
        connection.send(Loaded(_shortened(traceback.format_exc())))
        return
    gc.freeze()  # what has been loaded stays: looking for garbage need not pass over it
    try:
        connection.send(Loaded())
        while connection.poll(float(idle) if idle else None):
            trial = connection.recv()
            connection.send(Begun(time.monotonic()))
            connection.send(_answer(objective, trial, device))
            gc.collect()  # a model in a cycle would take its memory into the next trial
    except (EOFError, OSError):  # the driver has closed the channel, or has gone
        return


def _forget_signals() -> None:
    """Signals do what they do in a new process, whatever the driver's thread ignores or blocks."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)


def _load(descriptor: int) -> Objective:
    with mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as blob:
        os.close(descriptor)
        objective: Objective = pickle.loads(blob)
        if blob.find(_PACKAGE) >= 0:  # ask for something now, so that no trial pays for it
            hasattr(sys.modules["tradewind"], "__all__")
    return objective


def _answer(objective: Objective, trial: Trial, device: str) -> Answer:
    pid = os.getpid()
    result, usage = evaluate(objective, trial, device)
    if os.getpid() != pid:  # a process that the objective forked has come back from it, too
        os._exit(1)
    _flush()
    if not isinstance(result, Failure):
        return Answer(result, usage)
    raised = None if result.raised is None else _raised(result.raised)
    return Answer(replace(result, error=_shortened(result.error), raised=None), usage, raised)


def _raised(error: BaseException) -> bytes | None:
    """The exception if it can be pickled, is not too big, and is one again when unpickled."""
    try:
        blob = _dumps(error)
        return blob if len(blob) <= _LARGEST // 2 and _raisable(pickle.loads(blob)) else None
    except BaseException:  # the user's own code, which may do anything
        return None


def _raisable(thing: object) -> bool:
    return isinstance(thing, BaseException)


def _shortened(text: str) -> str:
    """The text without its middle, if it is too long for a message; any character counts four."""
    most = _LARGEST // 16
    return text if len(text) <= 2 * most else f"{text[:most]}\n[...]\n{text[-most:]}"


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):  # None, or closed by the objective
            continue
