"""What a page makes of the stream of messages when it has to load a study anew."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

# A server that answers each request for messages with the next of these streams, and then never.
# It notes the id that each request names, and what the page does.
FOLLOW = """async ([streams, failures]) => {
  const asked = [], taken = [], forever = new Promise(() => {});
  window.fetch = async (path) => {
    asked.push(new URLSearchParams(path.split("?")[1]).get("after"));
    if (!streams.length) return forever;
    return new Response(streams.shift());
  };
  const stream = tradewind.live.follow(["a"], "s-1", {
    message: (kind, data) => taken.push(data.n),
    state: () => {},
    reset: async () => {
      if (failures-- > 0) throw new tradewind.live.Trouble("The store is away.");
      taken.push("loaded");
      stream.at("s-4");
    },
  });
  const soon = () => new Promise((done) => setTimeout(done, 20));
  for (let i = 0; i < 500 && !(taken.length && asked.at(-1) === "s-5"); i += 1) await soon();
  return { asked, taken };
}"""

# A server whose streams never end, for a tab that is hidden and shown twice. After each turn: how
# many streams were asked for, given up and heard, and what the page says of its connection.
HIDE = """async () => {
  const asked = [], ended = [], taken = [], states = [];
  let hidden = true;
  Object.defineProperty(document, "hidden", { get: () => hidden });
  const turn = (now) => {
    hidden = now;
    document.dispatchEvent(new Event("visibilitychange"));
  };
  window.fetch = async (path, { signal }) => {
    const n = asked.push(new URLSearchParams(path.split("?")[1]).get("after"));
    return new Response(new ReadableStream({
      start(stream) {
        const text = `id: s-${n + 1}\\nevent: rows\\ndata: {"n":${n}}\\n\\n`;
        stream.enqueue(new TextEncoder().encode(text));
        signal.addEventListener("abort", () => { ended.push(n); stream.error(new Error()); });
      },
    }));
  };
  tradewind.live.follow(["a"], "s-1", {
    message: (kind, data) => taken.push(data.n),
    state: (word) => states.push(word),
    reset: async () => {},
  });
  const soon = () => new Promise((done) => setTimeout(done, 50));
  const found = [];
  for (const now of [true, false, true, false]) {
    turn(now);
    await soon();
    found.push([asked.length, ended.length, taken.length, states.at(-1) || ""]);
  }
  return { found, asked };
}"""


def message(number: int, kind: str = "rows") -> str:
    return f'id: s-{number}\nevent: {kind}\ndata: {{"n":{number}}}\n\n'


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    context = chromium.new_context()
    found = context.new_page()
    script = resources.files("tradewind.charts").joinpath("assets", "live.js").read_text("utf-8")
    found.add_script_tag(content=script)
    yield found
    context.close()


def test_what_was_loaded_with_the_study_is_not_taken_again(page: Page) -> None:
    stream = message(2) + message(2, "reset") + "".join(map(message, (3, 4, 5)))
    found: dict[str, Any] = page.evaluate(FOLLOW, [[stream], 0])
    assert found == {"asked": ["s-1", "s-5"], "taken": [2, "loaded", 5]}


def test_a_study_that_could_not_be_loaded_anew_is_loaded_at_the_next_connection(
    page: Page,
) -> None:
    stream = message(2, "reset") + message(5)
    found: dict[str, Any] = page.evaluate(FOLLOW, [[stream, stream], 1])
    assert found == {"asked": ["s-1", "s-1", "s-5"], "taken": ["loaded", 5]}


def test_a_change_may_concern_a_parameter_with_an_odd_name(page: Page) -> None:
    change = '{"{": {"__proto__": {"=": 2}, "a": {"=": 1}}, "-": ["b"]}'
    made = (
        f"JSON.stringify(tradewind.live.apply(JSON.parse('{{\"b\": 3}}'), JSON.parse('{change}')))"
    )
    assert page.evaluate(made) == '{"__proto__":2,"a":1}'


def test_a_tab_that_nobody_sees_does_not_take_one_of_the_browsers_few_connections(
    page: Page,
) -> None:
    found: dict[str, Any] = page.evaluate(HIDE)
    assert found["found"] == [
        [0, 0, 0, ""],
        [1, 0, 1, "live"],
        [1, 1, 1, "reconnecting"],
        [2, 1, 2, "live"],
    ]
    assert found["asked"] == ["s-1", "s-2"]  # it goes on where it was
