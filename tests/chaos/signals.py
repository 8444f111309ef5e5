"""Signals at random moments: every search ends as it was asked to.

A process searches again and again, and sends itself signals meanwhile: Ctrl-C once, Ctrl-C until
the search ends, or SIGTERM; and Ctrl-C in a loop of `ask` and `tell`.
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
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

import tradewind as tw
from tests.chaos.findings import Findings, examine
from tests.chaos.site import Site
from tests.chaos.work import LEASE, NAME, Witness, spooling, study_at, value
from tests.studies import environment
from tradewind import interrupts
from tradewind.types import State

STUCK = 120.0  # seconds after which a process that reports nothing is stuck

# What may become of a search, by what it was asked. A signal that arrives just before or after the
# search has its usual effect: Ctrl-C raises a KeyboardInterrupt, SIGTERM kills the process.
AS_ASKED = {
    "Ctrl-C once": {"returned", "interrupted"},
    "Ctrl-C again and again": {"interrupted"},
    "SIGTERM": {"terminated", "killed"},
    "Ctrl-C between ask and tell": {"interrupted"},  # where the exception arrives anywhere
}
ONCE, AGAIN, TERMINATE, OWN_LOOP = AS_ASKED


def storm(site: Site, *, size: int, seed: int) -> Findings:
    """Send at least `size` signals to searches, and see that each ends as it was asked to and
    leaves nothing behind: no lock, no handler, no trial of its own."""
    rng, found = random.Random(seed), Findings()
    study = study_at(site.storage)
    while found.faults.total() < size:
        left = size - found.faults.total()
        found += _run(site, {"signals": left, "seed": rng.randrange(2**32)})
    return found + examine(study, site.folder)


def _run(site: Site, task: dict[str, int]) -> Findings:
    """Let a process search until it has sent its signals, or is killed by one of them."""
    command = [sys.executable, "-m", "tests.chaos.signals", site.storage, str(site.folder)]
    found, last = Findings(), {"outcome": "not begun"}
    with (site.folder / f"{task['seed']}.stderr").open("w") as stderr:
        process = subprocess.Popen(
            [*command, json.dumps(task)],
            env=environment() | spooling(site.folder),
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            start_new_session=True,
        )
    assert process.stdout is not None
    watchdog = threading.Timer(0.0, lambda: None)
    try:
        for line in process.stdout:
            watchdog.cancel()
            watchdog = threading.Timer(STUCK, process.kill)
            watchdog.start()
            last = json.loads(line)
            _judge(found, last)
    finally:
        watchdog.cancel()
        process.kill()
        code = process.wait()
        process.stdout.close()
    if "outcome" not in last:  # it died in the middle of a search
        outcome = "killed" if code == -signal.SIGTERM else f"ended with exit code {code}"
        _judge(found, {**last, "outcome": outcome, "sent": 1, "untidy": []})
    elif code != 0:
        found.notes.append(f"a process that is signalled ended with exit code {code}")
    return found


def _judge(found: Findings, said: dict[str, Any]) -> None:
    """Count the signals of a search that has ended, and note what is wrong."""
    if "outcome" in said:
        found.faults[said["asked"]] += said["sent"]
        if said["outcome"] not in AS_ASKED[said["asked"]]:
            found.notes.append(f"a search did not end as asked: {said}")
        if said["untidy"]:
            found.notes.append(f"a search has left something behind: {said}")


# ---- the process that is signalled ----


class Sender(threading.Thread):
    """Sends signals to this process: one, or again and again until `over`."""

    def __init__(self, asked: str, after: float) -> None:
        super().__init__(daemon=True)
        self._asked, self._after = asked, after
        self.sent, self.over = 0, threading.Event()

    def run(self) -> None:
        time.sleep(self._after)
        number = signal.SIGTERM if self._asked == TERMINATE else signal.SIGINT
        while self.sent == 0 or (self._asked == AGAIN and not self.over.wait(0.002)):
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


def search(study: tw.Study, witness: Witness, rng: random.Random, asked: str) -> tuple[str, int]:
    """Search once, and be signalled meanwhile. Returns what became of it, and how many signals were
    sent."""
    workers = 2 if rng.random() < 0.02 else None
    sender = Sender(asked, rng.uniform(0.0, 0.03 if workers is None else 2.0))
    n_trials = 10**6 if asked == ONCE else rng.choice([1, 3] + [10**6] * 6)
    outcome = None
    while True:
        try:
            if not sender.is_alive() and not sender.sent:
                sender.start()
            if outcome is None:
                outcome = "begun"
                if asked == OWN_LOOP:
                    ask_and_tell(study, witness)
                study.optimize(
                    work,
                    n_trials,
                    n_workers=workers,
                    lease=LEASE,
                    callbacks=[witness],
                    show_progress=False,
                )
                outcome = "returned"
            if asked != ONCE and not sender.sent:
                time.sleep(0.01)  # the search has ended before
                continue
            if asked == AGAIN and outcome == "returned":
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


def ask_and_tell(study: tw.Study, witness: Witness) -> NoReturn:
    while True:
        trial = study.ask(lease=LEASE)
        witness(study, study.tell(trial, value(trial.params), cost=1.0 + trial.params["k"]))


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
    if asked == OWN_LOOP:
        leased |= mine
    if mine - leased or session.held:
        found.append(f"trials {mine - leased} {session.held}")
    return found


def main() -> None:
    storage, folder, task = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may let it be ignored
    rng = random.Random(task["seed"])
    study = tw.load_study(storage, NAME)
    witness = Witness(folder / f"{task['seed']}.witness")
    left, leased = task["signals"], set[int]()
    while left > 0:
        asked = rng.choice(list(AS_ASKED))
        print(json.dumps({"asked": asked}), flush=True)
        outcome, sent = search(study, witness, rng, asked)
        left -= sent
        report = {"asked": asked, "outcome": outcome, "sent": sent}
        print(json.dumps({**report, "untidy": untidy(study, asked, leased)}), flush=True)


if __name__ == "__main__":
    main()
