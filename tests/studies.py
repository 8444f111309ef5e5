"""Small studies for the tests of the shell."""

from __future__ import annotations

from typing import Any

import tradewind as tw
from tradewind.strategies import Bayes, Design

SPACE = tw.Space({"x": tw.Float(0, 1), "k": tw.Int(1, 9)})
CONDITIONAL = tw.Space(
    {
        "kernel": tw.Categorical(["linear", "poly", None]),
        "degree": tw.Int(2, 5, when={"kernel": "poly"}),
        "train_size": tw.TrainSize([0.5, 1.0]),
    }
)


def create(space: tw.Space = SPACE, **options: Any) -> tw.Study:
    return tw.create_study(space, **{"seed": 0, "strategy": "random", **options})


def quick(**options: Any) -> tw.Study:
    """A study that reaches its model soon."""
    return create(strategy=Bayes(design=Design(4)), **options)


def score(trial: Any) -> dict[str, float]:
    x, k = trial.params["x"], trial.params["k"]
    return {"value": -((x - 0.3) ** 2) + 0.01 * k, "cost": 1.0 + k * x}


def told(*outcomes: tuple[float, float | None], **options: Any) -> tw.Study:
    """A study with these values and costs."""
    study = create(**options)
    for value, cost in outcomes:
        study.tell(study.ask(), value=value, cost=cost)
    return study


def params(study: tw.Study) -> list[dict[str, Any]]:
    return [dict(t.params) for t in study.trials]


def numbers(trials: list[tw.Trial]) -> list[int]:
    return [t.number for t in trials]
