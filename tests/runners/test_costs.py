"""What an evaluation costs: clocks, memory, named costs, folds and attributes."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.events import data
from tests.runners.trials import trial
from tradewind.plain import MAX_DEPTH
from tradewind.runners import clocks
from tradewind.runners.evaluate import evaluate
from tradewind.runners.outcomes import read_attributes
from tradewind.runners.run import Objective, Run
from tradewind.runners.runner import Failure
from tradewind.types import Outcome, Trial, Usage


class Clocks:
    """Wall and CPU clocks that move when they are told to."""

    wall = cpu = 0.0

    def run(self, seconds: float, cpu: float) -> None:
        self.wall += seconds
        self.cpu += cpu


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    time = Clocks()
    monkeypatch.setattr("time.perf_counter", lambda: time.wall)
    monkeypatch.setattr("time.process_time", lambda: time.cpu)
    monkeypatch.setattr(clocks, "resource", None)  # no children
    return time


def finished(objective: Objective, of: Trial | None = None) -> tuple[Outcome, Usage]:
    result, usage = evaluate(objective, of or trial())
    assert isinstance(result, Outcome), result
    return result, usage


def failed(objective: Objective, of: Trial | None = None) -> str:
    result, _ = evaluate(objective, of or trial())
    assert isinstance(result, Failure), result
    return result.error


# ---- clocks ----


@pytest.mark.parametrize(("cost", "expected"), [("wall", 6.0), ("cpu", 2.0)])
def test_the_study_chooses_the_clock_of_a_whole_call(
    time: Clocks, cost: str, expected: float
) -> None:
    def objective(run: Run) -> float:
        time.run(6.0, cpu=2.0)
        return 0.5

    outcome, usage = finished(objective, trial(cost_name=cost))
    assert (outcome.cost, usage.clock, usage.wall, usage.cpu) == (expected, cost, 6.0, 2.0)


@pytest.mark.parametrize(
    ("cost", "clock", "expected"),
    [("wall", None, 3.0), ("wall", "cpu", 1.0), ("cpu", None, 1.0), ("cpu", "cpu", 1.0)],
)
def test_a_timer_reads_its_clock_or_that_of_the_study(
    time: Clocks, cost: str, clock: Any, expected: float
) -> None:
    def objective(run: Run) -> float:
        time.run(100.0, cpu=100.0)
        with run.timer(clock):
            time.run(2.0, cpu=0.5)
        with run.timer():  # goes on with the same clock
            time.run(1.0, cpu=0.5)
        return 0.5

    outcome, usage = finished(objective, trial(cost_name=cost))
    assert (outcome.cost, usage.clock) == (expected, clock or cost)


@pytest.mark.parametrize(
    ("cost", "used", "rule"),
    [
        ("cpu", ["wall"], "clock must be 'cpu', as this study uses that one, but got 'wall'"),
        ("wall", ["cpu", "wall"], "clock must be 'cpu', as this trial uses that one"),
        ("wall", ["sun"], "clock must be one of 'wall', 'cpu', 'gpu', but got 'sun'"),
    ],
)
def test_clocks_are_not_mixed(cost: str, used: list[Any], rule: str) -> None:
    def objective(run: Run) -> float:
        for clock in used:
            with run.timer(clock):
                pass
        return 0.5

    assert rule in failed(objective, trial(cost_name=cost))


def test_cpu_time_counts_ended_children() -> None:
    work = "import time\nwhile time.process_time() < 0.2: pass"

    def objective(run: Run) -> float:
        subprocess.run([sys.executable, "-c", work], check=True)
        return 0.5

    assert finished(objective, trial(cost_name="cpu"))[0].cost >= 0.2


def test_the_gpu_clock_needs_a_gpu_and_waits_for_it(
    time: Clocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    cuda = SimpleNamespace(is_initialized=lambda: False)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    on_gpu = trial(cost_name="gpu")
    assert "the cost is GPU time, but PyTorch uses no GPU" in failed(lambda run: 0.5, on_gpu)

    def objective(run: Run) -> float:
        cuda.is_initialized = lambda: True
        cuda.synchronize = lambda device: time.run(4.0 if queued.pop() else 0.0, cpu=0.0)
        queued.append(True)
        return 0.5

    queued = [False] * 9
    outcome, usage = finished(objective, on_gpu)
    assert (outcome.cost, usage.clock) == (4.0, "gpu")


# ---- memory ----


@pytest.mark.skipif(not clocks._forget_peak(), reason="this system does not tell the peak")
def test_the_peak_of_each_evaluation_is_its_own() -> None:
    def objective(run: Run) -> float:
        return float(np.ones(2**23 if run.number else 1).sum())  # 64 MiB

    before, large, after = (
        finished(objective, trial(number, cost_name="memory")) for number in (0, 1, 0)
    )
    assert large[0].cost == large[1].memory
    assert large[1].clock == "memory"
    assert large[0].cost > max(before[0].cost, after[0].cost) + 2**25


def test_where_the_peak_is_unknown_it_is_none_and_no_cost(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(clocks, "_PROCESS", tmp_path / "nowhere")
    assert finished(lambda run: 0.5)[1].memory is None
    of = trial(cost_name="memory")
    assert "peak memory, which this system does not tell" in failed(lambda run: 0.5, of)
    reported = {"value": 0.5, "costs": {"memory": 7.0}}
    assert finished(lambda run: reported, of)[0].cost == 7.0


# ---- named costs ----


def test_the_study_chooses_among_named_costs(time: Clocks) -> None:
    def objective(run: Run) -> dict[str, Any]:
        with run.timer():
            time.run(4.0, cpu=3.0)
        return {"value": 0.5, "costs": {"money": np.float32(3.5), "energy": 40}}

    outcome, usage = finished(objective, trial(cost_name="money"))
    assert (outcome.cost, usage.clock) == (3.5, "reported")
    assert outcome.costs == {"money": 3.5, "energy": 40.0, "wall": 4.0}
    outcome, usage = finished(objective)
    assert (outcome.cost, usage.clock) == (4.0, "wall")
    assert outcome.costs == {"money": 3.5, "energy": 40.0}


def test_a_trial_without_the_cost_of_its_study_fails() -> None:
    def objective(run: Run) -> dict[str, Any]:
        return {"value": 0.5, "costs": {"energy": 40}}

    error = failed(objective, trial(cost_name="money"))
    assert "the cost of this study is 'money'" in error
    assert "but got costs={'energy': 40.0}" in error


def test_a_wrong_cost_by_the_way_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    class Hostile:
        def __float__(self) -> float:
            raise RuntimeError("no")

    costs = {"energy": math.nan, "money": -1.0, 3: 4.0, "water": Hostile(), "heat": 2.0}
    outcome, _ = finished(lambda run: {"value": 0.5, "costs": costs})
    assert outcome.costs == {"heat": 2.0}
    assert [record.getMessage().split(":")[0] for record in caplog.records] == [
        f"the cost {name!r} was left out" for name in ("energy", "money", 3, "water")
    ]


def test_costs_are_those_of_one_training() -> None:
    done = Trial(**vars(trial()) | {"cost": 2.0, "trainings": 4, "costs": {"money": 5.0}})
    assert [done.cost_of(name) for name in ("wall", "money", "cpu")] == [2.0, 5.0, None]
    usage = Usage(20.0, 12.0, memory=64.0, clock="reported")
    paid = Trial(**vars(done) | {"usage": usage, "cost_name": "money", "costs": {}})
    names = ("money", "wall", "cpu", "memory", "heat")
    assert [paid.cost_of(name) for name in names] == [2.0, 5.0, 3.0, 64.0, None]


# ---- attributes ----


def test_whatever_else_is_returned_becomes_attributes() -> None:
    answer = {
        "value": 0.5,
        "best_iteration": np.int64(312),
        "f1": np.float32(0.5),
        "curve": np.array([[0.5, 0.75]]),
        "ok": np.bool_(True),
        "names": ("a", None),
    }
    outcome, _ = finished(lambda run: answer)
    assert outcome.attributes == {
        "best_iteration": 312,
        "f1": 0.5,
        "curve": [[0.5, 0.75]],
        "ok": True,
        "names": ["a", None],
    }
    assert type(outcome.attributes["best_iteration"]) is int


def test_what_json_cannot_express_is_left_out_and_the_trial_finishes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Hostile:
        def tolist(self) -> Any:
            raise ZeroDivisionError("no list for you")

    endless: list[Any] = []
    endless.append(endless)
    deep: list[Any] = []
    for _ in range(MAX_DEPTH):
        deep = [deep]
    answer = {
        "value": 0.5,
        "deep": deep,
        "model": object(),
        "hostile": Hostile(),
        "nan": math.nan,
        "bytes": b"",
        "endless": endless,
        "large": "x" * 10**6,
        7: "seven",
        "kept": 1,
    }
    outcome, _ = finished(lambda run: answer)
    assert (outcome.value, outcome.attributes) == (0.5, {"kept": 1})
    assert len(caplog.records) == 8
    assert "the attribute 'model' was left out: must be plain data" in caplog.text


def test_many_attributes_that_do_not_fit_take_few_lines(caplog: pytest.LogCaptureFixture) -> None:
    kept = read_attributes({str(number): number for number in range(10_000)})
    assert 0 < len(kept) < 10_000
    assert len(caplog.messages) == 11
    assert caplog.messages[-1] == f"of 10000 attributes, {10_000 - len(kept)} were left out"


@given(st.dictionaries(st.text(), data, max_size=4))
def test_small_plain_attributes_stay_as_they_are(attributes: dict[str, Any]) -> None:
    assert read_attributes(attributes) == attributes
