"""What a page may ask of a study: each command becomes one event in its log.

`read_command` checks what came over the network, and `carry_out` calls the study. Nothing else of
the dashboard changes a study.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from tradewind.checks import or_none
from tradewind.dashboard.guard import Refusal
from tradewind.errors import (
    FormatError,
    LogDiverged,
    NoSuchStudy,
    StorageError,
    TradewindError,
)
from tradewind.goals import BestUnder, Goal, Tradeoff
from tradewind.plain import parse_json, shown
from tradewind.study.study import Study
from tradewind.study.words import goal_in_words, unit_of_costs

_LONGEST_REASON = 300  # characters
_LONGEST_SENTENCE = 600
_STOPPED = "stopped from the dashboard"

Command: TypeAlias = Callable[[Study], str]
"""Changes a study and says in a sentence what has happened."""


def read_command(verb: str, body: bytes) -> Command:
    """The command of a request, or a `Refusal`."""
    read = _VERBS.get(verb)
    if read is None:
        raise Refusal(404, f"There is no command {shown(verb)}: use {', '.join(_VERBS)}.")
    try:
        data = parse_json(body or b"{}")
    except ValueError as error:  # a UnicodeDecodeError is one, too
        raise Refusal(400, f"This is not valid JSON: {sentence(error)}") from None
    if not isinstance(data, dict):
        raise Refusal(400, f"The request must be a JSON object, but got {shown(data)}.")
    return read(data)


def carry_out(command: Command, study: Study) -> str:
    """What has happened, in a sentence; a `Refusal` if nothing has."""
    try:
        return command(study)
    except (NoSuchStudy, LogDiverged):
        raise Refusal(409, "The study was deleted or replaced: nothing was changed.") from None
    except StorageError as error:
        status = 500 if isinstance(error, FormatError) else 503
        raise Refusal(status, sentence(error)) from None
    except (ValueError, TypeError, OverflowError) as error:  # SpaceError, ConfigError, wrong kinds
        raise Refusal(400, sentence(error)) from None
    except TradewindError as error:  # TrialError: it has ended already
        raise Refusal(409, sentence(error)) from None


# ---- the commands ----


def _pause(data: Mapping[str, Any]) -> Command:
    reason = _text(_only(data, "reason"), "reason", "paused from the dashboard")

    def pause(study: Study) -> str:
        study.pause(reason)
        return "The study is paused: running trials go on, and no new one is started."

    return pause


def _resume(data: Mapping[str, Any]) -> Command:
    _only(data)

    def resume(study: Study) -> str:
        study.resume()
        return "The study goes on."

    return resume


def _stop(data: Mapping[str, Any]) -> Command:
    given = _only(data, "trial", "reason").get("trial")
    reason = _text(data, "reason", _STOPPED)
    if type(given) is not int or not 0 <= given < 2**53:  # what JavaScript can count
        raise Refusal(400, f"The trial must be given by its number, but got {shown(given)}.")
    number = given

    def stop(study: Study) -> str:
        study.abandon(number, reason)
        return f"Trial {number} is stopped."

    return stop


def _enqueue(data: Mapping[str, Any]) -> Command:
    params = _only(data, "params", "train_size").get("params")
    size = data.get("train_size")
    if not isinstance(params, dict):
        raise Refusal(400, f"The params must be an object with values, but got {shown(params)}.")

    def enqueue(study: Study) -> str:
        study.enqueue(params, train_size=size)
        return "The configuration is queued: it runs before anything new is proposed."

    return enqueue


def _goal(data: Mapping[str, Any]) -> Command:
    goal = _read_goal(data)

    def change_goal(study: Study) -> str:
        study.change_goal(goal)
        wanted = goal_in_words(goal, unit_of_costs(study.trials, goal.by), study.metric)
        return f"The goal of the study is now: {wanted}."

    return change_goal


def _read_goal(data: Mapping[str, Any]) -> Goal:
    """`{"alpha", "reference"}` or `{"limit", "confidence"}`, each with `by` if costs have names."""
    given = _only(data, "alpha", "reference", "limit", "confidence", "by")
    other = {"reference"} if "limit" in given else {"confidence"}
    if ("alpha" in given) == ("limit" in given) or other & given.keys():
        raise Refusal(400, "Give a goal as {alpha, reference} or as {limit, confidence}.")
    by = or_none(lambda name, value: _text({name: value}, name, ""), "by", given.get("by"))
    numbers = {name: _number(given, name) for name in ("alpha", "reference", "limit", "confidence")}
    try:
        if "limit" in given:
            sure = {} if numbers["confidence"] is None else {"confidence": numbers["confidence"]}
            return BestUnder(numbers["limit"], by=by, **sure)  # type: ignore[arg-type]
        return Tradeoff(numbers["alpha"], numbers["reference"], by=by)  # type: ignore[arg-type]
    except (ValueError, TypeError) as error:
        raise Refusal(400, sentence(error)) from None


_VERBS: dict[str, Callable[[Mapping[str, Any]], Command]] = {
    "pause": _pause,
    "resume": _resume,
    "stop": _stop,
    "enqueue": _enqueue,
    "goal": _goal,
}


# ---- checks ----


def _only(data: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """`data`, which may have these fields and no others."""
    unknown = data.keys() - set(names)
    if unknown:
        allowed = ", ".join(names) or "none"
        raise Refusal(400, f"There is no field {shown(min(unknown))} here; there is: {allowed}.")
    return data


def _text(data: Mapping[str, Any], name: str, default: str) -> str:
    value = data.get(name, default)
    if not isinstance(value, str) or len(value) > _LONGEST_REASON or not _is_line(value):
        raise Refusal(
            400,
            f"The {name} must be one line of up to {_LONGEST_REASON} characters, "
            f"not {shown(value)}.",
        )
    return value.strip() or default


def _is_line(text: str) -> bool:
    """Whether this is text that terminals can show: without control characters, and without the
    halves of letters that JSON can express."""
    return not any(unicodedata.category(letter) in ("Cc", "Cs") for letter in text)


def _number(data: Mapping[str, Any], name: str) -> float | None:
    value = data.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
        raise Refusal(400, f"The {name} must be a number, but got {shown(value)}.")
    try:
        return None if value is None else float(value)
    except OverflowError:
        raise Refusal(400, f"The {name} must be a number of at most 1e308.") from None


def sentence(error: BaseException) -> str:
    """The message of an error, on one line and not too long."""
    text = " ".join(str(error).split())
    text = text if len(text) <= _LONGEST_SENTENCE else text[: _LONGEST_SENTENCE - 1] + "…"
    if text.partition(" ")[0].isalpha():  # not the name of an argument such as train_size
        text = text[:1].upper() + text[1:]
    return text + ("" if text.endswith((".", "…")) else ".")
