"""Import what an objective uses of Tradewind before its first trial.

The package imports a public name when it is first used. Inside an objective, the first trial would
pay for that import with its time, and its cost would be wrong.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import suppress
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any


def import_used_names() -> None:
    """Find the functions that can see a module of Tradewind, such as `tw` after `import tradewind
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
