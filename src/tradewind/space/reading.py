"""Strict reading of plain data: each step gives what was asked for or a `SpaceError`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from tradewind.errors import SpaceError


def parsed(text: str | bytes, what: str) -> Any:
    """JSON text as data, with no name given twice and no NaN."""
    try:
        return json.loads(text, object_pairs_hook=_distinct, parse_constant=_not_json)
    except SpaceError as error:
        raise SpaceError(f"{what}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise SpaceError(f"{what} must be JSON text, but it cannot be read: {error}") from None


def mapping(given: Any, what: str) -> Mapping[str, Any]:
    """`given`, if it is a mapping with text as keys."""
    if not isinstance(given, Mapping):
        raise SpaceError(f"{what} must be a mapping, but got {given!r}")
    for name in given:
        if not isinstance(name, str):
            raise SpaceError(f"{what} must be keyed by text, but got {name!r}")
    return given


def keys(
    given: Mapping[str, Any], what: str, needed: Sequence[str], optional: Sequence[str]
) -> None:
    """Checks that the needed keys are there and no unknown ones (a typo must not pass)."""
    for key in needed:
        if key not in given:
            raise SpaceError(f"{what} needs the key {key!r}, but got {dict(given)!r}")
    for key in given:
        if key not in needed and key not in optional:
            known = ", ".join(map(repr, (*needed, *optional)))
            raise SpaceError(f"{what} has no key {key!r}: it takes {known}")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise SpaceError(f"names must be distinct, but {twice!r} is given twice")
    return data


def _not_json(constant: str) -> NoReturn:
    raise SpaceError(f"numbers must be finite, but got {constant}")
