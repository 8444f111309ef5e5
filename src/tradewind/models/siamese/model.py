"""The network: word vectors, a BiLSTM, the maximum over time, and cosines between the results.

Shapes: n texts of T tokens, word vectors of D numbers, H hidden units in each direction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from torch import Tensor, nn
from torch.nn import functional

from tradewind.models.text import PADDING, Tokens, Vocabulary

Weights: TypeAlias = dict[str, NDArray[np.float32]]
Side: TypeAlias = Literal["question", "answer"]

VECTORS = "vectors"
_GATES = 4  # of an LSTM, in PyTorch's order: input, forget, cell, output
_FORGET = 1
# without gradients:
_CHUNK = 1024  # texts encoded at once
_PAIRS = 2**16  # pairs of encodings multiplied at once


@dataclass(frozen=True)
class Texts:
    """Texts as codes on a device. Their lengths stay on the host, so that the width of a batch is
    known without waiting for the device."""

    codes: Tensor  # (n, T)
    lengths: NDArray[np.int64]  # (n,)

    @staticmethod
    def of(
        tokens: Sequence[Tokens], words: Vocabulary, max_length: int, device: torch.device
    ) -> Texts:
        """Tokenized texts, cut after `max_length` tokens. A text without tokens is read as one
        unknown word, so that every text has an encoding."""
        lengths = np.array([max(1, min(len(text), max_length)) for text in tokens])
        return Texts(to_device(words.encode(tokens, lengths.max()), device), lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    def batch(self, rows: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """The codes (n, T) and the mask (n, T) of some texts. T is the length of the longest."""
        device = self.codes.device
        lengths = self.lengths[rows]
        width = int(lengths.max())
        codes = self.codes[:, :width].index_select(0, to_device(rows, device))
        return codes, torch.arange(width, device=device) < to_device(lengths, device)[:, None]


def to_device(array: NDArray[Any], device: torch.device) -> Tensor:
    return torch.from_numpy(array).to(device)


def initial_weights(
    vectors: NDArray[np.float32], hidden: int, *, shared: bool, rng: np.random.Generator
) -> Weights:
    """Initial weights: orthogonal between hidden units, and an open forget gate. Two encoders begin
    with equal weights. Otherwise cosines would be meaningless at first, and nothing could be
    learned from the hardest wrong answers."""
    weights: Weights = {VECTORS: np.asarray(vectors, dtype=np.float32)}
    inputs = vectors.shape[1]
    for direction in ("", "_reverse"):
        limit = np.sqrt(6 / (inputs + hidden))
        W = rng.uniform(-limit, limit, (_GATES, hidden, inputs + 1))
        W[:, :, -1] = 0.0
        W[_FORGET, :, -1] = 1.0
        with threadpool_limits(1):  # on busy cores, several threads take seconds
            U = np.linalg.qr(rng.standard_normal((_GATES, hidden, hidden)))[0]
        for name, w in (("ih", W), ("hh", U)):
            for encoder in range(1 if shared else 2):
                key = f"encoders.{encoder}.weight_{name}_l0{direction}"
                weights[key] = w.reshape(_GATES * hidden, -1).astype(np.float32)
    return weights


class Siamese(nn.Module):
    """One BiLSTM for questions and answers, or one for each, over the same word vectors."""

    def __init__(self, weights: Mapping[str, NDArray[np.float32]], device: torch.device) -> None:
        super().__init__()
        inputs = weights["encoders.0.weight_ih_l0"].shape[1]
        self.hidden = hidden = weights["encoders.0.weight_hh_l0"].shape[1]
        count = sum(name.endswith("weight_ih_l0") for name in weights)
        self.vectors = nn.Parameter(torch.empty(weights[VECTORS].shape))
        # A bias is the weight of an extra input that is 1 on words and 0 on padding. Padding thus
        # leaves a zero state unchanged, so the backward direction starts at the last word of each
        # text, and texts of different lengths can be encoded in one call.
        self.encoders = nn.ModuleList(
            nn.LSTM(inputs, hidden, batch_first=True, bidirectional=True, bias=False, device="meta")
            for _ in range(count)
        )
        self.to_empty(device=device)  # "meta" draws nothing from the global generator
        self.load_state_dict({name: torch.tensor(w) for name, w in weights.items()})

    def forward(
        self, codes: Tensor, mask: Tensor, side: Side, dropout: Dropout | None = None
    ) -> Tensor:
        """The encodings (n, 2H) of texts, each with norm 1."""
        words = functional.embedding(codes, self.vectors, padding_idx=PADDING)
        if dropout:
            words = dropout(words)
        lstm = self.encoders[-1 if side == "answer" else 0]
        states, _ = lstm(torch.cat([words, mask[:, :, None].to(words)], dim=2))
        encoded = states.masked_fill(~mask[:, :, None], -torch.inf).amax(dim=1)
        return functional.normalize(encoded)

    def weights(self) -> Weights:
        return {name: w.detach().cpu().numpy().copy() for name, w in self.state_dict().items()}


@dataclass(frozen=True)
class Dropout:
    """Dropout with its own generator instead of PyTorch's global one."""

    rate: float
    generator: torch.Generator

    def __call__(self, x: Tensor) -> Tensor:
        if not self.rate:
            return x
        kept = torch.empty_like(x).bernoulli_(1 - self.rate, generator=self.generator)
        return x * kept / (1 - self.rate)


def ranking_loss(cosines: Tensor, correct: Tensor, margin: float, hardest: int = 1) -> Tensor:
    """The mean of max(0, margin - cos(q, a+) + cos(q, a-)) over questions q and the `hardest`
    wrong answers a- of each.

    `cosines` (n, m) compare n questions with m >= n answers. Answer i is a correct answer of
    question i. `correct` (n, m) marks all correct answers, which never count as wrong.
    """
    wrong = cosines.masked_fill(correct, -torch.inf)
    nearest = wrong.topk(min(hardest, wrong.shape[1]), dim=1).values
    return functional.relu(margin - cosines.diagonal()[:, None] + nearest).mean()


@torch.no_grad()
def encode(network: Siamese, texts: Texts, side: Side) -> Tensor:
    """The encodings (n, 2H) of all texts, computed in chunks of texts of similar length."""
    order = np.argsort(texts.lengths, kind="stable")
    parts = [
        network(*texts.batch(order[i : i + _CHUNK]), side) for i in range(0, len(order), _CHUNK)
    ]
    return torch.cat(parts)[to_device(np.argsort(order), network.vectors.device)]


@torch.no_grad()
def cosines_of(questions: Tensor, answers: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """The cosines of the encodings questions[rows[i]] and answers[columns[i]], for all i."""
    parts = [
        (questions[rows[i : i + _PAIRS]] * answers[columns[i : i + _PAIRS]]).sum(dim=1)
        for i in range(0, len(rows), _PAIRS)
    ]
    return torch.cat(parts)
