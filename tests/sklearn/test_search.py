"""A search as scikit-learn's users know it."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, log_loss, make_scorer
from sklearn.model_selection import (
    KFold,
    LeaveOneOut,
    RandomizedSearchCV,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, SVR

import tradewind as tw
from tests.sklearn.models import Known, X, y
from tradewind.sklearn import TradeoffSearchCV
from tradewind.sklearn.scoring import Scoring

iris = load_iris(return_X_y=True)
space = {"quality": [0.2, 0.4, 0.9, 0.6], "other": ["a", "b"]}


def search(**options: Any) -> TradeoffSearchCV:
    given = {"n_iter": 8, "cv": 3, "random_state": 0} | options
    return TradeoffSearchCV(given.pop("estimator", Known()), given.pop("space", space), **given)


# ---- what is found ----


def test_the_best_candidate_is_found_and_refitted() -> None:
    fitted = search().fit(X, y)
    assert fitted.best_params_["quality"] == 0.9
    assert fitted.best_score_ == 0.9
    assert fitted.best_estimator_.quality == 0.9
    assert fitted.best_estimator_.rows_ == 20
    assert fitted.cv_results_["params"][fitted.best_index_] == fitted.best_params_
    assert fitted.best_train_size_ == 1.0
    assert fitted.best_rows_ is None
    assert fitted.refit_time_ >= 0


def test_one_line_is_changed_to_switch_from_a_randomized_search() -> None:
    distributions = {"C": stats.loguniform(1e-3, 1e3), "solver": ["lbfgs"], "tol": [1e-4, 1e-3]}
    model = LogisticRegression(max_iter=2000)
    theirs = RandomizedSearchCV(model, distributions, n_iter=6, random_state=0).fit(*iris)
    ours = TradeoffSearchCV(model, distributions, n_iter=6, random_state=0).fit(*iris)
    assert set(ours.cv_results_) == {*theirs.cv_results_, "train_size", "n_train_rows"}
    for key, column in theirs.cv_results_.items():
        assert type(ours.cv_results_[key]) is type(column)
        assert len(ours.cv_results_[key]) == 6
        if key != "params":
            assert ours.cv_results_[key].dtype == column.dtype
    assert set(ours.best_params_) == set(theirs.best_params_)
    assert ours.predict(iris[0]).shape == theirs.predict(iris[0]).shape
    assert ours.n_splits_ == theirs.n_splits_ == 5


def test_scores_are_those_of_cross_validation() -> None:
    fitted = search(estimator=SVC(), space={"C": [0.1, 1.0, 10.0]}, n_iter=3, cv=4).fit(*iris)
    results = fitted.cv_results_
    for i, params in enumerate(results["params"]):
        scores = cross_val_score(SVC(**params), *iris, cv=4)
        assert_allclose([results[f"split{k}_test_score"][i] for k in range(4)], scores)
        assert_allclose(results["mean_test_score"][i], scores.mean())
        assert_allclose(results["std_test_score"][i], scores.std())
    means = results["mean_test_score"]
    assert_array_equal(results["rank_test_score"], [1 + (means > m).sum() for m in means])


def test_train_scores_are_there_if_asked_for() -> None:
    options: dict[str, Any] = {"estimator": SVC(), "space": {"C": [0.1, 10.0]}, "n_iter": 2}
    with_them = search(return_train_score=True, **options).fit(*iris).cv_results_
    assert (with_them["mean_train_score"] > 0.9).all()
    assert "split2_train_score" in with_them
    assert "mean_train_score" not in search(**options).fit(*iris).cv_results_


def test_parameters_are_masked_where_a_candidate_does_not_have_them() -> None:
    spaces = [{"kernel": ["linear"], "C": [1, 2]}, {"kernel": ["rbf"], "gamma": [0.1, 1.0]}]
    results = search(estimator=SVC(), space=spaces, n_iter=4).fit(*iris).cv_results_
    linear = results["param_kernel"] == "linear"
    assert linear.sum() == 2
    assert_array_equal(results["param_gamma"].mask, linear)
    assert_array_equal(results["param_C"].mask, ~linear)
    assert results["param_C"].dtype == int
    assert results["param_kernel"].dtype == object


def test_the_study_has_the_folds_as_noise_and_the_time_of_a_fit_as_cost() -> None:
    fitted = search(estimator=SVC(), space={"C": [0.1, 1.0, 10.0]}, n_iter=3).fit(*iris)
    results = fitted.cv_results_
    assert isinstance(fitted.study_, tw.Study)
    for i, trial in enumerate(fitted.study_.trials):
        splits = [results[f"split{k}_test_score"][i] for k in range(3)]
        assert_allclose(trial.folds, splits)
        assert_allclose(trial.value, results["mean_test_score"][i])
        assert_allclose(trial.cost, results["mean_fit_time"][i])


def test_the_same_random_state_tries_the_same_candidates() -> None:
    def tried(random_state: Any) -> list[dict[str, Any]]:
        continuous = {"quality": stats.uniform(0, 1), "other": [1, 2, 3]}
        fitted = search(space=continuous, random_state=random_state).fit(X, y)
        return list(fitted.cv_results_["params"])

    assert tried(0) == tried(0) == tried(np.int64(0))
    assert tried(np.random.RandomState(1)) == tried(np.random.RandomState(1))
    assert tried(0) != tried(1)
    assert tried(None) != tried(None)


def test_a_small_space_is_searched_once_through() -> None:
    with pytest.warns(UserWarning, match="total space of parameters 8 is smaller than n_iter=30"):
        fitted = search(n_iter=30).fit(X, y)
    found = {tuple(params.values()) for params in fitted.cv_results_["params"]}
    assert len(found) == len(fitted.study_.trials) == 8


def test_better_candidates_are_proposed_as_the_search_goes_on() -> None:
    class Peak(Known):
        def score(self, X: Any, y: Any = None) -> float:
            return -((self.quality - 0.3) ** 2)

    continuous = {"quality": stats.uniform(0, 1)}
    fitted = search(estimator=Peak(), space=continuous, n_iter=15).fit(X, y)
    assert abs(fitted.best_params_["quality"] - 0.3) < 0.01


# ---- kinds of folds ----


@pytest.mark.parametrize(
    ("cv", "n"),
    [
        (None, 5),
        (4, 4),
        (KFold(3), 3),
        (StratifiedKFold(3, shuffle=True, random_state=0), 3),
        (ShuffleSplit(2, random_state=0), 2),
        (LeaveOneOut(), 20),
        ([(np.arange(10), np.arange(10, 20))], 1),
        ([(list(range(10)), list(range(10, 20))), (list(range(5, 20)), list(range(5)))], 2),
        (((np.arange(10), np.arange(10, 20)) for _ in range(2)), 2),
    ],
    ids=lambda cv: type(cv).__name__ if not isinstance(cv, int) else str(cv),
)
def test_every_kind_of_cv_is_taken(cv: Any, n: int) -> None:
    fitted = search(cv=cv, n_iter=2).fit(X, y)
    assert fitted.n_splits_ == n
    assert f"split{n - 1}_test_score" in fitted.cv_results_
    assert f"split{n}_test_score" not in fitted.cv_results_


def test_folds_drawn_at_random_are_the_same_for_all_candidates() -> None:
    class First(Known):
        def score(self, X: Any, y: Any = None) -> float:
            return float(X[0, 0])

    fitted = search(estimator=First(), cv=ShuffleSplit(3)).fit(X, y)
    for i in range(3):
        assert len(set(fitted.cv_results_[f"split{i}_test_score"])) == 1


def test_a_splitter_that_contradicts_itself_is_an_error() -> None:
    class Broken(KFold):
        def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
            return 7

    with pytest.raises(ValueError, match="Expected 7 splits, got 3"):
        search(cv=Broken(3)).fit(X, y)
    with pytest.raises(ValueError, match="No fits were performed"):
        search(cv=iter([])).fit(X, y)


# ---- metrics ----


@pytest.mark.parametrize("scoring", ["accuracy", make_scorer(accuracy_score), None], ids=str)
def test_one_metric_is_called_the_score(scoring: Any) -> None:
    fitted = search(estimator=SVC(), space={"C": [0.01, 1.0]}, n_iter=2, scoring=scoring).fit(*iris)
    assert not fitted.multimetric_
    assert fitted.study_.metric == "accuracy"
    assert callable(fitted.scorer_)
    assert fitted.score(*iris) == accuracy_score(iris[1], fitted.predict(iris[0]))


def top_five(estimator: Any, X: Any, y: Any) -> float:
    return 0.0


@pytest.mark.parametrize(
    ("estimator", "scoring", "name"),
    [
        (SVC(), None, "accuracy"),
        (make_pipeline(SVR()), None, "R²"),
        (Known(), None, None),  # it scores in its own way
        (SVC(), "balanced_accuracy", "balanced accuracy"),
        (SVC(), "neg_log_loss", "negative log loss"),
        (SVC(), make_scorer(accuracy_score), "accuracy"),
        (SVC(), make_scorer(log_loss, greater_is_better=False), "negative log loss"),
        (SVC(), top_five, "top five"),
        (SVC(), lambda estimator, X, y: 0.0, None),
        (SVC(), ["f1_macro", "accuracy"], "accuracy"),
    ],
    ids=lambda it: getattr(it, "__name__", str(it)),
)
def test_the_study_names_its_quality_for_the_scoring(
    estimator: Any, scoring: Any, name: str | None
) -> None:
    refit = "accuracy" if isinstance(scoring, list) else True
    assert Scoring.of(estimator, scoring, refit, raises=False).name == name


def two(estimator: Any, X: Any, y: Any) -> dict[str, float]:
    return {"up": estimator.quality, "down": -estimator.quality}


@pytest.mark.parametrize(
    ("scoring", "refit", "best"),
    [
        (two, "up", 0.9),
        (two, "down", 0.2),
        ({"up": lambda e, X, y: e.quality, "down": lambda e, X, y: -e.quality}, "down", 0.2),
    ],
    ids=["up", "down", "dict"],
)
def test_of_several_metrics_the_one_that_refit_names_is_optimized(
    scoring: Any, refit: str, best: float
) -> None:
    fitted = search(scoring=scoring, refit=refit).fit(X, y)
    assert fitted.multimetric_
    assert fitted.best_params_["quality"] == best
    assert fitted.best_score_ == fitted.cv_results_[f"mean_test_{refit}"].max()
    assert fitted.score(X, y) == pytest.approx(fitted.best_score_)
    assert {"rank_test_up", "rank_test_down", "split0_test_down"} <= set(fitted.cv_results_)
    assert "mean_test_score" not in fitted.cv_results_
    assert [trial.value for trial in fitted.study_.trials] == list(
        fitted.cv_results_[f"mean_test_{refit}"]
    )


def test_several_metrics_in_a_list_share_their_predictions() -> None:
    names = ("accuracy", "balanced_accuracy")
    fitted = search(
        estimator=SVC(), space={"C": [0.01, 1.0]}, n_iter=2, scoring=names, refit="accuracy"
    ).fit(*iris)
    assert list(fitted.scorer_) == list(names)
    assert fitted.score(*iris) == accuracy_score(iris[1], fitted.predict(iris[0]))


@pytest.mark.parametrize("scoring", [two, ["accuracy", "f1"]], ids=["function", "list"])
@pytest.mark.parametrize("refit", [True, "recall"])
def test_of_several_metrics_refit_must_name_one(scoring: Any, refit: Any) -> None:
    with pytest.raises(ValueError, match="For multi-metric scoring, the parameter refit must be"):
        search(scoring=scoring, refit=refit).fit(X, y)


def test_without_refit_several_metrics_have_no_best_and_the_first_is_optimized() -> None:
    fitted = search(scoring=two, refit=False).fit(X, y)
    assert not any(hasattr(fitted, f"best_{what}_") for what in ("index", "params", "score"))
    assert fitted.study_.best.value == 0.9


# ---- refitting ----


def test_without_refit_there_is_a_best_but_nothing_that_predicts() -> None:
    fitted = search(refit=False).fit(X, y)
    assert fitted.best_params_["quality"] == 0.9
    assert not hasattr(fitted, "best_estimator_")
    assert not hasattr(fitted, "predict")
    with pytest.raises(AttributeError, match="initialized with `refit=False`"):
        fitted.score(X, y)


def test_refit_may_be_a_function_that_chooses() -> None:
    def worst(results: dict[str, Any]) -> Any:
        return results["mean_test_score"].argmin()

    fitted = search(refit=worst).fit(X, y)
    assert fitted.best_params_["quality"] == fitted.best_estimator_.quality == 0.2
    assert not hasattr(fitted, "best_score_")


@pytest.mark.parametrize(("chosen", "error"), [("one", TypeError), (8, IndexError)])
def test_a_function_that_chooses_must_give_an_index(chosen: Any, error: type) -> None:
    with pytest.raises(error, match="best_index_"):
        search(refit=lambda results: chosen).fit(X, y)


def test_candidates_are_clones_and_what_was_given_stays_as_it_was() -> None:
    scaler, model = StandardScaler(), make_pipeline(StandardScaler(), LogisticRegression())
    steps = {"standardscaler": [scaler, MinMaxScaler()], "logisticregression__C": [0.1, 1.0]}
    fitted = search(estimator=model, space=steps, n_iter=4).fit(*iris)
    assert not hasattr(scaler, "mean_")
    assert not hasattr(model[-1], "coef_")
    step = fitted.best_estimator_["standardscaler"]
    assert step is not fitted.best_params_["standardscaler"]
    assert type(step) is type(fitted.best_params_["standardscaler"])


def test_values_that_are_no_numbers_are_set_and_shown_as_they_are() -> None:
    texts = ["red wine", "white wine", "dry red wine", "sweet white wine"] * 4
    model = make_pipeline(CountVectorizer(), LogisticRegression())
    grams = {"countvectorizer__ngram_range": [(1, 1), (1, 2)], "logisticregression__C": [1.0, 2.0]}
    fitted = search(estimator=model, space=grams, n_iter=4).fit(texts, [0, 1] * 8)
    shown = fitted.cv_results_["param_countvectorizer__ngram_range"]
    assert sorted(shown) == [(1, 1), (1, 1), (1, 2), (1, 2)]
    assert shown.dtype == object
    assert (
        fitted.best_estimator_[0].ngram_range == fitted.best_params_["countvectorizer__ngram_range"]
    )


def test_conditions_of_a_space_hold_for_the_estimator() -> None:
    conditional = tw.Space(
        {
            "bootstrap": tw.Bool(),
            "max_samples": tw.Float(0.2, 1.0, when={"bootstrap": True}),
            "n_estimators": tw.Int(2, 5),
        }
    )
    fitted = search(estimator=RandomForestClassifier(random_state=0), space=conditional).fit(*iris)
    for params in fitted.cv_results_["params"]:
        assert ("max_samples" in params) == params["bootstrap"]
    assert_array_equal(
        fitted.cv_results_["param_max_samples"].mask,
        [not params["bootstrap"] for params in fitted.cv_results_["params"]],
    )


# ---- an estimator ----


@pytest.mark.parametrize(
    ("method", "estimator"),
    [
        ("predict", LogisticRegression()),
        ("predict_proba", LogisticRegression()),
        ("predict_log_proba", LogisticRegression()),
        ("decision_function", LogisticRegression()),
        ("transform", StandardScaler()),
        ("inverse_transform", StandardScaler()),
    ],
)
def test_it_does_what_its_best_estimator_does(method: str, estimator: Any) -> None:
    parameter = {"C": [1.0]} if hasattr(estimator, "C") else {"with_std": [True]}
    made = search(estimator=estimator, space=parameter, n_iter=1, scoring=lambda e, X, y: 1.0)
    assert hasattr(made, method)
    with pytest.raises(NotFittedError):
        getattr(made, method)(X)
    made.fit(X, y)
    assert_allclose(getattr(made, method)(X), getattr(made.best_estimator_, method)(X))
    lacking = "transform" if method.startswith(("pre", "dec")) else "predict"
    assert not hasattr(made, lacking)


def test_it_has_the_features_and_classes_of_its_best_estimator() -> None:
    made = search(estimator=SVC(), space={"C": [1.0]}, n_iter=1)
    assert not hasattr(made, "n_features_in_")
    assert not hasattr(made, "classes_")
    made.fit(*iris)
    assert made.n_features_in_ == 4
    assert list(made.classes_) == [0, 1, 2]


def test_it_is_of_the_kind_that_its_estimator_is() -> None:
    assert is_classifier(search())
    assert is_regressor(search(estimator=Ridge()))
    assert search(estimator=SVC(kernel="precomputed")).__sklearn_tags__().input_tags.pairwise


def test_a_clone_has_the_parameters_and_no_results() -> None:
    fitted = search(goal=tw.Tradeoff(0.1), racing=0.1).fit(X, y)
    copy = clone(fitted)
    assert copy.get_params(deep=False).keys() == fitted.get_params(deep=False).keys()
    assert copy.goal == fitted.goal
    assert not hasattr(copy, "study_")
    assert copy.set_params(estimator__quality=0.1).estimator.quality == 0.1


def test_it_is_pickled_before_and_after_it_is_fitted() -> None:
    made = search()
    fitted = pickle.loads(pickle.dumps(made)).fit(X, y)
    copy = pickle.loads(pickle.dumps(fitted))
    assert copy.best_params_ == fitted.best_params_
    assert_array_equal(copy.predict(X), fitted.predict(X))
    assert copy.study_.best.params == fitted.study_.best.params
    assert copy.frontier_ == fitted.frontier_


def test_it_can_be_a_step_of_another_evaluation() -> None:
    scores = cross_val_score(
        search(estimator=SVC(), space={"C": [0.1, 1.0]}, n_iter=2), *iris, cv=3
    )
    assert scores.mean() > 0.9


def test_the_output_of_its_best_estimator_is_configured_on_the_estimator() -> None:
    scaler = StandardScaler().set_output(transform="pandas")
    made = search(
        estimator=scaler, space={"with_mean": [True, False]}, n_iter=2, scoring=lambda e, X, y: 1.0
    )
    assert list(made.fit(X, y).transform(X).columns) == ["x0", "x1"]


def test_it_is_shown_in_a_notebook_with_its_estimator() -> None:
    assert "LogisticRegression" in search(estimator=LogisticRegression())._repr_html_()
    assert "Known" in search().fit(X, y)._repr_html_()


def test_fitting_again_forgets_what_was_before() -> None:
    made = search().fit(X, y)
    first = made.study_
    made.set_params(space={"quality": [0.1, 0.3]}, n_iter=2)
    made.fit(X, y)
    assert made.study_ is not first
    assert made.best_score_ == 0.3
    assert len(made.cv_results_["params"]) == 2


def test_progress_is_shown_if_asked_for(capfd: pytest.CaptureFixture[str]) -> None:
    search(n_iter=2).fit(X, y)
    assert capfd.readouterr() == ("", "")
    search(n_iter=2, verbose=1).fit(X, y)
    assert "Fitting 3 folds for each of 2 candidates, totalling 6 fits" in capfd.readouterr().out
    search(n_iter=2, verbose=2).fit(X, y)
    assert "[1] score" in capfd.readouterr().out


def test_the_output_of_a_transformer_can_be_set_before_and_after_fit() -> None:
    frame = pd.DataFrame(np.arange(20.0).reshape(10, 2), columns=["a", "b"])

    def constant(estimator: Any, X: Any, y: Any = None) -> float:
        return 1.0

    space = {"with_mean": [True, False]}
    options: dict[str, Any] = {"n_iter": 2, "cv": 2, "scoring": constant, "random_state": 0}
    before = TradeoffSearchCV(StandardScaler(), space, **options).set_output(transform="pandas")
    assert list(before.fit(frame).transform(frame)) == ["a", "b"]
    assert list(clone(before).fit(frame).transform(frame)) == ["a", "b"]
    after = TradeoffSearchCV(StandardScaler(), space, **options).fit(frame)
    assert isinstance(after.transform(frame), np.ndarray)
    assert list(after.set_output(transform="pandas").transform(frame)) == ["a", "b"]
    assert not hasattr(TradeoffSearchCV(Ridge(), {"alpha": [1.0]}), "set_output")
