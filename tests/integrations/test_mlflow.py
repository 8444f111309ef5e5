"""MLflow: the real package with its file store."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tradewind as tw
from tests.test_html import HOSTILE

mlflow = pytest.importorskip("mlflow")

SPACE = {"x": (0.0, 1.0), "kind": ["a", "b"]}


def objective(trial: tw.Run) -> dict[str, Any]:
    if trial.number == 2:
        raise ValueError("no luck")
    x = trial.params["x"]
    return {
        "folds": [x, x + 0.5],
        "cost": 2.0 + x,
        "costs": {"money": 3.0},
        "f1": 0.5,
        "note": "ok",
    }


@pytest.fixture
def uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.delenv("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", raising=False)
    return (tmp_path / "runs").as_uri()


@pytest.fixture
def study(tmp_path: Path) -> tw.Study:
    return tw.create_study(
        SPACE,
        seed=0,
        name="reviews",
        storage=tmp_path / "study.db",
        goal=tw.Tradeoff(0.1, reference=10),
    )


def runs(uri: str, experiment: str = "reviews") -> tuple[list[Any], dict[int, Any]]:
    """The runs of studies, and those of trials by number; none of them twice."""
    client = mlflow.MlflowClient(uri)
    found = client.search_runs([client.get_experiment_by_name(experiment).experiment_id])
    parents = [run for run in found if run.data.tags["tradewind.kind"] == "study"]
    trials = [run for run in found if run.data.tags["tradewind.kind"] == "trial"]
    numbers = [int(run.data.tags["tradewind.number"]) for run in trials]
    assert max(Counter(numbers).values(), default=1) == 1, "a trial was logged twice"
    return parents, dict(zip(numbers, trials, strict=True))


def test_a_search_is_a_run_with_a_nested_run_for_each_trial(study: tw.Study, uri: str) -> None:
    study.optimize(objective, n_trials=5, callbacks=[tw.integrations.MLflow(tracking_uri=uri)])
    (parent,), trials = runs(uri)
    assert parent.info.run_name == "reviews"
    assert parent.info.status == "FINISHED"
    assert set(trials) == {0, 1, 2, 3, 4}
    assert {run.data.tags["mlflow.parentRunId"] for run in trials.values()} == {parent.info.run_id}
    run, trial = trials[1], study.trials[1]
    assert run.info.run_name == "trial 1"
    assert run.info.status == "FINISHED"
    assert run.data.params == {"x": str(trial.params["x"]), "kind": trial.params["kind"]}
    assert run.data.metrics["value"] == pytest.approx(trial.value)
    assert run.data.metrics["cost"] == pytest.approx(trial.cost)
    assert run.data.metrics["costs/money"] == 3.0
    assert run.data.metrics["attributes/f1"] == 0.5
    assert run.data.tags["attributes/note"] == "ok"
    assert run.data.tags["tradewind.seed"] == str(trial.seed)
    assert run.data.tags["tradewind.state"] == "finished"
    assert run.data.tags["tradewind.train_size"] == "1"
    folds = mlflow.MlflowClient(uri).get_metric_history(run.info.run_id, "fold")
    assert [fold.value for fold in sorted(folds, key=lambda it: it.step)] == list(trial.folds)


def test_a_failed_trial_is_marked_as_failed(study: tw.Study, uri: str) -> None:
    study.optimize(objective, n_trials=3, callbacks=[tw.integrations.MLflow(tracking_uri=uri)])
    _, trials = runs(uri)
    assert trials[2].info.status == "FAILED"
    assert "ValueError: no luck" in trials[2].data.tags["mlflow.note.content"]


def test_mlflow_prints_nothing(
    study: tw.Study, uri: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = "mlflow.tracking._tracking_service.client.RestStore"
    monkeypatch.setattr(module, object)  # it prints addresses for every server
    study.optimize(objective, n_trials=1, show_progress=False)
    tw.integrations.MLflow(tracking_uri=uri).log(study)
    assert capsys.readouterr().out == ""


def test_a_trial_that_was_given_up_is_marked_as_killed(study: tw.Study, uri: str) -> None:
    study.abandon(study.ask())
    tw.integrations.MLflow(tracking_uri=uri).log(study)
    _, trials = runs(uri)
    assert trials[0].info.status == "KILLED"


def test_a_quality_with_a_name_is_logged_under_it(uri: str) -> None:
    study = tw.create_study({"x": (0.0, 1.0)}, metric="top 1/5", name="reviews")
    study.add({"x": 0.5}, 0.75)
    tw.integrations.MLflow(tracking_uri=uri).log(study)
    (parent,), trials = runs(uri)
    assert trials[0].data.metrics["top 1_5"] == 0.75
    assert parent.data.metrics["best_top 1_5"] == 0.75


def test_the_best_trial_is_marked_as_chosen_even_if_it_changes(study: tw.Study, uri: str) -> None:
    tracker = tw.integrations.MLflow(tracking_uri=uri)
    for n in (2, 4):
        study.optimize(objective, n_trials=n, callbacks=[tracker])
        (parent,), trials = runs(uri)
        marked = [n for n, run in trials.items() if run.data.tags.get("tradewind.chosen") == "true"]
        assert marked == [study.best.number]
        assert parent.data.tags["tradewind.chosen_trial"] == str(study.best.number)
        assert parent.data.tags["mlflow.note.content"] == str(study.explain())
        assert parent.data.metrics["best_value"] == pytest.approx(study.best.value)
    assert parent.data.metrics["trials"] == 6


def test_a_study_that_exists_is_logged_afterwards_and_only_once(study: tw.Study, uri: str) -> None:
    study.optimize(objective, n_trials=4)
    tw.integrations.MLflow(tracking_uri=uri).log(study)
    first = runs(uri)
    tw.integrations.MLflow(tracking_uri=uri).log(study)
    second = runs(uri)
    assert len(first[0]) == len(second[0]) == 1
    assert [run.info.run_id for run in first[1].values()] == [
        run.info.run_id for run in second[1].values()
    ]


def test_a_search_that_is_continued_goes_into_the_same_run(
    study: tw.Study, uri: str, tmp_path: Path
) -> None:
    study.optimize(objective, n_trials=2, callbacks=[tw.integrations.MLflow(tracking_uri=uri)])
    again = tw.load_study(tmp_path / "study.db")
    again.optimize(objective, n_trials=2, callbacks=[tw.integrations.MLflow(tracking_uri=uri)])
    parents, trials = runs(uri)
    assert len(parents) == 1
    assert set(trials) == {0, 1, 2, 3}


def test_another_study_of_the_same_name_gets_runs_of_its_own(uri: str) -> None:
    tracker = tw.integrations.MLflow(tracking_uri=uri, experiment="both")
    for _ in range(2):
        study = tw.create_study(SPACE, seed=0)
        study.add({"x": 0.5, "kind": "a"}, 1.0)
        tracker.log(study)
    client = mlflow.MlflowClient(uri)
    found = client.search_runs([client.get_experiment_by_name("both").experiment_id])
    assert len(found) == 4


class Killed(BaseException):
    """The driver ends here, as if by kill -9."""


def killed_after(calls: int, client: Any) -> Any:
    """A client that ends the driver after so many calls that change something."""

    class Mortal:
        left = calls

        def __getattr__(self, name: str) -> Any:
            method = getattr(client, name)
            if name.startswith(("search", "get")):
                return method

            def call(*args: Any, **options: Any) -> Any:
                if self.left == 0:
                    raise Killed
                self.left -= 1
                return method(*args, **options)

            return call

    return Mortal()


def test_after_a_kill_at_any_moment_nothing_is_missing_and_nothing_is_there_twice(
    study: tw.Study, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    study.optimize(objective, n_trials=3)
    make, calls = mlflow.MlflowClient, 0
    while True:
        tracker = tw.integrations.MLflow(tracking_uri=uri, experiment=f"killed {calls}")
        limit = calls
        monkeypatch.setattr(
            "mlflow.MlflowClient", lambda uri, limit=limit: killed_after(limit, make(uri))
        )
        try:
            tracker.log(study)
            break
        except Killed:
            pass
        finally:
            monkeypatch.setattr("mlflow.MlflowClient", make)
        tw.integrations.MLflow(tracking_uri=uri, experiment=f"killed {calls}").log(study)
        parents, trials = runs(uri, f"killed {calls}")
        assert len(parents) == 1
        assert {n: run.info.status for n, run in trials.items()} == {
            0: "FINISHED",
            1: "FINISHED",
            2: "FAILED",
        }
        assert trials[0].data.metrics["value"] == pytest.approx(study.trials[0].value)
        assert set(trials[0].data.params) == {"x", "kind"}
        calls += 1
    assert calls > 10


def test_drivers_that_log_the_same_study_at_once_agree(study: tw.Study, uri: str) -> None:
    study.optimize(objective, n_trials=4)
    trackers = [tw.integrations.MLflow(tracking_uri=uri) for _ in range(3)]
    mlflow.MlflowClient(uri).create_experiment("reviews")
    errors: list[BaseException] = []

    def log(tracker: Any) -> None:
        try:
            tracker.log(study)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=log, args=(tracker,)) for tracker in trackers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    trackers[0].log(study)
    parents, trials = runs(uri)
    assert len(parents) == 1
    assert set(trials) == {0, 1, 2, 3}
    parent = parents[0].info.run_id
    assert {run.data.tags["mlflow.parentRunId"] for run in trials.values()} == {parent}


def test_names_and_values_that_mlflow_does_not_take_are_changed(uri: str) -> None:
    space = tw.Space(
        {
            HOSTILE: tw.Categorical(["x" * 7000, "b"]),
            "a/b": tw.Bool(),
            "a_b": tw.Bool(),
            "..": tw.Bool(),
            "é": tw.Bool(),
        }
    )
    study = tw.create_study(space, seed=0, name=HOSTILE)
    params = {HOSTILE: "x" * 7000, "a/b": True, "a_b": False, "..": True, "é": False}
    study.add(params, 1.0, attributes={HOSTILE: HOSTILE, "../x": 1e300, "huge": 10**300})
    tw.integrations.MLflow(tracking_uri=uri).log(study)
    _, trials = runs(uri, HOSTILE)
    assert len(trials[0].data.params) == 5


@pytest.mark.parametrize("name", ["Bob's study", "n" * 900])
def test_any_name_of_a_study_is_that_of_an_experiment(uri: str, name: str) -> None:
    study = tw.create_study(SPACE, seed=0, name=name)
    for _ in range(2):
        tw.integrations.MLflow(tracking_uri=uri).log(study)
    found = mlflow.MlflowClient(uri).search_experiments(filter_string="name != 'Default'")
    assert [it.name for it in found] == [name[:240].replace("'", "_")]


def test_text_that_cannot_be_encoded_is_shown_without_it(uri: str) -> None:
    study = tw.create_study({"x": ["a\ud800", "b"]}, seed=0, name="odd")
    study.add({"x": "a\ud800"}, 1.0, attributes={"note": "\udfff!"})
    tw.integrations.MLflow(tracking_uri=uri).log(study)
    data = runs(uri, "odd")[1][0].data
    assert data.params == {"x": "a?"}
    assert data.tags["attributes/note"] == "?!"


def test_long_names_are_cut_and_stay_different(uri: str) -> None:
    long = "é" * 300
    space = tw.Space(dict.fromkeys((long + "a", long + "b", "c" * 300), tw.Int(1, 2)))
    study = tw.create_study(space, seed=0, name="long")
    attributes = {"n" * 300: 1.0, "n" * 301: 2.0, "t" * 300: "one", "t" * 301: "two"}
    study.add(dict.fromkeys(space, 1), 1.0, attributes=attributes)
    tw.integrations.MLflow(tracking_uri=uri).log(study)
    data = runs(uri, "long")[1][0].data
    assert len(data.params) == 3
    assert sorted(x for name, x in data.metrics.items() if "nn" in name) == [1.0, 2.0]
    assert sorted(text for name, text in data.tags.items() if "tt" in name) == ["one", "two"]


# ---- a server that does not answer ----


class Unreachable:
    """A client of a server that does not answer until `released`."""

    def __init__(self, released: threading.Event | None = None) -> None:
        self.released, self.calls = released, 0

    def __getattr__(self, name: str) -> Callable[..., None]:
        def call(*args: Any, **options: Any) -> None:
            self.calls += 1
            if self.released is not None:
                assert self.released.wait(60.0)
            raise ConnectionError("connection refused")

        return call


@pytest.fixture
def unreachable(monkeypatch: pytest.MonkeyPatch) -> Unreachable:
    client = Unreachable()
    monkeypatch.setattr("mlflow.MlflowClient", lambda uri: client)
    return client


def test_a_server_that_cannot_be_reached_is_reported_once_and_does_not_end_the_search(
    study: tw.Study, unreachable: Unreachable, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        study.optimize(lambda trial: 1.0, 6, callbacks=[tw.integrations.MLflow()])
    assert len(study.trials) == 6
    lines = [r.getMessage() for r in caplog.records if "MLflow" in r.getMessage()]
    assert len(lines) == 1
    assert (
        "MLflow does not take the results of trials (ConnectionError: connection refused)"
        in (lines[0])
    )
    assert unreachable.calls == 1  # the rest is skipped for a while


def test_a_server_that_hangs_does_not_slow_the_search(
    study: tw.Study, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    released = threading.Event()
    monkeypatch.setattr("mlflow.MlflowClient", lambda uri: Unreachable(released))
    tracker = tw.integrations.MLflow(wait=0.0)
    study.optimize(lambda trial: 1.0, 6, callbacks=[tracker])
    assert len(study.trials) == 6
    assert "MLflow has not taken all results yet" in caplog.text
    released.set()
    assert tracker._background.wait(60.0)


def test_what_a_server_missed_is_logged_when_it_is_back(
    study: tw.Study, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracker, make = tw.integrations.MLflow(tracking_uri=uri), mlflow.MlflowClient
    monkeypatch.setattr("mlflow.MlflowClient", lambda uri: Unreachable())
    study.optimize(objective, n_trials=3, callbacks=[tracker])
    monkeypatch.setattr("mlflow.MlflowClient", make)
    tracker.log(study)
    assert set(runs(uri)[1]) == {0, 1, 2}


def test_logging_a_study_says_why_it_did_not_work(
    study: tw.Study, unreachable: Unreachable
) -> None:
    with pytest.raises(ConnectionError, match="connection refused"):
        tw.integrations.MLflow().log(study)


def test_a_database_without_the_full_package_says_what_to_install(
    study: tw.Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(uri: str) -> None:
        raise mlflow.exceptions.MlflowException(f"unsupported URI {uri!r}")

    monkeypatch.setattr("mlflow.MlflowClient", refuse)
    tracker = tw.integrations.MLflow(tracking_uri="postgresql://me:secret@host/runs")
    with pytest.raises(ImportError, match=r"postgresql database .*: pip install mlflow$"):
        tracker.log(study)


def test_without_the_package_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "mlflow", None)
    with pytest.raises(ImportError, match=r"pip install mlflow-skinny"):
        tw.integrations.MLflow()
