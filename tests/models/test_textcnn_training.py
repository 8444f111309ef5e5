"""Training: against PyTorch's own optimizers and a network written down plainly, and stacked
against one by one."""

from __future__ import annotations

from dataclasses import astuple, replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from tradewind.models.text import Vocabulary
from tradewind.models.textcnn import training
from tradewind.models.textcnn.model import Network, Texts
from tradewind.models.textcnn.optimizers import DECAY, EPSILON, RATES, adadelta
from tradewind.models.textcnn.training import Epoch, NetworkData, Settings, Trained, batches, train

WORDS = tuple("abcdefghijklmnop")
NETWORK = Network("multichannel", 6, ((2, 3), (1, 4)), "tanh", True, 0, 1)
SETTINGS = Settings("adadelta", 1.0, 4, 5, None, None, seed=3, device="cpu")


def data(n: int = 30, seed: int = 0) -> tuple[Texts, NDArray[np.intp], NDArray[np.float32]]:
    """Texts of random words, labels that depend on them, and word vectors."""
    rng = np.random.default_rng(seed)
    texts = [list(rng.choice(WORDS, rng.integers(0, 7))) for _ in range(n)]
    labels = np.array([("a" in text) or ("b" in text) for text in texts], dtype=np.intp)
    table = rng.normal(size=(len(WORDS) + 1, NETWORK.dimensions)).astype(np.float32)
    table[0] = 0.0
    return Texts.of(texts, Vocabulary(WORDS), NETWORK.blanks), labels, table


def fold(rows: Any, table: Any, valid: Any = (), weights: Any = (1.0, 1.0)) -> NetworkData:
    empty = np.array(valid, dtype=np.intp)
    return NetworkData(np.asarray(rows), empty, np.array(weights, dtype=np.float32), table)


class Plain(nn.Module):
    """The network of NETWORK as layers of PyTorch, for one text at a time."""

    def __init__(self, table: NDArray[np.float32], start: dict[str, torch.Tensor]) -> None:
        super().__init__()
        self.static = torch.from_numpy(table)
        self.tuned = nn.Parameter(torch.from_numpy(table.copy()))
        self.convolutions = nn.ModuleList()
        first = 0
        for size, count in NETWORK.order:
            conv = nn.Conv1d(12, count, size)
            begins = [sum(NETWORK.reach[:j]) + first for j in range(size)]
            both = torch.cat([start["filter0"], start["filter1"]])
            places = [both[:, begin : begin + count].T for begin in begins]
            conv.weight.data = torch.stack(places, dim=2)
            conv.bias.data = torch.zeros(count)
            self.convolutions.append(conv)
            first += count
        self.output = nn.Linear(NETWORK.n_features, 1)
        self.output.weight.data, self.output.bias.data = start["output"].T, start["output.bias"]

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        x = torch.cat([self.static[codes], self.tuned[codes]], dim=1)
        x = nn.functional.pad(x, (0, 0, 5, 5)).T[None]
        found = [torch.tanh(conv(x)).amax(dim=2) for conv in self.convolutions]
        return self.output(torch.cat(found, dim=1))[0, 0]


@pytest.mark.parametrize("optimizer", ["adadelta", "adam"])
def test_training_is_that_of_a_plain_loop(optimizer: Any) -> None:
    texts, labels, table = data()
    settings = replace(SETTINGS, optimizer=optimizer, rate=RATES[optimizer], l2_max=0.5)
    ((ours,), _) = train(NETWORK, settings, texts, labels, [fold(range(30), table)])

    plain = Plain(table, NETWORK.initial(torch.Generator().manual_seed(settings.seed)))
    kind = {
        "adadelta": lambda p: torch.optim.Adadelta(p, lr=1.0, rho=DECAY, eps=EPSILON),
        "adam": lambda p: torch.optim.Adam(p, lr=1e-3),
    }[optimizer](plain.parameters())
    losses = []
    for epoch in range(1, settings.max_epochs + 1):
        of_epoch = []
        for rows in batches(30, settings.batch_size, settings.seed, epoch):
            kind.zero_grad()
            outputs = []
            for row in rows:
                at = texts.begins[row]
                codes = texts.codes[at : at + texts.lengths[row]]
                outputs.append(plain(torch.from_numpy(codes).long()))
            target = torch.from_numpy(labels[rows]).float()
            loss = nn.functional.binary_cross_entropy_with_logits(torch.stack(outputs), target)
            loss.backward()
            of_epoch.append(loss.item())
            plain.tuned.grad[0] = 0.0  # type: ignore[index]
            kind.step()
            with torch.no_grad():
                w = plain.output.weight
                w.mul_((0.5 / w.norm(dim=1, keepdim=True)).clamp(max=1.0))
        losses.append(float(np.mean(of_epoch)))
    assert [epoch.loss for epoch in ours.history] == pytest.approx(losses, abs=1e-5)
    np.testing.assert_allclose(ours.table, plain.tuned.detach(), atol=2e-5)
    np.testing.assert_allclose(ours.weights["output"].T, plain.output.weight.detach(), atol=2e-5)
    biases = torch.cat([conv.bias.detach() for conv in plain.convolutions])
    np.testing.assert_allclose(ours.weights["filter.bias"], biases, atol=2e-5)


