// A chart on the page: its title, legend, picture, and the same numbers as a table.
(function (tw) {
  "use strict";

  const { el, svg, put, brief, visible, unique } = tw.dom;
  const GUTTER = 32; // pixels between two panels
  const HINT = "Arrow keys walk through it, Enter selects a trial.";

  const isStrands = (panel) => panel.layers.some((layer) => layer.kind === "strands");

  // The height of a panel whose width is known.
  function heightOf(panel, width, wanted) {
    if (panel.y.scale === "category") {
      const count = panel.y.labels.length;
      const row = count <= 12 ? 32 : count <= 30 ? 22 : count <= 60 ? 17 : 8;
      return Math.min(720, Math.max(120, 84 + row * count));
    }
    return wanted || Math.round(Math.max(240, Math.min(360, 0.6 * width)));
  }

  // Where the panels go: as many beside each other as are wide enough to read.
  function boxes(chart, width, wanted) {
    const strands = chart.panels.find(isStrands);
    if (strands) {
      const layer = strands.layers.find((one) => one.kind === "strands");
      return [{ left: 0, top: 0, width: Math.max(width, tw.strands.wanted(layer)), height: 400 }];
    }
    const count = chart.panels.length;
    const columns = Math.max(1, Math.min(count, Math.floor((width + GUTTER) / (300 + GUTTER))));
    const each = (width - GUTTER * (columns - 1)) / columns;
    const heights = chart.panels.map((panel) => heightOf(panel, each, wanted));
    const found = [];
    let top = 0;
    for (let first = 0; first < count; first += columns) {
      const row = heights.slice(first, first + columns);
      row.forEach((height, i) => found.push({ left: i * (each + GUTTER), top, width: each, height }));
      top += Math.max(...row) + 24;
    }
    return found;
  }

  // Everything that is drawn for one width: {picture, items, byTrial, frames, overlay, guides}.
  function scene(chart, width, options) {
    const places = boxes(chart, width, options.height);
    const right = Math.max(...places.map((box) => box.left + box.width));
    const bottom = Math.max(...places.map((box) => box.top + box.height));
    const picture = svg("svg", {
      "class": "picture",
      "width": right,
      "height": bottom,
      "viewBox": `0 0 ${right} ${bottom}`,
      "role": "img",
      "aria-label": `${brief(chart.title, 200)}. ${brief(chart.summary, 1000)}`,
    });
    const drawn = {
      picture,
      items: [],
      byTrial: new Map(),
      frames: [],
      guides: svg("g", { class: "guides" }),
      overlay: svg("g", { class: "overlay" }),
    };
    const above = [];
    const axes = chart.panels.map((panel, i) => (isStrands(panel) ? null : tw.axes.frame(panel, places[i])));
    const left = (i) => Math.max(...axes.map((one, j) => (places[j].left === places[i].left && one ? one.left : 0)));
    chart.panels.forEach((panel, i) => {
      if (isStrands(panel)) {
        const { group, axes, items, distance } = tw.strands.drawStrands(panel, places[i]);
        picture.append(group);
        above.push(axes);
        drawn.items.push(...items);
        drawn.distance = distance;
        return;
      }
      const frame = tw.axes.frame(panel, places[i], left(i)); // panels below each other start together
      const clip = unique("clip");
      const { group, items } = tw.marks.drawMarks(frame, Boolean(options.store));
      group.setAttribute("clip-path", `url(#${clip})`);
      const area = {
        x: frame.left - 8,
        y: frame.top - 8,
        width: frame.right - frame.left + 16,
        height: frame.bottom - frame.top + 16,
      };
      picture.append(svg("clipPath", { id: clip }, svg("rect", area)), tw.axes.drawFrame(frame), group);
      drawn.frames.push(frame);
      for (const item of items) drawn.items.push(item);
    });
    picture.append(drawn.guides, drawn.overlay, ...above);
    for (const item of drawn.items) {
      if (item.trial === null) continue;
      if (!drawn.byTrial.has(item.trial)) drawn.byTrial.set(item.trial, []);
      drawn.byTrial.get(item.trial).push(item);
    }
    return drawn;
  }

  // An item again, on top of all others: how = chosen, selected or pointed.
  function mark(item, how) {
    if (item.path) return svg("path", { class: `strand ${how}`, d: item.path });
    if (item.rect) {
      const [left, top, right, bottom] = item.rect;
      return svg("rect", {
        class: `frame-of ${how}`,
        x: left - 1,
        y: top - 1,
        width: right - left + 2,
        height: bottom - top + 2,
        rx: 3,
      });
    }
    if (how === "chosen")
      return svg("path", { class: "points role-chosen moving", d: tw.marks.star(item.x, item.y, 11) });
    return svg("circle", {
      class: `ring ${how}`,
      cx: item.x,
      cy: item.y,
      r: item.size + (how === "selected" ? 5 : 4),
    });
  }

  function legend(chart, options) {
    const seen = new Map();
    const layers = chart.panels.flatMap((panel) => panel.layers);
    // a name that means something else in each panel says nothing here; the panels have titles
    const clear = (layer) => layers.every((other) => other.name !== layer.name || other.role === layer.role);
    for (const layer of layers.filter(clear)) {
      const key = `${layer.kind} ${layer.role} ${layer.name}`;
      if (
        layer.name &&
        layer.kind !== "strands" &&
        !seen.has(key) &&
        !(options.store && tw.marks.isMoving(layer))
      )
        seen.set(key, layer);
    }
    const strands = chart.panels.some(isStrands);
    const moving =
      options.store &&
      options.store.chosen !== null &&
      chart.panels.some((panel) => panel.layers.some((layer) => layer.trials && layer.trials.length));
    const entries = [...seen.values()].map((layer) => [tw.marks.sample(layer), layer.name]);
    if (strands)
      entries.push(
        [tw.marks.sample({ kind: "line", role: "strong" }), "a good trial"],
        [tw.marks.sample({ kind: "line", role: "muted" }), "a poor trial"],
      );
    if (entries.length + Boolean(moving) < 2 && !moving) return null;
    if (moving) {
      const spans = layers.some((layer) => layer.kind === "spans");
      const kind = strands ? "line" : spans ? "frame" : "points";
      entries.push([tw.marks.sample({ kind, role: "chosen" }), "chosen model"]);
    }
    return el(
      "ul",
      { "class": "legend", "aria-label": "Legend" },
      entries.map(([picture, name]) => el("li", {}, picture, brief(name, 60))),
      options.guides ? options.guides.entry : null,
    );
  }

  // Draw `chart` into `host`. Options: store (shared choice and selection), height in pixels,
  // title (instead of the chart's own; "" for none), plain (no legend, summary and note), and
  // guides: {entry, draw(frame, scene)}, an item of the legend and SVG nodes behind the marked trial.
  function draw(chart, host, options = {}) {
    const figure = el("figure", { "class": "chart", "data-chart": chart.name });
    host.append(figure);
    let now = chart,
      drawn = null,
      walker = null,
      plot = null,
      width = 0,
      pointed = null,
      shown = "", // all its words
      wide = false;

    const captionOf = (chart) =>
      JSON.stringify([
        ...[chart.title, chart.summary, chart.note, chart.empty, legendOf(chart)],
        Boolean(options.store) && options.store.chosen !== null,
      ]);

    function highlight() {
      if (!drawn) return;
      const { store } = options;
      // a trial may lie in several layers at the same place, where one mark is enough
      const put = (trial, how) => {
        const places = new Map((drawn.byTrial.get(trial) || []).map((item) => [`${item.x} ${item.y}`, item]));
        return [...places.values()].slice(0, 40).map((item) => mark(item, how));
      };
      drawn.overlay.replaceChildren(
        ...(store && store.chosen !== null ? put(store.chosen, "chosen") : []),
        ...(store && store.selected !== null ? put(store.selected, "selected") : []),
        ...(pointed ? [mark(pointed, "pointed")] : []),
      );
      drawn.picture.classList.toggle(
        "focused",
        Boolean(pointed && pointed.path) ||
          Boolean(store && store.selected !== null && drawn.byTrial.has(store.selected)),
      );
      drawn.guides.replaceChildren(
        ...(options.guides ? drawn.frames.flatMap((frame) => options.guides.draw(frame, drawn)) : []),
      );
    }

    function redraw(force = false) {
      const room = Math.floor(plot.clientWidth);
      if (room < 40 || (room === width && !force)) return;
      width = room;
      try {
        drawn = scene(now, width, options);
      } catch (error) {
        broken(error);
        return;
      }
      wide = drawn.picture.width.baseVal.value > width + 1;
      plot.classList.toggle("scrolls", wide);
      const old = plot.querySelector("svg.picture");
      if (old) old.replaceWith(drawn.picture);
      else plot.prepend(drawn.picture);
      highlight();
      walker.refresh();
    }

    function broken(error) {
      resized.disconnect();
      drawn = plot = null;
      figure.replaceChildren(
        el("p", { class: "broken" }, `This chart cannot be drawn: ${brief(error.message, 300)}`),
      );
    }

    const resized = new ResizeObserver(() => requestAnimationFrame(() => plot && plot.isConnected && redraw()));

    function build() {
      resized.disconnect();
      const title = options.title ?? now.title;
      const heading = title && el("h3", { class: "chart-title" }, brief(title, 200));
      figure.replaceChildren();
      if (!now.panels.length) {
        drawn = plot = null;
        figure.append(el("figcaption", {}, heading), empty(now.empty || "There is nothing to show yet."));
        return;
      }
      plot = el("div", {
        "class": "plot",
        "tabindex": 0,
        "role": "application",
        "aria-roledescription": "interactive chart",
        "aria-label": `${visible(brief(now.title, 200))}. ${HINT}`,
      });
      shown = captionOf(now);
      figure.append(el("figcaption", {}, heading, options.plain ? null : legend(now, options)));
      if (now.summary && !options.plain && !options.guides)
        figure.append(el("p", { class: "summary" }, brief(now.summary, 600)));
      figure.append(plot);
      if (now.note && !options.plain) figure.append(el("p", { class: "note" }, now.note));
      figure.append(tw.numbers.disclosure(() => now));
      walker = tw.walk.walk({
        plot,
        scene: () => drawn || { items: [] },
        point: (item) => {
          pointed = item;
          highlight();
        },
        select: (trial) =>
          options.store && options.store.select(options.store.selected === trial ? null : trial),
      });
      width = 0;
      redraw(true);
      if (plot) resized.observe(plot);
    }

    const stop = options.store ? options.store.listen(highlight) : () => {};
    build();
    return {
      node: figure,
      highlight,
      update(next) {
        if (next === now) return; // nobody has changed it
        const fresh = Boolean(next.panels.length) !== Boolean(now.panels.length);
        const caption = captionOf(next) !== shown;
        now = next;
        if (!plot || fresh || caption) build();
        else redraw(true);
      },
      destroy() {
        stop();
        resized.disconnect();
        figure.remove();
      },
    };
  }

  const legendOf = (chart) =>
    chart.panels.map((panel) => panel.layers.map((layer) => [layer.kind, layer.role, layer.name]));

  const empty = (text) =>
    el(
      "div",
      { class: "empty" },
      svg(
        "svg",
        { "viewBox": "0 0 48 32", "width": 48, "height": 32, "aria-hidden": "true" },
        svg("path", { class: "empty-line", d: "M2 30H46M4 24 14 16 22 20 32 8 44 4" }),
        svg("circle", { class: "empty-dot", cx: 32, cy: 8, r: 3 }),
      ),
      el("p", {}, brief(text, 600)),
    );

  tw.draw = draw;
  tw.charts = { scene, empty };
})((globalThis.tradewind = globalThis.tradewind || {}));
