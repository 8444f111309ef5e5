"""SiameseBiLSTM: finds answers, takes texts or ids, and behaves as an estimator should."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from tradewind.models.siamese import SiameseBiLSTM, estimator
from tradewind.models.text import codes_of
from tradewind.models.vectors import WordVectors
from tradewind.space import Float, Int, Ordinal, TrainSize

TOPICS = 6
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
SMALL: dict[str, Any] = {
    "hidden": 12,
    "dimensions": 12,
    "batch_size": 16,
    "learning_rate": 0.01,
    "negatives": 5,
    "random_state": 0,
    "device": "cpu",
}


def made_up(seed: int, count: int) -> tuple[list[str], list[str]]:
    """Questions about one of six topics and answers to them, which have no word in common."""
    rng = np.random.default_rng(seed)
    questions, answers = [], []
    for i in range(count):
        topic = i % TOPICS
        asked = [f"q{topic}{w}" for w in rng.integers(0, 4, 3)] + ["how", "what"]
        told = [f"a{topic}{w}" for w in rng.integers(0, 4, 5)] + ["well", "so", "then"]
        questions.append(" ".join(rng.permutation(asked)))
        answers.append(" ".join(rng.permutation(told)))
    return questions, answers


TRAIN = made_up(0, 60)
TRAIN_ALL = [TRAIN[1][i % TOPICS :: TOPICS] for i in range(60)]  # the answers to each topic
TEST = made_up(1, 30)
POOLS = [TEST[1][i : i + TOPICS] for i in range(0, 30, TOPICS) for _ in range(TOPICS)]
CORRECT = TEST[1]


@pytest.fixture(scope="module")
def fitted() -> SiameseBiLSTM:
    return SiameseBiLSTM(**SMALL, epochs=15).fit(*TRAIN)


# ---- learning ----


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("changed", [{}, {"shared": False}, {"negatives": 0}, {"hardest": 4}])
def test_it_learns_which_answers_belong_to_a_question(device: str, changed: Any) -> None:
    model = SiameseBiLSTM(**{**SMALL, "device": device, **changed}, epochs=4)
    model.fit(TRAIN[0], TRAIN_ALL)
    assert model.score(TEST[0], POOLS, CORRECT) == 1.0  # by chance 1/6
    assert model.losses_[-1] < 0.1 * model.losses_[0]


def test_the_same_seed_gives_the_same_model_to_the_bit() -> None:
    one, two, other = (
        SiameseBiLSTM(**{**SMALL, "random_state": seed}, dropout=0.3, epochs=2).fit(*TRAIN)
        for seed in (3, 3, 4)
    )
    assert all(np.array_equal(one.weights_[name], w) for name, w in two.weights_.items())
    assert not np.array_equal(one.weights_["vectors"], other.weights_["vectors"])


@pytest.mark.parametrize("random_state", [None, 0])
def test_global_generators_are_neither_used_nor_changed(random_state: Any) -> None:
    def states() -> Any:
        return torch.get_rng_state().tolist(), np.random.get_state()[1].tolist()  # noqa: NPY002

    before = states()
    model = SiameseBiLSTM(**{**SMALL, "random_state": random_state}, epochs=1).fit(*TRAIN)
    model.score(TEST[0], POOLS, CORRECT)
    assert states() == before


def test_without_a_seed_two_models_differ() -> None:
    one, two = (
        SiameseBiLSTM(**{**SMALL, "random_state": None}, epochs=1).fit(*TRAIN) for _ in range(2)
    )
    assert not np.array_equal(one.weights_["vectors"], two.weights_["vectors"])


def test_the_validation_is_the_score_after_every_epoch() -> None:
    validation = (TEST[0], POOLS, CORRECT)
    model = SiameseBiLSTM(**SMALL, epochs=6).fit(*TRAIN, validation=validation)
    scores = model.validation_scores_
    assert len(scores) == 6
    assert model.best_epoch_ == 1 + scores.index(max(scores))
    assert model.score(*validation) == max(scores)
    first = SiameseBiLSTM(**SMALL, epochs=1).fit(*TRAIN)
    assert first.score(*validation) == scores[0]


def test_training_stops_where_the_score_no_longer_grows() -> None:
    model = SiameseBiLSTM(**SMALL, epochs=60, patience=2)
    model.fit(*TRAIN, validation=(TEST[0], POOLS, CORRECT))
    assert len(model.losses_) == model.best_epoch_ + 2 < 60


def test_several_correct_answers_are_all_learned_from() -> None:
    questions = ["is it red", "is it blue"]
    answers = [["crimson", "scarlet"], ["azure", "navy"]]
    model = SiameseBiLSTM(**SMALL, epochs=30).fit(questions, answers)
    cosines = model.similarity(questions, ["crimson", "scarlet", "azure", "navy"])
    assert cosines[0, :2].min() > cosines[0, 2:].max()
    assert cosines[1, 2:].min() > cosines[1, :2].max()


def test_a_question_that_comes_twice_has_the_correct_answers_of_both() -> None:
    twice = SiameseBiLSTM(**SMALL, epochs=3).fit(["a", "b", "a"], ["x", "y", "z"])
    once = SiameseBiLSTM(**SMALL, epochs=3).fit(["a", "b"], [["x", "z"], "y"])
    assert {*twice.vocabulary_} == {*once.vocabulary_}
    assert twice.losses_[0] == pytest.approx(once.losses_[0], abs=0.2)
    only = SiameseBiLSTM(**SMALL, epochs=1).fit(["a", "a"], ["x", "y"])
    assert only.losses_ == [0.0]  # both are correct, and there is nothing else


def test_candidates_are_drawn_as_wrong_answers() -> None:
    one = SiameseBiLSTM(**SMALL, epochs=30, margin=1.5)
    with pytest.raises(ValueError, match="at least two different answers"):
        one.fit(["is it red"], ["crimson"])
    one.fit(["is it red"], ["crimson"], candidates=["azure", "navy"])
    assert one.losses_[-1] < 0.5 * one.losses_[0]
    assert one.predict("is it red", ["navy", "crimson", "azure"]) == 1


def test_given_vectors_are_begun_with() -> None:
    table = np.random.default_rng(0).standard_normal((2, 7)).astype(np.float32)
    vectors = WordVectors(("how", "well"), table)
    model = SiameseBiLSTM(vectors, **SMALL, epochs=1, tune_vectors=False).fit(*TRAIN)
    rows = [1 + model.vocabulary_.index(word) for word in vectors.words]
    assert np.array_equal(model.weights_["vectors"][rows], table)
    assert model.weights_["vectors"].shape == (1 + len(model.vocabulary_), 7)


@pytest.fixture(scope="module")
def with_vectors() -> SiameseBiLSTM:
    """One that has vectors for more words than its training texts: that of una01 is that of a01."""
    words = sorted({word for text in (*TRAIN[0], *TRAIN[1]) for word in text.split()})
    table = np.random.default_rng(0).standard_normal((len(words), 12)).astype(np.float32)
    vectors = WordVectors((*words, *(f"un{word}" for word in words)), np.tile(table, (2, 1)))
    return SiameseBiLSTM(vectors, **SMALL, epochs=3, tune_vectors=False).fit(*TRAIN)


def test_words_that_training_has_not_seen_have_their_given_vectors(
    with_vectors: SiameseBiLSTM,
) -> None:
    seen, unseen = TEST[1], [" ".join(f"un{word}" for word in text.split()) for text in TEST[1]]
    encoded = with_vectors.encode_answers(seen)
    np.testing.assert_allclose(with_vectors.encode_answers(unseen), encoded, atol=1e-6)
    np.testing.assert_array_equal(
        with_vectors.rank("how q01", unseen[:6]), with_vectors.rank("how q01", seen[:6])
    )
    both = with_vectors.similarity(seen[:1], [unseen[0], "neither known nor given"])
    assert both[0, 1] < both[0, 0]


def test_given_vectors_that_differ_are_read_as_given() -> None:
    vectors = WordVectors(("crimson", "azure", "navy"), np.diag([3.0, -2.0, 1.0]))
    model = SiameseBiLSTM(vectors, **SMALL, epochs=1, tune_vectors=False)
    model.fit(["red", "blue", "green"], ["crimson", "sky", "grass"])
    words, table = model._vectors_of([["navy", "red", "nobody"], ["azure", "red", "crimson"]])
    learned = model.weights_["vectors"][1 + model.vocabulary_.index("red")]
    found = {word: table[code].tolist() for word, code in words.codes.items()}
    assert found == {
        "navy": [0.0, 0.0, 1.0],
        "azure": [0.0, -2.0, 0.0],
        "crimson": [3.0, 0.0, 0.0],
        "red": learned.tolist(),
    }
    assert not table[0].any()


def test_to_rank_a_pool_only_the_vectors_of_its_words_are_looked_up(
    fitted: SiameseBiLSTM, with_vectors: SiameseBiLSTM, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However large the vocabulary, and its codes are made once."""
    sizes = []
    real = estimator.Siamese

    def spy(weights: Any, device: Any) -> Any:
        sizes.append(len(weights["vectors"]))
        return real(weights, device)

    monkeypatch.setattr(estimator, "Siamese", spy)
    made = codes_of.cache_info().misses
    for model in (fitted, with_vectors):
        for _ in range(3):
            model.rank("how q01", ["a01 well", "a11 una12", "nobody knows una12"])
    padding = 1
    assert sizes == [padding + 5] * 3 + [padding + 6] * 3
    assert codes_of.cache_info().misses <= made + 2


