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
_GATES = 4  # of an LSTM: input, forget, cell, output, in PyTorch's order
_FORGET = 1
_CHUNK = 1024  # texts encoded at once, and
_PAIRS = 2**16  # pairs of encodings multiplied at once, where no gradient is needed


@dataclass(frozen=True)
class Texts:
    """Texts as codes on a device. How many tokens each has stays on the host, so that the width of
    a batch is known without waiting for the device."""

    codes: Tensor  # (n, T)
    lengths: NDArray[np.int64]  # (n,)

    @staticmethod
    def of(
        tokens: Sequence[Tokens], words: Vocabulary, max_length: int, device: torch.device
    ) -> Texts:
        """Tokenized texts, cut behind `max_length`. One without tokens is read as an unknown word,
        so that every text has an encoding."""
        lengths = np.array([max(1, min(len(text), max_length)) for text in tokens])
        return Texts(on(words.encode(tokens, lengths.max()), device), lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    def batch(self, rows: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """The codes (n, T) and the mask (n, T) of some texts, no wider than the longest."""
        device = self.codes.device
        lengths = self.lengths[rows]
        width = int(lengths.max())
        codes = self.codes[:, :width].index_select(0, on(rows, device))
        return codes, torch.arange(width, device=device) < on(lengths, device)[:, None]


def on(array: NDArray[Any], device: torch.device) -> Tensor:
    return torch.from_numpy(array).to(device)


def initial_weights(
    vectors: NDArray[np.float32], hidden: int, *, shared: bool, rng: np.random.Generator
) -> Weights:
    """Weights to begin with: orthogonal between hidden units, and a forget gate that is open. Two
    encoders begin alike: had they nothing in common, cosines would mean nothing at first, and the
    hardest wrong answers would teach nothing."""
    weights: Weights = {VECTORS: np.asarray(vectors, dtype=np.float32)}
    inputs = vectors.shape[1]
    for direction in ("", "_reverse"):
        limit = np.sqrt(6 / (inputs + hidden))
        W = rng.uniform(-limit, limit, (_GATES, hidden, inputs + 1))
        W[:, :, -1] = 0.0
        W[_FORGET, :, -1] = 1.0
        with threadpool_limits(1):  # where cores are busy, several take seconds
            U = np.linalg.qr(rng.standard_normal((_GATES, hidden, hidden)))[0]
        for name, w in (("ih", W), ("hh", U)):
            for encoder in range(1 if shared else 2):
                key = f"encoders.{encoder}.weight_{name}_l0{direction}"
                weights[key] = w.reshape(_GATES * hidden, -1).astype(np.float32)
    return weights


class Siamese(nn.Module):
    """One BiLSTM that reads questions and answers, or one for each, over the same word vectors."""

    def __init__(self, weights: Mapping[str, NDArray[np.float32]], device: torch.device) -> None:
        super().__init__()
        inputs = weights["encoders.0.weight_ih_l0"].shape[1]
        self.hidden = hidden = weights["encoders.0.weight_hh_l0"].shape[1]
        count = sum(name.endswith("weight_ih_l0") for name in weights)
        self.vectors = nn.Parameter(torch.empty(weights[VECTORS].shape))
        # Biases are the weights of an input that is 1 on words and 0 on padding. So padding leaves
        # a state of zeros as it is, and the backward direction begins at the last word of a text
        # as if nothing stood behind it, in one call for texts of all lengths.
        self.encoders = nn.ModuleList(
            nn.LSTM(inputs, hidden, batch_first=True, bidirectional=True, bias=False, device="meta")
            for _ in range(count)
        )
        self.to_empty(device=device)  # on "meta", nothing was drawn from the global generator
        self.load_state_dict({name: torch.tensor(w) for name, w in weights.items()})

    def forward(
        self, codes: Tensor, mask: Tensor, side: Side, dropout: Dropout | None = None
    ) -> Tensor:
        """The encodings (n, 2H) of texts, each of length 1."""
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
    """Drops numbers at a rate, by a generator of its own rather than PyTorch's global one."""

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

    `cosines` (n, m) compare n questions with m >= n answers, of which the i-th is a correct one of
    question i; `correct` (n, m) says which others are correct too, and never taken for wrong.
    """
    wrong = cosines.masked_fill(correct, -torch.inf)
    nearest = wrong.topk(min(hardest, wrong.shape[1]), dim=1).values
    return functional.relu(margin - cosines.diagonal()[:, None] + nearest).mean()


@torch.no_grad()
def encode(network: Siamese, texts: Texts, side: Side) -> Tensor:
    """The encodings (n, 2H) of all texts, in chunks of about the same length."""
    order = np.argsort(texts.lengths, kind="stable")
    parts = [
        network(*texts.batch(order[i : i + _CHUNK]), side) for i in range(0, len(order), _CHUNK)
    ]
    return torch.cat(parts)[on(np.argsort(order), network.vectors.device)]


@torch.no_grad()
def cosines_of(questions: Tensor, answers: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """The cosine of questions[rows[i]] and answers[columns[i]], both encoded, for all i."""
    parts = [
        (questions[rows[i : i + _PAIRS]] * answers[columns[i : i + _PAIRS]]).sum(dim=1)
        for i in range(0, len(rows), _PAIRS)
    ]
    return torch.cat(parts)
