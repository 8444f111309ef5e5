"""One evaluation in a process of its own, wherever it is asked for."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.runners.scenes import STUBBORN, alive, eventually, run_script, starting, written
from tests.runners.trials import NO_LIMITS, trial
from tradewind.runners.apart import evaluate_apart
from tradewind.runners.messages import pack
from tradewind.runners.run import Run
from tradewind.runners.runner import Done, Failure, Stopped, TrialLimits
from tradewind.types import Outcome


def value(done: Done) -> float:
    assert isinstance(done.result, Outcome), done.result
    return done.result.value


def test_an_idle_process_serves_the_next_trial_of_its_objective() -> None:
    blob, other = pack(lambda run: os.getpid()), pack(lambda run: os.getpid() + 0.5)
    done = evaluate_apart(blob, trial(3), limits=NO_LIMITS)
    assert done.trial == trial(3)
    assert done.usage is not None
    assert value(evaluate_apart(blob, trial(4), limits=NO_LIMITS)) == value(done) != os.getpid()
    assert value(evaluate_apart(other, trial(4), limits=NO_LIMITS)) != value(done) + 0.5


def test_a_process_has_one_device() -> None:
    blob = pack(lambda run: {"value": os.getpid(), "folds": [run.device == "cuda:0"]})
    first, second, third = (
        evaluate_apart(blob, trial(), limits=NO_LIMITS, device=device)
        for device in ("cpu", "cuda:0", "cuda:0")
    )
    assert value(first) != value(second) == value(third)
    assert [done.result.folds for done in (first, second)] == [(0.0,), (1.0,)]  # type: ignore[union-attr]
    assert [done.usage and done.usage.device for done in (first, second)] == ["cpu", "cuda:0"]


def test_threads_have_processes_of_their_own(tmp_path: Path) -> None:
    def objective(run: Run) -> float:
        (tmp_path / str(run.number)).touch()
        eventually((tmp_path / str(1 - run.number)).exists)
        return os.getpid()

    blob, values = pack(objective), []
    threads = [
        threading.Thread(
            target=lambda n=n: values.append(
                value(evaluate_apart(blob, trial(n), limits=NO_LIMITS))
            )
        )
        for n in (0, 1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(values)) == 2


def endless(run: Run) -> None:
    time.sleep(600)


@pytest.mark.parametrize(
    ("settings", "result"),
    [
        ({"limits": TrialLimits(timeout=0.3)}, Failure),
        ({"limits": TrialLimits(memory=1000)}, Failure),
        ({"within": 0.3}, Stopped),
        ({"why_stop": lambda: "as scripted"}, Stopped),
    ],
    ids=["timeout", "memory", "within", "why_stop"],
)
def test_what_goes_over_is_killed(settings: dict[str, Any], result: type) -> None:
    assert isinstance(
        evaluate_apart(pack(endless), trial(), **{"limits": NO_LIMITS, **settings}).result, result
    )


def test_a_crash_is_a_failure_and_the_next_trial_runs() -> None:
    blob = pack(lambda run: os._exit(4) if run.number == 0 else 1.0)
    result = evaluate_apart(blob, trial(0), limits=NO_LIMITS).result
    assert isinstance(result, Failure)
    assert "exit code 4" in result.error
    assert value(evaluate_apart(blob, trial(1), limits=NO_LIMITS)) == 1.0


def test_an_objective_that_cannot_be_loaded_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="could not start: the objective cannot be loaded"):
        evaluate_apart(b"nothing of the kind", trial(), limits=NO_LIMITS)


CALLER = """
from pathlib import Path
from tests.runners.scenes import SLEEPER, starting
from tests.runners.trials import NO_LIMITS, trial
from tradewind.runners.apart import evaluate_apart
from tradewind.runners.messages import pack

evaluate_apart(pack(lambda run: 1.0), trial(), limits=NO_LIMITS)
"""
WAITING = (
    "evaluate_apart(pack(starting(Path(FOLDER, 'pids'), session=True)), trial(), limits=NO_LIMITS)"
)


def test_processes_go_with_a_caller_that_is_killed(tmp_path: Path) -> None:
    code = f"FOLDER = {str(tmp_path)!r}\n{CALLER}\n{WAITING}"
    with run_script(tmp_path / "caller.py", code) as caller:
        pids = written(tmp_path / "pids")
        pids += [p.pid for p in psutil.Process(caller.pid).children(recursive=True)]
        # the guard, an idle worker and its keeper, a busy one, its keeper and its child
        assert len(set(pids)) == 6
        caller.send_signal(signal.SIGKILL)
    eventually(lambda: not [pid for pid in pids if alive(pid)])


def test_processes_go_with_a_caller_that_ends(tmp_path: Path) -> None:
    every = "psutil.Process().children(recursive=True)"
    code = f"{CALLER}\nimport psutil; print(*[p.pid for p in {every}])"
    with run_script(tmp_path / "caller.py", code) as caller:
        out, _ = caller.communicate()
    assert caller.returncode == 0
    assert len(out.split()) == 3  # the guard, a keeper and a worker
    assert not [pid for pid in map(int, out.split()) if alive(pid)]


def test_a_child_of_a_stopped_trial_goes_with_it(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    blob = pack(starting(file, STUBBORN, session=True))
    done = evaluate_apart(
        blob, trial(), limits=NO_LIMITS, why_stop=lambda: "seen" if file.exists() else None
    )
    assert done.result == Stopped("seen")
    assert not [pid for pid in written(file) if alive(pid)]
