"""The scikit-learn search. It is imported only where it is asked for: scikit-learn is heavy."""

from tradewind.sklearn.choosing import Candidate
from tradewind.sklearn.search import TradeoffSearchCV

__all__ = ["Candidate", "TradeoffSearchCV"]
