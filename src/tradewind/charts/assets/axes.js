// The frame of a panel: margins, ticks that do not touch each other, grid and titles.
(function (tw) {
  "use strict";

  const { svg, visible } = tw.dom;
  const { scale, domain, ticks } = tw.scales;
  const SIZE = 12; // font size of all texts in a chart, as in style.css
  const GAP = 10; // pixels between two labels

  let context = null;
  const widths = new Map();
  // The width of a text in pixels; measured on a canvas, which needs no layout of the page.
  function measure(text, weight = 400) {
    const key = `${weight} ${text}`;
    if (!widths.has(key)) {
      context = context || document.createElement("canvas").getContext("2d");
      context.font = `${weight} ${SIZE}px ${getComputedStyle(document.body).fontFamily}`;
      if (widths.size > 5000) widths.clear();
      widths.set(key, context.measureText(text).width);
    }
    return widths.get(key);
  }

  // The text, cut with an ellipsis where it is wider than `most` pixels.
  function fit(given, most, weight = 400) {
    const text = visible(given).replace(/\s+/g, " ").slice(0, 300);
    if (measure(text, weight) <= most) return text;
    const marks = Array.from(text);
    let low = 0,
      high = marks.length;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (measure(`${marks.slice(0, middle).join("")}…`, weight) <= most) low = middle;
      else high = middle - 1;
    }
    return low === 0 ? "" : `${marks.slice(0, low).join("")}…`;
  }

  function coordinates(panel, direction) {
    const values = [];
    const add = (list) => {
      for (const value of list || []) values.push(value);
    };
    for (const layer of panel.layers) {
      if (layer.kind === "spans") direction === "x" ? (add(layer.start), add(layer.end)) : null;
      else if (layer.kind === "bars")
        direction === "x" ? (add(layer.values), add(layer.low), add(layer.high)) : null;
      else if (layer.kind === "band" && direction === "y") (add(layer.low), add(layer.high));
      else add(layer[direction]);
    }
    return values;
  }

  function axisScale(panel, direction, range) {
    const axis = panel[direction];
    if (axis.scale === "category") {
      const count = Math.max(1, axis.labels.length);
      return scale("linear", [-0.5, count - 0.5], direction === "y" ? [range[1], range[0]] : range);
    }
    const bars = panel.layers.some((layer) => layer.kind === "bars");
    return scale(axis.scale, domain(coordinates(panel, direction), axis, bars && direction === "x"), range);
  }

  const thin = (labels, clear) => {
    const kept = [];
    for (const label of labels) if (!kept.length || clear(kept[kept.length - 1], label)) kept.push(label);
    return kept;
  };

  const allClear = (labels, clear) => labels.every((label, i) => i === 0 || clear(labels[i - 1], label));

  // The first set of labels that do not touch, or what fits of the last one.
  const finest = (levels, clear) => levels.find((labels) => allClear(labels, clear)) || thin(levels.pop(), clear);

  // Labels of a vertical axis: the finest set whose lines do not touch.
  function verticalLabels(axis, at, height, most) {
    if (axis.scale === "category") {
      const labels = axis.labels.map((text, i) => ({ pixel: at.at(i), text: fit(text, most), full: text }));
      return thin(labels, (a, b) => b.pixel - a.pixel >= SIZE + 3);
    }
    const clear = (a, b) => Math.abs(b.pixel - a.pixel) >= SIZE + 10;
    return finest(
      ticks(axis, at.domain, height, 44).map((level) =>
        level.map((tick) => ({ ...tick, pixel: at.at(tick.at) })),
      ),
      clear,
    );
  }

  // Where a label under a horizontal axis stands: in the middle of its tick, but inside the picture.
  function placed(label, edges) {
    const half = measure(label.text) / 2;
    const middle = Math.max(edges[0] + half, Math.min(edges[1] - half, label.pixel));
    return { ...label, middle, half };
  }
  const apart = (a, b) => b.middle - b.half - (a.middle + a.half) >= GAP;

  function horizontalLabels(axis, at, width, edges) {
    if (axis.scale === "category") return categoryLabels(axis, at, edges);
    const levels = ticks(axis, at.domain, width, 64).map((level) =>
      level.map((tick) => placed({ ...tick, pixel: at.at(tick.at) }, edges)),
    );
    return { labels: finest(levels, apart), upright: false };
  }

  // Names under an axis: in full, cut to the width they have, or upright; never one over another.
  function categoryLabels(axis, at, edges) {
    const band = Math.abs(at.at(1) - at.at(0));
    const full = axis.labels.map((text, i) =>
      placed({ pixel: at.at(i), text: fit(text, 240), full: text }, edges),
    );
    if (allClear(full, apart)) return { labels: full, upright: false };
    if (band >= 44 + GAP) {
      const cut = axis.labels.map((text, i) =>
        placed({ pixel: at.at(i), text: fit(text, band - GAP), full: text }, edges),
      );
      return { labels: thin(cut, apart), upright: false };
    }
    const upright = axis.labels.map((text, i) => ({
      pixel: at.at(i),
      middle: at.at(i),
      text: fit(text, 96),
      full: text,
    }));
    return { labels: thin(upright, (a, b) => b.pixel - a.pixel >= SIZE + 4), upright: true };
  }

  // Everything about a panel that depends on its size. `box` is {left, top, width, height}.
  // The picture begins at `least` or further right.
  function frame(panel, box, least = 0) {
    const top = box.top + (panel.title ? 24 : 0) + (panel.y.title ? 28 : 8);
    const right = box.left + box.width - 12;
    const foot = 24 + (panel.x.title ? 20 : 0);
    const most = panel.y.scale === "category" ? Math.min(200, 0.36 * box.width) : 96;
    let bottom = box.top + box.height - foot;
    let y = axisScale(panel, "y", [bottom, top]);
    let yLabels = verticalLabels(panel.y, y, bottom - top, most);
    const widest = Math.max(16, ...yLabels.map((label) => measure(label.text)));
    const left = Math.max(least, box.left + Math.ceil(Math.min(widest, most)) + 12);
    const x = axisScale(panel, "x", [left, right]);
    const edges = [box.left, box.left + box.width];
    const { labels: xLabels, upright } = horizontalLabels(panel.x, x, right - left, edges);
    if (upright) {
      bottom -= Math.ceil(Math.max(0, ...xLabels.map((label) => measure(label.text)))) - SIZE;
      y = axisScale(panel, "y", [bottom, top]);
      yLabels = verticalLabels(panel.y, y, bottom - top, most);
    }
    return { panel, box, left, right, top, bottom, x, y, xLabels, yLabels, upright };
  }

  const title = (label) =>
    label.full !== undefined && label.full !== label.text
      ? svg("title", {}, tw.dom.brief(label.full, 500))
      : null;

  function drawX(f) {
    const group = svg("g", { class: "axis x" });
    for (const label of f.xLabels) {
      if (f.panel.x.scale !== "category") {
        group.append(svg("line", { class: "grid", x1: label.pixel, x2: label.pixel, y1: f.top, y2: f.bottom }));
      }
      const turn = f.upright
        ? {
            "transform": `rotate(-90 ${label.middle} ${f.bottom + 8})`,
            "x": label.middle,
            "y": f.bottom + 12,
            "text-anchor": "end",
          }
        : { "x": label.middle, "y": f.bottom + 18, "text-anchor": "middle" };
      group.append(svg("text", { class: "tick", ...turn }, title(label), label.text));
    }
    group.append(svg("line", { class: "base", x1: f.left, x2: f.right, y1: f.bottom, y2: f.bottom }));
    if (f.panel.x.title) {
      const text = fit(f.panel.x.title, f.right - f.box.left);
      group.append(
        svg(
          "text",
          { "class": "axis-title", "x": f.right, "y": f.box.top + f.box.height - 6, "text-anchor": "end" },
          text,
        ),
      );
    }
    return group;
  }

  function drawY(f) {
    const group = svg("g", { class: "axis y" });
    for (const label of f.yLabels) {
      if (f.panel.y.scale !== "category") {
        group.append(svg("line", { class: "grid", x1: f.left, x2: f.right, y1: label.pixel, y2: label.pixel }));
      }
      group.append(
        svg(
          "text",
          { "class": "tick", "x": f.left - 8, "y": label.pixel + 4, "text-anchor": "end" },
          title(label),
          label.text,
        ),
      );
    }
    const head = f.box.top + (f.panel.title ? 24 : 0);
    if (f.panel.y.title) {
      group.append(
        svg("text", { class: "axis-title", x: f.box.left, y: head + 12 }, fit(f.panel.y.title, f.box.width)),
      );
    }
    if (f.panel.title) {
      group.append(
        svg(
          "text",
          { class: "panel-title", x: f.box.left, y: f.box.top + 13 },
          fit(f.panel.title, f.box.width, 600),
        ),
      );
    }
    return group;
  }

  const drawFrame = (f) => svg("g", { class: "frame" }, drawX(f), drawY(f));

  tw.axes = { measure, fit, frame, drawFrame, thin, SIZE };
})((globalThis.tradewind = globalThis.tradewind || {}));