def test_after_another_fit_nothing_of_the_first_is_left() -> None:
    model = SiameseBiLSTM(**SMALL, epochs=2).fit(*TRAIN)
    model.rank("how q01", TEST[1][:3])
    questions, answers = made_up(7, 24)
    again = model.fit(questions[::-1], answers[::-1]).similarity(*TEST)
    fresh = SiameseBiLSTM(**SMALL, epochs=2).fit(questions[::-1], answers[::-1])
    assert np.array_equal(again, fresh.similarity(*TEST))
    model.weights_["vectors"][:] = 0.0
    assert np.ptp(model.similarity(TEST[0][:1], ["well so", "then a01"])) == 0.0


def test_a_validation_reads_the_words_that_the_score_reads(with_vectors: SiameseBiLSTM) -> None:
    unseen = [" ".join(f"un{word}" for word in text.split()) for text in TEST[0]]
    validation = (unseen, POOLS, CORRECT)
    model = clone(with_vectors).set_params(tune_vectors=True)
    model.fit(*TRAIN, validation=validation)
    assert model.score(*validation) == max(model.validation_scores_) > 1 / TOPICS


def test_the_time_of_training_is_kept() -> None:
    assert 0 < SiameseBiLSTM(**SMALL, epochs=1).fit(*TRAIN).fit_seconds_ < 1e4


