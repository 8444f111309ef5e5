"""The estimator: it checks texts and parameters, trains the network, and encodes, ranks and scores
answers with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Self, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from tradewind.checks import flag, not_negative, or_none, positive, seed_of, share, whole
from tradewind.models.base import Model, add_train_size
from tradewind.models.devices import choose_device
from tradewind.models.inputs import check_vectors
from tradewind.models.ranking import precision_at_1, reciprocal_rank
from tradewind.models.siamese.model import (
    VECTORS,
    Siamese,
    Side,
    Texts,
    cosines_of,
    encode,
    initial_weights,
    to_device,
)
from tradewind.models.siamese.pools import Pools, match_texts
from tradewind.models.siamese.training import Pairs, Settings, train
from tradewind.models.text import PADDING, Tokens, Vocabulary, codes_of, texts_of, tokenize
from tradewind.models.vectors import WordVectors, embedding
from tradewind.space import Float, Int, Ordinal, Parameter, Space
from tradewind.space.parameters import DEFAULT_SIZES

Encodings: TypeAlias = NDArray[np.float32]
Reader: TypeAlias = "Callable[[Iterable[str]], Texts]"


class SiameseBiLSTM(Model):
    """Finds the answer to a question: a BiLSTM encodes both, and the answer with the largest cosine
    to the question wins.

    The encoding of a text is the maximum over time of the states of the BiLSTM. Training moves a
    question and each of its correct answers together until the hardest wrong answers are further
    away by `margin`. Wrong answers are the other answers of the batch, and one more for each
    question: the hardest of `negatives` answers that are drawn at the beginning of the epoch
    (Tan et al. 2015; W20 §4).

    Parameters
    ----------
    vectors : pre-trained `WordVectors`. They also cover words that training has not seen. Without
        them, vectors with `dimensions` numbers are learned, and unseen words have none.
    tune_vectors : whether to train the given vectors, too.
    hidden : units of the LSTM in each direction.
    shared : whether one LSTM encodes both questions and answers, or each has its own.
    dropout : the dropout rate of the word vectors.
    regularization : the factor of the L2 penalty on the weights of the LSTM.
    margin : by how much a correct answer's cosine (-1 to 1) should exceed that of a wrong one.
    negatives : wrong answers drawn for each pair in each epoch. With 0, only the answers of the
        batch are used.
    hardest : how many of the wrong answers of a question enter the loss.
    batch_size, epochs, learning_rate : settings of Adam. A batch has pairs of a question and a
        correct answer.
    patience : with a `validation`, training stops after this many epochs without a better score
        (None: never) and keeps its best epoch.
    max_length : the number of tokens after which a text is cut.
    random_state : the seed. On a CPU, the same seed gives the same weights to the last bit.
    device : "auto", "cpu", "cuda" or "cuda:1", … "auto" is the GPU if there is one.
    verbose : whether to show progress.

    Attributes
    ----------
    vocabulary_ : the words of the training texts.
    vectors_ : the given vectors, for words outside the vocabulary.
    max_length_ : `max_length` at the time of training.
    weights_ : all weights, as NumPy arrays.
    losses_, validation_scores_ : the loss and the validation score of every epoch.
    best_epoch_ : the epoch that was kept, counted from 1.
    fit_seconds_ : the time of training, including validation. Copying the data to the device does
        not count.

    >>> questions = ["how much does it cost", "when does it end"] * 4
    >>> answers = ["it costs ten dollars", "it ends on Friday"] * 4
    >>> model = tw.models.SiameseBiLSTM(dimensions=8, hidden=4, epochs=1, random_state=0)
    >>> model = model.set_params(device="cpu").fit(questions, answers)
    >>> len(model.rank("what does it cost", ["ten dollars", "on Friday"]))
    2
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
        """The parameters that W20 searches (table 1). With `train_sizes=None`, the training size is
        not searched."""
        parameters: dict[str, Parameter] = {
            "dropout": Float(0.0, 0.6),
            "regularization": Float(1e-8, 1e-3, log=True),
            "hidden": Int(32, 384, log=True),
            "batch_size": Ordinal([32, 64, 128, 256, 512]),
            "epochs": Int(2, 30, log=True),
        }
        return Space(add_train_size(parameters, train_sizes))

    # ---- training ----

    def fit(
        self, questions: Any, answers: Any, *, candidates: Any = (), validation: Any = None
    ) -> Self:
        """Train on questions and their correct answers, one text or a list of texts for each.

        `candidates` are more answers, to draw wrong ones from. `validation` is a tuple with the
        arguments of `score`, which is then computed after every epoch.
        """
        settings = self._settings()
        if self.patience is not None and validation is None:
            raise ValueError(
                "patience needs a validation, but got none: give fit(..., validation=...)"
            )
        asked, answered, pairs = match_texts(questions, answers, candidates)
        judged = None if validation is None else _read_pools(*_check_validation(validation))
        tokens = cache(tokenize)  # a text may occur several times
        words = Vocabulary.of(tokens(text) for text in (*asked, *answered))
        if not words:
            raise ValueError("at least one text must have words, but none has")
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
            validate=None if judged is None else _validation_score(read, *judged),
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
        """The settings of the training. Checks all parameters."""
        check_vectors("vectors", self.vectors)
        for name in ("dimensions", "hidden", "max_length"):
            whole(name, getattr(self, name), 1)
        flag("shared", self.shared)
        if self.batch_size == 1 and self.negatives == 0:
            raise ValueError("batch_size must be at least 2 if negatives is 0, but got 1")
        return Settings(
            epochs=whole("epochs", self.epochs, 1),
            batch_size=whole("batch_size", self.batch_size, 1),
            learning_rate=positive("learning_rate", self.learning_rate),
            regularization=not_negative("regularization", self.regularization),
            dropout=share("dropout", self.dropout),
            margin=positive("margin", self.margin),
            negatives=whole("negatives", self.negatives, 0),
            hardest=whole("hardest", self.hardest, 1),
            tune_vectors=flag("tune_vectors", self.tune_vectors),
            patience=or_none(whole, "patience", self.patience, 1),
            verbose=flag("verbose", self.verbose),
        )

    # ---- predicting ----

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
        """For each question, the positions of the answers in its pool, best first.

        A pool is a list of texts, or of ids in `answers`, which is a mapping from ids to texts or a
        list of texts. For a single question and its pool, the result is a single array.
        """
        if isinstance(questions, str):
            return self.rank([questions], [pools], answers)[0]
        given = Pools.of(questions, pools, answers)
        return [
            np.argsort(-cosines, kind="stable") for cosines in given.split(self._cosines(given))
        ]

    def predict(self, questions: Any, pools: Any, answers: Any = None) -> Any:
        """For each question, the position of the best answer in its pool."""
        if isinstance(questions, str):
            return self.predict([questions], [pools], answers)[0]
        return np.array([order[0] for order in self.rank(questions, pools, answers)])

    def score(self, questions: Any, pools: Any, correct: Any, answers: Any = None) -> float:
        """Precision at 1: the share of questions whose best-ranked answer is correct.

        `correct` has one or several correct answers for each question, as texts or ids like the
        pools. If a pool has none of them, the question counts as 0."""
        given, relevance = _read_pools(questions, pools, correct, answers)
        return precision_at_1(self._cosines(given), relevance, given.sizes)

    def mrr(self, questions: Any, pools: Any, correct: Any, answers: Any = None) -> float:
        """The mean over questions of 1/rank of the first correct answer (0 if the pool has none).
        The arguments are those of `score`."""
        given, relevance = _read_pools(questions, pools, correct, answers)
        return reciprocal_rank(self._cosines(given), relevance, given.sizes)

    def _encode(self, texts: Any, side: Side) -> Encodings:
        texts = texts_of(texts)
        network, read = self._network_for(texts)
        if not texts:
            return np.empty((0, 2 * network.hidden), dtype=np.float32)
        encodings: Encodings = encode(network, read(texts), side).cpu().numpy()
        return encodings

    def _cosines(self, pools: Pools) -> NDArray[np.float32]:
        network, read = self._network_for(pools.texts)
        return _cosines_in_pools(read, pools)(network)

    def _network_for(self, texts: Iterable[str]) -> tuple[Siamese, Reader]:
        """The network with only the vectors that these texts need, and a reader for the texts."""
        check_is_fitted(self)
        tokens, device = cache(tokenize), self._device()
        words, table = self._vectors_of(map(tokens, texts))
        network = Siamese(self.weights_ | {VECTORS: table}, device)
        return network, _reader(words, tokens, self.max_length_, device)

    def _vectors_of(self, texts: Iterable[Tokens]) -> tuple[Vocabulary, NDArray[np.float32]]:
        """The words of the texts that have a vector, learned or given, and the table of these
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
        return torch.device(choose_device(self.device))


def _reader(
    words: Vocabulary, tokens: Callable[[str], Tokens], max_length: int, device: torch.device
) -> Reader:
    """A function from texts to codes on a device."""
    return lambda texts: Texts.of([tokens(text) for text in texts], words, max_length, device)


def _check_validation(validation: Any) -> Any:
    """A tuple with the arguments of `score`."""
    if not isinstance(validation, (tuple, list)) or len(validation) not in (3, 4):
        raise ValueError(
            "validation must be (questions, pools, correct) or (questions, pools, correct, answers)"
            f", but got {validation!r:.60}"
        )
    return validation


def _read_pools(
    questions: Any, pools: Any, correct: Any, answers: Any = None
) -> tuple[Pools, NDArray[np.bool_]]:
    """The pools, and whether each of their members is correct."""
    given = Pools.of(questions, pools, answers)
    return given, given.relevance(correct)


def _validation_score(
    read: Reader, pools: Pools, relevance: NDArray[np.bool_]
) -> Callable[[Siamese], float]:
    """`score` as a function of the network."""
    cosines = _cosines_in_pools(read, pools)
    return lambda network: precision_at_1(cosines(network), relevance, pools.sizes)


def _cosines_in_pools(read: Reader, pools: Pools) -> Callable[[Siamese], NDArray[np.float32]]:
    """The cosines of the members of pools with their questions, as a function of the network. A
    text is read and encoded only once, even if it is in many pools."""
    used, columns = pools.used
    questions, answers = read(pools.questions), read(used)

    def cosines(network: Siamese) -> NDArray[np.float32]:
        device = network.vectors.device
        found: NDArray[np.float32] = (
            cosines_of(
                encode(network, questions, "question"),
                encode(network, answers, "answer"),
                to_device(pools.rows, device),
                to_device(columns, device),
            )
            .cpu()
            .numpy()
        )
        return found

    return cosines
