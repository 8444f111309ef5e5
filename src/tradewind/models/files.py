"""Reading data files, gzipped or not. Their content tells which, and errors name the place.

A file may come from anybody, and a few packed kilobytes can hold gigabytes of zeros. So what is
unpacked must stay in proportion to the file: see `most_unpacked`.
"""

from __future__ import annotations

import gzip
import io
import math
import os
import sys
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from numpy.lib import format as npy
from numpy.typing import NDArray

from tradewind.errors import DataError, DataMissing
from tradewind.paths import open_file

FOLDER = "TRADEWIND_DATA"  # the environment variable with the folder of all data
CHUNK = 1 << 22  # bytes to read at once
_LONGEST_LINE = 1 << 22  # bytes of a line of text; the longest of a public data set has 20,000

_SMALL = 1 << 24  # bytes that any file may unpack to
_RATIO = (
    20  # how many times its own size a larger one may: text shrinks to a third, zeros to 1/1000
)
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_UNREADABLE = (
    *(AttributeError, EOFError, LookupError, MemoryError, OSError, RuntimeError, SyntaxError),
    *(TypeError, ValueError, tokenize.TokenError),  # the last: NumPy reads headers as Python does
)


def data_folder(name: str) -> Path | None:
    """The folder of one data set, or None if the environment variable is not set."""
    folder = os.environ.get(FOLDER)
    return Path(folder) / name if folder else None


@contextmanager
def open_data(path: Path) -> Iterator[BinaryIO]:
    """Open a file to read its bytes, unpacked. Any problem with it becomes a `DataError`."""
    try:
        with open_file(path) as file:
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            if packed:
                with gzip.open(file) as unpacked:
                    yield io.BufferedReader(_Bounded(unpacked, path), CHUNK)
            else:
                yield file
    except DataError:
        raise
    except FileNotFoundError:
        raise DataMissing(f"there is no file {path}") from None
    except EOFError:
        raise DataError(f"{path} is cut off: the end of the gzipped file is missing") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path} is damaged: {error}") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None


class _Bounded(io.RawIOBase):
    """A gzipped file that is read only as far as its size allows."""

    def __init__(self, unpacked: gzip.GzipFile, path: Path) -> None:
        self._unpacked, self._path, self._most = unpacked, path, most_unpacked(path)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._unpacked.readinto(buffer)
        if self._unpacked.tell() > self._most:
            raise too_large(self._path, "unpack it with gunzip")
        return count

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._unpacked.seek(offset, whence)

    def tell(self) -> int:
        return self._unpacked.tell()


def most_unpacked(path: Path) -> int:
    """How many bytes the content of a file may take in memory."""
    return max(_SMALL, _RATIO * os.path.getsize(path))


def too_large(path: Path, way_out: str) -> DataError:
    return DataError(
        f"{path} must not unpack to more than {_RATIO} times its size, or {_SMALL >> 20} MB, but "
        f"it does. If you trust it, {way_out} and read the result"
    )


def read_lines(path: Path, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """The lines of a text file with their numbers, without line breaks."""
    with open_data(path) as file:
        for number, line in enumerate(bounded_lines(path, file), 1):
            try:
                yield number, line.decode(encoding).rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise DataError(f"{path}, line {number} is not {encoding}: {error}") from None


def bounded_lines(path: Path, file: BinaryIO) -> Iterator[bytes]:
    """The lines of an open file, none of which may take all memory."""
    for number, line in enumerate(iter(lambda: file.readline(_LONGEST_LINE), b""), 1):
        if len(line) == _LONGEST_LINE:
            raise DataError(
                f"{path}, line {number}: lines must be shorter than {_LONGEST_LINE} bytes"
            )
        yield line


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
    """The arrays in an .npz file. The file may come from anybody, so nothing is unpickled, and what
    it declares is checked before memory is taken for it."""
    with open_data(path) as file:
        if isinstance(file, io.BufferedReader) and isinstance(file.raw, _Bounded):
            file = io.BytesIO(file.read())  # seeking in a gzipped file begins at its start
        try:
            with zipfile.ZipFile(file) as archive:
                members = archive.infolist()
                if sum(member.file_size for member in members) > most_unpacked(path):
                    raise too_large(path, "write its arrays to another file with numpy.savez")
                return {
                    member.filename.removesuffix(".npy"): _read_array(archive, member)
                    for member in members
                }
        except DataError:
            raise
        except (*_UNREADABLE, zipfile.BadZipFile, zlib.error) as error:
            raise DataError(
                f"{path} is not an .npz file of arrays, or it is damaged: {error}"
            ) from None


def _read_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    """One array. ValueError if its header and its size do not agree."""
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{member.filename!r:.60} is packed in a way that NumPy does not use")
    with archive.open(member) as file:
        version = npy.read_magic(file)
        if version not in _HEADERS:
            raise ValueError(f"{member.filename!r:.60} has the unknown format {version}")
        shape, _, dtype = _HEADERS[version](file)
        size = math.prod(shape) * dtype.itemsize
        if not dtype.itemsize or file.tell() + size != member.file_size:
            raise ValueError(
                f"{member.filename!r:.60} has {member.file_size} bytes, which does not fit an "
                f"array of {dtype!s:.60} with the shape {shape!r:.60}"
            )
    with archive.open(member) as file:
        array: NDArray[Any] = npy.read_array(file, allow_pickle=False)
    if dtype.kind == "U" and array.size:
        codes = array.reshape(-1).view(f"{dtype.byteorder}u4")
        if codes.max() > sys.maxunicode:  # NumPy does not look, and Python cannot express it
            raise ValueError(f"{member.filename!r:.60} holds what is no character")
    return array
