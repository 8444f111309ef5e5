"""Ready-made strategies: the published ones, and the one that did best in our benchmarks.

>>> study = tw.create_study(space, strategy=tw.recipes.random_search(), seed=0)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from tradewind.goals import Acquisition
from tradewind.optimizer.acquisition.mgfi import MGFI
from tradewind.optimizer.acquisition.tradeoff import Improvement, Published
from tradewind.optimizer.maximizers.evolution import MIES
from tradewind.optimizer.maximizers.maximizer import Maximizer
from tradewind.optimizer.strategies.bayes import Bayes
from tradewind.optimizer.strategies.design import Design, Sampling
from tradewind.optimizer.strategies.random_search import RandomSearch
from tradewind.optimizer.strategies.staged import Staged
from tradewind.optimizer.strategies.worth import Output
from tradewind.optimizer.surrogates.forest import RandomForest
from tradewind.optimizer.surrogates.gp import GaussianProcess, cost_process


def auto() -> Bayes:
    """The strategy that did best in our benchmarks (benchmarks/README.md), and the default.

    It finds out by itself how noisy and how rough results are, and which parameters matter.

    >>> study = tw.create_study(space, strategy=tw.recipes.auto(), seed=0)  # the default
    """
    exact = GaussianProcess(matter=14)
    noisy = replace(exact, noise_mean=-6.0, noise_std=3.0)
    return Bayes(
        surrogate=exact,
        noisy=noisy,
        rough=replace(noisy, length_mean=-1.0),
        cost_surrogate=cost_process(),
        reference_points=10,
    )


def random_search() -> RandomSearch:
    """Uniform random search.

    >>> study = tw.create_study(space, strategy=tw.recipes.random_search(), seed=0)
    """
    return RandomSearch()


def wang2015(
    *,
    fractions: tuple[float, ...] = (0.3, 1.0),
    trials: int | tuple[int, ...] = 10,
    k: int = 3,
    published: bool = True,
) -> Staged:
    """Multi-stage optimization as published (W15, algorithm 1).

    Each stage trains with a larger fraction of the training set and uses a Gaussian process on raw
    quality with expected improvement. The first stage begins with k Sobol points, every other stage
    with the k best configurations of the stage before it. The best result of all stages wins.

    `published=False` uses `auto()` within the stages, and only the last stage may win.

    >>> strategy = tw.recipes.wang2015(fractions=(0.3, 1.0), trials=10, k=3)
    >>> study = tw.create_study(space, strategy=strategy, seed=0)
    """
    inner = Bayes(design=Design(k, Sampling.SOBOL), output=Output.IDENTITY) if published else auto()
    return Staged(inner, fractions, trials, k, final="all" if published else "last")


def wang2020(*, k: int = 3, published: bool = True) -> Bayes:
    """Trade-off optimization as published (W20, algorithm 1): k Sobol points, one Gaussian
    process on raw quality and one on σ, and the acquisition a_T = a_L − α·a_σ (eq. 2–3).

    `published=False` replaces a_T by the improvement of T and changes nothing else.

    >>> strategy = tw.recipes.wang2020(k=3)
    >>> study = tw.create_study(space, goal=tw.Tradeoff(alpha=0.3), strategy=strategy, seed=0)
    """
    return Bayes(
        design=Design(k, Sampling.SOBOL),
        surrogate=GaussianProcess(size_power=None),
        rule=Published() if published else Improvement(),
        output=Output.IDENTITY,
        largest_reference=True,
    )


def mip_ego(
    *,
    acquisition: Acquisition | None = None,
    loss: Literal["log_error", "identity"] = "log_error",
    k: int = 5,
    trees: int = 110,
    maximizer: Maximizer | None = None,
) -> Bayes:
    """MiP-EGO as configured by H (§3, §5.3): k Latin-hypercube points, a random forest, and the
    acquisition maximized by a (4, 10) evolution strategy over 500 generations.

    `acquisition` is `EI()`, `PI()` or `MGFI(t)`, where t is a number or a schedule: 2, the default,
    or `Linear()` or `Exponential()`, which cool it from 2 to 0.1 over 1000 trials (H §6.2). Losses
    are scaled to [0, 1], as published. `MGFI(t, spread=0.5)` draws another t for each of several
    trials that run at the same time. `loss="log_error"` models log(1 − accuracy) (eq. 15), so
    values must be accuracies; `"identity"` models the value as it is.

    >>> strategy = tw.recipes.mip_ego(acquisition=tw.strategies.EI(), loss="identity")
    >>> study = tw.create_study(space, strategy=strategy, seed=0)
    """
    outputs = {"log_error": Output.LOG_ERROR, "identity": Output.IDENTITY}
    if loss not in outputs:
        raise ValueError(f"loss must be one of {sorted(outputs)}, but got {loss!r}")
    return Bayes(
        design=Design(k, Sampling.LATIN),
        surrogate=RandomForest(trees=trees),
        acquisition=MGFI(2.0) if acquisition is None else acquisition,
        maximizer=MIES() if maximizer is None else maximizer,
        output=outputs[loss],
        scaling="range",
    )
