"""Disks that are full, write-ahead logs that end in the middle, and bits that flip."""

from __future__ import annotations

import os
import random
import shutil
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import tradewind as tw
from tests.chaos.bitflips import flip_database, flip_first_page, flip_lines, flip_write_ahead
from tests.chaos.crew import Crew
from tests.chaos.drive import Task
from tests.chaos.findings import Findings, examine
from tests.chaos.site import Site
from tests.chaos.work import NAME, SPACE, Witness, Work, study_at
from tradewind.errors import StorageError
from tradewind.log.sqlite import SqliteStore
from tradewind.log.sqlite_file import File
from tradewind.types import State


class SmallDisk(File):
    """A SQLite file on a disk that holds only so many pages."""

    pages = 12

    def _connection(self, **options: Any) -> Any:
        db = super()._connection(**options)
        db.execute(f"PRAGMA max_page_count = {self.pages}")
        return db


def flip(site: Site, *, size: int, seed: int) -> Findings:
    """Flip single bits in every kind of file that holds studies."""
    found = Findings()
    kinds = (flip_first_page, flip_database, flip_write_ahead, flip_lines)
    for kind in kinds:
        flips = kind(site.folder, flips=size // len(kinds), seed=seed)
        found.faults["bits flipped"] += flips.flipped
        found.faults["noticed"] += flips.noticed
        found.changed += len(flips.silent)
    return found


def fill(site: Site, *, size: int, seed: int) -> Findings:
    """Fill the disk again and again, each time with a little more room."""
    store, full = SqliteStore(site.storage), 0
    disk = store.file = SmallDisk(site.storage, "NORMAL")
    study = tw.create_study(SPACE, strategy="random", seed=seed, storage=store, name=NAME)
    witness, work = Witness(site.folder / "0.witness"), Work(seconds=0.001)
    while full < size:
        try:
            while True:
                trial = study.ask()
                answer = work(trial)
                witness(study, study.tell(trial, answer["value"], cost=answer["cost"]))
        except StorageError:
            full += 1
            disk.pages += 3
    study.restore()  # a result that was told to the full disk waits in a file
    for trial in study.trials:
        if trial.state in (State.RUNNING, State.WAITING):
            study.abandon(trial, "the disk was full")
    return Findings(faults=Counter({"full disks": full})) + examine(study, site.folder)


def tear(site: Site, *, size: int, seed: int) -> Findings:
    """Cut the write-ahead log of a killed driver at a random byte, and continue the study."""
    rng, path, found = random.Random(seed), Path(site.storage), Findings()
    with closing(SqliteStore(path)) as store:  # which moves the first events to the file itself
        study_at(store)
    for i in range(size):
        with Crew(Task(site.storage, site.folder)) as crew:
            crew.start(None)
            time.sleep(rng.uniform(0.2, 1.0))
        whole, torn = (_copy(path, site.folder / f"{i}-{kind}") for kind in ("whole", "torn"))
        log = torn.with_name(f"{torn.name}-wal")
        if log.exists():
            os.truncate(log, rng.randrange(log.stat().st_size + 1))
        found += _continue(whole, torn)
        found.faults["write-ahead logs cut"] += 1
    return found + examine(tw.load_study(path, NAME), site.folder)


def _copy(path: Path, folder: Path) -> Path:
    """Copy a SQLite file and its write-ahead log, as they would be found after a crash."""
    folder.mkdir()
    for file in path.parent.glob(f"{path.name}*"):
        if not file.name.endswith("-shm"):
            shutil.copy(file, folder / file.name)
    return folder / path.name


def _continue(whole: Path, torn: Path) -> Findings:
    """A torn study must be the beginning of the whole one, and go on."""
    before, study = tw.load_study(whole, NAME), tw.load_study(torn, NAME)
    events, rest = before._session.log.read(0), study._session.log.read(0)
    changed = sum(a != b for a, b in zip(events, rest, strict=False))
    study.optimize(Work(seconds=0.001), n_trials=3, show_progress=False)
    return Findings(
        changed=changed + max(0, len(rest) - len(events)),
        differing=not tw.replay(study).identical,
    )
