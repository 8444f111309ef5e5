"""The doors: studies are created, loaded, listed, renamed and deleted by name."""

from __future__ import annotations

import copy
import pickle
import re
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tradewind as tw
from tests.studies import SPACE, create, events_of, quick, score, states, told
from tradewind.errors import FormatError, NoSuchStudy, StorageError, StudyExists, TradewindError
from tradewind.log.events import Configured, Created, Finished
from tradewind.log.log import Log, Store
from tradewind.log.memory import MemoryStore
from tradewind.seeds import proposal_rng, trial_seed
from tradewind.strategies import Bayes, Design, RandomSearch
from tradewind.types import Outcome

OTHER = tw.Space({"x": tw.Float(0, 2), "k": tw.Int(1, 9), "z": tw.Bool()})


class Own(RandomSearch):
    """A strategy that is not in the store."""


class Another(RandomSearch):
    """And another."""


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return MemoryStore() if request.param == "memory" else tmp_path / "runs.db"


def configured(study: tw.Study) -> list[Configured]:
    return [e for e in events_of(study) if isinstance(e, Configured)]


# ---- creating ----


def test_a_new_study_begins_with_all_that_it_is(store: Any) -> None:
    study = tw.create_study(
        SPACE,
        goal=tw.Tradeoff(alpha=0.3),
        strategy="random",
        direction="minimize",
        seed=5,
        storage=store,
    )
    (event,) = events_of(study)
    assert isinstance(event, Created)
    assert tw.Space.from_dict(event.space) == SPACE
    goal = {"type": "Tradeoff", "alpha": 0.3, "reference": None, "capped": False, "by": None}
    assert event.goal == goal
    assert event.strategy == {"type": "RandomSearch"}
    assert (event.maximize, event.seed) == (False, 5)


def test_the_seed_that_was_drawn_is_in_the_store(store: Any) -> None:
    study = tw.create_study(SPACE, storage=store)
    assert tw.load_study(store).seed == study.seed


def test_a_name_is_given_once(store: Any) -> None:
    create(storage=store)
    with pytest.raises(StudyExists, match="'study'"):
        create(storage=store)
    create(storage=store, name="another")
    assert [s.name for s in tw.list_studies(store)] == ["study", "another"]


def test_a_wrong_argument_leaves_nothing_in_the_store(store: Any) -> None:
    for options in ({"goal": "best"}, {"strategy": "tpe"}, {"seed": -1}, {"direction": "up"}):
        with pytest.raises((TypeError, ValueError)):
            create(storage=store, **options)
    assert tw.list_studies(store) == []


def test_without_a_storage_a_study_is_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRADEWIND_STORAGE", raising=False)
    create()
    create()  # of the same name: no two share their memory


# ---- the seed of the data ----


def test_the_seed_of_the_data_is_stored_and_every_trial_has_it(store: Any) -> None:
    study = create(storage=store, seed=7)
    (event,) = events_of(study)
    assert isinstance(event, Created)
    assert event.data_seed is not None
    trials = [study.ask(), tw.load_study(store).ask()]
    assert [trial.data_seed for trial in trials] == [event.data_seed] * 2


@pytest.mark.parametrize("seed", [0, 7, 2**40])
def test_the_seed_of_the_data_shares_no_stream_with_a_proposal(seed: int) -> None:
    """In version 0.1 it was the first number in the stream of proposal 2."""
    data_seed = create(seed=seed).ask().data_seed
    first = [proposal_rng(seed, n).integers(2**32, dtype=np.uint32) for n in range(100)]
    words = [np.random.SeedSequence([seed, n]).generate_state(4) for n in range(100)]
    others = {int(n) & 0x7FFFFFFF for n in [*first, *np.concatenate(words)]}
    assert data_seed not in others
    assert data_seed not in [trial_seed(seed, n) for n in range(100)]


def test_a_study_that_does_not_store_the_seed_of_its_data_keeps_the_old_one() -> None:
    store = MemoryStore()
    create(storage=store, seed=7)
    log: Any = store.open("study")
    log._events[0] = replace(log._events[0], data_seed=None)
    assert tw.load_study(store).ask().data_seed == 1009178997  # as version 0.1 computed it


