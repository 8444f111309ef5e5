"""H's task: the text CNN on MR, tuned by `auto`, `mip_ego` and random search in equal time.

    export TRADEWIND_DATA=DIR                                # holds mr/ and wordvec/
    python benchmarks/textcnn_search.py run --storage runs.db --seconds 300 --seeds 0,1,2
    python benchmarks/textcnn_search.py judge --storage runs.db --out judged.jsonl
    python benchmarks/textcnn_search.py report judged.jsonl

The space is that of the thesis: 30 parameters, most of them conditional. A trial trains five folds
of 90% of the texts, all at once on a GPU, and its cost is the training time. A search ends when its
trials have cost `--seconds`. `judge` trains what each search recommends with other folds of all
texts and other seeds. Interrupted runs continue. On a CPU, take few texts, epochs and folds.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold, train_test_split

import tradewind as tw
from tradewind.models import TextCNN, load_mr, read_vectors
from tradewind.models.text import tokenize

STRATEGIES = {
    "auto": tw.recipes.auto,
    "mip_ego": tw.recipes.mip_ego,
    "random": tw.recipes.random_search,
}


class Task:
    """MR, and how a configuration is scored on a part of it."""

    def __init__(self, options: argparse.Namespace) -> None:
        texts, labels = load_mr()
        rows = np.random.default_rng(0).permutation(len(texts))[: options.texts]
        self.texts, self.labels = [texts[row] for row in rows], labels[rows]
        words = {word for text in self.texts for word in tokenize(text)}
        self.vectors = read_vectors(options.vectors, words)
        self.epochs, self.folds = options.epochs, options.folds

    def scores(self, params: dict[str, Any], *, seed: int, part: float = 1.0) -> Any:
        """The accuracy on each fold of a part of the texts, and the seconds of training."""
        texts, labels = self.texts, self.labels
        if part < 1.0:
            texts, _, labels, _ = train_test_split(
                texts, labels, train_size=part, stratify=labels, random_state=0
            )
        split = StratifiedKFold(self.folds, shuffle=True, random_state=seed)
        folds = list(split.split(texts, labels))
        model = TextCNN(self.vectors, max_epochs=self.epochs, random_state=seed)
        models = model.set_params(**params).fit_folds(texts, labels, folds)
        scores = [
            fitted.score([texts[i] for i in test], labels[test])
            for fitted, (_, test) in zip(models, folds, strict=True)
        ]
        return scores, float(sum(fitted.fit_seconds_ for fitted in models))


def run(options: argparse.Namespace) -> None:
    task = Task(options)

    def objective(trial: tw.Run) -> dict[str, Any]:
        scores, seconds = task.scores(dict(trial.params), seed=trial.seed, part=0.9)
        return {"folds": scores, "cost": seconds}

    for seed in map(int, options.seeds.split(",")):
        for name in options.searches.split(","):
            study = tw.create_study(
                TextCNN.space(),
                strategy=STRATEGIES[name](),
                seed=seed,
                storage=options.storage,
                name=f"{name}-{seed}",
                load_if_exists=True,
            )
            left = options.seconds - _spent(study)
            if left > 0.0:
                study.optimize(objective, max_cost=left, show_progress=False)
            print(f"{study.name}: {_summary(study)}", flush=True)


def _spent(study: tw.Study) -> float:
    return sum(trial.cost for trial in study.trials if trial.cost is not None)


def _summary(study: tw.Study) -> str:
    done = [trial for trial in study.trials if trial.value is not None]
    late = [trial.value for trial in done[20:]] or [np.nan]
    return (
        f"{len(done)} trials in {_spent(study):.0f} s, the median after the 20th "
        f"{np.median(late):.4f}, best {study.best.value:.4f}"
    )


def judge(options: argparse.Namespace) -> None:
    """Train what each search recommends with folds and seeds that no search has seen."""
    task = Task(options)
    for found in tw.list_studies(options.storage):
        name, _, seed = found.name.rpartition("-")
        study = tw.load_study(options.storage, found.name)
        chosen = study.recommend()
        scores = [
            score
            for other in range(1000, 1000 + options.repeats)
            for score in task.scores(dict(chosen.params), seed=other)[0]
        ]
        row = {"search": name, "seed": int(seed), "value": chosen.value, "scores": scores}
        with options.out.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{found.name}: {np.mean(scores):.4f}; {_summary(study)}", flush=True)


def report(options: argparse.Namespace) -> None:
    rows = [json.loads(line) for line in options.file.read_text().splitlines()]
    searches: dict[str, dict[int, float]] = defaultdict(dict)
    for row in rows:
        searches[row["search"]][row["seed"]] = float(np.mean(row["scores"]))
    print("| search | seeds | accuracy of its choice | auto − it, paired |\n|---|---|---|---|")
    for name, by_seed in searches.items():
        both = sorted(set(by_seed) & set(searches["auto"]))
        gaps = np.array([searches["auto"][seed] - by_seed[seed] for seed in both])
        error = gaps.std(ddof=1) / len(gaps) ** 0.5 if len(gaps) > 1 else np.nan
        mean = np.mean(list(by_seed.values()))
        print(f"| {name} | {len(by_seed)} | {mean:.2%} | {gaps.mean():+.2%} ± {error:.2%} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    for command, help_ in ((run, "search"), (judge, "score the choices")):
        it = commands.add_parser(command.__name__, help=help_)
        it.add_argument("--storage", required=True)
        it.add_argument("--texts", type=int, help="only so many")
        it.add_argument("--epochs", type=int, default=30)
        it.add_argument("--folds", type=int, default=5)
        it.add_argument("--vectors", default="word2vec_googlenews_300d")
        it.set_defaults(run=command)
        if command is run:
            it.add_argument("--seconds", type=float, default=300.0)
            it.add_argument("--seeds", default="0,1,2")
            it.add_argument("--searches", default=",".join(STRATEGIES))
        else:
            it.add_argument("--repeats", type=int, default=4)
            it.add_argument("--out", type=Path, required=True)
    table = commands.add_parser("report", help="print the table")
    table.add_argument("file", type=Path)
    table.set_defaults(run=report)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
