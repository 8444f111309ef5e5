"""scikit-learn's callbacks, and its own tests of a search."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.sklearn import borrowed
from tests.sklearn.models import Fragile, Known, X, y
from tradewind.sklearn import TradeoffSearchCV

pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks since 1.9")


class Recorder:
    """Writes a line for each hook, so that it hears of other processes, too."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def _write(self, hook: str, estimator: Any, context: Any) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{hook} {context.task_name} {type(estimator).__name__}\n")

    def setup(self, estimator: Any, context: Any) -> None:
        self._write("setup", estimator, context)

    def teardown(self, estimator: Any, context: Any) -> None:
        self._write("teardown", estimator, context)

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        self._write("begin", estimator, context)

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        self._write("end", estimator, context)

    def lines(self) -> Counter[str]:
        return Counter(self.path.read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_callbacks_hear_of_every_task_once(tmp_path: Path, n_jobs: int) -> None:
    recorder = Recorder(tmp_path / "hooks.txt")
    search = TradeoffSearchCV(
        Known(), {"quality": [0.1, 0.2, 0.3]}, n_iter=3, cv=2, n_jobs=n_jobs, random_state=0
    )
    search.set_callbacks(recorder).fit(X, y)
    once = [f"{hook} fit TradeoffSearchCV" for hook in ("setup", "begin", "end", "teardown")]
    tasks = {"search": 1, "candidate-split-evaluation": 6, "refit-with-best-params": 1}
    assert recorder.lines() == Counter(
        dict.fromkeys(once, 1)
        | {
            f"{hook} {task} TradeoffSearchCV": n
            for hook in ("begin", "end")
            for task, n in tasks.items()
        }
    )


def test_a_failed_candidate_ends_its_tasks_and_a_failed_search_tears_down(tmp_path: Path) -> None:

    recorder = Recorder(tmp_path / "hooks.txt")
    search = TradeoffSearchCV(Fragile(), {"quality": [0.9]}, n_iter=1, cv=2, error_score="raise")
    with pytest.raises(RuntimeError, match="too good to be true"):
        search.set_callbacks(recorder).fit(X, y)
    lines = recorder.lines()
    task = "candidate-split-evaluation TradeoffSearchCV"
    assert lines[f"begin {task}"] == lines[f"end {task}"] == 1
    assert lines["teardown fit TradeoffSearchCV"] == 1


@pytest.mark.slow
def test_scikit_learns_own_tests_pass_but_for_known_differences() -> None:
    passed, failed = borrowed.run()
    assert {name.split("[")[0] for name in failed} <= set(borrowed.DIFFERENT)
    assert len(passed) >= 26
