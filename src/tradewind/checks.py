"""The only place where arguments are checked.

Each function returns the argument as a plain Python value, or raises an error that gives the rule
and what it got. NumPy scalars count as numbers; booleans do not.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from numbers import Integral, Real
from operator import index
from typing import Any, TypeVar

from tradewind import amounts
from tradewind.errors import OutcomeError
from tradewind.plain import shown

T = TypeVar("T")

_LARGEST = 2**63  # positions and trial numbers are 64-bit integers in a database
_LONG, _MANY = 100, 1000  # letters of a name, and names, beyond which no nearest one is looked for


# ---- numbers ----


def unpacked(given: Any) -> Any:
    """A NumPy scalar as a plain Python value; anything else as it is."""
    item = getattr(given, "item", None)
    return item() if callable(item) and getattr(given, "shape", None) == () else given


def is_whole(given: Any) -> bool:
    number = unpacked(given)
    return isinstance(number, Integral) and not isinstance(number, bool)


def real(given: Any) -> float:
    """A number as a float. Anything else becomes NaN, which lies in no range."""
    number = unpacked(given)
    if isinstance(number, bool) or not isinstance(number, Real):
        return math.nan
    try:
        return float(number)
    except OverflowError:  # an integer too large for a float
        return math.nan


def whole(name: str, given: Any, least: int = 0, most: int | None = None) -> int:
    number = unpacked(given)
    if not is_whole(number) or number < least or (most is not None and number > most):
        rule = f"≥ {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name} must be a whole number {rule}, but got {given!r}")
    return int(number)


def freeze_wholes(part: object, /, **bounds: tuple[int, int]) -> None:
    """Check the fields of a frozen dataclass that must be whole numbers within these bounds. The
    upper ones are far beyond what helps: no typo and no stranger's file may use up a machine."""
    for name, (least, most) in bounds.items():
        full = f"{type(part).__name__}: {name}"
        object.__setattr__(part, name, whole(full, getattr(part, name), least, most))


def whole_numbers(name: str, given: Any, least: int = 0) -> tuple[int, ...]:
    """A list of whole numbers that is not empty."""
    try:
        numbers = [] if isinstance(given, (str, bytes)) else list(given)
    except TypeError:  # not a list, or an array without dimensions
        numbers = []
    if not numbers:
        raise ValueError(f"{name} must be a list of whole numbers, but got {given!r}")
    return tuple(whole(f"each of {name}", number, least) for number in numbers)


def count(name: str, given: Any) -> int | None:
    """None or a whole number; a float such as 5.0 counts as one."""
    number = unpacked(given)
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    return or_none(whole, name, number)


def positive(name: str, given: Any) -> float:
    return _number_within(name, given, "> 0", lambda number: 0 < number < math.inf)


def not_negative(name: str, given: Any) -> float:
    return _number_within(name, given, "≥ 0", lambda number: 0 <= number < math.inf)


def fraction(name: str, given: Any) -> float:
    return _number_within(name, given, "in (0, 1]", lambda number: 0 < number <= 1)


def share(name: str, given: Any) -> float:
    return _number_within(name, given, "in [0, 1)", lambda number: 0 <= number < 1)


def probability(name: str, given: Any) -> float:
    return _number_within(name, given, "in (0, 1)", lambda number: 0 < number < 1)


def between(name: str, given: Any, low: float, high: float) -> float:
    rule = f"from {low:g} to {high:g}"
    return _number_within(name, given, rule, lambda number: low <= number <= high)


def finite_number(name: str, given: Any) -> float:
    number = real(given)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number, but got {given!r}")
    return number


def _number_within(name: str, given: Any, rule: str, holds: Callable[[float], bool]) -> float:
    number = real(given)
    if not holds(number):
        raise ValueError(f"{name} must be a number {rule}, but got {given!r}")
    return given if isinstance(given, amounts.GivenAmount) else number


def limit(name: str, given: Any, check: Callable[[str, Any], float] = not_negative) -> float | None:
    """A limit, or None if there is none. Infinity means no limit, too."""
    return None if given is None or real(given) == math.inf else check(name, given)


def seconds(name: str, given: Any) -> Any:
    """A duration written as text in seconds; anything else as it is."""
    return amounts.seconds(name, given) if isinstance(given, str) else given


def patience(name: str, given: Any) -> float:
    """For how many seconds to try again. None and infinity mean for ever."""
    found = limit(name, seconds(name, given))
    return math.inf if found is None else found


def or_none(check: Callable[..., T], name: str, given: Any, *bounds: int) -> T | None:
    """None, or what `check` returns."""
    return None if given is None else check(name, given, *bounds)


def seed_of(random_state: Any) -> int:
    """A seed from whatever scikit-learn accepts as `random_state`."""
    if isinstance(unpacked(random_state), Integral):
        return whole("random_state", random_state, 0, 2**63 - 1)
    from sklearn.utils import check_random_state

    return int(check_random_state(random_state).randint(2**31))


# ---- words, flags, functions, objects ----


def one_of(name: str, given: T, choices: Collection[str]) -> T:
    if not isinstance(given, str) or given not in choices:
        listed = ", ".join(map(repr, choices))
        raise ValueError(f"{name} must be one of {listed}, but got {given!r}")
    return given


def flag(name: str, given: Any) -> bool:
    value = unpacked(given)
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, but got {given!r}")
    return value


def exceptions(given: Any) -> tuple[type[BaseException], ...]:
    kinds = given if isinstance(given, tuple) else (given,)
    if not all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in kinds):
        raise TypeError(f"catch must be an exception class or a tuple of them, but got {given!r}")
    return kinds


