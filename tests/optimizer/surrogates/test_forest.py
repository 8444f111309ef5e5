"""The forest against scikit-learn's own trees and a slow computation of its variance."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from tradewind.optimizer.surrogates.forest import (
    ForestPredictor,
    PackedTrees,
    RandomForest,
    TreeColumns,
    Votes,
    covariance,
    grow,
    reliability,
)
from tradewind.optimizer.transforms import Standardize
from tradewind.space import Bool, Categorical, Float, Int, Space
from tradewind.types import Array

SPACE = Space(
    {
        "x": Float(0.0, 1.0),
        "z": Float(0.0, 1.0),
        "k": Int(1, 9),
        "kind": Categorical(["a", "b", "c", "d", "e"]),
        "flag": Bool(when={"kind": ["b", "d"]}),
    }
)
TREE_COLUMNS = TreeColumns.of(SPACE.columns)


def rows(n: int, *, seed: int = 0) -> Array:
    return SPACE.sample(n, rng=np.random.default_rng(seed))


def response(X: Array, *, seed: int = 0) -> Array:
    y: Array = np.sin(5.0 * X[:, 0]) + X[:, 2] + 0.1 * np.random.default_rng(seed).random(len(X))
    return y


def fitted(forest: RandomForest, X: Array, y: Array, **options: Any) -> ForestPredictor:
    rng = np.random.default_rng(3)
    predictor = forest.fit(X, y, columns=SPACE.columns, rng=rng, **options)
    assert isinstance(predictor, ForestPredictor)
    return predictor


def grown(forest: RandomForest, X: Array, y: Array, *, weights: Array | None = None) -> list[Any]:
    weights = np.ones(len(y)) if weights is None else weights
    return grow(forest, TREE_COLUMNS(X), y, weights=weights, rng=np.random.default_rng(3))


# ---- against references ----


@pytest.mark.parametrize("leaf", [1, 4])
@pytest.mark.parametrize("n", [1, 2, 60])
def test_packed_trees_say_what_scikit_learn_says(n: int, leaf: int) -> None:
    X, Q = rows(n), rows(300, seed=1)
    trees = grown(RandomForest(trees=25, leaf=leaf), X, response(X))
    votes = Votes.of(PackedTrees.of(trees), TREE_COLUMNS(Q))
    said = np.array([tree.predict(TREE_COLUMNS(Q)) for tree in trees])
    assert votes.mean == pytest.approx(said.mean(axis=0), rel=1e-12)
    assert np.sort(votes.mean + votes.deviation, axis=0) == pytest.approx(np.sort(said, axis=0))


def test_rows_on_a_threshold_go_where_scikit_learn_sends_them() -> None:
    X = rows(60)
    trees = grown(RandomForest(trees=25), X, response(X))
    cuts = [t.tree_.threshold[t.tree_.feature == 0] for t in trees]
    Q = np.repeat(rows(1, seed=1), sum(map(len, cuts)), axis=0)
    Q[:, 0] = np.concatenate(cuts)
    said = np.array([tree.predict(TREE_COLUMNS(Q)) for tree in trees])
    assert Votes.of(PackedTrees.of(trees), TREE_COLUMNS(Q)).mean == pytest.approx(said.mean(axis=0))


@pytest.mark.parametrize("leaf", [1, 4])
def test_the_variance_is_that_of_the_law_of_total_variance(leaf: int) -> None:
    X, Q = rows(40), rows(30, seed=1)
    y = response(X)
    forest = RandomForest(trees=20, leaf=leaf)
    # Standardized as `fit` does it: where two splits gain the same, rounding chooses.
    scale = Standardize.of(y)
    targets = scale.forward(y)
    counts = np.random.default_rng(3).multinomial(40, np.full(40, 1 / 40), size=20)
    means, within = np.empty((20, 30)), np.empty((20, 30))
    for t, tree in enumerate(grown(forest, X, targets)):
        leaves = tree.apply(TREE_COLUMNS(X))
        for i, leaf_of_row in enumerate(tree.apply(TREE_COLUMNS(Q))):
            inside = np.repeat(y, counts[t] * (leaves == leaf_of_row))
            means[t, i], within[t, i] = inside.mean(), inside.var()
    predicted = fitted(forest, X, y).predict(Q)
    assert predicted.mean == pytest.approx(means.mean(axis=0), rel=1e-6)
    total = within.mean(axis=0) + means.var(axis=0)
    assert predicted.std**2 == pytest.approx(total, rel=1e-5, abs=1e-10)


def test_rows_walked_in_chunks_end_in_the_leaves_of_single_rows() -> None:
    X, Q = rows(60), rows(600, seed=1)
    trees = PackedTrees.of(grown(RandomForest(trees=25), X, response(X)))
    together = trees.leaves(TREE_COLUMNS(Q))
    alone = [trees.leaves(TREE_COLUMNS(Q[i : i + 1]))[:, 0] for i in range(600)]
    assert np.array_equal(together, np.stack(alone, axis=1))


def test_trees_of_one_leaf_are_walked_nowhere() -> None:
    X = rows(10)
    trees = PackedTrees.of(grown(RandomForest(trees=5), X, np.zeros(10)))
    assert trees.width == ()
    assert np.array_equal(trees.leaves(TREE_COLUMNS(X)), np.repeat(trees.root[:, None], 10, axis=1))


# ---- columns ----


def test_one_split_isolates_a_category_wherever_it_is_listed() -> None:
    X = rows(200)
    ahead = np.abs(X[:, 3] - 0.5) < 0.01  # "c", the middle one of five
    tree = grown(RandomForest(trees=1), X, ahead.astype(float))[0]
    assert tree.tree_.max_depth == 1


def test_design_rows_hold_numbers_first_and_then_an_indicator_a_category() -> None:
    X = SPACE.encode([{"x": 0.5, "z": 0.25, "k": 5, "kind": "b", "flag": True}])
    assert TREE_COLUMNS(X)[0].tolist() == [0.5, 0.25, 0.5, 0.75, 0.0, 1.0, 0.0, 0.0, 0.0]


def test_an_inactive_number_lies_outside_the_unit_interval() -> None:
    X = SPACE.encode([{"x": 0.5, "z": 0.25, "k": 5, "kind": "a"}])
    assert TREE_COLUMNS(X)[0, 3] == -1.0


def test_an_inactive_category_has_no_indicator() -> None:
    space = Space({"on": Bool(), "kind": Categorical(list("abc"), when={"on": True})})
    design = TreeColumns.of(space.columns)
    assert design(space.encode([{"on": False}]))[0].tolist() == [0.25, 0.0, 0.0, 0.0]


def test_a_category_never_observed_is_predicted() -> None:
    X = rows(100)
    seen = X[X[:, 3] < 0.8]
    unseen = X[X[:, 3] > 0.8]
    predicted = fitted(RandomForest(), seen, response(seen)).predict(unseen)
    assert np.isfinite(predicted.mean).all()


def test_a_space_of_categories_only_is_learned() -> None:
    space = Space({name: Categorical(list("abcd")) for name in "pq"})
    grid = space.grid()
    assert grid is not None
    y = (grid[:, 0] == grid[:, 1]).astype(float)
    X, y = np.tile(grid, (4, 1)), np.tile(y, 4)
    predictor = RandomForest().fit(X, y, columns=space.columns, rng=np.random.default_rng(0))
    assert ((predictor.predict(X).mean > 0.5) == (y > 0.5)).all()


# ---- targets and noise ----


def test_predictions_stay_between_the_worst_and_the_best_observation() -> None:
    X = rows(50)
    y = response(X)
    mean = fitted(RandomForest(), X, y).predict(rows(500, seed=1)).mean
    assert y.min() <= mean.min()
    assert mean.max() <= y.max()


@pytest.mark.parametrize("factor", [2.0**-900, 4096.0, 2.0**900])
def test_scaled_targets_give_scaled_predictions(factor: float) -> None:
    X, Q = rows(50), rows(50, seed=1)
    y = response(X)
    plain = fitted(RandomForest(), X, y).predict(Q)
    scaled = fitted(RandomForest(), X, factor * y).predict(Q)
    assert np.array_equal(scaled.mean, factor * plain.mean)
    assert np.array_equal(scaled.std, factor * plain.std)


def test_differences_far_below_a_large_offset_are_still_learned() -> None:
    X = rows(100)
    y = 1e6 + 1e-4 * response(X)
    mean = fitted(RandomForest(), X, y).predict(X).mean
    assert np.corrcoef(mean, y)[0, 1] > 0.9


def test_an_outlier_known_to_be_noisy_is_believed_less() -> None:
    X = rows(60)
    y = response(X)
    y[7] += 10.0
    noise = np.zeros(60)
    noise[7] = 1e4
    # Leaves of several points, so that a weight matters: alone in its leaf a point has all of it.
    forest = RandomForest(leaf=5)
    believed = fitted(forest, X, y).predict(X[7:8]).mean[0]
    doubted = fitted(forest, X, y, noise=noise).predict(X[7:8]).mean[0]
    assert doubted < believed - 0.5


def test_noise_that_is_the_same_everywhere_changes_nothing() -> None:
    X, Q = rows(40), rows(40, seed=1)
    plain = fitted(RandomForest(leaf=3), X, response(X)).predict(Q)
    noisy = fitted(RandomForest(leaf=3), X, response(X), noise=np.full(40, 0.2)).predict(Q)
    assert np.array_equal(noisy.mean, plain.mean)


def test_an_observation_as_noisy_as_all_are_spread_counts_half_of_an_exact_one() -> None:
    y = np.array([-2.0, 2.0])
    assert reliability(np.array([0.0, 4.0]), Standardize.of(y)) == pytest.approx([1.0, 0.5])


def test_noise_beyond_all_bounds_still_leaves_a_weight() -> None:
    weights = reliability(np.array([np.inf, 1e300]), Standardize.of(np.array([1e-300, 2e-300])))
    assert (weights > 0).all()


# ---- conditioning ----


@pytest.mark.parametrize("leaf", [1, 5])
def test_the_covariance_of_rows_with_themselves_has_their_variances(leaf: int) -> None:
    X, Q = rows(60), rows(20, seed=1)
    trees = PackedTrees.of(grown(RandomForest(leaf=leaf), X, response(X)))
    votes = Votes.of(trees, TREE_COLUMNS(Q))
    K = covariance(votes, votes)
    assert np.diag(K) == pytest.approx(votes.variance)
    assert pytest.approx(K.T) == K
    assert np.linalg.eigvalsh(K)[0] > -1e-12


@pytest.mark.parametrize("leaf", [1, 5])
def test_conditioning_changes_no_mean_anywhere(leaf: int) -> None:
    X, Q = rows(60), rows(100, seed=1)
    predictor = fitted(RandomForest(leaf=leaf), X, response(X))
    after = predictor.condition(rows(6, seed=2))
    assert np.array_equal(after.predict(Q).mean, predictor.predict(Q).mean)


def test_rows_beside_a_pending_one_become_surer_than_rows_far_away() -> None:
    X = rows(60)
    predictor = fitted(RandomForest(), X, response(X))
    pending = SPACE.encode([{"x": 0.5, "z": 0.5, "k": 5, "kind": "a"}])
    near = SPACE.encode([{"x": 0.51, "z": 0.5, "k": 5, "kind": "a"}])
    far = SPACE.encode([{"x": 0.95, "z": 0.0, "k": 1, "kind": "d", "flag": True}])
    after = predictor.condition(pending)
    left = [after.predict(Q).std[0] / predictor.predict(Q).std[0] for Q in (near, far)]
    assert left[0] < 0.8 < left[1]


def test_a_conditioned_forest_has_the_variance_of_conditioned_normal_variables() -> None:
    X, P, Q = rows(60), rows(3, seed=1), rows(10, seed=2)
    predictor = fitted(RandomForest(leaf=3), X, response(X))
    p, q = (Votes.of(predictor.trees, TREE_COLUMNS(R)) for R in (P, Q))
    k, K = covariance(q, p), covariance(p, p)
    expected = q.variance - np.diag(k @ np.linalg.solve(K, k.T))
    std = predictor.condition(P).predict(Q).std / predictor.scale.scale
    assert std**2 == pytest.approx(expected, rel=1e-6)


# ---- the class ----


def test_the_published_forest_has_110_trees() -> None:
    X = rows(20)
    assert len(fitted(RandomForest(), X, response(X)).trees.root) == 110


@pytest.mark.parametrize("wrong", [{"trees": 0}, {"leaf": 0}, {"features": 0.0}, {"features": 1.5}])
def test_settings_that_make_no_forest_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        RandomForest(**wrong)


def test_another_generator_grows_another_forest() -> None:
    X = rows(40)
    one, two = (
        RandomForest().fit(X, response(X), columns=SPACE.columns, rng=np.random.default_rng(seed))
        for seed in (0, 1)
    )
    assert not np.array_equal(one.predict(X).mean, two.predict(X).mean)


def test_importing_the_forest_does_not_import_scikit_learn() -> None:
    code = "import sys, tradewind.optimizer.surrogates.forest; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
