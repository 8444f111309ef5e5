"""What the finished trials say about quality and cost, whatever strategy chose them.

Predictions, shares of variance, planning and stopping rules ask a `Belief`. Proposals do not: a
strategy has models of its own.
"""

from __future__ import annotations

import math
from collections.abc import Reversible
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtr, stdtrit

from tradewind.goals import Goal, Quality, best_first
from tradewind.optimizer.history import History, spread, spread_evenly
from tradewind.optimizer.repeats import repeats
from tradewind.optimizer.strategies.costs import CostScale, fit_price
from tradewind.optimizer.strategies.worth import fit_quality
from tradewind.optimizer.surrogates.ensemble import Ensemble, EnsemblePredictor
from tradewind.optimizer.surrogates.gp import GaussianProcess, GPPredictor, cost_process
from tradewind.optimizer.transforms import Clip, Standardize
from tradewind.space import Space
from tradewind.types import Array, Mask, Normal, Trial

# Intervals need noise that is learned. A search assumes little noise, and takes a lucky result for
# a good configuration; the next trials correct that.
_QUALITY = GaussianProcess(noise_mean=-4.0, noise_std=3.0)
_COST = replace(cost_process(), noise_mean=-4.0, noise_std=3.0)
_SMOOTH_COST = replace(_COST, noise_mean=-14.0, noise_std=1.0, robust=False)
_NOISY_OR_EXACT = (
    replace(_COST, robust=False),
    _SMOOTH_COST,
    replace(_SMOOTH_COST, length_mean=-1.0),
)
_FEWEST = 12  # costs that can tell noise from structure
_CLEAR = 8.0  # log densities of exact costs differed by up to 4 in three spaces, 12 to 40 costs
_MOST_COSTS = 200  # that tell how much costs vary
_EQUAL = 1e-9  # of logarithms of costs


