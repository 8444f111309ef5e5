"""A study behind scikit-learn's search interface: `fit` prepares the folds and the space, lets the
study run its trials (trials.py), and refits the best candidate.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from numbers import Integral
from typing import Any

import numpy as np
import sklearn
from sklearn.base import BaseEstimator, MetaEstimatorMixin, is_classifier
from sklearn.model_selection import TimeSeriesSplit, check_cv
from sklearn.utils import indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import check_is_fitted

from tradewind import checks
from tradewind.errors import ConfigError, NothingFinished
from tradewind.goals import Goal
from tradewind.goals.text import AnyGoal, read_goal
from tradewind.log.memory import MemoryStore
from tradewind.optimizer.strategies.staged import Staged
from tradewind.sklearn.arguments import (
    build_space,
    check_arguments,
    choose_goal,
    choose_strategy,
)
from tradewind.sklearn.callbacks import CallbackSupportMixin, Task, callbacks_of
from tradewind.sklearn.candidates import Candidate, refit_size
from tradewind.sklearn.cv_results import Row, build_cv_results, metric_names, report_failures
from tradewind.sklearn.delegation import Delegation
from tradewind.sklearn.evaluation import (
    CrossValidatedObjective,
    Evaluation,
    Fit,
    TrainingData,
    configure,
    count_rows,
    fit,
    select_rows,
)
from tradewind.sklearn.scoring import Scoring, check_refit
from tradewind.sklearn.storage import fits_in_store, study_name
from tradewind.sklearn.trials import ENDED, run_trials
from tradewind.space import Space
from tradewind.space.distributions import Translation
from tradewind.study.studies import create_study
from tradewind.study.study import Study
from tradewind.types import Trial


class TradeoffSearchCV(
    Delegation,
    MetaEstimatorMixin,  # type: ignore[misc]
    CallbackSupportMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Tune an estimator for its score, or for a trade-off between score and training time.

    Use it like scikit-learn's `RandomizedSearchCV`. The difference is in how it picks candidates:
    a study proposes them one by one and learns from the results of the earlier ones.

    Parameters
    ----------
    estimator : the estimator to tune.
    space : the parameters to search. Either a dict of lists and SciPy distributions or a list of
        such dicts, as in `RandomizedSearchCV`; or a `Space`; or a dict that `Space.from_dict`
        reads.
    param_distributions : another name for `space`, as in `RandomizedSearchCV`. Give one of them.
    goal : what makes a candidate the best. `Quality()`, the default, wants the highest mean test
        score. `Tradeoff(alpha, reference)` also counts the cost, which is the mean time of a fit
        in seconds. A text such as "under:2s" or "within:1%" is a goal, too.
    n_iter : the number of candidates to evaluate. None if only `timeout` or `max_cost` ends the
        search.
    train_sizes : fractions of the training rows to choose from, such as `[0.25, 0.5, 1.0]`. Under
        `Quality`, small sizes are a cheap way to learn about the largest one, and the best
        estimator is trained with the largest. They pay with a `timeout` or `max_cost`; if only
        `n_iter` limits the search, only the first candidates are small. Under `Tradeoff`, the size
        is one more parameter, and the best estimator is trained with the size that was chosen.
    stages : growing fractions of the training rows, such as `[0.3, 1.0]`, or a
        `strategies.Staged`. The stages are searched one after the other with equal shares of
        `n_iter`. Each begins with the best configurations of the one before.
    strategy : how candidates are proposed: "auto", "random" or an object of
        `tradewind.strategies`.
    scoring, refit, cv, error_score, return_train_score : as in `RandomizedSearchCV`. With several
        metrics, the search optimizes the one that `refit` names, or else the first.
    n_jobs : the number of candidates to evaluate at the same time, each in its own process.
    verbose : 1 shows the progress, 2 prints a line for each candidate.
    random_state : with the same number, the search evaluates the same candidates. This does not
        hold if candidates depend on measured times (under `Tradeoff`, with `train_sizes` or with a
        limit) or on the order in which they finish (with `n_jobs`).
    racing : None, or an error rate such as 0.05. A candidate is stopped after some of its folds if
        it is clearly behind the best one. The rate bounds the probability that this happens to a
        candidate that is just as good.
    timeout : seconds after which the search ends, or text such as "2h" or "90min".
    max_cost : seconds of fitting, all folds together, after which the search ends.
    storage : where to keep the study: a path (SQLite) or `postgresql://…`. A search that was
        interrupted continues when it is fitted again with the same data. Candidates that were
        evaluated before count towards `n_iter`.
    name : the first part of the study's name in the storage; the class of the estimator by
        default. The rest is a digest of the estimator, the data, the folds and the scoring.

    Attributes
    ----------
    study_ : the `Study`. Its trials are the candidates; their values are the mean test scores.
    frontier_ : the efficient candidates, cheapest first, as a list of `Candidate`: no other
        candidate is both cheaper and at least as good. With `stages`, and under `Quality` with
        `train_sizes`, only candidates with the largest training size are compared.
    best_train_size_ : the fraction of the rows that the best estimator was trained with.
    best_rows_ : the numbers of these rows, or None for all rows.
    cv_results_ : as in `RandomizedSearchCV`, with two more columns, `train_size` and
        `n_train_rows`.
    best_index_, best_params_, best_score_, best_estimator_ : as in `RandomizedSearchCV`, for the
        candidate that is best under the goal.
    refit_time_, n_splits_, scorer_, multimetric_, classes_, n_features_in_, feature_names_in_ : as
        in `RandomizedSearchCV`.

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> tree, space = DecisionTreeClassifier(random_state=0), {"max_depth": tw.Int(1, 4)}
    >>> search = tw.TradeoffSearchCV(tree, space, n_iter=4, cv=3, random_state=0).fit(X, y)
    >>> print(search.best_score_ > 0.9)
    True
    """

    def __init__(
        self,
        estimator: Any,
        space: Any = None,
        *,
        param_distributions: Any = None,
        goal: AnyGoal | None = None,
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
        timeout: float | str | None = None,
        max_cost: float | None = None,
        storage: Any = None,
        name: str | None = None,
    ) -> None:
        self.estimator = estimator
        self.space = space
        self.param_distributions = param_distributions
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
        """Search, and then train the best estimator with all rows or with its training size.

        `groups` goes to the splitter and all other `params` to the estimator's `fit`. If metadata
        routing is enabled, they go where they were requested. A parameter with a value for each
        row is split like the rows."""
        with callbacks_of(self):
            return self._fit(X, y, params)

    def _fit(self, X: Any, y: Any, params: Mapping[str, Any]) -> TradeoffSearchCV:
        check_arguments(self)
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)  # left by an earlier fit
        scoring = self._scoring()
        X, y = indexable(X, y)
        data, splitting = self._route(X, y, params, scoring)
        task = Task.of(self, X, y, params)
        task.begin()
        splits = self._split(X, y, splitting)
        translation = build_space(self)
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
        objective = CrossValidatedObjective(evaluation, translation, scoring.metric, self.racing)
        fits = run_trials(self, self.study_, objective, task)
        self._tabulate(translation, fits, scoring)
        self._choose()
        self._data: TrainingData | None = data  # for `select`
        if self.refit:
            self._fit_best(data, task)
        task.end()
        return self

    def select(
        self, goal: AnyGoal, X: Any = None, y: Any = None, **params: Any
    ) -> TradeoffSearchCV:
        """Choose the candidate that is best under another goal, such as "under:2s" or "1se", and
        refit it, without a new search.

        A `Tradeoff` without a reference uses that of the search, or else the largest cost. The
        search remembers the data of `fit`. A search that was pickled or copied does not, so give
        it the data again, with the same arguments as `fit`."""
        check_is_fitted(self, "best_index_" if self.refit else "cv_results_")
        goal = read_goal(goal)
        data = self._data
        if X is not None:
            X, y = indexable(X, y)
            data, _ = self._route(X, y, params, self._scoring())
        elif params or y is not None:
            raise ValueError(
                "X is missing: give X along with y and the parameters of fit, or none of them"
            )
        elif data is None and self.refit:
            raise ValueError(
                "select refits the estimator and needs the data, but a search that was pickled or "
                "copied no longer has them: give them again, as in select(goal, X, y)"
            )
        self._choose(goal)
        if self.refit and data is not None:
            self._fit_best(data, Task())
        return self

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return state | {"_data": None} if "_data" in state else state

    def get_metadata_routing(self) -> MetadataRouter:
        """Metadata go to the estimator's `fit`, to the scorer and to the splitter."""
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

    def _route(
        self, X: Any, y: Any, params: Mapping[str, Any], scoring: Scoring
    ) -> tuple[TrainingData, dict[str, Any]]:
        """The data, with the parameters for `fit` and for the scorer, and the parameters for the
        splitter."""
        if sklearn.get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", **params)
            fitting, scoring_params = routed.estimator["fit"], routed.scorer["score"]
            splitting = dict(routed.splitter["split"])
        else:
            fitting, scoring_params = dict(params), {}
            splitting = {"groups": fitting.pop("groups", None)}
            if fitting.get("sample_weight") is not None and scoring.takes_sample_weight():
                scoring_params = {"sample_weight": fitting["sample_weight"]}
        in_time_order = isinstance(self.cv, TimeSeriesSplit)
        groups = splitting.get("groups")
        return TrainingData(X, y, groups, fitting, scoring_params, in_time_order), splitting

    def _split(self, X: Any, y: Any, params: Mapping[str, Any]) -> list[tuple[Any, Any]]:
        """The folds, the same for all candidates."""
        cv = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        self.n_splits_ = cv.get_n_splits(X, y, **params)
        splits = list(cv.split(X, y, **params))
        if len(splits) != self.n_splits_:
            raise ValueError(
                "cv.split and cv.get_n_splits return inconsistent results. Expected "
                f"{self.n_splits_} splits, got {len(splits)}"
            )
        if not splits:
            raise ValueError(
                "No fits were performed. Was the CV iterator empty? Were there no candidates?"
            )
        return splits

    def _check_names(self, translation: Translation) -> None:
        """Set every parameter once, so that a wrong name is found before anything is fitted."""
        space, rng = translation.space, np.random.default_rng(0)
        for name, parameter in space.items():
            with suppress(ConfigError):  # the middle value may be forbidden
                config = space.complete({name: parameter.from_unit(0.5)}, rng=rng)
                configure(self.estimator, translation.params(config))

    def _study(self, space: Space, evaluation: Evaluation, scoring: Scoring) -> Study:
        goal, name, storage = choose_goal(self), self.name or "search", self.storage
        if storage is not None:
            name = study_name(self.name, evaluation, (self.scoring, scoring.metric))
        return create_study(
            space,
            goal=goal,
            strategy=choose_strategy(self, goal, space),
            seed=None if self.random_state is None else checks.seed_of(self.random_state),
            storage=MemoryStore() if storage is None else storage,
            metric=scoring.name,
            name=name,
            load_if_exists=True,
        )

    # ---- after the search ----

    def _tabulate(
        self, translation: Translation, fits: Mapping[int, list[Fit]], scoring: Scoring
    ) -> None:
        """Set `cv_results_` and `frontier_` from all candidates, evaluated now or earlier."""
        trials = [trial for trial in self.study_.trials if trial.state in ENDED]
        rows = []
        for trial in trials:
            known = fits.get(trial.number)
            if known is None:
                known = fits_in_store(trial, scoring.metric, self.n_splits_)
            rows.append(Row(translation.params(trial.params), trial.train_size, known))
        if not rows:
            raise NothingFinished(
                "no candidate was evaluated before the search ended: allow more time or cost"
            )
        error_score = np.nan if isinstance(self.error_score, str) else float(self.error_score)
        report_failures(rows, error_score)
        names = metric_names(rows)
        self.multimetric_ = isinstance(scoring.shown, dict) or names != ["score"]
        if self.multimetric_:
            check_refit(self.refit, names)
        self._metric = scoring.metric if scoring.metric in names else names[0]
        self._index = {trial.number: i for i, trial in enumerate(trials)}
        self.scorer_ = scoring.shown
        self.cv_results_ = build_cv_results(
            rows, self.n_splits_, error_score=error_score, train_scores=self.return_train_score
        )
        any_finished = any(trial.finished for trial in trials)
        efficient = self.study_.frontier(believed=False) if any_finished else []
        self.frontier_ = [self._candidate(trial) for trial in efficient]

    def _candidate(self, trial: Trial) -> Candidate:
        index = self._index[trial.number]
        score = float(self.cv_results_[f"mean_test_{self._metric}"][index])
        params = self.cv_results_["params"][index]
        return Candidate(index, params, trial.train_size, score, float(trial.cost or 0.0))

    def _choose(self, goal: Goal | None = None) -> None:
        """Set `best_*` to the best candidate under `goal`, by default that of the search."""
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
            return  # no metric was named, so there is no best
        else:
            trial, self.best_train_size_ = self._best_trial(goal)
            self.best_index_ = self._index[trial.number]
            self.best_score_ = results[f"mean_test_{self._metric}"][self.best_index_]
        self.best_params_ = results["params"][self.best_index_]

    def _best_trial(self, goal: Goal | None) -> tuple[Trial, float]:
        study = self.study_
        if not any(trial.finished for trial in study.trials):  # all failed: try to refit the first
            first = next(trial for trial in study.trials if trial.number in self._index)
            return first, first.train_size
        trial = study.best_result_for(study.goal if goal is None else goal)
        return trial, refit_size(study, trial)

    def _fit_best(self, data: TrainingData, task: Task) -> None:
        model = configure(self.estimator, self.best_params_)
        X, y, params = data.X, data.y, data.fit_params
        self.best_rows_ = None
        if self.best_train_size_ < 1.0:
            self.best_rows_ = data.subset(self.best_train_size_, self.study_.trials[0].data_seed)
            params = select_rows(params, self.best_rows_, count_rows(X))
            X, y = _safe_split(model, X, y, self.best_rows_)
        refit = task.part("refit-with-best-params", X, y, params)
        begin = time.perf_counter()
        with refit.begun_for(model):
            fit(model, X, y, params)
        self.refit_time_ = time.perf_counter() - begin
        self.best_estimator_ = model
        refit.end()
        if hasattr(model, "feature_names_in_"):
            self.feature_names_in_ = model.feature_names_in_
