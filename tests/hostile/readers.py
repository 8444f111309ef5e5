"""Everything that reads a file: valid files, the reader, and what to do with its result."""

from __future__ import annotations

import gc
import gzip
import json
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import tradewind as tw
from tests.models.files import saved
from tradewind.errors import FormatError, NothingFinished, OutcomeError
from tradewind.models import (
    UnigramSVM,
    load_insuranceqa,
    load_letor,
    load_mr,
    load_yelp,
    read_vectors,
)
from tradewind.strategies import RandomSearch

SPACE = tw.Space(
    {
        "C": tw.Float(1e-3, 1e3, log=True),
        "kernel": tw.Categorical(["linear", "poly", "rbf"]),
        "degree": tw.Int(2, 5, when={"kernel": "poly"}),
        "rate": tw.Float(0, 1, step=0.25),
        "width": tw.Ordinal([32, 64, 128], drives_cost=True),
        "fast": tw.Bool(when={"rate": tw.at_least(0.5)}),
        "size": tw.TrainSize(),
    },
    forbid=[{"kernel": "rbf", "fast": True}, {"C": tw.at_least(500.0)}],
)
CONFIGSPACE = {
    "hyperparameters": [
        {"name": "b", "type": "categorical", "choices": ["u", "v", "w"]},
        {"name": "i", "type": "uniform_int", "lower": 1, "upper": 10, "log": True},
        {"name": "f", "type": "uniform_float", "lower": 0.0, "upper": 1.0, "q": 0.25},
        {"name": "o", "type": "ordinal", "sequence": [1, 2, 4]},
        {"name": "c", "type": "constant", "value": "x"},
    ],
    "conditions": [
        {"child": "i", "parent": "b", "type": "EQ", "value": "u"},
        {"child": "f", "parent": "o", "type": "GT", "value": 1},
        {
            "child": "c",
            "type": "AND",
            "conditions": [
                {"child": "c", "parent": "b", "type": "IN", "values": ["u", "v"]},
                {"child": "c", "parent": "o", "type": "NEQ", "value": 4},
            ],
        },
    ],
    "forbiddens": [
        {"type": "AND", "clauses": [{"type": "EQUALS", "name": "b", "value": "w"}]},
    ],
}
LETOR = "2 qid:1 1:0.5 2:0.25 # doc\n0 qid:1 2:-1e-3\n1 qid:2 1:1 3:2.5\n"
QUESTIONS = "life\twhat is a?\t1 2\nauto\twhat is b?\t3\n"
ANSWERS = "1\tthis is\n2\tthat is\n3\tnothing\n"
POOL = np.array([[1, 2, 3], [3, 2, 1]])


@dataclass(frozen=True)
class Reader:
    """`write` fills a folder with valid files and returns those that can be damaged; `read` reads
    one of them, or its folder."""

    write: Callable[[Path], list[Path]]
    read: Callable[[Path], Any]
    use: Callable[[Any], object]


# ---- spaces ----


def _write_spaces(folder: Path) -> list[Path]:
    short = {"x": [1e-3, 1.0, "log"], "y": ["a", "b"], "z": {"type": "int", "low": 1, "high": 9}}
    return [
        _text(folder / "space.json", SPACE.to_json()),
        _text(folder / "short.json", json.dumps(short)),
    ]


def _write_configspace(folder: Path) -> list[Path]:
    return [_text(folder / "space.json", json.dumps(CONFIGSPACE))]


def use_space(space: tw.Space) -> None:
    rng = np.random.default_rng(0)
    for config in space.decode(space.sample(3, rng=rng)):
        space.encode([space.validate(config)])
    space.complete({}, rng=rng)
    assert tw.Space.from_json(space.to_json()) == space
    repr(space)


# ---- studies ----


def make_study(strategy: Any, goal: tw.Quality | tw.Tradeoff, trials: int = 6, **where: Any) -> Any:
    space = SPACE if isinstance(strategy, str) else tw.Space({k: SPACE[k] for k in ("C", "width")})
    study = tw.create_study(space, strategy=strategy, goal=goal, seed=1, **where)
    study.enqueue({"C": 1.0})
    for i in range(trials):
        trial = study.ask()
        if i == 2:
            study.fail(trial, "broken")
        elif i == 3:
            study.requeue(trial)
        elif i == 4:
            study.tell(trial, folds=[0.25, 0.5], cost=2.5, attributes={"f1": 0.5, "l": [1, "="]})
        else:
            study.tell(trial, 0.5 + i / 10, cost=1.0 + i, costs={"money": 2.0})
    study.add({**trial.params, "C": 2.0}, 0.75, cost=3.0)
    return study


def _strategies() -> list[tuple[Any, Any, int]]:
    s = tw.strategies
    bayes = s.Bayes(design=s.Design(2), maximizer=s.LocalSearch(candidates=20))
    return [
        ("random", tw.Quality(), 6),
        (s.Staged(inner=RandomSearch(), fractions=(0.5, 1.0)), tw.Tradeoff(0.5), 6),
        (bayes, tw.Tradeoff(0.5, 2.0), 8),
    ]


def _write_lines(folder: Path) -> list[Path]:
    paths = []
    for i, (strategy, goal, trials) in enumerate(_strategies()):
        paths.append(folder / f"study{i}.jsonl")
        make_study(strategy, goal, trials).export(paths[-1])
    return paths


