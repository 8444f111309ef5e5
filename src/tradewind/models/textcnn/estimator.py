"""TextCNN as scikit-learn sees it: texts and labels in, a classifier out."""

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
from tradewind.data.subsets import subset
from tradewind.errors import warn
from tradewind.models.base import TextClassifier
from tradewind.models.checks import labelled, rows_of
from tradewind.models.devices import chosen, tensor_cores
from tradewind.models.text import PADDING, Tokens, Vocabulary, codes_of, texts_of, tokenize
from tradewind.models.textcnn.model import Channels, Layout, Network, Texts
from tradewind.models.textcnn.settings import network_of, plan_of
from tradewind.models.textcnn.space import natural, published
from tradewind.models.textcnn.training import Array, Fold, Plan, Trained, train
from tradewind.models.vectors import WordVectors, embedding
from tradewind.space import Space
from tradewind.types import Indices


class TextCNN(TextClassifier):
    """A shallow convolutional network over word vectors (Kim 2014; Hader's TXT-CNN).

    Parameters
    ----------
    vectors : pre-trained `WordVectors`; without any, vectors of `dimensions` are drawn at random.
    channels : "static" vectors stay as they are, "nonstatic" ones are tuned, "multichannel" has
        both side by side, and each filter a part for each.
    filter_sizes, filters : how many words each kind of filter spans, and how many of it there are
        (one number for all, or one for each).
    activation, bias : of the filters; "elu", "relu", "tanh", "sigmoid" or "selu".
    d0, d1, d2 : dropout of the word vectors, of what the filters found, of the hidden layer.
    hidden : neurons of the hidden layer (relu); 0 leaves it out, and d2 with it.
    l2_max : the largest norm of the weights into a neuron of the hidden or output layer, or None.
    balance : weight classes inversely to how frequent they are.
    optimizer, learning_rate : "adadelta" (rate 1.0 and decay 0.95 as in Kim's code, epsilon 1e-7)
        or "adam" (rate 0.001); a rate of None is the one given here.
    batch_size, max_epochs, patience : training stops when the loss on the validation texts has not
        improved for `patience` epochs (None: never), and keeps its best epoch.
    validation_fraction : how much of the training texts to stop on, stratified; 0 trains on all of
        them for `max_epochs`. `fit(X, y, validation=(X_valid, y_valid))` stops on other texts.
    unknown, window : words without vectors are drawn at "random", with the variance of the given
        vectors, or trained on the training texts by "word2vec" with this context window.
    random_state, device, verbose : "auto" is the GPU where there is one; whether to show progress.

    Attributes
    ----------
    classes_, vocabulary_, vectors_ : what it has seen, and the vectors for words it has not seen.
    network_, weights_ : its shape, and all weights as NumPy arrays; the word vectors are "static"
        and "learned".
    history_, best_epoch_ : loss, validation loss and accuracy of every epoch, and the one kept.
    fit_seconds_ : the time training took, the data being on the device; of folds trained at once,
        the share of one.
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
        """Hader's search space (table 1): `TextCNN().set_params(**config)` takes its parameters.

        `s` is how many filter sizes there are: searched from 1 to 10, or fixed as in the first
        experiments (3). Sizes and numbers beyond `s` are inactive, and so is d2 without a hidden
        layer. `train_sizes` adds the fraction of the training texts.
        """
        return published(s, train_sizes)

    def set_params(self, **params: Any) -> Self:
        """As in scikit-learn; s, k0, k1, … and f0, f1, … set `filter_sizes` and `filters`."""
        super().set_params(**natural(params))
        return self

    # ---- learning ----

    def fit(self, X: Any, y: Any, *, validation: tuple[Any, Any] | None = None) -> Self:
        """Learn from texts and their labels, stopping on `validation` texts where these are given,
        else on a part of the others."""
        texts, labels = labelled(X, y)
        rows = np.arange(len(texts))
        if validation is None:
            self._learn([self], texts, labels, [(rows, None)])
        else:
            if not isinstance(validation, (tuple, list)) or len(validation) != 2:
                raise ValueError(f"validation must be (texts, labels), but got {validation!r:.60}")
            more, theirs = labelled(*validation)
            if (theirs.dtype.kind == "U") != (labels.dtype.kind == "U"):
                raise ValueError("labels must be strings in both training and validation, or none")
            labels = np.concatenate([labels, theirs])
            self._learn([self], texts + more, labels, [(rows, len(rows) + np.arange(len(more)))])
        return self

    def fit_folds(
        self,
        X: Any,
        y: Any,
        folds: Iterable[tuple[Any, Any]],
        *,
        validation: Literal["train", "test"] = "train",
    ) -> list[Self]:
        """A fitted classifier for each fold, all of them trained at once. They are what `fit` would
        have given one by one, on a GPU in little more than the time of one.

        `folds` are pairs of training and test rows, as splitters of scikit-learn give them. The
        test rows are left alone, unless `validation="test"`: then each fold stops on its own, which
        flatters it, but is what the thesis did.
        """
        one_of("validation", validation, ("train", "test"))
        texts, labels = labelled(X, y)
        pairs: list[tuple[Indices, Indices | None]] = []
        for pair in folds if isinstance(folds, Iterable) else [folds]:
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise ValueError(f"folds must be (training rows, test rows), but got {pair!r:.60}")
            train_rows, test_rows = pair
            stop_on = rows_of(test_rows, len(texts)) if validation == "test" else None
            pairs.append((rows_of(train_rows, len(texts)), stop_on))
        if not pairs:
            raise ValueError("at least one fold is needed, but got none")
        models = [clone(self) for _ in pairs]
        self._learn(models, texts, labels, pairs)
        return models

    def _learn(
        self,
        models: Sequence[TextCNN],
        texts: Sequence[str],
        labels: NDArray[Any],
        pairs: Sequence[tuple[Indices, Indices | None]],
    ) -> None:
        """Fit each model to its rows, and stop it on others: on a part of its own where that is
        None. What can be stacked learns together: folds of as many batches and the same classes."""
        plan = self._plan()
        tokens = [tokenize(text) for text in texts]
        words = Vocabulary.of(tokens)
        corpus = Texts.of(tokens, words, network_of(self, 2).blanks)
        shared = self._table(words.words, plan.seed) if self.unknown == "random" else None
        stacks: dict[tuple[Any, ...], list[tuple[TextCNN, Indices, Fold]]] = {}
        for model, (rows, stop_on) in zip(models, pairs, strict=True):
            classes = np.unique(labels[rows])
            table = shared
            if table is None:
                table = self._table(words.words, plan.seed, [tokens[row] for row in rows])
            learn, stop = self._split(labels, rows, stop_on, plan.seed)
            fold = Fold(learn, stop, self._class_weights(labels[learn]), table)
            key = (-(-len(learn) // plan.batch_size), bool(len(stop)), *classes.tolist())
            stacks.setdefault(key, []).append((model, rows, fold))
        for (_, _, *of_all), members in stacks.items():
            classes = np.array(of_all, dtype=labels.dtype)
            numbers = np.searchsorted(classes, labels).clip(max=len(classes) - 1)
            network = network_of(self, len(classes))
            trained: list[Trained] = []
            seconds = 0.0
            for stack in self._stacks([fold for _, _, fold in members], plan.device):
                some, took = train(network, plan, corpus, numbers, stack)
                trained, seconds = trained + some, seconds + took
            for (model, rows, fold), one in zip(members, trained, strict=True):
                seen = corpus.words(rows)
                model.classes_, model.seed_ = classes, plan.seed
                model.vocabulary_ = tuple(words.words[code - 1] for code in seen[1:])
                model.network_, model.vectors_ = asdict(network), self.vectors
                model.fit_seconds_ = seconds / len(members)
                model._take(one, seen, fold.table)
                model._check([tokens[row] for row in fold.train[: plan.batch_size]])

    def _stacks(self, folds: list[Fold], device: str) -> list[list[Fold]]:
        """What to train together: on a GPU all that can be, on a CPU each fold alone, which is
        quicker there, since less memory is better cached."""
        return [[fold] for fold in folds] if torch.device(device).type == "cpu" else [folds]

    def _plan(self) -> Plan:
        return plan_of(self)

    def _table(
        self, words: Sequence[str], seed: int, texts: Sequence[Tokens] | None = None
    ) -> Array:
        """The vectors of words; those without one are trained on `texts`, if there are any."""
        return embedding(
            words,
            self.vectors,
            unknown="random" if texts is None else "word2vec",
            texts=texts,
            dimensions=self.dimensions,
            window=self.window,
            seed=seed,
        )

    def _split(
        self, labels: NDArray[Any], rows: Indices, stop_on: Indices | None, seed: int
    ) -> tuple[Indices, Indices]:
        """The rows to learn from, and those to stop on."""
        classes = np.unique(labels[rows])
        if len(classes) < 2:
            raise ValueError(f"labels must be of two classes at least, but are all of {classes}")
        if stop_on is None:
            kept = subset(labels[rows], 1 - self.validation_fraction, seed=seed, kind="classes")
            if self.validation_fraction and len(kept) == len(rows):
                warn(
                    f"validation_fraction={self.validation_fraction} of {len(rows)} texts of "
                    f"{len(classes)} classes is none: training does not stop early, and keeps its "
                    "last epoch, as with 0"
                )
            return rows[kept], np.delete(rows, kept)
        if not len(stop_on):
            raise ValueError("validation needs at least one text, but has none")
        foreign = labels[stop_on][~np.isin(labels[stop_on], classes)]
        if len(foreign):
            raise ValueError(
                f"validation has the label {str(foreign[0])!r}, which training has not"
            )
        return rows, stop_on

    def _class_weights(self, labels: NDArray[Any]) -> Array:
        _, counts = np.unique(labels, return_counts=True)
        even = np.ones(len(counts), dtype=np.float32)
        return (len(labels) / len(counts) / counts).astype(np.float32) if self.balance else even

    def _take(self, trained: Trained, known: NDArray[np.int32], table: Array) -> None:
        """Keep what training gave. Of all words, those of the training texts are `known`."""
        self.weights_ = trained.weights
        if self.channels != "nonstatic":
            self.weights_["static"] = table[known]
        if trained.table is not None:
            self.weights_["learned"] = trained.table[known]
        self.best_epoch_ = trained.best_epoch
        self.history_ = [asdict(epoch) for epoch in trained.history]
        self.n_iter_ = len(trained.history)

    def _check(self, tokens: Sequence[Tokens]) -> None:
        """Warn where training led nowhere. A loss is taken before the step that may break the
        weights, and these may be numbers that are too large: so look at what some texts give."""
        best = self.history_[self.best_epoch_ - 1]
        losses = np.array([best["loss"], best["valid_loss"] or 0.0])
        for numbers in (losses, *self.weights_.values(), self._outputs(tokens).numpy()):
            if not np.isfinite(numbers).all():
                message = "weights or losses are not finite numbers: try a smaller learning_rate"
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
        best = self.predict_proba(X).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[best]
        return labels

    def _outputs(self, tokens: Sequence[Tokens]) -> Tensor:
        """What the network gives for texts, in double precision."""
        network, device = Network(**self.network_), chosen(self.device)
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
        """The vectors of words in each channel. One that training has not seen has its given
        vector, or a random one, as it would have had there."""
        codes = codes_of(self.vocabulary_)
        at = np.array([codes.get(word, PADDING) for word in words], dtype=np.intp)
        seen = np.concatenate([[True], at > PADDING])  # padding is
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
