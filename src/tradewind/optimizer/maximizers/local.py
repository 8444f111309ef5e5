"""The everyday maximizer: many starts, local search, gradient ascent where there is a gradient.

Random rows and mutations of the given starts are scored in one batch. The best few then climb:
along the numeric columns by gradient (or by shrinking random steps if the score has none), and
along the finite columns by trying every neighbouring value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradewind.checks import freeze_wholes
from tradewind.optimizer.maximizers.lean import LeanCurvature
from tradewind.optimizer.maximizers.maximizer import Score, SmoothScore
from tradewind.space import Bool, Categorical, Int, Parameter, Space
from tradewind.types import Array, Mask

_FEW_CELLS = 10  # of a categorical column with more values, a random handful is tried
_MANY = 100  # with more columns than this, some of them are tried, and curvature is kept leanly
_LONGEST = 0.25  # the longest step of an ascent along one coordinate
_ARMIJO = 1e-4
_SETTLED = 1e-4  # scores are logarithms: this is a hundredth of a percent


@dataclass(frozen=True)
class LocalSearch:
    """Scores `candidates` random rows and `mutations` of each start. The best `climbers` are then
    improved in `rounds` of at most `steps` steps.

    >>> strategy = tw.strategies.Bayes(maximizer=tw.strategies.LocalSearch(candidates=500))
    """

    candidates: int = 500
    mutations: int = 60
    climbers: int = 5
    steps: int = 10
    rounds: int = 2

    def __post_init__(self) -> None:
        freeze_wholes(
            self,
            candidates=(1, 1_000_000),
            mutations=(0, 10_000),
            climbers=(1, 10_000),
            steps=(1, 10_000),
            rounds=(0, 1_000),
        )

    def maximize(
        self, score: Score, space: Space, *, start: Array, rng: np.random.Generator
    ) -> Array:
        fresh = space.sample(self.candidates, rng=rng)
        X = np.vstack([start, fresh, self._mutants(start, space, rng)])
        X, f = _distinct(X, score(X), self.climbers)
        for i in range(self.rounds):  # a later round begins near the top, so it takes fewer steps
            steps = max(self.steps // (1 + i), 1)
            if isinstance(score, SmoothScore):
                free = ~np.isnan(X) & ~space.columns.categorical & (space.columns.cells != 1)
                rows = space.snap(ascend(score, X, free=free, steps=steps)[0])
                X, f = _best_of_each(score, space, X, f, rows)
            else:
                X, f = _random_steps(score, space, X, f, 4 * steps, rng)  # fewer of them go uphill
            summit = f
            X, f = _try_neighbours(score, space, X, f, rng)
            if not (f > summit).any():
                break
        return np.asarray(X[int(np.argmax(f))])

    def _mutants(self, start: Array, space: Space, rng: np.random.Generator) -> Array:
        """Each start with a few coordinates moved, by steps from 1e-3 to 0.3 of the range."""
        rows = np.repeat(start, self.mutations, axis=0)
        n, d = rows.shape
        rows = np.where(np.isnan(rows), rng.random((n, d)), rows)
        share = rng.choice([1.0 / d, 2.0 / d, 0.5], size=(n, 1))
        moved = rng.random((n, d)) < share
        moved[np.arange(n), rng.integers(d, size=n)] = True
        step = 10.0 ** rng.uniform(-3.0, -0.5, size=(n, 1)) * rng.standard_normal((n, d))
        redrawn = rng.random((n, d))
        fresh = space.columns.categorical | (rng.random((n, d)) < 0.1)
        rows = np.where(moved, np.where(fresh, redrawn, rows + step), rows)
        rows = space.snap(rows)
        return rows[space.allowed(rows)]


def _distinct(X: Array, f: Array, count: int) -> tuple[Array, Array]:
    """The best `count` rows, skipping near neighbours of better ones."""
    order = np.argsort(-f, kind="stable")[: 10 * count]
    filled = np.nan_to_num(X[order], nan=0.5)
    chosen: list[int] = []
    for i in range(len(order)):
        if not any(np.abs(filled[i] - filled[j]).max() < 0.05 for j in chosen):
            chosen.append(i)
        if len(chosen) == count:
            break
    keep = order[chosen]
    return X[keep].copy(), f[keep].copy()


def _best_of_each(
    score: Score, space: Space, X: Array, f: Array, rows: Array
) -> tuple[Array, Array]:
    """Each row of X, or the best of its alternatives if that is better. `rows` are the
    alternatives, equally many for each row of X, one group after the other."""
    each = len(rows) // len(X)
    scores = np.where(space.allowed(rows), score(rows), -np.inf).reshape(len(X), each)
    top = scores.argmax(axis=1)
    taken = rows[np.arange(len(X)) * each + top]
    better = scores.max(axis=1) > f
    return np.where(better[:, None], taken, X), np.where(better, scores.max(axis=1), f)


def _random_steps(
    score: Score, space: Space, X: Array, f: Array, each: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Climb without a gradient: `each` random steps from every row, shorter and shorter."""
    for scale in (0.3, 0.1, 0.03, 0.01, 0.003):
        rows = np.repeat(X, each, axis=0)
        moved = rng.random(rows.shape) < 0.5
        step = scale * rng.standard_normal(rows.shape)
        rows = space.snap(np.where(moved & ~space.columns.categorical, rows + step, rows))
        X, f = _best_of_each(score, space, X, f, rows)
    return X, f


