"""What candidates are scored with, and which of the scores the search is after."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sklearn.metrics import check_scoring

from tradewind.errors import warn


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
        """Whether it, or one of several, takes sample weights, as far as that can be told."""
        several = self.shown if isinstance(self.shown, dict) else {"": self.shown}
        takes = {name: _takes_weights(scorer) for name, scorer in several.items()}
        for name, does in takes.items():
            if does is False:
                named = f"{name}={several[name]}" if name else several[name]
                warn(
                    f"The scoring {named} does not support sample_weight, which may lead to "
                    "statistically incorrect results when fitting with sample_weight."
                )
        return any(takes.values())


def _takes_weights(scorer: Any) -> bool | None:
    """None where any keyword is taken: that says nothing."""
    accepts = getattr(scorer, "_accept_sample_weight", None)  # since scikit-learn 1.7
    if accepts is not None:
        return bool(accepts())
    parameters = inspect.signature(scorer).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return True if "sample_weight" in parameters else None
    return "sample_weight" in parameters


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
