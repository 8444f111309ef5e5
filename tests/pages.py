"""The code blocks of the documentation: find them, run them, and compare what they print.

The Python blocks of one page share a namespace, in order, and an empty working directory. What
stands in a comment just before a block says what to do with it:

    <!-- not run: needs a cluster -->     before ```python: the block is left out, for this reason
    <!-- output -->                       before ```text: what the Python block above it prints
    <!-- output: times differ -->         the same, but times may be others: "0.068 s", "12 ms"
    <!-- output: numbers differ -->       the same, but all numbers may be others

White space does not count, so a page may wrap long lines. `python -m tests.pages PAGE...` runs
pages and writes what their blocks print into them.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import re
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

BLOCK = re.compile(
    r"(?:<!-- (?P<word>not run|output)(?:: (?P<note>[^\n]*?))? -->\n+)?"
    r"^(?P<indent>[ ]*)```(?P<kind>\w*)\n(?P<code>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
NUMBER = r"[-−+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?"
TIME = re.compile(rf"{NUMBER} ?(?:µs|ms|s|seconds?|min|minutes?|h|hours?)\b")


@dataclass(frozen=True)
class Block:
    kind: str  # "python", "text", "bash", …
    code: str
    line: int  # of the first line of code, from 1
    start: int  # where the code begins in the page, in characters
    end: int
    not_run: str | None  # the reason
    output: str | None  # "" or how it may differ; None if it is not an output


def blocks(text: str) -> list[Block]:
    """All fenced blocks of a page, in order."""
    return [
        Block(
            kind=found["kind"],
            code=textwrap.dedent(found["code"]),
            line=text.count("\n", 0, found.start("code")) + 1,
            start=found.start("code"),
            end=found.end("code"),
            not_run=(found["note"] or "") if found["word"] == "not run" else None,
            output=(found["note"] or "") if found["word"] == "output" else None,
        )
        for found in BLOCK.finditer(text)
    ]


def printed(page: Path, text: str) -> Iterator[tuple[Block, str]]:
    """Each Python block of a page that is run, with what it printed."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(text):
        if block.kind == "python" and block.not_run is None:
            # Leading newlines make a traceback show the page's own line numbers.
            code = "\n" * (block.line - 1) + block.code
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(code, str(page), "exec"), namespace)
            yield block, out.getvalue()


def outputs(text: str) -> dict[int, Block]:
    """The outputs of a page, by the line of the Python block above each."""
    all_blocks = blocks(text)
    pairs = itertools.pairwise(all_blocks)
    return {before.line: block for before, block in pairs if block.output is not None}


def normal(text: str, how: str) -> str:
    """What is compared: words and numbers, without what may differ."""
    if how == "times differ":
        text = TIME.sub("<time>", text)
    elif how == "numbers differ":
        text = re.sub(NUMBER, "<number>", text)
    elif how:
        raise ValueError(f"an output may say that times or numbers differ, but not {how!r}")
    return " ".join(text.split())


def run(page: Path, text: str) -> None:
    """Run the blocks of a page. An AssertionError shows an output that differs."""
    expected = outputs(text)
    for block, out in printed(page, text):
        if block.line in expected:
            shown = expected[block.line]
            was, now = (normal(one, shown.output or "") for one in (shown.code, out))
            assert now == was, f"line {shown.line} of {page.name} shows another output:\n{out}"


def rewrite(page: Path) -> None:
    """Write what the blocks of a page print into the page."""
    text = page.read_text(encoding="utf-8")
    expected = outputs(text)
    found = {block.line: out for block, out in printed(page, text) if block.line in expected}
    for line, out in sorted(found.items(), reverse=True):
        block = expected[line]
        if normal(block.code, block.output or "") != normal(out, block.output or ""):
            text = text[: block.start] + wrapped(out) + text[block.end :]
    page.write_text(text, encoding="utf-8")


def wrapped(out: str) -> str:
    lines = (textwrap.fill(line, 100) if "  " not in line else line for line in out.splitlines())
    return "".join(f"{line.rstrip()}\n" for line in lines)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        page = Path(name).resolve()
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            os.environ["PWD"] = folder
            rewrite(page)
