// The layers of a panel as SVG, and the places in it that a pointer or the keyboard can visit.
// A layer is one or a few paths, whatever the number of its points: 10,000 stay quick.
(function (tw) {
  "use strict";

  const { svg } = tw.dom;
  const r = (value) => Math.round(10 * value) / 10;

  const circle = (x, y, s) => `M${r(x - s)} ${r(y)}a${s} ${s} 0 1 0 ${2 * s} 0a${s} ${s} 0 1 0 ${-2 * s} 0z`;
  const polygon = (x, y, corners) => `M${corners.map(([dx, dy]) => `${r(x + dx)} ${r(y + dy)}`).join("L")}z`;
  const star = (x, y, s) =>
    polygon(
      x,
      y,
      Array.from({ length: 10 }, (_, i) => {
        const size = i % 2 ? 0.45 * s : s;
        return [size * Math.sin((i * Math.PI) / 5), -size * Math.cos((i * Math.PI) / 5)];
      }),
    );
  // A role has its own shape, so that colour is never the only difference.
  const SHAPES = {
    main: circle,
    muted: circle,
    chosen: (x, y, s) => star(x, y, 2 * s),
    frontier: (x, y, s) =>
      polygon(x, y, [
        [0, -1.3 * s],
        [1.3 * s, 0],
        [0, 1.3 * s],
        [-1.3 * s, 0],
      ]),
    second: (x, y, s) =>
      polygon(x, y, [
        [0, -1.2 * s],
        [1.2 * s, 0.9 * s],
        [-1.2 * s, 0.9 * s],
      ]),
    bad: (x, y, s) => `M${r(x - s)} ${r(y - s)}l${2 * s} ${2 * s}M${r(x + s)} ${r(y - s)}l${-2 * s} ${2 * s}`,
  };
  const shape = (role) => SHAPES[role] || circle;
  const DASHES = { second: "7 3", bad: "2 3", muted: "1 0", main: "1 0", chosen: "1 0", frontier: "1 0" };
  const dash = (layer) => (layer.dashed ? "4 4" : DASHES[layer.role] || "1 0");

  const sizeFor = (role, count) =>
    (role === "muted" || count > 15 ? 3 : 4) - (count > 400 ? 1 : 0) - (count > 3000 ? 0.5 : 0);

  // A height in pixels within a panel, or the nearest one.
  const inside = (f, y, room = 0) => Math.max(f.top + room, Math.min(f.bottom - room, y));

  // Pixels of a coordinate, or null where there is nothing to draw.
  function pixel(scale, value) {
    if (value === null || !Number.isFinite(value) || (scale.kind === "log" && value <= 0)) return null;
    return scale.at(value);
  }

  // A triangle at the edge of the picture stands for a point beyond the limits of its axis.
  const triangle = (x, y, s, down) =>
    polygon(x, y, [
      [-1.2 * s, -0.8 * down * s],
      [1.2 * s, -0.8 * down * s],
      [0, 1.2 * down * s],
    ]);

  // Where a value lies: 1 below the limits of an axis, as pixels count, -1 above, 0 within.
  function beyond({ limits }, value) {
    if (!limits) return 0;
    return value < limits[0] ? 1 : value > limits[1] ? -1 : 0;
  }

  function points(layer, f, add) {
    const size = sizeFor(layer.role, layer.x.length);
    const dots = layer.x.length > 1500 && layer.role !== "bad";
    const draw = shape(layer.role);
    let path = "",
      edge = "";
    for (let i = 0; i < layer.x.length; i += 1) {
      const x = pixel(f.x, layer.x[i]),
        side = beyond(f.panel.y, layer.y[i]),
        y = side ? inside(f, pixel(f.y, layer.y[i]), 5) : pixel(f.y, layer.y[i]);
      if (x === null || y === null) continue;
      if (side) edge += triangle(x, y, 4, side);
      else path += dots ? `M${r(x)} ${r(y)}h0` : draw(x, y, size);
      add({ x, y, index: i, size });
    }
    const shown = svg("path", { class: `points${dots ? " dots" : ""} role-${layer.role}`, d: path });
    if (dots) shown.style.strokeWidth = `${2 * size}px`; // an attribute would yield to the style sheet
    return [shown, edge && svg("path", { class: `points role-${layer.role}`, d: edge })];
  }

  function line(layer, f, add) {
    let path = "",
      open = false,
      last = null;
    for (let i = 0; i < layer.x.length; i += 1) {
      const x = pixel(f.x, layer.x[i]),
        y = pixel(f.y, layer.y[i]);
      if (x === null || y === null) {
        open = false;
        continue;
      }
      const place = `${r(x)} ${r(inside(f, y))}`;
      if (!open) path += `M${place}`;
      else path += layer.steps ? `H${place.replace(" ", "V")}` : `L${place}`;
      open = true;
      last = [x, y];
      add({ x, y, index: i, size: 4 });
    }
    const shown = [
      svg("path", { "class": `line role-${layer.role}`, "d": path, "stroke-dasharray": dash(layer) }),
    ];
    if (layer.x.length === 1 && last)
      shown.push(svg("path", { class: `points role-${layer.role}`, d: circle(...last, 3) }));
    return shown;
  }

  function band(layer, f) {
    const upper = [],
      lower = [];
    layer.x.forEach((value, i) => {
      const x = pixel(f.x, value),
        low = pixel(f.y, layer.low[i]),
        high = pixel(f.y, layer.high[i]);
      if (x === null || low === null || high === null) return;
      upper.push(`${r(x)} ${r(high)}`);
      lower.unshift(`${r(x)} ${r(low)}`);
    });
    return upper.length
      ? svg("path", { class: `band role-${layer.role}`, d: `M${[...upper, ...lower].join("L")}z` })
      : null;
  }

  function bars(layer, f, add) {
    const all = f.panel.layers.filter((other) => other.kind === "bars");
    const room = 0.7 * Math.abs(f.y.at(1) - f.y.at(0));
    const height = Math.min(20, room / all.length);
    const shift = height * (all.indexOf(layer) - (all.length - 1) / 2);
    const shown = svg("g", { class: `bars role-${layer.role}` });
    const zero = Math.max(f.left, Math.min(f.right, f.x.kind === "log" ? f.left : f.x.at(0)));
    layer.values.forEach((value, i) => {
      const x = pixel(f.x, value),
        y = f.y.at(i) + shift;
      if (x === null) return;
      shown.append(
        svg("rect", {
          x: r(Math.min(zero, x)),
          y: r(y - height / 2),
          width: r(Math.abs(x - zero)),
          height: r(height - 1),
          rx: 2,
        }),
      );
      if (layer.low && layer.low.length) {
        const low = pixel(f.x, layer.low[i]),
          high = pixel(f.x, layer.high[i]);
        if (low !== null && high !== null) {
          shown.append(
            svg("path", {
              class: "whisker",
              d: `M${r(low)} ${r(y)}H${r(high)}M${r(low)} ${r(y - 4)}v8M${r(high)} ${r(y - 4)}v8`,
            }),
          );
        }
      }
      add({
        x,
        y,
        index: i,
        size: 5,
        rect: [Math.min(zero, x), y - height / 2, Math.max(zero, x), y + height / 2],
      });
    });
    return shown;
  }

  function spans(layer, f, add) {
    const height = Math.max(3, Math.min(20, 0.72 * Math.abs(f.y.at(1) - f.y.at(0))));
    const bad = layer.role === "bad"; // crossed out, not only red
    let path = "",
      cross = "";
    const names = svg("g", { class: "span-names" });
    layer.lane.forEach((lane, i) => {
      const from = pixel(f.x, layer.start[i]),
        to = pixel(f.x, layer.end[i]),
        y = f.y.at(lane);
      if (from === null || to === null) return;
      const width = Math.max(1.5, to - from - 1);
      path += `M${r(from)} ${r(y - height / 2)}h${r(width)}v${r(height)}h${r(-width)}z`;
      if (bad && width >= 6)
        cross += `M${r(from)} ${r(y + height / 2)}l${r(width)} ${r(-height)}m0 ${r(height)}l${r(-width)} ${r(-height)}`;
      const name = bad ? "" : String((layer.trials || [])[i] ?? "");
      if (height >= 14 && name && tw.axes.measure(name) + 6 <= width) {
        names.append(
          svg(
            "text",
            { "class": "span-name", "x": from + width / 2, "y": y + 4, "text-anchor": "middle" },
            name,
          ),
        );
      }
      add({
        x: from + width / 2,
        y,
        index: i,
        size: 5,
        rect: [from, y - height / 2, from + width, y + height / 2],
      });
    });
    const crossed = cross && svg("path", { class: "crossed", d: cross });
    return [svg("path", { class: `spans role-${layer.role}`, d: path }), crossed, names];
  }

  // Behind the spans: the whole lane, so that idle time shows as an empty track.
  function lanes(f) {
    const height = Math.max(3, Math.min(20, 0.72 * Math.abs(f.y.at(1) - f.y.at(0))));
    const tracks = f.panel.y.labels.map(
      (_, i) => `M${f.left} ${r(f.y.at(i) - height / 2)}H${f.right}v${r(height)}H${f.left}z`,
    );
    return svg("path", { class: "lanes", d: tracks.join("") });
  }

  const DRAW = { points, line, band, bars, spans };

  // The marks of a panel, and its items: {x, y, index, size, layer, trial, rect}.
  function drawMarks(f, moving) {
    const group = svg("g", { class: "marks" });
    const items = [];
    const { layers } = f.panel;
    if (layers.some((layer) => layer.kind === "spans")) group.append(lanes(f));
    const solid = layers.some((layer) => layer.kind !== "line" && layer.kind !== "band");
    for (const layer of layers) {
      const draw = DRAW[layer.kind];
      if (!draw || (moving && isMoving(layer))) continue;
      const visited = layer.kind === "line" ? !solid : true; // lines among points are not visited
      const add = (item) => {
        if (visited) items.push({ ...item, layer, frame: f, trial: trialOf(layer, item.index) });
      };
      const shown = [draw(layer, f, add)].flat().filter(Boolean);
      group.append(...shown);
    }
    return { group, items };
  }

  // The page marks the chosen model itself, because it moves with the sliders.
  const isMoving = (layer) =>
    layer.kind === "points" && layer.role === "chosen" && layer.trials && layer.trials.length > 0;

  const trialOf = (layer, index) => (layer.trials && layer.trials.length ? layer.trials[index] : null);

  // A small picture of a layer for the legend.
  function sample(layer) {
    const picture = svg("svg", {
      "class": "sample",
      "viewBox": "0 0 20 12",
      "width": 20,
      "height": 12,
      "aria-hidden": "true",
    });
    if (layer.kind === "line")
      picture.append(
        svg("path", { "class": `line role-${layer.role}`, "d": "M0 6H20", "stroke-dasharray": dash(layer) }),
      );
    else if (layer.kind === "points")
      picture.append(
        svg("path", {
          class: `points role-${layer.role}`,
          d: shape(layer.role)(10, 6, layer.role === "chosen" ? 3 : 4),
        }),
      );
    else if (layer.kind === "frame")
      picture.append(svg("rect", { class: "frame-of chosen", x: 2, y: 1.5, width: 16, height: 9, rx: 2 }));
    else
      picture.append(
        svg("path", {
          class: `${layer.kind === "band" ? "band" : "spans"} role-${layer.role}`,
          d: "M0 1H20V11H0z",
        }),
      );
    return picture;
  }

  tw.marks = { drawMarks, isMoving, sample, star, pixel };
})((globalThis.tradewind = globalThis.tradewind || {}));
