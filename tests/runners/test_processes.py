"""Worker processes while all goes well, or an objective fails by itself."""

from __future__ import annotations

import ctypes
import importlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import tradewind
from tests.runners.scenes import alive, eventually, run_script, starting, written
from tests.runners.trials import NO_LIMITS, all_of, the_one, trial
from tradewind.runners import processes
from tradewind.runners.processes import ProcessRunner, ProcessWorkers
from tradewind.runners.run import Objective, Run
from tradewind.runners.runner import Failure, Lost
from tradewind.types import Outcome

Open = Callable[..., ProcessWorkers]

pytestmark = pytest.mark.filterwarnings("ignore:.* workers share .* core:UserWarning")


@pytest.fixture
def opened() -> Iterator[Open]:
    """Opens workers, and closes them after the test."""
    workers: list[ProcessWorkers] = []

    def opening(objective: Objective, n_workers: int | None = 1, **settings: Any) -> ProcessWorkers:
        runner = ProcessRunner(n_workers, grace=settings.pop("grace", 1.0), **settings)
        workers.append(runner.open(objective, NO_LIMITS))
        return workers[-1]

    yield opening
    for some in workers:
        some.close()


def folds(objective: Callable[[Run], list[float]]) -> Objective:
    return lambda run: {"folds": objective(run)}


def value_of(workers: ProcessWorkers, number: int = 0) -> float:
    result = the_one(workers, number=number).result
    assert isinstance(result, Outcome), result
    return result.value


def failure_of(workers: ProcessWorkers, number: int = 0) -> Failure:
    result = the_one(workers, number=number).result
    assert isinstance(result, Failure), result
    return result


# ---- the description ----


@pytest.mark.parametrize(
    ("settings", "kind", "message"),
    [
        ({"n_workers": 0}, ValueError, "n_workers must be a whole number ≥ 1, but got 0"),
        ({"n_workers": 1.5}, ValueError, "must be a whole number ≥ 1, but got 1.5"),
        ({"n_workers": True}, ValueError, "must be a whole number ≥ 1, but got True"),
        ({"gpus": 0}, ValueError, "gpus must be a whole number ≥ 1, but got 0"),
        ({"gpus": []}, ValueError, "one or more distinct devices"),
        ({"gpus": [1, 1]}, ValueError, r"distinct devices, but got \[1, 1\]"),
        ({"gpus": [-1]}, ValueError, "every GPU must be a whole number ≥ 0, but got -1"),
        ({"gpus": [0.5]}, ValueError, "every GPU must be a whole number ≥ 0"),
        ({"gpus": "0,1"}, TypeError, "a number, or a list"),
        ({"slots_per_gpu": 2}, ValueError, "needs gpus"),
        ({"gpus": 2, "slots_per_gpu": 0}, ValueError, "slots_per_gpu must be a whole number ≥ 1"),
        ({"n_workers": 5, "gpus": 2, "slots_per_gpu": 2}, ValueError, "at most the 4 slots"),
        ({"grace": -1}, ValueError, "grace must be a number ≥ 0, but got -1"),
        ({"grace": "2"}, ValueError, "grace must be a number ≥ 0, but got '2'"),
    ],
)
def test_a_wrong_argument_is_explained(
    settings: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        ProcessRunner(**settings)


def test_a_runner_is_a_value() -> None:
    assert ProcessRunner(2, gpus=2) == ProcessRunner(2, gpus=[0, 1])
    assert ProcessRunner(2, gpus=2) == ProcessRunner(np.int64(2), gpus=np.arange(2))
    with pytest.raises(FrozenInstanceError):
        ProcessRunner(2).n_workers = 3  # type: ignore[misc]


def test_there_is_one_worker_for_each_core_by_default(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "usable_cores", lambda: 2)
    assert opened(lambda run: 1.0, None).slots == 2


def test_elsewhere_than_on_posix_systems_opening_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processes, "_POSIX", False)
    with pytest.raises(RuntimeError, match="POSIX"):
        ProcessRunner(1).open(lambda run: 1.0, NO_LIMITS)


# ---- how the objective arrives ----


def test_closures_lambdas_and_local_classes_arrive(opened: Open) -> None:
    class Scaled:
        def __init__(self, by: float) -> None:
            self.by = by

        def __call__(self, run: Run) -> float:
            return self.by * run.number

    scaled = Scaled(0.5)
    assert value_of(opened(scaled), 3) == 1.5
    assert value_of(opened(lambda run: scaled(run) + 1), 3) == 2.5