# ---- load_if_exists ----


def again(store: Any, space: tw.Space = SPACE, **options: Any) -> tw.Study:
    return tw.create_study(space, storage=store, load_if_exists=True, **options)


def test_a_study_that_is_there_goes_on(store: Any) -> None:
    study = create(storage=store)
    study.optimize(score, n_trials=3)
    other = again(store, seed=0, strategy="random", goal=tw.Quality())
    assert other.trials == study.trials
    assert configured(other) == []
    other.optimize(score, n_trials=2)
    assert len(study.trials) == 5


def test_a_study_that_is_not_there_is_created(store: Any) -> None:
    assert again(store, seed=4).seed == 4
    assert again(store).seed == 4


def test_what_is_not_given_stays_as_it_is(store: Any) -> None:
    create(storage=store, goal=tw.Tradeoff(alpha=0.3))
    study = again(store)
    assert (study.goal, study.strategy, study.seed) == (tw.Tradeoff(alpha=0.3), RandomSearch(), 0)
    assert configured(study) == []


def test_another_goal_and_strategy_are_gone_on_with(store: Any) -> None:
    before = create(storage=store)
    study = again(store, goal=tw.Tradeoff(alpha=0.3), strategy=Bayes(design=Design(3)))
    assert (study.goal, study.strategy) == (tw.Tradeoff(alpha=0.3), Bayes(design=Design(3)))
    assert study.trials == []
    assert configured(study) == []  # who only looks changes nothing
    study.ask()
    assert len(configured(study)) == 1
    before.ask()
    for s in (study, before, tw.load_study(store)):
        assert (s.goal, s.strategy) == (tw.Tradeoff(alpha=0.3), Bayes(design=Design(3)))
    assert len(configured(study)) == 1


@pytest.mark.parametrize(
    ("options", "differences"),
    [
        (
            {"space": OTHER},
            [
                f"'x' is {SPACE['x']} there and {OTHER['x']} here",
                f"'z' is missing there and {OTHER['z']} here",
            ],
        ),
        (
            {"space": tw.Space({"x": tw.Float(0, 1)})},
            [f"'k' is {SPACE['k']} there and missing here"],
        ),
        ({"space": tw.Space({"k": tw.Int(1, 9), "x": tw.Float(0, 1)})}, ["in another order"]),
        ({"space": tw.Space(SPACE, forbid=[{"k": 3}])}, ["other combinations are forbidden"]),
        ({"direction": "minimize"}, ["it is maximized there"]),
        ({"seed": 1}, ["its seed is 0 there and 1 here"]),
        ({"metric": "F1"}, ["its metric is 'accuracy' there and 'F1' here"]),
        (
            {"space": OTHER, "direction": "minimize", "seed": 1},
            ["'x' is", "'z' is", "maximized there", "its seed is 0"],
        ),
    ],
    ids=["parameters", "fewer", "order", "forbidden", "direction", "seed", "metric", "all"],
)
def test_a_study_of_another_kind_is_refused_and_the_difference_is_shown(
    store: Any, options: dict[str, Any], differences: list[str]
) -> None:
    study = create(storage=store, metric="accuracy")
    with pytest.raises(StorageError, match="the stored study 'study' is different: ") as raised:
        again(store, **{"seed": 0, **options})
    for difference in differences:
        assert difference in str(raised.value)
    assert len(events_of(study)) == 1


def test_the_name_of_the_quality_is_kept_and_exported(store: Any, tmp_path: Path) -> None:
    study = create(storage=store, name="a", metric="log loss", direction="minimize")
    study.export(tmp_path / "b.jsonl")
    copy = tw.import_study(tmp_path / "b.jsonl", storage=store)
    assert [it.metric for it in (study, tw.load_study(store, "a"), copy)] == ["log loss"] * 3