def test_words_that_a_batch_lacks_are_updated_as_if_they_had_been_there() -> None:
    """Adadelta on rows seen now and then equals PyTorch's on the whole table, step by step."""
    rng = np.random.default_rng(1)
    start = torch.from_numpy(rng.normal(size=(6, 3)).astype(np.float32))
    theirs = start.clone().requires_grad_()
    optimizer = torch.optim.Adadelta([theirs], lr=1.0, rho=DECAY, eps=EPSILON)
    ours, square, change = start.clone(), torch.zeros(6, 3), torch.zeros(6, 3)
    seen = torch.zeros(6)
    for step in range(1, 40):
        rows = torch.from_numpy(rng.choice(6, 2, replace=False))
        g = torch.zeros(6, 3)
        g[rows] = torch.from_numpy(rng.normal(size=(2, 3)).astype(np.float32))
        theirs.grad = g
        optimizer.step()
        fade = 0.95 ** (step - seen[rows]).unsqueeze(1)
        s, c = square[rows], change[rows]
        ours[rows] -= adadelta(g[rows], s, c, fade)
        square[rows], change[rows], seen[rows] = s, c, float(step)
        torch.testing.assert_close(ours, theirs.detach(), rtol=1e-5, atol=1e-6)


def test_the_first_step_of_adadelta_is_that_of_keras() -> None:
    """sqrt(epsilon / (0.05 g² + epsilon)) g, with an epsilon of 1e-7; the rate is 1."""
    g = torch.tensor([1.0, 1e-3, 0.0])
    by = adadelta(g, torch.zeros(3), torch.zeros(3), 0.95)
    expected = torch.sqrt(1e-7 / (0.05 * g**2 + 1e-7)) * g
    torch.testing.assert_close(by, expected)
    assert RATES == {"adadelta": 1.0, "adam": 0.001}


@pytest.mark.parametrize("optimizer", ["adadelta", "adam"])
@pytest.mark.parametrize("channels", ["static", "nonstatic", "multichannel"])
@pytest.mark.parametrize("dropout", [(0.0, 0.0, 0.0), (0.3, 0.4, 0.5)])
def test_a_fold_learns_in_a_stack_what_it_learns_alone(
    optimizer: Any, channels: Any, dropout: Any
) -> None:
    texts, labels, table = data(60)
    other = table * np.float32(0.5)
    network = replace(NETWORK, channels=channels, hidden=4, dropout=dropout)
    rate = RATES[optimizer]
    settings = replace(
        SETTINGS, optimizer=optimizer, rate=rate, max_epochs=8, patience=2, l2_max=3.0
    )
    rows = np.arange(60)
    folds = [
        fold(rows[:40], table, rows[40:50]),
        fold(rows[20:], table, rows[:13], weights=(0.7, 1.4)),
        fold(rows[10:50], other, rows[50:]),
    ]
    together, _ = train(network, settings, texts, labels, folds)
    for one, alone in zip(together, folds, strict=True):
        ((single,), _) = train(network, settings, texts, labels, [alone])
        assert one.best_epoch == single.best_epoch
        assert_same_history(one, single)
        for name, weights in single.weights.items():
            np.testing.assert_allclose(one.weights[name], weights, atol=1e-5)
        if channels != "static":
            np.testing.assert_allclose(one.table, single.table, atol=1e-5)


