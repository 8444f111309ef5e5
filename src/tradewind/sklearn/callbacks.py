"""scikit-learn's callbacks, which exist since its version 1.9.

A search reports the same tasks as `RandomizedSearchCV`: the whole fit, the search within it, each
fit of a candidate, and the refit. Callbacks that want to are passed on to the estimator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from sklearn.base import clone

try:
    from sklearn.callback import CallbackSupportMixin

    # Their public decorator does the same, but its frame would hide the user's line in warnings.
    from sklearn.callback._callback_support import callback_management_context as callbacks_of
except ImportError:  # before scikit-learn 1.9
    callbacks_of = nullcontext

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing: this scikit-learn has no callbacks."""


__all__ = ["CallbackSupportMixin", "Task", "callbacks_of"]


@dataclass(frozen=True)
class Task:
    """A task of a search, and the data that its callbacks receive.

    `context` is scikit-learn's; without one, nothing is reported. In another process, `search` is
    a clone that has not been fitted."""

    search: Any = None
    context: Any = None
    data: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, search: Any, X: Any, y: Any, params: Mapping[str, Any]) -> Task:
        """The whole fit of a search."""
        if not hasattr(search, "_init_callback_context"):
            return cls()
        parts = 1 if search.refit is False else 2
        context = search._init_callback_context(max_subtasks=parts)
        return cls(search, context, _data(X, y, params))

    def part(self, name: str, X: Any, y: Any, params: Mapping[str, Any]) -> Task:
        """The next part of this task."""
        return self._subtask(_data(X, y, params), task_name=name)

    def parts(self, name: str, count: int | None) -> Task:
        """The next part of this task, which itself has `count` parts in any order."""
        return self._subtask({}, task_name=name, max_subtasks=count, sequential_subtasks=False)

    def fit(self, number: int, X: Any, y: Any, params: Mapping[str, Any]) -> Task:
        """The fit with this number."""
        names = {"task_name": "candidate-split-evaluation", "task_id": number}
        return self._subtask(_data(X, y, params), **names)

    def _subtask(self, data: Mapping[str, Any], **names: Any) -> Task:
        if self.context is None:
            return self
        return Task(self.search, self.context.subcontext(**names), data)

    @property
    def has_callbacks(self) -> bool:
        return bool(getattr(self.search, "_skl_callbacks", ()))

    def begin(self) -> None:
        if self.context is not None:
            self.context.call_on_fit_task_begin(estimator=self.search, **self.data)

    def end(self) -> None:
        if self.context is not None:
            self.context.call_on_fit_task_end(estimator=self.search, **self.data)

    @contextmanager
    def begun_for(self, model: Any) -> Iterator[None]:
        """Begin the task, and pass its callbacks on to the model that is fitted inside."""
        if self.context is None:
            yield
            return
        with self.context.propagate_callback_context(model):
            self.begin()
            yield

    def __reduce__(self) -> tuple[Any, ...]:
        """For another process: the search is cloned, because its study must stay here."""
        search = None if self.search is None else clone(self.search)
        return Task, (search, self.context, dict(self.data))


def _data(X: Any, y: Any, params: Mapping[str, Any]) -> dict[str, Any]:
    weights = params.get("sample_weight")
    metadata = None if weights is None else {"sample_weight": weights}
    return {"X": X, "y": y, "metadata": metadata}
