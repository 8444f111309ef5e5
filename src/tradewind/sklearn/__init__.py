"""The scikit-learn search. It is imported only when it is used, because scikit-learn is heavy."""

from tradewind.sklearn.candidates import Candidate
from tradewind.sklearn.search import TradeoffSearchCV

__all__ = ["Candidate", "TradeoffSearchCV"]
