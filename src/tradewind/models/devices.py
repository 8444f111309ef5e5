"""Where PyTorch computes, what time it is there, and how far it has come."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Lock
from typing import Any

import torch


def chosen(device: str) -> str:
    """The device that is meant: "auto" is the GPU where there is one."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        meant = torch.device(device)
    except (RuntimeError, TypeError):
        meant = torch.device("meta")
    if meant.type not in ("cpu", "cuda"):
        raise ValueError(f'device must be "auto", "cpu", "cuda" or "cuda:1", …, but got {device!r}')
    if meant.type == "cuda" and (meant.index or 0) >= (there := torch.cuda.device_count()):
        raise ValueError(
            f"device is {device!r}, but PyTorch sees {there or 'no'} GPUs here; "
            'set_params(device="auto") takes what there is'
        )
    return device


def clock(device: str) -> float:
    """The time in seconds, once the device has done what it was told."""
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def epochs(n: int, verbose: bool) -> Iterator[int]:
    """1, 2, …, n, shown as a bar where that is wanted."""
    from tqdm.auto import tqdm

    yield from tqdm(range(1, n + 1), unit="epoch", disable=not verbose)


def current(device: str) -> AbstractContextManager[Any]:
    """While this lasts, a GPU is the one that streams and graphs belong to."""
    return torch.cuda.device(device) if torch.device(device).type == "cuda" else nullcontext()


class _TensorCores:
    """Matrix products may round their factors to 10 bits (TF32), where the GPU is faster so. The
    setting is the process's: the first to enter makes it, the last to leave puts back what was
    there. Whoever made it by PyTorch's newer names keeps theirs."""

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
    """Set how exact matrix products are, and say how exact they were; None where PyTorch leaves
    neither to us."""
    try:
        before = torch.get_float32_matmul_precision()
    except RuntimeError:
        return None
    torch.set_float32_matmul_precision(precision)
    return before


tensor_cores = _TensorCores()
