"""How TextCNN learns: batches, optimizers, early stopping, for all folds of a stack at once.

The data lie on the device from the start. On a GPU one step is recorded as a CUDA graph and then
replayed, so that a hundred small kernels cost one launch; a batch that is out of the ordinary goes
without.
Randomness comes from the seed, the epoch and the number of rows alone, so that a fold learns in a
stack what it learns alone.
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

from tradewind.models.devices import clock, current, epochs, tensor_cores
from tradewind.models.text import PADDING
from tradewind.models.textcnn.model import Layout, Network, Texts, cross_entropy, decide
from tradewind.models.textcnn.optimizers import DECAY, adadelta, adam
from tradewind.types import Indices

Array: TypeAlias = NDArray[np.float32]

_EAGER_STEPS = 3  # real ones, before a graph is recorded: libraries set themselves up in them
_ROUND = 64  # the room for words in a recorded step is a multiple of this


@dataclass(frozen=True)
class Plan:
    """How to train; a `patience` of None never stops early."""

    optimizer: Literal["adadelta", "adam"]
    rate: float
    batch_size: int
    max_epochs: int
    patience: int | None
    l2_max: float | None
    seed: int
    device: str
    verbose: bool = False
    graph: bool = True  # record the step where there is a GPU


@dataclass(frozen=True)
class Fold:
    """What one network of a stack learns from: rows of the data, and the rows it stops on (none:
    it never stops); a weight for each class; word vectors, which may be the same as another's."""

    train: Indices
    valid: Indices
    class_weights: Array
    table: Array


@dataclass(frozen=True)
class Epoch:
    loss: float
    valid_loss: float | None = None
    valid_accuracy: float | None = None


@dataclass
class Trained:
    """What became of a fold: the weights of its best epoch, and how it came to them."""

    weights: dict[str, Array] = field(default_factory=dict)
    table: Array | None = None  # of the learned channel
    best_epoch: int = 0
    lowest: float = math.inf  # of the validation losses
    history: list[Epoch] = field(default_factory=list)

    def improved(self, epoch: Epoch) -> bool:
        """Take note of an epoch, and say whether it is the best so far."""
        self.history.append(epoch)
        loss = epoch.valid_loss
        better = loss is None or loss < self.lowest
        if better:
            self.lowest = math.inf if loss is None else loss
        if better or not self.best_epoch:  # a first loss may be no number
            self.best_epoch = len(self.history)
        return self.best_epoch == len(self.history)


def train(
    network: Network, plan: Plan, texts: Texts, labels: Indices, folds: Sequence[Fold]
) -> tuple[list[Trained], float]:
    """Train a network for each fold, and the seconds that took once the data were in place. The
    folds must have equally many batches. Where a GPU has no room for all, they train in halves."""
    try:
        with current(plan.device), tensor_cores():
            return _train(_Stack(network, plan, texts, labels, folds))
    except torch.OutOfMemoryError:
        if len(folds) == 1:
            raise
    torch.cuda.empty_cache()  # the stack is gone, now that the error is
    half = len(folds) // 2
    first, some = train(network, plan, texts, labels, folds[:half])
    second, more = train(network, plan, texts, labels, folds[half:])
    return first + second, some + more


