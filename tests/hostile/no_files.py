"""Things that are not files, put where a file is expected."""

from __future__ import annotations

import os
import socket
from pathlib import Path


def fifo(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def listening_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(os.path.relpath(path))  # the whole path may be too long for a socket


def gigabytes_of_nothing(path: Path) -> None:
    path.touch()
    os.truncate(path, 10 << 30)  # a sparse file
