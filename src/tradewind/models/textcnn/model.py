"""The network of TextCNN, for any number of folds at once.

Every tensor has a leading fold axis F: a stack of F networks that learn side by side, each from
its own texts, in the same few large operations. One network is a stack of one.

    words (F, W)         all words of a batch of B texts, text after text, some blanks before each
      -> channels        their vectors (F, W, D): static, learned, or both; dropout d0
      -> max over time   for every filter size: its filters at each word, the best of a text kept
      -> activation      of that plus a bias (F, B, filters); dropout d1
      -> hidden layer    relu; dropout d2; left out where h = 0
      -> outputs         one for two classes, else one for each

A text lies between zeros without end, and every window that touches it counts; one that does not
gives 0. So what a text gives does not depend on the texts beside it, nor on how long they are.

Two things save most of the work and change no number. All activations grow with their argument, so
the maximum is taken before them. And texts are not padded to the longest: before each stand as many
blanks (zero vectors) as a window can reach back, and what lies behind it is never computed.
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
_DRAWN = 64
_PRODUCTS = 2**24  # of words and filters at once, where no gradient is needed


@dataclass(frozen=True)
class Network:
    """The shape of a TextCNN, and what it computes from weights and words."""

    channels: Channels
    dimensions: int
    filters: tuple[tuple[int, int], ...]  # (size, how many) of each kind
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
        """The kinds of filters, the largest first: as they lie in the features."""
        return tuple(sorted(self.filters, reverse=True))

    @property
    def n_features(self) -> int:
        return sum(count for _, count in self.filters)

    @property
    def reach(self) -> tuple[int, ...]:
        """For every place in a window, how many filters reach it: always the first ones."""
        largest = self.order[0][0]
        return tuple(sum(n for size, n in self.order if size > j) for j in range(largest))

    @property
    def blanks(self) -> int:
        """How many zero vectors must stand before each text: windows may begin there."""
        return len(self.reach) - 1

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The weights of one network, the word vectors left out."""
        shapes: dict[str, tuple[int, ...]] = {}
        for channel in range(self.n_channels):
            # a column for each place of each filter, place by place
            shapes[f"filter{channel}"] = (self.dimensions, sum(self.reach))
        if self.bias:
            shapes["filter.bias"] = (self.n_features,)
        if self.hidden:
            shapes |= {"hidden": (self.n_features, self.hidden), "hidden.bias": (self.hidden,)}
        shapes["output"] = (self.hidden or self.n_features, self.outputs)
        shapes["output.bias"] = (self.outputs,)
        return shapes

    def initial(self, generator: torch.Generator) -> dict[str, Tensor]:
        """Weights to start from: uniform as Glorot and Bengio have it, biases zero."""
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
        """The outputs (F, B, outputs) for the word vectors of each channel (F, W, D). With a
        `generator` this is training, and things are dropped: the same ones in every fold, so
        that a fold learns what it would learn alone."""
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
        """Texts of these lengths, cut into pieces that are computed in bounded memory."""
        ends, begin = lengths.cumsum() * sum(self.reach), 0
        while begin < len(lengths):
            done = ends[begin - 1] if begin else 0
            end = max(begin + 1, int(np.searchsorted(ends, done + _PRODUCTS, side="right")))
            yield slice(begin, end)
            begin = end

    def constrain(self, weights: Weights, l2_max: float) -> None:
        """Scale down what enters any neuron to a norm of `l2_max` at most."""
        for name in ("hidden", "output"):
            if name in weights:
                w = weights[name]
                norms = w.norm(dim=1, keepdim=True)
                w.mul_((l2_max / norms.clamp_min(1e-12)).clamp_max(1.0))


def cross_entropy(outputs: Tensor, labels: Tensor) -> Tensor:
    """The loss of each text (F, B): one output is the log-odds of the second of two classes."""
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
    """What to multiply with: 0 with probability `rate`, else what makes up for that."""
    drawn = torch.rand(*shape, generator=generator, device=generator.device)
    return (drawn >= rate) / (1 - rate)


@dataclass(frozen=True)
class Texts:
    """The words of all texts as codes, one text after the other, with blanks (padding) before each;
    one more stands at the end of all. Blanks count as words."""

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
        """The codes in some texts, each once, padding among them."""
        inside = np.zeros(len(self.lengths), dtype=bool)
        inside[rows] = True
        return np.union1d(self.codes[:-1][np.repeat(inside, self.lengths)], [PADDING])


@dataclass(frozen=True)
class Layout:
    """Where the words of a batch lie: which text each is of, its place there, and how many words
    the text has from there on. Slots that are left over hold no word: a zero vector in a window of
    its own, which can be of any text."""

    text: Tensor  # (F, W)
    place: Tensor
    room: Tensor
    filled: Tensor  # whether a slot has a word
    n_texts: int

    @staticmethod
    def of(lengths: Tensor, slots: int) -> Layout:
        """Texts with so many words (F, B), one after the other, in as many `slots`."""
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
        """The text of each word among those of all folds: (F * W,)."""
        fold = torch.arange(len(self.text), device=self.text.device).unsqueeze(1)
        return (fold * self.n_texts + self.text).flatten()

    def inside(self, places: int, dtype: torch.dtype) -> Tensor:
        """1 for every place of a window that is still in its text, else 0: (F, W, places)."""
        place = torch.arange(places, device=self.room.device)
        return (self.room.unsqueeze(2) > place).to(dtype)

    def drop(self, words: Tensor, rate: float, generator: torch.Generator) -> Tensor:
        """Dropout of word vectors, drawn for `_DRAWN` words of each text and repeated behind
        them: the number of slots must not matter."""
        kept = _kept((self.n_texts * _DRAWN, words.shape[-1]), rate, generator)
        return words * embedding(self.text * _DRAWN + self.place % _DRAWN, kept)


def max_over_time(
    reach: Sequence[int], pairs: Sequence[tuple[Tensor, Tensor]], layout: Layout
) -> Tensor:
    """What each filter finds at the best window of each text, at least 0: (F, B, filters). `pairs`
    are the channels (F, W, D), each with its part of the filters (F, D, sum of `reach`)."""
    flat = [tensor for pair in pairs for tensor in pair]
    best = _MaxOverTime.apply(tuple(reach), layout, *flat)  # type: ignore[no-untyped-call]
    return cast(Tensor, best)


class _MaxOverTime(torch.autograd.Function):
    """One matrix product gives every word times every place of every filter; a window is the sum
    over a diagonal of that. Backwards only the best windows of each text count (equally, if there
    are several), so that nothing need be kept but which those were."""

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
    """For the second, third, … place in a window: its number j, how many filters reach it, and
    their products. In a batch of j words no window has so many."""
    begin = reach[0]
    for j, n in enumerate(reach[1 : products.shape[1]], 1):
        yield j, n, products[:, :, begin : begin + n]
        begin += n