def _try_neighbours(
    score: Score, space: Space, X: Array, f: Array, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Try all single changes of finite columns, at most three times or until none helps."""
    X, f = X.copy(), f.copy()
    if not (space.columns.cells > 0).any():
        return X, f
    for _ in range(3):
        groups = [_single_changes(row, space, rng) for row in X]
        sizes = [len(g) for g in groups]
        if not sum(sizes):
            break
        rows = space.snap(np.vstack(groups))
        scores = np.where(space.allowed(rows), score(rows), -np.inf)
        improved = False
        for i, end in enumerate(np.cumsum(sizes)):
            part = slice(end - sizes[i], end)
            if sizes[i] and scores[part].max() > f[i]:
                j = part.start + int(np.argmax(scores[part]))
                X[i], f[i], improved = rows[j], scores[j], True
        if not improved:
            break
    return X, f


def _single_changes(row: Array, space: Space, rng: np.random.Generator) -> Array:
    """All rows that differ from `row` in one finite column: every category, or the next values. Of
    very many columns, a random hundred is tried."""
    columns: list[int] = []
    values: list[float] = []
    parameters = list(space.values())
    finite = np.flatnonzero((space.columns.cells > 1) & ~np.isnan(row))
    if len(finite) > _MANY:
        finite = np.sort(rng.choice(finite, size=_MANY, replace=False))
    for j in finite.tolist():
        moves = _moves(parameters[j], float(row[j]), rng)
        columns += [j] * len(moves)
        values += moves
    rows = np.repeat(row[None, :], len(columns), axis=0)
    rows[np.arange(len(columns)), columns] = values
    # a change may activate parameters, which then need a value
    return np.where(np.isnan(rows), rng.random(rows.shape), rows)


def _moves(parameter: Parameter, u: float, rng: np.random.Generator) -> list[float]:
    k = parameter.cells
    if isinstance(parameter, Int):
        value = parameter.from_unit(u)
        near = (value + step for step in (-2, -1, 1, 2))
        return [parameter.to_unit(v) for v in near if parameter.low <= v <= parameter.high]
    here = int(u * k)
    if isinstance(parameter, (Categorical, Bool)):
        cells = range(k) if k <= _FEW_CELLS else rng.integers(k, size=_FEW_CELLS).tolist()
    else:
        cells = range(max(here - 2, 0), min(here + 3, k))
    return [(i + 0.5) / k for i in cells if i != here]


# ---- gradient ascent ----


def ascend(score: SmoothScore, X: Array, *, free: Mask, steps: int) -> tuple[Array, Array]:
    """Climb from rows X (k, d) along the coordinates that are `free` (k, d) in the unit cube.

    Returns the rows reached and their scores. No row ends lower than it began, and rows are not
    snapped on the way. This is projected BFGS with one inverse Hessian for each row. All rows step
    together, so that a step costs one call of the score however many rows there are."""
    k, d = X.shape
    X = X.copy()
    f, g = score.gradient(X)
    H = DenseCurvature(k, d) if d <= _MANY else LeanCurvature(k)
    shrink = np.ones(k)
    for _ in range(steps):
        p = _direction(X, g, H, free) * shrink[:, None]
        target = np.where(free, np.clip(X + p, 0.0, 1.0), X)
        f_new, g_new = score.gradient(target)
        s = np.where(free, target - X, 0.0)
        gain = np.einsum("ij,ij->i", np.where(free, g, 0.0), s)
        better = (f_new >= f + _ARMIJO * gain) & np.isfinite(f_new) & (gain > 0)
        y = np.where(free, g - g_new, 0.0)
        use, sy, yy = _usable(s, y, better)
        if use.any():
            H.learn(s, y, use, sy, yy)
        rise = np.subtract(f_new, f, out=np.zeros_like(f), where=better)  # both may be -inf
        settled = better & (rise < _SETTLED)
        X = np.where(better[:, None], target, X)
        f, g = np.where(better, f_new, f), np.where(better[:, None], g_new, g)
        shrink = np.where(better, 1.0, shrink * 0.25)
        if np.all(settled | (shrink < 1e-3)):
            break
    return X, f


def _direction(X: Array, g: Array, H: DenseCurvature | LeanCurvature, free: Mask) -> Array:
    """The quasi-Newton direction. Coordinates that would leave the cube are left out."""
    blocked = ~free | ((X <= 0.0) & (g < 0.0)) | ((X >= 1.0) & (g > 0.0))
    g = np.where(blocked, 0.0, g)
    p = np.where(blocked, 0.0, H.times(g))
    uphill = np.einsum("ij,ij->i", p, g) > 0.0
    p = np.where(uphill[:, None], p, g)
    longest = np.maximum(np.abs(p).max(axis=1), 1e-300)
    length = np.where(H.fresh | ~uphill, 0.1 / longest, np.minimum(1.0, _LONGEST / longest))
    return np.asarray(p * length[:, None])


class DenseCurvature:
    """The inverse Hessian of −score at each of k rows, as matrices (k, d, d)."""

    def __init__(self, k: int, d: int) -> None:
        self._H = np.broadcast_to(np.eye(d), (k, d, d)).copy()
        self.fresh = np.ones(k, dtype=bool)  # nothing learned yet

    def times(self, g: Array) -> Array:
        """H g, for a vector of each row (k, d)."""
        return np.asarray(np.einsum("kij,kj->ki", self._H, g))

    def learn(self, s: Array, y: Array, use: Mask, sy: Array, yy: Array) -> None:
        """BFGS update of the rows to `use`, after steps s (k, d) that changed the gradients by −y
        (k, d). The products s·y and y·y are given (k,)."""
        s, y, sy, yy = s[use], y[use], sy[use], yy[use]
        scale = np.where(self.fresh[use], sy / yy, 1.0)  # first guess of scale
        scaled = scale[:, None, None] * self._H[use]
        Hy = np.einsum("kij,kj->ki", scaled, y)
        yHy = np.einsum("ij,ij->i", y, Hy)
        cross = np.einsum("ki,kj->kij", Hy, s)
        self._H[use] = (
            scaled
            - (cross + cross.transpose(0, 2, 1)) / sy[:, None, None]
            + ((1.0 + yHy / sy) / sy)[:, None, None] * np.einsum("ki,kj->kij", s, s)
        )
        self.fresh[use] = False


def _usable(s: Array, y: Array, better: Mask) -> tuple[Mask, Array, Array]:
    """Where the curvature condition holds, and the products s·y and y·y of each row."""
    sy = np.einsum("ij,ij->i", s, y)
    yy = np.einsum("ij,ij->i", y, y)
    return better & (yy > 1e-200) & (sy > 1e-12 * yy) & np.isfinite(yy), sy, yy
