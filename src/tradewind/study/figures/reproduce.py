"""How to make a study again: the Python code, the space as data, and the versions."""

from __future__ import annotations

import platform
import textwrap
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from importlib import metadata
from typing import Any

from tradewind import recipes
from tradewind.engine import plan
from tradewind.plain import write_json
from tradewind.space import Space
from tradewind.space.conditions import AtLeast, written
from tradewind.study.figures.facts import Facts

_PACKAGES = ("tradewind", "numpy", "scipy", "scikit-learn")
_SHORT = 88  # characters of a line of code


def reproduce(facts: Facts) -> dict[str, Any]:
    """Everything that a person needs to make the study again, as plain data."""
    return {
        "python": python_code(facts),
        "command": None,
        "space": write_json(facts.space.to_dict()),
        "versions": versions(),
        "machine": f"{platform.system()} on {platform.machine() or 'an unknown processor'}",
    }


def versions() -> dict[str, str]:
    """The versions of what the results depend on."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:  # used without being installed
            found[name] = "unknown"
    return found


def python_code(facts: Facts) -> str:
    """Code that runs: it makes the same study, and leaves the objective to its reader."""
    arguments = [
        "space",
        f"goal={code_of(facts.wanted, 'tw')}",
        f"strategy={_strategy(facts)}",
        *(["direction='minimize'"] if not facts.maximize else []),
        f"seed={facts.seed}",
        *([f"cost={facts.cost_name!r}"] if facts.cost_name != "wall" else []),
        *([f"metric={facts.scale.metric!r}"] if facts.scale.metric else []),
        f"name={facts.name!r}",
    ]
    lines = "".join(f"    {argument},\n" for argument in arguments)
    n = max(len(facts.trials), 1)
    comments = [*_missing(facts), f"# study.optimize(objective, n_trials={n})"]
    return (
        f"import tradewind as tw\n\n{_space(facts.space)}\n"
        f"study = tw.create_study(\n{lines})\n" + "\n".join(comments) + "\n"
    )


def _strategy(facts: Facts) -> str:
    for name, made in (("auto", recipes.auto()), ("random", recipes.random_search())):
        if plan.encode(facts.strategy) == plan.encode(made):
            return repr(name)
    return "'auto'" if _is_own(facts.strategy) else code_of(facts.strategy, "tw.strategies")


def _missing(facts: Facts) -> list[str]:
    """What the code cannot say: parts that somebody wrote themselves."""
    own = [part for part in (facts.wanted, facts.strategy) if _is_own(part)]
    names = [textwrap.shorten(repr(type(part).__name__), 60) for part in own]
    return [
        f"# This study used {name} of your own, which must be put in by hand." for name in names
    ]


def _is_own(part: object) -> bool:
    return bool(plan.must_be_supplied(plan.encode(part)))


def code_of(part: Any, home: str) -> str:
    """A goal or a strategy as code, without what is the default anyway."""
    if _is_own(part):
        return f"{home.split('.')[0]}.Quality()"
    return _code(part, home)


def _code(value: Any, home: str) -> str:
    if isinstance(value, Enum):
        return f"{home}.{type(value).__name__}.{value.name}"
    if not is_dataclass(value):
        return repr(value)
    given = [(f, getattr(value, f.name)) for f in fields(value) if f.init]
    parts = [
        f"{f.name}={_code(v, home)}"
        for f, v in given
        if f.metadata.get("stored", True) and not _is_default(f, v)
    ]
    return f"{home}.{type(value).__name__}({', '.join(parts)})"


def _is_default(field: Field[Any], value: Any) -> bool:
    default = field.default
    if field.default_factory is not MISSING:
        default = field.default_factory()
    return default is not MISSING and type(default) is type(value) and default == value


# ---- the space ----


def _space(space: Space) -> str:
    lines = [f"        {name!r}: tw.{_parameter(p)},\n" for name, p in space.items()]
    clauses = [
        "{" + ", ".join(f"{name!r}: {_condition(c)}" for name, c in clause.items()) + "}"
        for clause in space.forbid
    ]
    forbid = f"    forbid=[{', '.join(clauses)}],\n" if clauses else ""
    return f"space = tw.Space(\n    {{\n{''.join(lines)}    }},\n{forbid})\n"


def _parameter(p: Any) -> str:
    """A parameter as its repr, with the conditions from the package."""
    text = repr(p)
    if not any(isinstance(condition, AtLeast) for condition in p.when.values()):
        return text
    conditions = ", ".join(f"{name!r}: {_condition(c)}" for name, c in p.when.items())
    return f"{text[: text.rindex('when={')]}when={{{conditions}}})"


def _condition(condition: Any) -> str:
    return f"tw.{written(condition)}" if isinstance(condition, AtLeast) else written(condition)
