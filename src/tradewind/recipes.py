"""Strategies by name: what is published, and what measured best."""

from __future__ import annotations

from tradewind.strategies.bayes import Bayes
from tradewind.strategies.design import Design, RandomSearch, Sampling
from tradewind.strategies.models import Output
from tradewind.tradeoff import Improvement, Published


def auto() -> Bayes:
    """What measured best (benchmarks/README.md)."""
    return Bayes()


def random_search() -> RandomSearch:
    """Uniform random search."""
    return RandomSearch()


def wang2020(*, k: int = 3, published: bool = True) -> Bayes:
    """Trade-off optimization as published (W20, algorithm 1): k Sobol points, one Gaussian
    process on raw quality and one on σ, the acquisition a_T = a_L − α·a_σ of eq. 2–3.

    `published=False` puts the improvement of T in place of a_T, everything else the same."""
    return Bayes(
        design=Design(k, Sampling.SOBOL),
        rule=Published() if published else Improvement(),
        output=Output.IDENTITY,
        largest_reference=True,
    )
