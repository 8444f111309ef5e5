// All trials as a table: sort, filter, choose columns, select a trial, take the rows away as a file.
(function (tw) {
  "use strict";

  const { el, svg, put, brief, button, download, fileName, unique } = tw.dom;
  const { plural } = tw.format;
  const PAGE = 50; // rows shown at a time

  const empty = (value) => value === null || value === undefined || value === "";

  function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a === "number" || typeof b === "number") return typeof a === "number" ? -1 : 1;
    return String(a).localeCompare(String(b), "en", { numeric: true });
  }

  // Rows in the order of a column; rows without a value come last in both directions.
  function sorted(rows, i, down) {
    const known = rows.filter((row) => !empty(row[i])),
      rest = rows.filter((row) => empty(row[i]));
    known.sort((a, b) => (down ? -1 : 1) * compare(a[i], b[i]) || a[0] - b[0]);
    return [...known, ...rest];
  }

  // What gives the percentages of a column in these rows equally many decimals, as text.
  function padding(rows, column) {
    const SHARE = /^-?\d+(?:\.(\d+))?%$/u;
    const decimals = (text) => (SHARE.exec(text)?.[1] || "").length;
    if (column.format !== "percent") return String;
    const most = Math.max(0, ...rows.map((row) => decimals(tw.format.show(row[column.i], "percent"))));
    return (text) => (SHARE.test(text) ? `${Number(text.slice(0, -1)).toFixed(most)}%` : text);
  }

  class Table {
    constructor(store) {
      this.store = store;
      this.sort = { key: null, down: false };
      this.text = "";
      this.states = new Set();
      this.hidden = new Set();
      this.page = 0;
      this.build();
      store.listen((change) => this.mark(change));
      this.update();
    }

    build() {
      const help = unique("help");
      this.box = el("input", {
        "type": "search",
        "class": "field",
        "placeholder": "Filter: words, value>0.9, cost<2min, state=failed",
        "aria-label": "Filter the trials",
        "aria-describedby": help,
        "spellcheck": "false",
        "autocomplete": "off",
      });
      this.box.addEventListener("input", () => this.change(() => (this.text = this.box.value)));
      this.chips = el("div", { "class": "chips", "role": "group", "aria-label": "States" });
      this.chooser = el("div", { class: "chooser" });
      this.count = el("p", { class: "count", role: "status" });
      this.problem = el("p", { class: "problem", id: help });
      this.head = el("tr");
      this.body = el("tbody");
      this.menu = menu("Columns", this.chooser);
      this.pager = el("nav", { "class": "pager", "aria-label": "Pages of the table" });
      this.node = el(
        "div",
        { class: "trials" },
        el(
          "div",
          { class: "toolbar" },
          this.box,
          this.chips,
          this.menu,
          button("CSV", () => this.save("csv"), { "aria-label": "Download these rows as CSV" }),
          button("JSON", () => this.save("json"), { "aria-label": "Download these rows as JSON" }),
        ),
        this.problem,
        el(
          "div",
          { "class": "table-frame", "tabindex": 0, "role": "region", "aria-label": "Trials" },
          el(
            "table",
            { class: "grid" },
            el("caption", { class: "visually-hidden" }, "All trials"),
            el("thead", {}, this.head),
            this.body,
          ),
        ),
        el("div", { class: "table-foot" }, this.count, this.pager),
      );
    }

    // The data has changed; sorting, filter, columns and page stay.
    update() {
      this.choices();
      this.rows();
    }

    change(edit) {
      edit();
      this.page = 0;
      this.rows();
    }

    choices() {
      const i = this.store.position.get("state");
      const counts = new Map();
      for (const row of i === undefined ? [] : this.store.rows)
        counts.set(row[i], (counts.get(row[i]) || 0) + 1);
      for (const state of [...this.states]) if (!counts.has(state)) this.states.delete(state);
      const known = new Map([...this.chips.children].map((chip) => [chip.dataset.state, chip]));
      this.chips.replaceChildren(
        ...[...counts].map(([state, count]) => {
          const chip = known.get(String(state)) || this.chip(state);
          put(chip, badge(state), ` ${count.toLocaleString("en-US")}`);
          return chip;
        }),
      );
      if (this.chooser.childElementCount !== this.store.columns.length) {
        this.chooser.replaceChildren(...this.store.columns.map((column) => this.check(column)));
      }
    }

    chip(state) {
      const chip = button(
        "",
        () => {
          if (!this.states.delete(state)) this.states.add(state);
          chip.setAttribute("aria-pressed", String(this.states.has(state)));
          this.change(() => {});
        },
        { "class": "button chip", "aria-pressed": "false", "data-state": state },
      );
      return chip;
    }

    check(column) {
      const input = el("input", { type: "checkbox", checked: !this.hidden.has(column.key) });
      input.addEventListener("change", () => {
        if (input.checked) this.hidden.delete(column.key);
        else this.hidden.add(column.key);
        this.rows();
      });
      return el("label", {}, input, el("span", {}, brief(column.title, 60)));
    }

    // The rows that pass the filter, in order.
    matching() {
      const { columns, rows } = this.store;
      const { matches, problem } = tw.filter.parse(this.text, columns);
      put(this.problem, problem);
      const state = this.store.position.get("state");
      const kept = rows.filter((row) => (!this.states.size || this.states.has(row[state])) && matches(row));
      const by = this.store.position.get(this.sort.key);
      return by === undefined ? kept : sorted(kept, by, this.sort.down);
    }

    rows() {
      this.shown = this.matching();
      const last = Math.max(0, Math.ceil(this.shown.length / PAGE) - 1);
      this.page = Math.min(this.page, last);
      const all = this.store.rows.length;
      const some =
        this.shown.length === all
          ? plural(all, "trial")
          : `${this.shown.length.toLocaleString("en-US")} of ${plural(all, "trial")}`;
      put(this.count, some);
      const columns = this.store.columns
        .map((column, i) => ({ ...column, i }))
        .filter((column) => !this.hidden.has(column.key));
      this.heads(columns);
      const page = this.shown.slice(this.page * PAGE, (this.page + 1) * PAGE);
      const focused =
        document.activeElement && this.body.contains(document.activeElement)
          ? document.activeElement.dataset.trial
          : null;
      for (const column of columns) column.pad = padding(page, column);
      this.body.replaceChildren(...page.map((row) => this.row(row, columns)));
      if (!page.length) {
        const why = all ? "No trial passes the filter." : "There are no trials yet.";
        this.body.append(
          el("tr", {}, el("td", { class: "nothing", colspan: Math.max(1, columns.length) }, why)),
        );
      }
      if (focused) this.body.querySelector(`button[data-trial="${CSS.escape(focused)}"]`)?.focus();
      this.turn(last);
      this.mark();
    }

    heads(columns) {
      const order = columns.map((column) => column.key).join("\n");
      if (this.order !== order) {
        this.order = order;
        this.head.replaceChildren(...columns.map((column) => this.headCell(column)));
      }
      for (const cell of this.head.children) {
        const ours = cell.dataset.key === this.sort.key;
        cell.setAttribute("aria-sort", ours ? (this.sort.down ? "descending" : "ascending") : "none");
      }
    }

    headCell(column) {
      const sort = button(
        brief(column.title, 40),
        () =>
          this.change(() => {
            const again = this.sort.key === column.key;
            this.sort = { key: column.key, down: again && !this.sort.down };
          }),
        { class: "sort", title: brief(column.title, 300) },
      );
      sort.append(
        svg(
          "svg",
          { "viewBox": "0 0 8 12", "width": 8, "height": 12, "aria-hidden": "true" },
          svg("path", { class: "up", d: "M1 5 4 1 7 5z" }),
          svg("path", { class: "down", d: "M1 7 4 11 7 7z" }),
        ),
      );
      return el(
        "th",
        { "scope": "col", "data-key": column.key, "class": numeric(column) ? "number" : null },
        sort,
      );
    }

    row(row, columns) {
      const trial = row[0];
      const cells = columns.map((column) => {
        const value = row[column.i];
        if (column.i === 0) return el("th", { scope: "row" }, this.pick(trial));
        if (column.format === "state") return el("td", {}, badge(value));
        const text = column.pad(tw.format.show(value, column.format));
        const long = text.length > 40;
        return el(
          "td",
          { class: numeric(column) ? "number" : "text", title: long ? brief(text, 1000) : null },
          brief(text, 120),
        );
      });
      const node = el("tr", { "data-trial": trial }, cells);
      node.addEventListener("click", (event) => {
        if (!event.target.closest("button") && !String(getSelection())) this.toggle(trial);
      });
      return node;
    }

    pick(trial) {
      return button(String(trial), () => this.toggle(trial), {
        "class": "pick",
        "data-trial": trial,
        "aria-label": `Select trial ${trial}`,
      });
    }

    toggle(trial) {
      this.store.select(this.store.selected === trial ? null : trial);
    }

    // Which rows are the chosen and the selected trial.
    mark() {
      const frontier = new Set(this.store.data.frontier || []);
      for (const row of this.body.querySelectorAll("tr[data-trial]")) {
        const trial = Number(row.dataset.trial);
        const chosen = trial === this.store.chosen,
          selected = trial === this.store.selected;
        row.classList.toggle("chosen", chosen);
        row.classList.toggle("selected", selected);
        row.classList.toggle("efficient", frontier.has(trial));
        const pick = row.querySelector(".pick");
        if (!pick) continue;
        pick.setAttribute("aria-pressed", String(selected));
        pick.setAttribute(
          "aria-label",
          `Select trial ${trial}${chosen ? ", the chosen model" : ""}${frontier.has(trial) ? ", on the frontier" : ""}`,
        );
      }
    }

    turn(last) {
      const go = (label, page, name) =>
        button(
          label,
          () => {
            this.page = page;
            this.rows();
          },
          {
            "class": "button small",
            "aria-label": name,
            "disabled": page < 0 || page > last || page === this.page,
          },
        );
      const held =
        document.activeElement && this.pager.contains(document.activeElement)
          ? document.activeElement.getAttribute("aria-label")
          : null;
      this.pager.hidden = last === 0;
      this.pager.replaceChildren(
        go("«", 0, "First page"),
        go("‹", this.page - 1, "Previous page"),
        el("span", {}, `${this.page + 1} of ${last + 1}`),
        go("›", this.page + 1, "Next page"),
        go("»", last, "Last page"),
      );
      if (held)
        (
          [...this.pager.children].find((node) => node.getAttribute("aria-label") === held && !node.disabled) ||
          this.box
        ).focus();
    }

    // Turn to the page that holds a trial, without the filter if it hides the trial.
    reveal(trial) {
      if (!this.shown.some((row) => row[0] === trial)) {
        this.box.value = this.text = "";
        this.states.clear();
        for (const chip of this.chips.children) chip.setAttribute("aria-pressed", "false");
        this.rows();
      }
      this.page = Math.max(0, Math.floor(this.shown.findIndex((row) => row[0] === trial) / PAGE));
      this.rows();
      const row = this.body.querySelector(`tr[data-trial="${CSS.escape(String(trial))}"]`);
      if (!row) return;
      row.scrollIntoView({ block: "center", behavior: tw.motion() });
      row.querySelector(".pick")?.focus({ preventScroll: true });
    }

    save(kind) {
      const { columns, data } = this.store;
      const name = fileName(data.study.name, `-trials.${kind}`);
      if (kind === "csv") return download(name, "text/csv;charset=utf-8", csv(columns, this.shown));
      const records = this.shown.map((row) =>
        Object.fromEntries(columns.map((column, i) => [column.key, row[i] ?? null])),
      );
      return download(name, "application/json", `${JSON.stringify(records, null, 1)}\n`);
    }
  }

  // A button that opens something; Escape and a click elsewhere close it.
  function menu(label, contents) {
    const summary = el("summary", { class: "button" }, label);
    const node = el("details", { class: "menu" }, summary, contents);
    node.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !node.open) return;
      node.open = false;
      summary.focus();
    });
    document.addEventListener("pointerdown", function close(event) {
      if (!node.contains(event.target)) node.open = false;
      if (!node.isConnected) document.removeEventListener("pointerdown", close);
    });
    return node;
  }

  const numeric = (column) => !["text", "state"].includes(column.format);

  // A spreadsheet takes texts that begin like this for formulas; an apostrophe keeps them texts.
  const FORMULA = /^[=+\-@\t\r\n'\uff1d\uff0b\uff0d\uff20]/;

  function csv(columns, rows) {
    const cell = (value) => {
      if (empty(value)) return "";
      const text = typeof value === "object" ? JSON.stringify(value) : String(value);
      const safe = typeof value === "string" && FORMULA.test(text) ? `'${text}` : text;
      return /[",\r\n]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
    };
    const lines = [columns.map((column) => cell(column.key)), ...rows.map((row) => row.map(cell))];
    return lines.map((line) => `${line.join(",")}\r\n`).join("");
  }

  // A state as a word with a dot of its colour.
  const STATES = ["waiting", "running", "finished", "failed", "abandoned"];
  const badge = (state) =>
    el("span", { class: `badge${STATES.includes(state) ? ` state-${state}` : ""}` }, brief(state, 30));

  tw.Table = Table;
  tw.table = { csv };
})((globalThis.tradewind = globalThis.tradewind || {}));
