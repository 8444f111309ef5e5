"""Calling the command line, in this process or as a user does."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

import tests.studies as studies
import tradewind as tw
from tradewind.cli.app import app

ROOT = Path(__file__).parents[2]
TRADEWIND = (sys.executable, "-m", "tradewind")


class Result:
    """What a call has printed, and its exit code."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def data(self) -> Any:
        """What `--json` has printed. NaN and infinities are refused."""
        return json.loads(self.out, parse_constant=refuse)

    def __repr__(self) -> str:
        return f"exit {self.code}\n{self.out}\n--- stderr\n{self.err}"


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def call(*arguments: object, env: Mapping[str, str] | None = None) -> Result:
    """Call the command line in this process."""
    variables: dict[str, str | None] = {"TRADEWIND_STORAGE": None, **(env or {})}
    logger = logging.getLogger("tradewind")
    handlers = logger.handlers[:]
    try:
        done = CliRunner().invoke(app, [str(a) for a in arguments], env=variables)
    finally:  # later tests are not about the command line
        logger.handlers[:] = handlers
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Result(done.exit_code, done.stdout, done.stderr)


def environment(**more: str) -> dict[str, str]:
    """That of this process, without what would change the output."""
    others = {"TRADEWIND_STORAGE", "COLUMNS", "PYTHONUNBUFFERED"}
    kept = {k: v for k, v in os.environ.items() if k not in others}
    return {**kept, "PYTHONWARNINGS": "error", **more}


def start(*arguments: object, folder: Path, **options: Any) -> subprocess.Popen[str]:
    """Start the command line as a process."""
    defaults: dict[str, Any] = {
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "text": True,
        "env": environment(),
        "cwd": folder,
    }
    return subprocess.Popen([*TRADEWIND, *map(str, arguments)], **{**defaults, **options})


def execute(*arguments: object, folder: Path, **options: Any) -> Result:
    """Run the command line as a process, to its end."""
    with start(*arguments, folder=folder, **options) as process:
        out, err = process.communicate(timeout=120)
    return Result(process.returncode, out or "", err or "")


# ---- studies and run files ----


def make_study(path: Path, name: str = "one", n_trials: int = 12, **options: Any) -> tw.Study:
    """A study in a file, with values and costs."""
    study = studies.create(storage=path, name=name, **options)
    for _ in range(n_trials):
        trial = study.ask()
        study.tell(trial, **studies.score(trial))
    return study


RUN_FILE = """
[study]
storage = "study.db"
seed = 0

[objective]
{objective}

[space]
x = {{ type = "float", low = 0.0, high = 1.0 }}
k = {{ type = "int", low = 1, high = 9 }}

[limits]
trials = {trials}
"""

FUNCTION = """
def objective(trial):
    x, k = trial.params["x"], trial.params["k"]
    return {"value": k * 0.1 - (x - 0.3) ** 2, "cost": 1.0 + k * x}
"""


def write_run_file(
    folder: Path, objective: str = 'function = "objective_of_test:objective"', trials: int = 4
) -> Path:
    path = folder / "tradewind.toml"
    path.write_text(RUN_FILE.format(objective=objective, trials=trials))
    return path
