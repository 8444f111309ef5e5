"""Help: quick, with examples for every command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tradewind as tw
from tests.cli.shell import call, make_study
from tradewind.cli.app import _COMMANDS
from tradewind.cli.exits import Exit, exit_code, sentence, without_passwords
from tradewind.errors import BrokenObjective, NoSuchStudy, StorageError


def test_help_lists_every_command_and_the_exit_codes() -> None:
    result = call("--help")
    assert result.code == 0
    assert all(f"\n  {name} " in result.out for name in _COMMANDS)
    assert "Exit codes" in result.out
    assert max(map(len, result.out.splitlines())) <= 80
    assert "..." not in result.out.partition("Commands:")[2], "a summary is cut"


@pytest.mark.parametrize("command", _COMMANDS)
def test_the_help_of_a_command_has_examples_of_this_command(command: str) -> None:
    result = call(command, "--help")
    assert result.code == 0
    examples = result.out.partition("Examples:\n")[2].partition("\n\n")[0].splitlines()
    assert examples
    assert all(line.strip().startswith(f"tradewind {command}") for line in examples)


@pytest.mark.parametrize("arguments", [["--help"], ["best", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom tradewind.cli.app import app\n"
        f"try:\n    app({arguments!r})\nexcept SystemExit:\n    pass\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert loaded.isdisjoint(
        {"numpy", "scipy", "sklearn", "rich", "sqlite3", "pandas", "starlette"}
    )


def test_the_version_is_that_of_the_package() -> None:
    assert call("--version").out == f"tradewind {tw.__version__}\n"


def test_a_missing_extra_is_answered_by_the_line_to_install_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make_study(tmp_path / "study.db", n_trials=1)
    for name in [n for n in sys.modules if n.startswith("tradewind.dashboard")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    result = call("dashboard", "--no-open", env={"TRADEWIND_STORAGE": f"{tmp_path}/study.db"})
    assert result.code == 1
    assert "pip install starlette uvicorn" in result.err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KeyboardInterrupt(), Exit.INTERRUPTED),
        (BrokenPipeError(), Exit.PIPE),
        (NoSuchStudy("none"), Exit.NOTHING),
        (StorageError("away"), Exit.STORE),
        (ValueError("wrong"), Exit.USAGE),
        (BrokenObjective("broken"), Exit.FAILED),
        (RuntimeError("odd"), Exit.FAILED),
        (MemoryError(), Exit.FAILED),
    ],
)
def test_every_error_has_an_exit_code_and_a_sentence(error: BaseException, code: Exit) -> None:
    assert exit_code(error) is code
    assert sentence(error)


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://me:secret@host/db",
        "postgres://me:sec:ret@host/db is away",
        "'postgresql://me:se@cret@host:5432/db?x=1'",
        "postgresql://host/db?user=me&password=secret&x=1",
        "POSTGRESQL://me:secret@host/db",
    ],
)
def test_passwords_are_hidden_in_every_text(text: str) -> None:
    hidden = without_passwords(text)
    assert not [secret for secret in ("secret", "sec:ret", "se@cret", "cret") if secret in hidden]
    assert "***" in hidden
