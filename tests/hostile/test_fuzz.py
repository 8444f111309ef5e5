"""A short campaign of the fuzzer. The long one is `python -m tests.hostile.fuzz --seconds 600`."""

from __future__ import annotations

import subprocess
import sys

from tests.studies import environment


def test_damaged_files_are_refused_or_can_be_used() -> None:
    command = [sys.executable, "-m", "tests.hostile.fuzz", "--mutants", "25", "--seed", "0"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert done.stdout.count(" 25 mutants,") == 10  # of every reader
