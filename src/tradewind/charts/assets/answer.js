// The first section: the chosen model in a sentence, its parameters, and the frontier with sliders.
(function (tw) {
  "use strict";

  const { el, put, brief, button, copyButton } = tw.dom;
  const LONG = 80; // a value with more letters gets its end cut off here; the table has all of it

  class Answer {
    constructor(store, reveal) {
      this.store = store;
      this.eyebrow = el("p", { class: "eyebrow" });
      this.sentence = el("p", { "class": "sentence", "aria-live": "polite" });
      this.figures = el("dl", { class: "figures" });
      this.params = el("dl", { class: "params" });
      this.choice = new tw.Choice(store);
      this.picture = el("div", { class: "picture-of" });
      const actions = el(
        "div",
        { class: "actions" },
        this.choice.copy,
        copyButton("Copy as Python", () => tw.python(store.params(store.chosen))),
        copyButton("Copy as JSON", () => JSON.stringify(store.params(store.chosen))),
        button("Show in table", () => reveal(store.chosen), { class: "button small" }),
      );
      const head = el("div", { class: "spread" }, el("h3", {}, "Configuration"), actions);
      this.details = el("div", { class: "details" }, head, this.params);
      const about = el("div", { class: "about" }, this.eyebrow, this.sentence, this.figures);
      this.node = el("div", { class: "answer" }, about, this.choice.node, this.picture, this.details);
      this.frontier();
      store.listen((change) => change === "chosen" && this.show());
      this.show();
    }

    frontier() {
      const chart = (this.store.data.charts || {}).frontier;
      if (chart && !this.chart) {
        const guides = this.choice.guides();
        this.chart = tw.draw(chart, this.picture, { store: this.store, guides, height: 440 });
      } else if (chart) this.chart.update(chart);
    }

    update() {
      this.choice.update();
      this.frontier();
      this.show();
    }

    show() {
      const { store } = this,
        { study } = store.data,
        trial = store.chosen;
      const known = trial !== null && trial !== undefined;
      this.figures.hidden = this.details.hidden = !known;
      if (this.chart) this.chart.highlight();
      const own = store.goal.kind === "own";
      if (!known) return this.nothing(own);
      put(this.eyebrow, own ? `The study’s choice · ${store.goal.text}` : "Your choice");
      put(this.sentence, brief(this.choice.sentence(), 900));
      put(
        this.figures,
        this.entries().map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))),
      );
      const params = Object.entries(store.params(trial));
      put(
        this.params,
        params.map(([name, value]) =>
          el(
            "div",
            {},
            el("dt", { title: name.length > 30 ? brief(name, 500) : null }, brief(name, LONG)),
            el("dd", {}, brief(tw.format.show(value, this.formatOf(name)), LONG)),
          ),
        ),
      );
      return undefined;
    }

    formatOf(name) {
      const column = this.store.columns.find((one) => one.parameter && one.title === name);
      return (column && column.format) || "number";
    }

    // Value, cost and training size of the chosen trial, as far as they are known.
    entries() {
      const { store } = this,
        trial = store.chosen;
      const size = this.size(trial);
      const { unit } = store.data.study.cost;
      const say = (amount) => (typeof amount === "number" ? tw.format.value(amount) : "–");
      const [value, believed, cost] = ["value", "believed", "cost"].map((key) => store.cell(trial, key));
      const name = this.heading("value", "Value");
      const differs = typeof believed === "number" && say(believed) !== say(value);
      return [
        [differs ? `${name}, measured` : name, say(value)],
        ...(differs ? [[`${name}, believed`, say(believed)]] : []),
        [this.heading("cost", "Cost"), typeof cost === "number" ? tw.format.cost(cost, unit) : "–"],
        ...(typeof size === "number" ? [["Training data", tw.format.percent(size)]] : []),
      ];
    }

    // The share of the training data: a parameter in some studies, a column of its own in others.
    size(trial) {
      const own = (this.store.data.parameters || []).find((one) => one.kind === "train_size");
      return own ? this.store.params(trial)[own.name] : this.store.cell(trial, "train_size");
    }

    heading(key, other) {
      const { title } = this.store.column(key) || {};
      return title ? brief(tw.format.capital(title), 40) : other;
    }

    nothing(own) {
      const { unanswered, study } = this.store.data,
        { running } = study.counts;
      const goal = study.counts.finished ? `The study’s goal · ${this.store.goal.text}` : "No answer yet";
      put(this.eyebrow, own ? goal : "Your choice");
      put(this.sentence, own ? brief(unanswered, 900) : "No trial keeps this limit.");
      if (running)
        this.sentence.append(` ${tw.format.plural(running, "trial")} ${running === 1 ? "is" : "are"} running.`);
    }
  }

  tw.Answer = Answer;
})((globalThis.tradewind = globalThis.tradewind || {}));