# ---- using ----


def test_orders_follow_the_similarity(fitted: SiameseBiLSTM) -> None:
    cosines = fitted.similarity(TEST[0], TEST[1])
    orders = fitted.rank(TEST[0], [TEST[1]] * 30)
    for row, order in zip(cosines, orders, strict=True):
        assert sorted(order) == list(range(30))
        assert (np.diff(row[order]) <= 1e-6).all()


def test_the_similarity_is_the_product_of_encodings(fitted: SiameseBiLSTM) -> None:
    q, a = fitted.encode_questions(TEST[0]), fitted.encode_answers(TEST[1])
    assert q.shape == a.shape == (30, 24)
    np.testing.assert_allclose(np.linalg.norm(q, axis=1), 1.0, rtol=1e-5)
    np.testing.assert_allclose(fitted.similarity(*TEST), q @ a.T, atol=1e-6)


def test_a_shared_lstm_reads_questions_as_answers(fitted: SiameseBiLSTM) -> None:
    assert np.array_equal(fitted.encode_questions(TEST[0]), fitted.encode_answers(TEST[0]))
    apart = SiameseBiLSTM(**SMALL, epochs=1, shared=False).fit(*TRAIN)
    assert not np.allclose(apart.encode_questions(TEST[0]), apart.encode_answers(TEST[0]))


def test_the_prediction_is_the_first_of_the_order(fitted: SiameseBiLSTM) -> None:
    orders = fitted.rank(TEST[0], POOLS)
    assert fitted.predict(TEST[0], POOLS).tolist() == [order[0] for order in orders]


def test_a_single_question_gives_a_single_order(fitted: SiameseBiLSTM) -> None:
    order = fitted.rank(TEST[0][0], POOLS[0])
    assert order.tolist() == fitted.rank(TEST[0][:1], POOLS[:1])[0].tolist()
    assert fitted.predict(TEST[0][0], POOLS[0]) == order[0]


def test_score_and_mrr_are_those_of_the_orders(fitted: SiameseBiLSTM) -> None:
    rng = np.random.default_rng(0)
    pools = [rng.permutation(TEST[1])[: rng.integers(3, 20)].tolist() for _ in range(30)]
    firsts = []
    for pool, order, right in zip(pools, fitted.rank(TEST[0], pools), CORRECT, strict=True):
        ranks = [rank for rank, i in enumerate(order, 1) if pool[i] == right]
        firsts.append(1 / min(ranks) if ranks else 0.0)
    assert fitted.score(TEST[0], pools, CORRECT) == pytest.approx(np.mean(np.equal(firsts, 1)))
    assert fitted.mrr(TEST[0], pools, CORRECT) == pytest.approx(np.mean(firsts))


