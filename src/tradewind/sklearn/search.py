"""A study behind scikit-learn's interface of a search: `fit` prepares folds and space, lets the
study search, and refits what it has found.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, is_classifier
from sklearn.model_selection import TimeSeriesSplit, check_cv
from sklearn.utils import indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import check_is_fitted

import sklearn
from tradewind import checks
from tradewind.checks import seed_of
from tradewind.errors import ConfigError, NothingFinished
from tradewind.goals import Goal
from tradewind.log.memory import MemoryStore
from tradewind.optimizer.strategies.staged import Staged
from tradewind.sklearn.arguments import check_all, goal_of, space_of, strategy_of
from tradewind.sklearn.choosing import Candidate, refit_size
from tradewind.sklearn.cv_results import Row, cv_results, metrics, report_failures
from tradewind.sklearn.delegation import Delegation
from tradewind.sklearn.evaluation import (
    Data,
    Evaluation,
    Fit,
    Objective,
    configured,
    fit,
    length,
    of_rows,
)
from tradewind.sklearn.scoring import Scoring, check_refit
from tradewind.sklearn.searching import ENDED, evaluated
from tradewind.sklearn.stored import restored, study_name
from tradewind.space import Space
from tradewind.space.distributions import Translation
from tradewind.study.studies import create_study
from tradewind.study.study import Study
from tradewind.types import Trial


class TradeoffSearchCV(Delegation, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Search the parameters of an estimator for its score and for the time that training takes.

    It is used as scikit-learn's `RandomizedSearchCV` is, and differs in what it tries: a study
    proposes candidates one by one, from what is known of those before.

    Parameters
    ----------
    estimator : what to tune.
    space : what to search: a dict of lists and SciPy's distributions, or a list of such dicts, as
        `RandomizedSearchCV` takes them; a `Space`; or a dict that `Space.from_dict` reads.
    goal : what is best: `Quality()`, the default, is the highest score, and `Tradeoff(alpha,
        reference)` weighs the cost: the time of a fit in seconds, in the mean over folds.
    n_iter : how many candidates are evaluated; None if only `timeout` or `max_cost` is to end it.
    train_sizes : fractions of the training rows, such as `[0.25, 0.5, 1.0]`, as one more parameter.
        Under `Quality` small ones tell about large ones for less. Under `Tradeoff` the fraction is
        part of what is chosen: the best estimator is trained with it.
    stages : growing fractions such as `[0.3, 1.0]`, searched one after the other, each with its
        share of `n_iter` and beginning with the best of the one before; or a `strategies.Staged`.
    strategy : who proposes: "auto", "random" or an object of `tradewind.strategies`.
    scoring, refit, cv, error_score, return_train_score : as in `RandomizedSearchCV`. Of several
        metrics, the one that `refit` names is optimized, or else the first.
    n_jobs : how many candidates are evaluated at the same time, each in a process.
    verbose : 1 shows progress, 2 a line for each candidate.
    random_state : the same number gives the same candidates, unless `n_jobs` or measured times
        (under a `Tradeoff`, with `train_sizes`, with limits) have a say in them.
    racing : None, or an error rate such as 0.05: candidates that are clearly behind the best after
        some of their folds are given up, and so is that share, at most, of those as good as it.
    timeout : seconds until the search ends.
    max_cost : seconds of fitting until the search ends, all folds together.
    storage, name : where the study is kept, and under which name. A search that was interrupted
        goes on when it is fitted again; what was evaluated before counts towards `n_iter`.

    Attributes
    ----------
    study_ : the `Study`. Its trials are the candidates, their values the mean test scores.
    frontier_ : the efficient ones of the candidates that may be best, cheapest first: whatever is
        cheaper is worse. With `stages`, and under `Quality` with `train_sizes`, these are the
        candidates with most data.
    best_train_size_, best_rows_ : the fraction of the rows that the best estimator was trained
        with, and which they are (None for all).
    cv_results_, best_index_, best_params_, best_score_, best_estimator_, refit_time_, n_splits_,
    scorer_, multimetric_, classes_, n_features_in_, feature_names_in_ : as in `RandomizedSearchCV`,
        where the best is so under the goal. `cv_results_` has `train_size` and `n_train_rows` too.
    """

    def __init__(
        self,
        estimator: Any,
        space: Any,
        *,
        goal: Goal | None = None,
        n_iter: int | None = 20,
        train_sizes: Sequence[float] | None = None,
        stages: Sequence[float] | Staged | None = None,
        strategy: Any = "auto",
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        random_state: Any = None,
        error_score: Any = np.nan,
        return_train_score: bool = False,
        racing: float | None = None,
        timeout: float | None = None,
        max_cost: float | None = None,
        storage: Any = None,
        name: str | None = None,
    ) -> None:
        self.estimator = estimator
        self.space = space
        self.goal = goal
        self.n_iter = n_iter
        self.train_sizes = train_sizes
        self.stages = stages
        self.strategy = strategy
        self.scoring = scoring
        self.n_jobs = n_jobs
        self.refit = refit
        self.cv = cv
        self.verbose = verbose
        self.random_state = random_state
        self.error_score = error_score
        self.return_train_score = return_train_score
        self.racing = racing
        self.timeout = timeout
        self.max_cost = max_cost
        self.storage = storage
        self.name = name

    # ---- fitting ----

    def fit(self, X: Any, y: Any = None, **params: Any) -> TradeoffSearchCV:
        """Search, and train the best estimator with all of the rows, or its fraction of them.

        `params` go to the estimator's `fit`, and `groups` to the splitter; where metadata routing
        is enabled, all go where they are asked for. What has a value for each row is split."""
        check_all(self)
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)  # of an earlier fit
        scoring = self._scoring()
        X, y = indexable(X, y)
        data, splitting = self._routed(X, y, params, scoring)
        splits = self._split(X, y, splitting)
        translation = space_of(self)
        self._check_names(translation)
        evaluation = Evaluation(
            self.estimator,
            data,
            splits,
            scoring.scorer,
            self.error_score,
            bool(self.return_train_score),
        )
        self.study_ = self._study(translation.space, evaluation, scoring)
        objective = Objective(evaluation, translation, scoring.metric, self.racing)
        fits = evaluated(self, self.study_, objective)
        self._tabulate(translation, fits, scoring)
        self._choose()
        self._data: Data | None = data  # for `select`
        if self.refit:
            self._fit_best(data)
        return self

    def select(self, goal: Goal, X: Any = None, y: Any = None, **params: Any) -> TradeoffSearchCV:
        """Take the candidate that is best under another goal, and refit it, without a search.

        A `Tradeoff` without a reference takes that of the search, or else the largest cost. The
        data are those of `fit`; a search that was pickled or copied does not have them any more,
        and is given them as `fit` is."""
        check_is_fitted(self, "best_index_" if self.refit else "cv_results_")
        checks.goal(goal)
        data = self._data
        if X is not None:
            X, y = indexable(X, y)
            data, _ = self._routed(X, y, params, self._scoring())
        elif params or y is not None:
            raise ValueError("what goes with X must come with it: give X, y and parameters of fit")
        elif data is None and self.refit:
            raise ValueError(
                "select refits, and needs the data for that: a search that was pickled or copied "
                "does not have those of fit. Give them again: select(goal, X, y)"
            )
        self._choose(goal)
        if self.refit and data is not None:
            self._fit_best(data)
        return self

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return state | {"_data": None} if "_data" in state else state

    def get_metadata_routing(self) -> MetadataRouter:
        """Where metadata go: to `fit` of the estimator, to the scorer and to the splitter."""
        fitting = MethodMapping().add(caller="fit", callee="fit")
        scoring = MethodMapping().add(caller="score", callee="score")
        scoring.add(caller="fit", callee="score")
        splitting = MethodMapping().add(caller="fit", callee="split")
        router = MetadataRouter(owner=type(self).__name__)
        router.add(estimator=self.estimator, method_mapping=fitting)
        router.add(scorer=self._scoring().scorer, method_mapping=scoring)
        return router.add(splitter=self.cv, method_mapping=splitting)

    # ---- before the search ----

    def _scoring(self) -> Scoring:
        raises = isinstance(self.error_score, str)
        return Scoring.of(self.estimator, self.scoring, self.refit, raises=raises)

    def _routed(
        self, X: Any, y: Any, params: Mapping[str, Any], scoring: Scoring
    ) -> tuple[Data, dict[str, Any]]:
        """The data with what goes to fits and scores, and what goes to the splitter."""
        if sklearn.get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", **params)
            fitting, scored = routed.estimator["fit"], routed.scorer["score"]
            splitting = dict(routed.splitter["split"])
        else:
            fitting, scored = dict(params), {}
            splitting = {"groups": fitting.pop("groups", None)}
            if fitting.get("sample_weight") is not None and scoring.weighs():
                scored = {"sample_weight": fitting["sample_weight"]}
        timely = isinstance(self.cv, TimeSeriesSplit)
        return Data(X, y, splitting.get("groups"), fitting, scored, timely), splitting

    def _split(self, X: Any, y: Any, params: Mapping[str, Any]) -> list[tuple[Any, Any]]:
        """The same folds for all candidates."""
        cv = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        self.n_splits_ = cv.get_n_splits(X, y, **params)
        splits = list(cv.split(X, y, **params))
        if len(splits) != self.n_splits_:
            raise ValueError(
                "cv.split and cv.get_n_splits return inconsistent results. Expected "
                f"{self.n_splits_} splits, got {len(splits)}"
            )
        if not splits:
            raise ValueError("No fits were performed. Was the CV iterator empty?")
        return splits

    def _check_names(self, translation: Translation) -> None:
        """Set every parameter once: a wrong name should be known before anything is fitted."""
        space, rng = translation.space, np.random.default_rng(0)
        for name, parameter in space.items():
            with suppress(ConfigError):  # the value in the middle may be forbidden
                config = space.complete({name: parameter.from_unit(0.5)}, rng=rng)
                configured(self.estimator, translation.params(config))

    def _study(self, space: Space, evaluation: Evaluation, scoring: Scoring) -> Study:
        goal, name, storage = goal_of(self), self.name or "search", self.storage
        if storage is not None:
            name = study_name(self.name, evaluation, (self.scoring, scoring.metric))
        return create_study(
            space,
            goal=goal,
            strategy=strategy_of(self, goal, space),
            seed=None if self.random_state is None else seed_of(self.random_state),
            storage=MemoryStore() if storage is None else storage,
            name=name,
            load_if_exists=True,
        )

    # ---- after the search ----

    def _tabulate(
        self, translation: Translation, fits: Mapping[int, list[Fit]], scoring: Scoring
    ) -> None:
        """Make the results of all that was evaluated, here or before."""
        trials = [trial for trial in self.study_.trials if trial.state in ENDED]
        rows = []
        for trial in trials:
            known = fits.get(trial.number)
            if known is None:
                known = restored(trial, scoring.metric, self.n_splits_)
            rows.append(Row(translation.params(trial.params), trial.train_size, known))
        if not rows:
            raise NothingFinished("no candidate was evaluated before the search had to end")
        error_score = np.nan if isinstance(self.error_score, str) else float(self.error_score)
        report_failures(rows, error_score)
        names = metrics(rows)
        self.multimetric_ = isinstance(scoring.shown, dict) or names != ["score"]
        if self.multimetric_:
            check_refit(self.refit, names)
        self._metric = scoring.metric if scoring.metric in names else names[0]
        self._index = {trial.number: i for i, trial in enumerate(trials)}
        self.scorer_ = scoring.shown
        self.cv_results_ = cv_results(
            rows, self.n_splits_, error_score=error_score, train_scores=self.return_train_score
        )
        some = any(trial.finished for trial in trials)
        efficient = self.study_.frontier() if some else []
        self.frontier_ = [self._candidate(trial) for trial in efficient]

    def _candidate(self, trial: Trial) -> Candidate:
        index = self._index[trial.number]
        score = float(self.cv_results_[f"mean_test_{self._metric}"][index])
        params = self.cv_results_["params"][index]
        return Candidate(index, params, trial.train_size, score, float(trial.cost or 0.0))

    def _choose(self, goal: Goal | None = None) -> None:
        """Set `best_*`, to what is best under a goal if one is given."""
        results = self.cv_results_
        if goal is None and callable(self.refit):
            index = self.refit(results)
            if not isinstance(index, Integral):
                raise TypeError(f"best_index_ returned is not an integer: {index!r}")
            if not 0 <= int(index) < len(results["params"]):
                raise IndexError(f"best_index_ index out of range: {index}")
            self.best_index_ = int(index)
            self.best_train_size_ = float(results["train_size"][self.best_index_])
        elif goal is None and not self.refit and self.multimetric_:
            return  # nobody has said by which metric
        else:
            trial, self.best_train_size_ = self._best_trial(goal)
            self.best_index_ = self._index[trial.number]
            self.best_score_ = results[f"mean_test_{self._metric}"][self.best_index_]
        self.best_params_ = results["params"][self.best_index_]

    def _best_trial(self, goal: Goal | None) -> tuple[Trial, float]:
        study = self.study_
        if not any(trial.finished for trial in study.trials):  # the first, unless it fails, too
            first = next(trial for trial in study.trials if trial.number in self._index)
            return first, first.train_size
        trial = study.best if goal is None else study.best_for(goal)
        return trial, refit_size(study, trial)

    def _fit_best(self, data: Data) -> None:
        model = configured(self.estimator, self.best_params_)
        X, y, params = data.X, data.y, data.fit_params
        self.best_rows_ = None
        if self.best_train_size_ < 1.0:
            self.best_rows_ = data.part(self.best_train_size_, self.study_.trials[0].data_seed)
            params = of_rows(params, self.best_rows_, length(X))
            X, y = _safe_split(model, X, y, self.best_rows_)
        begin = time.perf_counter()
        fit(model, X, y, params)
        self.refit_time_ = time.perf_counter() - begin
        self.best_estimator_ = model
        if hasattr(model, "feature_names_in_"):
            self.feature_names_in_ = model.feature_names_in_
