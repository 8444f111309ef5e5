"""How often the 90% intervals of `study.predict` and `study.importance` hold the truth.

    python benchmarks/intervals.py

18 synthetic functions of 4 to 13 parameters, a third of them with a conditional one, with noise of
0, 30 or 100% of their spread, and costs that are products of powers. A study knows 8 to 100 random
trials of such a function, or a search of 30, and predicts runs of random configurations. For
importance, the functions are sums of one wave for each of four parameters, whose shares of the
variance are known, with 30% noise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tradewind as tw

KNOWN = (8, 12, 30, 100)  # trials that a study knows
RUNS = 50  # runs that it predicts
NOISE = (0.0, 0.3, 1.0)  # std of the noise, as a share of the spread of the function

Function = Callable[[dict[str, Any]], float]


def make(seed: int) -> tuple[tw.Space, Function, Function, float]:
    """A space, a quality and a cost on it, and the noise of the quality."""
    rng = np.random.default_rng(seed)
    d, conditional = 3 + seed % 8, seed % 3 == 0
    names = [f"x{j}" for j in range(d)]
    parameters: dict[str, Any] = {name: tw.Float(0.0, 1.0) for name in names}
    parameters["size"] = tw.Float(1.0, 100.0, log=True)
    if conditional:
        parameters["kind"] = tw.Categorical(["plain", "fancy"])
        parameters["extra"] = tw.Float(0.0, 1.0, when={"kind": "fancy"})
    space = tw.Space(parameters)
    waves = [(rng.normal(size=d), rng.uniform(0, 2 * np.pi)) for _ in range(4)]
    power = rng.uniform(0.5, 1.5)

    def mean(config: dict[str, Any]) -> float:
        x = np.array([config[name] for name in names])
        smooth = sum(float(np.cos(2.0 * w @ x + phase)) for w, phase in waves)
        fancy = config.get("kind") == "fancy"
        return smooth + (1.0 - 4.0 * (config["extra"] - 0.5) ** 2 if fancy else 0.0)

    def log_cost(config: dict[str, Any]) -> float:
        return float(power * np.log(config["size"]) + config["x0"])

    sample = [mean(config) for config in space.decode(space.sample(500, rng=rng))]
    return space, mean, log_cost, NOISE[seed % len(NOISE)] * float(np.std(sample))


def coverage(seed: int, known: int, *, searched: bool) -> tuple[float, float]:
    """The shares of qualities and of costs of one function inside their 90% intervals."""
    space, mean, log_cost, noise = make(seed)
    rng = np.random.default_rng([seed, known])

    def run(config: dict[str, Any]) -> tuple[float, float]:
        value = mean(config) + noise * rng.normal()
        return value, float(np.exp(log_cost(config) + 0.1 * rng.normal()))

    study = tw.create_study(space, seed=seed)
    for config in space.decode(space.sample(known, rng=rng)):
        if searched:
            trial = study.ask()
            value, cost = run(dict(trial.params))
            study.tell(trial, value, cost=cost)
        else:
            value, cost = run(config)
            study.add(config, value, cost=cost)
    inside = []
    others = space.decode(space.sample(RUNS, rng=rng))
    for config, it in zip(others, study.predict(others), strict=True):
        value, cost = run(config)
        low, high = it.cost_low or 0.0, it.cost_high or 0.0
        inside.append((it.value_low <= value <= it.value_high, low <= cost <= high))
    quality, price = np.mean(inside, axis=0)
    return float(quality), float(price)


def importances(known: int) -> float:
    """How often the intervals of the total shares of sums of waves hold the true ones."""
    inside = []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        weights = rng.uniform(0.1, 1.0, size=4)
        space = tw.Space({f"x{j}": tw.Float(0.0, 1.0) for j in range(4)})
        true = weights**2 / (weights**2).sum()
        study = tw.create_study(space, seed=seed)
        for config in space.decode(space.sample(known, rng=rng)):
            x = np.array(list(config.values()))
            value = weights @ np.sin(np.pi * x * 2.0) * np.sqrt(2.0)
            noise = 0.3 * np.sqrt((weights**2).sum()) * rng.normal()
            study.add(config, float(value + noise))
        for it in study.importance():
            share = true[int(it.name.removeprefix("x"))]
            inside.append(it.quality.total.low <= share <= it.quality.total.high)
    return float(np.mean(inside))


def main() -> None:
    print("| a study of | quality: inside 90% intervals | cost |\n|---|---|---|")
    for known, searched in [*((n, False) for n in KNOWN), (30, True)]:
        quality, cost = np.mean(
            [coverage(seed, known, searched=searched) for seed in range(18)], axis=0
        )
        what = f"a search of {known} trials" if searched else f"{known} random trials"
        print(f"| {what} | {quality:.0%} | {cost:.0%} |", flush=True)
    for known in (20, 80):
        share = importances(known)
        print(
            f"\nimportance after {known} random trials: {share:.0%} inside 90% intervals",
            flush=True,
        )


if __name__ == "__main__":
    main()
