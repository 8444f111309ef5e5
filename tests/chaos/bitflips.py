"""Single flipped bits, in every kind of file that holds studies: each must be an error, or change
nothing that anybody can read."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import tradewind as tw
from tests.chaos.work import SPACE, value
from tradewind.errors import TradewindError
from tradewind.log.files import read_lines
from tradewind.log.sqlite import SqliteStore
from tradewind.log.state import StudyState

Content: TypeAlias = list[Any]
TRIALS = 60


@dataclass
class Flips:
    """How many bits were flipped, how many of them were noticed, and which changed something
    without notice: the place of each, in bits from the start of the file."""

    flipped: int = 0
    noticed: int = 0
    silent: list[int] = field(default_factory=list)


def flip_database(folder: Path, *, flips: int, seed: int) -> Flips:
    """Flip bits of a SQLite file: its header, schema, tables, indexes, leases and free pages."""
    path = make_database(folder)
    return _flip(path, read_database, flips, seed)


def flip_first_page(folder: Path, *, flips: int, seed: int) -> Flips:
    """Flip bits of the header and the schema: SQLite quotes both in its errors, whatever they
    hold."""
    (first := folder / "first").mkdir()
    path = make_database(first, trials=10)
    page = path.read_bytes()[:4096]
    return _flip(path, _use, flips, seed, places=[i for i, byte in enumerate(page) if byte])


def flip_write_ahead(folder: Path, *, flips: int, seed: int) -> Flips:
    """Flip bits of the write-ahead log that a killed process has left."""
    path = make_killed(folder)
    return _flip(path.with_name(f"{path.name}-wal"), _read_killed, flips, seed)


def flip_lines(folder: Path, *, flips: int, seed: int) -> Flips:
    """Flip bits of a file of JSON lines."""
    path = folder / "study.jsonl"
    _study(None, "lines").export(path)
    return _flip(path, _read_lines, flips, seed)


def make_database(folder: Path, trials: int = TRIALS) -> Path:
    """A SQLite file with two studies, a lease, and pages that a deleted study has left."""
    path = folder / "flipped.db"
    with closing(SqliteStore(path)) as store:
        _study(store, "deleted", trials)
        study = _study(store, "study", trials)
        study.ask(lease=1000.0)
        tw.create_study(SPACE, seed=1, storage=store, name="other").ask()
        tw.delete_study("deleted", storage=store)
    return path


def make_killed(folder: Path) -> Path:
    """A SQLite file with the write-ahead log that a killed process leaves."""
    path = folder / "killed.db"
    with closing(SqliteStore(folder / "alive.db")) as store:
        _study(store, "study")
        for suffix in ("", "-wal"):
            shutil.copy(folder / f"alive.db{suffix}", f"{path}{suffix}")
    return path


def _study(storage: Any, name: str, trials: int = TRIALS) -> tw.Study:
    study = tw.create_study(SPACE, strategy="random", seed=7, storage=storage, name=name)
    for number in range(trials):
        trial = study.ask()
        if number % 10 == 7:
            study.fail(trial, "it " + "failed" * 300)  # longer than a cell of a page
        else:
            study.tell(trial, value(trial.params), cost=1.0)
    study.enqueue({"x": 0.5})
    return study


def _flip(
    path: Path,
    read: Callable[[Path], Content],
    flips: int,
    seed: int,
    places: Sequence[int] | None = None,
) -> Flips:
    """Flip random bits of the file, one at a time: in the bytes at these places, or anywhere. Half
    of the latter are where most is at stake: in the first bytes of a page of 512 bytes or more."""
    rng, found = Random(seed), Flips()
    whole = path.read_bytes()
    before = read(path)
    for _ in range(flips):
        bit = rng.randrange(8 * len(whole))
        if places is not None:
            bit = 8 * rng.choice(places) + rng.randrange(8)
        elif rng.random() < 0.3:
            bit = bit - bit % (8 * 512) + rng.randrange(8 * 100)
        if bit >= 8 * len(whole):
            continue
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        found.flipped += 1
        try:
            if read(path) != before:
                found.silent.append(bit)
        except TradewindError:
            found.noticed += 1
        except Exception as error:
            error.add_note(f"bit {bit} of {path.name}")
            raise
    path.write_bytes(whole)
    return found


def read_database(path: Path) -> Content:
    """Everything that a user can see of the studies in a file."""
    with closing(SqliteStore(path)) as store:
        return [(name, _shown(store.open(name).read(0))) for name in store.names()]


def _use(path: Path) -> Content:
    """The same, after every other use of the file. What `repair` leaves must be readable."""
    copy = path.with_name("used.db")
    error: TradewindError | None = None
    for use in (tw.repair, tw.list_studies, _load, _delete):
        for old in path.parent.glob(f"{copy.name}*"):
            old.unlink()
        shutil.copy(path, copy)
        try:
            use(copy)
            if use is tw.repair:
                read_database(copy)
        except TradewindError as refusal:
            error = refusal
    if error is not None:
        raise error
    return read_database(path)


def _load(path: Path) -> None:
    tw.load_study(path, "study")


def _delete(path: Path) -> None:
    tw.delete_study("study", storage=path)


def _read_killed(log: Path) -> Content:
    """The same, from a copy: reading a write-ahead log can empty it."""
    copy = log.with_name("copy.db")
    for suffix in ("", "-wal"):
        shutil.copy(f"{str(log)[: -len('-wal')]}{suffix}", f"{copy}{suffix}")
    copy.with_name("copy.db-shm").unlink(missing_ok=True)
    return read_database(copy)


def _read_lines(path: Path) -> Content:
    return _shown(read_lines(path))


def _shown(events: Any) -> Content:
    state = StudyState.of(events)
    return [repr(each) for each in (*state.in_order(), state.queue, state.goal, state.strategy)]
