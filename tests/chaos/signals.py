"""Signals at random moments: every search ends as it was asked to.

`storm` starts processes that search again and again, and that send themselves signals meanwhile:
Ctrl-C once, Ctrl-C until the search ends, or SIGTERM; and Ctrl-C in a loop of `ask` and `tell`. It
counts what did not end as asked, and examines what was written.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

import tradewind as tw
from tests.chaos.work import LEASE, SPACE, Findings, Journal, examine, settle, value
from tradewind import interrupts
from tradewind.types import State

ROOT = Path(__file__).parents[2]
PER_STUDY = 300  # signals
STUCK = 120.0  # seconds after which a process that reports nothing is stuck

# What may become of a search, by what it was asked. A signal that arrives just before or after the
# search has its usual effect: Ctrl-C raises a KeyboardInterrupt, SIGTERM kills the process.
AS_ASKED = {
    "once": {"returned", "interrupted"},
    "insistent": {"interrupted"},
    "terminate": {"terminated", "killed"},
    "own loop": {"interrupted"},  # of `ask` and `tell`, where the exception arrives anywhere
}


def storm(
    storage: str, folder: Path, *, signals: int, seed: int
) -> tuple[dict[str, int], Findings]:
    """Send so many signals to searches. Returns how many searches were asked what, how many did not
    end as asked ("unheard"), how many left something behind ("untidy"), and the findings."""
    counts: Counter[str] = Counter()
    found: list[Findings] = []
    rng = random.Random(seed)
    while counts["signals"] < signals:
        name = f"storm {len(found)}"
        study = tw.create_study(SPACE, strategy="random", seed=7, storage=storage, name=name)
        inside = folder / f"storm-{seed}-{len(found)}"
        inside.mkdir()
        before = counts["signals"]
        while counts["signals"] < min(signals, before + PER_STUDY):
            left = min(signals, before + PER_STUDY) - counts["signals"]
            task = {"storage": storage, "name": name, "folder": str(inside), "signals": left}
            counts += _run({**task, "seed": rng.randrange(2**32)})
        settle(study)
        found.append(examine(study, Journal.entries(inside)))
    return {"unheard": 0, "untidy": 0, **counts}, _sum(found)


def _run(task: dict[str, Any]) -> Counter[str]:
    """Let a process search until it has sent its signals, or is killed by one of them."""
    command = [sys.executable, "-m", "tests.chaos.signals", json.dumps(task)]
    said = Path(task["folder"]) / "stderr"
    with said.open("w") as stderr:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            start_new_session=True,
        )
    assert process.stdout is not None
    watchdog = threading.Timer(STUCK, process.kill)
    counts: Counter[str] = Counter()
    last = None
    try:
        watchdog.start()
        for line in process.stdout:
            watchdog.cancel()
            watchdog = threading.Timer(STUCK, process.kill)
            watchdog.start()
            last = json.loads(line)
            if "outcome" in last:
                counts += _judge(last)
    finally:
        watchdog.cancel()
        process.kill()
        code = process.wait()
        process.stdout.close()
    if last is not None and "outcome" not in last:  # it died in the middle of a search
        outcome = "killed" if code == -signal.SIGTERM else f"exit code {code}"
        counts += _judge({**last, "outcome": outcome, "sent": 1, "untidy": []})
    elif code != 0:
        raise AssertionError(f"a process ended with exit code {code}: {said.read_text()[-3000:]}")
    return counts


def _judge(round_: dict[str, Any]) -> Counter[str]:
    asked, outcome = round_["asked"], round_["outcome"]
    unheard = outcome not in AS_ASKED[asked]
    if unheard or round_["untidy"]:
        print(round_, file=sys.stderr)
    counts = {"signals": round_["sent"], asked: 1, f"{asked}: {outcome}": 1}
    return Counter({**counts, "unheard": unheard, "untidy": bool(round_["untidy"])})


def _sum(found: list[Findings]) -> Findings:
    numbers = {
        f.name: sum(getattr(each, f.name) for each in found)
        for f in fields(Findings)
        if f.type == "int"
    }
    faithful = all(each.faithful for each in found)
    wrong = [each.replay for each in found if not each.faithful]
    replay = "; ".join(wrong) or f"{numbers['trials']} proposals: all identical"
    return replace(found[0], **numbers, faithful=faithful, replay=replay)


# ---- the process that is signalled ----


class Sender(threading.Thread):
    """Sends signals to this process: one, or again and again until `over`."""

    def __init__(self, asked: str, after: float) -> None:
        super().__init__(daemon=True)
        self._asked, self._after = asked, after
        self.sent, self.over = 0, threading.Event()

    def run(self) -> None:
        time.sleep(self._after)
        number = signal.SIGTERM if self._asked == "terminate" else signal.SIGINT
        while self.sent == 0 or (self._asked == "insistent" and not self.over.wait(0.002)):
            self.sent += 1
            os.kill(os.getpid(), number)


def work(trial: Any) -> dict[str, float]:
    """A trial of a few milliseconds, in places where exceptions are easily swallowed."""
    kind = trial.seed % 500
    if kind == 0:
        try:
            time.sleep(0.01)
        except BaseException:
            time.sleep(0.001)
    until = time.monotonic() + 1e-5 * kind
    while time.monotonic() < until:
        np.linspace(0.0, 1.0, 20).mean()
        assert State["FINISHED"].value == State.FINISHED.value
    return {"value": value(trial.params), "cost": 1.0 + trial.params["k"]}


def search(study: tw.Study, journal: Journal, rng: random.Random, asked: str) -> tuple[str, int]:
    """Search once, and be signalled meanwhile. Returns what became of it, and how many signals were
    sent."""
    workers = 2 if rng.random() < 0.02 else None
    sender = Sender(asked, rng.uniform(0.0, 0.03 if workers is None else 2.0))
    n_trials = 10**6 if asked == "once" else rng.choice([1, 3] + [10**6] * 6)
    outcome = None
    while True:
        try:
            if not sender.is_alive() and not sender.sent:
                sender.start()
            if outcome is None:
                outcome = "begun"
                if asked == "own loop":
                    ask_and_tell(study, journal)
                study.optimize(
                    work,
                    n_trials,
                    n_workers=workers,
                    lease=LEASE,
                    callbacks=[journal],
                    show_progress=False,
                )
                outcome = "returned"
            if asked != "once" and not sender.sent:
                time.sleep(0.01)  # the search has ended before
                continue
            if asked == "insistent" and outcome == "returned":
                time.sleep(0.01)
                continue
            sender.over.set()
            sender.join()
            time.sleep(0.0)  # a signal that is pending takes effect here
            return outcome, sender.sent
        except KeyboardInterrupt:
            outcome = "interrupted"
        except SystemExit as error:
            outcome = "terminated" if error.code == 128 + signal.SIGTERM else f"exit {error.code}"


def ask_and_tell(study: tw.Study, journal: Journal) -> NoReturn:
    while True:
        trial = study.ask(lease=LEASE)
        journal(study, study.tell(trial, value(trial.params), cost=1.0 + trial.params["k"]))


def untidy(study: tw.Study, asked: str, leased: set[int]) -> list[str]:
    """What a search has left behind. A loop of the user's own may leave a trial with a lease, which
    is added to `leased`."""
    session, found = study._session, []
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        found.append("the handler of SIGINT")
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        found.append("the handler of SIGTERM")
    if interrupts._scopes or signal.getitimer(signal.ITIMER_REAL)[0]:
        found.append("a scope or a timer")
    states: list[Any] = []
    reader = threading.Thread(target=lambda: states.append(session.read_state()), daemon=True)
    reader.start()
    reader.join(timeout=30)
    if not states:
        return [*found, "a lock"]
    mine = {n for n, by in states[0].holder.items() if by == session.id}
    if asked == "own loop":
        leased |= mine
    if mine - leased or session.held:
        found.append(f"trials {mine - leased} {session.held}")
    return found


def main() -> None:
    task = json.loads(sys.argv[1])
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # the shell may ignore it
    rng = random.Random(task["seed"])
    study = tw.load_study(task["storage"], task["name"])
    journal = Journal(Path(task["folder"]) / f"{task['seed']}.journal")
    left, leased = task["signals"], set[int]()
    while left > 0:
        asked = rng.choice(list(AS_ASKED))
        print(json.dumps({"asked": asked}), flush=True)
        outcome, sent = search(study, journal, rng, asked)
        left -= sent
        report = {"asked": asked, "outcome": outcome, "sent": sent}
        print(json.dumps({**report, "untidy": untidy(study, asked, leased)}), flush=True)


if __name__ == "__main__":
    main()
