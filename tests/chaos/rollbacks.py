"""A store that goes back in time under running drivers."""

from __future__ import annotations

import random
import shutil
import sqlite3
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import tradewind as tw
from tests.chaos.crew import Crew
from tests.chaos.drive import Task
from tests.chaos.findings import Findings, examine
from tests.chaos.site import Site
from tests.chaos.work import study_at


def roll_back(site: Site, *, size: int, seed: int) -> Findings:
    """Take the store back to an earlier state, again and again. Every driver must notice, and put
    back what it knows."""
    rng, done = random.Random(seed), Counter[str]()
    study = study_at(site.storage)
    with Crew(Task(site.storage, site.folder, restores=True)) as crew:
        crew.start(None, None, None, 2)
        for _ in range(size):
            _wait_for_trials(site.storage, study.name)
            if site.server is None:
                done[_restore_backup(Path(site.storage), rng, study.name)] += 1
            else:
                done[_delete_events(site, rng)] += 1
            time.sleep(rng.uniform(0.5, 1.5))
        crew.end()
        found = crew.findings(done)
    if crew.noticed() < size:
        found.notes.append(f"{size} rollbacks must be noticed, but only {crew.noticed()} were")
    return found + examine(study, site.folder, renumbered=True)


def _wait_for_trials(storage: str, name: str, more: int = 5) -> None:
    """Wait until drivers have finished more trials: until then they have nothing to lose."""
    before, until = None, time.monotonic() + 60.0
    while time.monotonic() < until:
        finished = sum(trial.finished for trial in tw.load_study(storage, name).trials)
        before = finished if before is None else min(before, finished)
        if finished >= before + more:
            return
        time.sleep(0.1)


def _restore_backup(path: Path, rng: random.Random, name: str) -> str:
    """Save the file, wait, and restore it: by SQLite itself, or by moving it over the file."""
    backup = path.with_name("backup.db")
    _copy(path, backup)
    _wait_for_trials(str(path), name)
    if rng.random() < 0.5:
        _copy(backup, path)
        return "backups restored in place"
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    shutil.move(backup, path)
    return "backups moved over the file"


def _copy(source: Path, target: Path) -> None:
    with closing(sqlite3.connect(source)) as a, closing(sqlite3.connect(target, timeout=60)) as b:
        a.backup(b)


def _delete_events(site: Site, rng: random.Random) -> str:
    """Delete the newest events of the study, while nobody writes: a restored backup has no gaps."""
    table = site.storage.split("search_path%3D")[1].split("&")[0] + ".tradewind_events"
    site.database.execute(
        f"BEGIN; LOCK TABLE {table}; DELETE FROM {table} WHERE position > 0 AND position > "
        f"(SELECT max(position) - {rng.randrange(1, 60)} FROM {table}); COMMIT"
    )
    return "deletions of events"
