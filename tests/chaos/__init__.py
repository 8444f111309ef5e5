"""Faults on purpose: what a study must survive. `make chaos` runs the whole campaign."""
