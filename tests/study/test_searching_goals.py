"""Every goal as a search: with training sizes, other strategies, stored, loaded and replayed."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tradewind as tw

SIZED = tw.Space(
    {"x": tw.Float(0, 1), "y": tw.Float(0, 1), "train_size": tw.TrainSize([0.25, 0.5, 1.0])}
)
PLAIN = tw.Space({"x": tw.Float(0, 1), "y": tw.Float(0, 1)})
GOALS = [
    tw.Tradeoff(0.3, 40.0),
    tw.Frontier(),
    tw.Frontier(search="hypervolume"),
    tw.Frontier(cost=(2.0, 20.0)),
    tw.Frontier(alpha=(0.1, 0.5)),
    tw.BestUnder(8.0),
    tw.CheapestWithin(0.02),
    tw.Knee(),
]


def outcome(trial: Any) -> tuple[float, float]:
    x, y, size = trial.params["x"], trial.params["y"], trial.train_size
    value = 0.95 - (x - 0.8) ** 2 - (y - 0.3) ** 2 - 0.05 / size
    return value, 10.0 * size * float(np.exp(2.0 * x))


def search(goal: Any, n: int, *, seed: int = 0, **options: Any) -> tw.Study:
    study = tw.create_study(SIZED, goal=goal, seed=seed, **options)
    for _ in range(n):
        trial = study.ask()
        value, cost = outcome(trial)
        study.tell(trial, value, cost=cost)
    return study


@pytest.mark.parametrize("goal", GOALS, ids=repr)
def test_a_stored_search_is_loaded_and_replayed(goal: Any, tmp_path: Path) -> None:
    study = search(goal, 12, storage=tmp_path / "s.db")
    again = tw.load_study(tmp_path / "s.db")
    assert again.goal == study.goal
    assert tw.replay(again).identical
    study.export(tmp_path / "s.jsonl")
    copy = tw.import_study(tmp_path / "s.jsonl", name="copy")
    assert copy.ask().params == again.ask().params


@pytest.mark.parametrize("goal", GOALS, ids=repr)
@pytest.mark.parametrize("strategy", ["multifidelity", "staged"])
def test_other_strategies_search_for_it_too(goal: Any, strategy: str) -> None:
    chosen: tw.strategies.Strategy = tw.strategies.MultiFidelity()
    space = SIZED
    if strategy == "staged":
        space, chosen = PLAIN, tw.recipes.wang2015(trials=6, published=False)
    study = tw.create_study(space, goal=goal, strategy=chosen, seed=0)
    study.optimize(lambda t: dict(zip(("value", "cost"), outcome(t), strict=True)), 10)
    assert sum(trial.finished for trial in study.trials) == 10
    assert tw.replay(study).identical


def test_one_frontier_answers_for_every_trade_off() -> None:
    """Nearly as well as a search for each of them, and better than random search."""
    study, random = search(tw.Frontier(), 30), search(tw.Quality(), 30, strategy="random")
    for alpha in (0.2, 0.5, 1.0):
        goal = tw.Tradeoff(alpha, 40.0)
        chosen = (study.best_for(goal), search(goal, 30).best, random.best_for(goal))
        found, own, lucky = (t.value - alpha * (t.cost or 0.0) / 40.0 for t in chosen)
        assert found > own - 0.01
        assert found > lucky


def test_a_limit_is_met_and_used() -> None:
    """A search for the best below a cost looks there more often than one for quality."""
    goal = tw.BestUnder(8.0)
    below, free = search(goal, 25), search(tw.Quality(), 25)
    within = [sum((t.cost or 0.0) <= 8.0 for t in s.trials) for s in (below, free)]
    assert below.best.cost is not None
    assert below.best.cost <= 8.0
    assert within[0] > within[1]
    assert below.best.value > free.best_for(goal).value


def kept(confidence: float) -> tuple[float, float]:
    """How often five new trainings of the pick keep the limit, and how good the picks are, over ten
    searches. The better a model, the more it costs, and costs vary by 10 %."""
    rng, goal = np.random.default_rng(0), tw.BestUnder(3.0, confidence=confidence)
    keeps, value = [], []
    for seed in range(10):
        study = tw.create_study({"x": (0.0, 1.0)}, goal=goal, seed=seed)
        for x in [0.0, 0.0, *rng.random(40).tolist()]:  # a repeat shows that costs vary
            study.add({"x": x}, x, cost=(1 + 4 * x) * math.exp(0.1 * rng.standard_normal()))
        value.append(study.best.value)
        new = (1 + 4 * study.best.params["x"]) * np.exp(0.1 * rng.standard_normal(5))
        keeps.append(np.mean(new <= 3.0))
    return float(np.mean(keeps)), float(np.mean(value))


def test_the_pick_under_a_limit_keeps_it_when_it_is_trained_again() -> None:
    (often, careful), (half, best) = kept(0.9), kept(0.5)
    assert often >= 0.85
    assert half < 0.6
    assert best - 0.2 < careful < best


def test_a_search_under_a_limit_stays_further_below_it_if_costs_vary() -> None:
    """And its proposals, which depend on how much they vary, are computed again from the log."""
    found = []
    for confidence in (0.95, 0.5):
        goal, rng = tw.BestUnder(3.0, confidence=confidence), np.random.default_rng(0)
        study = tw.create_study({"x": (0.0, 1.0)}, goal=goal, seed=0)
        for cost in (1.0, 1.1):
            study.add({"x": 0.0}, 0.0, cost=cost)
        for _ in range(16):
            trial = study.ask()
            x = trial.params["x"]
            study.tell(trial, x, cost=(1 + 4 * x) * math.exp(0.1 * rng.standard_normal()))
        assert tw.replay(study).identical
        found.append(np.mean([t.params["x"] for t in study.trials[10:]]))
    assert found[0] < found[1] - 0.03


def test_if_nothing_keeps_a_limit_the_error_says_how_probably_the_cheapest_does() -> None:
    study = tw.create_study({"x": (0.0, 1.0)}, seed=0)
    for x, cost in ((0.1, 1.0), (0.1, 1.2), (0.1, 0.9), (0.5, 2.0), (0.9, 4.0)):
        study.add({"x": x}, x, cost=cost)
    with pytest.raises(tw.errors.NothingQualifies, match=r"with a probability of \d+%"):
        study.best_for(tw.BestUnder(1.1))
    assert study.best_for(tw.BestUnder(1.1, confidence=0.5)).params["x"] == 0.1


def test_the_cheapest_of_the_good_ones_is_cheaper_than_the_best() -> None:
    study = search(tw.CheapestWithin(0.02), 25)
    best = study.best_for(tw.Quality())
    assert study.best.value >= best.value - 0.02
    assert (study.best.cost or 0.0) < (best.cost or 0.0)


def test_a_tolerance_thins_the_frontier_and_keeps_its_ends_apart() -> None:
    study = search(tw.Frontier(), 30)
    every, some = study.frontier(), study.frontier(tolerance=0.03)
    assert len(some) < len(every)
    assert {t.number for t in some} <= {t.number for t in every}
    assert all(b.value > a.value + 0.03 for a, b in pairwise(some))
    study.add({"x": 0.5, "y": 0.5, "train_size": 1.0}, folds=[0.1, 0.1], cost=1.0)
    with pytest.raises(tw.errors.NothingFinished, match="has folds or repeats that differ"):
        study.frontier(tolerance="1se")
    with pytest.raises(tw.errors.NothingFinished, match="cost named 'money'"):
        study.frontier(by="money")
    study.add(dict(every[0].params), every[0].value + 0.01, cost=every[0].cost)
    assert len(study.frontier(tolerance="1se")) < len(study.frontier())