def test_a_quality_without_a_name_may_get_one(store: Any) -> None:
    study = create(storage=store)
    assert study.metric is None
    assert again(store).metric is None
    assert again(store, metric="accuracy").metric == "accuracy"
    assert again(store, metric="accuracy").metric == "accuracy"
    assert tw.load_study(store).metric == "accuracy"
    assert len(events_of(study)) == 2


@pytest.mark.parametrize("metric", ["", " ", 3, "two\nlines", "x" * 41])
def test_the_name_of_a_quality_is_short_text_on_one_line(metric: Any) -> None:
    with pytest.raises(ValueError, match=r"^metric must "):
        create(metric=metric)


# ---- loading ----


def test_the_only_study_needs_no_name(store: Any) -> None:
    create(storage=store, name="reviews")
    assert tw.load_study(store).name == "reviews"


@pytest.mark.parametrize("names", [[], ["a", "b"]])
def test_of_none_or_many_one_has_to_be_named(store: Any, names: list[str]) -> None:
    for name in names:
        create(storage=store, name=name)
    said = "which study.*'a', 'b'" if names else "there is no file|has no studies"
    with pytest.raises(NoSuchStudy, match=said):
        tw.load_study(store)


def test_a_file_that_is_not_there_is_named_and_not_created(tmp_path: Path) -> None:
    with pytest.raises(NoSuchStudy, match=r"there is no file .*none\.db"):
        tw.load_study(tmp_path / "none.db")
    assert list(tmp_path.iterdir()) == []


def test_a_file_without_studies_says_so(tmp_path: Path) -> None:
    create(storage=tmp_path / "runs.db")
    tw.delete_study("study", storage=tmp_path / "runs.db")
    with pytest.raises(NoSuchStudy, match=r"runs\.db.* has no studies"):
        tw.load_study(tmp_path / "runs.db")


def test_a_text_is_a_goal_wherever_one_is_asked_for(tmp_path: Path) -> None:
    study = create(goal="under:2s", storage=tmp_path / "a.db")
    for value, cost in ((0.9, 3.0), (0.8, 1.5), (0.7, 0.5)):
        study.tell(study.ask(), value, cost=cost)
    study.export(tmp_path / "study.jsonl")
    assert study.goal == tw.BestUnder("2s") == tw.BestUnder(2.0)
    assert tw.load_study(tmp_path / "a.db", goal="1%").goal == tw.CheapestWithin("1%")
    assert tw.import_study(tmp_path / "study.jsonl", goal="knee").goal == tw.Knee()
    assert [study.best_for(text).number for text in ("quality", "under:1s", "20%")] == [0, 2, 1]
    assert study.best_result_for("tradeoff:0.5@1s").number == 2
    assert study.explain("quality").choice.number == 0
    assert study.leaderboard(1, goal="quality").entries[0].trial.number == 0
    study.change_goal("tradeoff:0.1@500ms")
    assert study.goal == tw.Tradeoff.price(points=0.1, cost="500ms")
    with pytest.raises(ValueError, match=r"but got 'fastest'$"):
        study.best_for("fastest")


def test_a_study_that_is_not_there_cannot_be_loaded(store: Any) -> None:
    create(storage=store)
    with pytest.raises(NoSuchStudy, match="'reviews'"):
        tw.load_study(store, "reviews")


def test_a_store_has_to_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRADEWIND_STORAGE", raising=False)
    for ask in (
        lambda: tw.load_study(name="study"),
        tw.list_studies,
        lambda: tw.rename_study("a", "b"),
        lambda: tw.delete_study("a"),
    ):
        with pytest.raises(StorageError, match="Give storage=, or set TRADEWIND_STORAGE"):
            ask()


def test_a_space_that_is_given_is_compared(store: Any) -> None:
    create(storage=store)
    assert tw.load_study(store, space=SPACE).space == SPACE
    with pytest.raises(StorageError, match="'x' is"):
        tw.load_study(store, space=OTHER)


