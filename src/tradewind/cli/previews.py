"""What a run would do, shown with one random configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from rich.console import RenderableType
from rich.text import Text

from tradewind.cli import tables
from tradewind.cli.config import RunFile
from tradewind.cli.exits import UsageFault
from tradewind.cli.search import state_of_storage
from tradewind.cli.terminal import Data
from tradewind.cli.text import clean, one_line
from tradewind.goals import Quality
from tradewind.goals.text import goal_text
from tradewind.runners.program import Program
from tradewind.runners.run import Run
from tradewind.seeds import data_seed, trial_seed
from tradewind.study.words import cost_amount, exact, goal_in_words, unit_of_cost
from tradewind.types import Origin, State, Trial

_FOLDER = "/tmp/tradewind-example"  # in place of the folder that each trial gets


def preview_of(settings: RunFile, objective: Callable[[Any], Any]) -> Data:
    """The study, its limits, one trial, and how the objective is called for it."""
    seed = settings.study.get("seed", 0)
    trial = _example(settings, seed)
    goal = settings.goal or Quality()
    storage = state_of_storage(settings, goal)
    if not storage["exists"]:
        storage["unit"] = unit_of_cost(trial, goal.by or settings.study.get("cost"))
    data: Data = {
        "study": settings.name,
        **storage,
        "goal": goal_text(goal),
        "goal_in_words": goal_in_words(goal, storage["unit"], settings.study.get("metric")),
        "limits": dict(settings.limits),
        "workers": dict(settings.workers),
        "params": dict(trial.params),
        "train_size": trial.train_size,
        "function": settings.objective.get("function"),
        "command": None,
        "environment": None,
        "folder": str(settings.folder),
    }
    if isinstance(objective, Program):
        try:
            call = objective.invocation(Run(trial), _FOLDER)
        except ValueError as error:
            raise UsageFault(f"{settings.path}: {error}") from None
        data |= {
            "command": list(call.arguments),
            "command_line": str(call),
            "environment": dict(call.variables),
            "folder": str(objective.cwd),
        }
    return data


def _example(settings: RunFile, seed: int) -> Trial:
    """A trial with a random configuration."""
    space = settings.space
    (config,) = space.decode(space.sample(1, rng=np.random.default_rng(seed)))
    size = config.get(space.size_name or "", 1.0)
    return Trial(
        0,
        config,
        State.RUNNING,
        Origin.DESIGN,
        trial_seed(seed, 0),
        train_size=float(size) if isinstance(size, (int, float)) else 1.0,
        data_seed=data_seed(seed),
        size_name=space.size_name,
    )


def _limit(name: str, value: float, unit: str) -> str:
    """A limit with its unit: `2 h`, `500 MB`, `20`."""
    if name in ("timeout", "trial_timeout", "trial_memory"):
        return exact(value, "bytes" if name == "trial_memory" else "s")
    return one_line(cost_amount(value, unit)) if name == "max_cost" else f"{value:g}"


def draw(data: Data) -> Iterator[RenderableType]:
    there = f"continues, {data['trials']} trials" if data["exists"] else "a new study"
    limits = ", ".join(
        f"{name}={_limit(name, value, data['unit'])}" for name, value in data["limits"].items()
    )
    workers = ", ".join(f"{name}={value}" for name, value in data["workers"].items())
    yield tables.facts(
        [
            ("study", f"{one_line(data['study'])} in {data['storage']} ({there})"),
            ("goal", data["goal_in_words"]),
            ("limits", limits),
            ("workers", workers),
            ("example", tables.params_text(data["params"])),
            ("function", data["function"] or ""),
            ("folder", data["folder"]),
        ]
    )
    if data["command"] is not None:
        yield Text()
        yield Text(clean(data["command_line"]), overflow="fold")
        for name, value in data["environment"].items():
            yield Text(f"{one_line(name)}={one_line(value)}", overflow="fold")
    yield Text()
    yield Text("Nothing was run, and nothing was written.")
