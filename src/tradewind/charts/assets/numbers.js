// The numbers behind a chart as a table, for those who cannot or do not want to see a picture.
(function (tw) {
  "use strict";

  const { el, brief } = tw.dom;
  const MOST = 200; // rows of one layer; the table of all trials has the rest

  const written = (axis, value) => {
    if (value === null || value === undefined) return "–";
    if (axis.scale === "category") return brief(axis.labels[Math.round(value)] ?? value, 80);
    return tw.format.show(value, axis.format);
  };

  // Columns of a layer: [title, cell of row i].
  function columns(layer, panel) {
    const { x, y } = panel;
    const trials = layer.trials && layer.trials.length ? [["trial", (i) => layer.trials[i]]] : [];
    const say = (axis, list, title) => [title || axis.title || "value", (i) => written(axis, list[i])];
    switch (layer.kind) {
      case "bars":
        return [
          [y.title || "name", (i) => brief(y.labels[i], 80)],
          say(x, layer.values),
          ...(layer.low && layer.low.length ? [say(x, layer.low, "from"), say(x, layer.high, "to")] : []),
        ];
      case "spans":
        return [...trials, say(y, layer.lane), say(x, layer.start, "start"), say(x, layer.end, "end")];
      case "band":
        return [say(x, layer.x), say(y, layer.low, "from"), say(y, layer.high, "to")];
      case "strands":
        return [
          ...trials,
          [
            "",
            (i) => brief((layer.texts || [])[i] || layer.rows[i].map((v) => tw.format.show(v)).join(", "), 300),
          ],
        ];
      default:
        return [...trials, say(x, layer.x), say(y, layer.y)];
    }
  }

  const length = (layer) => (layer.values || layer.lane || layer.rows || layer.x).length;

  function table(layer, panel) {
    const shown = columns(layer, panel),
      count = length(layer);
    const rows = Array.from({ length: Math.min(count, MOST) }, (_, i) => i);
    const more = count > MOST ? ` (the first ${MOST} of ${count.toLocaleString("en-US")})` : "";
    return el(
      "table",
      { class: "numbers" },
      el(
        "caption",
        {},
        [panel.title, layer.name]
          .filter(Boolean)
          .map((text) => brief(text, 80))
          .join(": ") + more,
      ),
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          shown.map(([title]) => el("th", { scope: "col" }, brief(title, 60))),
        ),
      ),
      el(
        "tbody",
        {},
        rows.map((i) =>
          el(
            "tr",
            {},
            shown.map(([, cell]) => el("td", {}, String(cell(i)))),
          ),
        ),
      ),
    );
  }

  // A disclosure that makes its tables when it is opened, from the chart as it is then.
  function disclosure(chart) {
    const body = el("div", {
      "class": "numbers-body",
      "tabindex": 0,
      "role": "region",
      "aria-label": `${brief(chart().title, 100)}: numbers`,
    });
    const node = el("details", { class: "as-table" }, el("summary", {}, "Show as table"), body);
    node.addEventListener("toggle", () => {
      const panels = node.open ? chart().panels : [];
      body.replaceChildren(...panels.flatMap((panel) => panel.layers.map((layer) => table(layer, panel))));
    });
    return node;
  }

  tw.numbers = { disclosure };
})((globalThis.tradewind = globalThis.tradewind || {}));
