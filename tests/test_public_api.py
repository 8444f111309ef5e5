"""What Tradewind exports, and nothing more."""

from __future__ import annotations

import inspect
import subprocess
import sys
import types
from collections.abc import Iterable

import pytest

import tradewind as tw

MODULES = (
    *("errors", "integrations", "models", "recipes", "runners", "stopping", "strategies"),
    *("subsets", "testing"),
)


def in_order(names: Iterable[str]) -> list[str]:
    """Constants and abbreviations, then classes, then the rest, as ruff sorts them."""
    return sorted(set(names), key=lambda n: (not n.isupper(), not n[0].isupper(), n))


def test_all_is_sorted_and_without_repetition() -> None:
    assert list(tw.__all__) == in_order(tw.__all__)


@pytest.mark.parametrize("name", tw.__all__)
def test_every_exported_name_exists_and_is_documented(name: str) -> None:
    assert inspect.getdoc(getattr(tw, name))


def test_dir_lists_the_exported_names_and_nothing_else() -> None:
    assert dir(tw) == sorted(tw.__all__)
    assert "TradeoffSearchCV" in dir(tw)


def test_there_is_no_name_that_is_not_exported() -> None:
    with pytest.raises(AttributeError, match="module 'tradewind' has no attribute 'nothing'"):
        _ = tw.nothing  # type: ignore[attr-defined]


# ---- loading ----


def run(code: str) -> str:
    """What `code` prints in a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_tradewind_imports_no_room_before_it_is_used() -> None:
    loaded = run("import sys, tradewind; dir(tradewind); print(*sys.modules)").split()
    assert [name for name in loaded if name.startswith("tradewind.")] == []
    assert "scipy" not in loaded


def test_a_name_loads_only_its_own_room_and_is_found_at_once_the_next_time() -> None:
    code = """
import sys, tradewind as tw
assert "Space" not in vars(tw)
tw.Space
assert vars(tw)["Space"] is tw.Space
print(*sys.modules)
"""
    loaded = run(code).split()
    assert "tradewind.space.space" in loaded
    assert "tradewind.study" not in loaded
    assert "scipy" not in loaded


def test_all_names_are_imported_by_a_star() -> None:
    names = run("from tradewind import *; print(*[n for n in dir() if n[0] != '_'])").split()
    assert names == sorted(tw.__all__)


# ---- rooms ----


def test_nothing_else_is_public_at_the_top() -> None:
    # Importing a submodule binds its name on the package: those are not exports.
    stray = [
        name
        for name, value in vars(tw).items()
        if not name.startswith("_")
        and name not in tw.__all__
        and not (isinstance(value, types.ModuleType) and value.__name__ == f"tradewind.{name}")
    ]
    assert stray == []


@pytest.mark.parametrize("name", MODULES)
def test_the_public_modules_are_reached_from_the_top(name: str) -> None:
    assert getattr(tw, name).__name__ == f"tradewind.{name}"
    assert name in tw.__all__


@pytest.mark.parametrize(
    "module", [tw.runners, tw.strategies, tw.subsets, tw.testing], ids=lambda m: m.__name__
)
def test_a_public_module_exports_sorted_names_that_exist(module: types.ModuleType) -> None:
    assert module.__all__ == in_order(module.__all__)
    assert all(inspect.getdoc(getattr(module, name)) for name in module.__all__)


def test_every_recipe_makes_a_strategy_without_arguments() -> None:
    recipes = [
        value
        for name, value in vars(tw.recipes).items()
        if inspect.isfunction(value)
        and value.__module__ == tw.recipes.__name__
        and not name.startswith("_")
    ]
    assert recipes
    assert all(callable(recipe().propose) for recipe in recipes)


def test_every_error_descends_from_the_base_class() -> None:
    errors = [e for e in vars(tw.errors).values() if inspect.isclass(e)]
    assert errors
    assert all(issubclass(e, tw.errors.TradewindError) for e in errors)
