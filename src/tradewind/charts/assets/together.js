// Several studies side by side: their frontiers and progress in one picture, and a column for each.
(function (tw) {
  "use strict";

  const { el, put, brief } = tw.dom;
  const ROLES = ["main", "chosen", "frontier", "second"]; // a colour, a mark and a dash for each study
  const MOST = 4;

  const chartOf = (data, name) => (data.charts || {})[name];
  const panelOf = (data, name) => ((chartOf(data, name) || {}).panels || [])[0];

  // What the axes of several panels have in common; null if they cannot be drawn together.
  function common(axes) {
    const [first] = axes;
    if (axes.some((axis) => axis.format !== first.format || (axis.scale === "category") !== (first.scale === "category"))) return null;
    const title = axes.every((axis) => axis.title === first.title) ? first.title : axes.map((axis) => axis.title)[0];
    return { ...first, title, limits: null, scale: axes.some((axis) => axis.scale === "log") ? "log" : first.scale };
  }

  // One chart of all studies: of each, the layers that `pick` takes from the chart `name`.
  function overlay({ name, title, summary, pick }, datas) {
    const known = datas.map((data, i) => ({ data, i, panel: panelOf(data, name) })).filter((one) => one.panel);
    const made = { name: `together_${name}`, title, summary, panels: [], note: "", empty: "" };
    if (!known.length) return { ...made, empty: "No trial has finished yet." };
    const x = common(known.map(({ panel }) => panel.x)), y = common(known.map(({ panel }) => panel.y));
    if (!x || !y) return { ...made, empty: "These studies are measured in different units, so they cannot share a picture." };
    const layers = known.flatMap(({ data, i, panel }) =>
      panel.layers.filter(pick).map((layer) => ({ ...layer, role: ROLES[i], name: layer.kind === "line" ? brief(data.study.name, 40) : "" })));
    return { ...made, panels: [{ x, y, layers, title: "" }] };
  }

  const FRONTIER = {
    name: "frontier", title: "Efficient models", summary: "Each line: the best value for at most a given cost.",
    pick: (layer) => layer.role === "frontier",
  };
  const PROGRESS = {
    name: "progress_trials", title: "Best so far", summary: "Each line: the value of the best trial so far, under the goal of its study.",
    pick: (layer) => layer.kind === "line",
  };

  // What a study costs and gives, in numbers.
  function figures(data) {
    const { study } = data, best = data.best || {}, { value, cost, capital } = tw.format;
    const known = (amount, say) => (typeof amount === "number" ? say(amount, study.cost.unit) : "–");
    return [
      ["Best trial", known(best.trial, String)], [capital(study.metric), known(best.value, value)],
      ["Cost", known(best.cost, cost)], ["Spent", known(study.spent, cost)],
    ];
  }

  class Column {
    constructor(name, place) {
      this.name = name;
      this.role = ROLES[place];
      this.title = el("h2", {}, el("a", { href: `/?study=${encodeURIComponent(name)}` }, brief(name, 80)));
      this.state = el("p", { class: "soft" });
      this.counts = el("p", { class: "counts wrap" });
      this.figures = el("dl", { class: "figures" });
      this.sentence = el("p", { class: "choice-of" });
      this.goal = el("p", { class: "soft" });
      this.frontier = el("div");
      this.progress = el("div");
      this.node = el("section", { class: `column study-${this.role}`, "aria-label": brief(name, 200) },
        el("div", { class: "column-head" }, this.title, this.state), this.counts, this.goal, this.figures, this.sentence, this.frontier, this.progress);
      this.drawn = new Map();
    }

    update(data) {
      const { study, live, best } = data;
      put(this.state, (live && live.away) || (study.paused ? "paused" : study.counts.running ? `${tw.format.plural(study.counts.running, "trial")} running` : "nothing is running"));
      const said = ["finished", "running", "waiting", "failed", "abandoned"].filter((state) => study.counts[state] || state === "finished");
      put(this.counts, said.map((state) => el("span", { class: "count-of" }, el("b", {}, study.counts[state].toLocaleString("en-US")), ` ${state}`)));
      put(this.goal, brief(study.goal, 200));
      put(this.figures, figures(data).map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
      put(this.sentence, brief(best ? best.sentence : data.unanswered, 600));
      this.draw("frontier", this.frontier, data);
      this.draw("progress_trials", this.progress, data);
    }

    draw(name, host, data) {
      const chart = chartOf(data, name);
      if (!chart) return;
      const known = this.drawn.get(name);
      if (!known) this.drawn.set(name, { chart, view: tw.draw(chart, host, { height: 240 }) });
      else if (known.chart !== chart) {
        known.chart = chart;
        known.view.update(chart);
      }
    }
  }

  // The view of several studies in `root`. `update(datas)` takes the data of all, in order.
  class Together {
    constructor(names, root) {
      this.columns = names.map((name, i) => new Column(name, i));
      this.frontier = el("div");
      this.progress = el("div");
      const overview = el("section", { "aria-label": "All in one picture" }, el("div", { class: "pair" }, this.frontier, this.progress));
      const columns = el("div", { class: "columns" }, this.columns.map((column) => column.node));
      columns.classList.add(`of-${names.length}`);
      this.main = el("main", { id: "main", tabindex: -1 }, overview, columns);
      root.append(this.main);
      this.views = new Map();
      this.shown = new Map();
    }

    update(datas) {
      this.draw(FRONTIER, this.frontier, datas);
      this.draw(PROGRESS, this.progress, datas);
      this.columns.forEach((column, i) => column.update(datas[i]));
    }

    draw(what, host, datas) {
      const { name } = what;
      const before = this.shown.get(name) || [], now = datas.map((data) => chartOf(data, name));
      if (now.every((chart, i) => chart === before[i]) && this.views.has(name)) return;
      this.shown.set(name, now);
      const chart = overlay(what, datas);
      if (this.views.has(name)) this.views.get(name).update(chart);
      else this.views.set(name, tw.draw(chart, host, { height: 320, heading: "h2" }));
    }
  }

  tw.together = { Together, MOST };
})((globalThis.tradewind = globalThis.tradewind || {}));
