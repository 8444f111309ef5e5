"""Every code block of the README and of docs/ is run or at least read, and every link leads on."""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import json
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import tradewind as tw
from tests import pages
from tests.pages import PAGES, ROOT, blocks

SHELLS = ("bash", "sh", "console")
HOW_TOS = sorted((ROOT / "docs" / "how-to").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_code_of_a_page_runs_and_prints_what_the_page_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pages.run(page, page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_block_of_a_page_is_overlooked(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    found = blocks(text)
    assert 2 * len(found) == len(re.findall(r"^\s*```", text, re.MULTILINE))
    assert all(block.not_run != "" for block in found), "a block is left out without reason"
    assert not [block for block in found if block.kind == "py"], "write ```python"
    marks = re.findall(r"<!-- (?:not run|output)", text)
    used = [b for b in found if b.not_run is not None or b.output is not None]
    assert len(marks) == len(used), "a mark does not stand before a block"
    shown = [block for block in found if block.output is not None]
    assert len(shown) == len(pages.outputs(text)), "an output does not follow a block"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_shell_commands_and_data_can_be_read(page: Path) -> None:
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.kind in SHELLS:
            done = subprocess.run(["bash", "-n"], input=block.code, text=True, capture_output=True)
            assert done.returncode == 0, f"line {block.line}: {done.stderr}"
        elif block.kind == "yaml":
            assert all(isinstance(part, dict) for part in yaml.safe_load_all(block.code))
        elif block.kind == "toml":
            tomllib.loads(block.code)
        elif block.kind == "json":
            json.loads(block.code)


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


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_names_and_arguments_exist_where_code_is_not_run_and_in_the_text(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for block in blocks(text):
        if block.kind == "python" and block.not_run is not None:
            assert list(unknown(ast.parse(block.code))) == [], f"line {block.line}"
    if page.name != "coming-from-optuna.md":  # it has the names of Optuna as well
        for code in re.findall(r"(?<!`)`((?:tw|study|trial)\.[^`\n]+)`", text):
            with contextlib.suppress(SyntaxError):  # a few show a part of an expression
                assert list(unknown(ast.parse(code))) == [], code


@functools.cache
def known() -> dict[str, list[Any]]:
    """What the names in code that is not run stand for. A trial is a running or a finished one."""
    study = tw.create_study({"x": (0.0, 1.0)}, seed=0)
    study.optimize(lambda trial: trial.params["x"], n_trials=1, show_progress=False)
    return {"tw": [tw], "study": [study], "trial": [tw.Run(study.ask()), study.best]}


def unknown(tree: ast.AST) -> Iterator[str]:
    """Attributes and arguments in code that Tradewind does not have."""
    for node in ast.walk(tree):
        found = meant(node.func if isinstance(node, ast.Call) else node)
        if found == []:
            yield ast.unparse(node)
        elif isinstance(node, ast.Call) and found and callable(found[0]):
            taken = inspect.signature(found[0]).parameters
            yield from (f"{k.arg}=" for k in node.keywords if k.arg and k.arg not in taken)


def meant(node: ast.AST) -> list[Any] | None:
    """What a name such as `tw.runners.DaskRunner` may mean; None for other code."""
    if isinstance(node, ast.Name):
        return known().get(node.id)
    owners = meant(node.value) if isinstance(node, ast.Attribute) else None
    if owners is None:
        return None
    return [getattr(o, node.attr) for o in owners if hasattr(o, node.attr)]


@pytest.mark.parametrize("page", HOW_TOS, ids=lambda p: p.name)
def test_a_how_to_leads_with_code_and_says_what_happens_when_it_goes_wrong(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert blocks(text)[0].line < 12
    assert "\n## When it goes wrong\n" in text or page.name == "failures.md"


def test_a_decision_record_is_a_page() -> None:
    records = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    long = [f.name for f in records if len(f.read_text(encoding="utf-8").splitlines()) > 30]
    assert records
    assert not long


def test_the_readme_and_the_tutorial_have_code_to_run() -> None:
    for page in (ROOT / "README.md", ROOT / "docs" / "tutorial.md"):
        found = blocks(page.read_text(encoding="utf-8"))
        assert any(b.kind == "python" and b.not_run is None for b in found)


# ---- the machinery itself ----

PAGE = """
```python
x = 1
```

<!-- not run: costs money -->
```python
x = 2
```

```python
print("x is", x, "after 0.07 s")
```

<!-- output: times differ -->
```text
x is 1
after 0.08 s
```

```python
raise RuntimeError(x)
```
"""


def test_blocks_share_a_namespace_and_a_marked_one_is_left_out() -> None:
    with pytest.raises(RuntimeError, match=r"^1$") as caught:
        pages.run(Path("page.md"), PAGE)
    assert caught.traceback[-1].lineno == PAGE.splitlines().index("raise RuntimeError(x)")


@pytest.mark.parametrize(
    ("was", "now"),
    [("times differ", "numbers exact"), ("x is 1", "x is 2"), (": times differ", "")],
)
def test_an_output_that_differs_is_noticed(was: str, now: str) -> None:
    with pytest.raises((AssertionError, ValueError)):
        pages.run(Path("page.md"), PAGE.replace(was, now))


@pytest.mark.parametrize(
    ("how", "one", "other", "same"),
    [
        ("", "a  b\nc", "a b c", True),
        ("", "1.0 s", "2.0 s", False),
        ("times differ", "12 ms at 0.98", "1.5 s at 0.98", True),
        ("times differ", "12 ms at 0.98", "12 ms at 0.97", False),
        ("numbers differ", "{'n': 12} −3", "{'n': 7} 4e-5", True),
        ("numbers differ", "12 trees", "12 leaves", False),
    ],
)
def test_only_what_may_differ_is_masked(how: str, one: str, other: str, same: bool) -> None:
    assert (pages.normal(one, how) == pages.normal(other, how)) is same
