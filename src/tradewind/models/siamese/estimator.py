"""The scikit-learn style shell: texts and settings in, encodings, orders and scores out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Self, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from tradewind.checks import flag, or_none, positive, seed_of, share, whole
from tradewind.models.base import Model, with_sizes
from tradewind.models.checks import word_vectors
from tradewind.models.devices import chosen
from tradewind.models.ranking import precision_at_1, reciprocal_rank
from tradewind.models.siamese.model import (
    VECTORS,
    Siamese,
    Side,
    Texts,
    cosines_of,
    encode,
    initial_weights,
    on,
)
from tradewind.models.siamese.pools import Pools, matched
from tradewind.models.siamese.training import Pairs, Settings, train
from tradewind.models.text import PADDING, Tokens, Vocabulary, codes_of, texts_of, tokenize
from tradewind.models.vectors import WordVectors, embedding
from tradewind.space import Float, Int, Ordinal, Parameter, Space
from tradewind.space.parameters import DEFAULT_SIZES

Encodings: TypeAlias = NDArray[np.float32]
Reader: TypeAlias = "Callable[[Iterable[str]], Texts]"


class SiameseBiLSTM(Model):
    """Finds the answer to a question: a BiLSTM reads both, and the cosine between them decides.

    A text becomes the maximum over time of the states of the BiLSTM. Training moves a question and
    each of its correct answers together until the hardest wrong ones at hand are further away by
    `margin`: among the other answers of the batch, and one more for each question, the hardest of
    `negatives` drawn from all answers when the epoch began (Tan et al. 2015; W20 §4).

    Parameters
    ----------
    vectors : pre-trained `WordVectors`; without any, vectors of `dimensions` are learned. Words
        that training has not seen have their vector from these, or none.
    tune_vectors : whether given vectors are trained too.
    hidden : units of the LSTM in each direction.
    shared : one LSTM for questions and answers, or one for each.
    dropout : of the word vectors.
    regularization : of the weights of the LSTM, by their squares.
    margin : what a correct answer should be ahead by; cosines are from -1 to 1.
    negatives : answers drawn for each pair in each epoch; 0 leaves those in the batch.
    hardest : how many of the wrong answers at hand count.
    batch_size, epochs, learning_rate : of Adam, over pairs of a question and a correct answer.
    patience : with a validation, training stops after so many epochs without a better score (None:
        never), and keeps its best epoch.
    max_length : tokens behind which a text is cut.
    random_state, device : "auto" is the GPU where there is one. On a CPU, the same seed gives the
        same weights to the bit.
    verbose : whether to show progress.

    Attributes
    ----------
    vocabulary_, vectors_, max_length_ : the words it knows, the vectors for words that it does not,
        and where texts were cut when it learned.
    weights_ : all weights, as NumPy arrays.
    losses_, validation_scores_, best_epoch_ : of every epoch, and the one kept (the first is 1).
    fit_seconds_ : the time training took, validation included, the data being on the device.
    """

    def __init__(
        self,
        vectors: WordVectors | None = None,
        *,
        dimensions: int = 100,
        tune_vectors: bool = True,
        hidden: int = 128,
        shared: bool = True,
        dropout: float = 0.2,
        regularization: float = 1e-6,
        margin: float = 0.2,
        negatives: int = 50,
        hardest: int = 10,
        batch_size: int = 128,
        epochs: int = 6,
        learning_rate: float = 2e-3,
        patience: int | None = None,
        max_length: int = 100,
        random_state: Any = None,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        self.vectors = vectors
        self.dimensions = dimensions
        self.tune_vectors = tune_vectors
        self.hidden = hidden
        self.shared = shared
        self.dropout = dropout
        self.regularization = regularization
        self.margin = margin
        self.negatives = negatives
        self.hardest = hardest
        self.batch_size = batch_size
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.patience = patience
        self.max_length = max_length
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    @staticmethod
    def space(train_sizes: Iterable[float] | None = DEFAULT_SIZES) -> Space:
        """What W20 searches (table 1); None leaves out the size of the training set."""
        parameters: dict[str, Parameter] = {
            "dropout": Float(0.0, 0.6),
            "regularization": Float(1e-8, 1e-3, log=True),
            "hidden": Int(32, 384, log=True),
            "batch_size": Ordinal([32, 64, 128, 256, 512]),
            "epochs": Int(2, 30, log=True),
        }
        return Space(with_sizes(parameters, train_sizes))

    # ---- learning ----

    def fit(
        self, questions: Any, answers: Any, *, candidates: Any = (), validation: Any = None
    ) -> Self:
        """Learn from questions and their correct answers, a text or a list of texts for each.

        `candidates` are further answers, to draw wrong ones from. `validation` holds the arguments
        of `score`, which is then computed after every epoch.
        """
        settings = self._settings()
        if self.patience is not None and validation is None:
            raise ValueError("patience needs a validation, but there is none")
        asked, answered, pairs = matched(questions, answers, candidates)
        judged = None if validation is None else _judged(*_arguments(validation))
        tokens = cache(tokenize)  # a text may be in several lists
        words = Vocabulary.of(tokens(text) for text in (*asked, *answered))
        if not words:
            raise ValueError("at least one text must have words, but there are none")
        if judged is not None and self.vectors is not None:
            more = Vocabulary.of(map(tokens, judged[0].texts)).words
            found = [word for word in more if word in self.vectors and word not in words.codes]
            words = Vocabulary((*words.words, *found))
        rng = np.random.default_rng(
            None if self.random_state is None else seed_of(self.random_state)
        )
        seed = int(rng.integers(2**31))
        table = embedding(words.words, self.vectors, dimensions=self.dimensions, seed=seed)
        read = _reader(words, tokens, self.max_length, self._device())
        trained = train(
            initial_weights(table, self.hidden, shared=bool(self.shared), rng=rng),
            Pairs(read(asked), read(answered), pairs),
            settings,
            rng=rng,
            validate=None if judged is None else _validation(read, *judged),
        )
        self.vocabulary_, self.vectors_ = words.words, self.vectors
        self.max_length_ = self.max_length
        self.weights_ = trained.weights
        self.losses_ = trained.losses
        self.validation_scores_ = trained.scores
        self.best_epoch_ = trained.best
        self.fit_seconds_ = trained.seconds
        return self

    def _settings(self) -> Settings:
        """How to train, and with that a check of all parameters."""
        word_vectors("vectors", self.vectors)
        for name in ("dimensions", "hidden", "max_length"):
            whole(name, getattr(self, name), 1)
        flag("shared", self.shared)
        if self.batch_size == 1 and self.negatives == 0:
            raise ValueError("batch_size must be at least 2 where negatives is 0, but got 1")
        return Settings(
            epochs=whole("epochs", self.epochs, 1),
            batch_size=whole("batch_size", self.batch_size, 1),
            learning_rate=positive("learning_rate", self.learning_rate),
            regularization=positive("regularization", self.regularization)
            if self.regularization != 0
            else 0.0,
            dropout=share("dropout", self.dropout),
            margin=positive("margin", self.margin),
            negatives=whole("negatives", self.negatives, 0),
            hardest=whole("hardest", self.hardest, 1),
            tune_vectors=flag("tune_vectors", self.tune_vectors),
            patience=or_none(whole, "patience", self.patience, 1),
            verbose=flag("verbose", self.verbose),
        )

    # ---- what was learned ----

    def encode_questions(self, questions: Any) -> Encodings:
        """The encodings of questions (n, 2 * hidden), each of length 1."""
        return self._encode(questions, "question")

    def encode_answers(self, answers: Any) -> Encodings:
        """The encodings of answers (n, 2 * hidden), each of length 1."""
        return self._encode(answers, "answer")

    def similarity(self, questions: Any, answers: Any) -> NDArray[np.float32]:
        """The cosine of every question with every answer (questions, answers)."""
        cosines: NDArray[np.float32] = (
            self.encode_questions(questions) @ self.encode_answers(answers).T
        )
        return cosines

    def rank(self, questions: Any, pools: Any, answers: Any = None) -> Any:
        """For each question the order of its pool, best first, as positions in the pool.

        A pool is a list of texts, or of ids in `answers`: a mapping from ids to texts, or a list.
        A single question with its pool gives a single order.
        """
        if isinstance(questions, str):
            return self.rank([questions], [pools], answers)[0]
        given = Pools.of(questions, pools, answers)
        return [
            np.argsort(-cosines, kind="stable") for cosines in given.split(self._cosines(given))
        ]

    def predict(self, questions: Any, pools: Any, answers: Any = None) -> Any:
        """For each question the position of the best answer in its pool."""
        if isinstance(questions, str):
            return self.predict([questions], [pools], answers)[0]
        return np.array([order[0] for order in self.rank(questions, pools, answers)])

    def score(self, questions: Any, pools: Any, correct: Any, answers: Any = None) -> float:
        """Precision at 1: for how many questions the best of the pool is a correct answer. These
        are given as the pools are, one or several for each question; where the pool has none of
        them, nothing in it is right."""
        given, relevance = _judged(questions, pools, correct, answers)
        return precision_at_1(self._cosines(given), relevance, given.sizes)

    def mrr(self, questions: Any, pools: Any, correct: Any, answers: Any = None) -> float:
        """The mean over questions of 1 / the rank of the first correct answer, or of 0."""
        given, relevance = _judged(questions, pools, correct, answers)
        return reciprocal_rank(self._cosines(given), relevance, given.sizes)

    def _encode(self, texts: Any, side: Side) -> Encodings:
        texts = texts_of(texts)
        network, read = self._fitted(texts)
        if not texts:
            return np.empty((0, 2 * network.hidden), dtype=np.float32)
        encodings: Encodings = encode(network, read(texts), side).cpu().numpy()
        return encodings

    def _cosines(self, pools: Pools) -> NDArray[np.float32]:
        network, read = self._fitted(pools.texts)
        return _comparison(read, pools)(network)

    def _fitted(self, texts: Iterable[str]) -> tuple[Siamese, Reader]:
        """The network with the vectors of the words in these texts alone, and what reads them."""
        check_is_fitted(self)
        tokens, device = cache(tokenize), self._device()
        words, table = self._vectors_of(map(tokens, texts))
        network = Siamese(self.weights_ | {VECTORS: table}, device)
        return network, _reader(words, tokens, self.max_length_, device)

    def _vectors_of(self, texts: Iterable[Tokens]) -> tuple[Vocabulary, NDArray[np.float32]]:
        """The words of texts that have a vector, learned or given, and what turns their codes into
        vectors."""
        codes, words = codes_of(self.vocabulary_), Vocabulary.of(texts).words
        seen = [word for word in words if word in codes]
        table = self.weights_[VECTORS][[PADDING, *(codes[word] for word in seen)]]
        if self.vectors_ is None:
            return Vocabulary(tuple(seen)), table
        given = [word for word in words if word not in codes and word in self.vectors_]
        table = np.concatenate([table, embedding(given, self.vectors_)[1:]])
        return Vocabulary((*seen, *given)), table

    def _device(self) -> torch.device:
        return torch.device(chosen(self.device))


def _reader(
    words: Vocabulary, tokens: Callable[[str], Tokens], max_length: int, device: torch.device
) -> Reader:
    return lambda texts: Texts.of([tokens(text) for text in texts], words, max_length, device)


def _arguments(validation: Any) -> Any:
    """What `score` takes, where people gave that."""
    if not isinstance(validation, (tuple, list)) or len(validation) not in (3, 4):
        raise ValueError(
            "validation must be (questions, pools, correct) or (questions, pools, correct, answers)"
            f", but got {validation!r:.60}"
        )
    return validation


def _judged(
    questions: Any, pools: Any, correct: Any, answers: Any = None
) -> tuple[Pools, NDArray[np.bool_]]:
    """Pools, and which of their members are correct."""
    given = Pools.of(questions, pools, answers)
    return given, given.relevance(correct)


def _validation(
    read: Reader, pools: Pools, relevance: NDArray[np.bool_]
) -> Callable[[Siamese], float]:
    """`score` as a function of the network."""
    cosines = _comparison(read, pools)
    return lambda network: precision_at_1(cosines(network), relevance, pools.sizes)


def _comparison(read: Reader, pools: Pools) -> Callable[[Siamese], NDArray[np.float32]]:
    """The cosines of pools with their questions as a function of the network. A text is read and
    encoded once, however many pools it is in."""
    used, columns = pools.used
    questions, answers = read(pools.questions), read(used)

    def cosines(network: Siamese) -> NDArray[np.float32]:
        device = network.vectors.device
        found: NDArray[np.float32] = (
            cosines_of(
                encode(network, questions, "question"),
                encode(network, answers, "answer"),
                on(pools.rows, device),
                on(columns, device),
            )
            .cpu()
            .numpy()
        )
        return found

    return cosines