def batches(n: int, batch_size: int, seed: int, epoch: int) -> Indices:
    """The order in which an epoch takes n rows: (batches, batch_size). The last batch is filled up
    with rows from the front."""
    order = np.random.default_rng([seed, epoch]).permutation(n)
    return np.resize(order, (-(-n // batch_size), batch_size))


def _train(stack: _Stack) -> tuple[list[Trained], float]:
    """Train a stack epoch by epoch, and time it."""
    plan = stack.plan
    begin = clock(plan.device)
    trained = [Trained() for _ in stack.folds]
    live = list(trained)  # those in the stack, in its order
    waiting = set(range(len(live)))  # places in the stack that have not stopped yet
    for number in epochs(plan.max_epochs, plan.verbose):
        results = stack.epoch(number)
        for place in sorted(waiting):
            if live[place].improved(results[place]):
                stack.remember(place)
            if plan.patience and number - live[place].best_epoch >= plan.patience:
                waiting.remove(place)
        if not waiting:
            break
        # a smaller stack is a new graph, so a GPU carries on until half of it is idle
        if len(waiting) < len(live) and (not stack.recorded or 2 * len(waiting) <= len(live)):
            stack.release(live, set(range(len(live))) - waiting)
            live = [live[place] for place in sorted(waiting)]
            stack.keep(sorted(waiting))
            waiting = set(range(len(live)))
    stack.release(live, set(range(len(live))))
    return trained, clock(plan.device) - begin


class _Stack:
    """The networks that are learning, on their device. Everything in `state` has a leading fold
    axis; all weights but the word vectors lie in one flat tensor, which one update serves."""

    def __init__(
        self,
        network: Network,
        plan: Plan,
        texts: Texts,
        labels: Indices,
        folds: Sequence[Fold],
    ) -> None:
        self.network, self.plan, self.folds = network, plan, list(folds)
        self.device = torch.device(plan.device)
        self.texts = texts
        self.codes = self._tensor(texts.codes)
        self.begins = self._tensor(texts.begins)
        self.lengths = self._tensor(texts.lengths)
        self.labels = self._tensor(labels)
        self.class_weights = self._tensor(np.stack([fold.class_weights for fold in folds]))
        self.generator = torch.Generator(self.device).manual_seed(plan.seed)
        self.steps = torch.zeros((), device=self.device)  # taken so far
        self.slots = 0  # for the words of a batch, in a recorded step
        self.state: dict[str, Tensor] = {}
        self.static: Tensor | None = None  # (F or 1, words, D)

        tables = [fold.table for fold in folds]
        if all(table is tables[0] for table in tables):
            tables = tables[:1]  # one for all
        words = self._tensor(np.stack(tables))
        if network.channels != "nonstatic":
            self.static = words
        if network.learns_words:
            self._learn("table", words.expand(len(folds), -1, -1))
            self.state["table.seen"] = torch.zeros(
                self.state["table"].shape[:2], device=self.device
            )
            self.state["table.total"] = torch.zeros_like(self.state["table"])
        initial = network.initial(torch.Generator().manual_seed(plan.seed))
        flat = _flat(list(initial.values()), 0).to(self.device)
        self._learn("flat", flat.expand(len(folds), -1))
        self._look()

    def _tensor(self, array: NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    def _learn(self, name: str, start: Tensor) -> None:
        self.state[name] = start.clone(memory_format=torch.contiguous_format)
        for what in ("first", "second", "best"):  # two moments, and the best so far
            self.state[f"{name}.{what}"] = torch.zeros_like(self.state[name])

    def _look(self) -> None:
        """Make the weights anew as views of the flat tensor, and forget what was recorded."""
        self.weights: dict[str, Tensor] = {}
        for name, part in self._parts(self.state["flat"]).items():
            self.weights[name] = part.detach().requires_grad_()
        n = len(self.folds)
        self.rows = torch.zeros(n, self.plan.batch_size, dtype=torch.int64, device=self.device)
        self.losses = torch.zeros(n, device=self.device)
        self.fold = torch.arange(n, device=self.device).unsqueeze(1)
        self.replay: Callable[[], None] | None = None
        self.eager = _EAGER_STEPS

    @property
    def recorded(self) -> bool:
        return self.plan.graph and self.device.type == "cuda"

    def _parts(self, flat: Tensor) -> dict[str, Tensor]:
        parts, begin = {}, 0
        for name, shape in self.network.shapes().items():
            end = begin + int(np.prod(shape))
            parts[name] = flat[..., begin:end].view(*flat.shape[:-1], *shape)
            begin = _aligned(end)
        return parts

    # ---- learning ----

    def epoch(self, number: int) -> list[Epoch]:
        """Go through all training rows once, then look at the validation rows."""
        size, seed = self.plan.batch_size, self.plan.seed
        orders = [fold.train[batches(len(fold.train), size, seed, number)] for fold in self.folds]
        order = np.stack(orders, axis=1)  # (batches, F, batch_size)
        slots = self.texts.lengths[order].sum(axis=2).max(axis=1)  # each batch's largest of folds
        self.slots = self.slots or _room(slots)
        self.losses.zero_()
        for rows, n in zip(self._tensor(order), slots, strict=True):
            self.rows.copy_(rows)
            self._take_step(int(n))
        losses = (self.losses / len(order)).tolist()
        return [Epoch(*all_of) for all_of in zip(losses, *self._validate(), strict=True)]

    def _take_step(self, words: int) -> None:
        """One step with batches of so many words at most, recorded where they fit in."""
        if not self.recorded or self.eager or words > self.slots:
            self.eager = max(0, self.eager - 1)
            self._step(max(1, words))
            return
        if self.replay is None:
            self.replay = _record(lambda: self._step(self.slots), self.generator)
        self.replay()

    def _step(self, slots: int) -> None:
        """One batch of every fold: outputs, losses, gradients, updates."""
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
        if self.plan.l2_max is not None:
            with torch.no_grad():
                self.network.constrain(self.weights, self.plan.l2_max)

    def _words(self, rows: Tensor, slots: int) -> tuple[Tensor, Layout]:
        """The codes of the words in some texts of each fold (F, slots), and how they lie."""
        layout = Layout.of(self.lengths[rows], slots)
        at = self.begins[rows].gather(1, layout.text) + layout.place
        return self.codes[torch.where(layout.filled, at, len(self.codes) - 1)].long(), layout

    def _of_fold(self, words: Tensor, table: Tensor) -> Tensor:
        """The rows of words in the tables of all folds, one after the other."""
        return words + self.fold * table.shape[1] if len(table) > 1 else words

    def _channels(self, words: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """The word vectors of each channel, and those among them that are learned."""
        channels, learned = [], []
        if self.static is not None:
            channels.append(embedding(self._of_fold(words, self.static), self.static.flatten(0, 1)))
        if self.network.learns_words:
            table = self.state["table"]
            found = embedding(self._of_fold(words, table), table.flatten(0, 1))
            learned.append(found.requires_grad_())
        return channels + learned, learned

    def _update(self, name: str, gradient: Tensor) -> None:
        weights, first, second = (self.state[name + of] for of in ("", ".first", ".second"))
        if self.plan.optimizer == "adadelta":
            weights.sub_(adadelta(gradient, first, second, DECAY), alpha=self.plan.rate)
        else:
            adam(weights, gradient, first, second, self.steps, self.plan.rate)

    def _update_words(self, words: Tensor, gradient: Tensor) -> None:
        """Update the vectors of the words in a batch. A word may be there many times, and counts
        with the sum of its gradients.

        Adadelta leaves a weight alone whose gradient is zero, and only lets its two averages fade:
        what the words outside the batch miss is made good when they are seen again."""
        at = self._of_fold(words, self.state["table"]).flatten()
        total = self.state["table.total"].flatten(0, 1)
        total.index_add_(0, at, gradient.flatten(0, 1))
        if self.plan.optimizer == "adam":
            self._update("table", self.state["table.total"])
        else:
            parts = ("table", "table.first", "table.second", "table.seen")
            table, squares, changes, seen = (self.state[part].flatten(0, 1) for part in parts)
            fade = DECAY ** (self.steps - seen[at])
            square, change = squares[at], changes[at]
            by = adadelta(total[at], square, change, fade.unsqueeze(1))
            # the same word gives the same numbers each time, so it does not matter which is last
            table[at], squares[at], changes[at] = table[at] - self.plan.rate * by, square, change
            seen[at] = self.steps
        total.index_fill_(0, at, 0.0)
        self.state["table"][:, PADDING].zero_()

    # ---- looking ----

    def _validate(self) -> tuple[list[float | None], list[float | None]]:
        """Loss and accuracy of each fold on its validation rows; None where it has none."""
        sizes = [len(fold.valid) for fold in self.folds]
        longest = max(sizes)
        if not longest:
            return [None] * len(sizes), [None] * len(sizes)
        rows = self._tensor(np.stack([np.resize(fold.valid, longest) for fold in self.folds]))
        counted = torch.arange(longest) < torch.tensor(sizes).unsqueeze(1)
        counted = counted.to(self.device)
        labels = self.labels[rows]
        with torch.no_grad():
            words = self.lengths[rows].max(dim=0).values.cpu().numpy()  # of the longest fold
            parts = [rows[:, piece] for piece in self.network.pieces(words)]
            found = torch.cat([self._outputs(part) for part in parts], dim=1)
            losses = (cross_entropy(found, labels) * counted).sum(1) / counted.sum(1)
            right = ((decide(found) == labels) & counted).sum(1) / counted.sum(1)
        return losses.tolist(), right.tolist()

    def _outputs(self, rows: Tensor) -> Tensor:
        words, layout = self._words(rows, max(1, int(self.lengths[rows].sum(dim=1).max())))
        return self.network(self.weights, self._channels(words)[0], layout)

    # ---- folds that come and go ----

    def _learned(self) -> list[str]:
        return ["flat", "table"] if self.network.learns_words else ["flat"]

    def remember(self, place: int) -> None:
        """The weights of this fold are its best so far."""
        for name in self._learned():
            self.state[f"{name}.best"][place].copy_(self.state[name][place])

    def release(self, live: Sequence[Trained], places: set[int]) -> None:
        """Hand over the best weights of some folds."""
        for place in places:
            parts = self._parts(self.state["flat.best"][place].cpu())
            live[place].weights = {name: part.numpy().copy() for name, part in parts.items()}
            if self.network.learns_words:
                live[place].table = self.state["table.best"][place].cpu().numpy()

    def keep(self, places: Sequence[int]) -> None:
        """Go on with these folds alone."""
        at = torch.tensor(places, device=self.device)
        self.replay = None  # and with it the memory of what was recorded
        self.state = {name: tensor[at] for name, tensor in self.state.items()}
        self.class_weights = self.class_weights[at]
        if self.static is not None and len(self.static) > 1:
            self.static = self.static[at]
        self.folds = [self.folds[place] for place in places]
        self._look()


def _record(step: Callable[[], None], generator: torch.Generator) -> Callable[[], None]:
    """Record what a step does on the GPU, and give what does that again."""
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(generator)
    # by itself PyTorch takes the stream of its first recording, which may be another GPU's
    stream = torch.cuda.Stream(generator.device)  # type: ignore[no-untyped-call]
    with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
        step()
    return graph.replay


def _room(words: NDArray[np.intp]) -> int:
    """Slots for a recorded step, where batches have so many words: for the largest and somewhat
    more, but not for what is far out of the ordinary."""
    n = min(int(words.max()), int(1.5 * np.median(words)))
    return (n // _ROUND + 2) * _ROUND


def _aligned(n: int) -> int:
    """The next multiple of 8: the fast matrix products want their factors to begin at such."""
    return -(-n // 8) * 8


def _flat(tensors: Sequence[Tensor], axis: int) -> Tensor:
    """Tensors side by side in one, from `axis` on, each at an aligned place."""
    flat = [tensor.flatten(axis) for tensor in tensors]
    return torch.cat([pad(t, (0, _aligned(t.shape[-1]) - t.shape[-1])) for t in flat], dim=axis)
