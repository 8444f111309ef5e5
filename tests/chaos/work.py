"""What the drivers of a campaign do: the space, the objective, and the witness of its results."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tradewind as tw

SPACE = tw.Space(
    {
        "x": tw.Float(0.0, 1.0),
        "y": tw.Float(1e-3, 1e3, log=True),
        "k": tw.Int(1, 50),
        "kind": tw.Categorical(["a", "b", "c"]),
        "z": tw.Float(0.0, 1.0, when={"kind": "c"}),
    }
)
LEASE = 1.5  # seconds
NAME = "chaos"  # of the study


def study_at(storage: Any, strategy: str = "random") -> tw.Study:
    """A new study."""
    return tw.create_study(SPACE, strategy=strategy, seed=7, storage=storage, name=NAME)


def value(params: Any) -> float:
    """The value of these params, so that every result can be traced to its trial."""
    return -((params["x"] - 0.3) ** 2) + 0.01 * params["k"] + 0.1 * params.get("z", 0.0)


@dataclass(frozen=True)
class Work:
    """An objective that takes about `seconds`. With `daemons`, a folder, some of its trials start a
    process that tries to stay behind."""

    seconds: float = 0.02
    daemons: str | None = None

    def __call__(self, trial: Any) -> dict[str, float]:
        if self.daemons is not None and trial.seed % 20 == 0:
            start_daemon(Path(self.daemons))
        time.sleep(self.seconds * (0.5 + trial.seed % 1000 / 1000))
        return {"value": value(trial.params), "cost": 1.0 + trial.params["k"]}


def start_daemon(folder: Path) -> None:
    """Start a process as daemons do: two forks, a session of its own, an empty environment. A file
    is named by its number."""
    child = os.fork()
    if child == 0:
        os.setsid()
        if os.fork() == 0:
            (folder / f"{os.getpid()}.daemon").touch()
            os.execve("/bin/sleep", ["sleep", "600"], {})
        os._exit(0)
    os.waitpid(child, 0)


def spooling(folder: Path) -> dict[str, str]:
    """The environment in which results that cannot be recorded wait in this folder."""
    return {"TRADEWIND_SPOOL": str(folder / "spool")}


class Witness:
    """A file beside the log, to which a driver writes every finished trial at once."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def __call__(self, study: tw.Study, trial: tw.Trial) -> None:
        if trial.finished:
            os.write(self._file, f"{json.dumps([trial.number, trial.value])}\n".encode())


def witnessed(folder: Path) -> Iterator[tuple[int, float]]:
    """The number and the value of every trial in the complete lines of all witness files."""
    for path in folder.glob("*.witness"):
        for line in path.read_text().splitlines(keepends=True):
            if line.endswith("\n"):
                number, told = json.loads(line)
                yield number, told
