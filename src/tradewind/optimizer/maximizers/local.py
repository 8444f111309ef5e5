"""The everyday maximizer: many starts, mixed local search, gradient polish where there is one.

Random rows and mutations of the given starts are scored in one batch; the best few then climb:
along the numeric columns by gradient (or by shrinking random steps where the score has none), and
along the finite columns by trying every neighbouring value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradewind.optimizer.maximizers.ascent import ascend
from tradewind.optimizer.maximizers.maximizer import Score, SmoothScore
from tradewind.space import Bool, Categorical, Int, Parameter, Space
from tradewind.types import Array

_FEW_CELLS = 10  # a categorical column with more values has a random handful of them tried


@dataclass(frozen=True)
class LocalSearch:
    """`candidates` random rows, `mutations` of each start, `climbers` that go on from the best."""

    candidates: int = 500
    mutations: int = 60
    climbers: int = 5
    steps: int = 10
    rounds: int = 2

    def maximize(
        self, score: Score, space: Space, *, start: Array, rng: np.random.Generator
    ) -> Array:
        fresh = space.sample(self.candidates, rng=rng)
        X = np.vstack([start, fresh, self._mutants(start, space, rng)])
        X, f = _distinct(X, score(X), self.climbers)
        for i in range(self.rounds):  # a later round begins near the top already
            X, f = self._climb(score, space, X, f, max(self.steps // (1 + i), 1), rng)
            summit = f
            X, f = self._neighbours(score, space, X, f, rng)
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

    def _climb(
        self,
        score: Score,
        space: Space,
        X: Array,
        f: Array,
        steps: int,
        rng: np.random.Generator,
    ) -> tuple[Array, Array]:
        if isinstance(score, SmoothScore):
            free = ~np.isnan(X) & ~space.columns.categorical & (space.columns.cells != 1)
            rows = space.snap(ascend(score, X, free=free, steps=steps)[0])
            return _better(space, score, X, f, rows)
        each = 4 * steps  # random steps, which find uphill less often than a gradient does
        for scale in (0.3, 0.1, 0.03, 0.01, 0.003):
            rows = np.repeat(X, each, axis=0)
            moved = rng.random(rows.shape) < 0.5
            step = scale * rng.standard_normal(rows.shape)
            rows = space.snap(np.where(moved & ~space.columns.categorical, rows + step, rows))
            X, f = _best_of_each(space, score, X, f, rows, each)
        return X, f

    def _neighbours(
        self, score: Score, space: Space, X: Array, f: Array, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """Try all single changes of finite columns, until none of them helps."""
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


def _distinct(X: Array, f: Array, count: int) -> tuple[Array, Array]:
    """The best rows, no two of them near neighbours where that can be helped."""
    order = np.argsort(-f, kind="stable")[: 10 * count]
    filled = np.nan_to_num(X[order], nan=0.5)
    chosen: list[int] = []
    for i in range(len(order)):
        near = [np.abs(filled[i] - filled[j]).max() < 0.05 for j in chosen]
        if not any(near):
            chosen.append(i)
        if len(chosen) == count:
            break
    keep = order[chosen]
    return X[keep].copy(), f[keep].copy()


def _better(space: Space, score: Score, X: Array, f: Array, rows: Array) -> tuple[Array, Array]:
    scores = np.where(space.allowed(rows), score(rows), -np.inf)
    better = scores > f
    return np.where(better[:, None], rows, X), np.where(better, scores, f)


def _best_of_each(
    space: Space, score: Score, X: Array, f: Array, rows: Array, each: int
) -> tuple[Array, Array]:
    scores = np.where(space.allowed(rows), score(rows), -np.inf).reshape(len(X), each)
    top = scores.argmax(axis=1)
    taken = rows[np.arange(len(X)) * each + top]
    better = scores.max(axis=1) > f
    return np.where(better[:, None], taken, X), np.where(better, scores.max(axis=1), f)


def _single_changes(row: Array, space: Space, rng: np.random.Generator) -> Array:
    """All rows that differ from `row` in one finite column: every category, or the next values."""
    columns: list[int] = []
    values: list[float] = []
    for j, parameter in enumerate(space.values()):
        if parameter.cells > 1 and not np.isnan(row[j]):
            moves = _moves(parameter, float(row[j]), rng)
            columns += [j] * len(moves)
            values += moves
    rows = np.repeat(row[None, :], len(columns), axis=0)
    rows[np.arange(len(columns)), columns] = values
    return np.where(np.isnan(rows), rng.random(rows.shape), rows)  # what a change may activate


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
