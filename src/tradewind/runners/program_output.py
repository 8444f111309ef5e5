"""What a program prints, read with bounded memory, and the result in it.

The result is the last line of the output that is a JSON object or a number. A program may print
gigabytes, lines without an end, or bytes that are no text.
"""

from __future__ import annotations

import re
from typing import Any

from tradewind.bounds import MESSAGE
from tradewind.errors import ProgramFailed
from tradewind.plain import parse_json, shown

_TAIL = 4000  # bytes of the end of an output that errors may show
_LINES = 20  # lines of it that they do show
_WINDOW = 4096  # bytes that are searched first: the last candidate is usually near the end

_NUMBER = rb"[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[nN][aA][nN]|[iI][nN][fF](?:inity)?)"
# It begins with a line break, not with ^, and ignores no case: so Python skips from one break to
# the next at once, which is ten times as fast.
_CANDIDATE = re.compile(rb"\n[ \t]*(?:\{[^\n]*|" + _NUMBER + rb"[ \t]*(?![^\n]))")
_OTHERS = bytes(byte for byte in range(256) if byte not in b"{0123456789nNiI")


class Output:
    """What a program has printed so far: its end, and the last line that may be a result."""

    def __init__(self) -> None:
        self.candidate: bytes | None = None
        self._end = b""
        self._line = bytearray()  # the line that is not complete yet, or as much as counts of it

    def feed(self, chunk: bytes) -> None:
        self._end = (self._end + chunk)[-_TAIL:]
        head, newline, rest = chunk.replace(b"\r", b"\n").partition(b"\n")
        self._extend(head)
        if newline:
            self._search(bytes(self._line))
            cut = rest.rfind(b"\n") + 1
            self._search(rest[:cut])
            self._line = bytearray()
            self._extend(rest[cut:])

    def close(self) -> None:
        """The last line need not end in a line break."""
        self._search(bytes(self._line))
        self._line = bytearray()

    @property
    def last_lines(self) -> list[str]:
        """The last lines that are not empty, as text."""
        lines = self._end.decode("utf-8", "replace").splitlines()
        return [line.rstrip() for line in lines if line.strip()][-_LINES:]

    def _extend(self, part: bytes) -> None:
        self._line += part[: MESSAGE + 1 - len(self._line)]  # one more than is read

    def _search(self, lines: bytes) -> None:
        """Look for the last candidate in whole lines, from their end."""
        if not lines.translate(None, _OTHERS):
            return
        lines = b"\n" + lines
        end, window = len(lines), _WINDOW
        while end > 0:
            begin = max(0, lines.rfind(b"\n", 0, max(0, end - window)))
            if found := _CANDIDATE.findall(lines, begin, end):
                self.candidate = found[-1].strip()
                return
            end, window = begin, 16 * window


def read_result(text: bytes, where: str) -> dict[str, Any]:
    """The result in a JSON object or a number; `where` it was found begins the errors."""
    stripped = text.strip()
    try:
        if len(stripped) > MESSAGE:
            raise ValueError(f"it may have up to {MESSAGE} bytes")
        if stripped[:1] == b"{":
            return dict(parse_json(stripped))
        if re.fullmatch(_NUMBER, stripped):
            return {"value": float(stripped)}  # whether it is finite is checked later
        raise ValueError("it is neither a JSON object nor a number")
    except (ValueError, RecursionError) as error:
        hint = ", on one line and with double quotes" if stripped[:1] == b"{" else ""
        raise ProgramFailed(
            f'{where} must be a number or a JSON object such as {{"value": 0.9}}{hint}, but got '
            f"{shown(stripped.decode('utf-8', 'replace'))}: {error}"
        ) from None
