// The other parts of the page: groups of charts, running trials, failures, how to do it again.
// Each is made by a function of the store and returns {node, update()}.
(function (tw) {
  "use strict";

  const { el, put, brief, visible, copyButton, segmented } = tw.dom;

  // Charts below each other, or side by side where they are small.
  function group(store, names, { grid = false, height } = {}) {
    const node = el("div", { class: grid ? "small-multiples" : "chart-group" });
    const drawn = new Map(),
      note = el("p", { class: "note" });
    const options = (name) =>
      grid ? { store, height, plain: true, title: name.replace(/^dependence_/, "") } : { store, height };
    const update = (list = names) => {
      names = list;
      for (const name of names) {
        const chart = store.data.charts[name];
        if (!chart) continue;
        if (drawn.has(name)) drawn.get(name).update(chart);
        else drawn.set(name, tw.draw(chart, node, options(name)));
      }
      for (const [name, chart] of drawn) {
        if (names.includes(name) && store.data.charts[name]) continue;
        chart.destroy();
        drawn.delete(name);
      }
      put(
        note,
        grid ? [...new Set(names.map((name) => store.data.charts[name]?.note).filter(Boolean))].join(" ") : "",
      );
    };
    update();
    return { node: grid ? el("div", {}, node, note) : node, update };
  }

  const OVER = { progress_trials: "Trials", progress_time: "Time", progress_cost: "Cost" };

  // One chart of several; the reader says which.
  function oneOf(store, names) {
    const known = (list) => list.filter((name) => store.data.charts[name]);
    let current = known(names)[0] || names[0];
    const area = el("div", { class: "one-of" });
    let drawn = null;
    const show = (name) => {
      current = name;
      if (drawn) drawn.destroy();
      drawn = store.data.charts[name] ? tw.draw(store.data.charts[name], area, { store, title: "" }) : null;
    };
    const titles = names.map((name) => [name, OVER[name] || brief(store.data.charts[name]?.title || name, 40)]);
    const choice = segmented("Progress over", titles, current, show);
    show(current);
    return {
      node: el("div", {}, choice, area),
      update: () =>
        drawn && store.data.charts[current] ? drawn.update(store.data.charts[current]) : show(current),
    };
  }

  function running(store) {
    const node = el("div", { class: "running" });
    const update = () => {
      const { running: trials, study } = store.data;
      node.replaceChildren(
        ...trials.map((one) => {
          const spent = Math.max(0, study.made - one.started);
          const whole =
            one.expected_end === null || one.expected_end === undefined ? null : one.expected_end - one.started;
          const rest =
            whole === null
              ? "end unknown"
              : whole > spent
                ? `about ${tw.format.spoken(whole - spent)} left`
                : "longer than expected";
          return el(
            "div",
            { class: "run card" },
            el(
              "div",
              { class: "run-head" },
              el("strong", {}, `Trial ${one.trial}`),
              one.worker ? el("span", { class: "soft" }, brief(one.worker, 40)) : null,
            ),
            el("progress", {
              "max": 1,
              "value": whole ? Math.min(1, spent / whole) : null,
              "aria-label": `Trial ${one.trial}: ${rest}`,
            }),
            el("p", { class: "soft" }, `${tw.format.spoken(spent)} so far, ${rest}`),
            el(
              "p",
              { class: "mono soft" },
              brief(
                Object.entries(one.params || {})
                  .map(([k, v]) => `${k} ${tw.format.show(v)}`)
                  .join(", "),
                200,
              ),
            ),
          );
        }),
      );
    };
    update();
    return { node, update };
  }

  function failures(store) {
    const node = el("div", { class: "failures" });
    let known = "";
    const update = () => {
      const list = store.data.failures || [];
      const now = JSON.stringify(list);
      if (now === known) return;
      const open = new Set([...node.querySelectorAll("details[open]")].map((one) => one.dataset.message));
      known = now;
      if (!list.length) return put(node, tw.charts.empty("No trial has failed."));
      node.replaceChildren(...list.map((one) => failure(store, one, open)));
    };
    update();
    return { node, update };
  }

  function failure(store, one, open) {
    const trials = one.trials.slice(0, 60).map((trial) => {
      const pick = el(
        "button",
        { "type": "button", "class": "pick", "aria-label": `Select trial ${trial}` },
        String(trial),
      );
      pick.addEventListener("click", () => store.select(trial));
      return pick;
    });
    const more = one.trials.length > 60 ? ` and ${one.trials.length - 60} more` : "";
    const message = brief(one.message || "No message", 400);
    const body = el("div", { class: "failure-body" }, el("p", {}, "Trials ", trials, more));
    if (one.detail)
      body.append(
        el(
          "pre",
          { "tabindex": 0, "role": "region", "aria-label": "Traceback" },
          visible(one.detail).slice(0, 20000),
        ),
      );
    return el(
      "details",
      { "class": "failure card", "open": open.has(message), "data-message": message },
      el(
        "summary",
        {},
        el("span", { class: "failure-count" }, `${one.count} ×`),
        el("span", { class: "failure-message" }, message),
      ),
      body,
    );
  }

  const code = (label, text) =>
    el(
      "div",
      { class: "code" },
      el(
        "div",
        { class: "code-head" },
        el("h3", {}, label),
        copyButton("Copy", () => text, { "aria-label": `Copy: ${label}` }),
      ),
      el("pre", { "tabindex": 0, "role": "region", "aria-label": label }, visible(text)),
    );

  function reproduce(store) {
    const node = el("div", { class: "reproduce" });
    let known = "";
    const update = () => {
      const given = store.data.reproduce || {},
        now = JSON.stringify(given);
      if (now === known) return;
      known = now;
      const facts = [
        ...Object.entries(given.versions || {}),
        ["seed", store.data.study.seed],
        ["machine", given.machine],
      ].filter(([, value]) => value !== null && value !== undefined && value !== "");
      node.replaceChildren(
        ...(given.python ? [code("Python", given.python)] : []),
        ...(given.command ? [code("Command line", given.command)] : []),
        ...(given.space
          ? [
              el(
                "details",
                { class: "space" },
                el("summary", {}, "The search space as JSON"),
                code("Space", given.space),
              ),
            ]
          : []),
        el(
          "dl",
          { class: "versions" },
          facts.map(([name, value]) =>
            el("div", {}, el("dt", {}, brief(name, 40)), el("dd", {}, brief(value, 200))),
          ),
        ),
      );
    };
    update();
    return { node, update };
  }

  tw.sections = { group, oneOf, running, failures, reproduce };
  tw.hooks = tw.hooks || {};
})((globalThis.tradewind = globalThis.tradewind || {}));
