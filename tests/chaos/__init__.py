"""Faults on purpose: what a study must survive. `make chaos` runs the whole campaign.

`campaign.py` has the plan and plays its rounds, one after the other. Each family of faults is one
file with one function per kind of round. `crew.py` has the drivers that work while things break,
and `findings.py` says what must hold afterwards.
"""