def assert_same_history(one: Trained, other: Trained) -> None:
    """Losses and accuracies of every epoch, on training and on validation rows."""
    ours, theirs = ([astuple(epoch) for epoch in each.history] for each in (one, other))
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize("sizes", [(1, 9, 4), (20, 3, 7)])
def test_folds_of_a_stack_may_stop_on_more_or_fewer_rows(sizes: tuple[int, ...]) -> None:
    """Shorter ones are filled up with rows of theirs, which must not count twice."""
    texts, labels, table = data(60)
    rows = np.random.default_rng(0).permutation(60)
    folds = [fold(rows[:40], table, rows[60 - size :]) for size in sizes]
    settings = replace(SETTINGS, max_epochs=12, patience=2)
    together, _ = train(NETWORK, settings, texts, labels, folds)
    for one, alone in zip(together, folds, strict=True):
        ((single,), _) = train(NETWORK, settings, texts, labels, [alone])
        assert one.best_epoch == single.best_epoch
        assert_same_history(one, single)
        n = len(alone.valid)
        counts = [n * epoch.valid_accuracy for epoch in one.history if epoch.valid_accuracy]
        np.testing.assert_allclose(counts, np.round(counts), atol=1e-4)


def test_a_fold_that_stops_first_takes_what_is_its_own_with_it() -> None:
    """The folds that go on keep their class weights and word vectors."""
    texts, labels, table = data(60)
    rows = np.arange(60)
    against = labels.copy()
    against[40:50] = 1 - labels[40:50]  # the first fold stops on these, soon
    settings = replace(SETTINGS, max_epochs=25, patience=2)
    network = replace(NETWORK, channels="multichannel")
    folds = [
        fold(rows[:40], table, rows[40:50], weights=(3.0, 0.1)),
        fold(rows[:40], table * np.float32(0.3), rows[50:], weights=(0.5, 2.0)),
        fold(rows[:40], table * np.float32(2.0), rows[50:], weights=(1.5, 0.7)),
    ]
    together, _ = train(network, settings, texts, against, folds)
    assert len(together[0].history) < max(len(one.history) for one in together)
    for one, alone in zip(together, folds, strict=True):
        ((single,), _) = train(network, settings, texts, against, [alone])
        assert_same_history(one, single)
        np.testing.assert_allclose(one.weights["output"], single.weights["output"], atol=1e-5)
        np.testing.assert_allclose(one.table, single.table, atol=1e-5)


@pytest.mark.parametrize("tight", [False, True])
def test_a_recorded_step_has_room_for_all_words(
    monkeypatch: pytest.MonkeyPatch, tight: bool
) -> None:
    """The path of a GPU, with a recording that simply runs the step again."""
    texts, labels, table = data(60)
    rows = np.arange(60)
    folds = [fold(rows[:40], table, rows[40:50]), fold(rows[20:], table, rows[:13])]
    settings = replace(SETTINGS, max_epochs=8, patience=2)
    network = replace(NETWORK, dropout=(0.2, 0.3, 0.0))
    expected, _ = train(network, settings, texts, labels, folds)
    recorded: list[int] = []

    def record(step: Any, generator: Any) -> Any:
        recorded.append(1)
        return step

    monkeypatch.setattr(training._Stack, "is_recorded", True)
    monkeypatch.setattr(training, "_record", record)
    if tight:  # larger batches then go without the recording
        monkeypatch.setattr(training, "_recorded_slots", lambda words: int(np.median(words)))
    found, _ = train(network, settings, texts, labels, folds)
    assert recorded
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.best_epoch == theirs.best_epoch
        np.testing.assert_allclose(ours.weights["output"], theirs.weights["output"], atol=1e-5)
        np.testing.assert_allclose(ours.table, theirs.table, atol=1e-5)


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 1000])
def test_there_is_more_room_than_needed_but_not_for_the_extraordinary(n: int) -> None:
    usual = np.full(20, n)
    assert n < training._recorded_slots(usual) <= n + 2 * 64
    assert training._recorded_slots(np.append(usual, 100 * n)) <= 1.5 * n + 2 * 64