def test_a_study_may_be_loaded_towards_another_goal(store: Any) -> None:
    create(storage=store)
    study = tw.load_study(store, goal=tw.Tradeoff(alpha=0.5))
    assert study.goal == tw.Tradeoff(alpha=0.5)
    assert tw.load_study(store).goal == tw.Quality()  # nothing has been asked of it yet
    study.ask()
    assert tw.load_study(store).goal == tw.Tradeoff(alpha=0.5)
    study = tw.load_study(store, strategy="auto")
    study.ask()
    assert study.strategy == tw.recipes.auto()
    assert len(configured(study)) == 2
    with pytest.raises(TypeError, match="goal must be an object such as"):
        tw.load_study(store, goal=3)  # type: ignore[arg-type]


# ---- strategies of one's own ----


def test_a_strategy_of_ones_own_must_be_given_again(store: Any) -> None:
    study = create(storage=store, strategy=Own())
    study.optimize(score, n_trials=3)
    name = re.escape(f"{Own.__module__}.Own")
    with pytest.raises(StorageError, match=f"uses your own {name}.*give strategy= again"):
        tw.load_study(store)
    loaded = tw.load_study(store, strategy=Own())
    assert configured(loaded) == []
    loaded.optimize(score, n_trials=2)
    assert len(study.trials) == 5
    assert tw.replay(loaded).identical


def test_a_part_of_ones_own_must_be_given_again(store: Any) -> None:
    class Mine(tw.strategies.EI):
        """An acquisition."""

    strategy = Bayes(acquisition=Mine())
    create(storage=store, strategy=strategy)
    with pytest.raises(StorageError, match=r"Mine.*give strategy= again"):
        tw.load_study(store)
    assert tw.load_study(store, strategy=strategy).strategy == strategy


@pytest.mark.parametrize(
    ("before", "after"),
    [("random", Own()), (Own(), "random"), (Own(), Another()), (Own(), Bayes())],
    ids=["to own", "from own", "own to own", "from own to model"],
)
def test_a_study_goes_on_with_a_strategy_of_ones_own_or_from_one(
    store: Any, before: Any, after: Any
) -> None:
    create(storage=store, strategy=before).optimize(score, n_trials=2)
    study = tw.load_study(store, strategy=after)
    study.optimize(score, n_trials=2)
    assert states(study) == ["finished"] * 4
    assert type(study.strategy) is (RandomSearch if after == "random" else type(after))
    again(store, strategy=after).optimize(score, n_trials=1)
    assert len(study.trials) == 5


def test_who_has_a_study_open_that_got_a_strategy_of_ones_own_is_told(store: Any) -> None:
    study = create(storage=store)
    tw.load_study(store, strategy=Own()).ask()
    with pytest.raises(StorageError, match=r"another driver now uses .*Own.*supply it"):
        study.ask()
    assert len(study.trials) == 1


# ---- what is in a store ----


def test_studies_are_listed_oldest_first_with_what_became_of_their_trials(store: Any) -> None:
    first = create(storage=store, name="b")
    create(storage=store, name="a")
    first.optimize(score, n_trials=2)
    first.fail(first.ask())
    first.ask()
    first.abandon(first.ask())
    first.requeue(first.ask())
    summaries = tw.list_studies(store)
    assert [s.name for s in summaries] == ["b", "a"]
    assert summaries[0].trials == 6
    assert summaries[0].states == {
        "waiting": 1,
        "running": 1,
        "finished": 2,
        "failed": 1,
        "abandoned": 1,
    }
    assert (summaries[1].trials, summaries[1].states) == (0, {})
    assert summaries[0].created <= summaries[1].created


def test_a_study_is_renamed_and_who_has_it_open_goes_on(store: Any) -> None:
    study = create(storage=store, name="old")
    create(storage=store, name="taken")
    tw.rename_study("old", "new", storage=store)
    study.optimize(score, n_trials=2)
    assert len(tw.load_study(store, "new").trials) == 2
    with pytest.raises(NoSuchStudy):
        tw.load_study(store, "old")
    with pytest.raises(StudyExists):
        tw.rename_study("new", "taken", storage=store)
    with pytest.raises(NoSuchStudy):
        tw.rename_study("old", "other", storage=store)
    assert [s.name for s in tw.list_studies(store)] == ["new", "taken"]


