"""TensorBoard: curves over the trials of a study, and a table of its hyper-parameters.

Records are written by TensorBoard's own writer. `folder/study` holds the curves, and one folder per
trial holds its parameters. Making that folder is how a driver claims a trial, so several drivers
may write to the same place.
"""

from __future__ import annotations

import math
import os
import re
import socket
import time
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from tradewind.errors import missing
from tradewind.integrations.tracker import Facts, Tracker, encodable, numbers_of, value_of
from tradewind.types import State, Trial

_PLUGIN = "hparams"
_STALE = 60.0  # seconds after which a claim without a record is that of a killed driver


class TensorBoard(Tracker):
    """A callback that writes each trial for TensorBoard: its value, its cost and the best value so
    far as curves over the trials, and its parameters for the HPARAMS page.

    `folder` is what `tensorboard --logdir` reads. Nothing is written twice: not after a resume, and
    not with several drivers. `wait` is how many seconds the end of a search waits for what is not
    written yet.

    >>> tracker = tw.integrations.TensorBoard("runs")
    >>> study.optimize(objective, n_trials=2, callbacks=[tracker])
    >>> tracker.log(study)  # what was run before, too
    """

    def __init__(self, folder: str | os.PathLike[str], *, wait: float = 10.0) -> None:
        super().__init__(name="TensorBoard", wait=wait)
        self._folder = Path(folder)
        self._started = time.time()
        try:
            self._event: Any = import_module("tensorboard.compat.proto.event_pb2").Event
            self._proto: Any = import_module("tensorboard.compat.proto.summary_pb2")
            self._writer: Any = import_module("tensorboard.summary.writer.record_writer")
            self._hparams: Any = import_module("tensorboard.plugins.hparams.plugin_data_pb2")
            self._api: Any = import_module("tensorboard.plugins.hparams.api_pb2")
        except ImportError as error:
            raise missing("TensorBoard", "tensorboard") from error
        self._best: dict[str, float] = {}  # by the key of the study

    def _log_trial(self, facts: Facts, trial: Trial) -> None:
        earlier = () if facts.key in self._best else facts.trials
        best = self._best.get(facts.key, math.nan)
        for one in (*earlier, trial):
            best = _better(facts, best, one)
        self._best[facts.key] = best
        self._write(facts, trial, best)

    def _log_all(self, facts: Facts) -> None:
        best = math.nan
        for trial in sorted(facts.trials, key=lambda t: t.ended or 0.0):
            best = _better(facts, best, trial)
            self._write(facts, trial, best)
        self._best[facts.key] = best

    def _write(self, facts: Facts, trial: Trial, best: float) -> None:
        """Write a trial, unless somebody has written it."""
        curves = self._folder / f"{_safe(facts.name)}-{facts.key[:6]}"
        own = curves / "trials" / f"{trial.number:04}"
        if not _claim(own):
            return
        at, numbers = trial.ended or time.time(), numbers_of(trial)
        records = self._parameters(trial, at)
        records += [self._scalar(name, x, at, trial.number) for name, x in numbers.items()]
        curve = [self._scalar(name, x, at, trial.number) for name, x in numbers.items()]
        if math.isfinite(best):
            curve.append(self._scalar(f"best {value_of(trial)}", best, at, trial.number))
        failed = float(trial.state is State.FAILED)
        curve.append(self._scalar("failed", failed, at, trial.number))
        self._append(curves, curve)
        self._append(own, records)

    def _append(self, folder: Path, events: Iterable[Any]) -> None:
        """Write records to the file of this process in a folder."""
        name = f"events.out.tfevents.{int(self._started):010}.{socket.gethostname()}.{os.getpid()}"
        file = folder / name
        with file.open("ab") as stream:
            writer = self._writer.RecordWriter(stream)
            if stream.tell() == 0:
                first = self._event(wall_time=time.time(), file_version="brain.Event:2")
                writer.write(first.SerializeToString())
            for event in events:
                writer.write(event.SerializeToString())

    # ---- records ----

    def _scalar(self, name: str, value: float, at: float, step: int) -> Any:
        summary = self._proto.Summary()
        summary.value.add(tag=encodable(name), simple_value=value)
        return self._event(wall_time=at, step=step, summary=summary)

    def _parameters(self, trial: Trial, at: float) -> list[Any]:
        """A trial as a session of the HPARAMS page."""
        data, api = self._hparams.HParamsPluginData, self._api
        start = self._hparams.SessionStartInfo(
            group_name=f"trial {trial.number}", start_time_secs=trial.started or at
        )
        for name, value in {**trial.params, "train_size": trial.train_size}.items():
            given = start.hparams[encodable(name)]
            match value:
                case bool():
                    given.bool_value = value
                case int() | float():
                    given.number_value = float(value)
                case _:
                    given.string_value = encodable(str(value))
        done = trial.state is State.FINISHED
        status = api.STATUS_SUCCESS if done else api.STATUS_FAILURE
        end = self._hparams.SessionEndInfo(status=status, end_time_secs=at)
        return [
            self._session("session_start_info", data(session_start_info=start, version=0), at),
            self._session("session_end_info", data(session_end_info=end, version=0), at),
        ]

    def _session(self, name: str, content: Any, at: float) -> Any:
        metadata = self._proto.SummaryMetadata(
            plugin_data=self._proto.SummaryMetadata.PluginData(
                plugin_name=_PLUGIN, content=content.SerializeToString()
            )
        )
        summary = self._proto.Summary()
        summary.value.add(tag=f"_hparams_/{name}", metadata=metadata)
        return self._event(wall_time=at, summary=summary)


def _claim(folder: Path) -> bool:
    """Whether this driver is the one to write the trial of this folder."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        stale = time.time() - folder.stat().st_mtime > _STALE
        if any(folder.iterdir()) or not stale:
            return False
        os.utime(folder)  # a new claim
    return True


def _better(facts: Facts, best: float, trial: Trial) -> float:
    """The best value so far."""
    if trial.value is None:
        return best
    if math.isnan(best):
        return trial.value
    return max(best, trial.value) if facts.direction == "maximize" else min(best, trial.value)


def _safe(name: str) -> str:
    """The name of a study as the name of a folder."""
    return re.sub(r"[^\w.-]+", "_", name).strip(".")[:80] or "study"