SCRIPT = """
import os
from pathlib import Path
from beside import score
from tradewind.runners.processes import ProcessRunner
from tradewind.runners.runner import TrialLimits
from tradewind.types import Origin, State, Trial

SHIFT = 10

class Own(Exception):
    pass

def objective(run):
    if run.number == 1:
        raise Own
    return score(run) + SHIFT + float(Path("here.txt").read_text())

workers = ProcessRunner(1).open(objective, TrialLimits())
for number in (0, 1):
    workers.submit(Trial(number, {}, State.RUNNING, Origin.DESIGN, seed=0))
    done, = workers.wait()
    print(done.result.value if number == 0 else done.result.is_a(Own))
workers.close()
"""


def test_a_script_needs_no_guard_and_its_neighbours_are_found(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "here.txt").write_text("100")
    (tmp_path / "scripts" / "beside.py").write_text("def score(run):\n    return 1.0\n")
    script = run_script(tmp_path / "scripts" / "main.py", SCRIPT, cwd=tmp_path)
    out, _ = script.communicate()
    assert script.returncode == 0
    assert out.split() == ["111.0", "True"]


def test_an_objective_that_cannot_be_pickled_is_refused_at_once() -> None:
    lock = threading.Lock()
    with pytest.raises(TypeError, match=r"cannot be sent to worker processes.*lock"):
        ProcessRunner(1).open(lambda run: lock.locked(), NO_LIMITS)
    with pytest.raises(TypeError, match="must be callable, but got 3"):
        ProcessRunner(1).open(3, NO_LIMITS)  # type: ignore[arg-type]


class _Arriving:
    """An objective that does something when it is unpickled."""

    def __init__(self, act: Callable[..., Any], *args: Any) -> None:
        self.act, self.args = act, args

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self.act, self.args

    def __call__(self, run: Run) -> float:
        return 1.0


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        (_Arriving(importlib.import_module, "nowhere"), "No module named 'nowhere'"),
        (_Arriving(os._exit, 7), "it ended with exit code 7 while it started"),
    ],
)
def test_an_objective_that_workers_cannot_load_is_refused_at_once(
    objective: Objective, message: str
) -> None:
    before = set(psutil.Process().children())
    with pytest.raises(RuntimeError, match=message):
        ProcessRunner(2).open(objective, NO_LIMITS)
    assert set(psutil.Process().children()) <= before


def test_workers_that_keep_dying_are_not_started_for_ever(opened: Open, tmp_path: Path) -> None:
    def load(ill: Path) -> Objective:
        if ill.exists():
            os._exit(3)
        return lambda run: os._exit(1)

    workers = opened(_Arriving(load, tmp_path / "ill"))
    (tmp_path / "ill").touch()
    assert isinstance(the_one(workers).result, Failure)
    for number in range(3):
        result = the_one(workers, number=number).result
        assert isinstance(result, Lost)
        assert "exit code 3 while it started" in result.reason
    workers.submit(trial())
    with pytest.raises(RuntimeError, match="keep failing to start"):
        workers.wait()


