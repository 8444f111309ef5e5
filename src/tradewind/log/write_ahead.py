"""The write-ahead log of a SQLite file: is it whole, and which pages does it hold?

After a crash, SQLite takes a write-ahead log up to the first frame whose checksum does not fit, and
drops the rest without a word. That is right for a write that was interrupted. But if a bit has
rotted, whole transactions are lost. So we look before SQLite does.

What a killed process leaves behind does not fit either, and others may write over its beginning.
It is damage if a single flipped bit explains it, or if more transactions follow than killed
processes can leave. (The format: https://www.sqlite.org/fileformat2.html#the_write_ahead_log)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, BinaryIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tradewind.paths import open_file

_HEADER = 32  # bytes
_ORDERS = {0x377F0682: "<u4", 0x377F0683: ">u4"}  # the byte order of the checksums
_USUAL_SIZE = 4096  # of a page
_CHUNK = 256  # frames to read at once
_LEFT_BEHIND = 2  # transactions: each takes a kill after its last frame and before its end
_MASK = (1 << 32) - 1

Pages: TypeAlias = dict[int, bytes]  # by number
Sums: TypeAlias = tuple[int, int]


@dataclass(frozen=True)
class WriteAhead:
    """What is wrong with a write-ahead log, and the newest content of every page up to the last
    commit that fits. `later` are the pages after that, which nobody may trust."""

    damage: str | None = None
    pages: Pages = field(default_factory=dict, repr=False)
    later: Pages = field(default_factory=dict, repr=False)


def read_write_ahead(path: str, *, keep: bool = False) -> WriteAhead:
    """Look through the write-ahead log at `path`, and keep its pages if asked to."""
    try:
        with open_file(path) as file:
            return _read(file, keep)
    except OSError:  # there is none, or SQLite will say what is wrong with it
        return WriteAhead()


def _read(file: BinaryIO, keep: bool) -> WriteAhead:
    start = file.read(_HEADER)
    if len(start) < _HEADER or (not any(start) and _is_zero(file)):  # created, never written
        return WriteAhead()
    magic, _, size, _, *salts, sum_0, sum_1 = np.frombuffer(start, ">u4").tolist()
    order = _ORDERS.get(magic, "<u4")
    checksum = _checksums(np.frombuffer(start[:24], order)[None])[0]
    sums: Sums | None = (sum_0, sum_1)  # of what fits; None after the first frame that does not
    damage: str | None = None
    if magic not in _ORDERS or _continue(checksum, (0, 0), 6) != sums:
        damage, sums, size = "its write-ahead log is damaged at the beginning", None, _USUAL_SIZE
    words, commits_after = 2 + size // 4, 0
    pages: Pages = {}
    later: Pages = {}  # not yet committed
    for number, (frame, checksum) in enumerate(_frames(file, size, order)):
        found, stored = frame["salts"].tolist(), tuple(frame["sums"].tolist())
        if sums is not None:
            expected = _continue(checksum, sums, words)
            fits = found == salts and stored == expected
            if not fits and _is_one_bit(salts, found, stored, expected, words):
                damage = f"its write-ahead log is damaged at frame {number}"
            sums = stored if fits else None
        if sums is None and found == salts and frame["commit"]:
            commits_after += 1
        if keep and (found == salts or damage):
            later[int(frame["page"])] = frame["content"].tobytes()
            if sums is not None and frame["commit"]:
                pages, later = pages | later, {}
    if damage is None and commits_after > _LEFT_BEHIND:
        damage = f"{commits_after} transactions in its write-ahead log do not fit"
    return WriteAhead(damage, pages, later)


def _is_zero(file: BinaryIO) -> bool:
    """Whether nothing but zeros follows. If not, read on after the header."""
    while chunk := file.read(1 << 20):
        if any(chunk):
            file.seek(_HEADER)
            return False
    return True


def _frames(file: BinaryIO, size: int, order: str) -> Iterator[tuple[Any, NDArray[np.uint64]]]:
    """All complete frames, each with the checksums of what it holds."""
    head = [("page", ">u4"), ("commit", ">u4"), ("salts", ">u4", 2), ("sums", ">u4", 2)]
    kind = np.dtype([*head, ("content", "u1", size)])
    while chunk := file.read(_CHUNK * kind.itemsize):
        frames = np.frombuffer(chunk, kind, count=len(chunk) // kind.itemsize)
        raw = frames.view(np.uint8).reshape(len(frames), kind.itemsize)
        covered = np.concatenate([raw[:, :8], raw[:, 24:]], axis=1).view(order)
        yield from zip(frames, _checksums(covered), strict=True)


# The checksum of the words a, b, c, d, ... is s = s + a + t, t = t + b + s, s = s + c + t, ...
# modulo 2**32. So the last word counts F(0) times in s and F(1) times in t, the one before F(1) and
# F(2) times, and so on, with Fibonacci's numbers. Hence all frames can be summed up at once.


@cache
def _fibonacci(n: int) -> NDArray[np.uint64]:
    numbers = [0, 1]
    while len(numbers) < n:
        numbers.append((numbers[-2] + numbers[-1]) & _MASK)
    return np.array(numbers, dtype=np.uint64)


def _checksums(words: NDArray[Any]) -> NDArray[np.uint64]:
    """The checksums of (n, m) words, each row from 0: (n, 2)."""
    backwards, m = words[:, ::-1].astype(np.uint64), words.shape[1]
    F = _fibonacci(m + 2)
    return np.stack([backwards @ F[:m], backwards @ F[1 : m + 1]], axis=1) & np.uint64(_MASK)


def _continue(checksum: NDArray[np.uint64], before: Sums, m: int) -> Sums:
    """The checksum of m words that follow others."""
    a, b, c = _fibonacci(m + 2)[m - 1 :].tolist()
    (s, t), (own_s, own_t) = before, checksum.tolist()
    return (own_s + a * s + b * t) & _MASK, (own_t + b * s + c * t) & _MASK


def _is_one_bit(salts: list[int], found: list[int], stored: Sums, expected: Sums, m: int) -> bool:
    """Whether a single flipped bit explains why a frame of m words does not fit."""
    names = zip([*salts, *expected], [*found, *stored], strict=True)
    if sum((a ^ b).bit_count() for a, b in names) == 1:
        return True
    if found != salts:
        return False
    s, t = ((a - b) & _MASK for a, b in zip(stored, expected, strict=True))
    F, mask = _fibonacci(m + 2), np.uint64(_MASK)
    for bit in range(32):  # set or cleared, in any of the words
        one_s, one_t = F[:m] << np.uint64(bit) & mask, F[1 : m + 1] << np.uint64(bit) & mask
        for a, b in ((s, t), (-s & _MASK, -t & _MASK)):
            if np.any((one_s == a) & (one_t == b)):
                return True
    return False