def test_a_deleted_study_is_gone(store: Any) -> None:
    study, kept = create(storage=store, name="gone"), create(storage=store, name="kept")
    for s in (study, kept):
        s.optimize(score, n_trials=2)
    tw.delete_study("gone", storage=store)
    assert [s.name for s in tw.list_studies(store)] == ["kept"]
    for ask in (study.ask, lambda: study.trials, lambda: study.enqueue({})):
        with pytest.raises(NoSuchStudy):
            ask()
    with pytest.raises(NoSuchStudy):
        tw.delete_study("gone", storage=store)
    assert len(kept.trials) == 2
    assert create(storage=store, name="gone").trials == []


def test_the_environment_may_say_where_studies_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRADEWIND_STORAGE", f"sqlite:///{tmp_path / 'runs.db'}")
    create().optimize(score, n_trials=2)
    assert len(tw.load_study().trials) == 2
    assert [s.name for s in tw.list_studies()] == ["study"]
    tw.rename_study("study", "other")
    tw.load_study().export(tmp_path / "other.jsonl")
    tw.delete_study("other")
    assert tw.import_study(tmp_path / "other.jsonl").name == "other"
    assert [s.name for s in tw.list_studies(tmp_path / "runs.db")] == ["other"]
    assert create(storage=tmp_path / "elsewhere.db").trials == []


@pytest.mark.parametrize("storage", ["", "mysql://x", "sqlite://x", 3, object(), b"runs.db"])
def test_what_is_no_storage_is_refused(storage: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"storage|SQLite|path"):
        create(storage=storage)


def test_a_file_that_is_no_store_is_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("not a database, but long enough to be taken for one\n" * 40)
    before = file.read_bytes()
    for ask in (lambda: create(storage=file), lambda: tw.list_studies(file)):
        with pytest.raises(StorageError):
            ask()
    assert file.read_bytes() == before
    foreign = tmp_path / "foreign.db"
    with sqlite3.connect(foreign) as db:
        db.execute("CREATE TABLE mine (x)")
    db.close()
    with pytest.raises(FormatError, match="is a SQLite file of another program"):
        create(storage=foreign)


# ---- names ----

HOSTILE = {
    "unicode": "épreuve λ ☃ 𝔘",
    "quotes": 'it\'s "quoted" `so`',
    "sql": "x'); DROP TABLE studies; --",
    "percent": "100%_of\\it",
    "newline": "two\nlines\ttabbed",
    "path": "../../etc/passwd",
    "long": "n" * 20_000,
    "spaces": "  around  ",
    "emoji": "👩‍💻" * 50,
    "number": "0",
    "null": "NULL",
    "right to left": "\u202etest",
}


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_any_text_is_a_name(store: Any, name: str) -> None:
    create(storage=store, name="bystander")
    study = create(storage=store, name=name)
    study.optimize(score, n_trials=1)
    assert tw.load_study(store, name).name == name
    assert [s.name for s in tw.list_studies(store)] == ["bystander", name]
    tw.rename_study(name, name + "!", storage=store)
    tw.rename_study(name + "!", name, storage=store)
    tw.delete_study(name, storage=store)
    assert [s.name for s in tw.list_studies(store)] == ["bystander"]


def test_names_that_differ_a_little_are_different(store: Any) -> None:
    names = ["a", "A", "a ", " a", "\u00e1", "a\u0301", "a%", "a_"]  # one letter or two
    for name in names:
        create(storage=store, name=name)
    assert [s.name for s in tw.list_studies(store)] == names


@pytest.mark.parametrize("name", ["", " ", "\n\t", None, 3, b"study", "a\0b", "\ud800"])
def test_what_is_no_name_is_refused_and_stores_nothing(store: Any, name: Any) -> None:
    create(storage=store, name="kept")
    for ask in (
        lambda: create(storage=store, name=name),
        lambda: again(store, name=name),
        lambda: tw.rename_study("kept", name, storage=store),
    ):
        with pytest.raises((TypeError, ValueError), match="name"):
            ask()
    with pytest.raises((TypeError, ValueError, NoSuchStudy)):
        tw.delete_study(name, storage=store)
    assert [s.name for s in tw.list_studies(store)] == ["kept"]


