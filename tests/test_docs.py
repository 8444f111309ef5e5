"""Every Python block of the README and of docs/ runs as written.

The blocks of one file share a namespace, in order, and an empty working directory. A block is left
out by a comment just before it that says why: `<!-- not run: needs a cluster -->`.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

BLOCK = re.compile(
    r"(?P<mark><!-- not run(?P<reason>[^\n]*?) -->\n+)?"
    r"^(?P<indent>[ ]*)```python\n(?P<code>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    code: str
    line: int  # of the first line of code, from 1
    not_run: str | None  # the reason


def blocks(text: str) -> list[Block]:
    return [
        Block(
            code=textwrap.dedent(found["code"]),
            line=text.count("\n", 0, found.start("code")) + 1,
            not_run=None if found["mark"] is None else found["reason"].strip(": "),
        )
        for found in BLOCK.finditer(text)
    ]


def execute(page: Path, text: str) -> None:
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(text):
        if block.not_run is None:
            # Leading newlines make a traceback show the page's own line numbers.
            code = "\n" * (block.line - 1) + block.code
            exec(compile(code, str(page), "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_code_of_a_page_runs_as_written(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    execute(page, page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_python_block_of_a_page_is_overlooked(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(blocks(text)) == len(re.findall(r"^\s*```+\s*(?:python|py)\b", text, re.MULTILINE))
    assert all(block.not_run != "" for block in blocks(text)), "a block is left out without reason"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_links_of_a_page_lead_to_files_and_headings(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for file, anchor in re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)", text):
        target = page.parent / file if file else page
        assert target.exists(), file
        assert not anchor or anchor in anchors(target.read_text(encoding="utf-8")), (file, anchor)


def anchors(text: str) -> set[str]:
    """What a link may name after `#`: the headings of a page, as GitHub spells them."""
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_readme_and_the_guide_have_code_to_run() -> None:
    for page in (ROOT / "README.md", ROOT / "docs" / "guide.md"):
        assert any(b.not_run is None for b in blocks(page.read_text(encoding="utf-8")))


PAGE = """
```python
x = 1
```

<!-- not run: costs money -->
```python
x = 2
```

```python
assert x == 1
raise RuntimeError(x)
```
"""


def test_blocks_share_a_namespace_and_a_marked_one_is_left_out() -> None:
    with pytest.raises(RuntimeError, match=r"^1$") as caught:
        execute(Path("page.md"), PAGE)
    assert caught.traceback[-1].lineno == PAGE.splitlines().index("raise RuntimeError(x)")