def test_a_worker_whose_folder_has_gone_says_so(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    workers = opened(lambda run: os._exit(1))
    folder.rmdir()
    assert isinstance(the_one(workers).result, Failure)
    result = the_one(workers).result
    assert isinstance(result, Lost)
    assert "could not be executed: No such file or directory" in result.reason


# ---- the worker ----


def test_a_worker_loads_no_more_than_numpy_by_itself(opened: Open) -> None:
    heavy = ("scipy", "pandas", "sklearn", "joblib", "psutil", "distributed", "ray", "torch")
    ours = ("models", "optimizer", "goals", "log", "engine", "study", "sklearn")
    names = (*heavy, *(f"tradewind.{room}" for room in ours))
    workers = opened(folds(lambda run: [float(name in sys.modules) for name in names]))
    result = the_one(workers).result
    assert isinstance(result, Outcome)
    assert dict(zip(names, result.folds, strict=True)) == dict.fromkeys(names, 0.0)


def naming_it_globally() -> Objective:
    def objective(run: Run) -> float:
        before = float("tradewind.space.space" in sys.modules)
        assert tradewind.Space({"x": tradewind.Float(0, 1)}) is not None
        return before

    return objective


def naming_it_in_a_closure() -> Objective:
    import tradewind as tw

    def objective(run: Run) -> float:
        before = float("tradewind.space.space" in sys.modules)
        assert (lambda: tw.Space({"x": tw.Float(0, 1)}))() is not None
        return before

    return objective


def naming_a_module_of_it() -> Objective:
    def objective(run: Run) -> float:
        before = float("tradewind.models.text" in sys.modules)
        assert tradewind.models.tokenize("a word")
        return before

    return objective


@pytest.mark.parametrize(
    "make", [naming_it_globally, naming_it_in_a_closure, naming_a_module_of_it]
)
def test_what_an_objective_uses_of_the_package_is_loaded_before_its_first_trial(
    opened: Open, make: Callable[[], Objective]
) -> None:
    assert value_of(opened(make())) == 1.0


def test_a_function_of_a_module_finds_the_package_loaded(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "objectives.py").write_text(
        "import sys\n"
        "import tradewind as tw\n"
        "def objective(run):\n"
        "    before = float('tradewind.space.space' in sys.modules)\n"
        "    assert tw.Space({'x': tw.Float(0, 1)}) is not None\n"
        "    return before\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert value_of(opened(importlib.import_module("objectives").objective)) == 1.0


def test_a_worker_serves_trial_after_trial_in_a_session_of_its_own(opened: Open) -> None:
    workers = opened(folds(lambda run: [os.getpid(), os.getsid(0)]))
    first, second = (the_one(workers, number=n).result for n in (0, 1))
    assert isinstance(first, Outcome)
    assert isinstance(second, Outcome)
    assert first.folds == second.folds
    assert first.folds[0] == first.folds[1]  # the leader of a session
    assert first.folds[0] != os.getpid()


def test_nothing_can_be_typed_into_a_worker(opened: Open) -> None:
    assert value_of(opened(lambda run: float(len(sys.stdin.read())))) == 0.0


def test_a_process_that_the_objective_forks_does_not_answer_for_it(opened: Open) -> None:
    def objective(run: Run) -> float:
        if run.number == 0 and os.fork() == 0:
            raise ValueError("in the child")
        return float(run.number)

    workers = opened(objective)
    assert [value_of(workers, number) for number in (0, 1, 2)] == [0.0, 1.0, 2.0]


def test_what_is_too_much_is_refused(opened: Open) -> None:
    workers = opened(lambda run: 1.0)
    workers.submit(trial(0))
    with pytest.raises(RuntimeError, match="no slot is free"):
        workers.submit(trial(1))
    all_of(workers, 1)
    workers.close()
    with pytest.raises(RuntimeError, match="are closed"):
        workers.submit(trial(1))


def test_concurrency_is_the_mean_number_of_running_trials(opened: Open, tmp_path: Path) -> None:
    def objective(run: Run) -> float:
        eventually(lambda: (tmp_path / f"go{run.number}").exists())
        return 1.0

    workers = opened(objective, 2)
    for number in (0, 1):
        workers.submit(trial(number))
    shared = []
    for number in (0, 1):
        (tmp_path / f"go{number}").touch()
        shared += [done.usage.concurrency for done in all_of(workers, 1) if done.usage]
    (tmp_path / "go2").touch()
    alone = the_one(workers, number=2).usage
    assert alone is not None
    assert alone.concurrency == pytest.approx(1.0)
    assert shared[0] == pytest.approx(2.0, abs=0.2)
    assert 1.0 < shared[1] <= shared[0]


# ---- crashes ----


@pytest.mark.parametrize(
    ("crash", "message"),
    [
        (lambda run: ctypes.string_at(0), "was killed by SIGSEGV"),
        (lambda run: os._exit(5), "ended with exit code 5"),
        (lambda run: os.kill(os.getpid(), signal.SIGKILL), "killed by SIGKILL, perhaps for memory"),
        (lambda run: os.closerange(3, 4096), "ended with exit code 0"),
    ],
    ids=["segfault", "exit", "kill", "close"],
)
def test_a_crash_is_the_failure_of_its_trial_only(
    opened: Open, crash: Callable[[Run], Any], message: str
) -> None:
    workers = opened(lambda run: crash(run) if run.number == 0 else float(os.getpid()))
    before = value_of(workers, 1)
    failure = failure_of(workers)
    assert message in failure.error
    assert failure.seconds is not None
    assert failure.raised is None
    assert value_of(workers, 2) != before


def test_a_crash_takes_what_was_started_with_it(opened: Open, tmp_path: Path) -> None:
    workers = opened(starting(tmp_path / "pids", session=True, then=lambda run: os._exit(1)))
    failure_of(workers)
    assert not [pid for pid in written(tmp_path / "pids") if alive(pid)]


def test_a_crash_is_seen_though_a_child_keeps_the_channel_open(opened: Open) -> None:
    def objective(run: Run) -> None:
        if os.fork() == 0:
            time.sleep(600)
        os._exit(6)

    assert "exit code 6" in failure_of(opened(objective)).error


def test_a_worker_that_dies_idle_is_replaced(opened: Open) -> None:
    workers = opened(lambda run: float(os.getpid()))
    first = int(value_of(workers))
    os.kill(first, signal.SIGKILL)
    eventually(lambda: not alive(first))
    done = the_one(workers)
    if isinstance(done.result, Lost):  # seen too early by us, and so too early by the driver
        done = the_one(workers)
    assert isinstance(done.result, Outcome)
    assert done.result.value != first


# ---- exceptions ----


class Hostile(Exception):
    def __reduce__(self) -> Any:
        raise SystemExit("not me")


class Incomplete(Exception):
    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code} {text}")


def _raise(error: BaseException) -> float:
    raise error


@pytest.mark.parametrize(
    ("kind", "args"),
    [(Hostile, ["the text"]), (Incomplete, [3, "the text"]), (ValueError, ["the text" * 20_000])],
    ids=["hostile", "incomplete", "huge"],
)
def test_an_exception_travels_as_text(opened: Open, kind: type[Exception], args: list[Any]) -> None:
    workers = opened(lambda run: _raise(kind(*args)) if run.number == 0 else 1.0)
    failure = failure_of(workers)
    assert kind.__name__ in failure.error
    assert "the text" in failure.error
    assert failure.raised is None
    assert failure.is_a(kind)
    assert value_of(workers, 1) == 1.0


def test_an_exception_says_where_in_the_worker_it_was_raised_and_what_it_is(opened: Open) -> None:
    class Local(LookupError):
        pass

    def deep(run: Run) -> float:
        raise Local("as scripted")

    failure = failure_of(opened(lambda run: deep(run)))
    assert "in deep" in failure.error
    assert failure.error.rstrip().endswith("Local: as scripted")
    assert failure.is_a(Local)
    assert failure.is_a(LookupError)
    assert not failure.is_a(ValueError)


def test_an_exception_of_a_worker_runs_no_code_of_its_own_in_the_driver(opened: Open) -> None:
    driver = os.getpid()

    class Blocking(Exception):
        def __init__(self, text: str) -> None:
            if os.getpid() == driver:
                time.sleep(600)

    def objective(run: Run) -> float:
        raise Blocking("as scripted")

    assert "Blocking: as scripted" in failure_of(opened(objective)).error


def in_a_new_interpreter(script: str, *flags: str, **options: Any) -> str:
    """What a script says to standard error, run by an interpreter of its own."""
    command = [sys.executable, *flags, "-c", textwrap.dedent(script)]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False, **options)
    return done.stderr


