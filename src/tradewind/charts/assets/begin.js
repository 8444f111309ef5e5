// Where a live page begins: the list of studies, one study, or several side by side.
(function (tw) {
  "use strict";

  const { el, put, brief, button } = tw.dom;
  const { live } = tw;
  const SOON = 3000; // milliseconds between two looks at the list of studies
  const NO_TOKEN = "You can look, but not steer: open the address that the terminal shows, which holds the token.";
  const TITLES = { 401: "A token is needed", 404: "No such study" };
  const READ_ONLY = "This dashboard is for reading only.";

  const root = document.getElementById("page");
  const now = () => Date.now() / 1000;

  // ---- the frame of the pages that are not a study's own ----

  function frame(title) {
    document.title = `${title} · Tradewind`;
    root.replaceChildren(
      el("a", { class: "skip", href: "#main" }, "Skip to the studies"),
      el("header", { class: "top" }, el("div", { class: "bar" },
        el("h1", {}, el("span", { class: "brand" }, "Tradewind"), el("span", { class: "study-name" }, title)),
        el("p", { class: "counts" }), tw.theme.toggle())));
  }

  function alone(title, text) {
    frame(title);
    root.append(el("main", { class: "alone", id: "main" }, el("h1", {}, title), el("p", {}, text), el("p", {}, el("a", { href: "/" }, "All studies"))));
  }

  // ---- the list ----

  const total = (counts) => Object.values(counts).reduce((sum, count) => sum + count, 0);

  class List {
    constructor() {
      frame("Studies");
      this.chosen = new Set();
      this.lead = el("p", { class: "lead", role: "status" });
      this.compare = button("Show side by side", () => this.open());
      this.hint = el("p", { class: "soft" });
      this.items = el("ul", { class: "study-list" });
      this.rows = new Map();
      root.append(el("main", { id: "main", tabindex: -1 }, el("section", {}, el("h2", {}, "Studies"), this.lead, this.items,
        el("div", { class: "toolbar" }, this.compare, this.hint))));
    }

    update({ storage, studies, problem }) {
      const where = brief(storage, 200);
      put(this.lead, problem ? `${brief(problem, 400)} It is tried again.` : studies.length ? where : `There is no study in ${where} yet. It appears here as soon as one is created.`);
      this.lead.classList.toggle("problem", Boolean(problem));
      if (problem) return;
      const names = new Set(studies.map((study) => study.name));
      for (const study of studies) this.row(study);
      for (const [name, row] of this.rows) {
        if (names.has(name)) continue;
        row.node.remove();
        this.rows.delete(name);
        this.chosen.delete(name);
      }
      this.choose();
    }

    row(study) {
      let row = this.rows.get(study.name);
      if (!row) {
        const box = el("input", { type: "checkbox", "aria-label": `Choose ${brief(study.name, 100)}` });
        box.addEventListener("change", () => {
          if (box.checked) this.chosen.add(study.name);
          else this.chosen.delete(study.name);
          this.choose();
        });
        const counts = el("span", { class: "soft" }), created = el("span", { class: "soft" });
        const link = el("a", { class: "study-link", href: `/?study=${encodeURIComponent(study.name)}` }, brief(study.name, 120));
        row = { box, counts, node: el("li", {}, box, link, counts, created), created };
        this.rows.set(study.name, row);
        this.items.append(row.node);
      }
      const { counts } = study;
      const said = counts && ["finished", "running", "waiting", "failed", "abandoned"].filter((state) => counts[state]).map((state) => `${counts[state].toLocaleString("en-US")} ${state}`);
      put(row.counts, counts ? (total(counts) ? said.join(" · ") : "no trials yet") : "cannot be read");
      put(row.created, study.created ? tw.format.clock(study.created) : "");
      row.box.disabled = !counts;
    }

    choose() {
      const n = this.chosen.size, most = tw.together.MOST;
      this.compare.disabled = n < 2 || n > most;
      this.compare.parentElement.hidden = this.rows.size < 2;
      put(this.hint, n > most ? `Choose at most ${most}.` : n < 2 ? `Choose 2 to ${most} studies to see them side by side.` : "");
    }

    open() {
      const names = [...this.rows.keys()].filter((name) => this.chosen.has(name));
      location.assign(`/?${names.map((name) => `study=${encodeURIComponent(name)}`).join("&")}`);
    }
  }

  async function showList(first) {
    const list = new List();
    list.update(first);
    for (;;) {
      await new Promise((done) => setTimeout(done, SOON));
      if (document.hidden) continue;
      try {
        list.update(await live.studies());
      } catch (error) {
        list.update({ storage: "", studies: [], problem: error.message });
      }
    }
  }

  // ---- what changes, a few times a second at most ----

  // Calls `work` soon, once for any number of calls.
  function soon(work, wait = 150) {
    let due = false;
    return () => {
      if (due) return;
      due = true;
      setTimeout(() => {
        due = false;
        work();
      }, wait);
    };
  }

  // ---- one study ----

  // What the page shows of the data: waiting trials stand beside the running ones.
  function shown(data) {
    const waiting = data.live.waiting.map((trial) => ({ trial, waiting: true }));
    const running = data.running.map((trial) => (data.live.lost.includes(trial.trial) ? { ...trial, lost: true } : trial));
    return { ...data, running: [...running, ...waiting], study: { ...data.study, made: now() } };
  }

  const KEYS = (change) => (change && change["{"] ? Object.keys(change["{"]) : null);

  async function showOne(name, about) {
    let { data, after } = await live.load(name);
    const why = about.can_steer ? NO_TOKEN : READ_ONLY;
    let controls = null;
    tw.sections.running = tw.running.section;
    tw.hooks.stop = about.may_steer ? (trial) => controls.send("stop", { trial }) : null;
    const page = (tw.page = tw.start(shown(data), root));
    if (!page) return;
    controls = new tw.Controls(name, page.slots.controls, { maySteer: about.may_steer, why, several: about.studies.length > 1 });
    controls.attach(page);
    controls.update(data);

    let changed = new Set(), charts = new Set();
    const draw = soon(() => {
      const whole = shown(data), partial = {};
      for (const key of changed) if (key !== "charts" && key !== "live") partial[key] = whole[key];
      if (changed.has("live") || changed.has("running")) partial.running = whole.running;
      partial.study = whole.study;
      if (charts.size) partial.charts = Object.fromEntries([...charts].filter((each) => data.charts[each]).map((each) => [each, data.charts[each]]));
      changed = new Set();
      charts = new Set();
      page.update(partial);
      controls.update(data);
      controls.settle();
    });

    function take(change) {
      data = live.apply(data, change);
      for (const key of KEYS(change) || Object.keys(data)) changed.add(key);
      const drawn = change["{"] && change["{"].charts ? KEYS(change["{"].charts) : null;
      if (changed.has("charts")) for (const each of drawn || Object.keys(data.charts)) charts.add(each);
      draw();
    }

    const stream = live.follow([name], after, {
      message: (kind, { change }) => take(change),
      state: (word, sentence) => controls.state(word, sentence),
      reset: async () => {
        const fresh = await live.load(name);
        stream.at(fresh.after);
        take({ "=": fresh.data });
      },
    });

    // the time passes for running trials
    setInterval(() => {
      const part = page.parts.get("running");
      if (document.hidden || !part || !part.view) return;
      page.store.data.study.made = now();
      part.view.update();
    }, 1000);
  }

  // ---- several ----

  // The earliest of the messages that several studies were loaded with.
  const first = (loaded) => loaded.map((one) => one.after).sort((a, b) => live.number(a) - live.number(b))[0];

  async function showTogether(names) {
    const loaded = await Promise.all(names.map(live.load));
    let datas = loaded.map((one) => one.data);
    frame("Side by side");
    const dot = el("span", { class: "dot reconnecting", "aria-hidden": "true" }), word = el("span", { class: "live-word", role: "status" }, "connecting");
    root.append(el("div", { class: "slot" }, el("div", { class: "live-bar" }, el("p", { class: "live-state" }, dot, word), el("span", { class: "where" }), el("a", { href: "/" }, "All studies"))));
    const view = (tw.page = new tw.together.Together(names, root));
    view.update(datas);
    const draw = soon(() => view.update(datas), 300);
    let known = loaded.map((one) => live.number(one.after)); // of the last message in each study's data
    const stream = live.follow(names, first(loaded), {
      message: (kind, { study, change }, id) => {
        const place = names.indexOf(study);
        if (live.number(id) <= known[place]) return;
        datas = datas.map((data, i) => (i === place ? live.apply(data, change) : data));
        draw();
      },
      state: (kind, sentence) => {
        dot.className = `dot ${kind}`;
        put(word, sentence ? brief(`${kind}: ${sentence}`, 300) : kind);
      },
      reset: async () => {
        const fresh = await Promise.all(names.map(live.load));
        stream.at(first(fresh));
        known = fresh.map((one) => live.number(one.after));
        datas = fresh.map((one) => one.data);
        draw();
      },
    });
  }

  // ---- the beginning ----

  async function begin() {
    live.takeToken();
    const names = [...new Set(new URLSearchParams(location.search).getAll("study"))];
    frame(names.length === 1 ? brief(names[0], 80) : "Studies");
    root.append(el("main", { class: "alone", id: "main", "aria-busy": "true" }, el("p", { role: "status" }, "Loading…")));
    for (let pause = 500; ; pause = Math.min(8000, 2 * pause)) {
      try {
        const about = await live.studies();
        if (names.length > tw.together.MOST) return alone("Too many studies", `A page shows up to ${tw.together.MOST} studies side by side.`);
        if (names.length > 1) return await showTogether(names);
        const [only] = about.studies;
        const name = names[0] ?? (about.studies.length === 1 && only.counts ? only.name : null);
        return await (name === null ? showList(about) : showOne(name, about));
      } catch (error) {
        if (!(error instanceof live.Trouble)) throw error;
        alone(TITLES[error.status] || "Not there yet", error.message);
        if (error.status === 401) return undefined;
      }
      await new Promise((done) => setTimeout(done, pause));
    }
  }

  begin();
})((globalThis.tradewind = globalThis.tradewind || {}));
