"""A table of trainings: configurations of the thesis's network, each trained on the first five of
ten folds of MR.

    export TRADEWIND_DATA=DIR        # holds mr/, and wordvec/ with the vectors of all words
    python -m papers.hader2019.trainings --out more.jsonl --workers 9 --seconds 500
    python -m papers.hader2019.trainings --out more.jsonl --search auto --seed 1

Every process trains one configuration at a time, with its five folds in one stack. As in the
thesis, training stops when the loss on the test fold has not improved for 15 epochs; it ends after
40 epochs instead of 150. A run goes on where the stored table and the file end; `--add` puts the
rows of the file into the table. The vectors come from `benchmarks/textcnn.py word2vec`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import multiprocessing
import time
from pathlib import Path
from typing import Any

import numpy as np

import tradewind as tw

FOLDS, STACKED, SEED = 10, 5, 0
MOST_EPOCHS = 40
VECTORS = "mr_words"
TABLE = Path(__file__).with_name("trainings.jsonl.gz")
DESIGN = 4096  # Sobol points; a run takes the next ones


class Trainer:
    """MR, its folds, and the word vectors. `train` makes one row of the table."""

    def __init__(self) -> None:
        import torch
        from sklearn.model_selection import StratifiedKFold

        torch.set_num_threads(1)
        self.texts, self.labels = tw.models.load_mr()
        split = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)
        self.folds = list(split.split(self.texts, self.labels))[:STACKED]
        self.vectors = tw.models.read_vectors(VECTORS)

    def train(self, params: dict[str, Any]) -> dict[str, Any]:
        """The results of one configuration, fold by fold: the test accuracy of the epoch with the
        lowest loss, the highest one of any epoch, that epoch of the lowest loss, and how many there
        were."""
        model = tw.models.TextCNN(
            self.vectors, l2_max=None, max_epochs=MOST_EPOCHS, random_state=SEED
        )
        models = model.set_params(**params).fit_folds(
            self.texts, self.labels, self.folds, validation="test"
        )
        rows = []
        for fitted in models:
            accuracies = [epoch["valid_accuracy"] for epoch in fitted.history_]
            best = fitted.best_epoch_
            rows.append((accuracies[best - 1], max(accuracies), best, len(accuracies)))
        accuracy, highest, best_epoch, epochs = zip(*rows, strict=True)
        return {
            "accuracy": [round(value, 6) for value in accuracy],
            "highest": [round(value, 6) for value in highest],
            "best_epoch": best_epoch,
            "epochs": epochs,
            "seconds": round(sum(fitted.fit_seconds_ for fitted in models), 3),
        }


_trainer: Trainer | None = None


def _start(ready: Any) -> None:
    global _trainer
    _trainer = Trainer()
    ready.release()


def _train(about: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """A row of the table."""
    assert _trainer is not None
    try:
        return {**about, "params": params, "cap": MOST_EPOCHS, **_trainer.train(params)}
    except Exception as error:  # one configuration must not end the run
        return {
            **about,
            "params": params,
            "cap": MOST_EPOCHS,
            "error": f"{type(error).__name__}: {error}",
        }


class Proposals:
    """What to train next: the points of a Sobol design, or what a search proposes that knows the
    mean accuracies of all rows so far."""

    def __init__(self, source: str, seed: int, s: int | None, done: list[dict[str, Any]]) -> None:
        self.source, self.seed = source, seed
        self.space = tw.models.TextCNN.space(s)
        mine = [row for row in done if (row["source"], row["seed"]) == (source, seed)]
        if source == "sobol":
            rows = tw.strategies.Design(DESIGN).points(self.space, seed)
            seen = {row["number"] for row in mine}
            self.jobs = iter([(i, row) for i, row in enumerate(rows) if i not in seen])
            return
        strategy = getattr(tw.recipes, source)()
        self.study = tw.create_study(self.space, strategy=strategy, seed=seed)
        for row in done:
            if "accuracy" in row:
                self.study.add(row["params"], value=float(np.mean(row["accuracy"])))
        self.first = 1 + max((row["number"] for row in mine), default=-1)
        self.running: dict[int, Any] = {}

    def next(self) -> tuple[dict[str, Any], dict[str, Any]]:
        about = {"source": self.source, "seed": self.seed}
        if self.source == "sobol":
            number, row = next(self.jobs)
            return {**about, "number": number}, dict(self.space.decode(row[None])[0])
        trial = self.study.ask()
        number = self.first + len(self.running)
        self.running[number] = trial
        return {**about, "number": number}, dict(trial.params)

    def tell(self, row: dict[str, Any]) -> None:
        if self.source == "sobol":
            return
        trial = self.running[row["number"]]
        if "accuracy" in row:
            self.study.tell(trial, float(np.mean(row["accuracy"])))
        else:
            self.study.fail(trial, row["error"])


def read_table() -> list[dict[str, Any]]:
    """All rows: Sobol points first, then what searches proposed, in order."""
    with gzip.open(TABLE, "rt") as file:
        return [json.loads(line) for line in file]


def add_to_table(rows: list[dict[str, Any]]) -> None:
    """Store these rows besides those of the table. The same rows make the same file."""
    both = {_key(row): row for row in [*read_table(), *rows]}
    lines = [json.dumps(both[key]) + "\n" for key in sorted(both)]
    with TABLE.open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as file:
        file.write("".join(lines).encode())


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["source"] != "sobol", row["source"], row["seed"], row["number"]


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a file; a last line that was cut off is left out."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--search", default="sobol", help="sobol, or the name of a recipe")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--s", type=int, default=3, help="filter sizes; 0 makes them a parameter")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=500.0, help="start nothing after this")
    parser.add_argument("--add", action="store_true", help="only add the rows of --out")
    options = parser.parse_args()
    if options.add:
        return add_to_table(read_rows(options.out))
    done = [*read_table(), *read_rows(options.out)]
    proposals = Proposals(options.search, options.seed, options.s or None, done)
    context = multiprocessing.get_context("spawn")
    ready, began, n = context.Semaphore(0), time.monotonic(), 0
    with context.Pool(options.workers, _start, (ready,)) as pool, options.out.open("a") as file:
        for _ in range(options.workers):
            ready.acquire()
        waiting = [pool.apply_async(_train, proposals.next()) for _ in range(options.workers)]
        while waiting:
            for result in [it for it in waiting if it.ready()]:
                waiting.remove(result)
                row = result.get()
                file.write(json.dumps(row) + "\n")
                file.flush()
                proposals.tell(row)
                n += 1
                if time.monotonic() - began < options.seconds:
                    waiting.append(pool.apply_async(_train, proposals.next()))
            time.sleep(0.02)
    seconds = time.monotonic() - began
    print(f"{options.workers} workers: {n} rows in {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
