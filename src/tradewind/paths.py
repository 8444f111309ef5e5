"""Opening the files that users name by a path.

Only regular files are opened. Opening a FIFO would block until somebody writes to it, and a device
has no end. Every function raises OSError with the reason; the caller raises the error of its room.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

_AT_ONCE = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFLNK: "a link",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def open_file(path: str | os.PathLike[str], *, follow: bool = True) -> BinaryIO:
    """Open a file to read its bytes. Anything but a regular file is refused at once, and so is a
    link unless it may be followed."""
    # before it is opened: opening a device may already do something
    _check(path, os.stat(path, follow_symlinks=follow))
    return open(path, "rb", opener=_open if follow else _open_no_link)


def check_file(path: str | os.PathLike[str]) -> None:
    """Refuse a path where something else than a regular file is. There may be nothing."""
    with suppress(FileNotFoundError):
        _check(path, os.stat(path))


@contextmanager
def replace_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Write a file completely or not at all. An old file stays until the new one is complete. If
    the path is a link, the file that it leads to is replaced."""
    target = os.path.realpath(path)
    check_file(target)
    # Nobody can guess the name and plant a link there, and "x" would not follow one.
    draft = f"{target}.{secrets.token_hex(8)}.tmp"
    try:
        with open(draft, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise


def _open_no_link(path: str, flags: int) -> int:
    return _open(path, flags | getattr(os, "O_NOFOLLOW", 0))


def _open(path: str, flags: int) -> int:
    descriptor = os.open(path, flags | _AT_ONCE)
    try:
        _check(path, os.fstat(descriptor))  # it may have been replaced since it was looked at
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _check(path: str | os.PathLike[str], found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "something else")
        code = errno.EISDIR if stat.S_ISDIR(found.st_mode) else errno.EINVAL
        raise OSError(code, f"it is {kind}, not a file", os.fspath(path))
