// Parallel coordinates: one strand per trial across the parameters.
(function (tw) {
  "use strict";

  const { svg } = tw.dom;
  const { fit, measure, thin, SIZE } = tw.axes;
  const SHADES = 6; // strands are drawn in so many groups, from poor to good
  const NARROWEST = 84; // pixels between two axes; with less, or with long names, the picture scrolls
  const WIDEST = 200; // pixels of a name

  const UNSET = 32; // pixels below an axis: where strands pass that have no value on it

  const known = (value) => value !== null && Number.isFinite(value);
  const r = (value) => Math.round(10 * value) / 10;
  const wanted = (layer) => {
    const names = layer.axes.map((name) => Math.min(measure(name, 600), WIDEST) + 16);
    return Math.max(NARROWEST, ...names) * layer.axes.length + 24;
  };

  function places(layer, box) {
    const room = (box.width - NARROWEST) / Math.max(1, layer.axes.length - 1);
    const title = Math.min(measure(layer.axes[0] || "", 600), Math.min(room, WIDEST) - 12);
    const left = box.left + Math.max(24, 0.5 * title + 8);
    const right = box.left + box.width - NARROWEST + 16;
    const step = layer.axes.length > 1 ? (right - left) / (layer.axes.length - 1) : 0;
    const gaps = layer.axes.map((_, i) => layer.rows.some((row) => !known(row[i])));
    const bottom = box.top + box.height - 16 - (gaps.includes(true) ? UNSET : 0);
    const top = box.top + 40;
    const height = (value) => (known(value) ? bottom - value * (bottom - top) : bottom + UNSET);
    return { left, step, top, bottom, gaps, height };
  }

  const strand = (row, at) =>
    `M${row.map((value, i) => `${r(at.left + i * at.step)} ${r(at.height(value))}`).join("L")}`;

  function drawAxes(layer, at) {
    const group = svg("g", { class: "frame" });
    layer.axes.forEach((name, i) => {
      const x = at.left + i * at.step;
      group.append(
        svg("line", { class: "base", x1: x, x2: x, y1: at.top, y2: at.bottom }),
        svg(
          "text",
          { "class": "axis-title strong", "x": x, "y": at.top - 20, "text-anchor": "middle" },
          svg("title", {}, tw.dom.brief(name, 500)),
          fit(name, at.step ? at.step - 12 : WIDEST, 600),
        ),
      );
      if (at.gaps[i]) {
        const text = fit("not set", Math.max(40, (at.step || 120) - 20));
        group.append(svg("text", { class: "tick halo", x: x + 6, y: at.bottom + UNSET + 4 }, text));
      }
      const labels = (layer.ticks[i] || [])
        .map(([value, text]) => ({ pixel: at.bottom - value * (at.bottom - at.top), text, at: value }))
        .sort((a, b) => a.pixel - b.pixel);
      for (const label of thin(labels, (a, b) => b.pixel - a.pixel >= SIZE + 3)) {
        group.append(
          svg("line", { class: "base", x1: x - 4, x2: x, y1: label.pixel, y2: label.pixel }),
          svg(
            "text",
            { class: "tick halo", x: x + 6, y: label.pixel + 4 },
            svg("title", {}, tw.dom.brief(label.text, 500)),
            fit(label.text, Math.max(40, (at.step || 120) - 20)),
          ),
        );
      }
    });
    return group;
  }

  // The axes and strands of a panel with a Strands layer, and its items.
  function drawStrands(panel, box) {
    const layer = panel.layers.find((one) => one.kind === "strands");
    const at = places(layer, box);
    const frame = { panel, box, left: at.left, right: box.left + box.width, top: at.top, bottom: at.bottom };
    const many = layer.rows.length > 300;
    const groups = Array.from({ length: SHADES }, () => "");
    const items = [];
    layer.rows.forEach((row, i) => {
      if (!row.some(known)) return;
      const path = strand(row, at);
      const shade = Math.max(0, Math.min(1, layer.shade[i] ?? 0));
      const clear = shade ** (many ? 4 : 1); // of many, only the best stand out
      groups[Math.min(SHADES - 1, Math.floor(clear * SHADES))] += path;
      items.push({
        x: at.left,
        y: at.height(row[0]),
        index: i,
        size: 4,
        layer,
        frame,
        path,
        row,
        trial: layer.trials.length ? layer.trials[i] : null,
        order: -shade,
      });
    });
    const marks = svg(
      "g",
      { class: `marks strands${many ? " many" : ""}` },
      ...groups.map((d, i) => d && svg("path", { class: `strand shade-${i}`, d })),
    );
    return {
      group: marks,
      axes: drawAxes(layer, at),
      items,
      distance: (item, x, y) => distance(item, at, x, y),
    };
  }

  // How far a place is from a strand, in pixels up or down.
  function distance(item, at, x, y) {
    if (at.step === 0) return Math.abs(item.y - y);
    const position = Math.max(0, Math.min(item.row.length - 1, (x - at.left) / at.step));
    const i = Math.min(item.row.length - 2, Math.floor(position));
    const [from, to] = [at.height(item.row[i]), at.height(item.row[i + 1])];
    return Math.abs(from + (position - i) * (to - from) - y);
  }

  tw.strands = { drawStrands, wanted };
})((globalThis.tradewind = globalThis.tradewind || {}));
