"""A linear support-vector machine on the words of a text, as in W20 and W15 for Yelp."""

from __future__ import annotations

import time
from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_is_fitted

from tradewind.checks import finite_number, flag, one_of, positive, seed_of, whole
from tradewind.errors import missing
from tradewind.models.base import TextClassifier, add_train_size
from tradewind.models.inputs import texts_and_labels
from tradewind.models.text import texts_of, tokenize
from tradewind.space import Categorical, Float, Parameter, Space
from tradewind.space.parameters import DEFAULT_SIZES
from tradewind.types import Array

_NONE = -1  # the column of a word that is not a feature


class UnigramSVM(TextClassifier):
    """A linear support-vector machine on unigrams: the words of a text without stop words, each
    reduced to its stem by Porter's algorithm. With more than two classes, each is separated from
    all others (LIBLINEAR).

    The defaults were the best in five-fold cross-validation on 40,273 Yelp reviews.

    Parameters
    ----------
    C : the cost of a mistake. A smaller C regularizes more.
    bias : the value of a constant feature that every text has (LIBLINEAR's -B). Its weight is
        regularized like all others; the larger the bias, the less this matters. 0 or less means no
        such feature.
    penalty, loss : "l2" with "squared_hinge" or "hinge"; "l1" only with "squared_hinge".
    weighting : "tfidf" is (1 + log count)·idf. "binary" is 1 for every word of the text (0.2 points
        worse on Yelp). Either way, the features of a text are scaled to length 1.
    remove_stop_words : drop the words of scikit-learn's list of stop words, as the papers do.
        Keeping them is 1.2 points better on Yelp, because the list has "not" and "very".
    min_count : drop stems that occur in fewer texts than this.
    balance : weight classes inversely to their frequency.
    tol, max_iter : when the solver stops. A large `C` with a large `bias` needs many iterations.
    random_state : the seed for the order in which the solver visits the texts.

    Attributes
    ----------
    classes_ : the labels.
    words_ : the stems that are features.
    coef_, intercept_ : the weights (1 or classes, words), and what is added to each score.
    idf_ : the weights of the stems under "tfidf", otherwise ones.
    n_iter_ : the largest number of iterations that the solver took for a class.
    fit_seconds_ : the time of `fit`, from texts to weights.
    solver_seconds_ : the part of `fit_seconds_` that the solver took. This is the cost of a fit if
        features are computed only once.

    >>> texts, labels = ["a fine film", "long and dull"] * 10, ["good", "bad"] * 10
    >>> tw.models.UnigramSVM(random_state=0).fit(texts, labels).predict(["fine films"])
    array(['good'], dtype='<U4')
    """

    def __init__(
        self,
        *,
        C: float = 0.1,
        bias: float = 1.0,
        penalty: Literal["l2", "l1"] = "l2",
        loss: Literal["squared_hinge", "hinge"] = "squared_hinge",
        weighting: Literal["tfidf", "binary"] = "tfidf",
        remove_stop_words: bool = True,
        min_count: int = 1,
        balance: bool = False,
        tol: float = 0.01,
        max_iter: int = 10_000,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.bias = bias
        self.penalty = penalty
        self.loss = loss
        self.weighting = weighting
        self.remove_stop_words = remove_stop_words
        self.min_count = min_count
        self.balance = balance
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @staticmethod
    def space(train_sizes: Iterable[float] | None = DEFAULT_SIZES) -> Space:
        """The parameters that W20 searches (table 1), with bounds of our own. We read its
        "regularization parameter" as the choice of penalty and loss. With `train_sizes=None`, the
        training size is not searched.

        >>> TradeoffSearchCV(UnigramSVM(), UnigramSVM.space(), goal=Tradeoff(alpha=0.3))
        """
        parameters: dict[str, Parameter] = {
            "C": Float(1e-3, 10.0, log=True),
            "bias": Float(0.01, 3.0, log=True),
            "penalty": Categorical(["l2", "l1"]),
            "loss": Categorical(["squared_hinge", "hinge"]),
        }
        return Space(
            add_train_size(parameters, train_sizes), forbid=[{"penalty": "l1", "loss": "hinge"}]
        )

    # ---- learning ----

    def fit(self, X: Any, y: Any) -> Self:
        """Train on texts and their labels."""
        begin = time.perf_counter()
        solver = self._solver()
        texts, labels = texts_and_labels(X, y)
        classes, numbers = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"labels must have at least two classes, but all are {classes}")
        self.classes_ = classes
        features = self._weight(self._learn_words(texts))
        ready = time.perf_counter()
        solver.fit(features, numbers)
        end = time.perf_counter()
        self.coef_: Array = solver.coef_
        self.intercept_: Array = np.zeros(len(self.coef_)) + solver.intercept_
        self.n_iter_ = int(np.max(solver.n_iter_))
        self.fit_seconds_, self.solver_seconds_ = end - begin, end - ready
        return self

    def _solver(self) -> Any:
        """LIBLINEAR's solver. Checks all parameters."""
        one_of("penalty", self.penalty, ("l2", "l1"))
        one_of("loss", self.loss, ("squared_hinge", "hinge"))
        one_of("weighting", self.weighting, ("tfidf", "binary"))
        if self.penalty == "l1" and self.loss == "hinge":
            raise ValueError('penalty="l1" needs loss="squared_hinge", but got loss="hinge"')
        flag("remove_stop_words", self.remove_stop_words)
        whole("min_count", self.min_count, 1)
        bias = finite_number("bias", self.bias)
        return LinearSVC(
            C=positive("C", self.C),
            penalty=self.penalty,
            loss=self.loss,
            dual=self.penalty == "l2",  # faster than the primal unless C is large; l1 has no dual
            fit_intercept=bias > 0,
            intercept_scaling=bias if bias > 0 else 1.0,
            class_weight="balanced" if flag("balance", self.balance) else None,
            tol=positive("tol", self.tol),
            max_iter=whole("max_iter", self.max_iter, 1),
            random_state=seed_of(self.random_state),
        )

    def _learn_words(self, texts: Sequence[str]) -> Any:
        """Set `words_` and `idf_`, and return the counts of the stems (texts, stems)."""
        tokenized = _TokenizedTexts.of(texts)
        stems = self._stems(tokenized.words)
        known = sorted({stem for stem in stems if stem is not None})
        counts = tokenized.counts(stems, known)
        frequency = np.bincount(counts.indices, minlength=len(known))
        kept = np.flatnonzero(frequency >= self.min_count)
        if not len(kept):
            raise ValueError(
                f"no words are left in {len(texts)} texts: all are stop words or occur in fewer "
                f"than min_count={self.min_count} texts"
            )
        self.words_ = [known[i] for i in kept]
        self.idf_ = np.ones(len(kept))
        if self.weighting == "tfidf":
            self.idf_ += np.log((1 + len(texts)) / (1 + frequency[kept]))
        return counts[:, kept]

    def _stems(self, words: Iterable[str]) -> list[str | None]:
        """The stem of each word, None for a stop word."""
        stem = _porter()
        stop = ENGLISH_STOP_WORDS if self.remove_stop_words else frozenset()
        return [None if word in stop else stem(word) for word in words]

    def _weight(self, counts: Any) -> Any:
        """Turn counts into features, in place."""
        if self.weighting == "tfidf":
            counts.data = (1 + np.log(counts.data)) * self.idf_[counts.indices]
        else:
            counts.data[:] = 1
        row = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
        counts.data /= np.sqrt(np.bincount(row, counts.data**2))[row]
        return counts

    # ---- predicting ----

    def decision_function(self, X: Any) -> Array:
        """The score of each class (texts, classes), or of the second of two classes (texts,)."""
        check_is_fitted(self, "coef_")
        tokenized = _TokenizedTexts.of(texts_of(X))
        counts = tokenized.counts(self._stems(tokenized.words), self.words_)
        features = self._weight(counts)
        scores: Array = features @ self.coef_.T + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of each text."""
        scores = self.decision_function(X)
        best = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(np.intp)
        labels: NDArray[Any] = self.classes_[best]
        return labels


@dataclass(frozen=True, eq=False)
class _TokenizedTexts:
    """Texts as numbers of their distinct words, so that each distinct word is stemmed only once."""

    words: list[str]
    numbers: NDArray[np.intc]  # (tokens,) the words of all texts, text after text
    ends: NDArray[np.intp]  # (1 + texts,) 0, and then where each text ends

    @staticmethod
    def of(texts: Iterable[str]) -> _TokenizedTexts:
        number: dict[str, int] = defaultdict(count().__next__)
        numbers, ends = array("i"), [0]
        for text in texts:
            numbers.extend([number[word] for word in tokenize(text)])
            ends.append(len(numbers))
        return _TokenizedTexts(list(number), np.array(numbers, dtype=np.intc), np.array(ends))

    def counts(self, stems: Sequence[str | None], known: Sequence[str]) -> Any:
        """How often each of the `known` stems occurs in each text: (texts, known)."""
        place = {stem: i for i, stem in enumerate(known)}
        column = np.array([place.get(stem, _NONE) if stem else _NONE for stem in stems], np.intp)
        columns = column[self.numbers] if len(column) else np.empty(0, np.intp)
        kept = columns != _NONE
        before = np.concatenate([[0], np.cumsum(kept)])
        shape = (len(self.ends) - 1, len(known))
        ones = np.ones(before[-1])
        counts = csr_matrix((ones, columns[kept], before[self.ends]), shape=shape)
        counts.sum_duplicates()
        return counts


def _porter() -> Any:
    """Porter's algorithm of 1980. Snowball has it as "porter", beside its successor "english"."""
    try:
        from snowballstemmer import stemmer
    except ImportError as error:
        raise missing("UnigramSVM", "snowballstemmer") from error
    return stemmer("porter").stemWord
