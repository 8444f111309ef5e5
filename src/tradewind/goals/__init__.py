"""What is wanted, and which trial comes closest to it."""

from tradewind.goals.aims import Aim, Beat, Extend, Seen
from tradewind.goals.frontier import Frontier, Knee
from tradewind.goals.goal import Acquisition, Goal, TradeoffRule
from tradewind.goals.limits import BestUnder, CheapestWithin
from tradewind.goals.picking import best_first, best_of, efficient
from tradewind.goals.quality import Quality
from tradewind.goals.tradeoff import Tradeoff

__all__ = [
    "Acquisition",
    "Aim",
    "Beat",
    "BestUnder",
    "CheapestWithin",
    "Extend",
    "Frontier",
    "Goal",
    "Knee",
    "Quality",
    "Seen",
    "Tradeoff",
    "TradeoffRule",
    "best_first",
    "best_of",
    "efficient",
]
