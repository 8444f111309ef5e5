// The sliders: what a unit of cost is worth, or what may be spent. Moving one moves the chosen model.
(function (tw) {
  "use strict";

  const { el, svg, put, button, brief, segmented, copyButton, unique } = tw.dom;
  const { stepAt } = tw.steps;

  // The position nearest to a value.
  const indexOf = (positions, value) =>
    positions.reduce((best, at, i) => (Math.abs(at - value) < Math.abs(positions[best] - value) ? i : best), 0);

  // One slider with a strip above it that shows which model is chosen where.
  class Slider {
    constructor(choice, moved) {
      this.moved = moved;
      const name = unique("slider");
      this.label = el("label", { for: name, class: "question" });
      this.input = el("input", { type: "range", id: name, min: 0, step: 1, class: "range" });
      this.strip = el("div", { "class": "strip", "aria-hidden": "true" });
      const caption = el("p", { "class": "strip-name", "aria-hidden": "true" }, "The trial that is chosen");
      this.ends = el("div", { "class": "ends", "aria-hidden": "true" });
      this.input.addEventListener("input", () => this.moved(this.value()));
      this.node = el("div", { class: "slider" }, this.label, caption, this.strip, this.input, this.ends);
      this.take(choice);
    }

    // New steps; the value stays what it is, and gets a position of its own if it has none.
    take(
      choice,
      value = choice.start ?? choice.positions[choice.kind === "limit" ? choice.positions.length - 1 : 0],
    ) {
      const positions = [...new Set([...choice.positions, value])].sort((a, b) => a - b);
      this.choice = { ...choice, positions };
      put(this.label, choice.question);
      put(this.ends, ...choice.ends.map((text) => el("span", {}, text)));
      this.input.max = positions.length - 1;
      this.input.disabled = positions.length < 2;
      this.paint();
      this.set(value);
    }

    value() {
      return this.choice.positions[Number(this.input.value)];
    }

    set(value) {
      this.input.value = indexOf(this.choice.positions, value);
      this.say();
    }

    // The step of the thumb; null where no model is chosen.
    step() {
      return stepAt(this.choice.steps, this.value());
    }

    // Mark the part of the thumb, or none if the slider says nothing about the choice.
    say(marked = true) {
      const step = marked ? this.step() : null;
      const trial = step ? `Trial ${step.trial}.` : "No trial.";
      this.input.setAttribute("aria-valuetext", `${this.choice.say(this.value())} ${trial}`);
      for (const part of this.strip.children)
        part.classList.toggle("current", step !== null && part.dataset.trial === String(step.trial));
    }

    // A part of the strip for each model that is ever chosen; a click goes to it.
    paint() {
      const { positions, steps } = this.choice,
        last = Math.max(1, positions.length - 1);
      this.strip.replaceChildren(
        ...steps.map((step, i) => {
          const from = indexOf(positions, step.from);
          const to = i + 1 < steps.length ? indexOf(positions, steps[i + 1].from) : positions.length;
          // half a position to the left, so that the thumb stands on the part of its model
          const [left, right] = [from - 0.5, to - 0.5].map((at) => Math.max(0, Math.min(last, at)));
          const part = el(
            "div",
            { "class": "part", "data-trial": step.trial, "title": `Trial ${step.trial}` },
            el("span", { class: step.trial > 99 ? "long" : null }, String(step.trial)),
          );
          part.style.left = `${(100 * left) / last}%`;
          part.style.width = `${(100 * (right - left)) / last}%`;
          part.addEventListener("click", () => {
            this.input.value = Math.round((from + Math.max(from, to - 1)) / 2);
            this.input.focus();
            this.moved(this.value());
          });
          return part;
        }),
      );
    }
  }

  class Choice {
    constructor(store) {
      this.store = store;
      this.sliders = {};
      this.kind = null;
      this.said = el("p", { class: "worth" });
      this.reset = button("Reset", () => this.own(), {
        "class": "button small",
        "aria-label": "Reset to the study’s goal",
      });
      this.copy = copyButton("Copy this goal", () => this.code());
      this.panes = el("div");
      this.tabs = el("div");
      const head = el("div", { class: "spread" }, this.tabs, this.reset);
      this.foot = el("div", { class: "spread" }, this.said); // the dashboard adds a button
      this.node = el("div", { class: "choice card" }, head, this.panes, this.foot);
      this.update();
    }

    code() {
      return this.sliders[this.kind].choice.code(this.sliders[this.kind].value());
    }

    // How values are said: as points of a score, as losses, or as they are.
    scale() {
      const { choices, study } = this.store.data;
      return { points: choices.points === true, name: study.metric };
    }

    // The choices that the data offers.
    offered() {
      const { choices } = this.store.data;
      const some = (one) => one && one.steps && one.steps.length;
      return {
        ...(choices && some(choices.tradeoff)
          ? { tradeoff: tw.steps.tradeoff(choices.tradeoff, this.scale()) }
          : {}),
        ...(choices && some(choices.limit) ? { limit: tw.steps.limit(choices.limit) } : {}),
      };
    }

    update() {
      const offered = this.offered(),
        kinds = Object.keys(offered);
      this.node.hidden = kinds.length === 0;
      for (const kind of kinds) {
        const known = this.sliders[kind];
        if (known) known.take(offered[kind], known.value());
        else this.sliders[kind] = new Slider(offered[kind], () => this.move());
      }
      for (const kind of Object.keys(this.sliders)) if (!offered[kind]) delete this.sliders[kind];
      if (kinds.join() !== this.kinds) {
        this.kinds = kinds.join();
        const names = { tradeoff: "Trade-off", limit: "Cost limit" };
        this.group = segmented(
          "How to choose",
          kinds.map((kind) => [kind, names[kind]]),
          kinds[0],
          (kind) => {
            this.show(kind);
            this.move();
          },
        );
        this.tabs.replaceChildren(kinds.length > 1 ? this.group : "");
        if (!kinds.includes(this.kind)) this.show(kinds[0] || null);
      }
      if (this.store.goal.kind === "own" || !this.kind) this.own();
      else this.move();
    }

    show(kind) {
      this.kind = kind;
      if (kind) this.group.choose(kind);
      this.panes.replaceChildren(...(kind ? [this.sliders[kind].node] : []));
    }

    move() {
      const slider = this.sliders[this.kind],
        value = slider.value(),
        step = slider.step();
      slider.say();
      put(this.said, slider.choice.say(value));
      this.other(true);
      this.store.choose(step && step.trial, { kind: this.kind, value });
    }

    // Whether another goal than the study's own is shown. The button keeps its room: nothing moves.
    other(is) {
      this.reset.classList.toggle("away", !is);
      this.copy.hidden = !is;
    }

    // The slider that can be set to the study's own goal.
    settled() {
      return Object.keys(this.sliders).find((kind) => this.sliders[kind].choice.start !== null);
    }

    // The slider and the place on it that stand for the study's own choice, if there are any.
    ownPlace() {
      const settled = this.settled();
      if (settled) return [settled, this.sliders[settled].choice.start];
      const { best } = this.store.data;
      for (const [kind, { choice }] of Object.entries(this.sliders)) {
        const step = choice.steps.find((one) => best && one.trial === best.trial);
        if (step) return [kind, step.from];
      }
      return [this.kind, null];
    }

    // What the study itself would choose.
    own() {
      const { best, study } = this.store.data;
      const [kind, place] = this.ownPlace();
      if (kind !== this.kind) this.show(kind);
      if (place !== null) this.sliders[kind].set(place);
      else if (kind) this.sliders[kind].say(false);
      const said = this.settled() ? this.sliders[kind].choice.say(place) : "";
      put(this.said, said || (kind ? "Move the slider to choose another way." : ""));
      this.other(false);
      const text = said || brief(study.goal || "", 160);
      this.store.choose(best ? best.trial : null, { kind: "own", value: null, text });
    }

    // The sentence about the chosen model.
    sentence() {
      const { goal, data } = this.store;
      return goal.kind === "own" ? data.best.sentence : this.sliders[goal.kind].step().sentence;
    }

    // What the frontier chart shows of the goal: the limit, or all that is as good as the chosen model.
    guides() {
      const sample = tw.marks.sample({ kind: "line", role: "chosen", dashed: true });
      const entry = el("li", {}, sample, "equally good");
      const draw = (frame, scene) => {
        const { kind, value } = this.shown();
        const at = (scene.byTrial.get(this.store.chosen) || []).find((item) => item.frame === frame);
        const level = kind === "tradeoff" && at;
        entry.classList.toggle("away", !level);
        if (kind === "limit") return limitGuide(frame, value);
        return level ? worthGuide(frame, at, (cost) => this.penalty(value, cost)) : [];
      };
      return { entry, draw };
    }

    // The goal that is shown, as a kind of slider and its value; of other goals no kind.
    shown() {
      const { kind, value } = this.store.goal;
      if (kind !== "own") return { kind, value };
      const own = this.settled();
      return own ? { kind: own, value: this.sliders[own].choice.start } : { kind: null, value: null };
    }

    // What a cost takes away from the value of a model.
    penalty(alpha, cost) {
      const sign = this.store.data.study.direction === "minimize" ? -1 : 1;
      return sign * alpha * this.sliders.tradeoff.choice.sigma(cost);
    }
  }

  // The area beyond a limit, and a line at it if it is within the axis.
  function limitGuide(frame, cost) {
    const x = tw.marks.pixel(frame.x, cost);
    if (x === null || x >= frame.right) return [];
    const { top, bottom } = frame,
      from = Math.max(frame.left, x);
    const area = svg("rect", { class: "beyond", x: from, y: top, width: frame.right - from, height: bottom - top });
    if (x <= frame.left) return [area];
    const room = frame.right - from > 40;
    const place = { "x": room ? from + 6 : from - 6, "y": bottom - 8, "text-anchor": room ? "start" : "end" };
    return [
      area,
      svg("line", { class: "guide", x1: from, x2: from, y1: top, y2: bottom }),
      svg("text", { class: "guide-name halo", ...place }, "limit"),
    ];
  }

  // `penalty` is what a cost takes away from the value.
  function worthGuide(frame, item, penalty) {
    const x0 = item.layer.x[item.index],
      y0 = item.layer.y[item.index];
    const places = [];
    for (let i = 0; i <= 120; i += 1) {
      const x = frame.left + ((frame.right - frame.left) * i) / 120;
      const y = tw.marks.pixel(frame.y, y0 + penalty(frame.x.value(x)) - penalty(x0));
      if (y !== null && y >= frame.top && y <= frame.bottom)
        places.push(`${Math.round(x)} ${Math.round(10 * y) / 10}`);
    }
    return places.length > 1 ? [svg("path", { class: "guide", d: `M${places.join("L")}` })] : [];
  }

  tw.Choice = Choice;
})((globalThis.tradewind = globalThis.tradewind || {}));
