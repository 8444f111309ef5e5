"""How well SiameseBiLSTM finds answers in InsuranceQA (version 2), and how long it trains.

    python benchmarks/insuranceqa_siamese.py run --out run.json --seeds 0 1 2
    python benchmarks/insuranceqa_siamese.py run --out wide.json --set hidden=256 margin=0.1
    python benchmarks/insuranceqa_siamese.py tune --out tune.json --minutes 6
    python benchmarks/insuranceqa_siamese.py run --out quick.json --quick          # on a CPU

TRADEWIND_DATA names a folder with insuranceqa/ and wordvec/. `run` trains with the defaults of the
estimator, changed by `--set`, and tests the last epoch. `tune` tries a list of settings and looks
only at the validation questions, after every epoch, so that defaults can be chosen without the
test questions. `--quick` uses a small part of the data, only to check that everything runs.

Wrong answers for training are drawn from all answers. There are three ways to test: the pool of 500
answers that a search engine found (4 of 5 pools have a correct answer); that pool with the correct
answers added, which is what papers usually report; and its first 100 answers with the correct ones
added.
"""

from __future__ import annotations

import argparse
import ast
import json
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tradewind.models.datasets import InsuranceQA, Questions, load_insuranceqa
from tradewind.models.ranking import precision_at_1, reciprocal_rank
from tradewind.models.siamese import SiameseBiLSTM
from tradewind.models.vectors import WordVectors, read_vectors

Row = dict[str, Any]

PROTOCOLS = {"500": (500, False), "500+": (500, True), "100+": (100, True)}
MAIN = "500+"

TUNE: list[Row] = [
    {},
    {"shared": False},
    {"hardest": 5},
    {"hardest": 60},
    {"dropout": 0.4},
    {"negatives": 500},
    {"hidden": 320},
    {"margin": 0.1},
    {"batch_size": 256, "hardest": 40},
    {"learning_rate": 2e-3},
    {"learning_rate": 5e-4},
    {"negatives": 0},
    {"tune_vectors": False},
    {"hardest": 1},
    {"hidden": 96},
    {"margin": 0.3},
    {"batch_size": 64},
    {"dropout": 0.0},
    {"regularization": 1e-5},
    {"vectors": None},
]
QUICK: Row = {"hidden": 16, "epochs": 2, "batch_size": 32, "max_length": 40}


def pools_of(part: Questions, protocol: str) -> list[list[int]]:
    """The ids to choose from for each question. Correct ones, if added, come last."""
    size, added = PROTOCOLS[protocol]
    pools = part.pool[:, :size].tolist()
    if not added:
        return pools
    return [
        list(dict.fromkeys([*pool, *answers]))
        for pool, answers in zip(pools, part.answers, strict=True)
    ]


def fit(data: InsuranceQA, vectors: WordVectors, settings: Row, validate: bool) -> SiameseBiLSTM:
    model = SiameseBiLSTM(**{"vectors": vectors, **settings})
    validation = (data.valid.texts, pools_of(data.valid, MAIN), data.valid.answers, data.answers)
    return model.fit(
        data.train.texts,
        [[data.answers[id] for id in ids] for ids in data.train.answers],
        candidates=data.answers.values(),
        validation=validation if validate else None,
    )


def measure(model: SiameseBiLSTM, data: InsuranceQA) -> Iterator[Row]:
    """Precision at 1 and mean reciprocal rank of both sets of questions, with every protocol."""
    ids = np.array(list(data.answers))
    column = dict(zip(ids.tolist(), range(len(ids)), strict=True))
    encoded = model.encode_answers(data.answers.values())
    for name, part in (("valid", data.valid), ("test", data.test)):
        cosines = model.encode_questions(part.texts) @ encoded.T
        for protocol in PROTOCOLS:
            pools = pools_of(part, protocol)
            scores = [cosines[i, [column[id] for id in pool]] for i, pool in enumerate(pools)]
            right = [np.isin(pool, part.answers[i]) for i, pool in enumerate(pools)]
            flat = np.concatenate(scores), np.concatenate(right), [len(pool) for pool in pools]
            yield {
                "questions": name,
                "pool": protocol,
                "precision": precision_at_1(*flat),
                "mrr": reciprocal_rank(*flat),
            }


