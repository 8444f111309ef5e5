"""The overhead of Tradewind: the time of `ask` by the number of finished trials, and of `import`.

    python benchmarks/overhead.py            # all tables; `make bench` runs this

The space has 14 mixed parameters, some of them conditional. The study is filled with results of
random configurations. Every figure is the median of `REPEATS` asks with one BLAS thread, next to
its budget.
"""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import time

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import numpy as np

import tradewind as tw

REPEATS = 7
BUDGET_MS = {50: 15, 100: 25, 200: 60, 500: 300, 1000: 1000, 2000: 1000}
FOREST_BUDGET_MS = 300
IMPORT_BUDGET = 1.3


def space() -> tw.Space:
    """14 parameters: 9 floats (4 of them on a log scale), 3 integers, 2 categories."""
    return tw.Space(
        {
            "booster": tw.Categorical(["linear", "tree", "dart"]),
            "impute": tw.Categorical(["mean", "median", "hist"]),
            "rounds": tw.Int(8, 2000, log=True),
            "lambda": tw.Float(1e-3, 1e3, log=True),
            "alpha": tw.Float(1e-3, 1e3, log=True),
            "subsample": tw.Float(0.1, 1.0),
            "eta": tw.Float(1e-4, 1.0, log=True, when={"booster": ["tree", "dart"]}),
            "gamma": tw.Float(1e-4, 7.0, log=True, when={"booster": ["tree", "dart"]}),
            "depth": tw.Int(1, 15, when={"booster": ["tree", "dart"]}),
            "child": tw.Int(1, 150, log=True, when={"booster": ["tree", "dart"]}),
            "by_tree": tw.Float(0.0, 1.0, when={"booster": ["tree", "dart"]}),
            "by_level": tw.Float(0.0, 1.0, when={"booster": ["tree", "dart"]}),
            "drop": tw.Float(0.0, 1.0, when={"booster": "dart"}),
            "skip": tw.Float(0.0, 1.0, when={"booster": "dart"}),
        }
    )


def quality(row: np.ndarray) -> float:
    """A smooth function of the encoded row, with interactions and a conditional part."""
    u = np.nan_to_num(row, nan=0.3)
    bumps = np.sin(3.0 * u[2]) * u[6] - (u[3] - 0.4) ** 2 - 0.5 * (u[8] - u[6]) ** 2
    return float(bumps + 0.1 * np.cos(5.0 * u[5]) - 0.2 * (u[0] < 0.33))


def filled(n: int, goal: tw.Quality | tw.Tradeoff, strategy: object) -> tw.Study:
    """A study with n results, after two asks, so that the next one has hyper-parameters to start
    from."""
    study = tw.create_study(space(), goal=goal, strategy=strategy, seed=1)
    rows = study.space.sample(n, rng=np.random.default_rng(n))
    for config, row in zip(study.space.decode(rows), rows, strict=True):
        study.add(config, value=quality(row), cost=float(np.exp(3.0 * np.nan_to_num(row[2]))))
    for _ in range(2):
        step(study)
    return study


def step(study: tw.Study) -> float:
    """The seconds of one ask. Then its result is told."""
    begin = time.perf_counter()
    trial = study.ask()
    spent = time.perf_counter() - begin
    row = study.space.encode([trial.params])[0]
    study.tell(trial, value=quality(row), cost=1.0)
    return spent


def median_ms(study: tw.Study) -> float:
    return 1e3 * statistics.median(step(study) for _ in range(REPEATS))


def import_seconds(statement: str) -> float:
    """The fastest of several fresh interpreters; slower runs measure other load of the machine.
    Compiled files are kept, as in an installed package."""
    code = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
    command, kept = [sys.executable, "-c", code], dict(os.environ)
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    runs = [subprocess.run(command, capture_output=True, check=True, env=kept) for _ in range(9)]
    return min(float(run.stdout) for run in runs)


def main() -> None:
    print(f"{platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}\n")
    print("| finished trials | Quality, ms | budget | Tradeoff, ms | budget |")
    print("|---|---|---|---|---|")
    for n, budget in BUDGET_MS.items():
        ours = [
            median_ms(filled(n, goal, "auto")) for goal in (tw.Quality(), tw.Tradeoff(alpha=0.3))
        ]
        print(f"| {n} | {ours[0]:.1f} | {budget} | {ours[1]:.1f} | {2 * budget} |", flush=True)
    forest = median_ms(filled(100, tw.Quality(), tw.recipes.mip_ego(loss="identity")))
    print(f"\nforest of 110 trees + MIES (4, 10) x 500, 100 trials: {forest:.0f} ms ", end="")
    print(f"(budget {FOREST_BUDGET_MS})")
    base = import_seconds("import numpy, scipy.optimize")
    print(f"import numpy, scipy.optimize: {1e3 * base:.0f} ms")
    # Names load on first use, so a script pays for `create_study` when it calls it.
    for statement in ("import tradewind", "import tradewind; tradewind.create_study"):
        mine = import_seconds(statement)
        print(f"{statement}: {mine / base:.2f} x that ({1e3 * mine:.0f} ms; ", end="")
        print(f"budget {IMPORT_BUDGET})")


if __name__ == "__main__":
    main()
