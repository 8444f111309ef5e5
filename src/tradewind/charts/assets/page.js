// The page: its header, its sections in order, and what keeps them up to date.
(function (tw) {
  "use strict";

  const { el, put, brief, button, copyButton, visible } = tw.dom;
  const FORMAT = 1; // the format of the data that this page reads

  const still = matchMedia("(prefers-reduced-motion: reduce)");
  tw.motion = () => (still.matches ? "auto" : "smooth");

  const NAMES = {
    answer: "Answer",
    running: "Running",
    progress: "Progress",
    timeline: "Workers",
    importance: "Importance",
    dependence: "Effects",
    parallel: "Parallel",
    predicted: "Predicted cost",
    learning: "Learning curves",
    failures: "Failures",
    table: "Trials",
    reproduce: "Reproduce",
  };
  const OWN = {
    answer: "The answer",
    running: "Running now",
    failures: "Failures",
    table: "All trials",
    reproduce: "How to reproduce",
  };

  const ALWAYS = ["answer", "table", "reproduce"];

  // Whether a section would only repeat that nothing has finished, or speak of training sizes in a
  // study that has none.
  function silent(data, { id, charts }) {
    const empty = charts.length > 0 && charts.every((name) => data.charts[name]?.panels.length === 0);
    return empty && (id === "learning" || !data.study.counts?.finished);
  }

  // The sections of the data, and those that the page has anyway, in order.
  function sectionsOf(data) {
    const given = (data.sections || []).map((section) => ({ text: "", charts: [], ...section }));
    const has = (id) => given.some((section) => section.id === id);
    const own = (id) => ({ id, title: OWN[id], text: "", charts: [] });
    const first = given.filter((section) => section.id === "answer"),
      rest = given.filter((section) => section.id !== "answer");
    const list = [...(first.length ? first : [own("answer")])];
    if (!has("running") && (data.running || []).length) list.push(own("running"));
    list.push(...rest);
    for (const id of ["failures", "table", "reproduce"]) if (!has(id)) list.push(own(id));
    const blank = !data.trials || !data.trials.rows.length; // charts of no trials at all say nothing
    const runs = (data.running || []).length > 0;
    const says = (section) => ALWAYS.includes(section.id) || !(blank || silent(data, section));
    return list.filter((section) => (section.id === "running" ? runs : says(section)));
  }

  function contents(page, section) {
    const { store } = page,
      { id } = section;
    const charts = (section.charts || []).filter((name) => id !== "answer" || name !== "frontier");
    if (id === "answer")
      return (page.answer = new tw.Answer(store, (trial) => page.table && page.table.reveal(trial)));
    if (id === "table") return (page.table = new tw.Table(store));
    if (tw.sections[id] && ["running", "failures", "reproduce"].includes(id)) return tw.sections[id](store);
    if (charts.length > 1 && charts.every((name) => name.startsWith("progress_")))
      return tw.sections.oneOf(store, charts);
    const grid = charts.length > 1 || charts.some((name) => name.startsWith("dependence_"));
    return tw.sections.group(store, charts, grid ? { grid, height: 220 } : {});
  }

  // One part that cannot be drawn does not take the others with it.
  function guarded(make, node) {
    try {
      return make();
    } catch (error) {
      put(node, el("p", { class: "broken" }, `This part cannot be shown: ${brief(error.message, 300)}`));
      return null;
    }
  }

  class Page {
    constructor(data, root) {
      this.root = root;
      this.store = new tw.Store(data);
      this.parts = new Map();
      this.slots = { controls: el("div", { class: "slot" }) };
      this.main = el("main", { id: "main", tabindex: -1 });
      this.links = el("nav", { "class": "jump", "aria-label": "Sections" });
      this.counts = el("p", { class: "counts" });
      this.name = el("span", { class: "study-name" });
      this.notice = el("div", { class: "notices" });
      this.header = el(
        "header",
        { class: "top" },
        el(
          "div",
          { class: "bar" },
          el("h1", {}, el("span", { class: "brand" }, "Tradewind"), this.name),
          this.counts,
          tw.theme.toggle(),
        ),
        this.links,
      );
      root.replaceChildren(
        el("a", { class: "skip", href: "#main" }, "Skip to the answer"),
        this.header,
        this.slots.controls,
        this.notice,
        this.main,
      );
      this.build();
      this.bar();
      this.watch();
    }

    build() {
      const { data } = this.store;
      const list = sectionsOf(data),
        order = [];
      for (const section of list) {
        let part = this.parts.get(section.id);
        if (!part) this.parts.set(section.id, (part = this.part(section)));
        else if (part.view)
          guarded(() => part.view.update(section.id === "answer" ? undefined : chartsOf(section)), part.body);
        put(part.text, brief(section.text || "", 600));
        part.text.hidden = !section.text;
        order.push(part.node);
      }
      for (const [id, part] of this.parts) {
        if (list.some((section) => section.id === id)) continue;
        part.node.remove();
        this.parts.delete(id);
      }
      order.forEach(
        (node, i) =>
          this.main.children[i] !== node && this.main.insertBefore(node, this.main.children[i] || null),
      );
      this.head(list);
    }

    part(section) {
      const heading = el("h2", {}, brief(section.title, 100)),
        text = el("p", { class: "lead" }),
        body = el("div", { class: "section-body" });
      heading.id = `${section.id}-heading`;
      const node = el("section", { "id": section.id, "aria-labelledby": heading.id }, heading, text, body);
      this.main.append(node); // a chart asks for its width when it is made
      const view = guarded(() => contents(this, section), body);
      if (view) body.append(view.node);
      if (section.id === "answer") heading.classList.add("visually-hidden");
      return { node, view, body, text };
    }

    head(list) {
      const { study } = this.store.data,
        { counts } = study;
      document.title = `${brief(study.name, 60)} · Tradewind`;
      put(this.name, brief(study.name, 80));
      this.name.title = brief(study.name, 300);
      const said = ["finished", "running", "waiting", "failed", "abandoned"].filter(
        (state) => counts && (counts[state] || state === "finished"),
      );
      put(
        this.counts,
        said.map((state) =>
          el("span", { class: "count-of" }, el("b", {}, counts[state].toLocaleString("en-US")), ` ${state}`),
        ),
      );
      const ids = list.map((section) => section.id).join();
      if (ids !== this.ids) {
        this.ids = ids;
        this.links.replaceChildren(
          ...list.map((section) =>
            el("a", { href: `#${section.id}` }, NAMES[section.id] || brief(section.title, 30)),
          ),
        );
      }
      const notes = [];
      if (study.paused) notes.push(`Paused${study.paused.reason ? `: ${study.paused.reason}` : ""}`);
      if (study.stopped) notes.push(`Stopped: ${study.stopped}`);
      put(
        this.notice,
        notes.map((note) => el("p", { class: "notice" }, brief(note, 300))),
      );
    }

    // At the bottom, as long as a trial is selected.
    bar() {
      const { store } = this;
      const text = el("p", { class: "picked-text" });
      const node = el(
        "aside",
        { "class": "picked", "aria-label": "Selected trial", "hidden": true },
        text,
        el(
          "div",
          { class: "actions" },
          copyButton("Copy Python", () => tw.python(store.params(store.selected))),
          copyButton("Copy JSON", () => JSON.stringify(store.params(store.selected))),
          button("In table", () => this.table && this.table.reveal(store.selected), { class: "button small" }),
          button("Clear", () => store.select(null), { class: "button small" }),
        ),
      );
      this.root.append(node);
      const show = () => {
        const trial = store.selected;
        node.hidden = trial === null;
        if (trial === null) return;
        const facts = ["state", "value", "cost"].filter(
          (key) => store.cell(trial, key) !== undefined && store.cell(trial, key) !== null,
        );
        put(
          text,
          el("strong", {}, `Trial ${trial}`),
          facts.map((key) => el("span", {}, ` · ${brief(store.shown(trial, key), 40)}`)),
        );
      };
      store.listen((change) => {
        if (change !== "selected") return;
        show();
        tw.dom.announce(
          store.selected === null ? "No trial is selected" : `Trial ${store.selected} is selected`,
        );
      });
      this.showPicked = show;
    }

    // The link of the section in view is marked.
    watch() {
      this.seen = new IntersectionObserver(
        (entries) => {
          const entry = entries.find((one) => one.isIntersecting);
          if (!entry) return;
          for (const link of this.links.children) {
            const here = link.getAttribute("href") === `#${entry.target.id}`;
            tw.dom.set(link, { "aria-current": here ? "true" : null });
            if (here && this.links.scrollWidth > this.links.clientWidth) {
              this.links.scrollTo({ left: link.offsetLeft - 16, behavior: tw.motion() });
            }
          }
        },
        { rootMargin: "-20% 0px -75% 0px" },
      );
      for (const part of this.parts.values()) this.seen.observe(part.node);
    }

    // Top-level keys replace the old ones, charts by name. What the reader has set up stays.
    update(partial) {
      const { data } = this.store;
      const charts = { ...data.charts, ...partial.charts };
      this.store.take({ ...data, ...partial, charts });
      this.build();
      this.showPicked();
      this.seen.disconnect();
      for (const part of this.parts.values()) this.seen.observe(part.node);
    }

    selected() {
      return this.store.selection();
    }
  }

  const chartsOf = (section) =>
    (section.charts || []).filter((name) => name !== "frontier" || section.id !== "answer");

  // Why data cannot be shown, in words; null if it can.
  function problem(data) {
    if (data === null || typeof data !== "object" || Array.isArray(data)) return "This page holds no study.";
    if (typeof data.format !== "number") return "This page holds data that is not a study of Tradewind.";
    if (data.format > FORMAT)
      return `This study was written by a newer Tradewind (format ${data.format}); this page reads format ${FORMAT}. Make the report again with the newer version.`;
    if (data.format < FORMAT || !data.study)
      return "This page holds data that it cannot read. Make the report again.";
    return null;
  }

  function failed(root, text) {
    root.replaceChildren(
      el("main", { class: "alone", id: "main" }, el("h1", {}, "Nothing to show"), el("p", {}, visible(text))),
    );
  }

  // Build the page of one study in `root`.
  function start(data, root) {
    const why = problem(data);
    if (why) {
      failed(root, why);
      return null;
    }
    return new Page({ charts: {}, ...data }, root);
  }

  // A report carries its data; the dashboard fetches it and calls `start` itself.
  const embedded = document.getElementById("data");
  if (embedded) {
    const root = document.getElementById("page");
    let data = null;
    try {
      data = JSON.parse(embedded.textContent);
    } catch {
      data = null;
    }
    tw.page = start(data, root);
  }

  tw.start = start;
})((globalThis.tradewind = globalThis.tradewind || {}));
