"""Files of data, gzipped or not: opened by their content, read with errors that name the place."""

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

FOLDER = "TRADEWIND_DATA"  # the environment variable that names the folder of all data
CHUNK = 1 << 22

_UNREADABLE = (EOFError, KeyError, MemoryError, OSError, RuntimeError, TypeError, ValueError)


def data_folder(name: str) -> Path | None:
    """The folder of one kind of data, where the user has named the folder of all."""
    folder = os.environ.get(FOLDER)
    return Path(folder) / name if folder else None


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A file to be read as bytes. What is wrong with it is a `DataError`."""
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


def lines(path: Path, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """The lines of a text and their numbers, without what ends them."""
    with opened(path) as file:
        for number, line in enumerate(file, 1):
            try:
                yield number, line.decode(encoding).rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise DataError(f"{path}, line {number} is not {encoding}: {error}") from None


def columns(path: Path, count: int) -> Iterator[tuple[int, list[str]]]:
    """The lines of a table whose columns are parted by tabs."""
    for number, line in lines(path):
        fields = line.split("\t")
        if len(fields) != count:
            raise DataError(
                f"{path}, line {number}: {count} columns are needed, but there are {len(fields)}"
            )
        yield number, fields


def arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays in an .npz. It may be foreign, so nothing in it is unpickled."""
    with opened(path) as file:  # NumPy does not close what it opened and could not read
        try:
            with np.load(file, allow_pickle=False) as stored:
                return {name: stored[name] for name in stored.files}
        except (*_UNREADABLE, zipfile.BadZipFile, zlib.error) as error:
            raise DataError(f"{path} is not an .npz of arrays, or is damaged: {error}") from None
