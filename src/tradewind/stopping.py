"""Rules that end a search when it has found what there is to find.

>>> study.optimize(objective, 50, stop=tw.stopping.NoImprovement(trials=3, min_trials=5))
"""

from tradewind.optimizer.stopping import ErrorBelow, NoImprovement, NotWorthIt, StoppingRule

__all__ = ["ErrorBelow", "NoImprovement", "NotWorthIt", "StoppingRule"]
