"""TextCNN on MR: how fast ten folds train, and how well the published baselines do.

    python benchmarks/textcnn.py speed
    python benchmarks/textcnn.py word2vec --word2vec made.npz
    python benchmarks/textcnn.py baselines --word2vec made.npz

TRADEWIND_DATA names a folder with mr/ and wordvec/. `speed` trains ten folds for a fixed number of
epochs in several ways: with a plain PyTorch loop, fold after fold; one by one with `fit`; as one
stack; and as one stack whose step is a recorded CUDA graph (GPU only). `baselines` runs the two
baselines of Hader (table 2) with each kind of input. It stops early on a part of the training
texts, and also on the test fold as the thesis did. In baseline 2, words without vectors are trained
by word2vec on the training texts of each fold. On machines without gensim, make these vectors from
all texts beforehand with `word2vec`, and name the file with `--word2vec`.
"""

from __future__ import annotations

import argparse
import json
import platform
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from torch import nn

from tradewind.models import TextCNN, WordVectors, load_mr, read_vectors
from tradewind.models.devices import choose_device, clock, tensor_cores
from tradewind.models.text import Vocabulary, tokenize
from tradewind.models.textcnn import training
from tradewind.models.textcnn.optimizers import DECAY, EPSILON
from tradewind.models.vectors import embedding

Trial = tuple[float, list[float]]  # seconds, and an accuracy for each fold

FOLDS, SEED = 10, 0
KIM: dict[str, Any] = {
    "filter_sizes": (3, 4, 5),
    "filters": 100,
    "batch_size": 50,
    "optimizer": "adadelta",
}
BASELINES: dict[str, dict[str, Any]] = {
    "1": KIM | {"d1": 0.5, "l2_max": 3.0},
    "2": KIM | {"d0": 0.5, "d1": 0.5, "d2": 0.8, "hidden": 10, "l2_max": None},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["speed", "baselines", "word2vec"])
    parser.add_argument("--vectors", default="word2vec_googlenews_300d", help="a name or a file")
    parser.add_argument("--word2vec", help="an .npz that `word2vec` writes, for baseline 2")
    parser.add_argument("--spread", type=float, help="scale the vectors to this spread")
    parser.add_argument("--texts", type=int, help="only so many texts")
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--ways", nargs="+", default=["plain", "stacked", "graph"])
    parser.add_argument("--only", choices=[*BASELINES], help="one baseline, not both")
    parser.add_argument("--channels", nargs="+", default=["static", "nonstatic", "multichannel"])
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--json", type=Path, help="write everything there as well")
    options = parser.parse_args()
    texts, labels = load_mr()
    if options.texts:
        rows = np.random.default_rng(0).permutation(len(texts))[: options.texts]
        texts, labels = [texts[row] for row in rows], labels[rows]
    words = {word for text in texts for word in tokenize(text)}
    vectors = scaled(read_vectors(options.vectors, words), options.spread)
    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=SEED).split(texts, labels))
    device = choose_device(options.device)
    name = torch.cuda.get_device_name() if device == "cuda" else platform.processor() or "CPU"
    print(f"{len(texts)} texts, {len(words)} words of which {len(vectors)} have vectors; {name}, ")
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads\n")
    if options.what == "word2vec":
        return make_word2vec(options, texts, vectors)
    run = speed if options.what == "speed" else baselines
    results = run(options, texts, labels, vectors, folds, device)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


def scaled(vectors: WordVectors, spread: float | None) -> WordVectors:
    factor = 1.0 if spread is None else spread / vectors.spread
    return WordVectors(vectors.words, vectors.vectors * np.float32(factor))


# ---- speed ----


def speed(
    options: Any, texts: list[str], labels: Any, vectors: WordVectors, folds: Any, device: str
) -> Any:
    model = TextCNN(
        vectors,
        channels="multichannel",
        max_epochs=options.epochs,
        validation_fraction=0,
        random_state=options.seed,
        device=device,
        **BASELINES["1"],
    )
    print("| way | seconds | accuracy | peak memory, GB |\n|---|---|---|---|")
    rows = []
    for way in options.ways:
        if way == "graph" and device == "cpu":
            continue
        if device == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        seconds, scores = WAYS[way](model, texts, labels, folds)
        memory = torch.cuda.max_memory_allocated() / 1e9 if device == "cuda" else float("nan")
        mean, error = np.mean(scores), np.std(scores, ddof=1) / len(scores) ** 0.5
        print(f"| {way} | {seconds:.1f} | {mean:.2%} ± {error:.2%} | {memory:.1f} |", flush=True)
        rows.append({"way": way, "seconds": seconds, "scores": scores, "memory": memory})
    return rows


class Stacked(TextCNN):
    """A TextCNN that trains its folds in one stack on any device, without a recorded step."""

    def _settings(self) -> training.Settings:
        return replace(super()._settings(), graph=False)

    def _stacks(
        self, folds: list[training.NetworkData], device: str
    ) -> list[list[training.NetworkData]]:
        return [folds]


def at_once(model: TextCNN, texts: list[str], labels: Any, folds: Any) -> Trial:
    models = model.fit_folds(texts, labels, folds)
    return sum(one.fit_seconds_ for one in models), scores_of(models, texts, labels, folds)


