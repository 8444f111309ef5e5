"""Training: pairs of a question and a correct answer in random order, each compared with the
hardest wrong answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tradewind.models.devices import clock, count_epochs
from tradewind.models.siamese.model import (
    Dropout,
    Siamese,
    Texts,
    Weights,
    cosines_of,
    encode,
    ranking_loss,
    to_device,
)

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Settings:
    """How to train: the parameters of the estimator that the loop needs."""

    epochs: int
    batch_size: int
    margin: float
    learning_rate: float
    regularization: float
    dropout: float
    negatives: int
    hardest: int
    tune_vectors: bool
    patience: int | None
    verbose: bool = False


@dataclass(frozen=True)
class Pairs:
    """Questions, answers (correct ones and others to draw wrong ones from), and which belong
    together."""

    questions: Texts
    answers: Texts
    pairs: Rows  # (p, 2): a question and a correct answer, sorted and distinct

    def correct(self, questions: Tensor, answers: Tensor) -> Tensor:
        """Whether answers are correct, for arrays of text numbers that broadcast together."""
        wanted = questions * len(self.answers) + answers
        known = self._keys
        return known[torch.searchsorted(known, wanted).clamp(max=len(known) - 1)] == wanted

    @cached_property
    def _keys(self) -> Tensor:
        keys = self.pairs[:, 0] * len(self.answers) + self.pairs[:, 1]
        return to_device(keys, self.answers.codes.device)


@dataclass(frozen=True)
class Trained:
    """The result of training. `scores` has the validation scores, if there was a validation. `best`
    is the epoch of the weights, counted from 1."""

    weights: Weights
    losses: list[float]
    scores: list[float]
    best: int
    seconds: float


def train(
    weights: Weights,
    data: Pairs,
    settings: Settings,
    *,
    rng: np.random.Generator,
    validate: Callable[[Siamese], float] | None = None,
) -> Trained:
    """Train from these weights. Keep the last epoch or, with `validate`, the best one."""
    device = data.answers.codes.device
    network = Siamese(weights, device)
    generator = torch.Generator(device).manual_seed(int(rng.integers(2**63)))
    optimizer = _optimizer(network, settings)
    losses: list[float] = []
    scores: list[float] = []
    best = 0
    network(*data.questions.batch(np.arange(1)), "question")  # the first call on a device is slow
    begin = clock(str(device))
    for epoch in count_epochs(settings.epochs, settings.verbose):
        losses.append(_epoch(network, data, settings, optimizer, rng, generator))
        # the loss is computed before the step, so the weights must be checked, too
        if not np.isfinite(losses[-1]) or not all(w.isfinite().all() for w in network.parameters()):
            raise ValueError(
                f"training diverged in epoch {epoch}: learning_rate must be smaller, "
                f"but got {settings.learning_rate}"
            )
        if validate is None:
            best = epoch
            continue
        scores.append(validate(network))
        if scores[-1] > max(scores[:-1], default=-np.inf):
            best, weights = epoch, network.weights()
        elif settings.patience is not None and epoch - best >= settings.patience:
            break
    seconds = clock(str(device)) - begin
    return Trained(
        network.weights() if validate is None else weights, losses, scores, best, seconds
    )


def hard_negatives(network: Siamese, data: Pairs, count: int, generator: torch.Generator) -> Rows:
    """A wrong answer for every pair (p,): of `count` random answers, the nearest to the question.

    If all of them are correct, it is one of these, and the loss ignores it.
    """
    device = network.vectors.device
    questions = to_device(data.pairs[:, :1], device)
    drawn = torch.randint(
        len(data.answers), (len(data.pairs), count), generator=generator, device=device
    )
    cosines = cosines_of(
        encode(network, data.questions, "question"),
        encode(network, data.answers, "answer"),
        questions.expand_as(drawn).reshape(-1),
        drawn.reshape(-1),
    ).view_as(drawn)
    nearest = cosines.masked_fill(data.correct(questions, drawn), -torch.inf).argmax(dim=1)
    return drawn.gather(1, nearest[:, None])[:, 0].cpu().numpy()


def _epoch(
    network: Siamese,
    data: Pairs,
    settings: Settings,
    optimizer: torch.optim.Optimizer,
    rng: np.random.Generator,
    generator: torch.Generator,
) -> float:
    """Train on all pairs once. Returns the mean loss."""
    dropout = Dropout(settings.dropout, generator)
    order = rng.permutation(len(data.pairs))
    questions, answers = data.pairs[order].T
    # The hardest as of the beginning of the epoch: encoding the drawn answers again for each batch
    # would take longer than training on it.
    wrong = answers[:0]
    if settings.negatives:
        wrong = hard_negatives(network, data, settings.negatives, generator)[order]
    total = torch.zeros((), device=network.vectors.device)
    for i in range(0, len(order), settings.batch_size):
        batch = slice(i, i + settings.batch_size)
        chosen = np.concatenate([answers[batch], wrong[batch]])
        loss = _loss(network, data, questions[batch], chosen, settings, dropout)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        total += loss.detach() * len(order[batch])
    return float(total) / len(order)


def _loss(
    network: Siamese,
    data: Pairs,
    questions: Rows,
    answers: Rows,
    settings: Settings,
    dropout: Dropout,
) -> Tensor:
    device = network.vectors.device
    q = network(*data.questions.batch(questions), "question", dropout)
    a = network(*data.answers.batch(answers), "answer", dropout)
    correct = data.correct(to_device(questions, device)[:, None], to_device(answers, device))
    return ranking_loss(q @ a.T, correct, settings.margin, settings.hardest)


def _optimizer(network: Siamese, settings: Settings) -> torch.optim.Optimizer:
    """Adam. The L2 penalty applies to the LSTMs only; it would shrink the vectors of rare words."""
    groups = [
        {"params": list(network.encoders.parameters()), "weight_decay": settings.regularization}
    ]
    if settings.tune_vectors:
        groups.append({"params": [network.vectors]})
    network.vectors.requires_grad_(settings.tune_vectors)
    return torch.optim.Adam(groups, lr=settings.learning_rate)