@dataclass(frozen=True)
class Belief:
    """Models of quality, in natural units and maximized, and of the logarithm of cost. They know
    `trials` finished trials.

    Quality is modelled above a `floor`, so that a few collapsed models do not flatten the good end.
    A quality below it counts as the floor in `quality`. `quality_quantile` puts the collapsed ones
    back: below the floor, results are spread like the `collapsed` ones were."""

    trials: int
    floor: float
    collapsed: Array  # the qualities below the floor, ascending
    quality_noise: float  # the standard deviation of one observation
    unexplained: float  # the part of it that is neither known nor explained by the parameters
    cost_noise: float  # the same for the logarithm of a cost
    quality_model: EnsemblePredictor  # of quality in `units`
    units: Standardize
    cost_model: EnsemblePredictor | None  # of log-cost on `scale`; None if no cost is known
    scale: CostScale | None

    @classmethod
    def of(
        cls,
        space: Space,
        history: History,
        *,
        rng: np.random.Generator,
        settings: int = 1,
        matters_above: float = np.inf,
        max_points: int = 500,
    ) -> Belief:
        """The belief after at least one finished trial.

        One setting of the hyper-parameters is enough for means. Intervals need more: 16 `settings`
        include how uncertain the models themselves are. Qualities above `matters_above` are never
        cut off (see `Goal.matters_above`). If no parameter is the training size, only the trials of
        the largest size that has results count. The models are fitted to at most `max_points` of
        them, and to a quarter as many failed ones."""
        history = comparable(space, history)
        history = history.take(spread(best_first(history.quality), max_points))
        history = replace(history, failed=history.failed[-max_points // 4 :], handover={})
        floor = min(_floor(history), matters_above)
        surrogate, columns = Ensemble(_QUALITY, settings), space.columns
        units, quality = fit_quality(surrogate, history, Clip(floor), columns=columns, rng=rng)
        assert isinstance(quality, EnsemblePredictor)
        known = history.noise[history.noise > 0.0]
        typical = float(np.median(known)) if len(known) else 0.0
        cost, scale = None, None
        if history.has_costs:
            surrogate = Ensemble(_COST, settings)
            price = fit_price(surrogate, Quality(), history, log=True, columns=columns, rng=rng)
            assert isinstance(price.model, EnsemblePredictor)
            cost, scale = price.model, price.scale
        return cls(
            trials=len(history.X),
            floor=floor,
            collapsed=np.sort(history.quality[history.quality < floor]),
            quality_noise=math.hypot(quality.noise_std * units.scale, math.sqrt(typical)),
            unexplained=quality.noise_std * units.scale,
            cost_noise=0.0 if cost is None else cost.noise_std,
            quality_model=quality,
            units=units,
            cost_model=cost,
            scale=scale,
        )

    def quality(self, X: Array) -> Normal:
        """The quality of rows (m, d), without the noise of an observation."""
        return self.units.natural(self.quality_model.predict(X))

    def log_cost(self, X: Array) -> Normal | None:
        """The logarithm of the cost of rows (m, d), without the noise of an observation."""
        if self.cost_model is None:
            return None
        scaled = self.cost_model.predict(X)
        return Normal(self.natural_log_cost(scaled.mean), scaled.std)

    def natural_log_cost(self, scaled: Array) -> Array:
        """The logarithm of costs from the scale of the model."""
        assert self.scale is not None
        return scaled - self.scale.scaled + math.log(self.scale.cost)

    # ---- one more run, with its noise ----

    def quality_quantiles(self, X: Array, levels: Array) -> Array:
        """What the quality of one run of rows (m, d) stays below with these probabilities: (m, l).

        Quantiles of Student's t: the scale of a model of n trials is known from n − 1 of them."""
        believed, nu = self.quality(X), self._degrees
        std = np.hypot(believed.std, self.quality_noise)[:, None]
        above = believed.mean[:, None] + std * stdtrit(nu, levels)
        if not len(self.collapsed):
            return np.asarray(above)
        below = stdtr(nu, (self.floor - believed.mean[:, None]) / std)  # how probable the tail is
        within = np.clip(levels / np.maximum(below, 1e-12), 0.0, 1.0)
        return np.asarray(np.where(levels < below, np.quantile(self.collapsed, within), above))

    def cost_quantiles(self, X: Array, levels: Array) -> Array | None:
        """The same for the cost (m, l); None if no cost is known."""
        believed = self.log_cost(X)
        if believed is None:
            return None
        std = np.hypot(believed.std, self.cost_noise)[:, None]
        logs = believed.mean[:, None] + std * stdtrit(self._degrees, levels)
        return np.asarray(np.exp(np.minimum(logs, 700.0)))

    @property
    def _degrees(self) -> float:
        return float(max(self.trials - 1, 1))


def with_spread(space: Space, goal: Goal, history: History, trials: Reversible[Trial]) -> Goal:
    """The goal, which knows how much costs vary; see `usual_costs`."""
    return goal.with_spread(lambda: usual_costs(space, history, trials, goal.by)[0])


def usual_costs(
    space: Space, history: History, trials: Reversible[Trial], by: str | None = None
) -> tuple[float, Array]:
    """How far the cost of a new training may be from the usual one, and the usual costs of the
    finished trials (n,), as a model believes them.

    The first is the standard deviation of the logarithm: how much costs vary, and how uncertain the
    model is. If costs are exact, it is 0, and the usual cost of a trial is the one it had. `trials`
    tell whether a clock has measured the costs that `by` names, by default those of the study.

    Costs are exact if all repeats cost the same. Without repeats, costs that no clock has measured
    are exact, too, unless noise explains them far better than any structure, smooth or rough."""
    last = next((trial for trial in reversed(trials) if trial.finished), None)
    measured = last is not None and _is_measured(last, by)
    sizes, every = history.sizes.finished, history
    modelled = (history.cost > 0.0) & ~history.raced
    if space.size_name is None:
        modelled &= sizes == sizes.max(initial=0.0)
    history = history.take(spread_evenly(np.flatnonzero(modelled), _MOST_COSTS))
    logs = np.log(history.cost)
    apart = [float(np.ptp(logs[rows])) for rows in repeats(history)]
    varies = measured or bool(apart)
    if max(apart, default=1.0) < _EQUAL or len(logs) < (2 if varies else _FEWEST):
        return 0.0, every.cost

    def fit(process: GaussianProcess) -> tuple[GPPredictor, CostScale]:
        rng = np.random.default_rng(0)  # not used: there is no start
        price = fit_price(process, Quality(), history, log=True, columns=space.columns, rng=rng)
        assert isinstance(price.model, GPPredictor)
        return price.model, price.scale

    if not varies:
        noisy, *exact = (fit(process)[0].log_density for process in _NOISY_OR_EXACT)
        if noisy < max(exact) + _CLEAR:
            return 0.0, every.cost
    model, scale = fit(_COST)
    usual, expected = every.cost.copy(), model.predict(every.X[modelled])
    usual[modelled] = [scale.inverse(c) for c in expected.mean.tolist()]
    folds = 1 if last is None else last.trainings  # the cost of a trial is the mean of so many
    one = math.sqrt(folds * model.noise) * model.scale.scale
    return math.hypot(one, float(np.median(expected.std))), usual


def _is_measured(trial: Trial, by: str | None) -> bool:
    name = trial.cost_name if by is None else by
    if name not in ("wall", "cpu", "gpu", "memory") or name in trial.costs:
        return False
    reported = trial.usage is None or trial.usage.clock == "reported"
    return not (reported and name == trial.cost_name)


def _floor(history: History) -> float:
    """Where quality is cut off. A search cuts off what is far below its median trial, but most of
    its trials are good ones. The trials of the initial design tell better what is usual."""
    design = history.quality[history.initial]
    usual = design if len(design) else history.quality
    return Clip.of(np.append(usual, history.quality.max())).floor


def comparable(space: Space, history: History, train_size: float | None = None) -> History:
    """The history with the finished and failed trials of this training size, by default of the
    largest one. If a parameter says the size, these are all trials: the models span the sizes."""
    sizes = history.sizes
    if space.size_name is not None or not len(history.X):
        return history
    size = float(sizes.finished.max()) if train_size is None else train_size
    failed: Mask = sizes.failed == size
    kept = history.take(np.flatnonzero(sizes.finished == size))
    return replace(
        kept, failed=history.failed[failed], sizes=replace(kept.sizes, failed=sizes.failed[failed])
    )
