"""Every reader meets every hostile file of its kind, in a process with little memory and time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile.readers import READERS
from tests.studies import environment


@pytest.mark.slow
@pytest.mark.parametrize("kind", READERS)
def test_hostile_files_are_refused_at_once_and_in_little_memory(kind: str, tmp_path: Path) -> None:
    from tests.hostile.corpus import CORPUS  # importing it makes much of it: only where it is used

    paths = {}
    for i, (name, make) in enumerate(CORPUS[kind].items()):
        folder = tmp_path / str(i)
        folder.mkdir()
        paths[name] = make(folder)
    command = [sys.executable, "-m", "tests.hostile.confine", kind, *map(str, paths.values())]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
    fates = dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)
    faults = {
        name: fates.get(path.parent.name, "FAULT: it ended the process") + done.stderr[-300:]
        for name, path in paths.items()
        if fates.get(path.parent.name, "FAULT").startswith("FAULT")
    }
    assert not faults
