"""PyTorch's devices: choosing one, timing it, setting its precision, and showing progress."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Lock
from typing import Any

import torch


def choose_device(device: str) -> str:
    """A device that exists here. "auto" is the GPU if there is one, otherwise the CPU."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        named = torch.device(device)
    except (RuntimeError, TypeError):
        named = torch.device("meta")
    if named.type not in ("cpu", "cuda"):
        raise ValueError(f'device must be "auto", "cpu", "cuda" or "cuda:1", …, but got {device!r}')
    if named.type == "cuda" and (named.index or 0) >= (n := torch.cuda.device_count()):
        raise ValueError(
            f"device is {device!r}, but PyTorch sees {n or 'no'} GPUs here; "
            'set_params(device="auto") uses what is available'
        )
    return device


def clock(device: str) -> float:
    """The time in seconds, after the device has finished its work."""
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def count_epochs(n: int, verbose: bool) -> Iterator[int]:
    """1, 2, …, n, with a progress bar if `verbose`."""
    from tqdm.auto import tqdm

    yield from tqdm(range(1, n + 1), unit="epoch", disable=not verbose)


def use_device(device: str) -> AbstractContextManager[Any]:
    """Inside this context, new CUDA streams and graphs belong to `device`."""
    return torch.cuda.device(device) if torch.device(device).type == "cuda" else nullcontext()


class _TensorCores:
    """Inside this context, matrix products may round their factors to 10 bits (TF32), which is
    faster on many GPUs.

    The setting belongs to the process: the first to enter changes it, the last to leave restores
    it. If the user set it by PyTorch's newer names, it is left alone."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._before: str | None = None

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._before = _set_precision("high")
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if not self._inside and self._before:
                    _set_precision(self._before)


def _set_precision(precision: str) -> str | None:
    """Set the precision of matrix products and return the one before. None if PyTorch refuses,
    because the user set it by its newer names."""
    try:
        before = torch.get_float32_matmul_precision()
    except RuntimeError:
        return None
    torch.set_float32_matmul_precision(precision)
    return before


tensor_cores = _TensorCores()
