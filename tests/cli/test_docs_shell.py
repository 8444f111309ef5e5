"""The shell blocks of two pages run as written, in an empty folder, and print what is shown.

`<!-- file: NAME -->` before a block: the block is written to this file. `<!-- output -->`: what the
commands above it print. `<!-- output: places differ -->`: the same, in another folder.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests import pages
from tests.cli.shell import environment
from tests.pages import ROOT, blocks

PAGES = ["any-program.md", "command-line.md"]
FILE = re.compile(
    r"<!-- file: (?P<name>\S+) -->\n+```\w*\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)
RULE = re.compile("[─━]+")

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None
    or shutil.which("tradewind", path=os.path.dirname(sys.executable)) is None,
    reason="needs a C compiler and the installed command",
)


def shell(code: str, folder: Path) -> str:
    """What these commands print. Every one of them must succeed."""
    path = f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        env=environment(PATH=path, PYTHONUTF8="1"),
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{code}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def normal(text: str, how: str, folder: Path) -> str:
    text = RULE.sub("─", text.replace(str(folder), "/home/me/search"))
    return pages.normal(text, "" if how == "places differ" else how)


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_the_commands_of_a_page_print_what_it_shows(name: str, tmp_path: Path) -> None:
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    files = {text.count("\n", 0, f.start("code")) + 1: f for f in FILE.finditer(text)}
    out = ""
    for block in blocks(text):
        if (file := files.get(block.line)) is not None:
            (tmp_path / file["name"]).write_text(textwrap.dedent(block.code), encoding="utf-8")
        elif block.kind == "bash" and block.not_run is None:
            out = shell(block.code, tmp_path)
        elif block.kind == "text" and block.output is not None and out:
            was, now = (normal(one, block.output, tmp_path) for one in (block.code, out))
            assert now == was, f"line {block.line} of {name} shows another output:\n{out}"
            out = ""


@pytest.mark.parametrize("name", PAGES)
def test_every_file_of_a_page_is_a_block(name: str) -> None:
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert len(FILE.findall(text)) == text.count("<!-- file:")
