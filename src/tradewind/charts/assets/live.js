// The connection to the dashboard: what it sends, in order and without gaps, and what is asked of it.
(function (tw) {
  "use strict";

  const KEY = "tradewind-token";
  const SILENCE = 25000; // milliseconds without a sign of life, after which the connection counts as dead
  const PAUSES = [500, 1000, 2000, 4000, 8000]; // milliseconds between attempts; the last is repeated

  // ---- the token: in the address when the page is opened, then kept by this tab ----

  let kept = null;

  function takeToken() {
    const given = new URLSearchParams(location.hash.slice(1)).get("token");
    try {
      if (given) sessionStorage.setItem(KEY, given);
      kept = given || sessionStorage.getItem(KEY);
    } catch {
      kept = given; // storage is forbidden: it holds until the page is closed
    }
    if (given) history.replaceState(null, "", location.pathname + location.search);
  }

  const headers = (more = {}) => (kept ? { ...more, "X-Tradewind-Token": kept } : more);

  // ---- asking ----

  // What went wrong, in a sentence for the reader.
  class Trouble extends Error {
    constructor(sentence, status = 0) {
      super(sentence);
      this.status = status;
    }
  }

  async function ask(path, options = {}) {
    let answer;
    try {
      answer = await fetch(path, { ...options, headers: headers(options.headers), cache: "no-store", credentials: "omit" });
    } catch {
      throw new Trouble("The dashboard does not answer. Is its program still running?");
    }
    if (answer.ok) return answer;
    let sentence = `The dashboard answered with status ${answer.status}.`;
    try {
      sentence = (await answer.json()).error || sentence;
    } catch {
      // not one of our own answers
    }
    throw new Trouble(sentence, answer.status);
  }

  const studies = async () => (await ask("/api/studies")).json();

  // A browser drops `.` and `..` from a path, so the name stands in the query.
  const query = (name) => `name=${encodeURIComponent(name)}`;

  // A study's data, and the id of the last message that is in it.
  async function load(name) {
    const answer = await ask(`/api/study?${query(name)}`);
    return { after: answer.headers.get("X-Tradewind-Stream"), data: await answer.json() };
  }

  // Ask for a change; the sentence that says what has happened, once the log has it.
  async function command(name, verb, body = {}) {
    const options = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
    return (await (await ask(`/api/study/${verb}?${query(name)}`, options)).json()).done;
  }

  // ---- changes: see dashboard/changes.py ----

  function apply(old, change) {
    if (change === null) return old;
    if ("=" in change) return change["="];
    if ("{" in change) {
      const made = new Map(Object.entries(old)); // a parameter may be called __proto__
      for (const key of change["-"] || []) made.delete(key);
      for (const [key, each] of Object.entries(change["{"])) made.set(key, apply(made.get(key), each));
      return Object.fromEntries(made);
    }
    if ("[" in change) {
      const [start, removed, added] = change["["];
      return [...old.slice(0, start), ...added, ...old.slice(start + removed)];
    }
    const items = [...old];
    for (const [index, each] of Object.entries(change["#"])) items[index] = apply(items[index], each);
    return items;
  }

  // ---- the stream of messages ----

  // The messages in a text of server-sent events; what is incomplete stays for the next time.
  function split(text) {
    const blocks = text.split("\n\n"), rest = blocks.pop();
    const messages = [];
    for (const block of blocks) {
      const message = {};
      for (const line of block.split("\n")) {
        const [, field, value] = /^([a-z]+): ?(.*)$/.exec(line) || [];
        if (field) message[field] = value;
      }
      if (message.data !== undefined) messages.push(message);
    }
    return { messages, rest };
  }

  // The place of a message among all of its server.
  const number = (id) => Number(String(id).split("-").pop());

  const sleep = (time) => new Promise((done) => setTimeout(done, time));

  // Resolves as soon as the reader can see the page.
  const seen = () =>
    new Promise((done) => {
      const check = () => {
        if (document.hidden) return;
        document.removeEventListener("visibilitychange", check);
        done();
      };
      document.addEventListener("visibilitychange", check);
      check();
    });

  // Follow some studies. `on` has message(kind, data), reset(), and state(word, sentence), where the
  // word is "live" or "reconnecting". `after` is the id of the last message that is known. A tab that
  // nobody sees does not listen: browsers keep six connections to one server, for all their tabs.
  function follow(names, after, on) {
    let last = after, stopped = false, current = null;

    async function read() {
      const studies = names.map((name) => `study=${encodeURIComponent(name)}`).join("&");
      current = new AbortController();
      let timer = null;
      const alive = () => {
        clearTimeout(timer);
        timer = setTimeout(() => current.abort(), SILENCE);
      };
      alive();
      try {
        const answer = await ask(`/api/events?${studies}&after=${encodeURIComponent(last || "")}`, { signal: current.signal });
        const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
        let text = "", heard = false;
        for (;;) {
          const { value, done } = await reader.read();
          if (done || stopped) return heard;
          alive();
          if (!heard) on.state("live", "");
          heard = true;
          text += value;
          if (!value.includes("\n")) continue; // a long message comes in many pieces
          const found = split(text);
          text = found.rest;
          for (const message of found.messages) {
            if (message.event === "reset") await on.reset(); // it says what is known then
            else if (number(message.id) > number(last)) {
              last = message.id;
              on.message(message.event, JSON.parse(message.data), message.id);
            } // else it was loaded already
          }
        }
      } finally {
        clearTimeout(timer);
      }
    }

    const rest = () => document.hidden && current && current.abort();

    async function run() {
      let failures = 0;
      await seen();
      while (!stopped) {
        let sentence = "The dashboard does not answer. Is its program still running?";
        try {
          if (await read()) failures = 0;
        } catch (error) {
          if (error instanceof Trouble) sentence = error.message;
        }
        if (stopped) return;
        on.state("reconnecting", failures ? sentence : "");
        if (document.hidden) {
          await seen();
          failures = 0;
          continue;
        }
        await sleep(PAUSES[Math.min(failures, PAUSES.length - 1)]);
        failures += 1;
      }
    }

    document.addEventListener("visibilitychange", rest);
    run();
    return {
      stop() {
        stopped = true;
        document.removeEventListener("visibilitychange", rest);
        if (current) current.abort();
      },
      at(id) {
        last = id;
      },
    };
  }

  tw.live = { takeToken, Trouble, studies, load, command, apply, split, number, follow };
})((globalThis.tradewind = globalThis.tradewind || {}));
