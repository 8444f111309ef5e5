"""What users write passes `mypy --strict`, as their editors and their checks run it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import ROOT, blocks

# A comment `type: ignore` is an error of its own if the line has no error.
SCRIPT = """
import tradewind as tw


def objective(trial: tw.Run) -> float:
    with trial.timer():
        x: float = trial.params["x"]
    trial.suggest_float("x", 0, 1)  # type: ignore[attr-defined]
    return 1.0 - x


def report(study: tw.Study, trial: tw.Trial) -> None:
    value: float = trial.value  # type: ignore[assignment]
    print(value)


space = tw.Space({"x": tw.Float(0, 1, step=0.1), "n": tw.Int(8, 64, step=8)})
study = tw.create_study(space, goal=tw.Tradeoff(alpha=0.3), seed=0)
study.optimize(objective, n_trials=3, timeout="2h", callbacks=[report])
study.optimize(objective, 3, n_jobs=4)  # type: ignore[arg-type]
tw.create_study(space, study_name="a")  # type: ignore[arg-type]
study.best_trial  # type: ignore[attr-defined]
tw.Tradeof(alpha=0.3)  # type: ignore[attr-defined]

better = study.best.value + 1.0
doubled = study.best_value * 2
x = study.best_params["x"] + 1.0
cheapest = study.frontier()[0].value - study.best_for(tw.Quality()).value
n: int = study.best.params["n"]
"""


@pytest.mark.slow
def test_the_lines_of_users_and_of_the_readme_pass_mypy_strict(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    readme = "\n".join(block.code for block in blocks(text) if block.kind == "python")
    for name, code in {"script.py": SCRIPT, "readme.py": readme}.items():
        (tmp_path / name).write_text(code, encoding="utf-8")
    # The objective of the README has no annotations: people write it that way.
    options = ["--strict", "--allow-untyped-defs", "--ignore-missing-imports", "--config-file="]
    options += ["script.py", "readme.py"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_says_that_it_is_typed() -> None:
    assert (ROOT / "src" / "tradewind" / "py.typed").exists()
