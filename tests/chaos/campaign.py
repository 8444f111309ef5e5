"""The faults: killed workers and drivers, torn writes, a full disk, a jumping clock, a crowd."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

import tradewind as tw
from tests.chaos.work import SPACE, Findings, Journal, examine, objective, settle
from tradewind.errors import StorageError
from tradewind.log.sqlite import SqliteStore
from tradewind.log.sqlite_file import File
from tradewind.strategies import Strategy

ROOT = Path(__file__).parents[2]


@dataclass
class Crew:
    """Driver processes that share one study."""

    folder: Path
    task: dict[str, Any]
    drivers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    started: int = 0
    seen: set[psutil.Process] = field(default_factory=set)

    def start(self, **changes: Any) -> None:
        journal = self.folder / f"{self.started}.journal"
        task = self.task | changes | {"journal": str(journal), "stop": str(self.folder / "stop")}
        command = [sys.executable, "-m", "tests.chaos.drive", json.dumps(task)]
        self.drivers.append(subprocess.Popen(command, cwd=ROOT, start_new_session=True))
        self.started += 1

    def kill_one(self, rng: random.Random) -> str:
        """SIGKILL a random driver or one of its workers, and say which."""
        below = []
        for driver in self.drivers:
            with suppress(psutil.NoSuchProcess):
                below += psutil.Process(driver.pid).children(recursive=True)
        self.seen.update(below)
        if below and rng.random() < 0.6:
            with suppress(psutil.NoSuchProcess):
                rng.choice(below).kill()
                return "worker"
        rng.choice(self.drivers).kill()
        return "driver"

    def orphans(self) -> int:
        """How many workers have outlived their drivers."""
        _, alive = psutil.wait_procs(list(self.seen), timeout=20)
        return sum(process.is_running() for process in alive)

    def replace_dead(self, **changes: Any) -> None:
        for driver in [d for d in self.drivers if d.poll() is not None]:
            self.drivers.remove(driver)
            self.start(**changes)

    def end(self) -> list[int]:
        """Let all drivers finish, and return their exit codes."""
        (self.folder / "stop").touch()
        codes = [driver.wait(timeout=120) for driver in self.drivers]
        self.drivers = []
        return codes


def study_at(storage: str, name: str, strategy: Strategy | str = "random") -> tw.Study:
    return tw.create_study(SPACE, strategy=strategy, seed=7, storage=storage, name=name)


def killed(
    storage: str, folder: Path, *, kills: int, drivers: int, seed: int
) -> tuple[dict[str, int], Findings]:
    """Kill workers and drivers at random while they work. Returns the kills and the findings."""
    rng = random.Random(seed)
    study = study_at(storage, "killed")
    crew = Crew(folder, {"storage": storage, "name": "killed"})
    for i in range(drivers):
        crew.start(n_workers=1 + i % 2 * 2)
    done: dict[str, int] = {"worker": 0, "driver": 0}
    try:
        while sum(done.values()) < kills:
            time.sleep(rng.uniform(0.2, 1.2))
            done[crew.kill_one(rng)] += 1
            time.sleep(0.05)
            crew.replace_dead(n_workers=rng.choice([1, 3]))
        crew.end()
    finally:
        for driver in crew.drivers:
            driver.kill()
    done["orphan"] = crew.orphans()
    settle(study)
    return done, examine(study, Journal.entries(folder))


def crowded(
    storage: str, folder: Path, *, strategy: str, drivers: int, each: int, clock: bool = False
) -> Findings:
    """Let many drivers work on one study at once, each for `each` trials."""
    name = f"crowd of {strategy}{' with jumping clocks' * clock}"
    study = study_at(storage, name, strategy)
    crew = Crew(folder, {"storage": storage, "name": name, "n_trials": each, "clock": clock})
    for _ in range(drivers):
        crew.start()
    codes = [driver.wait(timeout=1200) for driver in crew.drivers]
    assert codes == [0] * drivers, f"drivers ended with {codes}"
    settle(study)
    return examine(study, Journal.entries(folder))


def torn(folder: Path, *, times: int, seed: int) -> tuple[int, int]:
    """Cut the write-ahead log of a killed driver at a random byte and continue the study. Returns
    how often, and how often the study held a prefix of what was written and replayed."""
    rng, good = random.Random(seed), 0
    storage = folder / "torn.db"
    study_at(str(storage), "torn")
    for i in range(times):
        crew = Crew(folder, {"storage": str(storage), "name": "torn"})
        crew.start()
        time.sleep(rng.uniform(0.8, 2.0))
        crew.drivers[0].kill()
        crew.drivers[0].wait()
        copies = [folder / f"{i}-{kind}" for kind in ("whole", "torn")]
        for copy in copies:
            copy.mkdir()
            for file in folder.glob("torn.db*"):
                if not file.name.endswith("-shm"):
                    shutil.copy(file, copy / file.name)
        log = copies[1] / "torn.db-wal"
        if log.exists():
            os.truncate(log, rng.randrange(log.stat().st_size + 1))
        whole, cut = (tw.load_study(copy / "torn.db", "torn") for copy in copies)
        before, after = whole._session.log.read(0), cut._session.log.read(0)
        prefix = list(before[: len(after)]) == list(after)
        cut.optimize(objective, n_trials=3, show_progress=False)
        good += prefix and tw.replay(cut).identical
    return times, good


class SmallDisk(File):
    """A SQLite file on a disk that holds only so many pages."""

    pages = 12

    def _connection(self, **options: Any) -> Any:
        db = super()._connection(**options)
        db.execute(f"PRAGMA max_page_count = {self.pages}")
        return db


def full_disk(folder: Path, *, times: int) -> tuple[int, Findings]:
    """Fill the disk again and again, each time with a little more room. Returns how often."""
    store, full = SqliteStore(folder / "full.db"), 0
    disk = store.file = SmallDisk(store.file.path, "NORMAL")
    study = tw.create_study(SPACE, strategy="random", seed=7, storage=store, name="full")
    journal = Journal(folder / "0.journal")
    while full < times:
        try:
            while True:
                trial = study.ask()
                answer = objective(trial)
                journal(study, study.tell(trial, answer["value"], cost=answer["cost"]))
        except StorageError:
            full += 1
            disk.pages += 3
    for trial in study.trials:
        if trial.state.value in ("running", "waiting"):
            study.abandon(trial, "the disk was full")
    return full, examine(study, Journal.entries(folder))
