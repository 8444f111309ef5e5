"""The documentation as a site: it has all pages, builds without a warning and needs no network."""

from __future__ import annotations

import importlib.util
import inspect
import re
import types
from pathlib import Path

import pytest

import tradewind as tw
from tests.pages import PAGES, ROOT, blocks

REFERENCE = ROOT / "docs" / "reference"
MODULES = [m for m in tw.__all__ if isinstance(getattr(tw, m), types.ModuleType)]


@pytest.fixture(scope="module")
def site() -> types.ModuleType:
    spec = importlib.util.spec_from_file_location("build_site", ROOT / "tools" / "build_site.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def build(site: types.ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    site.gather(folder)
    warnings = site.build_site(folder)
    assert not warnings, warnings
    return folder


@pytest.mark.slow
def test_the_site_builds_without_a_warning(build: Path) -> None:
    made = {path.relative_to(build / "docs").with_suffix("") for path in pages(build)}
    assert {path.relative_to(build / "site").with_suffix("") for path in htmls(build)} >= made


@pytest.mark.slow
def test_no_page_loads_anything_from_the_network(build: Path) -> None:
    loads = re.compile(r'<(?:script|img|iframe)[^>]* src="?(https?:[^"\s>]+)')
    styles = re.compile(
        r'<link(?=[^>]*rel="?(?:stylesheet|preconnect|icon))[^>]*href="?(https?:[^"\s>]+)'
    )
    for html in htmls(build):
        text = html.read_text(encoding="utf-8")
        assert not loads.findall(text), html.name
        assert not styles.findall(text), html.name
    for css in (build / "site").rglob("*.css"):
        assert not re.findall(r"url\(['\"]?https?:", css.read_text(encoding="utf-8")), css.name


@pytest.mark.slow
def test_formulas_are_mathml_and_examples_of_docstrings_are_code(build: Path) -> None:
    formulas = (build / "site" / "concepts" / "trade-off.html").read_text(encoding="utf-8")
    assert re.search(r'<math [^>]*display="block"', formulas)
    assert "$" not in re.sub(
        r"<annotation.*?</annotation>|<script.*?</script>", "", formulas, flags=re.S
    )
    for html in (build / "site" / "reference").rglob("*.html"):
        text = html.read_text(encoding="utf-8")
        assert not re.search(r"<blockquote>\s*<blockquote>", text), f"{html.name}: a bare >>>"


@pytest.mark.slow
@pytest.mark.parametrize(
    "link", ["[a](nowhere.md)", "[a](goals.md#nothing-like-that)", "::: tradewind.Nothing"]
)
def test_a_broken_page_is_noticed(site: types.ModuleType, tmp_path: Path, link: str) -> None:
    site.gather(tmp_path)
    index, goals = (tmp_path / "docs" / name for name in ("index.md", "goals.md"))
    for path in pages(tmp_path):  # two pages are enough, and faster
        if path not in (index, goals):
            path.unlink()
    goals.write_text("# Goals\n", encoding="utf-8")
    config = tmp_path / "mkdocs.yml"
    config.write_text(config.read_text(encoding="utf-8").split("\nnav:")[0], encoding="utf-8")
    index.write_text("# Home\n\n[a](goals.md#goals)\n", encoding="utf-8")
    assert site.build_site(tmp_path) == ""
    index.write_text(f"# Home\n\n{link}\n", encoding="utf-8")
    assert site.build_site(tmp_path) != ""


def test_every_page_is_in_the_navigation(site: types.ModuleType, tmp_path: Path) -> None:
    site.gather(tmp_path)
    nav = (tmp_path / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:")[1]
    listed = re.findall(r"(\S+\.md)$", nav, re.MULTILINE)
    made = [path.relative_to(tmp_path / "docs").as_posix() for path in pages(tmp_path)]
    assert sorted(listed) == sorted(made)


def test_links_between_pages_are_the_same_in_the_repository_and_in_the_site(
    site: types.ModuleType,
) -> None:
    text = (
        "[a](costs.md#folds) [b](../benchmarks/README.md#workers) [c](../LICENSE) [d](https://x.y)"
    )
    assert site.relinked(text, "docs/goals.md") == (
        f"[a](costs.md#folds) [b](benchmarks.md#workers) [c]({site.SOURCE}/LICENSE) [d](https://x.y)"
    )
    assert site.relinked("[a](../docs/goals.md)", "benchmarks/README.md") == "[a](goals.md)"
    assert site.relinked("```\n[a](../x.md)\n```", "docs/goals.md") == "```\n[a](../x.md)\n```"


# ---- the reference ----


def public_names() -> list[str]:
    """All public names, as they are written after `tw.`."""
    top = [name for name in tw.__all__ if name not in MODULES]
    return [*top, *(f"{m}.{name}" for m in MODULES for name in names_of(getattr(tw, m)))]


def names_of(module: types.ModuleType) -> list[str]:
    """What a public module exports, or defines if it does not say."""
    here = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
        if inspect.isclass(value) or inspect.isfunction(value)
    ]
    return list(getattr(module, "__all__", here))


def test_every_public_name_is_on_a_page_of_the_reference_and_in_its_example() -> None:
    documented, examples = set(), {}
    for page in REFERENCE.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        code = "\n".join(block.code for block in blocks(text) if block.kind == "python")
        for name in re.findall(r"^::: tradewind\.(\S+)$", text, re.MULTILINE):
            documented.add(name)
            examples[name] = code
    helpers = {f"errors.{name}" for name in ("SUGGESTIONS", "missing", "no_attribute", "warn")}
    missing = set(public_names()) - documented - helpers - {"errors.TradewindError"}
    assert not missing
    unused = [n for n in documented if not re.search(rf"\b{n.split('.')[-1]}\b", examples[n])]
    assert not [n for n in unused if not n.startswith("errors.")]  # they have one each


def test_what_a_page_imports_is_in_the_reference() -> None:
    pages = {page: blocks(page.read_text(encoding="utf-8")) for page in PAGES}
    code = "\n".join(b.code for found in pages.values() for b in found if b.kind == "python")
    imported = {
        f"{module}.{name.strip()}".removeprefix("tradewind.")
        for module, names in re.findall(r"^from (tradewind[\w.]*) import ([\w, ]+)", code, re.M)
        for name in names.split(",")
    }
    reference = "\n".join(page.read_text(encoding="utf-8") for page in REFERENCE.glob("*.md"))
    assert {n for n in imported if n not in MODULES and f"tradewind.{n}" not in reference} == set()


def pages(build: Path) -> list[Path]:
    return sorted((build / "docs").rglob("*.md"))


def htmls(build: Path) -> list[Path]:
    return sorted((build / "site").rglob("*.html"))
