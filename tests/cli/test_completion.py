"""What bash offers after Tab."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tradewind as tw
from tests.cli.shell import environment, make_study

FOLDER = os.path.dirname(sys.executable)

pytestmark = pytest.mark.skipif(
    shutil.which("bash") is None or shutil.which("tradewind", path=FOLDER) is None,
    reason="needs bash and the installed command",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion")
    make_study(path / "study.db", "first one", 3)
    make_study(path / "study.db", "second", 3)
    make_study(path / "single.db", "single", 3)
    tw.create_study({"switch": [False, True], "size": [32, None]}, storage=path / "other.db")
    (path / "damaged.db").write_text("no store")
    shown = bash("tradewind --show-completion; true", path)  # called by a shell, which it looks for
    (path / "script.sh").write_text(shown)
    return path


def bash(script: str, folder: Path) -> str:
    """What a script prints."""
    path = f"{FOLDER}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        capture_output=True,
        text=True,
        env=environment(PATH=path),
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def offered(folder: Path, *words: str) -> list[str]:
    """What bash offers for the last of these words, by the script that users install."""
    line = " ".join(["tradewind", *words])
    script = f"""
        . ./script.sh
        COMP_LINE={shlex.quote(line)}
        COMP_POINT={len(line)}
        _tradewind_completion tradewind
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    return bash(script, folder).split("\n")[:-1]


def test_commands_are_offered(folder: Path) -> None:
    assert offered(folder, "re") == ["resume", "report", "replay", "repair"]


def test_stores_are_offered(folder: Path) -> None:
    assert offered(folder, "status", "s") == ["single.db", "study.db"]


def test_the_names_of_studies_are_offered(folder: Path) -> None:
    assert offered(folder, "best", "study.db", "--name", "") == ["first one", "second"]
    assert offered(folder, "best", "study.db", "--name", "s") == ["second"]


def test_the_names_of_parameters_are_offered(folder: Path) -> None:
    assert offered(folder, "predict", "single.db", "-p", "") == ["x=", "k="]
    assert offered(folder, "predict", "single.db", "-p", "k") == ["k="]


def test_what_bash_takes_for_a_word_is_offered(folder: Path) -> None:
    """It breaks words at = and :, and replaces the last one."""
    assert offered(folder, "predict", "other.db", "-p", "switch=") == ["false", "true"]
    assert offered(folder, "predict", "other.db", "-p", "size=") == ["32", "none"]
    assert offered(folder, "best", "--goal", "within:") == ["1%"]
    assert offered(folder, "best", "--name", '"a name"', "--goal", "k") == ["knee"]


def test_goals_are_offered(folder: Path) -> None:
    assert offered(folder, "best", "--goal", "kn") == ["knee"]


@pytest.mark.parametrize("store", ["damaged.db", "missing.db", "mysql://x"])
def test_a_store_that_cannot_be_read_offers_nothing(folder: Path, store: str) -> None:
    assert offered(folder, "best", store, "--name", "") in ([], [""])
