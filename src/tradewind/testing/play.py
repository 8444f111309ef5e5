"""Short studies for the contract of strategies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from tradewind.goals import Goal, Quality
from tradewind.optimizer.strategies.strategy import Strategy
from tradewind.space import Categorical, Float, Int, Ordinal, Space, TrainSize
from tradewind.study.studies import create_study
from tradewind.study.study import Study
from tradewind.testing.check import must
from tradewind.types import Trial

MIXED = Space(
    {
        "C": Float(1e-4, 1e3, log=True),
        "kernel": Categorical(["linear", "poly", "rbf"]),
        "degree": Int(2, 5, when={"kernel": "poly"}),
        "gamma": Float(0, 1, when={"kernel": ["poly", "rbf"]}),
        "width": Ordinal([32, 64, 128]),
        "train_size": TrainSize(),
    },
    forbid=[{"kernel": "linear", "width": 128}],
)
QUALITY = Quality()

Answer = Callable[[int, Trial], tuple[float, float] | None]  # value and cost; None is a failure


def smooth(i: int, trial: Trial) -> tuple[float, float]:
    """Best at C = 1, better and dearer with more data."""
    quality = trial.train_size - abs(float(np.log10(trial.params["C"])))
    return quality, 1.0 + trial.train_size


def scripted(i: int, trial: Trial) -> tuple[float, float]:
    return float(i % 3), 1.0 + i


def study_of(
    strategy: Strategy, *, space: Space = MIXED, goal: Goal = QUALITY, seed: int = 0
) -> Study:
    return create_study(space, strategy=strategy, goal=goal, seed=seed)


def answer_next(study: Study, answer: Answer, i: int) -> None:
    trial = study.ask()
    answered = answer(i, trial)
    if answered is None:
        study.fail(trial)
    else:
        study.tell(trial, value=answered[0], cost=answered[1])


def play(
    strategy: Strategy,
    answer: Answer,
    n: int,
    *,
    space: Space = MIXED,
    goal: Goal = QUALITY,
    seed: int = 0,
) -> Study:
    """n trials, one after the other."""
    study = study_of(strategy, space=space, goal=goal, seed=seed)
    for i in range(n):
        answer_next(study, answer, i)
    return study


def configs(study: Study) -> list[tuple[Any, ...]]:
    return [tuple(t.params.items()) for t in study.trials]


def timeless(trials: Iterable[Trial]) -> list[Trial]:
    """The trials without what depends on the driver and the clock."""
    return [replace(t, driver=None, started=None, ended=None, usage=None) for t in trials]


def must_all_differ(study: Study) -> None:
    counts = Counter(configs(study)).most_common(1)
    must(not counts or counts[0][1] == 1, f"{dict(counts[0][0])} was proposed {counts[0][1]} times")


def must_be_the_same(one: Study, other: Study) -> None:
    for a, b in zip(timeless(one.trials), timeless(other.trials), strict=True):
        must(a == b, f"trial {a.number} is once {dict(a.params)} and once {dict(b.params)}")