@pytest.mark.parametrize("name", ["", "a\0b", "\ud800", "nothing"])
def test_a_study_of_no_such_name_cannot_be_loaded(store: Any, name: str) -> None:
    create(storage=store, name="kept")
    with pytest.raises((TradewindError, ValueError)):
        tw.load_study(store, name)


# ---- a log that is not one ----


class Tampered(MemoryStore):
    """A store whose logs lack their first event."""

    def open(self, name: str) -> Log:
        log = super().open(name)
        log._events[:1] = []  # type: ignore[attr-defined]
        return log


def test_a_log_that_does_not_begin_with_a_study_is_refused() -> None:
    store: Store = Tampered()
    create(storage=store).optimize(score, n_trials=1)
    with pytest.raises(FormatError, match="must begin with the study's creation"):
        tw.load_study(store)


def test_an_empty_log_is_refused() -> None:
    store = Tampered()
    create(storage=store)
    with pytest.raises(FormatError):
        tw.load_study(store)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"goal": {"type": "EI"}}, "goal"),
        ({"strategy": {"type": "Quality"}}, "strategy"),
        ({"goal": {"type": "os.system"}}, "os.system"),
        ({"goal": {"type": "Tradeoff", "alpha": -1.0}}, "Tradeoff"),
        ({"seed": -1}, "seed"),
    ],
    ids=str,
)
def test_a_study_that_makes_no_sense_is_refused_when_it_is_loaded(
    change: dict[str, Any], message: str
) -> None:
    store = MemoryStore()
    create(storage=store)
    log: Any = store.open("study")
    log._events[0] = replace(log._events[0], **change)
    with pytest.raises(FormatError, match=message):
        tw.load_study(store)


def test_a_log_in_which_something_cannot_have_happened_is_refused_when_it_is_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = MemoryStore()
    study = told((1.0, 1.0), storage=store)
    store.open("study").append([Finished(0, Outcome(2.0))])
    create(storage=store, name="whole")
    for ask in (study.ask, lambda: tw.load_study(store, "study")):
        with pytest.raises(FormatError, match="cannot have happened"):
            ask()
    assert [s.name for s in tw.list_studies(store)] == ["whole"]
    assert "the study 'study' cannot be read" in caplog.text


def test_a_study_in_a_file_can_be_copied_and_pickled(tmp_path: Path) -> None:
    study = quick(storage=tmp_path / "runs.db")
    study.optimize(score, n_trials=3)
    for other in (copy.deepcopy(study), pickle.loads(pickle.dumps(study))):
        other.optimize(score, n_trials=1)
    assert states(study) == ["finished"] * 5
    assert tw.replay(study).identical


# ---- hints ----


def test_a_name_that_is_not_there_is_answered_with_those_that_are(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    for name in ("nightly", "weekly"):
        create(storage=store, name=name)
    for ask in (
        lambda: tw.load_study(store, "nighly"),
        lambda: tw.delete_study("nighly", storage=store),
        lambda: tw.rename_study("nighly", "x", storage=store),
    ):
        with pytest.raises(NoSuchStudy, match="it has 'nightly', 'weekly'"):
            ask()


def test_a_file_of_the_other_kind_is_answered_with_a_hint(tmp_path: Path) -> None:
    study = told((1.0, None), storage=tmp_path / "runs.db")
    study.export(tmp_path / "study.jsonl")
    study.export(tmp_path / "study.csv")
    with pytest.raises(FormatError, match=r"import_study reads \.jsonl files"):
        tw.load_study(tmp_path / "study.jsonl")
    for name in ("study.csv", "runs.db"):
        with pytest.raises(FormatError, match=r"only a \.jsonl file that study.export wrote"):
            tw.import_study(tmp_path / name, storage=tmp_path / "other.db")
