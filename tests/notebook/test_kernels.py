"""Real notebooks in a real kernel, without ipywidgets: what is in the file after they have run."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.slow

BLOCKED = """
import sys
sys.modules["ipywidgets"] = None     # as where it is not installed
sys.modules["tqdm.notebook"] = None
"""
STUDY = """
import tradewind as tw
study = tw.create_study({"x": (0.0, 1.0)}, seed=0, name="<b>notebook</b>")
"""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a kernel that runs this interpreter."""
    folder = tmp_path_factory.mktemp("kernels") / "kernels" / "tradewind"
    folder.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "tradewind", "language": "python"}
    (folder / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
    return folder.parents[1]


def execute(
    kernel: Path, monkeypatch: pytest.MonkeyPatch, *cells: str, allow_errors: bool = False
) -> list[list[Any]]:
    """The outputs of each cell."""
    monkeypatch.setenv("JUPYTER_PATH", str(kernel))
    monkeypatch.setenv("IPYTHONDIR", str(kernel / "ipython"))
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the client, about event loops and its own packages
        NotebookClient(
            notebook, kernel_name="tradewind", timeout=300, allow_errors=allow_errors
        ).execute(cwd=str(kernel))
    nbformat.validate(notebook)
    return [cell["outputs"] for cell in notebook["cells"]]


def test_a_search_leaves_one_readable_output(kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    search = """
import time
def objective(trial):
    time.sleep(0.1)
    return {"value": trial.params["x"], "cost": 1.0}
study.optimize(objective, n_trials=8)
"""
    *_, outputs = execute(kernel, monkeypatch, BLOCKED, STUDY, search)
    (output,) = outputs
    assert output["output_type"] == "display_data"
    assert set(output["data"]) == {"text/html", "text/plain"}
    text = output["data"]["text/plain"]
    assert text.startswith("tradewind: 8/8 trials in 0:00:0")
    assert ", best " in text
    assert "running" not in text
    assert "8/8 trials" in output["data"]["text/html"]
    assert 'aria-valuenow="100"' in output["data"]["text/html"]


def test_worker_processes_and_callbacks_do_not_disturb_the_display(
    kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = """
seen = []
def objective(trial):
    return {"value": trial.params["x"], "cost": 1.0}
study.optimize(
    objective, n_trials=6, n_workers=2, callbacks=[lambda study, trial: seen.append(trial.number)]
)
assert sorted(seen) == [0, 1, 2, 3, 4, 5]
"""
    *_, outputs = execute(kernel, monkeypatch, BLOCKED, STUDY, search)
    assert [output["output_type"] for output in outputs] == ["display_data"]
    assert "6/6 trials" in outputs[0]["data"]["text/plain"]


def test_a_search_that_failed_says_how_far_it_came(
    kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = "study.optimize(lambda trial: 1 / (trial.number < 2), n_trials=5, catch=())"
    *_, outputs = execute(kernel, monkeypatch, BLOCKED, STUDY, search, allow_errors=True)
    bar, error = outputs
    assert "3/5 trials" in bar["data"]["text/plain"]
    assert "trial 2 failed: ZeroDivisionError" in bar["data"]["text/plain"]
    assert error["ename"] == "ZeroDivisionError"


def test_nothing_is_shown_if_nothing_is_wanted(
    kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = "study.optimize(lambda trial: 1.0, n_trials=2, show_progress=False)"
    *_, outputs = execute(kernel, monkeypatch, BLOCKED, STUDY, search)
    assert outputs == []


def test_each_search_has_an_output_of_its_own_and_values_are_tables(
    kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = "study.optimize(lambda trial: {'value': trial.params['x'], 'cost': 1.0}, 3)"
    *_, first, second, study, trials, space = execute(
        kernel, monkeypatch, BLOCKED, STUDY, search, search, "study", "study.trials", "study.space"
    )
    assert "3/3 trials" in first[0]["data"]["text/plain"]
    assert "3/3 trials" in second[0]["data"]["text/plain"]
    assert "&lt;b&gt;notebook&lt;/b&gt;" in study[0]["data"]["text/html"]
    assert trials[0]["data"]["text/html"].count("<tr ") == 7
    assert "Space of 1 parameter" in space[0]["data"]["text/html"]
    assert space[0]["data"]["text/plain"].startswith("Space({")
