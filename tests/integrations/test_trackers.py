"""What all trackers promise: they neither slow nor end a search."""

from __future__ import annotations

import ast
import logging
import sys
import threading
from pathlib import Path

import pytest

import tradewind as tw
from tradewind.integrations.background import Background
from tradewind.integrations.tracker import Facts, Tracker
from tradewind.types import Trial

PACKAGE = Path(tw.__file__).parent

# Who may print, and why.
PRINTERS = {
    "cli": "it is a program",
    "dashboard": "it is a program: it says where the page is",
    "study/progress.py": "the line of a search that is watched, to stderr",
    "engine/signals.py": "the answer to Ctrl-C, to stderr",
    "sklearn/trials.py": "what verbose= asks for, as scikit-learn's own searches do",
}


class Kept(Tracker):
    """A tracker that keeps what it gets."""

    def __init__(self) -> None:
        super().__init__(name="Kept", wait=60.0)
        self.numbers: list[int] = []
        self.all: list[Facts] = []

    def _log_trial(self, facts: Facts, trial: Trial) -> None:
        self.numbers.append(trial.number)

    def _log_all(self, facts: Facts) -> None:
        self.all.append(facts)


def test_a_tracker_hears_of_each_trial_and_of_the_end() -> None:
    study, tracker = tw.create_study({"x": (0.0, 1.0)}, seed=0), Kept()
    study.optimize(lambda trial: trial.params["x"], n_trials=4, callbacks=[tracker])
    assert tracker.numbers == [0, 1, 2, 3]
    (facts,) = tracker.all
    assert [trial.number for trial in facts.trials] == [0, 1, 2, 3]
    assert facts.chosen == study.best.number
    assert facts.sentence == str(study.explain())


def test_a_tracker_hears_of_the_end_of_a_search_that_fails() -> None:
    study, tracker = tw.create_study({"x": (0.0, 1.0)}, seed=0), Kept()
    with pytest.raises(ZeroDivisionError):
        study.optimize(lambda trial: 1 / 0, n_trials=4, catch=(), callbacks=[tracker])
    (facts,) = tracker.all
    assert facts.chosen is None
    assert "no trial of this study has finished" in facts.sentence


def test_a_callback_of_your_own_may_hear_of_the_end_and_may_not_spoil_it() -> None:
    class Mine:
        def __init__(self) -> None:
            self.ended = 0

        def __call__(self, study: tw.Study, trial: tw.Trial) -> None:
            assert self.ended == 0

        def search_ended(self, study: tw.Study) -> None:
            self.ended += 1
            raise ValueError("too late")

    study, mine = tw.create_study({"x": (0.0, 1.0)}, seed=0), Mine()
    study.optimize(lambda trial: 1.0, n_trials=2, callbacks=[mine])
    assert mine.ended == 1


def test_jobs_are_done_in_order_by_one_thread_that_ends() -> None:
    background, done = Background("jobs"), list[int]()
    for i in range(100):
        background.do(lambda i=i: done.append(i))  # type: ignore[misc]
    assert background.wait(60.0)
    assert done == list(range(100))
    assert "tradewind-jobs" not in [thread.name for thread in threading.enumerate()]


def test_after_a_failure_jobs_are_skipped_for_a_while_and_one_line_is_logged(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("tradewind.integrations.background.time.monotonic", lambda: now[0])
    background, done = Background("jobs"), list[int]()
    background._skip_until = -1.0
    for _ in range(2):
        background.do(lambda: 1 / 0)  # type: ignore[arg-type, return-value]
        background.do(lambda: done.append(1))
        assert background.wait(60.0)
        assert done == []
        now[0] += 61.0
    background.do(lambda: done.append(2))
    assert background.wait(60.0)
    assert done == [2]
    assert caplog.text.count("jobs does not take the results") == 1


def test_a_tool_that_wants_to_end_the_program_ends_nothing() -> None:
    background = Background("jobs")
    background.do(sys.exit)
    assert background.wait(60.0)
    assert background.is_failing


def test_the_first_line_of_a_failure_is_logged_in_full(caplog: pytest.LogCaptureFixture) -> None:
    Background("jobs").failed(ValueError(f" {'long ' * 100}end\nmore"))
    assert "long end)" in caplog.text
    assert "more" not in caplog.text


def test_waiting_for_a_job_that_hangs_ends_in_time() -> None:
    background, released = Background("jobs"), threading.Event()
    background.do(lambda: released.wait(60.0) and None)
    assert not background.wait(0.0)
    released.set()
    assert background.wait(60.0)


# ---- the library is silent, but for its logger ----


def test_the_library_adds_no_handler() -> None:
    assert logging.getLogger("tradewind").handlers == []
    assert logging.getLogger("tradewind").level == logging.NOTSET


def prints(tree: ast.AST) -> list[int]:
    """The lines that print, or write to the standard output."""
    lines = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == "print":
            lines.append(node.lineno)
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "sys.stdout.write":
            lines.append(node.lineno)
    return sorted(lines)


@pytest.mark.parametrize("room", sorted({p.name for p in PACKAGE.iterdir()} - {"__pycache__"}))
def test_no_room_prints(room: str) -> None:
    found = []
    for file in [PACKAGE / room, *(PACKAGE / room).rglob("*.py")]:
        name = file.relative_to(PACKAGE).as_posix()
        if file.suffix != ".py" or any(name.startswith(allowed) for allowed in PRINTERS):
            continue
        tree = ast.parse(file.read_text(encoding="utf-8"))
        found += [f"{name}:{line}" for line in prints(tree)]
    assert found == []


def test_the_check_sees_what_prints() -> None:
    code = "import sys\nprint(1)\nsys.stdout.write('x')\nshow = print\n"
    assert prints(ast.parse(code)) == [2, 3, 4]
