"""The share of the machine that each worker process gets."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

import tradewind as tw
from tests.runners.trials import NO_LIMITS, all_of, trial
from tradewind.runners import processes
from tradewind.runners.processes import ProcessRunner
from tradewind.runners.resources import (
    _count_gpus,
    _quota,
    count_gpus,
    limit_threads,
    usable_cores,
    visible_devices,
)
from tradewind.runners.run import Run
from tradewind.types import Outcome, Usage


def evaluated(runner: ProcessRunner, objective: object, n: int) -> list[tuple[Outcome, Usage]]:
    workers = runner.open(objective, NO_LIMITS)  # type: ignore[arg-type]
    for number in range(n):
        workers.submit(trial(number))
    done = all_of(workers, n)
    workers.close()
    assert all(isinstance(one.result, Outcome) for one in done), done
    return [(one.result, one.usage) for one in done]  # type: ignore[misc]


def seen(run: Run) -> float:
    assert run.device == "cuda:0"
    return float(os.environ["CUDA_VISIBLE_DEVICES"])


# ---- cores ----


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"cpu.max": "250000 100000\n"}, 2),
        ({"cpu.max": "50000 100000\n"}, 1),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "300000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 3),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({}, None),
    ],
)
def test_the_quota_of_a_container_is_read(
    tmp_path: Path, files: dict[str, str], cores: int | None
) -> None:
    (tmp_path / "cpu").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert _quota(tmp_path) == cores


def test_some_cores_are_usable() -> None:
    assert 1 <= usable_cores() <= (os.cpu_count() or 1)


def test_a_smaller_number_of_threads_that_the_user_has_set_is_kept() -> None:
    given = {"OMP_NUM_THREADS": "2,1", "MKL_NUM_THREADS": "16", "NUMEXPR_NUM_THREADS": "many"}
    threads = limit_threads({**given, "HOME": "/home"}, 4)
    assert threads.pop("HOME") == "/home"
    assert threads.pop("OMP_NUM_THREADS") == "2,1"
    assert set(threads.values()) == {"4"}
    assert len(threads) == 5


def test_workers_share_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "usable_cores", lambda: 7)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    names = "OMP_NUM_THREADS", "MKL_NUM_THREADS"
    done = evaluated(
        ProcessRunner(2), lambda run: {"folds": [float(os.environ[name]) for name in names]}, 2
    )
    assert [outcome.folds for outcome, _ in done] == [(1.0, 3.0)] * 2


def test_more_workers_than_cores_are_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "usable_cores", lambda: 1)
    with pytest.warns(UserWarning, match="2 workers share 1 core: trials slow each other") as seen:
        ProcessRunner(2).open(lambda run: 1.0, NO_LIMITS).close()
    assert len(seen) == 1


# ---- devices ----


def test_without_gpus_the_environment_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5")

    def objective(run: Run) -> float:
        assert run.device == "cpu"
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "4,5"
        return 1.0

    ((_, usage),) = evaluated(ProcessRunner(1), objective, 1)
    assert usage.device == "cpu"


@pytest.mark.filterwarnings("ignore:.* workers share .* core:UserWarning")
def test_every_worker_sees_one_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5")
    monkeypatch.setattr(processes, "count_gpus", lambda: 6)
    done = evaluated(ProcessRunner(gpus=2), seen, 2)
    assert sorted((outcome.value, usage.device) for outcome, usage in done) == [
        (4.0, "cuda:4"),
        (5.0, "cuda:5"),
    ]


def test_workers_spread_over_the_gpus_and_sharing_one_is_warned_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(processes, "usable_cores", lambda: 8)
    monkeypatch.setattr(processes, "count_gpus", lambda: 4)
    with pytest.warns(UserWarning, match="3 workers share 2 GPUs"):
        done = evaluated(ProcessRunner(3, gpus=[1, 3], slots_per_gpu=2), seen, 3)
    assert sorted(outcome.value for outcome, _ in done) == [1.0, 1.0, 3.0]


@pytest.mark.parametrize(
    ("listed", "gpus", "devices"),
    [
        (None, [0, 2], ["0", "2"]),
        ("4,5", [1, 0], ["5", "4"]),
        (" GPU-a , GPU-b", [1], ["GPU-b"]),
        ("4,5", ["GPU-x", 0], ["GPU-x", "4"]),
        ("", ["MIG-x"], ["MIG-x"]),
    ],
)
def test_indices_count_the_devices_that_the_driver_sees(
    listed: str | None, gpus: list[int | str], devices: list[str]
) -> None:
    environment = {} if listed is None else {"CUDA_VISIBLE_DEVICES": listed}
    assert visible_devices(gpus, environment, n_gpus=None) == devices
    assert visible_devices(gpus, environment, n_gpus=6) == devices


@pytest.mark.parametrize("listed", ["", "-1", "4", "4,-1,5"])
def test_a_device_that_the_driver_does_not_see_is_refused(
    listed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", listed)
    with pytest.raises(ValueError, match=f"CUDA_VISIBLE_DEVICES='{listed}', which has"):
        ProcessRunner(gpus=2).open(lambda run: 1.0, NO_LIMITS)


def test_one_device_by_two_names_is_refused() -> None:
    with pytest.raises(ValueError, match="distinct"):
        visible_devices([0, "4"], {"CUDA_VISIBLE_DEVICES": "4,5"}, n_gpus=6)


@pytest.mark.parametrize(
    ("listed", "gpus", "n_gpus", "message"),
    [
        (None, [0], 0, "got 0 and the machine has no GPUs"),
        (None, [0, 1, 2], 1, "got 1 and the machine has 1 GPU"),
        (None, [0, 4], 4, "got 4 and the machine has 4 GPUs"),
        ("0,1,2,3", [0, 3], 2, "got 3 and the machine has 2 GPUs"),
        (None, ["GPU-x"], 0, "got GPU-x and the machine has no GPUs"),
        ("MIG-x", [0], 0, "got MIG-x and the machine has no GPUs"),
    ],
)
def test_a_device_that_the_machine_does_not_have_is_refused(
    listed: str | None, gpus: list[int | str], n_gpus: int, message: str
) -> None:
    environment = {} if listed is None else {"CUDA_VISIBLE_DEVICES": listed}
    with pytest.raises(ValueError, match=f"devices of this machine, counted from 0, but {message}"):
        visible_devices(gpus, environment, n_gpus=n_gpus)


def test_a_search_on_a_gpu_that_is_not_there_starts_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(processes, "count_gpus", lambda: 0)
    study = tw.create_study({"x": (0.0, 1.0)}, seed=0)
    with pytest.raises(ValueError, match="but got 0 and the machine has no GPUs"):
        study.optimize(lambda trial: 1.0, n_trials=3, gpus=1)
    assert study.trials == []


@pytest.mark.parametrize(
    ("files", "gpus"),
    [
        ([], 0),
        (["dev/null", "dev/nvidiactl", "dev/nvidia-uvm", "dev/nvidia-caps/nvidia-cap1"], 0),
        (["dev/nvidia0", "dev/nvidia1", "dev/nvidia10", "dev/nvidiactl"], 3),
        (["proc/driver/nvidia/gpus/0000:01:00.0/information"], 1),  # before the first use
        (["dev/nvidia5", "proc/driver/nvidia/gpus/a/x", "proc/driver/nvidia/gpus/b/x"], 2),
        (["dev/nvidia0", "proc/driver/nvidia/capabilities/gpu0/mig/gi1/ci0/access"], 2),
        (["dev/nvidia0", "proc/driver/nvidia/capabilities/gpu0/mig/config"], 1),
        (["dev/dxg"], None),
        (["dev/kfd", "dev/nvidia0"], None),
        (["dev/nvhost-gpu"], None),
        (["dev/nvgpu/igpu0/ctrl"], None),
    ],
)
def test_the_gpus_of_a_machine_are_counted_where_that_can_be_done(
    tmp_path: Path, files: list[str], gpus: int | None
) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert _count_gpus(tmp_path) == gpus


def test_counting_the_gpus_of_this_machine_gives_no_fewer_than_pytorch_sees() -> None:
    found = count_gpus()
    assert found is None or found >= torch.cuda.device_count()
