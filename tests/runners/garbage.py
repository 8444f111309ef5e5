"""What workers can write to the channel of their driver although they should not."""

from __future__ import annotations

import json
import os
import stat
import time
from typing import Any

from tradewind.bounds import MESSAGE

USAGE = {"wall": 1.0}
GOOD = {"message": "answer", "number": 0, "result": {"outcome": {"value": 1.0}}, "usage": USAGE}


def line(data: Any) -> bytes:
    return json.dumps(data).encode() + b"\n"


def answer(number: int) -> bytes:
    return line({**GOOD, "number": number})


def outcome(**fields: Any) -> bytes:
    return line({**GOOD, "result": {"outcome": {"value": 1.0, **fields}}})


def failure(**fields: Any) -> bytes:
    return line({**GOOD, "result": {"failure": {"error": "x", **fields}}})


def usage(**fields: Any) -> bytes:
    return line({**GOOD, "usage": {**USAGE, **fields}})


def without(key: str) -> bytes:
    return line({name: value for name, value in GOOD.items() if name != key})


def deep(levels: int) -> Any:
    return json.loads("[" * levels + "]" * levels)


# ---- what is no answer to trial 0, by its kind ----

FORGED: dict[str, bytes] = {
    # no text, no JSON
    "nothing": b"\n",
    "spaces": b"   \n",
    "words": b"hello\n",
    "bytes": b"\x7f\xff\xff\xff\n",
    "no UTF-8": b'{"message": "\xff"}\n',
    "a null byte": b"{}\0\n",
    "a pickle": b"\x80\x04cposix\nabort\n)R.\n",
    "half of an answer": answer(0)[:40] + b"\n",
    "two answers on a line": answer(0).strip() + answer(0),
    "a comment": b"{} // so\n",
    "single quotes": b"{'message': 'begun'}\n",
    "not a number": b'{"message": "answer", "number": NaN}\n',
    "infinity": b'{"message": "answer", "number": Infinity}\n',
    "a number beyond floats": b'{"message": "answer", "number": 1e999}\n',
    "a number of 5,000 digits": b"1" * 5_000 + b"\n",
    "a key twice": b'{"message": "answer", "message": "begun"}\n',
    "brackets": b"[" * 100_000 + b"\n",
    "braces": b'{"":' * 100_000 + b"\n",
    "200 levels": line(deep(200)),
    "too long": b"x" * (MESSAGE + 1) + b"\n",
    "too long, in JSON": line("x" * MESSAGE),
    # JSON, but no message
    "null": line(None),
    "true": line(True),
    "a number": line(0.5),
    "text": line("answer"),
    "a list": line([GOOD]),
    "an empty mapping": line({}),
    "no kind": without("message"),
    "an unknown kind": line({**GOOD, "message": "order"}),
    "a kind that is a list": line({**GOOD, "message": ["answer"]}),
    "a kind that is null": line({**GOOD, "message": None}),
    "an event of a log": line({"format": 1, "event": "finished", **GOOD, "message": "finished"}),
    # messages, but not this answer
    "loaded": line({"message": "loaded"}),
    "begun": line({"message": "begun", "number": 0}),
    "a trial": line(
        {"message": "trial", "number": 0, "params": {}, "state": "running", "origin": "model"}
    ),
    "another trial": answer(1),
    "a trial below zero": answer(-1),
    "a trial beyond 64 bits": answer(10**30),
    "half a trial": line({**GOOD, "number": 0.5}),
    "a trial in words": line({**GOOD, "number": "0"}),
    "a trial that is true": line({**GOOD, "number": False}),
    "no trial": without("number"),
    # results
    "no result": without("result"),
    "an empty result": line({**GOOD, "result": {}}),
    "two results": line({**GOOD, "result": {"outcome": {"value": 1.0}, "failure": {"error": "x"}}}),
    "an unknown result": line({**GOOD, "result": {"triumph": {"value": 1.0}}}),
    "a result that is a number": line({**GOOD, "result": 1.0}),
    "an outcome that is a number": line({**GOOD, "result": {"outcome": 1.0}}),
    "an outcome without a value": line({**GOOD, "result": {"outcome": {"cost": 1.0}}}),
    "a value in words": outcome(value="1.0"),
    "a value that is null": outcome(value=None),
    "a value that is true": outcome(value=True),
    "a value that is a list": outcome(value=[1.0]),
    "a value that is too large": outcome(value=1e301),
    "a value beyond floats": outcome(value=10**400),
    "a cost below zero": outcome(cost=-1.0),
    "a cost that is too large": outcome(cost=1e301),
    "a cost in words": outcome(cost="1"),
    "folds that are a number": outcome(folds=0.5),
    "folds in words": outcome(folds=["0.5"]),
    "a fold that is null": outcome(folds=[None]),
    "too many folds": outcome(folds=[0.5] * 10_001),
    "a share of nothing": outcome(share=0.5),
    "a share below zero": outcome(raced=True, share=-0.5),
    "raced in words": outcome(raced="yes"),
    "no trainings": outcome(trainings=0),
    "half a training": outcome(trainings=0.5),
    "too many trainings": outcome(trainings=10**400),
    "costs that are a list": outcome(costs=[1.0]),
    "a cost by name in words": outcome(costs={"money": "1"}),
    "a cost by name below zero": outcome(costs={"money": -1.0}),
    "too many costs": outcome(costs={f"c{i}": 1.0 for i in range(1_001)}),
    "a cost with a long name": outcome(costs={"n" * 32_001: 1.0}),
    "attributes that are a list": outcome(attributes=[1]),
    "too many attributes": outcome(attributes={str(i): 1 for i in range(10_000)}),
    "a large attribute": outcome(attributes={"log": "x" * 32_000}),
    "a deep attribute": outcome(attributes={"log": deep(101)}),
    "a failure that is text": line({**GOOD, "result": {"failure": "x"}}),
    "a failure without an error": line({**GOOD, "result": {"failure": {"seconds": 1.0}}}),
    "an error that is a number": failure(error=1),
    "an error that is null": failure(error=None),
    "seconds below zero": failure(seconds=-1.0),
    "too many seconds": failure(seconds=1e301),
    "seconds in words": failure(seconds="1"),
    "kinds that are text": failure(kinds="builtins.KeyboardInterrupt"),
    "kinds that are numbers": failure(kinds=[1]),
    "a loss without a reason": line({**GOOD, "result": {"lost": {}}}),
    "a stop for a number": line({**GOOD, "result": {"stopped": {"reason": 1}}}),
    # usage
    "a usage that is a number": line({**GOOD, "usage": 1.0}),
    "a usage without seconds": line({**GOOD, "usage": {"cpu": 1.0}}),
    "a usage in words": usage(wall="1"),
    "a usage that is null": usage(wall=None),
    "a usage that is too large": usage(wall=1e301),
    "CPU time in words": usage(cpu="1"),
    "a concurrency that is null": usage(concurrency=None),
    "a device that is a number": usage(device=0),
    "a memory that is a list": usage(memory=[1]),
    "a clock that is null": usage(clock=None),
}

