"""The network of SiameseBiLSTM and its training: against plain loops, and against PyTorch's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from tradewind.models.siamese import training
from tradewind.models.siamese.model import (
    Dropout,
    Siamese,
    Texts,
    cosines_of,
    encode,
    initial_weights,
    ranking_loss,
)
from tradewind.models.siamese.training import Pairs, Settings, hard_negatives, train
from tradewind.models.text import Vocabulary

HIDDEN, DIMENSIONS = 5, 3
WORDS = Vocabulary(tuple("abcdefghij"))
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
CPU = torch.device("cpu")
SETTINGS = Settings(
    epochs=3,
    batch_size=4,
    margin=0.2,
    learning_rate=1e-2,
    regularization=0.0,
    dropout=0.0,
    negatives=3,
    hardest=1,
    tune_vectors=True,
    patience=None,
)


def weights(seed: int = 0, shared: bool = True) -> Any:
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((len(WORDS) + 1, DIMENSIONS)).astype(np.float32)
    table[0] = 0.0
    found = initial_weights(table, HIDDEN, shared=shared, rng=rng)
    for name, w in found.items():
        if "weight_ih" in name:
            w[:, -1] = rng.standard_normal(len(w))  # biases as training leaves them
    return found


def texts(*given: str, device: str = "cpu", max_length: int = 50) -> Texts:
    return Texts.of([list(text) for text in given], WORDS, max_length, torch.device(device))


def random_texts(rng: np.random.Generator, count: int) -> list[str]:
    letters = np.array(list("abcdefghijz"))  # z is unknown
    return ["".join(rng.choice(letters, rng.integers(1, 9))) for _ in range(count)]


# ---- encoding ----


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("side", ["question", "answer"])
def test_padding_does_not_change_an_encoding(device: str, shared: bool, side: Any) -> None:
    network = Siamese(weights(shared=shared), torch.device(device))
    alone = encode(network, texts("abc", device=device), side)
    padded = encode(network, texts("abc", "abcdefghij" * 4, "a", device=device), side)
    torch.testing.assert_close(padded[:1], alone, rtol=0, atol=1e-6 if device == "cpu" else 1e-3)


def test_padding_leaves_the_state_of_both_directions_at_exactly_zero() -> None:
    network = Siamese(weights(), CPU)
    codes, mask = texts("ab", "abcdefgh").batch(np.array([0, 1]))
    words = torch.cat([network.vectors[codes], mask[:, :, None].float()], dim=2)
    backward = network.encoders[0](words)[0][0, 2:, HIDDEN:]  # behind the end of the first text
    assert torch.equal(backward, torch.zeros_like(backward))


def reference(w: Any, tokens: list[int], lstm: int = 0) -> Tensor:
    """A text by itself through an ordinary LSTM with biases, and the maximum over time."""
    plain = nn.LSTM(DIMENSIONS, HIDDEN, bidirectional=True, batch_first=True)
    for direction in ("", "_reverse"):
        W = torch.tensor(w[f"encoders.{lstm}.weight_ih_l0{direction}"])
        parts = {
            f"weight_ih_l0{direction}": W[:, :-1],
            f"bias_ih_l0{direction}": W[:, -1],
            f"weight_hh_l0{direction}": torch.tensor(w[f"encoders.{lstm}.weight_hh_l0{direction}"]),
            f"bias_hh_l0{direction}": torch.zeros(len(W)),
        }
        for name, value in parts.items():
            getattr(plain, name).data = value
    states = plain(torch.tensor(w["vectors"])[tokens][None])[0][0]
    pooled = states.max(dim=0).values
    return pooled / pooled.norm()


@given(st.lists(st.lists(st.integers(0, len(WORDS)), min_size=1, max_size=12), min_size=1))
def test_a_batch_is_encoded_as_each_text_by_itself_in_an_ordinary_lstm(
    codes: list[list[int]],
) -> None:
    w = weights(1, shared=False)
    letters = "z" + "".join(WORDS.words)  # code 0: a word that nobody knows
    read = texts(*("".join(letters[c] for c in text) for text in codes))
    network = Siamese(w, CPU)
    for lstm, side in enumerate(("question", "answer")):
        found = encode(network, read, side)  # type: ignore[arg-type]
        expected = torch.stack([reference(w, text, lstm) for text in codes])
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_an_unknown_word_keeps_its_place() -> None:
    network = Siamese(weights(), CPU)
    unknown, without, end = encode(network, texts("azb", "ab", "abz"), "answer")
    assert not torch.allclose(unknown, without, atol=1e-4)
    assert not torch.allclose(end, without, atol=1e-4)


def test_an_empty_text_is_an_unknown_word() -> None:
    network = Siamese(weights(), CPU)
    empty, unknown = encode(network, texts("", "z"), "answer")
    torch.testing.assert_close(empty, unknown)
    only = encode(network, texts(""), "answer")
    torch.testing.assert_close(only[0], unknown)


def test_a_text_is_cut_behind_its_maximal_length() -> None:
    network = Siamese(weights(), CPU)
    cut, short = encode(network, texts("abcdef", "abc", max_length=3), "answer")
    torch.testing.assert_close(cut, short)


def test_more_texts_than_fit_a_chunk_come_back_in_their_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = random_texts(np.random.default_rng(0), 23)
    network = Siamese(weights(), CPU)
    whole = encode(network, texts(*given), "question")
    monkeypatch.setattr("tradewind.models.siamese.model._CHUNK", 4)
    monkeypatch.setattr("tradewind.models.siamese.model._PAIRS", 5)
    chunks = encode(network, texts(*given), "question")
    torch.testing.assert_close(chunks, whole)
    rows, columns = torch.randint(0, 23, (2, 17), generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(
        cosines_of(chunks, chunks, rows, columns), (whole @ whole.T)[rows, columns]
    )


def test_encodings_have_length_one() -> None:
    found = encode(Siamese(weights(), CPU), texts("abc", "z", "", "jj"), "answer")
    torch.testing.assert_close(found.norm(dim=1), torch.ones(4))


def test_the_forget_gate_begins_open_and_no_other_bias_is_set() -> None:
    rng = np.random.default_rng(0)
    w = initial_weights(weights()["vectors"], HIDDEN, shared=False, rng=rng)
    for name in (name for name in w if "weight_ih" in name):
        biases = w[name].reshape(4, HIDDEN, DIMENSIONS + 1)[:, :, -1]
        assert biases.tolist() == [[0.0] * HIDDEN, [1.0] * HIDDEN, *[[0.0] * HIDDEN] * 2]
    for name in (name for name in w if "weight_hh" in name):
        for U in w[name].reshape(4, HIDDEN, HIDDEN):
            np.testing.assert_allclose(U @ U.T, np.eye(HIDDEN), atol=1e-6)


def test_two_encoders_begin_alike() -> None:
    rng = np.random.default_rng(0)
    w = initial_weights(weights()["vectors"], HIDDEN, shared=False, rng=rng)
    network, read = Siamese(w, CPU), texts("abc", "de")
    assert len(network.encoders) == 2
    assert torch.equal(encode(network, read, "question"), encode(network, read, "answer"))


def test_before_training_a_text_of_unknown_words_is_as_far_from_everything() -> None:
    rng = np.random.default_rng(0)
    w = initial_weights(weights()["vectors"], HIDDEN, shared=True, rng=rng)
    unknown, other = encode(Siamese(w, CPU), texts("zzz", "abc"), "answer")
    assert float(unknown @ other) == 0.0


@pytest.mark.parametrize("rate", [0.0, 0.3, 0.9])
def test_dropout_drops_its_share_and_keeps_the_mean(rate: float) -> None:
    x = torch.full((200, 500), 2.0)
    dropped = Dropout(rate, torch.Generator().manual_seed(0))(x)
    assert float((dropped == 0).float().mean()) == pytest.approx(rate, abs=0.01)
    assert float(dropped.mean()) == pytest.approx(2.0, rel=0.02)
    kept = dropped[dropped != 0]
    torch.testing.assert_close(kept, torch.full_like(kept, 2.0 / (1 - rate)))


# ---- the loss ----


def naive_loss(cosines: Any, correct: Any, margin: float, hardest: int) -> float:
    terms = []
    for i, row in enumerate(cosines):
        wrong = sorted((c for c, right in zip(row, correct[i], strict=True) if not right))
        nearest = wrong[::-1][:hardest]
        lacking = min(hardest, len(row)) - len(nearest)
        terms += [max(0.0, margin - row[i] + c) for c in nearest] + [0.0] * lacking
    return sum(terms) / len(terms)


@given(st.data())
def test_the_loss_is_that_of_plain_loops(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 5))
    m = data.draw(st.integers(n, 9))
    hardest = data.draw(st.integers(1, 10))
    margin = data.draw(st.sampled_from([0.1, 0.5, 2.5]))
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    cosines = rng.uniform(-1, 1, (n, m))
    correct = rng.random((n, m)) < 0.3
    correct[np.arange(n), np.arange(n)] = True
    found = ranking_loss(torch.tensor(cosines), torch.tensor(correct), margin, hardest)
    assert float(found) == pytest.approx(naive_loss(cosines, correct, margin, hardest), abs=1e-12)


@pytest.mark.parametrize("hardest", [1, 3])
def test_the_loss_has_the_gradient_of_its_differences(hardest: int) -> None:
    rng = np.random.default_rng(3)
    cosines = torch.tensor(rng.uniform(-1, 1, (4, 7)), requires_grad=True)
    correct = torch.eye(4, 7, dtype=torch.bool)
    correct[0, 5] = True
    assert torch.autograd.gradcheck(lambda c: ranking_loss(c, correct, 0.7, hardest), cosines)


def test_the_hardest_wrong_answer_is_never_a_correct_one() -> None:
    cosines = torch.tensor([[0.1, 0.99, 0.3]], requires_grad=True)
    loss = ranking_loss(cosines, torch.tensor([[True, True, False]]), 0.2)
    loss.backward()  # type: ignore[no-untyped-call]
    assert float(loss.detach()) == pytest.approx(0.2 - 0.1 + 0.3)
    assert cosines.grad is not None
    assert cosines.grad.tolist() == [[-1.0, 0.0, 1.0]]


def test_a_question_without_wrong_answers_teaches_nothing() -> None:
    cosines = torch.tensor([[0.1, 0.9], [0.2, 0.3]], requires_grad=True)
    correct = torch.tensor([[True, True], [False, True]])
    loss = ranking_loss(cosines, correct, 0.2)
    loss.backward()  # type: ignore[no-untyped-call]
    assert cosines.grad is not None
    assert cosines.grad[0].tolist() == [0.0, 0.0]
    assert float(loss.detach()) == pytest.approx((0.0 + 0.2 - 0.3 + 0.2) / 2)


# ---- training ----


def matching(seed: int = 0, questions: int = 9, answers: int = 12) -> Pairs:
    """Random texts, and one to three correct answers for each question."""
    rng = np.random.default_rng(seed)
    pairs = {(q, a) for q in range(questions) for a in rng.integers(0, answers, 3).tolist()}
    return Pairs(
        texts(*random_texts(rng, questions)),
        texts(*random_texts(rng, answers)),
        np.array(sorted(pairs)),
    )


def fit(
    settings: Settings = SETTINGS,
    data: Pairs | None = None,
    validate: Callable[[Siamese], float] | None = None,
    seed: int = 0,
) -> Any:
    rng = np.random.default_rng(seed)
    return train(weights(), data or matching(), settings, rng=rng, validate=validate)


def test_what_is_correct_is_known_for_every_question_and_answer() -> None:
    data = matching()
    found = data.correct(torch.arange(9)[:, None], torch.arange(12))
    expected = np.zeros((9, 12), dtype=bool)
    expected[tuple(data.pairs.T)] = True
    assert np.array_equal(found.numpy(), expected)


@pytest.mark.parametrize("seed", range(5))
def test_a_drawn_negative_is_the_nearest_wrong_answer(seed: int) -> None:
    data, network = matching(seed), Siamese(weights(seed), CPU)
    found = hard_negatives(network, data, 500, torch.Generator().manual_seed(seed))  # all drawn
    cosines = (
        encode(network, data.questions, "question") @ encode(network, data.answers, "answer").T
    )
    cosines = cosines.numpy()[data.pairs[:, 0]]
    right = {(q, a) for q, a in data.pairs.tolist()}
    for row, (q, _) in enumerate(data.pairs.tolist()):
        wrong = [a for a in range(12) if (q, a) not in right]
        assert found[row] in wrong
        assert cosines[row, found[row]] == pytest.approx(cosines[row, wrong].max(), abs=1e-6)


@pytest.mark.parametrize("batch_size", [4, 100])
def test_each_question_is_trained_against_the_negatives_of_its_own(
    monkeypatch: pytest.MonkeyPatch, batch_size: int
) -> None:
    """Pairs come in another order in each epoch, and what was drawn for them comes along."""
    data = matching()
    drawn = np.random.default_rng(1).integers(0, 12, len(data.pairs))
    monkeypatch.setattr(training, "hard_negatives", lambda *args: drawn)
    real = training._loss
    seen: list[list[int]] = []

    def spy(network: Any, data: Any, questions: Any, answers: Any, *others: Any) -> Tensor:
        n = len(questions)
        assert len(answers) == 2 * n
        seen.extend(np.stack([questions, answers[:n], answers[n:]], axis=1).tolist())
        return real(network, data, questions, answers, *others)

    monkeypatch.setattr(training, "_loss", spy)
    fit(replace(SETTINGS, epochs=2, batch_size=batch_size), data)
    expected = np.column_stack([data.pairs, drawn]).tolist()
    one, two = seen[: len(expected)], seen[len(expected) :]
    assert sorted(one) == sorted(two) == expected
    assert one != two != expected


def test_where_only_correct_answers_were_drawn_the_loss_leaves_them_out() -> None:
    data = replace(matching(), pairs=np.array([[0, a] for a in range(12)]))  # everything is right
    before = weights()
    trained = train(before, data, SETTINGS, rng=np.random.default_rng(0))
    assert trained.losses == [0.0, 0.0, 0.0]
    assert all(np.array_equal(before[name], w) for name, w in trained.weights.items())


def test_training_lowers_the_loss() -> None:
    losses = fit(replace(SETTINGS, epochs=40)).losses
    assert np.mean(losses[-5:]) < 0.8 * losses[0]


def test_the_loss_is_the_mean_over_all_pairs() -> None:
    settings = replace(SETTINGS, epochs=1, batch_size=100, negatives=0)
    data, network = matching(), Siamese(weights(), CPU)
    q = encode(network, data.questions, "question")[data.pairs[:, 0]]
    a = encode(network, data.answers, "answer")[data.pairs[:, 1]]
    right = {(q, a) for q, a in data.pairs.tolist()}
    correct = [[(q, a) in right for a in data.pairs[:, 1].tolist()] for q in data.pairs[:, 0]]
    expected = naive_loss((q @ a.T).tolist(), correct, 0.2, 1)
    assert fit(settings, data).losses == [pytest.approx(expected, abs=1e-6)]


def test_a_smaller_last_batch_counts_for_less() -> None:
    """With a rate of nothing, batches of all sizes have the loss of their own pairs."""
    settings = replace(SETTINGS, epochs=1, negatives=0, learning_rate=1e-30)
    data, network = matching(), Siamese(weights(), CPU)
    batch_size = len(data.pairs) - 3
    order = np.random.default_rng(0)
    order.integers(2**63)  # the seed of the generator on the device
    pairs = data.pairs[order.permutation(len(data.pairs))]
    right = {(q, a) for q, a in data.pairs.tolist()}
    q, a = (encode(network, data.questions, "question"), encode(network, data.answers, "answer"))
    total = 0.0
    for some in (pairs[:batch_size], pairs[batch_size:]):
        cosines = q[some[:, 0]] @ a[some[:, 1]].T
        correct = [[(q, a) in right for a in some[:, 1].tolist()] for q in some[:, 0].tolist()]
        total += len(some) * naive_loss(cosines.tolist(), correct, 0.2, 1)
    found = fit(replace(settings, batch_size=batch_size), data).losses
    assert found == [pytest.approx(total / len(pairs), abs=1e-6)]


def test_the_same_generator_gives_the_same_weights_to_the_bit() -> None:
    settings = replace(SETTINGS, dropout=0.3)
    one, two, other = fit(settings), fit(settings), fit(settings, seed=1)
    assert all(np.array_equal(one.weights[name], w) for name, w in two.weights.items())
    assert not all(np.array_equal(one.weights[name], w) for name, w in other.weights.items())
    assert one.losses == two.losses


def test_global_generators_are_neither_used_nor_changed() -> None:
    def states() -> Any:
        return torch.get_rng_state().tolist(), np.random.get_state()[1].tolist()  # noqa: NPY002

    before = states()
    first = fit(replace(SETTINGS, dropout=0.3))
    assert states() == before
    torch.rand(3)
    assert fit(replace(SETTINGS, dropout=0.3)).losses == first.losses


def test_the_best_epoch_is_kept_and_patience_ends_the_rest() -> None:
    scripted = iter([0.1, 0.5, 0.5, 0.4, 0.9])
    settings = replace(SETTINGS, epochs=5, patience=2)
    stopped = fit(settings, validate=lambda network: next(scripted))
    assert stopped.scores == [0.1, 0.5, 0.5, 0.4]
    assert (stopped.best, len(stopped.losses)) == (2, 4)
    two = fit(replace(SETTINGS, epochs=2))
    assert all(np.array_equal(two.weights[name], w) for name, w in stopped.weights.items())


def test_without_patience_all_epochs_are_run_and_the_best_is_kept() -> None:
    scripted = iter([0.6, 0.5, 0.2])
    trained = fit(validate=lambda network: next(scripted))
    assert (trained.best, len(trained.losses)) == (1, 3)
    one = fit(replace(SETTINGS, epochs=1))
    assert all(np.array_equal(one.weights[name], w) for name, w in trained.weights.items())


def test_vectors_stay_where_they_are_not_tuned() -> None:
    frozen = fit(replace(SETTINGS, tune_vectors=False))
    assert np.array_equal(frozen.weights["vectors"], weights()["vectors"])
    assert not np.array_equal(frozen.weights["encoders.0.weight_hh_l0"], np.zeros((20, 5)))
    tuned = fit()
    assert not np.array_equal(tuned.weights["vectors"], weights()["vectors"])


def test_the_vector_of_padding_and_unknown_words_stays_zero() -> None:
    assert not fit().weights["vectors"][0].any()


def test_regularization_makes_the_weights_of_the_lstm_smaller() -> None:
    def size(regularization: float) -> float:
        w = fit(replace(SETTINGS, epochs=20, regularization=regularization)).weights
        return float(sum((a**2).sum() for name, a in w.items() if name != "vectors"))

    assert size(1.0) < 0.5 * size(0.0)


def test_regularization_leaves_word_vectors_alone() -> None:
    """Those of words that no text has would shrink, and nothing would ever push them back."""
    data = Pairs(texts("ab", "c"), texts("d", "ea", "b"), np.array([[0, 0], [1, 1]]))
    trained = fit(replace(SETTINGS, epochs=20, regularization=1.0), data).weights["vectors"]
    unused = [WORDS.codes[letter] for letter in "fghij"]
    assert np.array_equal(trained[unused], weights()["vectors"][unused])
    assert not np.allclose(trained[WORDS.codes["a"]], weights()["vectors"][WORDS.codes["a"]])


def test_a_last_step_that_breaks_the_weights_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loss was taken before it."""

    def breaking(network: Siamese, settings: Settings) -> torch.optim.Optimizer:
        return torch.optim.SGD(network.parameters(), lr=1e38, weight_decay=1e30)

    monkeypatch.setattr(training, "_optimizer", breaking)
    with pytest.raises(ValueError, match="diverged in epoch 1: learning_rate must be smaller"):
        fit(replace(SETTINGS, epochs=1, batch_size=100))


def test_a_learning_rate_that_breaks_everything_is_named() -> None:
    with pytest.raises(ValueError, match="learning_rate must be smaller, but got 1e\\+37"):
        fit(replace(SETTINGS, learning_rate=1e37, epochs=20))


@pytest.mark.parametrize("device", DEVICES)
def test_weights_come_back_from_any_device_as_they_went(device: str) -> None:
    w = weights(shared=False)
    back = Siamese(w, torch.device(device)).weights()
    assert back.keys() == w.keys()
    assert all(np.array_equal(back[name], w[name]) for name in w)
