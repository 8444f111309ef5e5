"""The scikit-learn search. It is imported only where it is asked for: scikit-learn is heavy."""

from tradewind.search_cv.choosing import Candidate
from tradewind.search_cv.search import TradeoffSearchCV

__all__ = ["Candidate", "TradeoffSearchCV"]
