"""Data files for tests of the loaders."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tradewind.errors import DataError

Files = Mapping[str, str | bytes]
Load = Callable[[Path], Any]


def write(folder: Path, files: Files) -> Path:
    """Files of these contents, in UTF-8 and gzipped where the name says so."""
    for name, content in files.items():
        data = content.encode() if isinstance(content, str) else content
        (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return folder


def saved(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def refused(load: Load, path: Path, why: str) -> None:
    with pytest.raises(DataError, match=why):
        load(path)
