"""What runs inside a worker process: load the objective once, then evaluate trial after trial.

The driver starts a new interpreter that runs `BOOT` instead of using `multiprocessing`. So a script
needs no `__main__` guard, and functions of notebooks, closures and lambdas arrive by value.
"""

from __future__ import annotations

import gc
import mmap
import os
import pickle
import signal
import sys
import time
from contextlib import closing

from tradewind.runners.channel import LARGEST, WorkerEnd, encode
from tradewind.runners.describe import describe
from tradewind.runners.evaluate import evaluate
from tradewind.runners.messages import Answer, Begun, Loaded
from tradewind.runners.preload import import_used_names
from tradewind.runners.run import Objective
from tradewind.runners.runner import Failure
from tradewind.types import Trial

# The worker takes over the driver's import path before it imports anything.
BOOT = """\
import sys
arguments, sys.path[:] = sys.argv[1:5], sys.argv[5:]
del sys.argv[1:]
from tradewind.runners.worker import main
main(*arguments)
"""


def main(channel: str, blob: str, device: str, idle: str) -> None:
    """Evaluate trials until the driver closes `channel`, or sends nothing for `idle` seconds.
    `channel` and `blob` are file descriptors. An empty `idle` means no limit."""
    descriptors = int(channel), int(blob)
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    _reset_signals()
    try:
        with closing(WorkerEnd(descriptors[0])) as line:
            _serve(line, descriptors[1], device, float(idle) if idle else None)
    except (EOFError, OSError):  # the driver has closed the channel or died, or `idle` has passed
        return


def _serve(line: WorkerEnd, blob: int, device: str, idle: float | None) -> None:
    try:
        objective = _load(blob)
    except BaseException as error:
        line.send(encode(Loaded(describe(error))))
        return
    gc.freeze()  # what is loaded now stays, so the garbage collector need not scan it
    line.send(encode(Loaded()))
    while True:
        trial = line.receive(idle)
        line.send(encode(Begun(trial.number, time.monotonic())))
        line.send(_evaluate(objective, trial, device))
        gc.collect()  # a model in a reference cycle would occupy memory in the next trial


def _reset_signals() -> None:
    """Give signals their default behaviour, whatever the driver's thread ignores or blocks."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)


def _load(descriptor: int) -> Objective:
    with mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as blob:
        os.close(descriptor)
        objective: Objective = pickle.loads(blob)
    import_used_names()
    return objective


def _evaluate(objective: Objective, trial: Trial, device: str) -> bytes:
    """The encoded answer."""
    pid = os.getpid()
    result, usage = evaluate(objective, trial, device)
    if os.getpid() != pid:  # a process that the objective forked has returned here as well
        os._exit(1)
    _flush()
    answer = encode(Answer.of(trial.number, result, usage))
    if len(answer) > LARGEST:
        error = f"an answer may take {LARGEST} bytes, and the objective's takes {len(answer)}"
        answer = encode(Answer.of(trial.number, Failure(error, usage.wall), usage))
    return answer


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:  # None, closed, or an object of the user's that raises anything
            continue
