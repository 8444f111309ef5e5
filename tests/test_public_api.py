"""What Tradewind exports, and nothing more."""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterable

import pytest

import tradewind as tw

MODULES = ("errors", "models", "recipes", "runners", "strategies", "subsets")


def in_order(names: Iterable[str]) -> list[str]:
    """Constants and abbreviations, then classes, then the rest, as ruff sorts them."""
    return sorted(set(names), key=lambda n: (not n.isupper(), not n[0].isupper(), n))


def test_all_is_sorted_and_without_repetition() -> None:
    assert list(tw.__all__) == in_order(tw.__all__)


@pytest.mark.parametrize("name", tw.__all__)
def test_every_exported_name_exists_and_is_documented(name: str) -> None:
    value = getattr(tw, name)
    if name != "__version__":
        assert inspect.getdoc(value)


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


@pytest.mark.parametrize("module", [tw.runners, tw.strategies], ids=lambda m: m.__name__)
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
