"""TensorBoard: what its own reader finds in the folder."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import tradewind as tw
from tests.test_html import HOSTILE

pytest.importorskip("tensorboard")

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

VALUES = [0.5, 0.25, None, 0.75, 0.625]
SPACE = {"x": (0.0, 1.0), "kind": ["a", "b"], "fast": [True, False], "n": (1, 9)}


def objective(trial: tw.Run) -> dict[str, Any]:
    value = VALUES[trial.number]
    if value is None:
        raise ValueError("no luck")
    return {"value": value, "cost": 2.0 + trial.number}


@pytest.fixture
def study(tmp_path: Path) -> tw.Study:
    return tw.create_study(SPACE, seed=0, name="reviews", storage=tmp_path / "study.db")


def folder(logs: Path) -> Path:
    (found,) = [path for path in logs.iterdir() if path.is_dir()]
    return found


def curve(logs: Path, name: str) -> dict[int, float]:
    """A curve by trial number; no number may be there twice."""
    events = EventAccumulator(str(folder(logs))).Reload().Scalars(name)
    assert len({event.step for event in events}) == len(events), "a trial was written twice"
    return {event.step: event.value for event in events}


@pytest.mark.parametrize("metric", [None, "F1"])
def test_each_trial_is_a_point_of_the_curves(metric: str | None, tmp_path: Path) -> None:
    study, logs = tw.create_study(SPACE, seed=0, metric=metric), tmp_path / "logs"
    study.optimize(objective, n_trials=5, callbacks=[tw.integrations.TensorBoard(logs)])
    value = metric or "value"
    assert curve(logs, value) == {0: 0.5, 1: 0.25, 3: 0.75, 4: 0.625}
    assert curve(logs, f"best {value}") == {0: 0.5, 1: 0.5, 2: 0.5, 3: 0.75, 4: 0.75}
    assert curve(logs, "cost") == {0: 2.0, 1: 3.0, 3: 5.0, 4: 6.0}
    assert curve(logs, "failed") == {0: 0.0, 1: 0.0, 2: 1.0, 3: 0.0, 4: 0.0}


def test_the_best_loss_is_the_smallest(tmp_path: Path) -> None:
    study = tw.create_study(SPACE, seed=0, direction="minimize")
    tracker = tw.integrations.TensorBoard(tmp_path / "logs")
    study.optimize(objective, n_trials=5, callbacks=[tracker])
    assert curve(tmp_path / "logs", "best value")[4] == 0.25


def test_each_trial_has_its_parameters(study: tw.Study, tmp_path: Path) -> None:
    study.optimize(objective, n_trials=3)
    tw.integrations.TensorBoard(tmp_path / "logs").log(study)
    for number, status in ((0, 1), (2, 2)):  # success and failure
        own = folder(tmp_path / "logs") / "trials" / f"{number:04}"
        found = EventAccumulator(str(own)).Reload().PluginTagToContent("hparams")
        start = HParamsPluginData.FromString(found["_hparams_/session_start_info"])
        params = study.trials[number].params
        given = start.session_start_info.hparams
        assert given["x"].number_value == params["x"]
        assert given["n"].number_value == params["n"]
        assert given["kind"].string_value == params["kind"]
        assert given["fast"].bool_value == params["fast"]
        end = HParamsPluginData.FromString(found["_hparams_/session_end_info"])
        assert end.session_end_info.status == status


def test_a_study_is_written_once_however_often_it_is_logged(
    study: tw.Study, tmp_path: Path
) -> None:
    logs = tmp_path / "logs"
    study.optimize(objective, n_trials=2, callbacks=[tw.integrations.TensorBoard(logs)])
    tw.integrations.TensorBoard(logs).log(study)
    again = tw.load_study(tmp_path / "study.db")
    again.optimize(objective, n_trials=2, callbacks=[tw.integrations.TensorBoard(logs)])
    assert curve(logs, "value") == {0: 0.5, 1: 0.25, 3: 0.75}
    assert curve(logs, "best value") == {0: 0.5, 1: 0.5, 2: 0.5, 3: 0.75}


def test_drivers_that_write_at_once_write_each_trial_once(study: tw.Study, tmp_path: Path) -> None:
    study.optimize(objective, n_trials=5)
    logs = tmp_path / "logs"
    trackers = [tw.integrations.TensorBoard(logs) for _ in range(4)]
    for i, tracker in enumerate(trackers):
        tracker._started += i  # as in processes of their own
    threads = [threading.Thread(target=t.log, args=(study,)) for t in trackers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert curve(logs, "value") == {0: 0.5, 1: 0.25, 3: 0.75, 4: 0.625}


def test_a_trial_that_a_killed_driver_has_claimed_is_written_later(
    study: tw.Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = tmp_path / "logs"
    study.optimize(objective, n_trials=2, callbacks=[tw.integrations.TensorBoard(logs)])
    study.optimize(objective, n_trials=2)
    (folder(logs) / "trials" / "0003").mkdir()
    tw.integrations.TensorBoard(logs).log(study)
    assert 3 not in curve(logs, "value")  # somebody may be writing it
    monkeypatch.setattr("tradewind.integrations.tensorboard._STALE", -1.0)
    tw.integrations.TensorBoard(logs).log(study)
    assert curve(logs, "value")[3] == 0.75


def test_hostile_names_stay_within_the_folder(tmp_path: Path) -> None:
    study = tw.create_study({HOSTILE: (0.0, 1.0)}, seed=0, name="../../" + HOSTILE)
    study.add({HOSTILE: 0.5}, 1.0, attributes={"../x": 1.0})
    logs = tmp_path / "a" / "logs"
    tw.integrations.TensorBoard(logs).log(study)
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["logs"]
    assert curve(logs, "attributes/../x") == {0: 1.0}


def test_text_that_cannot_be_encoded_is_shown_without_it(tmp_path: Path) -> None:
    study = tw.create_study({"x": ["a\ud800", "b"]}, seed=0)
    study.add({"x": "a\ud800"}, 1.0, attributes={"\udfff!": 2.0})
    tw.integrations.TensorBoard(tmp_path).log(study)
    assert curve(tmp_path, "attributes/?!") == {0: 2.0}


def test_a_folder_that_cannot_be_written_does_not_end_the_search(
    study: tw.Study, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    tracker = tw.integrations.TensorBoard(tmp_path / "file" / "logs")
    study.optimize(lambda trial: 1.0, n_trials=3, callbacks=[tracker])
    assert len(study.trials) == 3
    assert caplog.text.count("TensorBoard does not take the results of trials") == 1
    with pytest.raises(OSError, match="file"):
        tracker.log(study)


def test_without_the_package_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard.summary.writer.record_writer", None)
    with pytest.raises(ImportError, match=r"pip install tensorboard"):
        tw.integrations.TensorBoard(tmp_path)
