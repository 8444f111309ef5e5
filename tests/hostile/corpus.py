"""Hostile files, made when they are needed: bombs that unpack to gigabytes, sizes that nothing
backs, work that never ends, and things that are not files.

`CORPUS[reader][name]` writes one into a folder and returns its path.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import struct
import zipfile
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from tests.hostile.no_files import device, fifo, gigabytes_of_nothing, listening_socket
from tests.hostile.readers import LETOR, READERS, make_study
from tests.studies import plain_lines
from tradewind.goals import Quality

Make = Callable[[Path], Path]

MB = 1 << 20
DEEP = 100_000


def content(data: str | bytes, name: str = "file") -> Make:
    def make(folder: Path) -> Path:
        (folder / name).write_bytes(data.encode() if isinstance(data, str) else data)
        return folder / name

    return make


def as_json(data: Any) -> Make:
    return lambda folder: content(json.dumps(data))(folder)


# ---- things that are not files, for every reader that takes a path ----


NO_FILES = (fifo, device, listening_socket, Path.mkdir, gigabytes_of_nothing, Path.touch)


def instead(kind: str, place: Callable[[Path], Any]) -> Make:
    """The valid files of a reader, with something else in the place of the first."""

    def make(folder: Path) -> Path:
        first = READERS[kind].write(folder)[0]
        first.unlink()
        place(first)
        return first

    return make


# ---- JSON, wherever it is read ----

JSON = {
    "lists in lists": "[" * DEEP,
    "closed lists in lists": "[" * 500 + "]" * 500,
    "mappings in mappings": '{"a":' * DEEP,
    "a key twice among many": json.dumps({f"k{i}": 0 for i in range(200_000)})[:-1] + ',"k0":1}',
    "a number of a million digits": '{"x":' + "9" * 10**6 + "}",
    "a number of 4000 digits": '{"x":' + "9" * 4000 + "}",
    "not a number": '{"x":NaN}',
    "beyond all floats": '{"x":1e999}',
    "a text of 40 MB": '{"x":"' + "a" * (40 * MB) + '"}',
    "a million empty lists": '{"x":[' + "[]," * 10**6 + "0]}",
    "five million empty lists": '{"x":[' + "[]," * (5 * 10**6) + "0]}",
    "half a character": '{"\\ud800":"\\udfff"}',
    "other encodings": b"\xff\xfe{\x00}\x00",
    "only a list": "[1, 2]",
    "nothing": "null",
}


def _bool(**when: Any) -> dict[str, Any]:
    return {"type": "bool", "when": {name: {"in": values} for name, values in when.items()}}


def _space(parameters: dict[str, Any], forbid: Iterable[Any] = ()) -> dict[str, Any]:
    return {"format": 1, "parameters": parameters, "forbid": list(forbid)}


def _one(**parameter: Any) -> dict[str, Any]:
    return _space({"x": parameter})


_FLAGS = {f"p{i}": {"type": "bool"} for i in range(9_999)}
SPACES: dict[str, Any] = {
    "a reversed chain of 8,000 conditions": _space(
        {f"p{i}": _bool(**{f"p{i + 1}": [True]}) for i in range(8_000)} | {"p8000": _bool()}
    ),
    "a cycle of 9,000": _space(
        {f"p{i}": _bool(**{f"p{(i + 1) % 9000}": [1]}) for i in range(9000)}
    ),
    "everything forbidden": _space(
        _FLAGS, [{f"p{i}": {"in": [True, False]}} for i in range(9_999)]
    ),
    "a million conditions": _space(
        {f"p{i}": {"type": "bool"} for i in range(200)},
        [{f"p{j}": {"in": [True]} for j in range(200)} for _ in range(5_000)],
    ),
    "half a million choices": _one(type="categorical", choices=list(range(500_000))),
    "a million parameters": {f"p{i}": [1, 2] for i in range(1_000_000)},
    "a name of a megabyte": _space({"x" * MB: {"type": "bool"}}),
    "a parent that resembles all": _space(
        {f"{'ab' * 40}{i}": {"type": "bool"} for i in range(9_000)}
        | {"c": _bool(**{"ab" * 45: [1]})}
    ),
    "conditions on a range": _space(
        {"r": {"type": "float", "low": 0, "high": 1}}
        | {
            f"p{i}": {"type": "bool", "when": {"r": {"at_least": i * 1e-4}}}
            for i in range(1, 9_900)
        }
    ),
    "an endless range": _one(type="float", low=-1.7e308, high=1.7e308),
    "all floats": _one(type="float", low=5e-324, high=1.7e308, log=True, drives_cost=True),
    "a narrow range far away": _one(type="float", low=1e15, high=1e15 + 10),
    "the smallest range": _one(type="float", low=0, high=5e-324),
    "too many steps": _one(type="float", low=0, high=1, step=5e-324),
    "too many whole numbers": _one(type="int", low=0, high=10**300),
    "whole numbers far away": _one(type="int", low=2**70, high=2**70 + 3),
    "whole numbers beyond floats": _one(type="int", low=10**400, high=10**400 + 1),
    "steps beyond floats": _one(type="int", low=0, high=4, step=10**400),
    "costs that nothing can have": _one(type="ordinal", choices=[5e-324, 1e308], drives_cost=True),
    "the smallest training sets": _one(type="train_size", choices=[5e-324, 1.0]),
    "a choice that is a list": _one(type="categorical", choices=[[]]),
    "a format of its own": {"format": 1e308, "parameters": {}},
}


# ---- ConfigSpace ----


def _configspace(conditions: Iterable[Any], forbiddens: Iterable[Any] = ()) -> dict[str, Any]:
    numbers = {"type": "uniform_int", "lower": 1, "upper": 1000}
    names = [{"name": "n", **numbers}] + [
        {"name": f"p{i}", "type": "categorical", "choices": [0, 1]} for i in range(2_000)
    ]
    return {"hyperparameters": names, "conditions": [*conditions], "forbiddens": [*forbiddens]}


def _nested(kind: str, key: str, depth: int) -> dict[str, Any]:
    inner: dict[str, Any] = {"type": "EQ", "child": "p0", "parent": "n", "value": 1, "name": "n"}
    for _ in range(depth):
        inner = {"type": kind, "child": "p0", key: [inner]}
    return inner


CONFIGSPACES: dict[str, Any] = {
    "20,000 conditions that list 1,000 values": _configspace(
        {"child": f"p{i % 2000}", "parent": "n", "type": "NEQ", "value": 1 + i // 2000}
        for i in range(20_000)
    ),
    "a child with 2,000 parents, again and again": _configspace(
        {"child": "p0", "parent": f"p{1 + i % 1999}", "type": "EQ", "value": 1}
        for i in range(30_000)
    ),
    "conditions in conditions": _configspace([_nested("AND", "conditions", 300)]),
    "clauses in clauses": _configspace([], [_nested("AND", "clauses", 300)]),
    "no weights": {
        "hyperparameters": [{"name": "a", "type": "categorical", "choices": [1], "weights": []}]
    },
}


# ---- studies as JSON lines ----


def lines(change: Callable[[list[dict[str, Any]]], object]) -> Make:
    """A study of version 0.1, whose lines have no digests, after a change."""

    def make(folder: Path) -> Path:
        path = folder / "study.jsonl"
        make_study("random", Quality()).export(path)
        events = plain_lines(path)
        change(events)
        path.write_text("".join(json.dumps(event) + "\n" for event in events))
        return path

    return make


def _set(event: str, **fields: Any) -> Make:
    """Every event of a kind with other fields; `outcome__cost` is a field of the outcome."""

    def change(events: list[dict[str, Any]]) -> None:
        for each in events:
            if each["event"] == event:
                for name, value in fields.items():
                    *outer, last = name.split("__")
                    (each[outer[0]] if outer else each)[last] = value

    return lines(change)


def _nest(depth: int) -> Any:
    inner: Any = 0
    for _ in range(depth):
        inner = [inner]
    return inner


def _bayes(**parts: Any) -> dict[str, Any]:
    return {"type": "Bayes", **parts}


STRATEGIES: dict[str, Any] = {
    "a design of 1e9 points": _bayes(design={"type": "Design", "size": 10**9}),
    "1e12 generations": _bayes(maximizer={"type": "MIES", "generations": 10**12}),
    "1e9 trees": _bayes(surrogate={"type": "RandomForest", "trees": 10**9}),
    "1e10 candidates": _bayes(maximizer={"type": "LocalSearch", "candidates": 10**10}),
    "1e9 nodes": _bayes(rule={"type": "Improvement", "nodes": 10**9}),
    "1e9 points for the reference": _bayes(reference_points=10**9),
    "a horizon of 1e300": _bayes(
        acquisition={"type": "MGFI", "t": {"type": "Linear", "horizon": 10**300}}
    ),
    "a t beyond floats": _bayes(
        acquisition={"type": "MGFI", "t": {"type": "LogNormal", "mean": 1e300}}
    ),
    "200,000 stages": {"type": "Staged", "fractions": [i / 2e5 for i in range(1, 200_000)]},
    "stages in stages": {"type": "Staged", "inner": {"type": "Staged"}},
    "a strategy of lists": {"type": "Bayes", "design": [[[]]]},
}
STUDIES: dict[str, Make] = {
    "a line of 40 MB": content('{"format":1,"event":"created","space":"' + "x" * (40 * MB) + '"}'),
    "100,000 claims": lines(
        lambda events: events.extend(
            {"format": 1, "event": "claimed", "number": n} for n in range(7, 100_000)
        )
    ),
    "a claim of number 1e18": _set("claimed", number=10**18),
    "a negative cost": _set("finished", outcome__cost=-1.0),
    "a cost near the end of floats": _set("finished", outcome__cost=1.7e308),
    "a value near the end of floats": _set("finished", outcome__value=-1.7e308),
    "a share of nearly nothing": _set("finished", outcome__raced=True, outcome__share=5e-324),
    "more trainings than a float can hold": _set("finished", outcome__trainings=10**400),
    "20,000 folds": _set("finished", outcome__folds=[0.5] * 20_000),
    "2,000 costs": _set("finished", outcome__costs={f"c{i}": 1.0 for i in range(2_000)}),
    "a megabyte of attributes": _set("finished", outcome__attributes={"a": "x" * MB}),
    "attributes in attributes": _set("finished", outcome__attributes={"a": _nest(110)}),
    "an expected cost near the end": _set("proposed", expected_cost=1.7e308),
    "a negative expected cost": _set("proposed", expected_cost=-1.0),
    "a hand-over of anything": _set("proposed", handover={"quality": 3, "theta": [None]}),
    "a time beyond the calendar": _set("started", at=1e300),
    "a seed of 4,000 digits": _set("created", seed=10**4000),
    "a size of nothing": _set("proposed", params={"size": 10**400}),
    "no parameters": _set("proposed", params={}),
    "parameters of another study": _set("proposed", params={"x": 1}),
    "a trade-off beyond floats": _set("created", goal={"type": "Tradeoff", "alpha": 1e308}),
    **{
        f"a strategy with {name}": _set("created", strategy=data)
        for name, data in STRATEGIES.items()
    },
    **{
        f"a space with {name}": _set("created", space=SPACES[name])
        for name in ("a cycle of 9,000", "everything forbidden", "an endless range")
    },
}


# ---- models, vectors and data sets ----


def _member(shape: Any, dtype: Any, data: bytes = b"") -> bytes:
    """A .npy file that claims this shape."""
    file = io.BytesIO()
    npy.write_array_header_2_0(
        file, {"descr": npy.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": shape}
    )
    return file.getvalue() + data


def npz(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


@cache
def zeros_in_zip(megabytes: int) -> bytes:
    """An .npz file with an array of zeros, in a thousandth of their size."""
    file = io.BytesIO()
    archive = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED)
    with archive, archive.open("document.npy", "w") as member:
        member.write(_member((megabytes * MB,), np.uint8))
        for _ in range(megabytes):
            member.write(bytes(MB))
    return file.getvalue()


@cache
def packed(pattern: bytes, megabytes: int) -> bytes:
    """A gzipped file that repeats a pattern. Gzipped files can be put one after another."""
    block = pattern * max(1, 10 * MB // len(pattern))
    return gzip.compress(block, 9) * (megabytes // 10)


def _document(data: bytes, kind: str = "UnigramSVM", **members: bytes) -> bytes:
    """A saved model with this document and a digest that fits."""
    digest = hashlib.blake2b(data, digest_size=16).digest()
    return npz(
        {
            "document.npy": _member((len(data),), np.uint8, data),
            "digest.npy": _member((16,), np.uint8, digest),
            **members,
        }
    )


def _state(**state: Any) -> bytes:
    document = {"format": 1, "kind": "UnigramSVM", "state": state}
    return _document(json.dumps(document).encode())


def _lzma_with_a_giant_dictionary() -> bytes:
    data = npz({"document.npy": _member((4,), np.uint8, b"abcd")}, zipfile.ZIP_LZMA)
    properties = data.index(struct.pack("<BBH", 9, 4, 5)) + 4  # version, size, then lc/lp/pb
    return data[: properties + 1] + struct.pack("<I", 0xFFFFFFFF) + data[properties + 5 :]


BOMBS: dict[str, Callable[[], bytes]] = {
    "zeros in a zip": lambda: zeros_in_zip(700),
    "zeros in a zip in gzip": lambda: gzip.compress(zeros_in_zip(700)),
    "zeros in gzip": lambda: packed(bytes(MB), 900),
    "gzip in gzip": lambda: gzip.compress(packed(bytes(MB), 900)),
    "a shape that nothing backs": lambda: npz({"words.npy": _member((10**12,), "<f8", b"1" * 8)}),
    "a shape without bytes": lambda: npz({"words.npy": _member((0, 10**18), "<f8")}),
    "texts without letters": lambda: npz({"words.npy": _member((10**12,), "<U0")}),
    "negative sizes": lambda: npz({"words.npy": _member((-1, -1), "<f8", b"1" * 8)}),
    "a header of a megabyte": lambda: npz({"words.npy": _member((1,) * 300_000, "<f8", b"1" * 8)}),
    "an array of objects": lambda: npz({"words.npy": _member((1,), object, b"cos\nsystem\n.")}),
    "20,000 members": lambda: npz({f"a{i}.npy": _member((1,), "u1", b"1") for i in range(20_000)}),
    "20,000 members in gzip": lambda: gzip.compress(
        npz({f"a{i}.npy": _member((1,), "u1", b"1") for i in range(20_000)})
    ),
    "a giant dictionary": _lzma_with_a_giant_dictionary,
    "half a zip": lambda: zeros_in_zip(1)[:2000],
    "half a gzip": lambda: packed(bytes(MB), 10)[:500],
    "text instead": lambda: b"hello\n" * 1000,
}
MODELS: dict[str, Callable[[], bytes]] = {
    "a deep document": lambda: _document(b"[" * DEEP),
    "a document of 15 million lists": lambda: _document(b"[" + b"[]," * (5 * 10**6) + b"0]"),
    "a value within values": lambda: _document(
        b'{"format":1,"kind":"UnigramSVM","state":{"c":' + b'{"list":[' * 900 + b"0" + b"]}" * 900
    ),
    "a shape beyond all": lambda: _state(coef_={"objects": [[0, 10**30], []]}),
    "vectors of text": lambda: _state(coef_={"vectors": ["ab", "cd"]}),
    "an unknown tag": lambda: _state(coef_={"eval": "1"}),
    "a name of its own": lambda: _state(__class__={"list": []}),
}
VECTORS: dict[str, Callable[[], bytes]] = {
    "10**15 words promised": lambda: b"999999999999999 300\na 1 2\n",
    "10**15 words promised, binary": lambda: b"999999999999999 300\na " + bytes(1300),
    "32,768 dimensions": lambda: b"9 32768\na " + b"\x01" * 100,
    "a word without end": lambda: b"9 2\n" + b"a" * (3 * MB),
    "a line without end": lambda: b"a" + b" 1" * (3 * MB),
    "lines without end, packed": lambda: packed(b" 1", 900),
    "the same word, packed": lambda: packed(b"a 1 2 3 4\n", 900),
    "numbers of a megabyte": lambda: b"a " + b"1" * MB + b"\n",
    "too large for a float": lambda: b"a 1e39\nb 1\n",
}
LETORS: dict[str, Callable[[], bytes]] = {
    "many columns in few bytes": lambda: b"1 qid:1 65536:1\n" * 3_000,
    "rows of nothing": lambda: b"0 qid:1\n" * 300_000,
    "digits without end": lambda: b"1 qid:1 1:" + b"1" * (3 * MB) + b"x\n",
    "half a number, often": lambda: b"1 qid:1" + b" 1:1" * 300_000 + b" x\n",
    "a feature beyond all": lambda: b"1 qid:1 999999999999999999:1\n",
    "a feature of 4 billion": lambda: b"1 qid:1 4294967295:1\n",
    "a query beyond all": lambda: b"1 qid:999999999999999999999 1:1\n",
    "lines, packed": lambda: packed(LETOR.encode(), 300),
    "a line without end, packed": lambda: packed(b" 1:1", 900),
    "a comment without end, packed": lambda: packed(b"#", 900),
}
YELPS: dict[str, Callable[[], bytes]] = {
    "deep reviews": lambda: b'{"stars":' + b"[" * DEEP,
    "stars beyond all": lambda: b'{"stars":1e999,"text":"a"}\n',
    "stars of a million digits": lambda: b'{"stars":' + b"1" * 10**6 + b',"text":"a"}\n',
    "a line without end, packed": lambda: packed(b"a", 900),
    "a review without end, packed": lambda: packed(b'{"stars":1,"text":"' + b"a" * 99, 900),
    "tabs without end, packed": lambda: packed(b"\t", 900),
    "half a character": lambda: b'{"stars":1,"text":"\xff"}\n',
}


def _made(makers: dict[str, Callable[[], bytes]]) -> dict[str, Make]:
    return {
        name: lambda folder, make=make: content(make())(folder) for name, make in makers.items()
    }


def _pools(make: Callable[[], bytes]) -> Make:
    def write(folder: Path) -> Path:
        READERS["insuranceqa"].write(folder)
        return content(make(), "pools.npz")(folder)

    return write


CORPUS: dict[str, dict[str, Make]] = {
    "space": {name: content(text) for name, text in JSON.items()}
    | {name: as_json(data) for name, data in SPACES.items()},
    "configspace": {name: content(text) for name, text in JSON.items()}
    | {name: as_json(data) for name, data in CONFIGSPACES.items()},
    "study": {name: content(text) for name, text in JSON.items()} | STUDIES,
    "sqlite": {name: content(text) for name, text in list(JSON.items())[-3:]},
    "model": _made(BOMBS | MODELS),
    "vectors": _made(BOMBS | VECTORS),
    "letor": _made(BOMBS | LETORS),
    "yelp": _made(BOMBS | YELPS),
    "mr": {},
    "insuranceqa": {name: _pools(make) for name, make in BOMBS.items()},
}
for _kind in CORPUS.keys() - {"space"}:  # which is read from a text, not from a file
    for _place in NO_FILES:
        CORPUS[_kind][_place.__name__.replace("_", " ")] = instead(_kind, _place)