def test_pools_of_ids_are_as_pools_of_texts(fitted: SiameseBiLSTM) -> None:
    texts = {100 + i: text for i, text in enumerate(TEST[1])}
    ids = {text: id for id, text in texts.items()}
    pools = [[ids[text] for text in pool] for pool in POOLS]
    correct = [[ids[text]] for text in CORRECT]
    assert fitted.score(TEST[0], pools, correct, texts) == fitted.score(TEST[0], POOLS, CORRECT)
    assert fitted.mrr(TEST[0], np.array(pools), correct, texts) == fitted.mrr(
        TEST[0], POOLS, CORRECT
    )
    numbers = [[id - 100 for id in pool] for pool in pools]
    right = [id - 100 for (id,) in correct]
    assert fitted.score(TEST[0], numbers, right, TEST[1]) == fitted.score(TEST[0], POOLS, CORRECT)


def test_a_pool_without_a_correct_answer_counts_as_failed(fitted: SiameseBiLSTM) -> None:
    question, answer = TEST[0][0], TEST[1][0]
    assert fitted.score([question], [["something"]], [answer]) == 0.0
    assert fitted.mrr([question], [["something"]], [answer]) == 0.0
    assert fitted.score([question], [[answer]], [[answer, "something"]]) == 1.0


def test_unknown_words_and_empty_texts_are_ranked_too(fitted: SiameseBiLSTM) -> None:
    order = fitted.rank("", ["", "zzz yyy", "a01 a02"])
    assert sorted(order) == [0, 1, 2]
    assert np.isfinite(fitted.similarity(["", "zzz"], ["", "zzz", "well"])).all()


def test_no_texts_have_no_encodings(fitted: SiameseBiLSTM) -> None:
    assert fitted.encode_answers([]).shape == (0, 24)
    assert fitted.similarity(TEST[0], []).shape == (30, 0)


# ---- as an estimator ----


def test_a_saved_model_is_the_same_model(fitted: SiameseBiLSTM, tmp_path: Path) -> None:
    fitted.save(tmp_path / "model.npz")
    loaded = SiameseBiLSTM.load(tmp_path / "model.npz")
    assert loaded.get_params() == fitted.get_params()
    assert np.array_equal(loaded.similarity(*TEST), fitted.similarity(*TEST))
    assert (loaded.losses_, loaded.fit_seconds_) == (fitted.losses_, fitted.fit_seconds_)


def test_a_pickled_model_is_the_same_model(fitted: SiameseBiLSTM) -> None:
    loaded = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(loaded.similarity(*TEST), fitted.similarity(*TEST))


def test_a_clone_has_the_parameters_and_nothing_learned(fitted: SiameseBiLSTM) -> None:
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "weights_")
    vectors = WordVectors(("a",), np.ones((1, 3), dtype=np.float32))
    assert clone(SiameseBiLSTM(vectors)).vectors is vectors


def test_nothing_can_be_asked_before_it_has_learned() -> None:
    model = SiameseBiLSTM(**SMALL)
    for ask in (
        lambda: model.encode_questions(["a"]),
        lambda: model.encode_answers([]),
        lambda: model.rank("a", ["b"]),
        lambda: model.predict(["a"], [["b"]]),
        lambda: model.score(["a"], [["b"]], ["b"]),
        lambda: model.mrr(["a"], [["b"]], ["b"]),
    ):
        with pytest.raises(NotFittedError):
            ask()


def test_a_failed_fit_leaves_what_was_learned_before() -> None:
    model = SiameseBiLSTM(**SMALL, epochs=1).fit(*TRAIN)
    before = model.similarity(*TEST)
    model.set_params(learning_rate=1e37, epochs=20)
    with pytest.raises(ValueError, match="diverged"):
        model.fit(["other words", "again"], ["and more", "of them"])
    assert np.array_equal(model.similarity(*TEST), before)


