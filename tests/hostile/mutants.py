"""Damaging valid files at random: their bytes, and what the bytes mean.

Most damage to bytes is noticed by a checksum. So files are also taken apart, damaged inside, and
put together again with checksums that fit.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

from tests.studies import plain_lines

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 7, 2**31, 2**53 + 1, 2**63, -(2**64), 10**18, 10**400),
    *(0.0, -0.0, 0.5, 1.0, 1.5, -1.5, 1e-9, 5e-324, 1e150, 1e300, -1e300, 1e308, -1.7e308),
    *("", "x", "auto", "type", "created", "=1+1", "\ud800", "\0", "a" * 5000, "1.0", "NaN"),
    *([], [[]], {}, {"": {}}, {"type": "Bayes"}, {"type": "Staged"}, {"in": []}, {"at_least": 0.5}),
    *([0.5] * 1000, list(range(-3, 3)), [None, 1.5, "x"], {"given": "own.Part"}),
)
PIECES = (
    *(b"", b"\0", b"\xff", b"\n", b"\r\n", b"\t", b" ", b'"', b"{", b"[", b"}", b"]", b",", b":"),
    *(b"-", b"1e999", b"NaN", b"9" * 400, b"\xf0\x9f", b"\xef\xbb\xbf", b"\\u0000", b"\\ud800"),
    *(b"PK\x03\x04", b"\x1f\x8b\x08", b"\x93NUMPY\x01\x00", b"qid:", b"#", b"a" * 10_000),
)


def damage_bytes(data: bytes, rng: Random) -> bytes:
    """A few bytes flipped, removed, doubled, moved or replaced, or the end cut off."""
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        at = rng.randrange(len(data) + 1)
        end = min(len(data), at + rng.choice((1, 1, 2, 4, 16, 256)))
        match rng.randrange(6):
            case 0 if at < len(data):
                data = data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
            case 1:
                data = data[:at] + data[end:]
            case 2:
                data = data[:at] + data[at:end] * rng.choice((2, 3, 100)) + data[end:]
            case 3:
                data = data[:at] + rng.choice(PIECES) + data[end if rng.random() < 0.5 else at :]
            case 4:
                data = data[:at] + rng.randbytes(end - at) + data[end:]
            case _ if rng.random() < 0.2:
                data = data[:at]
    return data


def damage_data(data: Any, rng: Random) -> Any:
    """JSON data with one place of it changed."""
    places: list[tuple[Any, Any]] = []
    todo = [data]
    for each in todo:  # it grows meanwhile
        keys = list(each) if isinstance(each, dict) else range(len(each))
        for key in keys:
            places.append((each, key))
            if isinstance(each[key], (dict, list)):
                todo.append(each[key])
    if not places:
        return rng.choice(VALUES)
    holder, key = rng.choice(places)
    value = holder[key]
    match rng.randrange(7):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[rng.choice(("", "type", "x", "number", f"{key}_", str(rng.choice(VALUES))))] = (
                value
            )
        case 2:
            other, place = rng.choice(places)
            holder[key] = json.loads(json.dumps(other[place])) if place in _keys(other) else None
        case 3 if isinstance(value, (int, float)) and abs(value) < 1e200:
            holder[key] = rng.choice((-value, value + 1, value * 10, value / 3, 10 * value**2))
        case 4:
            holder[key] = rng.choice(([value], [value] * 50, {"x": value}))
        case _:
            holder[key] = json.loads(json.dumps(rng.choice(VALUES)))
    return data


def _keys(holder: Any) -> Any:
    return holder.keys() if isinstance(holder, dict) else range(len(holder))


def in_json(path: Path, rng: Random) -> None:
    data = json.loads(path.read_bytes())
    for _ in range(rng.choice((1, 1, 2, 3))):
        data = damage_data(data, rng) if isinstance(data, (dict, list)) else data
    path.write_text(json.dumps(data))


def in_lines(path: Path, rng: Random) -> None:
    """Change some events of a study, and leave their digests away as version 0.1 did."""
    events = plain_lines(path)
    _damage_events(events, rng)
    path.write_text("".join(json.dumps(event) + "\n" for event in events))


def _damage_events(events: list[Any], rng: Random) -> None:
    for _ in range(rng.choice((1, 1, 2, 4))):
        i = rng.randrange(len(events))
        match rng.randrange(8):
            case 0:
                events.insert(rng.randrange(len(events) + 1), json.loads(json.dumps(events[i])))
            case 1 if len(events) > 1:
                del events[i]
            case 2:
                j = rng.randrange(len(events))
                events[i], events[j] = events[j], events[i]
            case _ if isinstance(events[i], dict):
                events[i] = damage_data(events[i], rng)


def in_rows(path: Path, rng: Random) -> None:
    """Change some rows of a SQLite file."""
    with closing(sqlite3.connect(path)) as db, db:
        ((study,), *_) = db.execute("SELECT id FROM studies ORDER BY place")
        rows = db.execute("SELECT event FROM events WHERE study = ? ORDER BY position", (study,))
        events = [json.loads(event) for (event,) in rows]
        for event in events:
            event.pop("digest", None)
        _damage_events(events, rng)
        db.execute("DELETE FROM events WHERE study = ?", (study,))
        lines = [(study, i, json.dumps(event)) for i, event in enumerate(events)]
        db.executemany("INSERT INTO events VALUES (?, ?, ?)", lines)
        if rng.random() < 0.2:
            values = (rng.choice(("x", b"x", None, 2**62, -1, 1e300)), rng.randrange(3))
            db.execute("UPDATE OR IGNORE events SET event = ? WHERE position = ?", values)


def in_gzip(path: Path, rng: Random) -> None:
    path.write_bytes(gzip.compress(damage_bytes(gzip.decompress(path.read_bytes()), rng)))


def in_zip(path: Path, rng: Random) -> None:
    """Change a member of an .npz file. Its checksum fits, and so does the digest of a document."""
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    name = rng.choice([*members])
    document = members.get("document.npy")
    if document is not None and rng.random() < 0.5:
        at = document.index(b"\n") + 1
        data = json.dumps(damage_data(json.loads(document[at:]), rng)).encode()
        members["document.npy"] = _array_of_bytes(data)
        digest = hashlib.blake2b(data, digest_size=16).digest()
        members["digest.npy"] = _array_of_bytes(digest)
    else:
        members[name] = damage_bytes(members[name], rng)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as out:
        for name, data in members.items():
            out.writestr(name, data)
    path.write_bytes(file.getvalue())


def _array_of_bytes(data: bytes) -> bytes:
    import numpy as np

    file = io.BytesIO()
    np.save(file, np.frombuffer(data, dtype=np.uint8))
    return file.getvalue()


def whole_file(path: Path, rng: Random) -> None:
    path.write_bytes(damage_bytes(path.read_bytes(), rng))


INSIDE: dict[str, Callable[[Path, Random], None]] = {
    ".json": in_json,
    ".jsonl": in_lines,
    ".db": in_rows,
    ".gz": in_gzip,
    ".npz": in_zip,
}


def damage(path: Path, rng: Random) -> None:
    """Damage a valid file, outside or inside."""
    inside = INSIDE.get(path.suffix, whole_file)
    if path.name == "yelp.json":  # a line is a document
        inside = whole_file
    (inside if rng.random() < 0.7 else whole_file)(path, rng)
