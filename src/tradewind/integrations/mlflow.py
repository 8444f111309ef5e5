"""MLflow: a run for each study, and a nested run for each of its trials."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from tradewind.errors import missing
from tradewind.integrations.mlflow_runs import StudyRuns
from tradewind.integrations.tracker import Facts, Tracker
from tradewind.types import Trial

_LONGEST_NAME = 240  # of an experiment: MLflow takes 500 characters, older versions 256
_DATABASES = ("sqlite", "postgresql", "mysql", "mssql")


class MLflow(Tracker):
    """A callback that logs each trial to MLflow, as a nested run of a run for the study.

    A trial's run has its parameters, value, costs, folds and attributes. A trial that failed is
    marked as failed, and the best one as chosen when the search ends. Nothing is logged twice: not
    after a resume, and not with several drivers.

    `experiment` is the name of the experiment, by default that of the study. `tracking_uri` is the
    server or the store, by default the one that MLflow uses. `wait` is how many seconds the end of
    a search waits for results that are still on their way.

    >>> tracker = tw.integrations.MLflow(tracking_uri="http://localhost:5000")
    >>> study.optimize(objective, n_trials=2, callbacks=[tracker])  # doctest: +SKIP
    >>> tracker.log(study)  # doctest: +SKIP
    """

    def __init__(
        self,
        *,
        experiment: str | None = None,
        tracking_uri: str | None = None,
        wait: float = 10.0,
    ) -> None:
        super().__init__(name="MLflow", wait=wait)
        os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")  # two lines a trial
        self._experiment = experiment
        self._uri = tracking_uri
        try:
            self._mlflow: Any = import_module("mlflow")
        except ImportError as error:
            raise missing("MLflow", "mlflow-skinny") from error
        self._studies: dict[str, StudyRuns] = {}  # by the key of the study

    def _log_trial(self, facts: Facts, trial: Trial) -> None:
        self._runs(facts).log_trial(trial)

    def _log_all(self, facts: Facts) -> None:
        self._runs(facts).log_all(facts)

    def _runs(self, facts: Facts) -> StudyRuns:
        if facts.key not in self._studies:
            client = self._client()
            name = self._experiment or facts.name[:_LONGEST_NAME].replace("'", "_")
            experiment = self._experiment_id(client, name)
            self._studies[facts.key] = StudyRuns(client, experiment, facts)
        return self._studies[facts.key]

    def _client(self) -> Any:
        try:
            return self._mlflow.MlflowClient(self._uri)
        except self._mlflow.exceptions.MlflowException as error:
            if "unsupported URI" not in str(error):
                raise
            scheme = str(self._uri or self._mlflow.get_tracking_uri()).partition(":")[0]
            if scheme.partition("+")[0] not in _DATABASES:
                raise
            # without the URI, which may hold a password
            raise missing(f"a {scheme} database of MLflow", "mlflow") from None

    def _experiment_id(self, client: Any, name: str) -> str:
        """The experiment of this name, which is made if there is none."""
        found = client.get_experiment_by_name(name)
        if found is None:
            try:
                return str(client.create_experiment(name))
            except self._mlflow.exceptions.MlflowException:  # another driver was faster
                found = client.get_experiment_by_name(name)
                if found is None:
                    raise
        return str(found.experiment_id)
