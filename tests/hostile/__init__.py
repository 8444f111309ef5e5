"""Hostile files: what a stranger may hand us.

`readers.py` lists everything that reads a file, `corpus.py` makes the files, `confine.py` reads
them in a process with little memory and little time, and `fuzz.py` damages valid files at random
(`python -m tests.hostile.fuzz --seconds 60 --seed 1`).

What must hold: no reader takes longer than 20 seconds of CPU time or 500 MB, none raises anything
but a `TradewindError` (a missing file may also be a plain FileNotFoundError), and what it returns
can be used.
"""