@pytest.mark.parametrize(
    "changes",
    [
        {"max_length": 1},
        {"vectors": None},
        {"vectors": WordVectors(("una01", "a01"), np.ones((2, 3), dtype=np.float32))},
        {"dimensions": 3, "hidden": 2, "shared": False, "tune_vectors": True},
    ],
)
def test_settings_that_change_leave_what_was_learned_alone(
    with_vectors: SiameseBiLSTM, changes: dict[str, Any], tmp_path: Path
) -> None:
    asked, told = ["how q01", "una01 what"], ["well una01 so", "una12 then", "nobody"]
    model = pickle.loads(pickle.dumps(with_vectors))
    before = model.similarity(asked, told)
    model.set_params(**changes)
    assert np.array_equal(model.similarity(asked, told), before)
    assert model.encode_answers([]).shape == (0, 24)
    model.save(tmp_path / "model.npz")
    again = SiameseBiLSTM.load(tmp_path / "model.npz")
    assert np.array_equal(again.similarity(asked, told), before)
    model.set_params(epochs=1).fit(*TRAIN)  # and they count from then on
    assert np.array_equal(
        model.similarity(asked, told), clone(model).fit(*TRAIN).similarity(asked, told)
    )


def test_the_space_is_that_of_the_paper() -> None:
    space = SiameseBiLSTM.space(train_sizes=[0.5, 1.0])
    names = {"train_size", "dropout", "regularization", "hidden", "batch_size", "epochs"}
    assert {*space} == names
    assert space["train_size"] == TrainSize([0.5, 1.0])
    assert SiameseBiLSTM.space()["train_size"] == TrainSize([0.2, 0.4, 0.6, 0.8, 1.0])
    searched = SiameseBiLSTM.space(None)
    assert {name: searched[name] for name in searched} == {
        "dropout": Float(0.0, 0.6),
        "regularization": Float(1e-8, 1e-3, log=True),
        "hidden": Int(32, 384, log=True),
        "batch_size": Ordinal([32, 64, 128, 256, 512]),
        "epochs": Int(2, 30, log=True),
    }


def test_every_point_of_the_space_can_be_trained() -> None:
    space = SiameseBiLSTM.space(None)
    rng = np.random.default_rng(0)
    for config in space.decode(space.sample(3, rng=rng)):
        model = SiameseBiLSTM(**SMALL).set_params(**config).set_params(epochs=1)
        model.fit(TRAIN[0][:6], TRAIN[1][:6])
        assert np.isfinite(model.losses_[0])


def test_the_defaults() -> None:
    assert SiameseBiLSTM().get_params() == {
        **{"vectors": None, "dimensions": 100, "tune_vectors": True, "max_length": 100},
        **{"hidden": 128, "shared": True, "dropout": 0.2, "regularization": 1e-6},
        **{"margin": 0.2, "negatives": 50, "hardest": 10, "batch_size": 128, "epochs": 6},
        **{"learning_rate": 2e-3, "patience": None},
        **{"random_state": None, "device": "auto", "verbose": False},
    }


def test_the_defaults_lie_in_the_space() -> None:
    space = SiameseBiLSTM.space(None)
    defaults = SiameseBiLSTM().get_params()
    assert space.validate({name: defaults[name] for name in space})


# ---- what cannot be ----


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("hidden", 0, "hidden must be a whole number .*1, but got 0"),
        ("hidden", 2.5, "hidden must be a whole number"),
        ("dropout", 1.0, r"dropout must be .*in \[0, 1\), but got 1.0"),
        ("dropout", float("nan"), "dropout must be .*in"),
        ("regularization", -1.0, "regularization must be"),
        ("regularization", float("nan"), "regularization must be"),
        ("batch_size", 0, "batch_size must be"),
        ("epochs", 0, "epochs must be"),
        ("margin", 0.0, "margin must be .*, but got 0.0"),
        ("learning_rate", float("inf"), "learning_rate must be .*, but got inf"),
        ("negatives", -1, "negatives must be"),
        ("hardest", 0, "hardest must be"),
        ("max_length", 0, "max_length must be"),
        ("dimensions", 0, "dimensions must be"),
        ("patience", 0, "patience must be"),
        ("patience", 3, "patience needs a validation"),
        ("shared", "yes", "shared must be True or False"),
        ("tune_vectors", None, "tune_vectors must be True or False"),
        ("vectors", {"a": [1.0]}, "vectors must be WordVectors or None"),
        ("device", "toaster", "device must be"),
        ("random_state", -1, "random_state must be"),
    ],
)
def test_a_parameter_that_cannot_be_is_named(name: str, value: Any, message: str) -> None:
    model = SiameseBiLSTM(**{**SMALL, name: value})
    with pytest.raises(ValueError, match=message):
        model.fit(*TRAIN)


def test_a_batch_of_one_needs_negatives() -> None:
    model = SiameseBiLSTM(**{**SMALL, "batch_size": 1, "negatives": 0})
    with pytest.raises(ValueError, match="batch_size must be at least 2 if negatives is 0"):
        model.fit(*TRAIN)


