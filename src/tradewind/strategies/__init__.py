"""How trials are chosen: the strategies and the parts they are made of."""

from tradewind.acquisition import EI, MGFI, PI, UCB, Exponential, Linear, LogNormal
from tradewind.maximizers.evolution import MIES
from tradewind.maximizers.local import LocalSearch
from tradewind.strategies.bayes import Bayes
from tradewind.strategies.design import Design, RandomSearch, Sampling
from tradewind.strategies.fidelity import MultiFidelity
from tradewind.strategies.models import Output
from tradewind.strategies.staged import Staged
from tradewind.strategies.strategy import Strategy
from tradewind.surrogates.forest import RandomForest
from tradewind.surrogates.gp import GaussianProcess
from tradewind.tradeoff import Improvement, Published

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
