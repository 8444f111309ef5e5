"""TreeRanker: trees that rank, in the manner of scikit-learn."""

from __future__ import annotations

import builtins
import json
import pickle
import re
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.typing import NDArray
from scipy.sparse import csc_matrix, csr_matrix
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold

import tradewind as tw
from tradewind.errors import DataError
from tradewind.models import TreeRanker, UnigramSVM, precision_at_1
from tradewind.space.parameters import DEFAULT_SIZES
from tradewind.subsets import subset

Judged = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]


def pools(queries: int = 40, candidates: int = 10, *, seed: int = 0, levels: int = 2) -> Judged:
    """Candidates whose relevance shows in the first two of five features, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(queries * candidates, 5))
    worth = (X[:, 0] + np.abs(X[:, 1]) + 0.1 * rng.normal(size=len(X))).reshape(queries, -1)
    rank = (-worth).argsort(axis=1).argsort(axis=1)
    y = np.maximum(levels - 1 - rank, 0).ravel()
    return X, y, np.repeat(np.arange(queries), candidates)


def small(**changes: Any) -> TreeRanker:
    return TreeRanker(**{"trees": 30, "min_data_in_leaf": 5, "random_state": 0, **changes})


@pytest.fixture(scope="module")
def fitted() -> TreeRanker:
    return small().fit(*pools())


# ---- ranking ----


@pytest.mark.parametrize("levels", [2, 4])
def test_it_learns_to_rank(levels: int) -> None:
    model = small(trees=60).fit(*pools(150, levels=levels))
    assert model.score(*pools(100, seed=1, levels=levels)) > 0.6  # guessing: 0.1 to 0.3


def test_its_score_is_precision_at_1(fitted: TreeRanker) -> None:
    X, y, qid = pools(seed=1)
    assert fitted.score(X, y, qid) == precision_at_1(fitted.predict(X), y, qid=qid)


def test_ranks_are_those_of_the_scores_in_each_query(fitted: TreeRanker) -> None:
    X, _, qid = pools(seed=1)
    shuffled = np.random.default_rng(0).permutation(len(X))
    X, qid = X[shuffled], qid[shuffled]
    scores, ranks = fitted.predict(X), fitted.ranks(X, qid)
    for query in np.unique(qid):
        rows = np.flatnonzero(qid == query)
        assert sorted(ranks[rows]) == list(range(1, len(rows) + 1))
        assert np.all(np.diff(scores[rows][ranks[rows].argsort()]) <= 0)


def test_equal_scores_rank_by_their_order(fitted: TreeRanker) -> None:
    same = np.repeat(pools()[0][:1], 4, axis=0)
    assert fitted.ranks(same, ["b", "a", "b", "b"]).tolist() == [1, 1, 2, 3]


@pytest.mark.parametrize("kind", [csr_matrix, csc_matrix, pd.DataFrame, np.float32, list])
def test_features_come_in_many_forms(kind: Any, fitted: TreeRanker) -> None:
    X, y, qid = pools()
    X = X.astype(np.float32).astype(np.float64)
    expected = small().fit(X, y, qid).predict(X)
    form = X.tolist() if kind is list else kind(X)
    assert small().fit(form, y.tolist(), qid.tolist()).predict(form) == pytest.approx(expected)


def test_missing_features_are_allowed() -> None:
    X, y, qid = pools(100)
    X[::7, 0] = np.nan
    assert small().fit(X, y, qid).score(X, y, qid) > 0.6


def test_queries_may_be_words_and_of_different_sizes() -> None:
    X, y, qid = pools()
    kept = np.random.default_rng(0).random(len(y)) < 0.7
    names = np.array([f"query {q:02}" for q in qid])
    model = small().fit(X[kept], y[kept], names[kept])
    assert model.score(X[kept], y[kept], names[kept]) == model.score(X[kept], y[kept], qid[kept])


# ---- settings ----


def test_settings_reach_lightgbm() -> None:
    X, y, qid = pools()
    model = small(trees=7, leaves=3, learning_rate=0.3, random_state=5).fit(X, y, qid)
    settings = {
        "objective": "lambdarank",
        "num_leaves": 3,
        "learning_rate": 0.3,
        "min_data_in_leaf": 5,
        "verbosity": -1,
        "num_threads": 1,
        "seed": 5,
    }
    data = lightgbm.Dataset(X, y, group=np.full(40, 10))
    plain = lightgbm.train(settings, data, 7)
    assert model.n_trees_ == 7
    assert model.predict(X) == pytest.approx(plain.predict(X))


def test_sampling_takes_place_only_where_it_is_asked_for() -> None:
    X, y, qid = pools()

    def scores(**settings: Any) -> NDArray[Any]:
        return small(**settings).fit(X, y, qid).predict(X)

    plain = scores()
    assert np.array_equal(scores(random_state=1), plain)
    assert not np.array_equal(scores(bagging_fraction=0.5), plain)
    assert not np.array_equal(scores(feature_fraction=0.5), plain)


def test_the_seed_decides_in_any_number_of_threads() -> None:
    X, y, qid = pools()
    drawn = {"bagging_fraction": 0.5, "feature_fraction": 0.6}
    one, two, again = (small(**drawn, n_jobs=n).fit(X, y, qid) for n in (1, 2, 1))
    assert np.array_equal(one.predict(X), again.predict(X))
    assert np.array_equal(one.predict(X), two.predict(X))
    other = small(**drawn, random_state=1).fit(X, y, qid)
    assert not np.array_equal(one.predict(X), other.predict(X))


def test_validation_queries_stop_it_and_the_best_trees_are_kept() -> None:
    train, valid = pools(60), pools(60, seed=1)
    model = small(trees=400, learning_rate=0.3, patience=10)
    model.fit(*train, validation=valid)
    assert 1 <= model.n_trees_ < 400
    same = small(trees=model.n_trees_, learning_rate=0.3).fit(*train)
    assert model.predict(valid[0]) == pytest.approx(same.predict(valid[0]))
    alone = small(trees=60, learning_rate=0.3).fit(*train)
    assert alone.n_trees_ == 60
    assert model.score(*valid) >= alone.score(*valid) - 1e-12


@pytest.mark.parametrize("levels", [2, 4])
def test_it_stops_when_ndcg_at_1_has_not_improved_for_so_many_trees(levels: int) -> None:
    train, valid = pools(60, levels=levels), pools(60, seed=1, levels=levels)

    def kept(at: int, patience: int) -> int:
        settings = {
            "objective": "lambdarank",
            "metric": "ndcg",
            "eval_at": [at],
            "num_leaves": 15,
            "learning_rate": 0.3,
            "min_data_in_leaf": 5,
            "verbosity": -1,
            "num_threads": 1,
        }
        data = lightgbm.Dataset(*train[:2], group=np.full(60, 10))
        held_out = lightgbm.Dataset(*valid[:2], group=np.full(60, 10), reference=data)
        stop = lightgbm.early_stopping(patience, verbose=False)
        plain = lightgbm.train(settings, data, 200, valid_sets=[held_out], callbacks=[stop])
        return int(plain.best_iteration)

    assert kept(1, 5) != kept(5, 5)
    assert kept(1, 5) != kept(1, 50)
    for patience in (5, 50):
        model = small(trees=200, learning_rate=0.3, patience=patience)
        assert model.fit(*train, validation=valid).n_trees_ == kept(1, patience)


def test_threads_reach_lightgbm(monkeypatch: pytest.MonkeyPatch) -> None:
    train, predict, seen = lightgbm.train, lightgbm.Booster.predict, []

    def training(settings: dict[str, Any], *rest: Any, **more: Any) -> Any:
        seen.append(settings["num_threads"])
        return train(settings, *rest, **more)

    def predicting(*rest: Any, num_threads: int) -> Any:
        seen.append(num_threads)
        return predict(*rest, num_threads=num_threads)

    monkeypatch.setattr(lightgbm, "train", training)
    monkeypatch.setattr(lightgbm.Booster, "predict", predicting)
    X, y, qid = pools(4)
    small(trees=2, n_jobs=2).fit(X, y, qid).predict(X)
    assert seen == [2, 2]


def test_it_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    X, y, qid = pools(3)
    constant = np.column_stack([X, np.ones(len(X))])
    model = TreeRanker(bagging_fraction=0.5).fit(constant, y, qid, validation=(constant, y, qid))
    model.predict(constant)
    assert capfd.readouterr() == ("", "")


# ---- smaller training sets ----


@pytest.mark.parametrize("fraction", DEFAULT_SIZES)
def test_a_subset_by_groups_has_whole_queries(fraction: float) -> None:
    _, y, qid = pools()
    rows = subset(y, fraction, groups=qid)
    assert set(np.bincount(qid[rows], minlength=40)) <= {0, 10}
    assert len(rows) == pytest.approx(fraction * len(y), abs=10)


def test_an_objective_trains_on_whole_queries() -> None:
    train, valid = pools(80), pools(40, seed=1)
    X, y, qid = train
    sizes = []

    def objective(trial: Any) -> dict[str, float]:
        rows = trial.subset(y, groups=qid)
        sizes.append((trial.train_size, len(rows)))
        model = TreeRanker(**trial.settings, random_state=trial.seed).fit(
            X[rows], y[rows], qid[rows]
        )
        return {"value": model.score(*valid), "cost": model.fit_seconds_}

    space = TreeRanker.space(train_sizes=DEFAULT_SIZES)
    study = tw.create_study(space, goal=tw.Tradeoff(alpha=0.1), seed=0)
    study.optimize(objective, n_trials=6)
    assert all(trial.finished for trial in study.trials)
    assert [rows for _, rows in sizes] == [round(800 * size) for size, _ in sizes]


def test_a_search_routes_the_queries_to_fit_and_score() -> None:
    X, y, qid = pools(30)
    space = {"trees": tw.Int(5, 20), "leaves": tw.Int(2, 8)}
    with sklearn.config_context(enable_metadata_routing=True):
        model = small().set_fit_request(qid=True).set_score_request(qid=True)
        search = tw.TradeoffSearchCV(
            model, space, cv=GroupKFold(3), train_sizes=[0.5, 1.0], n_iter=4, random_state=0
        )
        search.fit(X, y, qid=qid, groups=qid)
        assert search.best_score_ > 0.3
        assert set(search.cv_results_["n_train_rows"]) <= {100, 200}
        assert search.score(X, y, qid=qid) > 0.3


def test_the_space_has_its_settings() -> None:
    space = TreeRanker.space()
    assert set(space) < set(TreeRanker().get_params())
    assert TreeRanker.space(train_sizes=[0.3, 1])["train_size"].choices == (0.3, 1.0)
    X, y, qid = pools(10)
    for config in space.decode(space.sample(4, rng=np.random.default_rng(0))):
        assert TreeRanker(**config).fit(X, y, qid).predict(X).shape == (100,)


# ---- as an estimator ----


def test_it_is_an_estimator_of_scikit_learn(fitted: TreeRanker) -> None:
    given = {"trees": 5, "bagging_fraction": 0.5, "n_jobs": 2}
    model = TreeRanker().set_params(**given)
    assert {name: clone(model).get_params()[name] for name in given} == given
    assert not hasattr(clone(fitted), "model_")
    with pytest.raises(ValueError, match="Invalid parameter"):
        model.set_params(forest=1)


def test_a_saved_model_predicts_the_same(fitted: TreeRanker, tmp_path: Path) -> None:
    fitted.save(tmp_path / "trees.npz")
    X, _, _ = pools(seed=1)
    loaded = TreeRanker.load(tmp_path / "trees.npz")
    for other in (loaded, pickle.loads(pickle.dumps(fitted))):
        assert np.array_equal(other.predict(X), fitted.predict(X))
        assert other.get_params() == fitted.get_params()
    with pytest.raises(DataError, match="holds a TreeRanker"):
        UnigramSVM.load(tmp_path / "trees.npz")


def test_trees_that_were_changed_in_their_file_are_refused(
    fitted: TreeRanker, tmp_path: Path
) -> None:
    """LightGBM would end Python when it reads them."""
    path = tmp_path / "trees.npz"
    fitted.save(path)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    document = json.loads(arrays["document"].tobytes())
    trees = document["state"]["model_"]
    for other in (trees[:900], trees[:-900], "", trees.replace("num_leaves=15", "num_leaves=16")):
        assert other != trees
        document["state"]["model_"] = other
        changed = np.frombuffer(json.dumps(document).encode(), np.uint8)
        for kept in (arrays, {}):
            np.savez(path, **{**kept, "document": changed})
            with pytest.raises(DataError, match="is damaged: it was changed since it was saved"):
                TreeRanker.load(path)


def test_one_that_asks_for_queries_can_be_saved(tmp_path: Path) -> None:
    X, y, qid = pools(4)
    with sklearn.config_context(enable_metadata_routing=True):
        model = small(trees=2).set_fit_request(qid=True).fit(X, y, qid)
        model.save(tmp_path / "trees.npz")
    assert np.array_equal(TreeRanker.load(tmp_path / "trees.npz").predict(X), model.predict(X))


def test_a_refit_replaces_the_trees() -> None:
    model = small().fit(*pools())
    X, y, qid = pools(seed=2)
    before = model.predict(X)
    assert np.array_equal(model.fit(X, y, qid).predict(X), small().fit(X, y, qid).predict(X))
    assert not np.array_equal(model.predict(X), before)


@pytest.mark.parametrize("method", ["predict", "ranks", "score"])
def test_it_must_be_fitted(method: str) -> None:
    X, y, qid = pools(2)
    with pytest.raises(NotFittedError):
        getattr(TreeRanker(), method)(
            *{"predict": (X,), "ranks": (X, qid)}.get(method, (X, y, qid))
        )


# ---- what it refuses ----


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"trees": 0}, "trees must be a whole number ≥ 1, but got 0"),
        ({"trees": 1.5}, "trees must be a whole number"),
        ({"leaves": 1}, "leaves must be a whole number from 2"),
        ({"learning_rate": 0}, "learning_rate must be a number > 0"),
        ({"learning_rate": np.nan}, "learning_rate must be a number > 0"),
        ({"min_data_in_leaf": 0}, "min_data_in_leaf must be a whole number from 1"),
        ({"min_data_in_leaf": 2**31}, "min_data_in_leaf must be a whole number from 1 to 21474"),
        ({"min_data_in_leaf": 2**32 + 1}, "min_data_in_leaf must be a whole number from 1"),
        ({"feature_fraction": 0}, "feature_fraction must be a number in (0, 1]"),
        ({"feature_fraction": 1.5}, "feature_fraction must be a number in (0, 1], but got 1.5"),
        ({"bagging_fraction": "half"}, "bagging_fraction must be a number in (0, 1]"),
        (
            {"bagging_fraction": 0.02},
            "must leave at least one candidate, but 0.02 of 40 leaves none",
        ),
        ({"patience": 0}, "patience must be a whole number ≥ 1"),
        ({"n_jobs": 0}, "n_jobs must be a whole number from 1"),
        ({"n_jobs": 100_000}, "n_jobs must be a whole number from 1 to 1024"),
        ({"n_jobs": None}, "n_jobs must be a whole number"),
    ],
)
def test_wrong_settings_are_named_when_it_is_fitted(chosen: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        TreeRanker(**chosen).fit(*pools(4))


X4 = np.arange(8.0).reshape(4, 2)


@pytest.mark.parametrize(
    ("X", "y", "qid", "message"),
    [
        (X4, [0, 1, 0, 1], [1, 2, 1, 2], "candidates of a query must be next to each other"),
        (X4, [0, -1, 0, 1], [1, 1, 2, 2], "whole numbers from 0 to 30, but got -1"),
        (X4, [0, 31, 0, 1], [1, 1, 2, 2], "whole numbers from 0 to 30, but got 31"),
        (X4, [0, 0.5, 0, 1], [1, 1, 2, 2], "whole numbers from 0 to 30, but got 0.5"),
        (X4, [0, np.nan, 0, 1], [1, 1, 2, 2], "whole numbers from 0 to 30, but got nan"),
        (X4, list("abcd"), [1, 1, 2, 2], "whole numbers from 0 to 30, but got a"),
        (X4, [0, 1], [1, 1, 2, 2], "a relevance for each of 4 candidates, but got (2,)"),
        (X4, [0, 1, 0, 1], [1, 1], "a query for each of 4 candidates, but got the shape (2,)"),
        (X4, [0, 1, 0, 1], [1, 1, 2, np.nan], "qid must not be NaN"),
        (X4, [0, 1, 0, 1], [1, 1, None, None], "qid must be all strings or all numbers"),
        (X4, [0, 1, 0, 1], pd.Series([1, 1, "a", "a"]), "qid must be all strings or all numbers"),
        (X4, [0, 0, 0, 0], [1, 1, 2, 2], "there is nothing to learn"),
        (X4, [1, 1, 0, 0], [1, 1, 2, 2], "there is nothing to learn"),
        (np.full((4, 2), np.inf), [0, 1, 0, 1], [1, 1, 2, 2], "infinity"),
        (X4[:0], [], [], "0 sample(s)"),
        (X4[:, 0], [0, 1, 0, 1], [1, 1, 2, 2], "Expected 2D array"),
    ],
)
def test_wrong_data_are_named(X: Any, y: Any, qid: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        TreeRanker().fit(X, y, qid)


def test_a_query_may_not_be_larger_than_lightgbm_takes() -> None:
    X, y = np.zeros((10_001, 1)), np.arange(10_001) % 2
    with pytest.raises(ValueError, match="may have up to 10000 candidates, but one has 10001"):
        TreeRanker().fit(X, y, np.zeros(10_001))


def test_other_features_than_those_of_fit_are_refused(fitted: TreeRanker) -> None:
    X, y, qid = pools()
    with pytest.raises(ValueError, match="X must have 5 features as in fit, but has 4"):
        fitted.predict(X[:, :4])
    with pytest.raises(ValueError, match="validation must have 5 features, but has 4"):
        small().fit(X, y, qid, validation=(X[:, :4], y, qid))
    with pytest.raises(ValueError, match="must be next to each other"):
        small().fit(X, y, qid, validation=(X, y, qid[::-1] % 2))
    with pytest.raises(ValueError, match="a query for each of 400"):
        fitted.ranks(X, qid[:3])


def test_a_candidate_is_enough_for_a_tree_to_see() -> None:
    X, y, qid = pools(4)
    assert small(trees=3, bagging_fraction=0.025).fit(X, y, qid).predict(X).shape == (40,)


@pytest.mark.parametrize("validation", [3, "abc", (1, 2), pools(2)[:2], np.zeros((3, 2))])
def test_validation_queries_are_given_as_those_to_learn_from(validation: Any) -> None:
    with pytest.raises(ValueError, match=re.escape("validation must be (X, y, qid), but got ")):
        small().fit(*pools(4), validation=validation)


def test_without_lightgbm_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def absent(name: str, *rest: Any) -> Any:
        if name == "lightgbm":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(ImportError, match=re.escape("pip install lightgbm")):
        TreeRanker().fit(*pools(4))
