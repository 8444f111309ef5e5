// The form for a configuration that is to be run next. What is left blank is drawn at random.
(function (tw) {
  "use strict";

  const { el, put, brief, visible, button, unique } = tw.dom;

  // The field of one parameter: a choice or a number.
  class Field {
    constructor(parameter, changed) {
      const { name, kind, values } = parameter;
      this.parameter = parameter;
      this.name = name;
      this.choices = values.choices || null;
      const id = unique("field");
      if (this.choices) {
        const options = this.choices.map((value, i) => el("option", { value: i }, brief(value === null ? "None" : value, 80)));
        this.input = el("select", { id, class: "field" }, el("option", { value: "" }, "drawn at random"), options);
      } else {
        const numeric = { min: values.low, max: values.high, step: kind === "int" ? values.step || 1 : "any" };
        this.input = el("input", { id, class: "field", type: "number", ...numeric, placeholder: "drawn at random" });
      }
      this.input.addEventListener("input", changed);
      this.hint = el("span", { class: "soft", id: unique("hint") });
      const range = this.choices ? "" : brief(parameter.range, 80), when = parameter.when ? `only when ${brief(parameter.when, 80)}` : "";
      put(this.hint, [range, when].filter(Boolean).join(", "));
      this.input.setAttribute("aria-describedby", this.hint.id);
      this.node = el("div", { class: "form-field" }, el("label", { for: id }, brief(name, 80)), this.input, this.hint);
    }

    // The value; undefined where it is left blank.
    value() {
      if (this.input.value === "") return undefined;
      return this.choices ? this.choices[Number(this.input.value)] : Number(this.input.value);
    }

    set(value) {
      if (this.choices) {
        const place = this.choices.findIndex((choice) => choice === value);
        this.input.value = place < 0 ? "" : String(place);
      } else this.input.value = typeof value === "number" ? String(value) : "";
    }

    // Whether the parameter exists, given the values of the others.
    active(valueOf) {
      return (this.parameter.active || []).every(({ parent, values, low }) => {
        const value = valueOf(parent);
        if (value === undefined) return false;
        return values ? values.includes(value) : typeof value === "number" && value >= low;
      });
    }
  }

  class Form {
    constructor(page, send) {
      this.page = page;
      this.send = send;
      this.fields = [];
      this.body = el("div", { class: "form-fields" });
      this.problem = el("p", { class: "problem", role: "alert" });
      this.start = button("", () => this.copy(), { class: "button small" });
      const title = el("h2", { id: unique("title") }, "Queue a configuration");
      this.submit = el("button", { type: "submit", class: "button strong" }, "Queue it");
      this.form = el("form", { novalidate: true }, title,
        el("p", { class: "soft" }, "It runs before anything new is proposed. What you leave blank is drawn at random."),
        this.start, this.body, this.problem,
        el("div", { class: "actions" }, this.submit, button("Cancel", () => this.node.close())));
      this.form.addEventListener("submit", (event) => {
        event.preventDefault();
        this.queue();
      });
      this.node = el("dialog", { class: "dialog", "aria-labelledby": title.id }, this.form);
      document.body.append(this.node);
    }

    open() {
      const { data } = this.page().store, list = data.parameters || [];
      this.fields = list.map((parameter) => new Field(parameter, () => this.arrange()));
      this.size = list.some((one) => one.kind === "train_size") ? null
        : new Field({ name: "training size", kind: "float", range: "more than 0, up to 1; 1 if blank", values: { low: 0, high: 1 } }, () => this.arrange());
      if (this.size) this.size.input.placeholder = "1";
      put(this.body, this.fields.map((field) => field.node), this.size ? this.size.node : null);
      const trial = this.trial();
      this.start.hidden = trial === null;
      put(this.start, `Start from trial ${trial}`);
      put(this.problem, "");
      this.arrange();
      this.node.showModal();
    }

    // The trial to start from: the selected one, or else the chosen one.
    trial() {
      const { row, trial } = this.page().selected();
      return row ?? trial ?? null;
    }

    copy() {
      const { store } = this.page(), params = store.params(this.trial());
      for (const field of this.fields) field.set(params[field.name]);
      if (this.size) this.size.set(store.cell(this.trial(), "train_size"));
      this.arrange();
    }

    // Show the parameters that exist with the values so far, parents before children.
    arrange() {
      const byName = new Map(this.fields.map((field) => [field.name, field]));
      const valueOf = (name) => {
        const field = byName.get(name);
        return field && field.active(valueOf) ? field.value() : undefined;
      };
      for (const field of this.fields) field.node.hidden = !field.active(valueOf);
    }

    async queue() {
      const wrong = this.shown().find((field) => !field.input.validity.valid);
      if (wrong) {
        put(this.problem, `${visible(wrong.name)}: ${wrong.input.validationMessage}`);
        wrong.input.focus();
        return;
      }
      const params = {};
      for (const field of this.shown()) {
        if (field !== this.size && field.value() !== undefined) Object.defineProperty(params, field.name, { value: field.value(), enumerable: true });
      }
      const size = this.size ? this.size.value() : undefined;
      this.submit.disabled = true;
      const problem = await this.send(size === undefined ? { params } : { params, train_size: size });
      this.submit.disabled = false;
      if (problem) put(this.problem, brief(problem, 600));
      else this.node.close();
    }

    shown() {
      return [...this.fields, ...(this.size ? [this.size] : [])].filter((field) => !field.node.hidden);
    }
  }

  tw.Form = Form;
})((globalThis.tradewind = globalThis.tradewind || {}));
