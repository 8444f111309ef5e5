"""Reading data files, gzipped or not. Their content tells which, and errors name the place."""

from __future__ import annotations

import gzip
import io
import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from tradewind.errors import DataError, DataMissing

FOLDER = "TRADEWIND_DATA"  # the environment variable with the folder of all data
CHUNK = 1 << 22  # bytes to read at once

_UNREADABLE = (EOFError, KeyError, MemoryError, OSError, RuntimeError, TypeError, ValueError)


def data_folder(name: str) -> Path | None:
    """The folder of one data set, or None if the environment variable is not set."""
    folder = os.environ.get(FOLDER)
    return Path(folder) / name if folder else None


@contextmanager
def open_data(path: Path) -> Iterator[BinaryIO]:
    """Open a file to read its bytes, unpacked. Any problem with it becomes a `DataError`."""
    try:
        with open(path, "rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            if packed:
                with gzip.open(file) as unpacked:
                    yield io.BufferedReader(unpacked, CHUNK)
            else:
                yield file
    except FileNotFoundError:
        raise DataMissing(f"there is no file {path}") from None
    except IsADirectoryError:
        raise DataError(f"{path} is a folder, not a file") from None
    except EOFError:
        raise DataError(f"{path} is cut off: the end of the gzipped file is missing") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path} is damaged: {error}") from None


def read_lines(path: Path, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """The lines of a text file with their numbers, without line breaks."""
    with open_data(path) as file:
        for number, line in enumerate(file, 1):
            try:
                yield number, line.decode(encoding).rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise DataError(f"{path}, line {number} is not {encoding}: {error}") from None


def read_columns(path: Path, count: int) -> Iterator[tuple[int, list[str]]]:
    """The lines of a table with `count` columns, separated by tabs."""
    for number, line in read_lines(path):
        fields = line.split("\t")
        if len(fields) != count:
            raise DataError(
                f"{path}, line {number}: there must be {count} columns, but there are {len(fields)}"
            )
        yield number, fields


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays in an .npz file. The file may come from anybody, so nothing is unpickled."""
    with open_data(path) as file:  # NumPy does not close a file that it opened and could not read
        try:
            with np.load(file, allow_pickle=False) as stored:
                return {name: stored[name] for name in stored.files}
        except (*_UNREADABLE, zipfile.BadZipFile, zlib.error) as error:
            raise DataError(
                f"{path} is not an .npz file of arrays, or it is damaged: {error}"
            ) from None
