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
from collections.abc import Iterator
from contextlib import closing, suppress
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

from tradewind.runners.channel import WorkerEnd
from tradewind.runners.evaluate import evaluate
from tradewind.runners.messages import Begun, Loaded, decode, describe, encode, write_answer
from tradewind.runners.run import Objective
from tradewind.runners.runner import Done
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
        trial = decode(line.receive(idle))
        assert isinstance(trial, Trial)
        line.send(encode(Begun(trial.number)))
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
    _import_used_names()
    return objective


def _evaluate(objective: Objective, trial: Trial, device: str) -> str:
    """The text of the answer."""
    pid = os.getpid()
    result, usage = evaluate(objective, trial, device)
    if os.getpid() != pid:  # a process that the objective forked has returned here as well
        os._exit(1)
    _flush()
    return write_answer(Done(trial, result, usage))


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:  # None, closed, or an object of the user's that raises anything
            continue


def _import_used_names() -> None:
    """Import what the objective uses of Tradewind before its first trial, whose time and cost would
    show it: the package imports a public name when it is first used.

    Find the functions that can see a module of Tradewind, such as `tw` after `import tradewind
    as tw`, and import the public names of that module that their code mentions.

    This takes 5 ms of CPU time, and 100 ms if the objective has imported PyTorch (51,000
    functions)."""
    doors = {
        id(module): module for name, module in [*sys.modules.items()] if _is_door(name, module)
    }
    holders = {id(holder) for holder in gc.get_referrers(*doors.values())}
    for function in [thing for thing in gc.get_objects() if type(thing) is FunctionType]:
        cells = function.__closure__ or ()
        if id(function.__globals__) in holders or any(id(cell) in holders for cell in cells):
            visible = [*function.__globals__.values(), *_contents(cells)]
            modules = [doors[id(thing)] for thing in visible if id(thing) in doors]
            _import_names(modules, set(_names(function.__code__)))


def _is_door(name: str, module: Any) -> bool:
    """Whether this is a module of Tradewind with public names."""
    return name.partition(".")[0] == "tradewind" and hasattr(module, "__all__")


def _import_names(modules: list[ModuleType], names: set[str]) -> None:
    for module in modules:  # the list grows: a public name may be a module
        for name in names & set(getattr(module, "__all__", ())):
            with suppress(Exception):  # the trial that needs it shows the error
                value = getattr(module, name)
                if isinstance(value, ModuleType):
                    modules.append(value)


def _contents(cells: tuple[CellType, ...]) -> Iterator[Any]:
    for cell in cells:
        with suppress(ValueError):  # the cell is empty
            yield cell.cell_contents


def _names(code: CodeType) -> Iterator[str]:
    """The names that the code of a function and of the functions inside it mentions."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
