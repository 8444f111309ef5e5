"""Very many trials, and very many parameters."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import tradewind as tw
from tests.studies import create

SPACE = tw.Space(
    {
        "x": tw.Float(0, 1),
        "kind": tw.Categorical(["a", "b"]),
        "n": tw.Int(1, 9, when={"kind": "b"}),
    }
)


def add(study: tw.Study, count: int) -> None:
    """Add results of random configurations."""
    rows = study.space.sample(count, rng=np.random.default_rng(len(study.trials)))
    for config in study.space.decode(rows):
        study.add(config, float(config["x"]), cost=1.0)


def calls(work: Callable[[], object]) -> int:
    """How many functions are called, those of Python's own library and NumPy's included."""
    seen: Counter[str] = Counter()

    def count(frame: FrameType, event: str, argument: Any) -> None:
        seen[event] += 1

    before = sys.getprofile()
    gc.disable()
    try:
        sys.setprofile(count)
        work()
    finally:
        sys.setprofile(before)
        gc.enable()
    return seen["call"] + seen["c_call"]


@pytest.mark.parametrize("storage", ["memory", "sqlite"])
@pytest.mark.parametrize("how", ["ask and tell", "optimize", "max_cost", "failures"])
def test_a_trial_of_random_search_takes_as_many_steps_whatever_came_before(
    storage: str, how: str, tmp_path: Path
) -> None:
    path = None if storage == "memory" else tmp_path / "runs.db"
    study = create(SPACE, strategy="random", storage=path)

    def fails(trial: tw.runners.Run) -> float:
        raise ValueError("boom")

    def step() -> None:
        if how == "ask and tell":
            study.tell(study.ask(), 0.5, cost=1.0)
            return
        objective = fails if how == "failures" else (lambda trial: {"value": 0.5, "cost": 1.0})
        limit = 1e6 if how == "max_cost" else None
        study.optimize(objective, 5, max_cost=limit, show_progress=False)

    add(study, 50)
    step()
    early = calls(step)
    add(study, 500)
    step()
    late = calls(step)
    # What is read once, when a search begins or fails for the first time, may grow.
    once = 3 * 500 if how in ("max_cost", "failures") else 0
    assert late <= 1.2 * early + once


def test_a_thousand_parameters_are_searched_with_models() -> None:
    kinds = [
        tw.Float(0, 1),
        tw.Float(1e-4, 1e2, log=True),
        tw.Int(1, 100),
        tw.Categorical(["a", "b", "c"]),
        tw.Bool(),
    ]
    parameters: dict[str, Any] = {f"p{i}": kinds[i % 5] for i in range(990)}
    parameters |= {f"q{i}": tw.Int(1, 9, log=True, when={f"p{5 * i + 3}": "a"}) for i in range(10)}
    study = create(tw.Space(parameters), goal=tw.Tradeoff(0.3), strategy="auto")
    rng = np.random.default_rng(0)
    for config in study.space.decode(study.space.sample(40, rng=rng)):
        study.add(config, -((config["p0"] - 0.3) ** 2), cost=1.0 + config["p5"])
    asked = [study.ask() for _ in range(2)]
    for trial in asked:
        assert trial.origin.value == "model"
        assert study.space.validate(trial.params) == trial.params
    assert asked[0].params != asked[1].params
    assert tw.replay(study).identical


def test_a_trial_that_was_handed_out_can_be_changed_without_changing_the_study() -> None:
    study = create(SPACE, strategy="random")
    add(study, 2)
    for trial in (*study.trials, study.best):
        trial.params["x"] = 9.0  # type: ignore[index]
        trial.costs["money"] = 1.0  # type: ignore[index]
        trial.attributes["note"] = "mine"  # type: ignore[index]
    for trial in study.trials:
        assert trial.params["x"] != 9.0
        assert trial.costs == trial.attributes == {}
