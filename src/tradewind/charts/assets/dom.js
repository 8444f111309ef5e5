// Elements and texts. Everything a user wrote reaches the page through `visible` and text nodes.
(function (tw) {
  "use strict";

  const SVG = "http://www.w3.org/2000/svg";
  // Control characters, and marks that change the direction of the text after them. Shown as
  // escapes, so that a name cannot pass for another one.
  const HIDDEN =
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

  function visible(value) {
    const escape = (mark) => "\\u" + mark.charCodeAt(0).toString(16).padStart(4, "0");
    return String(value).replace(/\r\n?/g, "\n").replace(HIDDEN, escape);
  }

  // The text, or its beginning and an ellipsis. Never cuts a character in two.
  function brief(value, length = 120) {
    const text = visible(value);
    if (text.length <= length) return text;
    return Array.from(text.slice(0, length)).slice(0, -1).join("") + "…";
  }

  function set(node, attributes) {
    for (const [name, value] of Object.entries(attributes)) {
      if (value === null || value === undefined || value === false) node.removeAttribute(name);
      else if (name === "on") {
        for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
      } else node.setAttribute(name, value === true ? "" : String(value));
    }
    return node;
  }

  function fill(node, children) {
    for (const child of children.flat()) {
      if (child === null || child === undefined || child === false) continue;
      node.append(child instanceof Node ? child : visible(child));
    }
    return node;
  }

  const el = (tag, attributes = {}, ...children) =>
    fill(set(document.createElement(tag), attributes), children);

  const svg = (tag, attributes = {}, ...children) =>
    fill(set(document.createElementNS(SVG, tag), attributes), children);

  // Replace what a node holds, unless it holds just this text already.
  function put(node, ...children) {
    if (children.length === 1 && typeof children[0] === "string" && !node.firstElementChild) {
      if (node.textContent === visible(children[0])) return node;
    }
    node.replaceChildren();
    return fill(node, children);
  }

  const button = (label, listener, attributes = {}) =>
    el("button", { type: "button", class: "button", ...attributes, on: { click: listener } }, label);

  let counter = 0;
  const unique = (word) => `${word}-${(counter += 1)}`;

  // Say something to screen readers, and to nobody else.
  let voice = null;
  function announce(text) {
    if (!voice || !voice.isConnected) {
      voice = el("div", { "class": "visually-hidden", "aria-live": "polite", "role": "status" });
      document.body.append(voice);
    }
    put(voice, text);
  }

  // Radio buttons that look like one control. `options` are [value, label].
  function segmented(legend, options, current, changed) {
    const name = unique("choice");
    const group = el("fieldset", { class: "segmented" }, el("legend", { class: "visually-hidden" }, legend));
    for (const [value, label] of options) {
      const input = el("input", { type: "radio", name, value, checked: value === current });
      input.addEventListener("change", () => changed(value));
      group.append(el("label", {}, input, el("span", {}, label)));
    }
    group.choose = (value) => {
      for (const input of group.querySelectorAll("input")) input.checked = input.value === value;
    };
    return group;
  }

  async function copy(text, source) {
    const said = source.textContent;
    try {
      await navigator.clipboard.writeText(text);
      put(source, "Copied");
      announce("Copied");
    } catch {
      put(source, "Not allowed: select the text");
    }
    setTimeout(() => put(source, said), 1600);
  }

  const copyButton = (label, text, attributes = {}) =>
    button(label, (event) => copy(text(), event.currentTarget), { class: "button small", ...attributes });

  function download(name, type, text) {
    const address = URL.createObjectURL(new Blob([text], { type }));
    el("a", { href: address, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  }

  // The file name of a study: letters, digits and a few signs of its name.
  const fileName = (name, ending) =>
    (String(name)
      .replace(/[^\p{L}\p{N}_-]+/gu, "-")
      .replace(/^-+|-+$/g, "")
      .slice(0, 60) || "study") + ending;

  tw.dom = {
    visible,
    brief,
    set,
    el,
    svg,
    put,
    button,
    unique,
    announce,
    segmented,
    copyButton,
    download,
    fileName,
  };
})((globalThis.tradewind = globalThis.tradewind || {}));
