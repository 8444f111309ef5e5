"""Plain data: reading JSON strictly, and converting values to what JSON can express.

Every function raises TypeError or ValueError with the rule and what it got. The caller adds where
that happened, and raises the error of its own room.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from secrets import token_hex
from typing import Any, NoReturn

MAX_DEPTH = 100  # levels of nesting: far more than anybody needs, far fewer than Python can read
LONGEST = 1 << 22  # characters of one JSON text: parsed, it may take 30 times as much memory
_DEEPEST = MAX_DEPTH + 20  # an event wraps what a user gave into a few more levels
_MAX_SHOWN = 80  # characters of a value that an error message shows
_MAX_LISTED = 20  # values of a list that an error message shows


def parse_json(text: str | bytes) -> Any:
    """JSON text as data. Keys must be distinct and numbers finite."""
    text = text.decode() if isinstance(text, bytes) else text
    _check_length(text)
    try:
        data = _DECODER.decode(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    # Most texts have too few brackets to be nested deeply, so their data need not be looked at.
    if _brackets(text) > _DEEPEST and _depth(data) > _DEEPEST:
        raise ValueError(f"it is nested more than {_DEEPEST} levels deep")
    return data


def parse_together(texts: Sequence[str]) -> list[Any] | None:
    """Many JSON texts as data, faster than one by one. None if one of them is none, or has so many
    brackets that only `parse_json` can tell.

    They are parsed as one list. Between two of them stands a mark that no text can foresee, so a
    text that ends within a value is noticed, even if the next one completes it."""
    if any(len(text) > LONGEST or _brackets(text) > _DEEPEST for text in texts):
        return None  # `parse_json` has to look at them closely
    mark = token_hex(8)
    try:
        data = _DECODER.decode("[" + f',"{mark}",'.join(texts) + "]")
    except (ValueError, RecursionError):
        return None
    whole = len(data) == 2 * len(texts) - 1 and data[1::2] == [mark] * (len(texts) - 1)
    return data[::2] if whole else None


def write_json(data: Any) -> str:
    """Plain data as JSON text, in ASCII and on one line."""
    text = _ENCODER.encode(data)
    _check_length(text)  # what is written can be read
    return text


def _check_length(text: str) -> None:
    if len(text) > LONGEST:
        raise ValueError(f"it may have up to {LONGEST} characters as JSON, but it has {len(text)}")


def _brackets(text: str) -> int:
    return text.count("[") + text.count("{")


def _depth(data: Any) -> int:
    """The levels of lists and mappings in JSON data."""
    depth, level = 0, [data]
    while level := [each for each in level if isinstance(each, (list, dict))]:
        depth += 1
        level = [
            item for each in level for item in (each.values() if isinstance(each, dict) else each)
        ]
    return depth


def plain(value: Any, depth: int = 0) -> Any:
    """`value` as plain data: NumPy scalars and arrays, tuples and mappings are converted."""
    kind = type(value)
    if value is None or kind is str or kind is int or kind is bool:
        return value
    if isinstance(value, float):
        return finite(value)
    if depth > MAX_DEPTH:
        raise ValueError(f"must not be nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, Mapping):
        return {_key(key): _plain_at(key, item, depth) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, depth + 1) for item in value]
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    unpacked = value.tolist() if hasattr(value, "tolist") else value  # NumPy and the like
    if type(unpacked) is kind:
        raise TypeError(
            f"must be plain data (numbers, text, lists, mappings), but got {shown(value)}"
        )
    return plain(unpacked, depth + 1)


def _plain_at(key: Any, item: Any, depth: int) -> Any:
    try:
        return plain(item, depth + 1)
    except (TypeError, ValueError) as error:
        raise located(key, error) from None


def mapping(value: Any) -> dict[str, Any]:
    """`value`, which must be a dict, as JSON objects are read."""
    if type(value) is not dict:
        raise TypeError(f"must be a mapping, but got {shown(value)}")
    return value


def finite(value: float) -> float:
    """`value` as a plain float, which must be neither infinite nor NaN."""
    if not isfinite(value):
        raise ValueError(f"must be a finite number, but got {value!r}")
    return float(value)


def located(key: Any, error: Exception) -> Exception:
    """The same error with the key where it happened."""
    kind = TypeError if isinstance(error, TypeError) else ValueError
    return kind(f"{shown(key)}: {error}")


def shown(value: Any) -> str:
    """`value` for an error message, on one short line. Showing it must not fail."""
    try:
        text = " ".join(repr(value).splitlines())
    except Exception:  # the user's own __repr__, or an integer with too many digits to print
        return f"an unprintable {type(value).__name__}"
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 3] + "..."


def listed(values: Iterable[Any]) -> str:
    """Some values for an error message: `'a', 'b', ... (2 of 500)`."""
    values = list(values)
    some = ", ".join(map(shown, values[:_MAX_LISTED]))
    if len(values) <= _MAX_LISTED:
        return some
    return f"{some}, ... ({_MAX_LISTED} of {len(values)})"


def _key(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"keys must be text, but got {shown(value)}")
    return str.__str__(value)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        raise ValueError(f"keys must be distinct, but {shown(twice)} appears twice")
    return data


def _finite_number(text: str) -> float:
    value = float(text)
    if not isfinite(value):  # 1e999
        raise ValueError(f"numbers must be finite, but got {shown(text)}")
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"numbers must be finite, but got {constant}")


_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
_DECODER = json.JSONDecoder(
    object_pairs_hook=_distinct, parse_float=_finite_number, parse_constant=_refuse
)
