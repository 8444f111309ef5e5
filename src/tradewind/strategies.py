"""Strategies, which choose the trials of a study, and the parts they are made of.

>>> study = tw.create_study(space, strategy=tw.strategies.RandomSearch(), seed=0)
"""

from tradewind.optimizer.acquisition.ei import EI
from tradewind.optimizer.acquisition.mgfi import MGFI
from tradewind.optimizer.acquisition.pi import PI
from tradewind.optimizer.acquisition.schedules import Exponential, Linear, LogNormal
from tradewind.optimizer.acquisition.tradeoff import Improvement, Published
from tradewind.optimizer.acquisition.ucb import UCB
from tradewind.optimizer.maximizers.evolution import MIES
from tradewind.optimizer.maximizers.local import LocalSearch
from tradewind.optimizer.strategies.bayes import Bayes
from tradewind.optimizer.strategies.design import Design, Sampling
from tradewind.optimizer.strategies.fidelity import MultiFidelity
from tradewind.optimizer.strategies.random_search import RandomSearch
from tradewind.optimizer.strategies.staged import Staged
from tradewind.optimizer.strategies.strategy import Strategy
from tradewind.optimizer.strategies.worth import Output
from tradewind.optimizer.surrogates.forest import RandomForest
from tradewind.optimizer.surrogates.gp import GaussianProcess

__all__ = [
    "EI",
    "MGFI",
    "MIES",
    "PI",
    "UCB",
    "Bayes",
    "Design",
    "Exponential",
    "GaussianProcess",
    "Improvement",
    "Linear",
    "LocalSearch",
    "LogNormal",
    "MultiFidelity",
    "Output",
    "Published",
    "RandomForest",
    "RandomSearch",
    "Sampling",
    "Staged",
    "Strategy",
]
