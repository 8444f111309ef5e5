"""The network of TextCNN, for any number of folds at once.

Every tensor has a leading fold axis F: a stack of F networks that are trained side by side, each on
its own texts, in the same few large operations. A single network is a stack of one.

    words (F, W)         all words of a batch of B texts, text after text, with blanks before each
      -> channels        their vectors (F, W, D): static, learned, or both; dropout d0
      -> max over time   for every filter, its largest value over the windows of a text
      -> activation      after adding the bias (F, B, filters); dropout d1
      -> hidden layer    relu; dropout d2; no such layer if hidden = 0
      -> outputs         one for two classes, otherwise one for each class

A text is surrounded by infinitely many zero vectors. Every window that overlaps the text counts;
any other window has the value 0. So the outputs for a text do not depend on the texts beside it,
nor on their lengths.

Two things save most of the work without changing the result. All activations are increasing, so the
maximum is taken before the activation. And texts are not padded to the longest one: each has as
many blanks (zero vectors) before it as a window can reach back, and nothing is computed after its
end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, elu, embedding, relu, selu
from torch.nn.functional import cross_entropy as softmax_cross_entropy

from tradewind.models.text import PADDING, Tokens, Vocabulary
from tradewind.types import Indices

Channels: TypeAlias = Literal["static", "nonstatic", "multichannel"]
Weights: TypeAlias = Mapping[str, Tensor]

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "elu": elu,
    "relu": relu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "selu": selu,
}
_DRAWN = 64  # words of a text for which dropout is drawn; it repeats after that
_PRODUCTS = 2**24  # products of words and filters at once, without gradients


@dataclass(frozen=True)
class Network:
    """The shape of a TextCNN, and its outputs for given weights and words."""

    channels: Channels
    dimensions: int
    filters: tuple[tuple[int, int], ...]  # (size, count) of each kind
    activation: str
    bias: bool
    hidden: int
    outputs: int
    dropout: tuple[float, float, float] = (0.0, 0.0, 0.0)

    @property
    def learns_words(self) -> bool:
        return self.channels != "static"

    @property
    def n_channels(self) -> int:
        return 2 if self.channels == "multichannel" else 1

    @property
    def order(self) -> tuple[tuple[int, int], ...]:
        """The kinds of filters, largest first, which is their order in the features."""
        return tuple(sorted(self.filters, reverse=True))

    @property
    def n_features(self) -> int:
        return sum(count for _, count in self.filters)

    @property
    def reach(self) -> tuple[int, ...]:
        """For every place in a window, how many filters reach it; these are the first ones."""
        largest = self.order[0][0]
        return tuple(sum(n for size, n in self.order if size > j) for j in range(largest))

    @property
    def blanks(self) -> int:
        """How many zero vectors must precede each text, because windows may begin there."""
        return len(self.reach) - 1

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the weights of one network, without the word vectors."""
        shapes: dict[str, tuple[int, ...]] = {}
        for channel in range(self.n_channels):
            # one column for each place of each filter, place by place
            shapes[f"filter{channel}"] = (self.dimensions, sum(self.reach))
        if self.bias:
            shapes["filter.bias"] = (self.n_features,)
        if self.hidden:
            shapes |= {"hidden": (self.n_features, self.hidden), "hidden.bias": (self.hidden,)}
        shapes["output"] = (self.hidden or self.n_features, self.outputs)
        shapes["output.bias"] = (self.outputs,)
        return shapes

    def initial(self, generator: torch.Generator) -> dict[str, Tensor]:
        """Initial weights: uniform as in Glorot and Bengio, and zero for biases."""
        weights = {}
        for name, shape in self.shapes().items():
            if name.endswith("bias"):
                weights[name] = torch.zeros(shape)
                continue
            limit = torch.tensor(math.sqrt(6 / sum(shape)))
            if name.startswith("filter"):
                width = self.n_channels * self.dimensions
                limits = [[math.sqrt(6 / (k * (width + n)))] * n for k, n in self.order]
                flat = torch.tensor([each for kind in limits for each in kind])
                limit = torch.cat([flat[:n] for n in self.reach])
            weights[name] = (torch.rand(shape, generator=generator) * 2 - 1) * limit
        return weights

    def __call__(
        self,
        weights: Weights,
        words: Sequence[Tensor],
        layout: Layout,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """The outputs (F, B, outputs) for the word vectors of each channel (F, W, D). A `generator`
        means training with dropout. The dropout is the same in every fold, so that a fold learns
        what it would learn alone."""
        d0, d1, d2 = self.dropout
        if d0 and generator is not None:
            words = [layout.drop(channel, d0, generator) for channel in words]
        pairs = [(x, weights[f"filter{channel}"]) for channel, x in enumerate(words)]
        features = max_over_time(self.reach, pairs, layout)
        if self.bias:
            features = features + weights["filter.bias"].unsqueeze(1)
        features = _drop(ACTIVATIONS[self.activation](features), d1, generator)
        if self.hidden:
            features = relu(_linear(features, weights, "hidden"))
            features = _drop(features, d2, generator)
        return _linear(features, weights, "output")

    def pieces(self, lengths: Indices) -> Iterator[slice]:
        """Slices of texts with these lengths, small enough to be computed in bounded memory."""
        ends, begin = lengths.cumsum() * sum(self.reach), 0
        while begin < len(lengths):
            done = ends[begin - 1] if begin else 0
            end = max(begin + 1, int(np.searchsorted(ends, done + _PRODUCTS, side="right")))
            yield slice(begin, end)
            begin = end

    def constrain(self, weights: Weights, l2_max: float) -> None:
        """Scale down the weights into each neuron to a norm of at most `l2_max`."""
        for name in ("hidden", "output"):
            if name in weights:
                w = weights[name]
                norms = w.norm(dim=1, keepdim=True)
                w.mul_((l2_max / norms.clamp_min(1e-12)).clamp_max(1.0))


def cross_entropy(outputs: Tensor, labels: Tensor) -> Tensor:
    """The loss of each text (F, B). A single output is the log-odds of the second of two
    classes."""
    if outputs.shape[-1] == 1:
        return binary_cross_entropy_with_logits(
            outputs.squeeze(-1), labels.to(outputs.dtype), reduction="none"
        )
    return softmax_cross_entropy(outputs.movedim(-1, 1), labels, reduction="none")


def decide(outputs: Tensor) -> Tensor:
    """The class of each text (F, B)."""
    if outputs.shape[-1] == 1:
        return (outputs.squeeze(-1) > 0).long()
    return outputs.argmax(-1)


def _linear(x: Tensor, weights: Weights, name: str) -> Tensor:
    return torch.baddbmm(weights[f"{name}.bias"].unsqueeze(1), x, weights[name])


def _drop(x: Tensor, rate: float, generator: torch.Generator | None) -> Tensor:
    """Dropout, the same in every fold."""
    if rate == 0 or generator is None:
        return x
    return x * _kept(x.shape[1:], rate, generator)


def _kept(shape: Sequence[int], rate: float, generator: torch.Generator) -> Tensor:
    """The factors of dropout: 0 with probability `rate`, otherwise 1/(1 - rate)."""
    drawn = torch.rand(*shape, generator=generator, device=generator.device)
    return (drawn >= rate) / (1 - rate)


@dataclass(frozen=True)
class Texts:
    """The words of all texts as codes, text after text, with blanks (padding) before each text and
    one blank at the very end. Blanks count as words."""

    codes: NDArray[np.int32]
    begins: Indices
    lengths: Indices

    @staticmethod
    def of(texts: Sequence[Tokens], vocabulary: Vocabulary, blanks: int) -> Texts:
        lengths = np.array([len(text) + blanks for text in texts], dtype=np.intp)
        codes: list[int] = []
        for text in texts:
            codes += [PADDING] * blanks
            codes += [vocabulary.codes[word] for word in text]
        codes.append(PADDING)
        return Texts(np.array(codes, dtype=np.int32), lengths.cumsum() - lengths, lengths)

    def words(self, rows: Indices) -> NDArray[np.int32]:
        """The distinct codes in some texts, including padding."""
        inside = np.zeros(len(self.lengths), dtype=bool)
        inside[rows] = True
        return np.union1d(self.codes[:-1][np.repeat(inside, self.lengths)], [PADDING])


@dataclass(frozen=True)
class Layout:
    """Where the words of a batch are. Each slot has the text of its word (`text`), the place of the
    word in the text, and the number of words from there to the end of the text (`room`). A slot
    that is not `filled` has a zero vector in a window of its own, assigned to any text."""

    text: Tensor  # (F, W)
    place: Tensor
    room: Tensor
    filled: Tensor  # whether the slot has a word
    n_texts: int

    @staticmethod
    def of(lengths: Tensor, slots: int) -> Layout:
        """The layout of texts with these lengths (F, B), text after text, in `slots` slots."""
        folds, n_texts = lengths.shape
        ends = lengths.cumsum(1)
        slot = torch.arange(slots, device=lengths.device).expand(folds, -1)
        text = torch.searchsorted(ends, slot.contiguous(), right=True)
        filled = text < n_texts
        text = torch.where(filled, text, slot % n_texts)
        room = torch.where(filled, ends.gather(1, text) - slot, 1)
        place = torch.where(filled, lengths.gather(1, text) - room, 0)
        return Layout(text, place, room, filled, n_texts)

    @property
    def rows(self) -> Tensor:
        """The text of each word, numbered across all folds: (F * W,)."""
        fold = torch.arange(len(self.text), device=self.text.device).unsqueeze(1)
        return (fold * self.n_texts + self.text).flatten()

    def inside(self, places: int, dtype: torch.dtype) -> Tensor:
        """1 for every place of a window inside its text, otherwise 0: (F, W, places)."""
        place = torch.arange(places, device=self.room.device)
        return (self.room.unsqueeze(2) > place).to(dtype)

    def drop(self, words: Tensor, rate: float, generator: torch.Generator) -> Tensor:
        """Dropout of word vectors, drawn for `_DRAWN` words of each text and repeated after these,
        so that the number of slots does not matter."""
        kept = _kept((self.n_texts * _DRAWN, words.shape[-1]), rate, generator)
        return words * embedding(self.text * _DRAWN + self.place % _DRAWN, kept)


def max_over_time(
    reach: Sequence[int], pairs: Sequence[tuple[Tensor, Tensor]], layout: Layout
) -> Tensor:
    """The largest value of each filter over the windows of each text, at least 0: (F, B, filters).
    `pairs` are the channels (F, W, D) with their filters (F, D, sum of `reach`)."""
    flat = [tensor for pair in pairs for tensor in pair]
    best = _MaxOverTime.apply(tuple(reach), layout, *flat)  # type: ignore[no-untyped-call]
    return cast(Tensor, best)


class _MaxOverTime(torch.autograd.Function):
    """One matrix product multiplies every word with every place of every filter; the value of a
    window is the sum over a diagonal. The gradient flows only to the best window of each text
    (equally, if there are several), so the backward pass needs to know only which these were."""

    @staticmethod
    def forward(ctx: Any, reach: tuple[int, ...], layout: Layout, *flat: Tensor) -> Tensor:
        products = None
        for x, w in zip(flat[::2], flat[1::2], strict=True):
            products = torch.bmm(x, w) if products is None else products.baddbmm_(x, w)
        assert products is not None
        inside = layout.inside(len(reach), products.dtype)
        windows = products[:, :, : reach[0]].contiguous()
        for j, n, product in _places(reach, products):
            windows[:, :-j, :n].addcmul_(product[:, j:], inside[:, :-j, j : j + 1])
        windows = windows.flatten(0, 1)
        rows = layout.rows
        index = rows.unsqueeze(1).expand_as(windows)
        best = windows.new_zeros(len(inside) * layout.n_texts, windows.shape[1])
        best.scatter_reduce_(0, index, windows, "amax")
        is_best = windows == best[rows]
        count = torch.zeros_like(best).scatter_add_(0, index, is_best.to(best.dtype))
        share = (best > 0) / count.clamp_min_(1)
        ctx.reach, ctx.layout = reach, layout
        ctx.save_for_backward(inside, is_best, share, *flat)
        return best.view(len(inside), layout.n_texts, -1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        inside, is_best, share, *flat = ctx.saved_tensors
        of_text = gradients[0].reshape(share.shape) * share
        windows = (of_text[ctx.layout.rows] * is_best).view(*inside.shape[:2], -1)
        products = windows.new_zeros(*inside.shape[:2], sum(ctx.reach))
        products[:, :, : ctx.reach[0]] = windows
        for j, n, product in _places(ctx.reach, products):
            torch.mul(windows[:, :-j, :n], inside[:, :-j, j : j + 1], out=product[:, j:])
        out: list[Tensor | None] = [None, None]
        for x, w in zip(flat[::2], flat[1::2], strict=True):
            wants_x, wants_w = ctx.needs_input_grad[len(out) : len(out) + 2]
            out.append(torch.bmm(products, w.mT) if wants_x else None)
            out.append(torch.bmm(x.mT, products) if wants_w else None)
        return tuple(out)


def _places(reach: Sequence[int], products: Tensor) -> Iterator[tuple[int, int, Tensor]]:
    """For the second, third, … place in a window: its number j, the number of filters that reach
    it, and their products. Windows are never longer than the batch."""
    begin = reach[0]
    for j, n in enumerate(reach[1 : products.shape[1]], 1):
        yield j, n, products[:, :, begin : begin + n]
        begin += n