# ---- odd, but what a worker may say ----

ODD: dict[str, bytes] = {
    "an answer": answer(0),
    "spaces around": b"  " + answer(0).strip() + b"\r\n",
    "what nobody knows": line({**GOOD, "colour": "red", "usage": {**USAGE, "mood": None}}),
    "no usage": without("usage"),
    "a usage below zero": usage(wall=-1.0),
    "a text that cannot be printed": failure(error="\ud800\0"),
    "a long error": failure(error="x" * 900_000),
    "no error": failure(error=""),
    "a failure of every kind": failure(kinds=["builtins.KeyboardInterrupt"] * 1_000),
    "the largest value": outcome(value=1e300),
    "whole numbers": outcome(value=1, cost=0, folds=[1, 0]),
    "a loss": line({**GOOD, "result": {"lost": {"reason": "x"}}}),
    "a stop": line({**GOOD, "result": {"stopped": {"reason": "x" * 100_000}}}),
    "as many folds as may be": outcome(folds=[0.1] * 10_000),
}


def write(data: bytes, *, times: int = 1, pause: float = 0.0) -> None:
    """Write to the sockets of this process, of which there is one in a worker."""
    sockets = [fd for fd in range(3, 20) if is_socket(fd)]
    for _ in range(times):
        for descriptor in sockets:
            os.write(descriptor, data)
        time.sleep(pause)


def is_socket(descriptor: int) -> bool:
    try:
        return stat.S_ISSOCK(os.fstat(descriptor).st_mode)
    except OSError:
        return False
