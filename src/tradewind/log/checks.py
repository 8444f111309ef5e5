"""What every log and store asks of its arguments, and how a lease is judged."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from operator import index

from tradewind.errors import NoSuchStudy, StudyExists

SLACK = 1e-3  # seconds: what rounding may add to a lease

BIG = 2**63  # positions and trial numbers are 64-bit integers in a database


def name(given: str) -> str:
    """A name that every store can hold."""
    if not isinstance(given, str):
        raise TypeError(f"the name of a study must be text, but got {given!r}")
    if not given.strip():
        raise ValueError(f"the name of a study must not be empty, but got {given!r}")
    try:
        given.encode()
    except UnicodeEncodeError:
        raise ValueError(f"the name of a study must be valid Unicode, but got {given!r}") from None
    if "\0" in given:
        raise ValueError(f"the name of a study must not contain NUL, but got {given!r}")
    return str.__str__(given)


def position(after: int) -> int:
    """A position to read from."""
    if not 0 <= index(after) < BIG:
        raise ValueError(f"a position counts from 0, but got {after!r}")
    return index(after)


def lease(trials: Sequence[int], seconds: float) -> tuple[list[int], float]:
    """Trial numbers in order, each once, and for how long."""
    if not (isfinite(seconds) and seconds >= 0):
        raise ValueError(f"a lease takes a finite number of seconds from 0 on, but got {seconds!r}")
    numbers = sorted({index(trial) for trial in trials})
    if numbers and not 0 <= numbers[0] <= numbers[-1] < BIG:
        raise ValueError(f"trial numbers count from 0, but got {list(trials)!r}")
    return numbers, float(seconds)


def stands(until: float, seconds: float, now: float) -> bool:
    """Whether a lease that was granted for `seconds` holds. One that would last longer than it was
    granted for is from before the clock was set back or started anew."""
    return now <= until <= now + seconds + SLACK


def exists(name: str, where: str) -> StudyExists:
    return StudyExists(f"there is already a study {name!r} in {where}")


def missing(name: str, where: str) -> NoSuchStudy:
    return NoSuchStudy(f"there is no study {name!r} in {where}")
