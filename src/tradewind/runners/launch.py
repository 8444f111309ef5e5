"""How to start worker processes: with the driver's folder and import path as they are now."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any

from tradewind.errors import WorkerError
from tradewind.runners.worker import BOOT


@dataclass(frozen=True)
class Launch:
    """`blob` is a file with the objective, and `idle` the number of seconds after which a worker
    without a trial ends by itself."""

    blob: IO[bytes]
    environment: Mapping[str, str]
    device: str
    idle: float | None
    folder: str
    path: tuple[str, ...]

    @classmethod
    def of(
        cls,
        blob: IO[bytes],
        environment: Mapping[str, str],
        *,
        device: str = "cpu",
        idle: float | None = None,
    ) -> Launch:
        path = tuple(entry for entry in sys.path if isinstance(entry, str))
        try:
            folder = os.getcwd()
        except OSError as error:
            raise WorkerError(
                "workers start in the current folder, which cannot be read any more "
                f"({error.strerror}): change to another one"
            ) from error
        return cls(blob, environment, device, idle, folder, path)

    def request(self) -> tuple[Any, ...]:
        """What the keeper must know, besides descriptors (see `keeper.Start`)."""
        before = [sys.executable, *interpreter_flags(), "-c", BOOT]
        after = [self.device, "" if self.idle is None else str(self.idle), *self.path]
        return before, after, dict(self.environment), self.folder


def put_in_file(blob: bytes) -> IO[bytes]:
    """A file without a name that many processes can read at the same time."""
    file: IO[bytes]
    if hasattr(os, "memfd_create"):  # Linux: the file stays in memory
        file = os.fdopen(os.memfd_create("tradewind"), "w+b")
    else:
        file = tempfile.TemporaryFile()  # noqa: SIM115  the caller closes it
    file.write(blob)
    file.flush()
    return file


def interpreter_flags() -> list[str]:
    """The options of this interpreter (-O, -W, -X), which `multiprocessing` passes on as well."""
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return flags
