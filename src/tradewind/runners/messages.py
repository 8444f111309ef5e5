"""What travels between the driver and a worker: the objective, a pickle, and then messages.

A message is one JSON text in the codec of the log. The driver sends a `Trial`. The worker sends
`Loaded` first, and `Begun` and `Answer` for each trial. So what comes back is data: the driver
unpickles nothing and runs no code of a worker, and reads what it is told as it reads a log.
"""

from __future__ import annotations

import sys
import traceback
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, TypeAlias

from tradewind import fields
from tradewind.bounds import MESSAGE
from tradewind.errors import WorkerError
from tradewind.plain import mapping, parse_json, shown, write_json
from tradewind.runners.run import Objective
from tradewind.runners.runner import Done, Failure, Lost, Result, Stopped, names_of
from tradewind.types import Origin, Outcome, Rival, State, Trial, Usage

_LONGEST_ERROR = 8_000  # characters


@dataclass(frozen=True)
class Loaded:
    """The first message of a worker: it is ready, or `error` says why it cannot load the
    objective."""

    error: str | None = None


@dataclass(frozen=True)
class Begun:
    """The trial with this number has arrived and runs. If the worker dies after this, the trial has
    failed."""

    number: int


@dataclass(frozen=True)
class Answer:
    """The result of the trial with this number."""

    number: int
    result: Result
    usage: Usage | None = None


Message: TypeAlias = Loaded | Begun | Answer | Trial


def _encode_result(result: Any) -> dict[str, Any]:
    for kind, (name, codec) in _RESULTS.items():
        if isinstance(result, kind):
            return {name: codec.encode(result)}
    raise TypeError(f"must be an Outcome, a Failure, Lost or Stopped, but got {shown(result)}")


def _decode_result(data: Any) -> Any:
    for name, codec in _RESULTS.values():
        if mapping(data).keys() == {name}:
            return codec.decode(data[name])
    raise ValueError(f"must be an outcome, a failure, lost or stopped, but got {shown(data)}")


_FAILURE = fields.DataclassCodec(
    Failure, {"error": fields.TEXT, "seconds": fields.optional(fields.COST), "kinds": fields.TEXTS}
)
_RESULTS: dict[type, tuple[str, Any]] = {
    Outcome: ("outcome", fields.OUTCOME),
    Failure: ("failure", _FAILURE),
    Lost: ("lost", fields.DataclassCodec(Lost, {"reason": fields.TEXT})),
    Stopped: ("stopped", fields.DataclassCodec(Stopped, {"reason": fields.TEXT})),
}
_RESULT = fields.FieldCodec(_encode_result, _decode_result)
_RIVAL = fields.DataclassCodec(
    Rival,
    {
        "folds": fields.NUMBERS,
        "sign": fields.NUMBER,
        "margin": fields.NUMBER,
        "data": fields.optional(fields.TEXT),
    },
).as_field()
_TRIAL = fields.DataclassCodec(  # that is to run: it has not reported anything yet
    Trial,
    {
        "number": fields.WHOLE,
        "params": fields.CONFIG,
        "state": fields.one_of(State),
        "origin": fields.one_of(Origin),
        "seed": fields.INTEGER,
        "train_size": fields.NUMBER,
        "retries": fields.WHOLE,
        "losses": fields.WHOLE,
        "expected_cost": fields.optional(fields.NUMBER),
        "driver": fields.optional(fields.TEXT),
        "started": fields.optional(fields.NUMBER),
        "data_seed": fields.INTEGER,
        "size_name": fields.optional(fields.TEXT),
        "rival": fields.optional(_RIVAL),
        "cost_name": fields.TEXT,
        "per_training": fields.FLAG,
        "metric": fields.optional(fields.TEXT),
    },
)
_CODECS: dict[Any, fields.DataclassCodec] = {
    "loaded": fields.DataclassCodec(Loaded, {"error": fields.optional(fields.TEXT)}),
    "begun": fields.DataclassCodec(Begun, {"number": fields.WHOLE}),
    "answer": fields.DataclassCodec(
        Answer, {"number": fields.WHOLE, "result": _RESULT, "usage": fields.optional(fields.USAGE)}
    ),
    "trial": _TRIAL,
}


def encode(message: Message) -> str:
    """The text of a message. TypeError or ValueError if it holds anything but plain data."""
    name = "trial" if isinstance(message, Trial) else type(message).__name__.lower()
    return write_json({"message": name, **_CODECS[name].encode(message)})


