"""Where PyTorch computes, and how exactly."""

from __future__ import annotations

from threading import Event, Thread

import pytest
import torch

from tradewind.models import devices
from tradewind.models.devices import choose_device, clock, tensor_cores


@pytest.mark.parametrize("device", ["auto", "cpu"])
def test_a_device_that_is_there_is_chosen(device: str) -> None:
    assert choose_device(device) in ("cpu", "cuda")


@pytest.mark.parametrize("device", ["", "gpu", "meta", "cuda:x", "cuda:99", None, 3])
def test_a_device_that_cannot_be_is_named(device: object) -> None:
    with pytest.raises(ValueError, match="device"):
        choose_device(device)  # type: ignore[arg-type]


@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
def test_the_clock_waits_for_a_gpu_before_it_looks(
    monkeypatch: pytest.MonkeyPatch, device: str
) -> None:
    """A stand-in for the GPU, on which an hour's work is still under way."""
    now = 100.0

    def synchronize(waited_for: str) -> None:
        nonlocal now
        assert waited_for == device
        now += 3600.0

    monkeypatch.setattr(torch.cuda, "synchronize", synchronize)
    monkeypatch.setattr(devices.time, "perf_counter", lambda: now)
    assert clock(device) == 3700.0


def test_the_clock_of_a_cpu_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(device: str) -> None:
        raise AssertionError("there is no GPU to wait for")

    monkeypatch.setattr(torch.cuda, "synchronize", never)
    monkeypatch.setattr(devices.time, "perf_counter", lambda: 5.0)
    assert clock("cpu") == 5.0


@pytest.mark.parametrize("before", ["highest", "medium"])
def test_the_precision_is_put_back_even_after_an_error(before: str) -> None:
    def fails() -> None:
        with tensor_cores():
            assert torch.get_float32_matmul_precision() == "high"
            raise KeyError

    standard = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(before)
    try:
        with pytest.raises(KeyError):
            fails()
        assert torch.get_float32_matmul_precision() == before
    finally:
        torch.set_float32_matmul_precision(standard)


def test_of_two_threads_the_last_to_leave_puts_the_precision_back() -> None:
    before = torch.get_float32_matmul_precision()
    entered, may_leave = Event(), Event()

    def other() -> None:
        with tensor_cores():
            entered.set()
            may_leave.wait(60)

    thread = Thread(target=other)
    with tensor_cores():
        thread.start()
        assert entered.wait(60)
    still = torch.get_float32_matmul_precision()
    may_leave.set()
    thread.join(60)
    assert (still, torch.get_float32_matmul_precision()) == ("high", before)
