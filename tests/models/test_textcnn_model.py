"""The network: against convolutions of PyTorch, text by text and fold by fold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from tradewind.models.textcnn.model import ACTIVATIONS, Layout, Network, max_over_time

DOUBLE = torch.float64


def network(**changes: object) -> Network:
    settings = {
        "channels": "multichannel",
        "dimensions": 4,
        "filters": ((2, 3), (3, 2)),
        "activation": "relu",
        "bias": True,
        "hidden": 5,
        "outputs": 3,
    }
    return Network(**{**settings, **changes})  # type: ignore[arg-type]


def words_of(layout: Layout, seed: int, dimensions: int = 4) -> Tensor:
    """Vectors for the words of a layout, zero where a slot has none."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(*layout.text.shape, dimensions, dtype=DOUBLE, generator=generator)
    return x * layout.filled.unsqueeze(2)


def filters_of(reach: Sequence[int], folds: int, seed: int, dimensions: int = 4) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(folds, dimensions, sum(reach), dtype=DOUBLE, generator=generator)


def convolved(net: Network, lengths: Tensor, words: Tensor, weights: Tensor) -> Tensor:
    """The best windows as anyone would compute them: each text alone, with zeros behind it (those
    before it are words of the text here)."""
    best = []
    for f, of_fold in enumerate(lengths.tolist()):
        begin, texts = 0, []
        for n in of_fold:
            found, first = [], 0
            for size, count in net.order:
                offsets = [sum(net.reach[:j]) for j in range(size)]
                columns = [list(range(o + first, o + first + count)) for o in offsets]
                kernel = torch.stack([weights[f][:, c] for c in columns], dim=2).transpose(0, 1)
                text = functional.pad(words[f, begin : begin + n], (0, 0, 0, size))
                found.append(functional.conv1d(text.T[None], kernel)[0].amax(dim=1))
                first += count
            texts.append(torch.cat(found))
            begin += n
        best.append(torch.stack(texts))
    return torch.stack(best)


@given(
    lengths=st.lists(st.lists(st.integers(0, 7), min_size=3, max_size=3), min_size=1, max_size=3),
    sizes=st.lists(st.tuples(st.integers(1, 6), st.integers(1, 3)), min_size=1, max_size=4),
    spare=st.integers(0, 3),
    seed=st.integers(0, 100),
)
@settings(max_examples=60, deadline=None)
def test_the_best_windows_are_those_of_a_convolution(
    lengths: list[list[int]], sizes: list[tuple[int, int]], spare: int, seed: int
) -> None:
    net = network(filters=tuple(sizes))
    n_words = torch.tensor(lengths)
    layout = Layout.of(n_words, max(1, int(n_words.sum(1).max())) + spare)
    words = words_of(layout, seed).requires_grad_()
    weights = filters_of(net.reach, len(lengths), seed).requires_grad_()
    ours = max_over_time(net.reach, [(words, weights)], layout)
    theirs = convolved(net, n_words, words, weights)
    torch.testing.assert_close(ours, theirs)
    towards = torch.randn(ours.shape, dtype=DOUBLE, generator=torch.Generator().manual_seed(seed))
    for mine, other in zip(
        torch.autograd.grad((ours * towards).sum(), [words, weights]),
        torch.autograd.grad((theirs * towards).sum(), [words, weights]),
        strict=True,
    ):
        torch.testing.assert_close(mine, other)


def test_gradients_are_right_for_every_channel() -> None:
    layout = Layout.of(torch.tensor([[3, 0, 2], [1, 4, 0]]), 5)
    reach = network().reach
    pairs = [words_of(layout, 1), filters_of(reach, 2, 2), words_of(layout, 3)]
    pairs.append(filters_of(reach, 2, 4))

    def best(*flat: Tensor) -> Tensor:
        return max_over_time(reach, list(zip(flat[::2], flat[1::2], strict=True)), layout)

    assert torch.autograd.gradcheck(best, [tensor.requires_grad_() for tensor in pairs])


def test_equal_windows_share_the_gradient() -> None:
    layout = Layout.of(torch.tensor([[3]]), 3)
    words = torch.ones(1, 3, 1, dtype=DOUBLE, requires_grad=True)
    weights = torch.ones(1, 1, 1, dtype=DOUBLE, requires_grad=True)
    best = max_over_time((1,), [(words, weights)], layout)
    of_words, of_weights = torch.autograd.grad(best.sum(), [words, weights])
    assert of_words.flatten().tolist() == pytest.approx([1 / 3] * 3)
    assert of_weights.item() == pytest.approx(1.0)


