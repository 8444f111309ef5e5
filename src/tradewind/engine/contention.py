"""Several drivers on one log: what a session does about the trials and claims of others.

A session that is alone computes a proposal and writes it in one append. If other drivers hold
trials, it claims the number first, so that no two drivers compute the same trial. Trials whose
driver has let its lease run out, or has died on this machine, go back to the queue.
"""

from __future__ import annotations

import os
import platform
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tradewind.log.events import Abandoned, Claimed, Event, Requeued
from tradewind.log.state import StudyState
from tradewind.output import logger as _logger
from tradewind.types import State, Trial

if TYPE_CHECKING:
    from tradewind.engine.session import Session

MAX_LOSSES = 3  # a trial whose worker or driver dies more often than this is abandoned
CLAIM = 300.0  # seconds for a proposal whose lease nobody renews
_MAX_REPEATS = 10  # times a proposal is repeated because another driver proposed almost the same


@dataclass(frozen=True)
class Request:
    """What somebody wants who asks for a trial (see `Session.ask`)."""

    max_cost: float | None
    lease: float | None
    keep: bool
    start: bool
    new: bool = True  # whether it may be a new proposal


# ---- lost trials ----


def find_lost(session: Session, state: StudyState, others: set[int]) -> list[int]:
    """Which trials and claims of other drivers are lost: their lease has run out, or the process of
    their search is gone."""
    gone = {number for number in others if is_alive(state.holder[number]) is False}
    return sorted(gone | (others - session.log.beat([], 0.0).keys()))


def warn_of_others(session: Session) -> None:
    """Log how many trials wait for drivers elsewhere, which may be gone, and until when."""
    state, me = session.state, session.id.split(":")[:2]
    held = {number: state.holder[number] for number in state.leased & state.trials.keys()}
    away = {n: by for n, by in held.items() if is_alive(by) is None and by.split(":")[:2] != me}
    leases = session.log.beat([], 0.0) if away else {}
    ends = [leases[number] for number in away.keys() & leases.keys()]
    if ends:
        _logger.warning(
            "unfinished trials of drivers on %s: %d; if those drivers are gone, searches run these "
            "trials from %s on",
            ", ".join(sorted({by.partition(":")[0] for by in away.values()})),
            len(ends),
            time.strftime("%H:%M:%S", time.localtime(session.clock() + max(ends))),
        )


def requeue(session: Session, state: StudyState, lost: list[int]) -> bool:
    """Put lost trials back into the queue; False if another driver wrote first."""
    events: list[Event] = []
    at = state.position
    for trial in (state.trials[number] for number in lost if number in state.trials):
        if trial.state is State.WAITING:
            reason = "its driver ended before starting it"
            events.append(Requeued(trial.number, reason, retry=False))
        else:
            events.append(loss_event(trial, "its driver ended while it ran", session.clock()))
    return not events or session.journal.append(events, at=at)


def loss_event(trial: Trial, reason: str, at: float) -> Requeued | Abandoned:
    """The event for a trial whose worker or driver died: it is run again, but not forever."""
    if trial.losses < MAX_LOSSES:
        return Requeued(trial.number, reason, lost=True)
    return Abandoned(trial.number, f"{reason}, {MAX_LOSSES + 1} times", at=at)


# ---- processes ----
# The name of a driver ends in what tells its process from all others, once it runs a search. Own
# loops do not say it: they may ask for a trial in one process and tell its result in another.


@cache
def _machine() -> str:
    """An id of this boot of this machine or container, where pids count; empty if it is unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        return f"{boot[:8]}-{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return ""


def this_process() -> str:
    """The end of the name of a driver in this process; empty if the machine is unknown."""
    return f":{_machine()}:{_began(os.getpid())}" if _machine() else ""


def is_alive(driver: str) -> bool | None:
    """Whether the process of a search still runs; None if it cannot be seen from here."""
    match driver.split(":"):
        case [node, pid, _, machine, began] if machine == _machine() and node == platform.node():
            try:
                os.kill(int(pid), 0)
                return _began(int(pid)) == began
            except ProcessLookupError:
                return False
            except (OSError, ValueError, OverflowError):  # of another user, or no name of ours
                return None
    return None


def _began(pid: int) -> str:
    """When a process began, in ticks since the boot; empty if it has ended and is only listed."""
    after_name = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    return "" if after_name[0] in (b"Z", b"X") else after_name[19].decode()


# ---- claims ----


def claim_and_propose(session: Session, number: int, request: Request, at: int) -> int | None:
    """Claim a number at position `at`, then compute and write its proposal. None if another driver
    was faster, or took the claim over because the proposal took too long."""
    seconds = request.lease if request.keep and request.lease else CLAIM
    claim = Claimed(number, session.id)
    if not session.journal.append([claim], at=at, lease=(number, seconds)):
        return None
    if request.keep and request.lease is not None:
        session.held[number] = request.lease
    proposed = False
    try:
        proposed = _propose_claimed(session, number, request)
    finally:
        if not proposed:
            session.held.pop(number, None)
    return number if proposed else None


def _propose_claimed(session: Session, number: int, request: Request) -> bool:
    """Compute and write the proposal of a claimed trial; False if the claim was taken over."""
    proposed, attempts = None, 0
    while True:
        proposer = session.journal.latest()
        state = proposer.state
        at = state.position
        if state.holder.get(number) != session.id:
            return False
        if number in state.trials:
            return True
        state.check_not_paused()
        may_repeat = attempts <= _MAX_REPEATS
        if proposed is None or (
            may_repeat and proposer.is_like_recent(proposed.params, proposed.seen)
        ):
            session.change_plan(state)
            proposed, attempts = session.propose(number, request), attempts + 1
        events = [proposed, *session.start_events(number, request)]
        lease = None if request.lease is None else (number, request.lease)
        if session.journal.append(events, at=at, lease=lease):
            return True
        session.journal.read()
