"""Tune a digit classifier for accuracy *and* training time: `make demo`, or run this file.

The space has four families of models, each with its own parameters, and the share of the training
rows to train with. The search runs twice, for accuracy alone and for the trade-off, to show what
the trade-off saves.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline

import tradewind as tw

# ---- the space and the goal ----

SPACE = tw.Space(
    {
        "model": tw.Categorical(["kernel", "trees", "boosting", "mlp"]),
        "landmarks": tw.Int(10, 800, log=True, when={"model": "kernel"}),
        "gamma": tw.Float(0.01, 1.0, log=True, when={"model": "kernel"}),
        "C": tw.Float(0.01, 1000.0, log=True, when={"model": "kernel"}),
        "n_trees": tw.Int(10, 500, log=True, when={"model": "trees"}),
        "max_features": tw.Float(0.05, 1.0, when={"model": "trees"}),
        "rounds": tw.Int(10, 200, log=True, when={"model": "boosting"}),
        "learning_rate": tw.Float(0.02, 0.5, log=True, when={"model": "boosting"}),
        "width": tw.Ordinal([16, 32, 64, 128, 256, 512], when={"model": "mlp"}),
        "epochs": tw.Int(5, 200, log=True, when={"model": "mlp"}),
        "step": tw.Float(3e-4, 3e-2, log=True, when={"model": "mlp"}),
        "train_size": tw.TrainSize([0.2, 0.4, 0.6, 0.8, 1.0]),
    }
)

# A second is worth ten points of accuracy: a tenth of a second more must bring at least one point.
GOAL = tw.Tradeoff(alpha=0.1, reference=1.0)


def build(params, n_rows, seed):
    match params["model"]:
        case "kernel":  # a kernel machine that compares rows with only a sample of them
            landmarks = min(params["landmarks"], n_rows)
            features = Nystroem(gamma=params["gamma"], n_components=landmarks, random_state=seed)
            return make_pipeline(features, LogisticRegression(C=params["C"], max_iter=300))
        case "trees":
            return ExtraTreesClassifier(
                params["n_trees"], max_features=params["max_features"], random_state=seed
            )
        case "boosting":
            return HistGradientBoostingClassifier(
                max_iter=params["rounds"],
                learning_rate=params["learning_rate"],
                random_state=seed,
            )
        case "mlp":
            return MLPClassifier(
                [params["width"]],
                max_iter=params["epochs"],
                learning_rate_init=params["step"],
                random_state=seed,
            )


# ---- the data: half for training, a quarter for validation, a quarter for one final test ----


def stratified_order(y, seed):
    """Row numbers in an order in which every prefix has about the class shares of `y`."""
    rng = np.random.default_rng(seed)
    position = np.empty(len(y))
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        position[rows] = (rng.permutation(len(rows)) + 0.5) / len(rows)
    return np.argsort(position)


X, y = load_digits(return_X_y=True)
X = X / 16.0
X_rest, X_test, y_rest, y_test = train_test_split(X, y, test_size=0.25, stratify=y, random_state=0)
X_train, X_valid, y_train, y_valid = train_test_split(
    X_rest, y_rest, test_size=1 / 3, stratify=y_rest, random_state=0
)
ORDER = stratified_order(y_train, seed=0)


def train(params, train_size, seed):
    rows = ORDER[: round(train_size * len(ORDER))]  # larger subsets contain smaller ones
    return build(params, len(rows), seed).fit(X_train[rows], y_train[rows])


def objective(trial):
    with trial.timer():  # the cost is the time of this block
        model = train(trial.params, trial.train_size, trial.seed)
    return model.score(X_valid, y_valid)


# ---- the search and its results ----


def search(title, goal, n_trials):
    print(f"\nTuning for {title}", flush=True)
    study = tw.create_study(SPACE, goal=goal, seed=0)
    study.optimize(objective, n_trials=n_trials, show_progress=True)
    best, spent = study.best, sum(trial.cost for trial in study.trials)
    print(f"  best: {best.value:.1%}, trains in {best.cost:.3f} s: {describe(best)}")
    print(f"  the search spent {spent:.1f} s on training")
    return study


def compare(chosen, other):
    """Compare `chosen` with the winner of the search for accuracy alone."""
    saved = 1 - chosen.cost / other.cost
    points = 100 * (other.value - chosen.value)
    return (
        f"trains in {chosen.cost:.3f} s instead of {other.cost:.3f} s: "
        f"{abs(saved):.0%} {'less' if saved >= 0 else 'more'}, "
        + (
            f"for {points:.1f} points of accuracy"
            if points >= 0
            else f"and {-points:.1f} points more accurate"
        )
    )


def describe(trial):
    shown = {k: v for k, v in trial.params.items() if k not in ("model", "train_size")}
    values = (f"{k}={v:.3g}" if isinstance(v, float) else f"{k}={v}" for k, v in shown.items())
    return f"{trial.params['model']} ({', '.join(values)})"


def main():
    parser = argparse.ArgumentParser(description="Tune a digit classifier for accuracy and time.")
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--report", type=Path, default=Path("build/demo.html"))
    given = parser.parse_args()

    # The search may choose few epochs on purpose, so do not warn about them.
    warnings.simplefilter("ignore", ConvergenceWarning)

    accurate = search("accuracy alone", tw.Quality(), given.trials)
    efficient = search("accuracy and time", GOAL, given.trials)
    chosen = efficient.best

    print("\nThe frontier: no other trial of the second search is believed to be")
    print("both cheaper and more accurate.\n")
    print("  accuracy  seconds  train size  model")
    for trial in efficient.frontier():
        mark = "*" if trial.number == chosen.number else " "
        print(
            f"{mark} {trial.value:8.1%} {trial.cost:8.3f} {trial.train_size:11.0%}  "
            f"{describe(trial)}"
        )

    print(f"\nChosen (*): {describe(chosen)}")
    print(f"  on {chosen.train_size:.0%} of the training rows")
    print(f"  {compare(chosen, accurate.best)}")
    print(f"  validation accuracy {chosen.value:.1%}")
    final = train(chosen.params, chosen.train_size, chosen.seed)
    print(f"  test accuracy {final.score(X_test, y_test):.1%}, measured only once")

    given.report.parent.mkdir(parents=True, exist_ok=True)
    efficient.report(given.report)
    print("\nThe report of this search, with a slider for what a second is worth:")
    print(f"  {given.report}")


if __name__ == "__main__":
    main()
