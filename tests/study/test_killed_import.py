"""An import that is killed leaves a whole study or none, and no file beside it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from random import Random

import pytest

from tests import processes
from tests.studies import create, score
from tradewind.log.stores import open_store


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_an_import_that_is_killed_leaves_a_whole_study_or_none(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    study, rng = create(), Random(0)
    for _ in range(100):
        trial = study.ask()
        study.tell(trial, **score(trial))
    path = tmp_path / "study.jsonl"
    study.export(path)
    folder = tmp_path / "store"
    folder.mkdir()
    storage = str(folder / "studies.db")
    if kind == "postgres":
        storage = request.getfixturevalue("postgres_url")
    whole = len(study._session.log.read(0))
    create(storage=storage, name="first")
    store = open_store(storage)
    for _ in range(4):
        importer = processes.started(processes.import_for_ever, str(path), storage)
        known = len(store.names())
        while len(store.names()) < known + 1:
            assert importer.is_alive()
            time.sleep(0.002)
        time.sleep(rng.uniform(0.0, 0.05))
        assert importer.pid is not None
        os.kill(importer.pid, signal.SIGKILL)
        importer.join()
    _, *imported = store.names()
    assert len(imported) >= 4
    for name in imported:
        assert len(store.open(name).read(0)) == whole
    left = {file.name for file in folder.iterdir()}
    assert left <= {"studies.db", "studies.db-wal", "studies.db-shm"}
