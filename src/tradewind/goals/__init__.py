"""What is wanted, and which trial comes closest to it."""

from tradewind.goals.goal import Acquisition, Goal, TradeoffRule
from tradewind.goals.picking import best_of, efficient
from tradewind.goals.quality import Quality
from tradewind.goals.tradeoff import Tradeoff

__all__ = ["Acquisition", "Goal", "Quality", "Tradeoff", "TradeoffRule", "best_of", "efficient"]
