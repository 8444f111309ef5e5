"""Rules that end a search when it has found what there is to find."""

from tradewind.optimizer.stopping import ErrorBelow, NoImprovement, NotWorthIt, StoppingRule

__all__ = ["ErrorBelow", "NoImprovement", "NotWorthIt", "StoppingRule"]