def decode(text: str | bytes) -> Message:
    """The message in a text. TypeError or ValueError if there is none."""
    data = mapping(parse_json(text))
    codec = _CODECS.get(data.pop("message", None))
    if codec is None:
        raise ValueError(f"it is not a message: {shown(data)}")
    message: Message = codec.decode(data)
    return message


# ---- answers ----


def write_answer(done: Done) -> str:
    """The result of a trial as one text, for a process that waits for it. A result that no log can
    hold becomes a failure that says why.

    >>> from tradewind.runners.messages import write_answer
    >>> trial, result = study.trials[0], tw.runners.Failure("out of memory")
    >>> "out of memory" in write_answer(tw.runners.Done(trial, result))
    True
    """
    number, result = done.trial.number, done.result
    try:
        if isinstance(result, Failure):
            kinds = result.kinds if result.raised is None else names_of(result.raised)
            result = replace(result, error=shorten(result.error), raised=None, kinds=kinds)
        return encode(Answer(number, result, done.usage))
    except Exception as error:
        return encode(Answer(number, Failure(shorten(f"its result cannot be recorded: {error}"))))


def read_answer(text: object, trial: Trial) -> Done:
    """The result of a trial, from the text of `write_answer`. Any other text is a failure.

    >>> from tradewind.runners.messages import read_answer
    >>> read_answer("oops", study.trials[0]).result.error[:40]
    'the answer of its worker cannot be read:'
    """
    try:
        if not isinstance(text, str) or len(text) > MESSAGE:
            raise ValueError(f"it must be text of up to {MESSAGE} characters")
        answer = decode(text)
        if not isinstance(answer, Answer) or answer.number != trial.number:
            raise ValueError("it belongs to something else")
    except (TypeError, ValueError) as error:
        return Done(trial, Failure(shorten(f"the answer of its worker cannot be read: {error}")))
    return Done(trial, answer.result, answer.usage)


def checked(done: Done) -> Done:
    """The answer of a user's own runner, read as if a worker had sent it."""
    try:
        sound = read_answer(write_answer(done), done.trial)
    except (AttributeError, TypeError, ValueError):
        text = f"a runner must return Done with a trial, but got {shown(done)}"
        raise WorkerError(text) from None
    raised = getattr(done.result, "raised", None)
    if isinstance(raised, BaseException) and isinstance(sound.result, Failure):
        return replace(sound, result=replace(sound.result, raised=raised))
    return sound


# ---- on the way to a worker ----


def pack(objective: Objective) -> bytes:
    """Pickle the objective by value, for other processes."""
    if not callable(objective):
        raise TypeError(f"the objective must be callable, but got {objective!r}")
    try:
        import cloudpickle
    except ImportError:  # scikit-learn brings a copy of it
        from joblib.externals import cloudpickle
    try:
        return bytes(cloudpickle.dumps(objective))
    except Exception as error:  # pickling runs the user's code
        raise TypeError(
            "the objective cannot be sent to worker processes, because it or something that it "
            f"refers to cannot be pickled: {type(error).__name__}: {error}. Make such things "
            "(open files, locks, connections, generators) inside the objective"
        ) from error


def shorten(text: str) -> str:
    """Cut the middle out of a text that is too long for a message, or for the log."""
    most = _LONGEST_ERROR // 2
    return text if len(text) <= 2 * most else f"{text[:most]}\n[...]\n{text[-most:]}"


# ---- what was raised ----


def describe(error: BaseException) -> str:
    """The traceback of the exception that is being handled.

    An exception is the user's own code and data, so making text of it may itself raise anything: a
    `SyntaxError` whose line is no text, groups nested thousands deep, a `__str__`."""
    trace = sys.exc_info()[2]
    try:
        text = "".join(traceback.format_exception(error))
    except BaseException:
        text = _describe_plainly(error, trace)
    return shorten(text.encode("utf-8", "backslashreplace").decode())


def _describe_plainly(error: BaseException, trace: TracebackType | None) -> str:
    """Where it was raised, its type, and its message if there is one."""
    try:
        where = "".join(traceback.format_tb(trace))
        return f"Traceback (most recent call last):\n{where}{type(error).__name__}: {_text(error)}"
    except BaseException:
        return "an exception that cannot be described"


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException:
        return "(its message cannot be read)"
