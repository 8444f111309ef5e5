"""An objective that runs a program: a trainer in R, in C++, or in a script of any language."""

from __future__ import annotations

import errno
import json
import os
import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from shutil import which
from typing import Any, Literal

from tradewind.bounds import MESSAGE
from tradewind.checks import one_of
from tradewind.errors import ProgramFailed
from tradewind.paths import open_file
from tradewind.plain import shown
from tradewind.runners.program_command import Command, texts_of, variables_of
from tradewind.runners.program_output import read_result
from tradewind.runners.program_process import Ended, run_program
from tradewind.runners.run import Run


@dataclass(frozen=True)
class Invocation:
    """What a trial runs: the arguments, and the variables that are added to the environment."""

    arguments: tuple[str, ...]
    variables: Mapping[str, str]

    def __str__(self) -> str:
        return shlex.join(self.arguments)


@dataclass(frozen=True)
class Program:
    """An objective that runs a program for each trial, without a shell.

    `command` is a list of arguments, or text that is split like a command line. Placeholders are
    filled in: `{C}` is the parameter C, `{degree?}` leaves the argument out if the parameter is
    inactive or None, and there are `{number}`, `{seed}`, `{data_seed}`, `{train_size}`, `{device}`,
    `{params}` (JSON text), `{params_file}` and `{result_file}`. A brace is written `{{` or `}}`.

    `params` says how parameters get to the program. "arguments": if the command has no placeholder
    for a parameter, `--name value` is appended for each. "environment": as variables such as
    TRADEWIND_PARAM_C. "file": as a JSON object in the file `{params_file}`, whose path is in
    TRADEWIND_PARAMS_FILE too. TRADEWIND_TRIAL, TRADEWIND_SEED, TRADEWIND_DATA_SEED,
    TRADEWIND_TRAIN_SIZE and TRADEWIND_DEVICE are always set.

    `result` says where the result is: "output" is the last line of the output that is a number or a
    JSON object, and "file" is the file `{result_file}` (TRADEWIND_RESULT_FILE). It is what an
    objective may return: `0.91`, or `{"value": 0.91, "cost": 12.5, "f1": 0.88}`.

    `cwd` is the folder to run in, and `env` holds further variables. The trial fails if the program
    ends with another exit code than 0, is killed by a signal, or gives no result.

    >>> import sys
    >>> program = tw.Program([sys.executable, "-c", "print({depth} / 10)"])
    >>> study = tw.create_study({"depth": (1, 8)}, seed=0)
    >>> study.enqueue({"depth": 5})
    >>> study.optimize(program, n_trials=1)
    >>> study.best_value
    0.5
    """

    command: str | Sequence[str]
    params: Literal["arguments", "environment", "file"] = field(default="arguments", kw_only=True)
    result: Literal["output", "file"] = field(default="output", kw_only=True)
    cwd: str | os.PathLike[str] | None = field(default=None, kw_only=True)
    env: Mapping[str, str] = field(default_factory=dict, kw_only=True, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "command", _split(self.command))
        one_of("params", self.params, ("arguments", "environment", "file"))
        one_of("result", self.result, ("output", "file"))
        if self.cwd is not None and not isinstance(self.cwd, (str, os.PathLike)):
            raise TypeError(f"cwd must be the path of a folder, but got {shown(self.cwd)}")
        object.__setattr__(self, "cwd", None if self.cwd is None else os.fspath(self.cwd))
        object.__setattr__(self, "env", _variables(self.env))
        names = self.template.names
        if "result_file" in names and self.result != "file":
            raise ValueError('the command has {result_file}: write result="file" too')

    @property
    def template(self) -> Command:
        """The command with its placeholders."""
        return Command.parse(tuple(self.command), as_arguments=self.params == "arguments")

    def __call__(self, run: Run) -> dict[str, Any]:
        with self._folder() as folder:
            try:
                call = self.invocation(run, folder)
                self._write_params(run, folder)
                environment = {**os.environ, **call.variables}
                cwd = None if self.cwd is None else os.fspath(self.cwd)
                ended = run_program(call.arguments, cwd=cwd, environment=environment)
            except (OSError, ValueError) as error:
                raise ProgramFailed(_not_started(self.command[0], self.cwd, error)) from None
            _check_end(ended)
            if self.result == "file":
                answer = read_result(_read_file(f"{folder}/result.json"), "the result file")
            else:
                answer = _result_of(ended)
        return _with_memory(answer, ended) if run.trial.cost_name == "memory" else answer

    def invocation(self, run: Run, folder: str) -> Invocation:
        """What this trial runs, with its files in `folder`. ValueError if the command does not fit
        its parameters."""
        template, params = self.template, texts_of(run.params)
        texts = {
            "number": str(run.number),
            "seed": str(run.seed),
            "data_seed": str(run.trial.data_seed),
            "train_size": repr(run.train_size),
            "device": run.device,
            "params": _json(run),
            "params_file": f"{folder}/params.json",
        }
        variables = {
            "TRADEWIND_TRIAL": texts["number"],
            "TRADEWIND_SEED": texts["seed"],
            "TRADEWIND_DATA_SEED": texts["data_seed"],
            "TRADEWIND_TRAIN_SIZE": texts["train_size"],
            "TRADEWIND_DEVICE": texts["device"],
        }
        if self.params == "file":
            variables["TRADEWIND_PARAMS_FILE"] = texts["params_file"]
        if self.params == "environment":
            variables |= variables_of(params)
        if self.result == "file":
            texts["result_file"] = f"{folder}/result.json"
            variables["TRADEWIND_RESULT_FILE"] = texts["result_file"]
        arguments = tuple(template.fill(texts, params))
        if self.params == "arguments":
            template.check_passes(params)
        return Invocation(arguments, {**variables, **self.env})

    @contextmanager
    def _folder(self) -> Iterator[str]:
        """A folder for the files of one trial, if there are any."""
        if "file" not in (self.params, self.result) and "params_file" not in self.template.names:
            yield ""
            return
        with tempfile.TemporaryDirectory(prefix="tradewind-", ignore_cleanup_errors=True) as folder:
            yield folder

    def _write_params(self, run: Run, folder: str) -> None:
        if self.params == "file" or "params_file" in self.template.names:
            Path(folder, "params.json").write_text(f"{_json(run)}\n", encoding="ascii")


