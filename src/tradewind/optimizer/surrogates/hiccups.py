"""Costs that a hiccup of the machine has inflated: found by leaving each observation out.

A single run that took ten times as long as all others suggest says little about its configuration.
It is not removed, but its noise is raised to the size of the surprise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tradewind.types import Array, Mask

if TYPE_CHECKING:
    from tradewind.optimizer.surrogates.gp import Problem
    from tradewind.optimizer.surrogates.posterior import Peak

_FEWEST = 8  # observations; fewer do not tell what is usual
_UNUSUAL = 4.0  # times the usual surprise
_SURPRISING = 4.0  # standard deviations
_FACTOR = float(np.log(2.0))  # a run that took less than twice as long does no harm
_MOST = 0.1  # of the observations; more than that are no hiccups


def without_hiccups(problem: Problem, peak: Peak) -> tuple[Problem, Peak]:
    """A problem of log-costs in which hiccups have more noise, and its hyper-parameters. `peak`
    has those of the given one.

    An outlier spoils the hyper-parameters that should expose it. So suspects are first told by
    their distance alone, and the process is fitted without believing them. Then a suspect is a
    hiccup if that process is surely surprised. It is not if it was alone in an unknown region,
    where anything can be expected."""
    above = problem.at(peak.theta).left_out().mean
    suspects = _suspects(above * problem.scale.scale)
    if not suspects.any():
        return problem, peak
    more = np.where(suspects, np.square(above), 0.0)
    doubtful = problem.noisier(more)
    found = doubtful.posterior.maximize(peak.theta)
    left_out = doubtful.at(found.theta).left_out()
    std = np.sqrt(np.maximum(np.square(left_out.std) - more, 1e-12))
    hiccups = suspects & (left_out.mean > _SURPRISING * std)
    if (hiccups == suspects).all():
        return doubtful, found
    if not hiccups.any():
        return problem, peak
    final = problem.noisier(np.where(hiccups, np.square(left_out.mean), 0.0))
    return final, final.posterior.maximize(found.theta)


def _suspects(above: Array) -> Mask:
    """Which log-costs (n,) are unusually far above what the others predict."""
    n = len(above)
    usual = 1.5 * float(np.median(np.abs(above)))  # the std of most of them
    suspects = above > max(_UNUSUAL * usual, _FACTOR)
    suspects[np.argsort(-above)[max(int(_MOST * n), 1) :]] = False
    return suspects if n >= _FEWEST else np.zeros(n, dtype=bool)