def run(args: argparse.Namespace, data: InsuranceQA, vectors: WordVectors) -> Iterator[Row]:
    for seed in args.seeds:
        settings = {**args.set, "random_state": seed}
        begin = time.perf_counter()
        model = fit(data, vectors, settings, validate=False)
        seconds = time.perf_counter() - begin
        results = list(measure(model, data))
        print(f"\nseed {seed}: trained in {model.fit_seconds_:.1f} s, of {seconds:.1f} s in all")
        print("loss  ", " ".join(f"{loss:.4f}" for loss in model.losses_))
        print("questions  pool  precision@1    MRR")
        for r in results:
            print(f"{r['questions']:9}  {r['pool']:4}  {r['precision']:11.4f}  {r['mrr']:.4f}")
        yield {**summary(model, settings), "seconds": seconds, "results": results}


def tune(args: argparse.Namespace, data: InsuranceQA, vectors: WordVectors) -> Iterator[Row]:
    """Try one setting after the other while there is time, and print the best epoch of each."""
    end = time.perf_counter() + 60 * args.minutes
    print("validation precision@1, pool of 500 with the correct answers added")
    print("best  epoch  last   s/epoch  settings")
    for changed in args.settings:
        if time.perf_counter() > end:
            print("no time left for", changed)
            continue
        settings = {**args.set, **changed, "random_state": args.seeds[0]}
        model = fit(data, vectors, settings, validate=True)
        scores = model.validation_scores_
        each = model.fit_seconds_ / len(scores)
        line = f"{max(scores):.4f}  {model.best_epoch_:3}  {scores[-1]:.4f}  {each:6.2f}  "
        print(line, json.dumps(changed), " ".join(f"{s:.3f}" for s in scores), flush=True)
        yield {**summary(model, settings), "scores": scores, "best_epoch": model.best_epoch_}


def summary(model: SiameseBiLSTM, settings: Row) -> Row:
    return {
        "settings": settings,
        "parameters": {k: v for k, v in model.get_params().items() if k != "vectors"},
        "losses": model.losses_,
        "fit_seconds": model.fit_seconds_,
    }


def part_of(data: InsuranceQA) -> InsuranceQA:
    """A few questions, and the answers that they and their shortened pools need."""

    def few(part: Questions, count: int) -> Questions:
        return Questions(
            part.texts[:count], part.domains[:count], part.answers[:count], part.pool[:count, :20]
        )

    train, valid, test = few(data.train, 200), few(data.valid, 20), few(data.test, 20)
    needed = {id for part in (train, valid, test) for ids in part.answers for id in ids}
    needed.update(*valid.pool.tolist(), *test.pool.tolist())
    answers = {id: text for id, text in data.answers.items() if id in needed}
    return InsuranceQA(answers, train, valid, test)


def setting(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    if name not in SiameseBiLSTM().get_params():
        raise argparse.ArgumentTypeError(f"{name} is no parameter of SiameseBiLSTM")
    try:
        return name, ast.literal_eval(value)
    except (SyntaxError, ValueError):
        return name, value


def environment() -> Row:
    import torch

    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {"torch": torch.__version__, "gpu": gpu, "threads": torch.get_num_threads()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mode", choices=["run", "tune"])
    parser.add_argument("--out", type=Path, required=True, help="a JSON file, with everything")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--set", type=setting, nargs="+", default=[], metavar="NAME=VALUE")
    parser.add_argument("--vectors", default="glove_6b_100d", help="a file, or a name in wordvec/")
    parser.add_argument("--minutes", type=float, default=6, help="for tune: start nothing after")
    parser.add_argument("--settings", type=json.loads, default=TUNE, help="for tune: a JSON list")
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    args.set = dict(args.set)
    data = load_insuranceqa()
    if args.quick:
        data = part_of(data)
        args.set = {**QUICK, **args.set}
        args.settings = args.settings[:3]
    vectors = read_vectors(args.vectors)
    rows: list[Row] = []
    for row in (run if args.mode == "run" else tune)(args, data, vectors):
        rows.append(row)  # and written at once: what is done stays, whatever comes
        args.out.write_text(json.dumps({"environment": environment(), "rows": rows}, indent=1))
    if args.mode == "run" and len(rows) > 1:
        print("\nmean over seeds (standard deviation)")
        for results in zip(*(row["results"] for row in rows), strict=True):
            values = [r["precision"] for r in results]
            print(
                f"{results[0]['questions']:9}  {results[0]['pool']:4}  "
                f"{statistics.mean(values):.4f} ({statistics.stdev(values):.4f})"
            )


if __name__ == "__main__":
    main()
