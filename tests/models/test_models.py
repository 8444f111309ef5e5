"""What all models have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import tradewind as tw
from tests.test_architecture import BLOCK, run
from tradewind import models

NAMES = ("SiameseBiLSTM", "TextCNN", "TreeRanker", "UnigramSVM")


@pytest.mark.parametrize("name", NAMES)
def test_a_model_can_be_set_to_any_configuration_of_its_space(name: str) -> None:
    kind: Any = getattr(models, name)
    space = kind.space(train_sizes=[0.5, 1.0])
    assert space.size_name == "train_size"
    for seed in range(20):
        study = tw.create_study(space, strategy=tw.recipes.random_search(), seed=seed)
        settings = study.ask().settings
        model = kind().set_params(**settings)
        for key, value in model.get_params().items():
            assert value == settings.get(key, value)
        assert clone(model).get_params().keys() == kind().get_params().keys()
    with pytest.raises(ValueError, match="Invalid parameter"):
        kind().set_params(nonsense=1)


def test_an_objective_gives_the_settings_of_a_trial_as_they_are() -> None:
    texts = np.array(["fine film", "dull film", "fine acting", "dull story"] * 10)
    labels = np.array([1, 0, 1, 0] * 10)

    def objective(trial: Any) -> float:
        rows = trial.subset(labels)
        model = models.UnigramSVM(random_state=0).set_params(**trial.settings)
        return model.fit(texts[rows], labels[rows]).score(texts, labels)

    study = tw.create_study(models.UnigramSVM.space(), seed=0)
    study.optimize(objective, n_trials=4)
    assert study.best.value == 1.0


@pytest.mark.parametrize("name", models.__all__)
def test_every_name_is_there_and_has_a_docstring(name: str) -> None:
    assert name in dir(models)
    assert getattr(models, name).__doc__


def test_there_is_no_other_name() -> None:
    with pytest.raises(AttributeError, match="no attribute 'BERT'"):
        models.BERT  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize(("name", "package"), [("TextCNN", "torch"), ("SiameseBiLSTM", "torch")])
def test_a_package_that_is_missing_is_named(name: str, package: str) -> None:
    code = f"""
try:
    from tradewind.models import {name}
except ImportError as error:
    print(error)
"""
    out = run(BLOCK.format(blocked=(package,)) + code)
    assert f"{name} needs a package: pip install {package}" in out


def test_texts_vectors_and_data_need_no_extra() -> None:
    names = ("Vocabulary", "WordVectors", "load_mr", "precision_at_1", "read_vectors", "tokenize")
    code = f"import tradewind.models as m; print([getattr(m, n).__name__ for n in {names!r}])"
    assert "load_mr" in run(
        BLOCK.format(blocked=("torch", "gensim", "lightgbm", "snowballstemmer")) + code
    )


@pytest.mark.parametrize("name", ["TextCNN", "SiameseBiLSTM"])
def test_progress_is_shown_when_it_is_wanted(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    texts = ["fine film", "dull film"] * 5
    if name == "TextCNN":
        settings = {"dimensions": 3, "filters": 2, "max_epochs": 2}
        targets: Any = [1, 0] * 5
    else:
        settings = {"dimensions": 3, "hidden": 2, "epochs": 2}
        targets = texts
    for verbose in (False, True):
        getattr(models, name)(**settings, verbose=verbose, random_state=0).fit(texts, targets)
        assert ("2/2" in capsys.readouterr().err) == verbose


@pytest.mark.parametrize("name", ["TextCNN", "SiameseBiLSTM"])
def test_vectors_of_another_kind_are_told_how_to_become_ours(name: str) -> None:
    class KeyedVectors:
        index_to_key = ("a",)

    for given, hint in (("glove.txt", r"read_vectors\(path\)"), (KeyedVectors(), "index_to_key")):
        with pytest.raises(ValueError, match=hint):
            getattr(models, name)(given).fit(["a", "b"] * 5, ["c", "d"] * 5)


def test_numbers_beside_names_are_no_labels() -> None:
    for kind in (models.TextCNN, models.UnigramSVM):
        with pytest.raises(ValueError, match="mixed"):
            kind().fit(["a film", "b film"], [1, "a"])
