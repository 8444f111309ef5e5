"""Imports go one way, and `import tradewind` stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tradewind

PACKAGE = Path(tradewind.__file__).parent

# Each room, and the rooms that it may import. Everything else is a fault.
BASE = (
    *("types", "errors", "bounds", "checks", "plain", "paths", "seeds", "interrupts"),
    *("output", "html", "amounts", "fields"),
)
ROOMS = {
    "types": ("amounts", "errors", "bounds", "html"),
    "errors": (),
    "bounds": ("errors", "plain"),
    "checks": ("amounts", "errors", "plain", "types"),
    "plain": (),
    "fields": ("bounds", "plain", "types"),
    "paths": (),
    "seeds": (),
    "interrupts": ("output",),
    "output": (),
    "html": (),
    "amounts": (),
    "space": BASE,
    "data": BASE,
    "models": (*BASE, "space", "data"),
    "goals": BASE,
    "optimizer": (*BASE, "space", "data", "goals"),
    "log": (*BASE, "space"),
    "runners": (*BASE, "data"),
    "recipes": ("optimizer", "goals"),
    "engine": (*BASE, "space", "goals", "optimizer", "log", "runners"),
    "charts": BASE,
    "study": (
        *(*BASE, "space", "data", "goals", "optimizer", "recipes", "log", "runners", "engine"),
        "charts",
    ),
    "sklearn": (*BASE, "space", "data", "goals", "optimizer", "log", "runners", "study"),
    "integrations": (*BASE, "study"),
    "dashboard": (*BASE, "space", "goals", "charts", "engine", "log", "study"),
    "cli": (
        *(*BASE, "space", "goals", "recipes", "runners", "log", "charts", "study", "dashboard"),
        "__init__",
    ),
    "__main__": ("cli",),
    # public doors: nothing but names
    "stopping": ("optimizer",),
    "strategies": ("optimizer",),
    "subsets": ("data",),
    "testing": (*BASE, "space", "goals", "optimizer", "log", "runners", "engine", "study"),
    "__init__": ("*",),
}

HEAVY = (
    *("cloudpickle", "distributed", "gensim", "lightgbm", "matplotlib", "mlflow", "pandas"),
    *("plotly", "psutil", "psycopg", "ray", "rich", "scipy.stats", "sklearn", "snowballstemmer"),
    *("sqlite3", "starlette", "tensorboard", "torch", "tqdm", "typer", "uvicorn"),
)
EXTRAS = (
    *("distributed", "gensim", "gpytorch", "lightgbm", "matplotlib", "mlflow", "pandas"),
    *("plotly", "psycopg", "ray", "snowballstemmer", "starlette", "tensorboard", "torch"),
    "uvicorn",
)

FILES = sorted(PACKAGE.rglob("*.py"))


def part_of(file: Path) -> str:
    return file.relative_to(PACKAGE).with_suffix("").parts[0]


def imported_parts(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """The parts of the package that a module imports anywhere, with line numbers.

    A name taken from the package itself counts as `__init__`: nothing inside may ask for it.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are absolute"
            names = [node.module or ""]
            if node.module == "tradewind":
                names = [f"tradewind.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            root, *rest = name.split(".")
            if root == "tradewind":
                known = rest and ((PACKAGE / rest[0]).is_dir() or exists(rest[0]))
                yield (rest[0] if known else "__init__"), node.lineno


def exists(part: str) -> bool:
    return (PACKAGE / f"{part}.py").is_file()


def fault(room: str, other: str) -> str | None:
    """Why `room` may not import `other`; None if it may."""
    if other == room or other in ROOMS[room] or "*" in ROOMS[room]:
        return None
    return f"{room} may import {', '.join(ROOMS[room]) or 'nothing'}, but not {other}"


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(PACKAGE)))
def test_imports_go_one_way(file: Path) -> None:
    part = part_of(file)
    assert part in ROOMS, f"{part!r} is not in ROOMS yet: add a line"
    faults = [
        f"{file.relative_to(PACKAGE)}:{line}: {why}"
        for other, line in imported_parts(ast.parse(file.read_text(encoding="utf-8")))
        if (why := fault(part, other))
    ]
    assert not faults, "\n".join(faults)


def test_no_two_parts_import_each_other() -> None:
    knows: dict[str, set[str]] = {}
    for file in FILES:
        others = {other for other, _ in imported_parts(ast.parse(file.read_text(encoding="utf-8")))}
        knows.setdefault(part_of(file), set()).update(others - {part_of(file)})
    while leaves := [part for part, others in knows.items() if not others & knows.keys()]:
        for part in leaves:
            del knows[part]
    assert not knows, f"these parts import each other in a circle: {sorted(knows)}"


@pytest.mark.parametrize(
    ("room", "line"),
    [
        ("space", "from tradewind.study.study import Study"),
        ("goals", "def f():\n    import tradewind.optimizer.strategies.bayes"),
        ("goals", "from tradewind import strategies"),
        ("study", "from tradewind import Space"),
        ("log", "from tradewind.optimizer.history import History"),
        ("optimizer", "from tradewind.log import memory"),
        ("engine", "from tradewind.study.study import Study"),
        ("study", "from tradewind import models"),
    ],
)
def test_the_check_sees_a_wrong_import(room: str, line: str) -> None:
    others = [other for other, _ in imported_parts(ast.parse(line))]
    assert [fault(room, other) is not None for other in others] == [True]


def run(code: str) -> str:
    """What `code` prints in a fresh interpreter in which warnings are errors."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


BLOCK = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if any(name == b or name.startswith(b + ".") for b in {blocked!r}):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
"""


def test_importing_tradewind_loads_nothing_heavy() -> None:
    loaded = run("import sys, tradewind; print(*sys.modules)").split()
    assert "tradewind" in loaded
    assert sorted(set(loaded) & set(HEAVY)) == []


def test_tradewind_is_importable_where_the_heavy_packages_are_not() -> None:
    light = "[n for n in tw.__all__ if n != 'TradeoffSearchCV']"
    code = f"import tradewind as tw; [getattr(tw, n) for n in {light}]"
    run(BLOCK.format(blocked=HEAVY) + code)


def test_a_study_runs_without_the_extras() -> None:
    code = """
import tradewind as tw
study = tw.create_study(tw.Space({"x": tw.Float(0, 1)}), goal=tw.Tradeoff(alpha=0.1), seed=0)
study.optimize(lambda trial: {"value": trial.params["x"], "cost": 1.0}, n_trials=12)
print(len(study.trials), len(study.frontier()))
try:
    study.to_frame()
except ImportError as error:
    print(error)
"""
    out = run(BLOCK.format(blocked=EXTRAS) + code).splitlines()
    assert out[0].split()[0] == "12"
    assert "pip install pandas" in out[1]