def stacked(model: TextCNN, texts: list[str], labels: Any, folds: Any) -> Trial:
    return at_once(Stacked(**model.get_params()), texts, labels, folds)


def one_by_one(model: TextCNN, texts: list[str], labels: Any, folds: Any) -> Trial:
    model = Stacked(**model.get_params())
    models = [clone(model).fit([texts[i] for i in rows], labels[rows]) for rows, _ in folds]
    return sum(one.fit_seconds_ for one in models), scores_of(models, texts, labels, folds)


def scores_of(models: list[TextCNN], texts: list[str], labels: Any, folds: Any) -> list[float]:
    tests = [test for _, test in folds]
    return [
        model.score([texts[i] for i in test], labels[test])
        for model, test in zip(models, tests, strict=True)
    ]


class Plain(nn.Module):
    """The network in plain PyTorch: two embeddings and a convolution for each filter size."""

    def __init__(self, table: torch.Tensor, n_filters: int = 100) -> None:
        super().__init__()
        self.static = nn.Embedding.from_pretrained(table, freeze=True, padding_idx=0)
        self.tuned = nn.Embedding.from_pretrained(table.clone(), freeze=False, padding_idx=0)
        width = 2 * table.shape[1]
        self.filters = nn.ModuleList(
            nn.Conv1d(width, n_filters, k, padding=k - 1) for k in (3, 4, 5)
        )
        self.output = nn.Linear(3 * n_filters, 1)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        x = torch.cat([self.static(words), self.tuned(words)], dim=2).transpose(1, 2)
        found = torch.cat([f(x).relu().amax(dim=2) for f in self.filters], dim=1)
        return self.output(nn.functional.dropout(found, 0.5, self.training)).squeeze(1)


def plain(model: TextCNN, texts: list[str], labels: Any, folds: Any) -> Trial:
    """Train fold after fold, batch after batch."""
    torch.manual_seed(model.random_state)
    device = model.device
    tokens = [tokenize(text) for text in texts]
    words = Vocabulary.of(tokens)
    codes = torch.from_numpy(words.encode(tokens)).long().to(device)
    targets = torch.from_numpy(labels).float().to(device)
    table = torch.from_numpy(embedding(words.words, model.vectors, seed=0)).to(device)
    seconds, scores = 0.0, []
    for rows, test in folds:
        net = Plain(table).to(device)
        optimizer = torch.optim.Adadelta(net.parameters(), lr=1.0, rho=DECAY, eps=EPSILON)
        train_rows = torch.from_numpy(rows).to(device)
        begin = clock(device)
        with tensor_cores():
            for _ in range(model.max_epochs):
                order = train_rows[torch.randperm(len(rows), device=device)]
                for batch in order.split(model.batch_size):
                    optimizer.zero_grad()
                    nn.functional.binary_cross_entropy_with_logits(
                        net(codes[batch]), targets[batch]
                    ).backward()
                    optimizer.step()
                    with torch.no_grad():
                        w = net.output.weight
                        w.mul_((3.0 / w.norm(dim=1, keepdim=True)).clamp(max=1.0))
        seconds += clock(device) - begin
        net.eval()
        with torch.no_grad():
            scores.append(float(((net(codes[test]) > 0) == targets[test].bool()).float().mean()))
    return seconds, scores


WAYS = {"plain": plain, "one by one": one_by_one, "stacked": stacked, "graph": at_once}


# ---- the baselines of the thesis ----


def baselines(
    options: Any, texts: list[str], labels: Any, vectors: WordVectors, folds: Any, device: str
) -> Any:
    print("| baseline | channels | stops on | accuracy | epochs | seconds |")
    print("|---|---|---|---|---|---|")
    results = []
    for name, settings in BASELINES.items():
        if options.only not in (None, name):
            continue
        known = vectors
        if name == "2":
            if options.word2vec:
                known = scaled(read_vectors(options.word2vec), options.spread)
            settings = settings | {"unknown": "random" if options.word2vec else "word2vec"}
        for channels in options.channels:
            model = TextCNN(
                known, channels=channels, random_state=options.seed, device=device, **settings
            )
            for validation in ("train", "test"):
                models = model.fit_folds(texts, labels, folds, validation=validation)
                scores = scores_of(models, texts, labels, folds)
                seconds = sum(one.fit_seconds_ for one in models)
                epochs = [one.n_iter_ for one in models]
                mean, error = np.mean(scores), np.std(scores, ddof=1) / len(scores) ** 0.5
                print(
                    f"| {name} | {channels} | {validation} | {100 * mean:.2f} ± {100 * error:.2f} "
                    f"| {min(epochs)}-{max(epochs)} | {seconds:.1f} |",
                    flush=True,
                )
                results.append(
                    {"baseline": name, "channels": channels, "stops on": validation}
                    | {"scores": scores, "epochs": epochs, "seconds": seconds}
                )
    return results


def make_word2vec(options: Any, texts: list[str], vectors: WordVectors) -> None:
    """The given vectors, and the word2vec vectors of all other words of the texts."""
    tokens = [tokenize(text) for text in texts]
    words = Vocabulary.of(tokens).words
    table = embedding(words, vectors, unknown="word2vec", texts=tokens, seed=options.seed)
    np.savez(options.word2vec, words=np.array(words), vectors=table[1:].astype(np.float16))


if __name__ == "__main__":
    main()
