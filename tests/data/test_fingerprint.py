"""Fingerprints of data: equal for equal data, different for others (data/fingerprint.py)."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse

import tradewind as tw
from tests.runners.trials import trial
from tests.studies import create
from tradewind.data.fingerprint import fingerprint
from tradewind.runners.run import Run
from tradewind.types import Rival

X = np.random.default_rng(0).integers(-9, 9, (300, 6)).astype(float)
Y = np.arange(300) % 3
NAMES = [f"class {c}" for c in Y]


@pytest.mark.parametrize(
    "same",
    [
        X.copy(),
        np.asfortranarray(X),
        X[::-1][::-1],
        X.astype(np.float32),
        X.astype(">f8"),
        X.astype(int),
        np.where(X == 0.0, -0.0, X),
        X.tolist(),
        list(X),
        pd.DataFrame(X, index=range(300, 0, -1)),
        torch.tensor(X, requires_grad=True),
    ],
)
def test_a_copy_has_the_same_fingerprint(same: Any) -> None:
    assert fingerprint(X=same) == fingerprint(X=X)


def test_a_sparse_matrix_has_the_same_fingerprint_in_every_format() -> None:
    matrix = sparse.csr_matrix(X)
    unsorted = sparse.csr_matrix((matrix.data, matrix.indices, matrix.indptr), copy=True)
    for begin, end in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        unsorted.data[begin:end] = matrix.data[begin:end][::-1]
        unsorted.indices[begin:end] = matrix.indices[begin:end][::-1]
    unsorted.has_sorted_indices = False
    for same in (unsorted, matrix.tocsc(), matrix.tocoo(), sparse.csr_array(X)):
        assert fingerprint(X=same) == fingerprint(X=matrix)


@pytest.mark.parametrize("same", [np.array(NAMES), pd.Series(NAMES), pd.Categorical(NAMES)])
def test_labels_have_the_same_fingerprint_in_every_container(same: Any) -> None:
    assert fingerprint(y=same) == fingerprint(y=NAMES)


@pytest.mark.parametrize(
    "other",
    [
        X[:-1],
        X[:, :-1],
        X.reshape(300, 2, 3),
        X + 1e-5,
        np.where(np.arange(6) == 3, 0.0, X),
        X[::-1],
        np.where(X == 0.0, np.nan, X),
        X.astype(str),
        sparse.csr_matrix(X + 1.0),
        [list(map(str, row)) for row in X],
        [[1.0] * (i % 4) for i in range(300)],
        [{"a": 1}] * 300,
        300,
    ],
)
def test_other_data_have_another_fingerprint(other: Any) -> None:
    assert fingerprint(X=other) != fingerprint(X=X)
    assert fingerprint(X=other) == fingerprint(X=other)
    assert fingerprint(X=X, y=Y) != fingerprint(X=X, y=Y[::-1])


def test_a_fingerprint_shows_the_shape_and_never_fails() -> None:
    class Odd:
        shape = (4, 2)

        def __getitem__(self, _: Any) -> Any:
            raise RuntimeError("not today")

    assert fingerprint(X=X, y=NAMES).startswith("X: 300 × 6 numbers, y: 300 values (")
    assert fingerprint(X=Odd(), y=None).startswith("X: 4 × 2 rows (")
    assert fingerprint(X=object()).startswith("X: ")
    texts = [f"{'long ' * 100} {i}" for i in range(50)]
    assert fingerprint(X=texts) != fingerprint(X=[*texts[:-1], texts[-1] + "!"])


def test_only_a_sample_of_many_rows_is_read() -> None:
    read = []

    class Rows(list[int]):
        def __getitem__(self, i: Any) -> Any:
            read.append(i)
            return super().__getitem__(i)

    fingerprint(X=Rows(range(100_000)))
    assert 500 < len(read) <= 1001
    assert (min(read), max(read)) == (0, 99_999)


# ---- in a study ----


def test_a_trial_records_what_its_objective_was_given() -> None:
    run = Run(trial())
    run.subset(Y)
    run.subset(Y[:100])
    assert run.fingerprint == fingerprint(y=Y)
    folds = run.folds(X, Y, cv=3, groups=Y)
    assert run.fingerprint == folds.fingerprint == fingerprint(X=X, y=Y, groups=Y)


@pytest.mark.parametrize("runner", [None, tw.runners.ProcessRunner(1)])
def test_a_warning_names_both_data_sets_once(
    runner: Any, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    def objective(rows: int) -> Any:
        return lambda run: float(len(run.subset(Y[:rows])))

    caplog.set_level(logging.WARNING, "tradewind")
    study = create(storage=tmp_path / "runs.db")
    study.optimize(objective(200), 2, runner=runner)
    again = tw.load_study(tmp_path / "runs.db")
    assert not caplog.records
    again.optimize(objective(201), 2, runner=runner)
    (record,) = caplog.records
    both = [fingerprint(y=Y[:200]), fingerprint(y=Y[:201])]
    assert all(each in record.message for each in ["the data have changed: trial 2", *both])
    again.optimize(objective(200), 1, runner=runner)
    assert len(caplog.records) == 1
    again.export(tmp_path / "runs.jsonl")
    copy = tw.import_study(tmp_path / "runs.jsonl")
    expected = [both[0], both[0], both[1], both[1], both[0]]
    assert [t.usage and t.usage.data for t in copy.trials] == expected
    assert tw.replay(copy).identical


def test_trials_without_data_warn_of_nothing(caplog: pytest.LogCaptureFixture) -> None:
    study = create()
    study.optimize(lambda run: 1.0, 2)
    study.optimize(lambda run: float(len(run.subset(Y))), 2)
    study.optimize(lambda run: 1.0, 2)
    assert not caplog.records


def test_only_trials_on_the_same_data_are_raced() -> None:
    def objective(X: Any, lead: float) -> Any:
        def report(run: Run) -> None:
            for fold in run.folds(X, Y, cv=5):
                fold.report(lead + 0.01 * ((fold.number * 7 + run.number) % 5))

        return report

    study = create(direction="maximize")
    study.optimize(objective(X, 0.9), 1)
    study.optimize(objective(X, 0.1), 1)
    study.optimize(objective(X + 1.0, 0.1), 1)  # as bad, but on other data
    study.optimize(objective(X + 1.0, 0.0), 1)
    assert [t.raced for t in study.trials] == [False, True, False, True]
    own = Rival((0.9, 0.93, 0.91, 0.92, 0.94), data=fingerprint(X=X, y=Y))
    for data, raced in ((X, True), (X + 1.0, False)):
        run = Run(trial(rival=own))
        for fold in run.folds(data, Y, cv=5):
            fold.report(0.1 + 0.01 * fold.number)
        assert run.raced == raced