def _split(command: Any) -> tuple[str, ...]:
    if isinstance(command, str):
        try:
            arguments = tuple(shlex.split(command))
        except ValueError as error:
            raise ValueError(
                f"the command must be text that can be split like a command line, but got "
                f"{shown(command)}: {error}"
            ) from None
    elif isinstance(command, Sequence) and all(isinstance(part, str) for part in command):
        arguments = tuple(command)
    else:
        raise TypeError(f"the command must be text or a list of texts, but got {shown(command)}")
    if not arguments or not arguments[0]:
        raise ValueError(f"the command must begin with a program, but got {shown(command)}")
    return arguments


def _variables(given: Any) -> dict[str, str]:
    texts = given.items() if isinstance(given, Mapping) else [(given, None)]
    if not all(isinstance(name, str) and isinstance(value, str) for name, value in texts):
        raise TypeError(f"env must be a mapping from names to texts, but got {shown(given)}")
    return dict(given)


def _json(run: Run) -> str:
    return json.dumps(run.params, allow_nan=False)


def _not_started(program: str, cwd: Any, error: OSError | ValueError) -> str:
    reason = getattr(error, "strerror", None) or error
    if isinstance(error, FileNotFoundError) and error.filename not in (None, program):
        reason = f"there is no {error.filename}"
    elif isinstance(error, FileNotFoundError):
        reason = _why_not_found(program, cwd)
    elif isinstance(error, OSError) and error.errno == errno.ENOEXEC:
        reason = (
            "it is not a program for this machine; a script must begin with a line such as "
            "#!/bin/sh"
        )
    return f"the program {program!r} cannot be started: {reason}"


def _why_not_found(program: str, cwd: Any) -> str:
    """The system also says "no such file" of a script whose interpreter is missing."""
    found = os.path.join(cwd or "", program) if os.path.dirname(program) else which(program)
    if found is None or not os.path.isfile(found):
        return "there is no such program"
    with suppress(OSError), open_file(found) as file:
        line = file.readline(200).rstrip(b"\n").decode("utf-8", "replace")
        if line.startswith("#!"):
            return f"its first line is {line!r}, and there is no such interpreter"
    return "it needs a loader that this machine does not have"


def _check_end(ended: Ended) -> None:
    """`ProgramFailed` unless it ended with exit code 0. The first line is the cause."""
    if ended.code == 0:
        return
    how = f"ended with exit code {ended.code}"
    if ended.code < 0:
        from tradewind.runners.child import signal_name  # only here, as it needs the channel

        name = signal_name(-ended.code)
        how = f"was killed by {name}{', perhaps for memory' if name == 'SIGKILL' else ''}"
    lines = ended.errors.last_lines or ended.output.last_lines
    last = f": {lines[-1]}" if lines else ""
    raise ProgramFailed("\n".join([f"the program {how}{last}", *lines]))


def _result_of(ended: Ended) -> dict[str, Any]:
    if ended.output.candidate is not None:
        return read_result(ended.output.candidate, "the result in the output")
    lines = ended.output.last_lines
    said = f"its last line was {shown(lines[-1])}" if lines else "it printed nothing"
    text = 'the program must print a number or {"value": ...} on a line of its own, but '
    raise ProgramFailed("\n".join([text + said, *ended.errors.last_lines]))


def _read_file(path: str) -> bytes:
    try:
        with open_file(path, follow=False) as file:
            return file.read(MESSAGE + 1)
    except OSError as error:
        reason = "it has not written it" if isinstance(error, FileNotFoundError) else error.strerror
        raise ProgramFailed(
            f"the program must write its result to {{result_file}}, but {reason}"
        ) from None


def _with_memory(answer: dict[str, Any], ended: Ended) -> dict[str, Any]:
    """The answer with the peak memory of the program, which is not that of this process."""
    costs = answer.get("costs", {})
    if ended.memory is None or answer.get("cost") is not None or not isinstance(costs, Mapping):
        return answer
    return {**answer, "costs": {"memory": ended.memory, **costs}}
