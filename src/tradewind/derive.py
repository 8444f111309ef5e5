"""What a log implies: where a proposal is computed, by a driver or by a replay."""

from __future__ import annotations

import os
import threading
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any

from tradewind.errors import ConfigError
from tradewind.events import Proposed
from tradewind.goals import Goal
from tradewind.history import proposal_rng
from tradewind.record import Record
from tradewind.strategies.strategy import Strategy


@lru_cache(maxsize=1)
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


_proposing = threading.RLock()  # the number of threads is the process's: one sets it at a time


def _forked() -> None:
    """A thread of the parent may have held the lock."""
    global _proposing
    _proposing = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def one_blas_thread() -> AbstractContextManager[Any]:
    """Linear algebra on one thread: quicker at this size, and the same to the bit on replay."""
    limit: AbstractContextManager[Any] = _blas().limit(limits=1)
    return limit


def derive(
    record: Record, number: int, goal: Goal, strategy: Strategy, *, max_cost: float | None = None
) -> Proposed:
    """What the log, as far as it has been read, implies for trial `number`."""
    history = record.history(number, max_cost=max_cost)
    rng = proposal_rng(record.seed, number)
    with _proposing, one_blas_thread():
        proposal = strategy.propose(record.space, goal, history, rng=rng)
    if not record.fits(proposal.train_size):  # strategies may be the user's own
        raise ConfigError(
            "a strategy must propose a training size in (0, 1], and none where it is a parameter, "
            f"but {strategy!r} gave {proposal.train_size!r}"
        )
    return Proposed(
        number,
        record.space.validate(proposal.params),
        proposal.origin,
        record.position,
        dict(proposal.handover),
        max_cost,
        proposal.expected_cost,
        proposal.train_size,
    )
