"""Where PyTorch computes, and what time it is there."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch


def chosen(device: str) -> str:
    """The device that is meant: "auto" is the GPU where there is one."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        kind = torch.device(device).type
    except (RuntimeError, TypeError):
        raise ValueError(
            f'device must be "auto" or a device of PyTorch such as "cpu" or "cuda:1", '
            f"but got {device!r}"
        ) from None
    if kind == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device is {device!r}, but PyTorch sees no GPU here")
    return device


def clock(device: str) -> float:
    """The time in seconds, once the device has done what it was told."""
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def current(device: str) -> AbstractContextManager[Any]:
    """While this lasts, a GPU is the one that streams and graphs belong to."""
    return torch.cuda.device(device) if torch.device(device).type == "cuda" else nullcontext()


@contextmanager
def tensor_cores() -> Iterator[None]:
    """Matrix products may round their factors to 10 bits (TF32), where the GPU is faster so."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
