"""From the table [objective] of a run file to what a trial calls."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from shlex import quote
from shutil import which
from typing import TYPE_CHECKING, Any

from tradewind.checks import suggest
from tradewind.cli.config import RunFile
from tradewind.cli.exits import UsageFault
from tradewind.plain import shown

if TYPE_CHECKING:
    from tradewind.runners.program import Program
    from tradewind.space import Space


class BrokenModule(UsageFault):
    """The module of an objective cannot be imported."""


def objective_of(settings: RunFile) -> Callable[[Any], Any]:
    """The function or the program of a run file."""
    if "command" in settings.objective:
        return program_of(settings)
    return _function(settings, str(settings.objective["function"]))


# ---- functions ----


def _function(settings: RunFile, text: str) -> Callable[[Any], Any]:
    """`module:function`, from the folder of the run file or from anything installed."""
    module_name, colon, name = text.partition(":")
    parts = [*module_name.split("."), *name.split(".")]
    if not colon or not all(part.isidentifier() for part in parts):
        raise UsageFault(
            f'{settings.path}: a function is written "module:function", such as '
            f'"train:objective", but got {shown(text)}'
        )
    folder = str(settings.folder)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    found: Any = _import(settings, module_name)
    for part in name.split("."):
        names = (
            [n for n in vars(found) if not n.startswith("_")] if hasattr(found, "__dict__") else []
        )
        if not hasattr(found, part):
            raise UsageFault(
                f"{settings.path}: {module_name} has no {part!r}{suggest(part, names)}"
            )
        found = getattr(found, part)
    if not callable(found):
        raise UsageFault(f"{settings.path}: {text} must be a function, but it is {shown(found)}")
    function: Callable[[Any], Any] = found
    return function


def _import(settings: RunFile, name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and name.startswith(error.name):
            there = [p.stem for p in settings.folder.glob("*.py")]
            raise BrokenModule(
                f"{settings.path}: there is no module {name!r}{suggest(name, there)} in "
                f"{settings.folder}, and none is installed"
            ) from error
        raise BrokenModule(_broken(name, error)) from error
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # it is the user's code, which may raise anything
        raise BrokenModule(_broken(name, error)) from error


def _broken(name: str, error: BaseException) -> str:
    """Where in the user's code it went wrong, and why."""
    import traceback

    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "importlib" not in frame.filename and frame.filename != __file__
    ]
    where = f"{frames[-1].filename}, line {frames[-1].lineno}: " if frames else ""
    if isinstance(error, SyntaxError):
        where = f"{error.filename}, line {error.lineno}: "
    last = traceback.format_exception_only(error)[-1].strip()
    return f"the module {name!r} cannot be imported: {where}{last} (--debug shows more)"


# ---- programs ----


def program_of(settings: RunFile) -> Program:
    """The program of a run file, in the file's folder. Its command is checked before a trial fails
    by it."""
    from tradewind.runners.program import Program

    table = dict(settings.objective)
    cwd = settings.folder / str(table.pop("cwd", "."))
    if not cwd.is_dir():
        raise UsageFault(f"{settings.path}: cwd must be a folder, but there is none at {cwd}")
    try:
        program = Program(**table, cwd=str(cwd))
        program.template.check(list(settings.space), sometimes=_sometimes(settings.space))
        if program.params == "arguments":
            program.template.check_passes(settings.space)
    except (ValueError, TypeError) as error:
        raise UsageFault(f"{settings.path}: {error}") from None
    _check_exists(settings, program, cwd)
    return program


def _sometimes(space: Space) -> set[str]:
    """The parameters that may have no text: not always active, or None."""
    return {
        name
        for name, parameter in space.items()
        if parameter.when or any(c is None for c in getattr(parameter, "choices", ()))
    }


def _check_exists(settings: RunFile, program: Program, cwd: Path) -> None:
    name = program.command[0]
    if program.template.arguments[0].placeholders:
        return
    path = dict(program.env).get("PATH", os.environ.get("PATH"))
    here = cwd / name
    if os.path.dirname(name) == "":
        if which(name, path=path) is not None:
            return
        hint = f"; write ./{name} for the file here" * here.is_file()
        what = f"there is no program {name!r}{hint}"
    elif here.is_dir():
        what = f"the program {name!r} is a folder"
    elif not here.is_file():
        what = f"there is no program {name!r}"
    elif not os.access(here, os.X_OK):
        what = f"the program {name!r} may not be run; make it executable: chmod +x {quote(name)}"
    else:
        return
    raise UsageFault(f"{settings.path}: {what}")