def test_a_text_without_words_gives_nothing_but_biases() -> None:
    net = network(activation="tanh")
    weights = {name: w[None] for name, w in net.initial(torch.Generator().manual_seed(0)).items()}
    weights["filter.bias"] = torch.linspace(-1, 1, net.n_features)[None]
    layout = Layout.of(torch.tensor([[0, 2]]), 2)
    blank = torch.zeros(1, 2, net.dimensions)
    outputs = net(weights, [blank, blank], layout)
    torch.testing.assert_close(outputs[:, 0], outputs[:, 1])
    features = torch.tanh(weights["filter.bias"])
    hidden = torch.relu(features @ weights["hidden"] + weights["hidden.bias"].unsqueeze(1))
    expected = hidden @ weights["output"] + weights["output.bias"].unsqueeze(1)
    torch.testing.assert_close(outputs[:, :1], expected)


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
def test_the_maximum_may_be_taken_before_the_activation(activation: str) -> None:
    x = torch.linspace(-5, 5, 101)
    grown = ACTIVATIONS[activation](x)
    assert (grown.diff() >= 0).all()


@given(lengths=st.lists(st.integers(0, 6), min_size=1, max_size=5), spare=st.integers(0, 4))
def test_a_layout_tells_text_place_and_room(lengths: list[int], spare: int) -> None:
    layout = Layout.of(torch.tensor([lengths]), sum(lengths) + spare)
    expected = [(b, p, n - p) for b, n in enumerate(lengths) for p in range(n)]
    parts = (layout.text[0].tolist(), layout.place[0].tolist(), layout.room[0].tolist())
    assert list(zip(*parts, strict=True))[: len(expected)] == expected
    assert layout.filled[0].tolist() == [True] * len(expected) + [False] * spare
    assert all(room == 1 for room in layout.room[0].tolist()[len(expected) :])


def test_what_a_text_gives_does_not_depend_on_the_texts_beside_it() -> None:
    net = network(filters=((5, 4), (1, 2)), hidden=0)
    weights = {name: w[None] for name, w in net.initial(torch.Generator().manual_seed(0)).items()}
    text = torch.randn(3, 4, generator=torch.Generator().manual_seed(1))
    other = torch.randn(6, 4, generator=torch.Generator().manual_seed(2))
    alone = net(weights, [text[None]] * 2, Layout.of(torch.tensor([[3]]), 3))
    beside = torch.cat([other, text, other])[None]
    among = net(weights, [beside] * 2, Layout.of(torch.tensor([[6, 3, 6]]), 15))
    torch.testing.assert_close(alone[:, 0], among[:, 1])


def test_dropout_is_the_same_in_every_fold_and_whatever_the_slots() -> None:
    lengths = torch.tensor([[2, 3], [3, 2]])
    few, many = Layout.of(lengths, 5), Layout.of(lengths, 9)
    ones = [torch.ones(2, slots, 3) for slots in (5, 9)]
    drawn = [
        layout.drop(x, 0.5, torch.Generator().manual_seed(0))
        for layout, x in zip((few, many), ones, strict=True)
    ]
    torch.testing.assert_close(drawn[0], drawn[1][:, :5])
    torch.testing.assert_close(drawn[0][0, :2], drawn[0][1, :2])  # the first words of text 0
    assert set(drawn[0].unique().tolist()) == {0.0, 2.0}


def test_dropout_keeps_the_mean() -> None:
    net = network(dropout=(0.0, 0.9, 0.0), hidden=0, bias=False, activation="relu", outputs=1)
    layout = Layout.of(torch.ones(1, 20_000, dtype=torch.int64), 20_000)
    words = [torch.rand(1, 20_000, 4, generator=torch.Generator().manual_seed(0))] * 2
    weights = {name: torch.ones(1, *shape) for name, shape in net.shapes().items()}
    plain = net(weights, words, layout).mean().item()
    dropped = net(weights, words, layout, torch.Generator().manual_seed(1)).mean().item()
    assert dropped == pytest.approx(plain, rel=0.02)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_each_dropout_is_at_its_place(place: int) -> None:
    """With one place that drops and weights of one, what comes out is a multiple of what that
    place lets through: all words, all features or all hidden neurons are equal here."""
    rates = [0.0, 0.0, 0.0]
    rates[place] = 0.5
    net = network(
        dropout=tuple(rates), filters=((1, 6),), hidden=4, bias=False, outputs=1, channels="static"
    )
    weights = {name: torch.ones(1, *shape) for name, shape in net.shapes().items()}
    weights |= {name: torch.zeros_like(w) for name, w in weights.items() if "bias" in name}
    layout = Layout.of(torch.ones(1, 2000, dtype=torch.int64), 2000)
    words = [torch.ones(1, 2000, net.dimensions)]
    outputs = net(weights, words, layout, torch.Generator().manual_seed(0)).flatten()
    units = (net.dimensions, 6, 4)[place]  # as many as can be dropped, with probability 1/2
    whole = net.dimensions * 6 * 4
    levels = torch.unique((outputs * units / whole / 2).round(decimals=3)).tolist()
    assert levels == [float(level) for level in range(units + 1)]


