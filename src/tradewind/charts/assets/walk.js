// Visiting the items of a chart, with a pointer or with the keyboard.
(function (tw) {
  "use strict";

  const { el, put, brief } = tw.dom;
  const REACH = 28; // pixels from which an item is caught

  // What is said about an item: its own text, or its coordinates.
  function describe(item) {
    const { layer, frame, index, trial } = item;
    const own = layer.texts && layer.texts[index];
    if (own) return brief(own, 600);
    const lines = trial === null ? [] : [`Trial ${trial}`];
    if (layer.name && trial === null) lines.push(brief(layer.name, 80));
    const say = (axis, value) => {
      const shown =
        axis.scale === "category" ? axis.labels[Math.round(value)] : tw.format.show(value, axis.format);
      lines.push(axis.title ? `${brief(axis.title, 60)}: ${brief(shown, 80)}` : brief(shown, 80));
    };
    const { x, y } = frame.panel;
    if (layer.kind === "bars") {
      lines[0] = brief(y.labels[index], 80);
      say({ ...x, title: layer.name || x.title }, layer.values[index]);
    } else if (layer.kind !== "strands" && layer.kind !== "spans") {
      say(x, layer.x[index]);
      say(y, layer.y[index]);
    }
    return lines.join("\n");
  }

  function distanceTo(item, x, y) {
    if (!item.rect) return Math.hypot(item.x - x, item.y - y);
    const [left, top, right, bottom] = item.rect;
    return Math.hypot(Math.max(left - x, 0, x - right), Math.max(top - y, 0, y - bottom));
  }

  // The item under a pointer; of items at one place the one drawn last, which is on top.
  function nearest(scene, x, y) {
    let found = null,
      least = REACH;
    for (const item of scene.items) {
      const far = scene.distance && item.row ? scene.distance(item, x, y) : distanceTo(item, x, y);
      if (far <= least) [found, least] = [item, far];
    }
    return found;
  }

  // Panels one after the other, each from left to right.
  const inOrder = (items) =>
    [...items].sort(
      (a, b) =>
        (a.order ?? 0) - (b.order ?? 0) ||
        a.frame.box.top - b.frame.box.top ||
        a.frame.box.left - b.frame.box.left ||
        a.x - b.x ||
        b.y - a.y,
    );

  const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, PageDown: 10, PageUp: -10 };

  // `view` is {plot, scene(), point(item), select(trial)}: the focusable element, what is drawn in
  // it, how an item is pointed at, and what happens when a reader picks one.
  function walk(view) {
    const tip = el("div", { "class": "tip", "aria-hidden": "true" });
    const readout = el("p", { "class": "visually-hidden", "aria-live": "polite" });
    view.plot.append(tip, readout);
    let current = null,
      order = null,
      known = null,
      frame = 0;

    function show(item) {
      current = item;
      view.point(item);
      tip.classList.toggle("shown", item !== null);
      if (item === null) return;
      const [title, ...lines] = describe(item).split("\n");
      put(tip, el("strong", {}, title), lines.length ? `\n${lines.join("\n")}` : null);
      const width = view.plot.clientWidth,
        height = view.plot.clientHeight;
      const left = item.x - view.plot.scrollLeft;
      const x = left + 16 + tip.offsetWidth > width ? Math.max(0, left - 16 - tip.offsetWidth) : left + 16;
      const y = Math.max(0, Math.min(item.y - tip.offsetHeight / 2, height - tip.offsetHeight));
      tip.style.transform = `translate(${Math.round(x + view.plot.scrollLeft)}px, ${Math.round(y)}px)`;
    }

    function visit(position) {
      const at = Math.max(0, Math.min(order.length - 1, position));
      show(order[at]);
      put(readout, `${describe(order[at]).replace(/\n/g, ", ")}. ${at + 1} of ${order.length}`);
    }

    function sorted() {
      const { items } = view.scene();
      if (known !== items) [known, order] = [items, inOrder(items)];
      return order;
    }

    function placeOfCurrent() {
      if (!current) return -1;
      const at = order.indexOf(current);
      return at >= 0 ? at : order.findIndex((item) => item.trial !== null && item.trial === current.trial);
    }

    view.plot.addEventListener("keydown", (event) => {
      if (event.target !== view.plot || event.ctrlKey || event.metaKey || event.altKey || !sorted().length)
        return;
      const at = placeOfCurrent();
      if (event.key in STEPS)
        visit(at < 0 ? (STEPS[event.key] > 0 ? 0 : order.length - 1) : at + STEPS[event.key]);
      else if (event.key === "Home") visit(0);
      else if (event.key === "End") visit(order.length - 1);
      else if (event.key === "Enter" || event.key === " ") pick(current);
      else if (event.key === "Escape") show(null);
      else return;
      event.preventDefault();
    });

    function pick(item) {
      if (item && item.trial !== null) view.select(item.trial);
    }

    const at = (event) => {
      const box = view.plot.getBoundingClientRect();
      return nearest(view.scene(), event.clientX - box.left + view.plot.scrollLeft, event.clientY - box.top);
    };
    view.plot.addEventListener("pointermove", (event) => {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(() => {
        const item = at(event);
        if (item !== current) show(item);
      });
    });
    view.plot.addEventListener("pointerleave", () => {
      cancelAnimationFrame(frame);
      show(null);
    });
    view.plot.addEventListener("click", (event) => {
      const item = at(event);
      show(item);
      pick(item);
    });
    view.plot.addEventListener("blur", () => show(null));

    // After a redraw the same trial is pointed at again.
    return {
      refresh() {
        if (!current) return;
        sorted();
        const place = placeOfCurrent();
        if (place >= 0) show(order[place]);
        else show(null);
      },
    };
  }

  tw.walk = { walk };
})((globalThis.tradewind = globalThis.tradewind || {}));
