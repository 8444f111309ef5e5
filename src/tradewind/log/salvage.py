"""What can be saved of a damaged log: every event before the damage, exactly as it was stored.

A single flipped bit can be undone: only the right one makes the digest fit. What follows other
damage is only counted. Nobody could tell what happened in between, so a log must not continue with
it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain

from tradewind.errors import FormatError, StorageError, TradewindError
from tradewind.log.chain import START, Head, advise, seal, unseal
from tradewind.log.codec import decode
from tradewind.log.events import Event, Failed, Finished, Unknown
from tradewind.log.rows import line_of
from tradewind.log.state import StudyState

_MENDABLE = 10_000  # bytes: a flipped bit in a longer line would take seconds to find


@dataclass(frozen=True)
class SavedStudy:
    """What was saved of a study: the number of its events and of its trials. `damage` says what was
    wrong, or is None. `lost` are the trials whose results came after the damage."""

    name: str
    events: int
    trials: int
    damage: str | None = None
    lost: tuple[int, ...] = ()

    def __str__(self) -> str:
        kept = f"study {self.name!r}: {self.trials} trials are kept ({self.events} events)"
        if self.damage is None:
            return f"{kept}: all that was found"
        which = ", ".join(map(str, self.lost)) or "none that can be recognized"
        return f"{kept}; {self.damage}; results that are lost, by trial: {which}"


class _Newer(FormatError):
    """An event that a newer version has written."""


def save_study(
    name: str, found: Mapping[int, Sequence[str | bytes]]
) -> tuple[SavedStudy, list[str]]:
    """What can be saved of a study, and its good lines. `found` are all versions of the line at
    each position; at most one of them fits what comes before."""
    state: StudyState | None = None
    head, damage = START, None
    lines: list[str] = []
    while head.length <= max(found, default=0):
        try:
            versions = found.get(head.length, ())
            others = chain(_mended(head, versions), _sealed(head, versions))
            event, after = _next_event(head, chain(versions, others))
            if state is None:
                state = StudyState.of([event])
            else:
                state.apply([event])
        except _Newer:
            raise
        except TradewindError as error:
            damage = str(error)
            break
        head = after
        lines.append(head.line)
    rest = (found[position] for position in found if position >= head.length)
    lost = {number for versions in rest for number in results_in(versions)}
    trials = 0 if state is None else len(state.trials)
    return SavedStudy(name, head.length, trials, damage, tuple(sorted(lost))), lines


def _next_event(head: Head, versions: Iterable[str | bytes]) -> tuple[Event, Head]:
    """The event that follows `head`, and the head after it."""
    error = FormatError(f"event {head.length} is missing")
    for version in versions:
        try:
            (body,), after = unseal(head, [line_of((head.length, version), head.length)])
        except FormatError as problem:
            error = problem
            continue
        try:
            return decode(body), after
        except FormatError as problem:
            if after.is_sealed and advise(problem) == str(problem):
                raise _Newer(f"event {head.length} is not damaged, but {problem}") from None
            error = FormatError(f"event {head.length} is damaged: {problem}")
    raise error


def _mended(head: Head, versions: Iterable[str | bytes]) -> Iterator[str]:
    """The line that follows `head`, if one of its versions differs from it in a single bit."""
    for version in versions:
        line = bytearray(version.encode() if isinstance(version, str) else version)
        for bit in range(8 * len(line) if len(line) <= _MENDABLE else 0):
            line[bit // 8] ^= 1 << bit % 8
            with suppress(FormatError):
                text = line_of((0, bytes(line)), 0)
                if unseal(head, [text])[1].is_sealed:
                    yield text
            line[bit // 8] ^= 1 << bit % 8


def _sealed(head: Head, versions: Iterable[str | bytes]) -> Iterator[str]:
    """The line that follows `head`, if version 0.1 wrote it: whole, but without a digest."""
    for version in versions:
        with suppress(FormatError):
            text = line_of((0, version), 0)
            event = decode(text)
            if head.is_sealed and not isinstance(event, Unknown) and not event.extra:
                yield from seal(head, [text])[0]


def results_in(versions: Iterable[str | bytes]) -> Iterator[int]:
    """The trials whose results are in these lines, as far as they can be read."""
    for version in versions:
        try:
            event = decode(line_of((0, version), 0))
        except FormatError:
            continue
        if isinstance(event, Finished | Failed):
            yield event.number


def keep(path: str) -> str:
    """Give a damaged file a second name, which nobody has yet."""
    number = 0
    while True:
        name = f"{path}.damaged{f'.{number}' if number else ''}"
        try:
            os.link(path, name)
            return name
        except FileExistsError:
            number += 1
        except OSError as error:
            raise StorageError(
                f"{path} was not changed, because it cannot be kept as {name}: {error.strerror}"
            ) from error
