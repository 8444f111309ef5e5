"""The rows of Tradewind's tables, read from the raw pages of a SQLite file.

SQLite cannot read a file any more if its header, its schema or a page high up in a tree is damaged.
Here every page is read by itself, so that damage costs only what it hits. Rows that should not be
there do no harm, because the digests of events show which events belong together.
(The format: https://www.sqlite.org/fileformat2.html)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from tradewind.log.sqlite_safety import TABLES
from tradewind.log.write_ahead import WriteAhead

_INTERIOR_INDEX, _LEAF_INDEX, _LEAF_TABLE = 0x02, 0x0A, 0x0D
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}  # serial type -> bytes
_USUAL_SIZE = 4096

Value: TypeAlias = "int | bytes | None"  # None stands for everything that no table of ours needs
Pages: TypeAlias = dict[int, bytes]


@dataclass
class Rows:
    """What was found: the names of studies by id, in the order of their places, and every version
    of every event by study and position."""

    names: dict[int, str] = field(default_factory=dict)
    places: dict[int, int] = field(default_factory=dict)
    events: dict[int, dict[int, list[bytes]]] = field(default_factory=dict)


def find_rows(raw: bytes, ahead: WriteAhead) -> Rows:
    """The rows in a file and its write-ahead log."""
    sizes = dict.fromkeys([_page_size(raw), _USUAL_SIZE])
    return max((_find(raw, ahead, size) for size in sizes), key=_count)


def is_newer(raw: bytes, version: int) -> bool:
    """Whether a newer version of Tradewind wrote the file, with other tables."""
    first = raw[: _page_size(raw)]
    others = not all(statement.encode() in first for statement in TABLES)
    return others and int.from_bytes(raw[60:64]) > version


def _page_size(raw: bytes) -> int:
    size = int.from_bytes(raw[16:18])
    size = 65536 if size == 1 else size
    return size if size >= 512 and size & (size - 1) == 0 else _USUAL_SIZE


def _count(rows: Rows) -> int:
    return sum(map(len, rows.events.values()))


def _find(raw: bytes, ahead: WriteAhead, size: int) -> Rows:
    pages = {i // size + 1: raw[i : i + size] for i in range(0, len(raw), size)} | ahead.pages
    rows = Rows()
    free = _free_pages(pages)
    for number, page in pages.items():
        if number not in free:
            _read_page(number, page, pages, size, rows)
    if ahead.damage is not None:
        for number, page in ahead.later.items():
            _read_page(number, page, pages | ahead.later, size, rows)
    return rows


def _free_pages(pages: Pages) -> set[int]:
    """The pages in the list of free pages, which may hold deleted studies."""
    free: set[int] = set()
    trunk = int.from_bytes(pages.get(1, b"")[32:36])
    while trunk in pages and trunk not in free:
        page = pages[trunk]
        count = min(int.from_bytes(page[4:8]), len(page) // 4 - 2)
        free |= {trunk, *(int.from_bytes(page[8 + 4 * i : 12 + 4 * i]) for i in range(count))}
        trunk = int.from_bytes(page[:4])
    return free


def _read_page(number: int, page: bytes, pages: Pages, size: int, rows: Rows) -> None:
    start = 100 if number == 1 else 0
    kind = page[start] if start < len(page) else 0
    if kind not in (_INTERIOR_INDEX, _LEAF_INDEX, _LEAF_TABLE):
        return
    for at in _cells(page, start, kind):
        try:
            rowid, record = _cell(page, at, kind, pages, size)
        except (IndexError, ValueError):  # damaged
            continue
        match rowid, record:
            case None, [int(study), int(position), bytes(event)]:
                versions = rows.events.setdefault(study, {}).setdefault(position, [])
                if event not in versions:
                    versions.append(event)
            case int(study), [None, int(place), bytes(name)]:
                rows.names[study], rows.places[study] = name.decode(errors="replace"), place
            case None, [bytes(name), int(study)]:  # the index of names, if the table is damaged
                rows.names.setdefault(study, name.decode(errors="replace"))


def _cells(page: bytes, start: int, kind: int) -> Iterator[int]:
    """Where the cells of a page begin."""
    first = start + (12 if kind == _INTERIOR_INDEX else 8)
    count = int.from_bytes(page[start + 3 : start + 5])
    for at in range(first, min(first + 2 * count, len(page) - 1), 2):
        yield int.from_bytes(page[at : at + 2])


def _cell(
    page: bytes, at: int, kind: int, pages: Pages, size: int
) -> tuple[int | None, list[Value]]:
    """The row id of a cell, which an index does not have, and its record."""
    at += 4 if kind == _INTERIOR_INDEX else 0
    length, at = _varint(page, at)
    rowid = None
    if kind == _LEAF_TABLE:
        rowid, at = _varint(page, at)
    payload = _payload(page, at, length, pages, size, is_table=kind == _LEAF_TABLE)
    return rowid, _record(payload)


def _payload(
    page: bytes, at: int, length: int, pages: Pages, size: int, *, is_table: bool
) -> bytes:
    """The payload of a cell, with what has overflowed to other pages."""
    most = size - 35 if is_table else (size - 12) * 64 // 255 - 23
    if length <= most:
        return page[at : at + length]
    least = (size - 12) * 32 // 255 - 23
    local = least + (length - least) % (size - 4)
    local = local if local <= most else least
    parts, left = [page[at : at + local]], length - local
    following = int.from_bytes(page[at + local : at + local + 4])
    seen: set[int] = set()
    while left > 0:
        if following not in pages or following in seen:
            raise ValueError("the chain of overflow pages is broken")
        seen.add(following)
        more = pages[following]
        parts.append(more[4 : 4 + min(left, size - 4)])
        left -= size - 4
        following = int.from_bytes(more[:4])
    return b"".join(parts)


def _record(payload: bytes) -> list[Value]:
    end, at = _varint(payload, 0)
    kinds = []
    while at < end:
        kind, at = _varint(payload, at)
        kinds.append(kind)
        if len(kinds) > 4:
            raise ValueError("no table of ours has so many columns")
    values: list[Value] = []
    for kind in kinds:
        width = _INTEGERS.get(kind, 8 if kind == 7 else (kind - 12) // 2 if kind >= 12 else 0)
        if at + width > len(payload):
            raise ValueError("the record is longer than its cell")
        part = payload[at : at + width]
        at += width
        if kind in _INTEGERS:
            values.append(int.from_bytes(part, signed=True))
        elif kind in (8, 9):
            values.append(kind - 8)
        else:
            values.append(part if kind >= 12 else None)
    return values


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, and where it ends."""
    value = 0
    for i in range(9):
        byte = data[at + i]
        if i == 8:
            value = value << 8 | byte
            break
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            break
    return value - (1 << 64) * (value >> 63), at + i + 1
