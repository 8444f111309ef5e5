"""Pure functions from a history to a proposal.

`history.py` is what a strategy may know. A strategy (`strategies/`) fits surrogates (`surrogates/`)
to it, scores rows with an acquisition (`acquisition/`), and maximizes the score (`maximizers/`).
Nothing here knows of logs, runners or clocks.
"""
