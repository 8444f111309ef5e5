"""The moving parts: a session writes the log, and a loop proposes, submits, waits and records.

`session.py` takes trials and records what becomes of them, through `journal.py`, which appends at
the position that was read. `propose.py` computes a proposal from the state. `loop.py` runs a search
within its `limits.py`, with `leases.py`, `signals.py` and `failures.py` beside it. `contention.py`
is about several drivers on one log, `plan.py` about goals and strategies as data, and `rivals.py`
about the trial that others are raced against.
"""
