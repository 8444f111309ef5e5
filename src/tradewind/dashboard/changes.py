"""What has changed between two states of a page, as small as it can simply be said.

A change is None (nothing), `{"=": value}` (replaced), `{"{": {key: change}, "-": [keys]}` for a
mapping, or for a list `{"[": [start, removed, [added]]}` (a part replaced) and
`{"#": {index: change}}` (some items changed). assets/live.js applies it in the browser.
"""

from __future__ import annotations

from typing import Any, TypeAlias

Change: TypeAlias = dict[str, Any] | None

_FEW = 32  # items of a list that are compared one by one


def difference(old: Any, new: Any) -> Change:
    """The change that makes `new` of `old`, both plain data."""
    if old is new:
        return None
    if type(old) is dict and type(new) is dict:
        return _of_mappings(old, new)
    if type(old) is list and type(new) is list:
        return _of_lists(old, new)
    return None if _same(old, new) else {"=": new}


def apply(old: Any, change: Change) -> Any:
    """The new value; `old` is not changed."""
    if change is None:
        return old
    if "=" in change:
        return change["="]
    if "{" in change:
        kept = {key: value for key, value in old.items() if key not in change.get("-", ())}
        changed = {key: apply(old.get(key), each) for key, each in change["{"].items()}
        return kept | changed
    if "[" in change:
        start, removed, added = change["["]
        return [*old[:start], *added, *old[start + removed :]]
    items = list(old)
    for index, each in change["#"].items():
        items[int(index)] = apply(items[int(index)], each)
    return items


def _same(old: Any, new: Any) -> bool:
    """Equal and of the same type: for Python, 1 equals 1.0 and True."""
    return old is new or (type(old) is type(new) and bool(old == new))


def _of_mappings(old: dict[str, Any], new: dict[str, Any]) -> Change:
    changed: dict[str, Any] = {}
    for key, value in new.items():
        change: Change = {"=": value} if key not in old else difference(old[key], value)
        if change is not None:
            changed[key] = change
    gone = [key for key in old if key not in new]
    if not changed and not gone:
        return None
    return {"{": changed, "-": gone} if gone else {"{": changed}


def _of_lists(old: list[Any], new: list[Any]) -> Change:
    start, end = _common(old, new)
    if start == len(old) == len(new):
        return None
    middle = len(new) - start - end
    if len(old) == len(new) and middle <= _FEW and _is_nested(new[start]):
        changes = {i: difference(old[i], new[i]) for i in range(start, start + middle)}
        return {"#": {str(i): change for i, change in changes.items() if change is not None}}
    return {"[": [start, len(old) - start - end, new[start : len(new) - end]]}


def _is_nested(value: Any) -> bool:
    return isinstance(value, (list, dict))


def _common(old: list[Any], new: list[Any]) -> tuple[int, int]:
    """How many items are the same at the start and, beyond those, at the end."""
    shortest = min(len(old), len(new))
    start = 0
    while start < shortest and _same(old[start], new[start]):
        start += 1
    end = 0
    while end < shortest - start and _same(old[-1 - end], new[-1 - end]):
        end += 1
    return start, end
