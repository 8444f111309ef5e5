"""The estimator: it checks texts and labels, trains one network for each fold, and predicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from tradewind.checks import one_of
from tradewind.errors import warn
from tradewind.models.base import TextClassifier
from tradewind.models.devices import choose_device, tensor_cores
from tradewind.models.inputs import fold_rows, texts_and_labels
from tradewind.models.text import PADDING, Tokens, Vocabulary, codes_of, texts_of, tokenize
from tradewind.models.textcnn.model import Channels, Layout, Network, Texts
from tradewind.models.textcnn.settings import make_network, make_settings
from tradewind.models.textcnn.space import published_space, read_filters
from tradewind.models.textcnn.training import Array, NetworkData, Settings, Trained, train
from tradewind.models.textcnn.validation import split_rows
from tradewind.models.vectors import WordVectors, embedding
from tradewind.space import Space
from tradewind.types import Indices


class TextCNN(TextClassifier):
    """A shallow convolutional network over word vectors (Kim 2014; Hader's TXT-CNN).

    Parameters
    ----------
    vectors : pre-trained `WordVectors`. Without them, random vectors with `dimensions` numbers are
        used.
    channels : "static" keeps the vectors as they are, "nonstatic" trains them. "multichannel" has
        both side by side, and each filter reads both.
    filter_sizes : how many words the filters of each kind span.
    filters : how many filters of each kind there are: one number for all kinds, or one for each.
    activation, bias : the activation of the filters ("elu", "relu", "tanh", "sigmoid" or "selu"),
        and whether they have a bias.
    d0, d1, d2 : the dropout rates of the word vectors, of the outputs of the filters, and of the
        hidden layer.
    hidden : the number of neurons of the hidden layer (relu). With 0, there is no hidden layer, and
        d2 has no effect.
    l2_max : the largest norm of the weights into a neuron of the hidden or output layer, or None.
    balance : weight classes inversely to their frequency.
    optimizer, learning_rate : "adadelta" (rate 1.0 and decay 0.95 as in Kim's code, epsilon 1e-7)
        or "adam" (rate 0.001). A `learning_rate` of None means the rate in parentheses.
    batch_size, max_epochs, patience : training stops when the loss on the validation texts has not
        improved for `patience` epochs (None: never), and keeps its best epoch.
    validation_fraction : the share of the training texts to hold out for early stopping,
        stratified. With 0, training uses all texts and runs for `max_epochs`. To stop on other
        texts, call `fit(X, y, validation=(X_valid, y_valid))`.
    unknown, window : what to do with words without a vector. "random" draws vectors with the
        variance of the given ones; "word2vec" trains them on the training texts with this context
        window.
    random_state : the seed.
    device : "auto", "cpu", "cuda" or "cuda:1", … "auto" is the GPU if there is one.
    verbose : whether to show progress.

    Attributes
    ----------
    classes_ : the labels.
    vocabulary_ : the words of the training texts.
    vectors_ : the given vectors, for words outside the vocabulary.
    network_ : the shape of the network.
    weights_ : all weights, as NumPy arrays. The word vectors are "static" and "learned".
    history_ : the loss, the validation loss and the validation accuracy of every epoch.
    best_epoch_ : the epoch that was kept, counted from 1.
    fit_seconds_ : the time of training. Copying the data to the device does not count. If folds
        were trained together, each gets an equal share.

    >>> texts, labels = ["a fine film", "long and dull"] * 10, ["good", "bad"] * 10
    >>> model = tw.models.TextCNN(dimensions=10, filter_sizes=(1, 2), filters=8, random_state=0)
    >>> model.set_params(max_epochs=5, device="cpu").fit(texts, labels).predict(["fine"]).shape
    (1,)
    """

    def __init__(
        self,
        vectors: WordVectors | None = None,
        *,
        channels: Channels = "nonstatic",
        filter_sizes: Sequence[int] = (3, 4, 5),
        filters: int | Sequence[int] = 100,
        activation: str = "relu",
        bias: bool = True,
        d0: float = 0.0,
        d1: float = 0.5,
        d2: float = 0.0,
        hidden: int = 0,
        l2_max: float | None = 3.0,
        balance: bool = False,
        optimizer: Literal["adadelta", "adam"] = "adadelta",
        learning_rate: float | None = None,
        batch_size: int = 50,
        max_epochs: int = 150,
        patience: int | None = 15,
        validation_fraction: float = 0.1,
        unknown: Literal["random", "word2vec"] = "random",
        window: int = 10,
        dimensions: int = 300,
        random_state: Any = None,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        self.vectors = vectors
        self.channels = channels
        self.filter_sizes = filter_sizes
        self.filters = filters
        self.activation = activation
        self.bias = bias
        self.d0 = d0
        self.d1 = d1
        self.d2 = d2
        self.hidden = hidden
        self.l2_max = l2_max
        self.balance = balance
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.unknown = unknown
        self.window = window
        self.dimensions = dimensions
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    # ---- the published search space ----

    @staticmethod
    def space(s: int | None = None, *, train_sizes: Iterable[float] | None = None) -> Space:
        """Hader's search space (table 1). `TextCNN().set_params(**config)` takes its parameters.

        `s` is the number of filter sizes. By default it is searched from 1 to 10; the first
        experiments of the thesis fixed it at 3. Filter sizes and counts beyond `s` are inactive,
        and so is d2 without a hidden layer. `train_sizes` adds the training size.
        """
        return published_space(s, train_sizes)

    def set_params(self, **params: Any) -> Self:
        """As in scikit-learn. The parameters s, k0, k1, … and f0, f1, … of the published space set
        `filter_sizes` and `filters`."""
        super().set_params(**read_filters(params))
        return self

    # ---- training ----

    def fit(self, X: Any, y: Any, *, validation: tuple[Any, Any] | None = None) -> Self:
        """Train on texts and their labels. Training stops early on the `validation` texts or,
        without them, on a part of the training texts."""
        texts, labels = texts_and_labels(X, y)
        rows = np.arange(len(texts))
        if validation is None:
            self._fit_models([self], texts, labels, [(rows, None)])
        else:
            if not isinstance(validation, (tuple, list)) or len(validation) != 2:
                raise ValueError(f"validation must be (texts, labels), but got {validation!r:.60}")
            valid_texts, valid_labels = texts_and_labels(*validation)
            if (valid_labels.dtype.kind == "U") != (labels.dtype.kind == "U"):
                raise ValueError(
                    "labels must be strings in both training and validation, or in neither"
                )
            labels = np.concatenate([labels, valid_labels])
            valid_rows = len(rows) + np.arange(len(valid_texts))
            self._fit_models([self], texts + valid_texts, labels, [(rows, valid_rows)])
        return self

    def fit_folds(
        self,
        X: Any,
        y: Any,
        folds: Iterable[tuple[Any, Any]],
        *,
        validation: Literal["train", "test"] = "train",
    ) -> list[Self]:
        """A fitted classifier for each fold, all trained together. They are the same as from a
        `fit` for each fold. On a GPU, training all of them takes little longer than training one.

        `folds` are pairs of training rows and test rows, as from a scikit-learn splitter. The test
        rows are not used, unless `validation="test"`: then each fold stops early on its own test
        rows. That makes its score look too good, but it is what the thesis did.
        """
        one_of("validation", validation, ("train", "test"))
        texts, labels = texts_and_labels(X, y)
        pairs: list[tuple[Indices, Indices | None]] = []
        for pair in folds if isinstance(folds, Iterable) else [folds]:
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise ValueError(
                    f"folds must be pairs (training rows, test rows), but got {pair!r:.60}"
                )
            train_rows, test_rows = pair
            valid = fold_rows(test_rows, len(texts)) if validation == "test" else None
            pairs.append((fold_rows(train_rows, len(texts)), valid))
        if not pairs:
            raise ValueError("at least one fold is needed, but got none")
        models = [clone(self) for _ in pairs]
        self._fit_models(models, texts, labels, pairs)
        return models

    def _fit_models(
        self,
        models: Sequence[TextCNN],
        texts: Sequence[str],
        labels: NDArray[Any],
        pairs: Sequence[tuple[Indices, Indices | None]],
    ) -> None:
        """Fit each model to its training rows, with early stopping on its validation rows (None: a
        part of the training rows). Folds with the same classes and the same number of batches can
        be stacked and trained together."""
        settings = self._settings()
        tokens = [tokenize(text) for text in texts]
        words = Vocabulary.of(tokens)
        corpus = Texts.of(tokens, words, make_network(self, 2).blanks)
        shared = self._table(words.words, settings.seed) if self.unknown == "random" else None
        stacks: dict[tuple[Any, ...], list[tuple[TextCNN, Indices, NetworkData]]] = {}
        for model, (rows, valid) in zip(models, pairs, strict=True):
            classes = np.unique(labels[rows])
            table = shared
            if table is None:
                table = self._table(words.words, settings.seed, [tokens[row] for row in rows])
            train_rows, valid_rows = split_rows(
                labels, rows, valid, fraction=self.validation_fraction, seed=settings.seed
            )
            weights = self._class_weights(labels[train_rows])
            data = NetworkData(train_rows, valid_rows, weights, table)
            n_batches = -(-len(train_rows) // settings.batch_size)
            key = (n_batches, bool(len(valid_rows)), *classes.tolist())
            stacks.setdefault(key, []).append((model, rows, data))
        for (_, _, *shared_classes), members in stacks.items():
            classes = np.array(shared_classes, dtype=labels.dtype)
            numbers = np.searchsorted(classes, labels).clip(max=len(classes) - 1)
            network = make_network(self, len(classes))
            trained: list[Trained] = []
            seconds = 0.0
            for stack in self._stacks([data for _, _, data in members], settings.device):
                part, part_seconds = train(network, settings, corpus, numbers, stack)
                trained, seconds = trained + part, seconds + part_seconds
            for (model, rows, data), result in zip(members, trained, strict=True):
                seen = corpus.words(rows)
                model.classes_, model.seed_ = classes, settings.seed
                model.vocabulary_ = tuple(words.words[code - 1] for code in seen[1:])
                model.network_, model.vectors_ = asdict(network), self.vectors
                model.fit_seconds_ = seconds / len(members)
                model._set_weights(result, seen, data.table)
                model._check_finite([tokens[row] for row in data.train[: settings.batch_size]])

    def _stacks(self, folds: list[NetworkData], device: str) -> list[list[NetworkData]]:
        """The folds to train together: all of them on a GPU. On a CPU each fold trains alone, which
        is faster there because less memory fits the cache better."""
        return [[data] for data in folds] if torch.device(device).type == "cpu" else [folds]

    def _settings(self) -> Settings:
        return make_settings(self)

    def _table(
        self, words: Sequence[str], seed: int, texts: Sequence[Tokens] | None = None
    ) -> Array:
        """The vectors of words. With `texts`, words without a vector are trained on these."""
        return embedding(
            words,
            self.vectors,
            unknown="random" if texts is None else "word2vec",
            texts=texts,
            dimensions=self.dimensions,
            window=self.window,
            seed=seed,
        )

    def _class_weights(self, labels: NDArray[Any]) -> Array:
        _, counts = np.unique(labels, return_counts=True)
        even = np.ones(len(counts), dtype=np.float32)
        return (len(labels) / len(counts) / counts).astype(np.float32) if self.balance else even

    def _set_weights(self, trained: Trained, known: NDArray[np.int32], table: Array) -> None:
        """Set the fitted attributes. `known` are the codes of the words in the training texts."""
        self.weights_ = trained.weights
        if self.channels != "nonstatic":
            self.weights_["static"] = table[known]
        if trained.table is not None:
            self.weights_["learned"] = trained.table[known]
        self.best_epoch_ = trained.best_epoch
        self.history_ = [asdict(epoch) for epoch in trained.history]
        self.n_iter_ = len(trained.history)

    def _check_finite(self, tokens: Sequence[Tokens]) -> None:
        """Warn if training diverged. The loss is computed before the step, and weights can be
        finite but too large, so the outputs for some texts are checked, too."""
        best = self.history_[self.best_epoch_ - 1]
        losses = np.array([best["loss"], best["valid_loss"] or 0.0])
        for numbers in (losses, *self.weights_.values(), self._outputs(tokens).numpy()):
            if not np.isfinite(numbers).all():
                message = "weights, losses or outputs are not finite: try a smaller learning_rate"
                warn(message, ConvergenceWarning)
                break

    # ---- predicting ----

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability of each class (texts, classes), in the order of `classes_`."""
        check_is_fitted(self, "weights_")
        outputs = self._outputs([tokenize(text) for text in texts_of(X)])
        if outputs.shape[1] > 1:
            return torch.softmax(outputs, dim=1).numpy()
        second = torch.sigmoid(outputs)
        return torch.cat([1 - second, second], dim=1).numpy()

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of each text."""
        best = self.predict_proba(X).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[best]
        return labels

    def _outputs(self, tokens: Sequence[Tokens]) -> Tensor:
        """The outputs of the network for texts, in double precision."""
        network, device = Network(**self.network_), choose_device(self.device)
        vocabulary = Vocabulary.of(tokens)
        lengths = np.array([len(text) + network.blanks for text in tokens], dtype=np.intp)
        tables = [torch.from_numpy(t).to(device) for t in self._vectors_of(vocabulary.words)]
        weights = {n: torch.from_numpy(self.weights_[n]).to(device)[None] for n in network.shapes()}
        outputs = [torch.empty(0, network.outputs)]
        with tensor_cores(), torch.no_grad():
            for piece in network.pieces(lengths):
                texts = Texts.of(tokens[piece], vocabulary, network.blanks)
                words = torch.from_numpy(texts.codes).to(device)[None]
                layout = Layout.of(torch.from_numpy(texts.lengths).to(device)[None], words.shape[1])
                channels = [torch.nn.functional.embedding(words, table) for table in tables]
                outputs.append(network(weights, channels, layout)[0].cpu())
        return torch.cat(outputs).double()

    def _vectors_of(self, words: Sequence[str]) -> list[Array]:
        """The vectors of words in each channel. A word that training has not seen has its given
        vector, or the random one that it would have had in training."""
        codes = codes_of(self.vocabulary_)
        at = np.array([codes.get(word, PADDING) for word in words], dtype=np.intp)
        seen = np.concatenate([[True], at > PADDING])  # padding counts as seen
        new = [word for word, code in zip(words, at, strict=True) if not code]
        dimensions = self.network_["dimensions"]
        given = embedding(new, self.vectors_, dimensions=dimensions, seed=self.seed_)
        tables = []
        for name in ("static", "learned"):
            if name in self.weights_:
                table = np.empty((len(seen), dimensions), dtype=np.float32)
                table[seen] = self.weights_[name][np.concatenate([[PADDING], at])[seen]]
                table[~seen] = given[1:]
                tables.append(table)
        return tables
