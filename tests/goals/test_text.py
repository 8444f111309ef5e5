"""Goals as text and as tables."""

from __future__ import annotations

import copy
import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tradewind as tw
from tradewind.engine import plan
from tradewind.goals import Goal
from tradewind.goals.text import goal_text, parse_goal, read_goal
from tradewind.study.words import goal_in_words

POSITIVE = st.floats(1e-9, 1e9)
NAMES = st.none() | st.from_regex(r"[a-z]{1,8}", fullmatch=True)
PAIRS = st.tuples(POSITIVE, st.floats(1.5, 10.0)).map(lambda p: (p[0], p[0] * p[1]))
GOALS = st.one_of(
    st.just(tw.Quality()),
    st.builds(tw.Tradeoff, POSITIVE, st.none() | POSITIVE, capped=st.booleans(), by=NAMES),
    st.builds(tw.BestUnder, POSITIVE, confidence=st.floats(0.5, 0.999), by=NAMES),
    st.builds(tw.CheapestWithin, POSITIVE | st.sampled_from(["1%", "1se", "0.5%"]), by=NAMES),
    st.builds(tw.Knee, by=NAMES),
    st.builds(tw.Frontier, cost=st.none() | PAIRS, by=NAMES),
    st.builds(tw.Frontier, alpha=PAIRS, reference=st.none() | POSITIVE, search=st.just("draws")),
    st.just(tw.Frontier(search="hypervolume")),
)


@given(GOALS)
def test_a_goal_is_read_from_its_own_text(goal: Goal) -> None:
    assert read_goal(goal_text(goal)) == goal


PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
NESTED = st.recursive(
    PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=8), inner), max_leaves=8
)
KINDS = st.sampled_from(["tradeoff", "under", "within", "frontier", "knee", "quality"])
KEYS = st.sampled_from(["alpha", "reference", "capped", "by", "cost", "tolerance", "search"])


def read_or_refuse(given: object) -> None:
    """A goal, or a sentence; nothing else."""
    with suppress(ValueError):
        assert parse_goal(given).describe()


@given(st.text(max_size=40) | NESTED)
def test_anything_else_is_refused_in_a_sentence(given: object) -> None:
    read_or_refuse(given)


@given(KINDS, st.dictionaries(KEYS, PLAIN | st.lists(st.integers(), max_size=3), max_size=4))
def test_a_table_with_wrong_values_is_refused_in_a_sentence(
    kind: str, values: dict[str, object]
) -> None:
    read_or_refuse({"type": kind, **values})


@pytest.mark.parametrize(
    ("text", "goal"),
    [
        ("quality", tw.Quality()),
        (" Quality ", tw.Quality()),
        ("tradeoff:0.1", tw.Tradeoff(0.1)),
        ("tradeoff:0.1@60", tw.Tradeoff(0.1, 60)),
        ("tradeoff:0.1@10min", tw.Tradeoff(0.1, 600)),
        ("tradeoff:0.1@1h30m,capped=true", tw.Tradeoff(0.1, 5400, capped=True)),
        ("under:10", tw.BestUnder(10)),
        ("under:10min", tw.BestUnder(600)),
        ("under:500ms", tw.BestUnder(0.5)),
        ("under:2s,confidence=0.95", tw.BestUnder(2, confidence=0.95)),
        ("under:2GB,by=memory", tw.BestUnder(2e9, by="memory")),
        ("within:1%", tw.CheapestWithin("1%")),
        ("within:0.01", tw.CheapestWithin(0.01)),
        ("within:1se", tw.CheapestWithin("1se")),
        ("1se", tw.CheapestWithin("1se")),
        ("0.5%,by=money", tw.CheapestWithin("0.5%", by="money")),
        ("knee", tw.Knee()),
        ("frontier", tw.Frontier()),
        ("frontier,cost=1..60", tw.Frontier(cost=(1, 60))),
        ("frontier,cost=1s..10min", tw.Frontier(cost=(1, 600))),
    ],
)
def test_a_text_means_a_goal(text: str, goal: Goal) -> None:
    assert read_goal(text) == goal


def test_a_table_means_the_same_goal() -> None:
    assert parse_goal({"type": "tradeoff", "alpha": 0.1, "reference": 60}) == tw.Tradeoff(0.1, 60)
    assert parse_goal({"type": "under", "cost": "10min"}) == tw.BestUnder(600)
    assert parse_goal({"type": "frontier", "cost": [1, 60]}) == tw.Frontier(cost=(1, 60))


def test_a_goal_of_ones_own_is_shown_as_it_is() -> None:
    class Mine(tw.Quality):
        pass

    assert goal_text(Mine()) == repr(Mine())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fastest", "a goal is quality, tradeoff:ALPHA .*, but got 'fastest'$"),
        ("undr:2s", "did you mean 'under'"),
        ("under", "'under' has no cost$"),
        (
            "under:2parsecs",
            "the goal 'under:2parsecs' cannot be read: cost must be a number > 0, or text",
        ),
        ("under:1%", "cannot be read: cost must be"),
        ("quality:1", "quality takes nothing after a colon"),
        ("under:2s@3", "only tradeoff takes an @COST"),
        ("under:2s,by=a,by=b", "'by' is given twice"),
        ("under:2s,max=3", "has no 'max': it takes cost, .*by$"),
    ],
)
def test_another_text_is_refused_with_what_is_possible(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_goal(text)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("under:2s", "the best quality with a cost of at most 2 s"),
        ("under:90min", "the best quality with a cost of at most 90 min"),
        ("under:1h30m", "the best quality with a cost of at most 1 h 30 min"),
        ("tradeoff:10@500ms", "quality against cost, where a cost of 500 ms is worth 10"),
        ("under:2000mb,by=memory", "the best quality with a cost (memory) of at most 2000 MB"),
    ],
)
def test_a_cost_is_said_in_the_units_in_which_it_was_given(given: str, said: str) -> None:
    goal = read_goal(given)
    stored = json.loads(json.dumps(plan.encode(goal)))
    for same in (goal, plan.decode(stored), read_goal(goal_text(goal)), copy.deepcopy(goal)):
        assert same == goal
        assert hash(same) == hash(goal)
        assert str(same) == goal_in_words(same, "") == goal_in_words(same, "s") == said


def test_costs_in_python_may_have_units() -> None:
    assert tw.BestUnder("2s").cost == 2.0
    assert tw.BestUnder("2GB", by="memory") == tw.BestUnder(2e9, by="memory")
    assert tw.Tradeoff(0.1, "10min") == tw.Tradeoff(0.1, reference=600.0)
    assert tw.Tradeoff.price(points=0.1, cost="500ms") == tw.Tradeoff(0.1, 0.5)
    assert tw.Frontier(alpha=(0.1, 1), reference="1h30m").reference == 5400.0
    with pytest.raises(ValueError, match=r"^cost must be a number > 0, .*, but got 'soon'$"):
        tw.BestUnder("soon")


def test_a_goal_is_itself_and_anything_else_is_refused() -> None:
    assert read_goal(goal := tw.Knee()) is goal
    with pytest.raises(
        TypeError, match=r'goal must be an object such as .*text such as "under:2s"'
    ):
        read_goal(3)  # type: ignore[arg-type]