@pytest.mark.parametrize(
    ("questions", "answers", "message"),
    [
        ([], [], "at least one question is needed"),
        (["a", "b"], ["x"], "answers must have an entry for each question, but got 1 for 2"),
        (["a", "b"], ["x", []], "every question needs a correct answer, but question 1 has none"),
        ("a", ["x"], "texts must be a list of strings"),
        (["a"], "x", "answers must be a list, but got the single text 'x'"),
        (["a", None], ["x", "y"], "every text must be a string, but text 1 is None"),
        (
            ["a", "b"],
            ["x", [3]],
            r"answers must have one text or a list of texts .*, but got \[3\]",
        ),
        (["", "..."], ["-", "!!".replace("!", "")], "at least one text must have words"),
        (["a", "b"], None, "answers must be a list, but got None"),
        (["a", "b"], 3, "answers must be a list, but got 3"),
        (["a", "b"], ["x", None], "answers must have one text or a list of texts .*, but got None"),
    ],
)
def test_training_texts_that_cannot_be_are_named(
    questions: Any, answers: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        SiameseBiLSTM(**SMALL).fit(questions, answers)


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        (None, "candidates must be a list, but got None"),
        ("x", "candidates must be a list, but got the single text 'x'"),
        ([["x"]], "every text must be a string"),
    ],
)
def test_candidates_that_cannot_be_are_named(candidates: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SiameseBiLSTM(**SMALL).fit(["a"], ["x"], candidates=candidates)


@pytest.mark.parametrize("validation", [3, "abc", (), (["a"], [["x"]]), {"questions": ["a"]}])
def test_a_validation_that_cannot_be_is_named(validation: Any) -> None:
    with pytest.raises(ValueError, match=r"validation must be \(questions, pools, correct\) or"):
        SiameseBiLSTM(**SMALL).fit(*TRAIN, validation=validation)


@pytest.mark.parametrize(
    ("pools", "correct", "answers", "message"),
    [
        ([["x"]], ["x", "y"], None, "pools must have an entry for each question, but got 1 for 2"),
        (
            [["x"], []],
            ["x", "y"],
            None,
            "every pool needs at least one answer, but pool 1 is empty",
        ),
        ([["x"], ["y"]], ["x"], None, "correct must have an entry for each question"),
        ([["x"], ["y"]], ["x", []], None, "question 1 has none"),
        ([["x"], [3]], ["x", "y"], None, "every text must be a string"),
        (None, ["x", "y"], None, "pools must be a list, but got None"),
        ([["x"], None], ["x", "y"], None, "pool 1 must be a list, but got None"),
        (["x", ["y"]], ["x", "y"], None, "pool 0 must be a list, but got the single text 'x'"),
        ([["x"], ["y"]], None, None, "correct must be a list, but got None"),
        ([[0], [1]], None, ["x", "y"], "correct must be a list, but got None"),
        ([[0], [1]], [0, 1], 3, "answers must be a list, but got 3"),
        (
            [["x"], ["y"]],
            [0, 0],
            None,
            "correct must have one text or a list of texts .*, but got 0",
        ),
        ([["x"], ["y"]], [[0], [0]], None, "correct must have one text or a list of texts"),
        ([[0], [2]], [0, 1], ["x", "y"], "there is no answer 2"),
        ([[0], [-1]], [0, 1], ["x", "y"], "there is no answer -1"),
        ([[0], [0.5]], [0, 1], ["x", "y"], "pool 1 must be a list of ids of answers"),
        ([[0], [1]], [0, []], ["x", "y"], "question 1 has none"),
        ([[0], [1]], [0], {0: "x", 1: "y"}, "correct must have an entry for each question"),
        ([[0], [1]], [0, "y"], {0: "x", 1: "y"}, "correct 1 must be a list of ids of answers"),
        ([[0], [1]], [0, 1], {0: "x", 1: None}, "every text must be a string"),
    ],
)
def test_pools_that_cannot_be_are_named(
    fitted: SiameseBiLSTM, pools: Any, correct: Any, answers: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        fitted.score(["a", "b"], pools, correct, answers)
    with pytest.raises(ValueError, match=message):
        clone(fitted).fit(*TRAIN, validation=(["a", "b"], pools, correct, answers))


def test_no_questions_cannot_be_scored(fitted: SiameseBiLSTM) -> None:
    with pytest.raises(ValueError, match="at least one question is needed"):
        fitted.score([], [], [])