@pytest.mark.parametrize("channel", [0, 1])
def test_words_are_dropped_in_every_channel(channel: int) -> None:
    """Only one channel has words, so that what comes out counts those that it let through."""
    net = network(dropout=(0.5, 0.0, 0.0), filters=((1, 1),), hidden=0, bias=False, outputs=1)
    weights = {name: torch.ones(1, *shape) for name, shape in net.shapes().items()}
    weights["output.bias"] = torch.zeros(1, 1)
    layout = Layout.of(torch.ones(1, 2000, dtype=torch.int64), 2000)
    words = [torch.zeros(1, 2000, 4), torch.zeros(1, 2000, 4)]
    words[channel] += 1.0
    outputs = net(weights, words, layout, torch.Generator().manual_seed(0)).flatten()
    assert torch.unique(outputs).tolist() == [0.0, 2.0, 4.0, 6.0, 8.0]


def test_channels_are_dropped_apart() -> None:
    net = network(dropout=(0.5, 0.0, 0.0), filters=((1, 1),), hidden=0, bias=False, outputs=1)
    weights = {name: torch.ones(1, *shape) for name, shape in net.shapes().items()}
    weights["filter1"] *= 100
    weights["output.bias"] = torch.zeros(1, 1)
    layout = Layout.of(torch.ones(1, 2000, dtype=torch.int64), 2000)
    words = [torch.ones(1, 2000, 4), torch.ones(1, 2000, 4)]
    outputs = net(weights, words, layout, torch.Generator().manual_seed(0)).flatten()
    assert len(torch.unique(outputs)) == 25  # each of 0 to 4 beside each


@pytest.mark.parametrize(
    ("name", "values"),  # at -1 and 2, from their definitions
    [
        ("elu", (np.exp(-1) - 1, 2)),
        ("relu", (0, 2)),
        ("tanh", (np.tanh(-1), np.tanh(2))),
        ("sigmoid", (1 / (1 + np.e), 1 / (1 + np.exp(-2)))),
        ("selu", (1.0507009873554805 * 1.6732632423543772 * (np.exp(-1) - 1), 2.101401974710961)),
    ],
)
def test_activations_are_what_their_names_say(name: str, values: tuple[float, float]) -> None:
    found = ACTIVATIONS[name](torch.tensor([-1.0, 2.0], dtype=DOUBLE))
    torch.testing.assert_close(found, torch.tensor(values, dtype=DOUBLE))


def test_pieces_are_bounded_and_cover_all() -> None:
    net = network(filters=((3, 50_000),))
    lengths = np.array([10, 10, 500, 1, 100, 100, 1])
    pieces = list(net.pieces(lengths))
    assert [i for piece in pieces for i in range(7)[piece]] == list(range(7))
    assert len(pieces) > 2
    for piece in pieces:  # a text alone may be too long
        assert lengths[piece].sum() * 150_000 <= 2**24 or len(lengths[piece]) == 1
    assert list(net.pieces(np.array([], dtype=np.intp))) == []


def test_initial_filters_have_the_limits_of_glorot() -> None:
    net = network(filters=((2, 50), (5, 30)), dimensions=40)
    filters = net.initial(torch.Generator().manual_seed(0))["filter0"]
    large, small = filters[:, :30], filters[:, 30:80]  # the larger size comes first
    assert large.abs().max().item() == pytest.approx((6 / (5 * (80 + 30))) ** 0.5, rel=0.01)
    assert small.abs().max().item() == pytest.approx((6 / (2 * (80 + 50))) ** 0.5, rel=0.01)


def test_norms_are_scaled_down_never_up() -> None:
    net = network()
    weights = {name: torch.full((2, *shape), 0.01) for name, shape in net.shapes().items()}
    weights["output"][1, :, 0] = 7.0
    weights["hidden"][0, :, 2] = -5.0
    before = {name: w.clone() for name, w in weights.items()}
    net.constrain(weights, 3.0)
    assert weights["output"][1, :, 0].norm().item() == pytest.approx(3.0)
    assert weights["hidden"][0, :, 2].norm().item() == pytest.approx(3.0)
    before["output"][1, :, 0] = weights["output"][1, :, 0]
    before["hidden"][0, :, 2] = weights["hidden"][0, :, 2]
    torch.testing.assert_close(weights, before)
