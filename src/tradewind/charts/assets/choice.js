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
      this.ends = el("div", { "class": "ends", "aria-hidden": "true" });
      this.input.addEventListener("input", () => this.moved(this.value()));
      this.node = el("div", { class: "slider" }, this.label, this.strip, this.input, this.ends);
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
      this.input.max = choice.positions.length - 1;
      this.input.disabled = choice.positions.length < 2;
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

    say() {
      const value = this.value(),
        { trial } = stepAt(this.choice.steps, value);
      this.input.setAttribute("aria-valuetext", `${this.choice.say(value)} Trial ${trial}.`);
      for (const part of this.strip.children)
        part.classList.toggle("current", part.dataset.trial === String(trial));
    }

    // A part of the strip for each model that is ever chosen; a click goes to it.
    paint() {
      const { positions, steps } = this.choice,
        last = Math.max(1, positions.length - 1);
      this.strip.replaceChildren(
        ...steps.map((step, i) => {
          const from = i === 0 ? 0 : indexOf(positions, step.from);
          const to = i + 1 < steps.length ? indexOf(positions, steps[i + 1].from) : last;
          const part = el(
            "div",
            { "class": "part", "data-trial": step.trial, "title": `Trial ${step.trial}` },
            el("span", {}, String(step.trial)),
          );
          part.style.left = `${(100 * from) / last}%`;
          part.style.width = `${(100 * Math.max(0, to - from)) / last}%`;
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
      this.back = button("Back to the study’s own goal", () => this.own(), { class: "button small back" });
      this.copy = copyButton("Copy this goal", () => this.code());
      this.panes = el("div", { class: "panes" });
      this.tabs = el("div");
      this.actions = el("div", { class: "actions" }, this.back, this.copy);
      this.node = el("div", { class: "choice card" }, this.tabs, this.panes, this.said, this.actions);
      this.update();
    }

    code() {
      return this.sliders[this.kind].choice.code(this.sliders[this.kind].value());
    }

    // How values are said: as points of a score, as losses, or as they are.
    scale() {
      const { choices, study } = this.store.data;
      return { points: choices.points === true, minimize: study.direction === "minimize" };
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
        value = slider.value();
      slider.say();
      put(this.said, slider.choice.say(value));
      this.actions.hidden = false;
      this.store.choose(stepAt(slider.choice.steps, value).trial, { kind: this.kind, value });
    }

    // What the study itself would choose.
    own() {
      const { best, study } = this.store.data;
      const alpha = this.sliders.tradeoff && this.sliders.tradeoff.choice.start;
      if (alpha !== null && alpha !== undefined) {
        this.show("tradeoff");
        this.sliders.tradeoff.set(alpha);
      }
      const slider = this.sliders[this.kind];
      const settled = slider && alpha !== null && alpha !== undefined;
      const said = settled ? slider.choice.say(slider.value()) : "";
      put(this.said, said || (slider ? "Move the slider to choose another way." : ""));
      this.actions.hidden = true;
      const first = slider ? stepAt(slider.choice.steps, slider.value()).trial : null;
      this.store.choose(best ? best.trial : first, {
        kind: "own",
        value: null,
        text: said || brief(study.goal || "", 160),
      });
    }

    // The sentence about the chosen model.
    sentence() {
      const { goal, data } = this.store;
      if (goal.kind === "own" && data.best) return data.best.sentence;
      const slider = this.sliders[goal.kind] || this.sliders[this.kind];
      return slider ? stepAt(slider.choice.steps, slider.value()).sentence : "";
    }

    // What the frontier chart shows of the goal: the limit, or all that is as good as the chosen model.
    guides(frame, scene) {
      const { goal } = this.store;
      const { tradeoff } = this.sliders;
      const own =
        goal.kind === "own" && tradeoff && tradeoff.choice.start !== null ? tradeoff.choice.start : null;
      if (goal.kind === "limit") return limitGuide(frame, goal.value);
      const alpha = goal.kind === "tradeoff" ? goal.value : own;
      const at = (scene.byTrial.get(this.store.chosen) || [])[0];
      if (alpha === null || alpha === undefined || !at || at.frame !== frame) return [];
      const sign = this.store.data.study.direction === "minimize" ? -1 : 1;
      return worthGuide(frame, at, (cost) => sign * alpha * tradeoff.choice.sigma(cost));
    }
  }

  function limitGuide(frame, cost) {
    const x = tw.marks.pixel(frame.x, cost);
    if (x === null) return [];
    const from = Math.max(frame.left, Math.min(frame.right, x));
    const room = frame.right - from > 64;
    return [
      svg("rect", {
        class: "beyond",
        x: from,
        y: frame.top,
        width: Math.max(0, frame.right - from),
        height: frame.bottom - frame.top,
      }),
      svg("line", { class: "guide", x1: from, x2: from, y1: frame.top, y2: frame.bottom }),
      svg(
        "text",
        {
          "class": "guide-name",
          "x": room ? from + 6 : from - 6,
          "y": frame.bottom - 8,
          "text-anchor": room ? "start" : "end",
        },
        "too expensive",
      ),
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
