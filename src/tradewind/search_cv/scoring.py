"""What candidates are scored with, and which of the scores the search is after."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sklearn.metrics import check_scoring


@dataclass(frozen=True)
class Scoring:
    """`scorer` gives one score, or several by name; `shown` is what a search shows as `scorer_`.
    `metric` is optimized: of a function that gives several it is the first, if that is not one."""

    scorer: Callable[..., Any]
    shown: Any
    metric: str

    @classmethod
    def of(cls, estimator: Any, scoring: Any, refit: Any, *, raises: bool) -> Scoring:
        named = refit if isinstance(refit, str) else None
        if scoring is None or isinstance(scoring, str):
            scorer = check_scoring(estimator, scoring)
            return cls(scorer, scorer, "score")
        if callable(scoring):
            return cls(scoring, scoring, named or "score")
        scorer = check_scoring(estimator, scoring, raise_exc=raises)
        pairs = scoring.items() if isinstance(scoring, Mapping) else ((s, s) for s in scoring)
        shown = {name: check_scoring(estimator, each) for name, each in pairs}
        check_refit(refit, shown)
        return cls(scorer, shown, named or next(iter(shown)))

    def weighs(self) -> bool:
        """Whether it takes sample weights, as far as that can be told."""
        accepts = getattr(self.scorer, "_accept_sample_weight", None)  # since scikit-learn 1.7
        parameters = inspect.signature(self.scorer).parameters.values()
        takes = "sample_weight" in (p.name for p in parameters) if accepts is None else accepts()
        if not takes and (accepts or all(p.kind is not p.VAR_KEYWORD for p in parameters)):
            warnings.warn(
                f"The scoring {self.scorer} does not support sample_weight, which may lead to "
                "statistically incorrect results when fitting with sample_weight.",
                UserWarning,
                stacklevel=4,
            )
        return bool(takes)


def check_refit(refit: Any, names: Iterable[str]) -> None:
    """With several metrics, `refit` has to say which one counts."""
    if refit is False or callable(refit) or (isinstance(refit, str) and refit in set(names)):
        return
    raise ValueError(
        "For multi-metric scoring, the parameter refit must be set to a scorer key or a callable "
        "to refit an estimator with the best parameter setting on the whole data and make the "
        "best_* attributes available for that metric. If this is not needed, refit should be set "
        f"to False explicitly. {refit!r} was passed."
    )