def callbacks(given: Any) -> tuple[Callable[..., Any], ...]:
    functions = tuple(given) if isinstance(given, Iterable) else ()
    if not isinstance(given, Iterable) or not all(map(callable, functions)):
        raise TypeError(
            f"callbacks must be a list of functions of (study, trial), but got {given!r}"
        )
    return functions


def has_methods(name: str, given: T, methods: Collection[str], example: str) -> T:
    """An object with these methods. A class is refused: the user forgot to call it."""
    if isinstance(given, type):
        raise TypeError(f"{name} must be an object, but got the class: write {given.__name__}()")
    if isinstance(given, str):
        raise TypeError(f"{name} must be an object such as {example}, but got {given!r}")
    missing = [m for m in methods if not callable(getattr(given, m, None))]
    if missing:
        raise TypeError(
            f"{name} must be an object such as {example}, but got {given!r}, "
            f"which has no {missing[0]}()"
        )
    return given


def stopping_rules(given: Any, goal: Any) -> tuple[Any, ...]:
    """One stopping rule or several as a tuple; None means none. They must suit the goal."""
    rule, text = callable(getattr(given, "reason", None)), isinstance(given, str)
    several = isinstance(given, Iterable) and not rule and not text
    rules = () if given is None else tuple(given) if several else (given,)
    for rule in rules:
        has_methods("stop", rule, ("reason",), "stopping.NoImprovement(20)")
        if hasattr(rule, "suits"):
            rule.suits(goal)
    return rules


def strategy(given: T) -> T:
    methods = ("propose", "recommend", "settle", "suits", "eligible")
    example = "strategies.Bayes() or your own subclass of strategies.Strategy"
    return has_methods("strategy", given, methods, example)


# ---- words of other tools, and misspelt ones ----


def suggest(given: Any, known: Iterable[str]) -> str:
    """`" (did you mean 'alpha'?)"` if `given` is close to a known name, or else nothing."""
    from difflib import get_close_matches

    if not isinstance(given, str) or len(given) > _LONG:
        return ""
    short = islice((name for name in known if len(name) <= _LONG), _MANY)
    names = {name.casefold(): name for name in short}
    close = get_close_matches(given.casefold(), names, n=1, cutoff=0.65)
    return f" (did you mean {names[close[0]]!r}?)" if close else ""


def unknown_keyword(
    function: Callable[..., Any], given: Mapping[str, Any], advice: Mapping[str, str]
) -> TypeError:
    """The error for keywords that `function` does not have: with the advice for the first of them,
    or else with the nearest keyword."""
    keyword = next(iter(given))
    text = f"{function.__name__}() has no argument {keyword!r}"
    if keyword in advice:
        return TypeError(f"{text}: {advice[keyword]}")
    parameters = inspect.signature(function).parameters
    known = [name for name, p in parameters.items() if p.kind is not p.VAR_KEYWORD]
    return TypeError(f"{text}{suggest(keyword, known)}: it takes {', '.join(known)}")


# ---- goals ----


def cost_name(name: str, given: Any) -> str:
    """The name of a cost, such as "memory"."""
    if not isinstance(given, str) or not given:
        raise ValueError(f'{name} must be the name of a cost, such as "memory", but got {given!r}')
    return str.__str__(given)


def ordered_pair(name: str, given: Any) -> tuple[float, float]:
    """Two positive numbers, the smaller one first."""
    numbers = tuple(given) if isinstance(given, (tuple, list)) else ()
    if len(numbers) != 2 or not 0.0 < real(numbers[0]) < real(numbers[1]) < math.inf:
        raise ValueError(f"{name} must be two numbers 0 < low < high, but got {given!r}")
    return real(numbers[0]), real(numbers[1])


def tolerance(name: str, given: Any) -> float | str:
    """An amount of quality, a percentage such as "1%", or "1se"."""
    if not isinstance(given, str):
        return not_negative(name, given)
    text = given.replace(" ", "")
    try:
        percent = float(text[:-1]) if text.endswith("%") else math.nan
    except ValueError:
        percent = math.nan
    if text != "1se" and not 0.0 <= percent < math.inf:
        raise ValueError(
            f'{name} must be a number ≥ 0, a share such as "1%", or "1se", but got {given!r}'
        )
    return text


# ---- studies and their logs ----


def study_name(given: Any) -> str:
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


def position(given: int) -> int:
    """A position in a log."""
    if not 0 <= index(given) < _LARGEST:
        raise ValueError(f"a position counts from 0, but got {given!r}")
    return index(given)


def lease(trials: Sequence[int], seconds: float) -> tuple[list[int], float]:
    """Distinct trial numbers in order, and the seconds to lease them for."""
    if not (math.isfinite(seconds) and seconds >= 0):
        raise ValueError(f"a lease must be a finite number of seconds ≥ 0, but got {seconds!r}")
    numbers = sorted({index(trial) for trial in trials})
    if numbers and not 0 <= numbers[0] <= numbers[-1] < _LARGEST:
        raise ValueError(f"trial numbers count from 0, but got {list(trials)!r}")
    return numbers, float(seconds)


# ---- what an objective reports ----


def finite(name: str, given: Any) -> float:
    """A finite number: a scalar, or an array or tensor with one element."""
    item = getattr(given, "item", None)  # arrays and tensors of any library
    try:
        scalar = item() if callable(item) else given
        number = math.nan if isinstance(scalar, (str, bytes)) else float(scalar)
    except (TypeError, ValueError, OverflowError, RuntimeError):  # the last is PyTorch's
        number = math.nan
    if not math.isfinite(number):
        raise OutcomeError(f"{name} must be a finite number, but got {shown(given)}")
    return number


def mean(folds: Sequence[float]) -> float:
    try:
        return math.fsum(folds) / len(folds)
    except OverflowError:
        raise OutcomeError(f"the sum of folds must be finite, but got {shown(folds)}") from None
