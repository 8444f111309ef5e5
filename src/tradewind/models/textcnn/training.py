"""Training TextCNN: batches, updates and early stopping, for all folds of a stack at once.

The data are copied to the device once. On a GPU, one step is recorded as a CUDA graph and then
replayed, so that a hundred small kernels cost one launch; a batch that is too large for the graph
runs without it. Randomness depends only on the seed, the epoch and the number of rows, so that a
fold learns in a stack what it learns alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import embedding, pad

from tradewind.models.devices import clock, count_epochs, tensor_cores, use_device
from tradewind.models.text import PADDING
from tradewind.models.textcnn.model import Layout, Network, Texts, cross_entropy, decide
from tradewind.models.textcnn.optimizers import DECAY, adadelta, adam
from tradewind.types import Indices

Array: TypeAlias = NDArray[np.float32]

_EAGER_STEPS = 3  # steps before a graph is recorded, in which the libraries set themselves up
_ROUND = 64  # the number of slots in a recorded step is a multiple of this


@dataclass(frozen=True)
class Settings:
    """How to train. With a `patience` of None, training never stops early."""

    optimizer: Literal["adadelta", "adam"]
    rate: float
    batch_size: int
    max_epochs: int
    patience: int | None
    l2_max: float | None
    seed: int
    device: str
    verbose: bool = False
    graph: bool = True  # record the step if there is a GPU


@dataclass(frozen=True)
class NetworkData:
    """The data of one network of a stack: the rows to train on, the rows for early stopping (empty:
    never stop), a weight for each class, and a table of word vectors, which networks may share."""

    train: Indices
    valid: Indices
    class_weights: Array
    table: Array


@dataclass(frozen=True)
class Epoch:
    """The results of one epoch. The validation is None if there are no rows for it."""

    loss: float
    valid_loss: float | None = None
    valid_accuracy: float | None = None


@dataclass
class Trained:
    """The result of one fold: the weights of its best epoch, and the history of all epochs."""

    weights: dict[str, Array] = field(default_factory=dict)
    table: Array | None = None  # the word vectors of the learned channel
    best_epoch: int = 0
    lowest: float = math.inf  # the lowest validation loss so far
    history: list[Epoch] = field(default_factory=list)

    def add(self, epoch: Epoch) -> bool:
        """Add an epoch to the history, and return whether it is the best so far."""
        self.history.append(epoch)
        loss = epoch.valid_loss
        better = loss is None or loss < self.lowest
        if better:
            self.lowest = math.inf if loss is None else loss
        if better or not self.best_epoch:  # a first loss may be no number
            self.best_epoch = len(self.history)
        return self.best_epoch == len(self.history)


def train(
    network: Network,
    settings: Settings,
    texts: Texts,
    labels: Indices,
    folds: Sequence[NetworkData],
) -> tuple[list[Trained], float]:
    """Train a network for each fold. Also returns the seconds of training, without copying the data
    to the device. All folds must have the same number of batches. If the GPU has not enough memory
    for all folds, one half is trained after the other."""
    try:
        with use_device(settings.device), tensor_cores():
            return _train(_Stack(network, settings, texts, labels, folds))
    except torch.OutOfMemoryError:
        if len(folds) == 1:
            raise
    torch.cuda.empty_cache()  # the stack was freed along with the error
    half = len(folds) // 2
    first, first_seconds = train(network, settings, texts, labels, folds[:half])
    second, second_seconds = train(network, settings, texts, labels, folds[half:])
    return first + second, first_seconds + second_seconds


def batches(n: int, batch_size: int, seed: int, epoch: int) -> Indices:
    """The order of n rows in an epoch: (batches, batch_size). The last batch is filled up with rows
    from the first."""
    order = np.random.default_rng([seed, epoch]).permutation(n)
    return np.resize(order, (-(-n // batch_size), batch_size))


def _train(stack: _Stack) -> tuple[list[Trained], float]:
    """Train a stack epoch by epoch. Also returns the seconds."""
    settings = stack.settings
    begin = clock(settings.device)
    trained = [Trained() for _ in stack.folds]
    live = list(trained)  # the folds in the stack, in its order
    learning = set(range(len(live)))  # places in the stack that have not stopped yet
    for number in count_epochs(settings.max_epochs, settings.verbose):
        results = stack.epoch(number)
        for place in sorted(learning):
            if live[place].add(results[place]):
                stack.remember(place)
            if settings.patience and number - live[place].best_epoch >= settings.patience:
                learning.remove(place)
        if not learning:
            break
        # a smaller stack needs a new graph, so on a GPU it shrinks only when half of it has stopped
        if len(learning) < len(live) and (not stack.is_recorded or 2 * len(learning) <= len(live)):
            stack.release(live, set(range(len(live))) - learning)
            live = [live[place] for place in sorted(learning)]
            stack.keep(sorted(learning))
            learning = set(range(len(live)))
    stack.release(live, set(range(len(live))))
    return trained, clock(settings.device) - begin


class _Stack:
    """The networks in training, on their device. Every tensor in `state` has a leading fold axis.
    All weights except the word vectors are in one flat tensor, so that one update serves all."""

    def __init__(
        self,
        network: Network,
        settings: Settings,
        texts: Texts,
        labels: Indices,
        folds: Sequence[NetworkData],
    ) -> None:
        self.network, self.settings, self.folds = network, settings, list(folds)
        self.device = torch.device(settings.device)
        self.texts = texts
        self.codes = self._tensor(texts.codes)
        self.begins = self._tensor(texts.begins)
        self.lengths = self._tensor(texts.lengths)
        self.labels = self._tensor(labels)
        self.class_weights = self._tensor(np.stack([fold.class_weights for fold in folds]))
        self.generator = torch.Generator(self.device).manual_seed(settings.seed)
        self.steps = torch.zeros((), device=self.device)  # the number of steps so far
        self.slots = 0  # the number of slots for words in a recorded step
        self.state: dict[str, Tensor] = {}
        self.static: Tensor | None = None  # (F or 1, words, D)

        tables = [fold.table for fold in folds]
        if all(table is tables[0] for table in tables):
            tables = tables[:1]  # all folds share one
        words = self._tensor(np.stack(tables))
        if network.channels != "nonstatic":
            self.static = words
        if network.learns_words:
            self._add_weights("table", words.expand(len(folds), -1, -1))
            self.state["table.seen"] = torch.zeros(
                self.state["table"].shape[:2], device=self.device
            )
            self.state["table.total"] = torch.zeros_like(self.state["table"])
        initial = network.initial(torch.Generator().manual_seed(settings.seed))
        flat = _flat(list(initial.values()), 0).to(self.device)
        self._add_weights("flat", flat.expand(len(folds), -1))
        self._make_views()

    def _tensor(self, array: NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    def _add_weights(self, name: str, start: Tensor) -> None:
        """Add weights to train, with the two moments of the optimizer and the best so far."""
        self.state[name] = start.clone(memory_format=torch.contiguous_format)
        for what in ("first", "second", "best"):
            self.state[f"{name}.{what}"] = torch.zeros_like(self.state[name])

    def _make_views(self) -> None:
        """Make the weights as views of the flat tensor, and discard the recorded step."""
        self.weights: dict[str, Tensor] = {}
        for name, part in self._parts(self.state["flat"]).items():
            self.weights[name] = part.detach().requires_grad_()
        n = len(self.folds)
        self.rows = torch.zeros(n, self.settings.batch_size, dtype=torch.int64, device=self.device)
        self.losses = torch.zeros(n, device=self.device)
        self.fold = torch.arange(n, device=self.device).unsqueeze(1)
        self.replay: Callable[[], None] | None = None
        self.eager = _EAGER_STEPS

    @property
    def is_recorded(self) -> bool:
        return self.settings.graph and self.device.type == "cuda"

    def _parts(self, flat: Tensor) -> dict[str, Tensor]:
        parts, begin = {}, 0
        for name, shape in self.network.shapes().items():
            end = begin + int(np.prod(shape))
            parts[name] = flat[..., begin:end].view(*flat.shape[:-1], *shape)
            begin = _aligned(end)
        return parts

    # ---- training ----

    def epoch(self, number: int) -> list[Epoch]:
        """Train on all training rows once, then evaluate the validation rows."""
        size, seed = self.settings.batch_size, self.settings.seed
        orders = [fold.train[batches(len(fold.train), size, seed, number)] for fold in self.folds]
        order = np.stack(orders, axis=1)  # (batches, F, batch_size)
        slots = (
            self.texts.lengths[order].sum(axis=2).max(axis=1)
        )  # for each batch, the largest of all folds
        self.slots = self.slots or _recorded_slots(slots)
        self.losses.zero_()
        for rows, n in zip(self._tensor(order), slots, strict=True):
            self.rows.copy_(rows)
            self._take_step(int(n))
        losses = (self.losses / len(order)).tolist()
        return [Epoch(*numbers) for numbers in zip(losses, *self._validate(), strict=True)]

    def _take_step(self, words: int) -> None:
        """One step with batches of up to `words` words. The recorded step is used if they fit."""
        if not self.is_recorded or self.eager or words > self.slots:
            self.eager = max(0, self.eager - 1)
            self._step(max(1, words))
            return
        if self.replay is None:
            self.replay = _record(lambda: self._step(self.slots), self.generator)
        self.replay()

    def _step(self, slots: int) -> None:
        """Train on one batch of every fold: outputs, losses, gradients, updates."""
        words, layout = self._words(self.rows, slots)
        channels, learned = self._channels(words)
        outputs = self.network(self.weights, channels, layout, self.generator)
        labels = self.labels[self.rows]
        weights = self.class_weights.gather(1, labels)
        losses = (cross_entropy(outputs, labels) * weights).mean(dim=1)
        gradients = torch.autograd.grad(losses.sum(), [*self.weights.values(), *learned])
        self.losses += losses.detach()
        self.steps += 1
        self._update("flat", _flat(gradients[: len(self.weights)], 1))
        if learned:
            self._update_words(words, gradients[-1])
        if self.settings.l2_max is not None:
            with torch.no_grad():
                self.network.constrain(self.weights, self.settings.l2_max)

    def _words(self, rows: Tensor, slots: int) -> tuple[Tensor, Layout]:
        """The codes of the words in some texts of each fold (F, slots), and their layout."""
        layout = Layout.of(self.lengths[rows], slots)
        at = self.begins[rows].gather(1, layout.text) + layout.place
        return self.codes[torch.where(layout.filled, at, len(self.codes) - 1)].long(), layout

    def _table_rows(self, words: Tensor, table: Tensor) -> Tensor:
        """The rows of words in the tables of all folds, put one below the other."""
        return words + self.fold * table.shape[1] if len(table) > 1 else words

    def _channels(self, words: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """The word vectors of each channel, and the learned ones among them."""
        channels, learned = [], []
        if self.static is not None:
            channels.append(
                embedding(self._table_rows(words, self.static), self.static.flatten(0, 1))
            )
        if self.network.learns_words:
            table = self.state["table"]
            found = embedding(self._table_rows(words, table), table.flatten(0, 1))
            learned.append(found.requires_grad_())
        return channels + learned, learned

    def _update(self, name: str, gradient: Tensor) -> None:
        weights, first, second = (self.state[name + of] for of in ("", ".first", ".second"))
        if self.settings.optimizer == "adadelta":
            weights.sub_(adadelta(gradient, first, second, DECAY), alpha=self.settings.rate)
        else:
            adam(weights, gradient, first, second, self.steps, self.settings.rate)

    def _update_words(self, words: Tensor, gradient: Tensor) -> None:
        """Update the vectors of the words in a batch. A word may occur many times; its gradients
        add up.

        If a gradient is zero, Adadelta does not change the weight; it only lets the two averages
        decay. For words outside the batch, this decay is made up for when they occur again."""
        at = self._table_rows(words, self.state["table"]).flatten()
        total = self.state["table.total"].flatten(0, 1)
        total.index_add_(0, at, gradient.flatten(0, 1))
        if self.settings.optimizer == "adam":
            self._update("table", self.state["table.total"])
        else:
            parts = ("table", "table.first", "table.second", "table.seen")
            table, squares, changes, seen = (self.state[part].flatten(0, 1) for part in parts)
            fade = DECAY ** (self.steps - seen[at])
            square, change = squares[at], changes[at]
            by = adadelta(total[at], square, change, fade.unsqueeze(1))
            # each occurrence of a word writes the same numbers, so their order does not matter
            table[at], squares[at], changes[at] = (
                table[at] - self.settings.rate * by,
                square,
                change,
            )
            seen[at] = self.steps
        total.index_fill_(0, at, 0.0)
        self.state["table"][:, PADDING].zero_()

    # ---- validating ----

    def _validate(self) -> tuple[list[float | None], list[float | None]]:
        """Loss and accuracy of each fold on its validation rows, or None without any."""
        sizes = [len(fold.valid) for fold in self.folds]
        longest = max(sizes)
        if not longest:
            return [None] * len(sizes), [None] * len(sizes)
        rows = self._tensor(np.stack([np.resize(fold.valid, longest) for fold in self.folds]))
        counted = torch.arange(longest) < torch.tensor(sizes).unsqueeze(1)
        counted = counted.to(self.device)
        labels = self.labels[rows]
        with torch.no_grad():
            words = (
                self.lengths[rows].max(dim=0).values.cpu().numpy()
            )  # the longest text of any fold
            parts = [rows[:, piece] for piece in self.network.pieces(words)]
            found = torch.cat([self._outputs(part) for part in parts], dim=1)
            losses = (cross_entropy(found, labels) * counted).sum(1) / counted.sum(1)
            right = ((decide(found) == labels) & counted).sum(1) / counted.sum(1)
        return losses.tolist(), right.tolist()

    def _outputs(self, rows: Tensor) -> Tensor:
        words, layout = self._words(rows, max(1, int(self.lengths[rows].sum(dim=1).max())))
        return self.network(self.weights, self._channels(words)[0], layout)

    # ---- keeping and releasing folds ----

    def _learned(self) -> list[str]:
        return ["flat", "table"] if self.network.learns_words else ["flat"]

    def remember(self, place: int) -> None:
        """Keep the current weights of this fold as its best so far."""
        for name in self._learned():
            self.state[f"{name}.best"][place].copy_(self.state[name][place])

    def release(self, live: Sequence[Trained], places: set[int]) -> None:
        """Copy the best weights of these folds into their results."""
        for place in places:
            parts = self._parts(self.state["flat.best"][place].cpu())
            live[place].weights = {name: part.numpy().copy() for name, part in parts.items()}
            if self.network.learns_words:
                live[place].table = self.state["table.best"][place].cpu().numpy()

    def keep(self, places: Sequence[int]) -> None:
        """Continue with only these folds."""
        at = torch.tensor(places, device=self.device)
        self.replay = None  # frees the memory of the recorded step
        self.state = {name: tensor[at] for name, tensor in self.state.items()}
        self.class_weights = self.class_weights[at]
        if self.static is not None and len(self.static) > 1:
            self.static = self.static[at]
        self.folds = [self.folds[place] for place in places]
        self._make_views()


def _record(step: Callable[[], None], generator: torch.Generator) -> Callable[[], None]:
    """Record a step on the GPU, and return a function that replays it."""
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(generator)
    # by default PyTorch reuses the stream of its first recording, which may be on another GPU
    stream = torch.cuda.Stream(generator.device)  # type: ignore[no-untyped-call]
    with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
        step()
    return graph.replay


def _recorded_slots(words: NDArray[np.intp]) -> int:
    """The number of slots of a recorded step, for batches with these numbers of words: somewhat
    more than the largest batch needs, but at most about 1.5 times the median."""
    n = min(int(words.max()), int(1.5 * np.median(words)))
    return (n // _ROUND + 2) * _ROUND


def _aligned(n: int) -> int:
    """The next multiple of 8: the fast matrix products need factors that begin there."""
    return -(-n // 8) * 8


def _flat(tensors: Sequence[Tensor], axis: int) -> Tensor:
    """Tensors joined into one, flattened from `axis` on, each at an aligned place."""
    flat = [tensor.flatten(axis) for tensor in tensors]
    return torch.cat([pad(t, (0, _aligned(t.shape[-1]) - t.shape[-1])) for t in flat], dim=axis)
