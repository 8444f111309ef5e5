"""Every public name has an example in its docstring, and the examples run as written.

They share what the example of `Study` defines: an objective, a space, and a study with eight
trials. Each example gets a study of its own, in an empty working directory.
"""

from __future__ import annotations

import doctest
import inspect
import pydoc
import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tradewind as tw

MODULES = (
    *(tw.integrations, tw.models, tw.runners, tw.stopping, tw.strategies, tw.subsets),
    tw.testing,
)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS  # long outputs may be wrapped


def public() -> Iterator[tuple[str, Any]]:
    """All public names, methods of studies, and whatever the reference shows."""
    for name in tw.__all__:
        yield f"tw.{name}", getattr(tw, name)
    for module in MODULES:
        for name in module.__all__:
            yield f"{module.__name__.replace('tradewind', 'tw')}.{name}", getattr(module, name)
    for name, value in vars(tw.recipes).items():
        if inspect.isfunction(value) and value.__module__ == tw.recipes.__name__:
            yield f"tw.recipes.{name}", value
    for page in (Path(__file__).parents[1] / "docs" / "reference").glob("*.md"):
        for name in re.findall(r"^::: tradewind\.(\S+)$", page.read_text("utf-8"), re.MULTILINE):
            yield f"tw.{name}", pydoc.locate(f"tradewind.{name}")
    for name, value in inspect.getmembers_static(tw.Study):
        if not name.startswith("_"):
            yield f"tw.Study.{name}", value.fget if isinstance(value, property) else value


DOCUMENTED = {
    name: value
    for name, value in public()
    if callable(value) or isinstance(value, types.ModuleType)  # not the lists of checks
}


def examples(name: str, namespace: dict[str, Any]) -> doctest.DocTest:
    text = inspect.getdoc(DOCUMENTED[name]) or ""
    return doctest.DocTestParser().get_doctest(text, namespace, name, None, 0)


def run(name: str, namespace: dict[str, Any]) -> dict[str, Any]:
    """Run the examples of a name, and return what they define."""
    test, report = examples(name, namespace), list[str]()
    result = doctest.DocTestRunner(optionflags=FLAGS).run(
        test, out=report.append, clear_globs=False
    )
    assert result.failed == 0, "".join(report)
    return test.globs


@pytest.fixture(scope="module")
def defined(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the example of `Study` defines; the study is a file."""
    namespace = run("tw.Study", {"tw": tw, "__name__": "__main__"})
    path = tmp_path_factory.mktemp("examples") / "reviews.jsonl"
    namespace["study"].export(path)
    return {**namespace, "study": path}


def test_every_public_name_is_looked_at() -> None:
    assert len(DOCUMENTED) > 130
    assert {"tw.Study.optimize", "tw.Study.best", "tw.recipes.auto", "tw.errors"} <= set(DOCUMENTED)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_examples_of_a_name_run_as_written(
    name: str, defined: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert examples(name, {}).examples, f"{name} has no example in its docstring"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    run(name, {**defined, "study": tw.import_study(defined["study"])})
