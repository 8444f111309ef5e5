// Light, dark, or as the reader's system has it. The choice is remembered where that is allowed.
(function (tw) {
  "use strict";

  const { el, svg, announce } = tw.dom;
  const KEY = "tradewind-theme";
  const THEMES = ["auto", "light", "dark"];
  const ICONS = {
    auto: "M8 2a6 6 0 1 0 0 12 6 6 0 0 0 0-12z",
    light:
      "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM8 .8v2M8 13.2v2M.8 8h2M13.2 8h2M2.9 2.9l1.4 1.4M11.7 11.7l1.4 1.4M2.9 13.1l1.4-1.4M11.7 4.3l1.4-1.4",
    dark: "M13.5 9.6A6 6 0 0 1 6.4 2.5a6 6 0 1 0 7.1 7.1z",
  };

  // A browser may forbid storage to a page that is a file.
  function remembered() {
    try {
      const theme = localStorage.getItem(KEY);
      return THEMES.includes(theme) ? theme : "auto";
    } catch {
      return "auto";
    }
  }

  function apply(theme) {
    if (theme === "auto") document.documentElement.removeAttribute("data-theme");
    else document.documentElement.setAttribute("data-theme", theme);
  }

  function choose(theme) {
    apply(theme);
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // it holds until the page is closed
    }
  }

  // One button that goes round: auto, light, dark.
  function toggle() {
    let theme = remembered();
    const icon = svg("path", { class: "icon" });
    const half = svg("path", { class: "icon-half", d: "M8 2a6 6 0 0 1 0 12z" });
    const node = el(
      "button",
      { type: "button", class: "theme-toggle" },
      svg("svg", { "viewBox": "0 0 16 16", "width": 16, "height": 16, "aria-hidden": "true" }, icon, half),
    );
    const show = () => {
      icon.setAttribute("d", ICONS[theme]);
      half.classList.toggle("shown", theme === "auto");
      node.setAttribute("aria-label", `Theme: ${theme}`);
      node.setAttribute("title", `Theme: ${theme}`);
    };
    node.addEventListener("click", () => {
      theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
      choose(theme);
      show();
      announce(`Theme: ${theme}`);
    });
    show();
    return node;
  }

  apply(remembered());
  tw.theme = { toggle };
})((globalThis.tradewind = globalThis.tradewind || {}));