PRINTS = """
    import os, sys
    {before}
    import tradewind as tw
    study = tw.create_study({{"x": (0.0, 1.0)}}, seed=0)
    study.optimize(lambda run: print("hello", flush=True) or 0.5, 2, n_workers=1)
    print([t.value for t in study.trials], file=sys.stderr)
"""


@pytest.mark.parametrize(
    "closed",
    ["os.close(1)", "os.close(0); os.close(1)", "os.close(1); os.open(os.devnull, os.O_RDONLY)"],
)
def test_workers_of_a_driver_with_closed_streams_may_print(closed: str) -> None:
    assert "[0.5, 0.5]" in in_a_new_interpreter(PRINTS.format(before=closed))


def test_the_guard_has_the_options_of_the_drivers_interpreter() -> None:
    path = os.pathsep.join(sys.path)
    environment = {**os.environ, "PYTHONHOME": "/nonexistent"}
    script = PRINTS.format(before=f"sys.path[:] = {path!r}.split(os.pathsep)")
    assert "[0.5, 0.5]" in in_a_new_interpreter(script, "-E", env=environment)


def test_a_folder_that_is_gone_is_named_and_no_guard_stays(tmp_path: Path) -> None:
    script = """
    import os, sys, psutil
    import tradewind as tw
    os.rmdir(os.getcwd())
    try:
        tw.create_study({"x": (0.0, 1.0)}).optimize(lambda run: 0.5, 1, n_workers=1)
    except tw.errors.WorkerError as error:
        print(error, len(psutil.Process().children()), file=sys.stderr)
    """
    folder = tmp_path / "gone"
    folder.mkdir()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    said = in_a_new_interpreter(script, cwd=folder, env=environment)
    assert "change to another one 0" in said
