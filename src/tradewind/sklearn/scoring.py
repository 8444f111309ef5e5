"""Which scores candidates get, and which one the search optimizes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sklearn.metrics import check_scoring

from tradewind.errors import warn


@dataclass(frozen=True)
class Scoring:
    """`scorer` returns one score, or several by name. `shown` is the attribute `scorer_`.

    `metric` is the name of the score to optimize. If `scorer` returns several scores but none of
    this name, the first one is optimized."""

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

    def takes_sample_weight(self) -> bool:
        """Whether at least one scorer takes sample weights. Warns about each that does not."""
        several = self.shown if isinstance(self.shown, dict) else {"": self.shown}
        takes = {name: _takes_sample_weight(scorer) for name, scorer in several.items()}
        for name, does in takes.items():
            if does is False:
                named = f"{name}={several[name]}" if name else several[name]
                warn(
                    f"The scoring {named} does not support sample_weight, which may lead to "
                    "statistically incorrect results when fitting with sample_weight."
                )
        return any(takes.values())


def _takes_sample_weight(scorer: Any) -> bool | None:
    """None if the scorer takes any keyword, because that says nothing about weights."""
    accepts = getattr(scorer, "_accept_sample_weight", None)  # since scikit-learn 1.7
    if accepts is not None:
        return bool(accepts())
    parameters = inspect.signature(scorer).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return True if "sample_weight" in parameters else None
    return "sample_weight" in parameters


def check_refit(refit: Any, names: Iterable[str]) -> None:
    """With several metrics, `refit` must say which one counts."""
    if refit is False or callable(refit) or (isinstance(refit, str) and refit in set(names)):
        return
    raise ValueError(
        "For multi-metric scoring, the parameter refit must be set to a scorer key or a callable "
        "to refit an estimator with the best parameter setting on the whole data and make the "
        "best_* attributes available for that metric. If this is not needed, refit should be set "
        f"to False explicitly. {refit!r} was passed."
    )
