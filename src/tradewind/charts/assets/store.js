// What the page knows: the data, the trial that is chosen (by a goal) and the one that is selected
// (by the reader). Whoever shows one of them listens here.
(function (tw) {
  "use strict";

  const isPlain = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

  class Store {
    constructor(data) {
      this.listeners = new Set();
      this.chosen = null;
      this.selected = null;
      this.goal = { kind: "own", value: null };
      this.take(data);
    }

    take(data) {
      this.data = data;
      const table = isPlain(data.trials) ? data.trials : { columns: [], rows: [] };
      this.columns = table.columns || [];
      this.rows = table.rows || [];
      this.position = new Map(this.columns.map((column, i) => [column.key, i]));
      this.byTrial = new Map(this.rows.map((row) => [row[0], row]));
    }

    column(key) {
      return this.columns[this.position.get(key)];
    }

    // A cell of a trial; undefined if there is no such trial or column.
    cell(trial, key) {
      const row = this.byTrial.get(trial);
      return row && this.position.has(key) ? row[this.position.get(key)] : undefined;
    }

    shown(trial, key) {
      const value = this.cell(trial, key);
      return tw.format.show(value, (this.column(key) || {}).format);
    }

    // The configuration of a trial: what is set in it, by the parameters' own names.
    params(trial) {
      const { best, parameters } = this.data;
      if (best && best.trial === trial && isPlain(best.params)) return best.params;
      const conditional = new Set((parameters || []).filter((one) => one.when).map((one) => one.name));
      const found = Object.create(null); // a parameter may be called __proto__
      for (const column of this.columns) {
        if (!column.parameter) continue;
        const name = column.title,
          value = this.cell(trial, column.key);
        // None is a value of a parameter that is always set, and a gap in one that depends on others
        if (value === undefined || (value === null && conditional.has(name))) continue;
        found[name] = value;
      }
      return found;
    }

    listen(listener) {
      this.listeners.add(listener);
      return () => this.listeners.delete(listener);
    }

    tell(change) {
      for (const listener of [...this.listeners]) listener(change);
    }

    choose(trial, goal) {
      const same = trial === this.chosen && goal.kind === this.goal.kind && goal.value === this.goal.value;
      this.chosen = trial;
      this.goal = goal;
      if (same) return;
      this.tell("chosen");
      this.send("tradewind:choice", this.selection());
    }

    select(trial) {
      if (trial === this.selected) return;
      this.selected = trial;
      this.tell("selected");
      this.send("tradewind:select", { trial });
    }

    selection() {
      return { trial: this.chosen, goal: { ...this.goal }, row: this.selected };
    }

    send(name, detail) {
      document.dispatchEvent(new CustomEvent(name, { detail }));
    }
  }

  // A configuration as a Python dictionary.
  function python(value) {
    if (value === null || value === undefined) return "None";
    if (value === true) return "True";
    if (value === false) return "False";
    if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
    if (isPlain(value))
      return `{${Object.entries(value)
        .map(([k, v]) => `${python(k)}: ${python(v)}`)
        .join(", ")}}`;
    // JSON's escapes are Python's; what JSON leaves alone Python reads as it is, but for lone halves
    // of a pair, which JSON.stringify escapes too
    return JSON.stringify(value);
  }

  tw.Store = Store;
  tw.python = python;
})((globalThis.tradewind = globalThis.tradewind || {}));
