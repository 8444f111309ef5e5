"""The hash chain of a log: every stored line ends in a digest of itself and of all lines before it.

`{"format":1,"event":"claimed","number":3,"digest":"5f0c..."}`

So a line that was changed, removed or put in another place does not fit its successors, and two
logs that have one line in common have everything before it in common. Logs of version 0.1 have no
digests. They are hashed as they are, and get digests from the next event on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import NamedTuple

from tradewind.errors import FormatError, LogDiverged

_FIELD = ',"digest":"'
_DIGITS = 32  # hexadecimal digits: 128 bits of SHA-256
_FROM = -_DIGITS - len('"}')  # where the digest begins in a line
_TAIL = len(_FIELD) - _FROM


class Head(NamedTuple):
    """A log as far as it has been read: the number of events, the digest of them all, and the last
    line as it is stored."""

    length: int = 0
    digest: str = ""
    line: str = ""

    @property
    def is_sealed(self) -> bool:
        """Whether the last line has a digest."""
        return _is_sealed(self.line)


START = Head()
ADVICE = "tradewind.repair keeps everything before the damage"


def seal(head: Head, bodies: Sequence[str]) -> tuple[list[str], Head]:
    """The lines to store after `head`, each with its digest, and the new head."""
    digest, lines = head.digest, []
    for body in bodies:
        digest = _digest(digest, body)
        lines.append(body[:-1] + _FIELD + digest + '"}')
    if not lines:
        return lines, head
    return lines, Head(head.length + len(lines), digest, lines[-1])


def unseal(head: Head, lines: Iterable[str]) -> tuple[list[str], Head]:
    """The lines that follow `head` without their digests, and the new head. `FormatError` if a line
    does not fit."""
    digest, line, is_sealed = head.digest, head.line, head.is_sealed
    bodies: list[str] = []
    for line in lines:
        if line[-_TAIL:_FROM] == _FIELD:
            body, is_sealed = line[:-_TAIL] + "}", True
            digest = sha256((digest + body).encode()).hexdigest()[:_DIGITS]  # _digest, inline
            if line[_FROM:] != digest + '"}':
                raise FormatError(
                    f"event {head.length + len(bodies)} is damaged: its digest does not fit"
                )
        elif is_sealed:
            raise FormatError(
                f"event {head.length + len(bodies)} has no digest, but the one before has: it is "
                "damaged, or an older version of Tradewind wrote it"
            )
        else:
            body = line
            digest = _digest(digest, body)
        bodies.append(body)
    return bodies, Head(head.length + len(bodies), digest, line)


def advise(error: Exception) -> str:
    """What an error says about a line, and what can be done, unless a newer version wrote it."""
    return f"{error}" if "update Tradewind" in str(error) else f"{error}; {ADVICE}"


def check_same(head: Head, length: int, line: str | None, place: str) -> None:
    """`LogDiverged` unless a log of this length still has the last line of `head` where it was.
    `line` is what is stored there now."""
    if length < head.length:
        raise diverged(place, f"{head.length} events were read from it, and now it has {length}")
    if line != head.line and head.length:
        raise diverged(place, f"event {head.length - 1} is another than the one that was read")


def diverged(place: str, how: str) -> LogDiverged:
    """The error for a log that does not continue what was read from it."""
    return LogDiverged(
        f"{place} has been replaced while it was open: {how}. Was a backup restored, a standby "
        "promoted, or another file moved over it? This process still knows what it has read: "
        "study.restore() accepts the log as it is now and records again what it lacks"
    )


def _is_sealed(line: str) -> bool:
    return line[-_TAIL:_FROM] == _FIELD


def _digest(before: str, body: str) -> str:
    return sha256((before + body).encode()).hexdigest()[:_DIGITS]