def _write_sqlite(folder: Path) -> list[Path]:
    path = folder / "studies.db"
    for i, (strategy, goal, trials) in enumerate(_strategies()[:2]):
        make_study(strategy, goal, trials, storage=path, name=f"s{i}")
    gc.collect()  # closes the connections
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = DELETE")  # one file, without a write-ahead log
    return [path]


def _load_all(path: Path) -> list[tw.Study]:
    studies = [tw.load_study(path, summary.name) for summary in tw.list_studies(path)]
    for study in studies:
        study.goal  # noqa: B018  trials are read when they are first needed
    return studies


def use_study(study: tw.Study) -> None:
    repr(study), study.trials
    for answer in (lambda: study.best, study.leaderboard, study.explain, study.frontier):
        with suppress(NothingFinished, OutcomeError):  # a goal may need a cost that no trial has
            repr(answer())
    with tempfile.TemporaryDirectory() as folder:
        study.export(Path(folder) / "s.csv")
        study.export(Path(folder) / "s.jsonl")
        with suppress(FormatError):  # loading looks less closely at configurations
            assert tw.import_study(Path(folder) / "s.jsonl").trials == study.trials
    if isinstance(study.strategy, RandomSearch):
        trial = study.ask()
        study.tell(trial, 0.5, cost=1.0, costs={study.cost_name: 1.0})


def _use_all(studies: list[tw.Study]) -> None:
    for study in studies:
        use_study(study)


# ---- models, vectors and data sets ----


def _write_model(folder: Path) -> list[Path]:
    path = folder / "model.npz"
    UnigramSVM().fit(
        ["a good film", "bad", "good", "a dull one"] * 3, ["+", "-", "+", "-"] * 3
    ).save(path)
    packed = folder / "model.npz.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    return [path, packed]


def _write_vectors(folder: Path) -> list[Path]:
    words, table = ["a", "bc", "é"], np.arange(12, dtype="<f4").reshape(3, 4)
    text = "".join(f"{w} {' '.join(map(str, row))}\n" for w, row in zip(words, table, strict=True))
    binary = b"3 4\n" + b"".join(
        w.encode() + b" " + row.tobytes() + b"\n" for w, row in zip(words, table, strict=True)
    )
    contents = {
        "glove.txt": text.encode(),
        "word2vec.txt": b"3 4\n" + text.encode(),
        "word2vec.bin": binary,
        "word2vec.bin.gz": gzip.compress(binary),
        "vectors.npz": saved(words=np.array(words), vectors=table),
    }
    return [_bytes(folder / name, content) for name, content in contents.items()]


def _write_letor(folder: Path) -> list[Path]:
    packed = gzip.compress(LETOR.encode())
    return [_text(folder / "letor.txt", LETOR), _bytes(folder / "letor.gz", packed)]


def _write_yelp(folder: Path) -> list[Path]:
    lines = [json.dumps({"stars": 5.0, "text": "nice", "x": None}), '{"stars":1,"text":"\\u00e9"}']
    return [
        _text(folder / "yelp.tsv", "5\tx\tnice\n1\ty\tbad\n"),
        _text(folder / "yelp.json", "\n".join(lines)),
    ]


def _write_mr(folder: Path) -> list[Path]:
    return [
        _text(folder / "mr.pos.txt", "it is nice\nand good\n"),
        _text(folder / "mr.neg.txt", "bad\n"),
    ]


def _write_insuranceqa(folder: Path) -> list[Path]:
    pools = saved(train_100=POOL, valid_500=POOL, test_500=POOL)
    names = [f"questions.{split}.tsv" for split in ("train", "valid", "test")]
    return [
        _text(folder / "answers.tsv", ANSWERS),
        *(_text(folder / name, QUESTIONS) for name in names),
        _bytes(folder / "pools.npz", pools),
    ]


def _text(path: Path, content: str) -> Path:
    return _bytes(path, content.encode())


def _bytes(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def _predict(model: Any) -> None:
    # A forged document, with a digest that fits, may describe a model that makes no sense.
    with suppress(ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        model.predict(["good film", "dull"])


def _load_space(path: Path) -> tw.Space:
    return tw.Space.from_json(path.read_bytes().decode(errors="replace"))


def _in_folder(load: Callable[[Path], Any]) -> Callable[[Path], Any]:
    return lambda path: load(path.parent)


READERS = {
    "space": Reader(_write_spaces, _load_space, use_space),
    "configspace": Reader(_write_configspace, tw.Space.from_configspace, use_space),
    "study": Reader(_write_lines, tw.import_study, use_study),
    "sqlite": Reader(_write_sqlite, _load_all, _use_all),
    "model": Reader(_write_model, UnigramSVM.load, _predict),
    "vectors": Reader(_write_vectors, read_vectors, lambda vectors: vectors.spread),
    "letor": Reader(_write_letor, load_letor, lambda data: data[0].sum()),
    "yelp": Reader(_write_yelp, load_yelp, lambda data: data[1].sum()),
    "mr": Reader(_write_mr, _in_folder(load_mr), lambda data: data[1].sum()),
    "insuranceqa": Reader(_write_insuranceqa, _in_folder(load_insuranceqa), repr),
}