def test_padding_stays_zero_and_words_never_seen_stay_put() -> None:
    texts, labels, table = data()
    last = len(WORDS)  # "p"
    rows = [r for r in range(30) if last not in texts.words(np.array([r]))]
    for optimizer in ("adadelta", "adam"):
        settings = replace(SETTINGS, optimizer=optimizer)
        ((one,), _) = train(NETWORK, settings, texts, labels, [fold(rows, table)])
        assert one.table is not None
        assert not one.table[0].any()
        np.testing.assert_array_equal(one.table[last], table[last])
        assert not np.allclose(one.table[1:last], table[1:last])


def test_the_best_epoch_is_kept_and_patience_counts_from_it() -> None:
    texts, labels, table = data(40)
    settings = replace(SETTINGS, max_epochs=60, patience=3)
    upside_down = labels.copy()
    upside_down[30:] = 1 - labels[30:]  # the more is learned, the worse this gets
    stopping = fold(range(30), table, range(30, 40))
    ((one,), _) = train(NETWORK, settings, texts, upside_down, [stopping])
    losses = [epoch.valid_loss for epoch in one.history]
    assert one.best_epoch == int(np.argmin(losses)) + 1  # type: ignore[arg-type]
    assert len(one.history) == one.best_epoch + 3
    short = replace(settings, max_epochs=one.best_epoch, patience=None)
    ((until,), _) = train(NETWORK, short, texts, upside_down, [stopping])
    np.testing.assert_array_equal(one.weights["output"], until.weights["output"])


def test_without_validation_the_last_epoch_is_kept() -> None:
    texts, labels, table = data()
    ((one,), _) = train(
        NETWORK, replace(SETTINGS, patience=1), texts, labels, [fold(range(30), table)]
    )
    assert one.best_epoch == len(one.history) == SETTINGS.max_epochs
    assert one.history[0].valid_loss is None


def test_a_loss_that_is_not_a_number_is_never_the_best() -> None:
    one = Trained()
    nan = float("nan")
    better = [one.add(Epoch(0.0, loss, 0.5)) for loss in (nan, nan, 0.7, nan, 0.6, nan)]
    assert better == [True, False, True, False, True, False]  # something must be kept at first
    assert one.best_epoch == 5


def test_every_row_is_in_a_batch_and_the_last_is_filled_from_the_front() -> None:
    order = batches(10, 4, seed=0, epoch=1)
    assert order.shape == (3, 4)
    assert sorted(order.ravel()[:10]) == list(range(10))
    assert order.ravel()[10:].tolist() == order.ravel()[:2].tolist()
    assert batches(3, 8, seed=0, epoch=1).shape == (1, 8)
    assert order.tolist() != batches(10, 4, seed=0, epoch=2).tolist()
    assert order.tolist() != batches(10, 4, seed=1, epoch=1).tolist()


def test_heavier_classes_pull_harder() -> None:
    texts, labels, table = data()
    accuracy = []
    for weights in ((1.0, 0.0), (0.0, 1.0)):
        folds = [fold(range(30), table, range(30), weights)]
        ((one,), _) = train(NETWORK, replace(SETTINGS, max_epochs=120), texts, labels, folds)
        accuracy.append(one.history[-1].valid_accuracy)
    assert accuracy == pytest.approx([1 - labels.mean(), labels.mean()])


def test_training_leaves_the_global_state_of_torch_alone() -> None:
    texts, labels, table = data()
    before = torch.get_rng_state(), torch.get_float32_matmul_precision()
    train(
        replace(NETWORK, dropout=(0.5, 0.5, 0.5)), SETTINGS, texts, labels, [fold(range(30), table)]
    )
    assert torch.equal(torch.get_rng_state(), before[0])
    assert torch.get_float32_matmul_precision() == before[1]


def test_a_stack_that_does_not_fit_is_trained_in_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    texts, labels, table = data()
    folds = [fold(range(20), table), fold(range(5, 25), table), fold(range(10, 30), table)]
    expected, _ = train(NETWORK, SETTINGS, texts, labels, folds)
    real, sizes = training._Stack, []

    def small(*args: Any) -> Any:
        sizes.append(len(args[-1]))
        if sizes[-1] > 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(*args)

    monkeypatch.setattr(training, "_Stack", small)
    halved, _ = train(NETWORK, SETTINGS, texts, labels, folds)
    assert sizes == [3, 1, 2, 1, 1]
    for ours, theirs in zip(halved, expected, strict=True):
        np.testing.assert_allclose(ours.weights["output"], theirs.weights["output"], atol=1e-6)
