"""Which scores candidates get, and which one the search optimizes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import check_scoring

from tradewind.errors import warn
from tradewind.goals.text import metric_name


@dataclass(frozen=True)
class Scoring:
    """`scorer` returns one score, or several by name. `shown` is the attribute `scorer_`.

    `metric` is the key of the score to optimize. If `scorer` returns several scores but none of
    this key, the first one is optimized. `name` is what a person calls it; None if unknown."""

    scorer: Callable[..., Any]
    shown: Any
    metric: str
    name: str | None

    @classmethod
    def of(cls, estimator: Any, scoring: Any, refit: Any, *, raises: bool) -> Scoring:
        named = refit if isinstance(refit, str) else None
        if scoring is None or isinstance(scoring, str):
            scorer = check_scoring(estimator, scoring)
            return cls(scorer, scorer, "score", _spoken(scoring or _default_score(estimator)))
        if callable(scoring):
            return cls(scoring, scoring, named or "score", _spoken(named or _function(scoring)))
        scorer = check_scoring(estimator, scoring, raise_exc=raises)
        pairs = scoring.items() if isinstance(scoring, Mapping) else ((s, s) for s in scoring)
        shown = {name: check_scoring(estimator, each) for name, each in pairs}
        check_refit(refit, shown)
        metric = named or next(iter(shown))
        return cls(scorer, shown, metric, _spoken(metric))

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


def _default_score(estimator: Any) -> str:
    """The name of the estimator's own `score`, if it is that of scikit-learn."""
    while hasattr(estimator, "steps"):  # a pipeline scores like its last step
        estimator = estimator.steps[-1][1]
    score = getattr(type(estimator), "score", None)
    names = {ClassifierMixin.score: "accuracy", RegressorMixin.score: "R²"}
    return next((name for known, name in names.items() if score is known), "")


def _function(scorer: Any) -> str:
    """The name of a function that scores, or of the one in a scorer; "" for a lambda."""
    name = getattr(getattr(scorer, "_score_func", scorer), "__name__", "")
    name = name.removesuffix("_score") * name.isidentifier()
    return f"neg_{name}" if getattr(scorer, "_sign", 1) < 0 else name


def _spoken(name: Any) -> str | None:
    """`negative log loss` for neg_log_loss: the values that are maximized are negative. None if
    this is no name."""
    text = re.sub("^neg ", "negative ", str(name).replace("_", " ").strip())
    try:
        return metric_name("scoring", text)
    except ValueError:
        return None


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
