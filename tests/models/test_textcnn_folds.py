"""TextCNN with all folds at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score

import tradewind as tw
from tests.models import needs
from tests.models.reviews import reviews, small
from tradewind.models import TextCNN
from tradewind.models.textcnn import estimator


@pytest.fixture(params=["as on a CPU", "as on a GPU"])
def stacking(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folds are trained one by one, or as one stack."""
    if request.param == "as on a GPU":
        monkeypatch.setattr(TextCNN, "_stacks", lambda self, folds, device: [folds])


@pytest.mark.usefixtures("stacking")
@pytest.mark.parametrize("unknown", ["random", pytest.param("word2vec", marks=needs.gensim)])
@pytest.mark.parametrize("validation", ["train", "test"])
def test_folds_at_once_are_folds_one_by_one(unknown: Any, validation: Any) -> None:
    texts, labels = reviews(61)
    model = small(unknown=unknown, d0=0.1, d1=0.3, hidden=4, d2=0.2, max_epochs=6, patience=2)
    folds = list(KFold(4, shuffle=True, random_state=0).split(texts))
    for at_once, (rows, test) in zip(
        model.fit_folds(texts, labels, folds, validation=validation), folds, strict=True
    ):
        tested = [texts[row] for row in test]
        stop_on = None if validation == "train" else (tested, labels[test])
        single = clone(model).fit([texts[row] for row in rows], labels[rows], validation=stop_on)
        assert set(single.vocabulary_) == set(at_once.vocabulary_)
        assert single.best_epoch_ == at_once.best_epoch_
        np.testing.assert_allclose(
            single.predict_proba(tested), at_once.predict_proba(tested), atol=1e-5
        )


@pytest.mark.usefixtures("stacking")
def test_folds_with_other_numbers_of_batches_or_classes_are_stacks_of_their_own() -> None:
    texts, labels = reviews(60, classes=3)
    folds = [
        (np.arange(60), np.arange(3)),
        (np.arange(30), np.arange(30, 60)),
        (np.flatnonzero(labels != "none"), np.flatnonzero(labels == "pos")),
    ]
    models = small(max_epochs=2).fit_folds(texts, labels, folds)
    assert [len(model.classes_) for model in models] == [3, 3, 2]
    for model, (rows, _) in zip(models, folds, strict=True):
        single = small(max_epochs=2).fit([texts[row] for row in rows], labels[rows])
        np.testing.assert_allclose(
            model.predict_proba(texts), single.predict_proba(texts), atol=1e-5
        )


@pytest.mark.parametrize(("at_once", "share"), [(True, 6.0 / 4), (False, 6.0)])
def test_the_time_of_a_stack_is_shared_out(
    monkeypatch: pytest.MonkeyPatch, at_once: bool, share: float
) -> None:
    """Every stack takes six seconds here; one by one, four folds are four stacks."""
    texts, labels = reviews(60)
    real = estimator.train

    def timed(*args: Any) -> Any:
        trained, seconds = real(*args)
        assert seconds > 0
        return trained, 6.0

    monkeypatch.setattr(estimator, "train", timed)
    if at_once:
        monkeypatch.setattr(TextCNN, "_stacks", lambda self, folds, device: [folds])
    models = small(max_epochs=1).fit_folds(texts, labels, KFold(4).split(texts))
    assert [model.fit_seconds_ for model in models] == pytest.approx([share] * 4)
    assert small(max_epochs=1).fit(texts, labels).fit_seconds_ == 6.0


def test_stacks_that_cannot_be_one_share_out_their_own_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts, labels = reviews(60)
    real, took = estimator.train, iter([8.0, 3.0])
    monkeypatch.setattr(estimator, "train", lambda *args: (real(*args)[0], next(took)))
    monkeypatch.setattr(TextCNN, "_stacks", lambda self, folds, device: [folds])
    rows = np.arange(60)
    folds = [(rows[:40], rows[40:]), (rows[:20], rows[40:]), (rows[20:], rows[:20])]
    models = small(max_epochs=1).fit_folds(texts, labels, folds)
    assert [model.fit_seconds_ for model in models] == [4.0, 3.0, 4.0]


def test_the_search_fits_folds_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    texts, labels = reviews(60)
    calls = []
    real = TextCNN.fit_folds

    def spy(self: TextCNN, X: Any, y: Any, folds: Any) -> Any:
        calls.append(len(folds))
        return real(self, X, y, folds)

    monkeypatch.setattr(TextCNN, "fit_folds", spy)
    search = tw.TradeoffSearchCV(
        small(max_epochs=2), TextCNN.space(), n_iter=3, cv=StratifiedKFold(4), random_state=0
    )
    search.fit(texts, labels)
    assert calls == [4, 4, 4]
    best = search.best_estimator_
    assert len(best.filter_sizes) == search.best_params_["s"]
    one_by_one = cross_val_score(
        clone(search.estimator).set_params(**search.best_params_), texts, labels, cv=4
    )
    at_once = [search.cv_results_[f"split{i}_test_score"][search.best_index_] for i in range(4)]
    assert at_once == pytest.approx(one_by_one.tolist())


def test_a_search_that_races_goes_fold_by_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*args: Any) -> None:
        raise AssertionError("a race looks at one fold after the other")

    monkeypatch.setattr(TextCNN, "fit_folds", never)
    texts, labels = reviews(60)
    search = tw.TradeoffSearchCV(
        small(max_epochs=1), TextCNN.space(s=1), n_iter=2, cv=3, racing=0.05, random_state=0
    )
    assert search.fit(texts, labels).best_score_ > 0


def test_where_one_fold_fails_the_others_count() -> None:
    texts, labels = reviews(30)
    folds = [(np.arange(20), np.arange(20, 30)), (np.arange(0, 20, 2), np.arange(20, 30))]
    space = tw.Space({"d1": tw.Categorical([0.1])})
    search = tw.TradeoffSearchCV(
        small(max_epochs=2), space, n_iter=1, cv=folds, error_score=0.0, random_state=0
    )
    with pytest.warns(FitFailedWarning, match="two classes"):
        search.fit(texts, labels)
    assert search.cv_results_["split0_test_score"][0] > 0
    assert search.cv_results_["split1_test_score"][0] == 0.0


def test_folds_that_fail_at_once_are_a_failed_candidate() -> None:
    texts, labels = reviews(30)
    space = tw.Space({"d1": tw.Categorical([0.5, 7.0])})
    search = tw.TradeoffSearchCV(small(max_epochs=1), space, n_iter=2, cv=2, random_state=0)
    with (
        pytest.warns(FitFailedWarning, match=r"d1 must be .*in \[0, 1\)"),
        pytest.warns(UserWarning, match="non-finite"),
    ):
        search.fit(texts, labels)
    assert search.best_params_ == {"d1": 0.5}
