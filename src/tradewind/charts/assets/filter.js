// What is typed above the table: words to find, and comparisons such as value>0.9 or cost<2min.
(function (tw) {
  "use strict";

  // A quoted name or a plain one, a sign and a value; or a phrase, or a word. Names of columns that
  // have spaces need no quotes.
  function tokens(columns) {
    const spaced = columns
      .flatMap((column) => [column.key, column.title].map(String))
      .filter((name) => /\S\s+\S/u.test(name))
      .sort((a, b) => b.length - a.length)
      .map((name) => `${name.replace(/[\\^$.*+?()[\]{}|/]/gu, "\\$&")}|`);
    const name = `(?:"([^"]+)"|(${spaced.join("")}[^\\s"<>=!~]+))`;
    const value = `(?:"([^"]*)"|([^\\s"]+))`;
    return new RegExp(`${name}\\s*(>=|<=|!=|>|<|=|~)\\s*${value}|"([^"]*)"|(\\S+)`, "giu");
  }

  const UNITS = {
    "µs": 1e-6,
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1,
    "min": 60,
    "h": 3600,
    "d": 86400,
    "day": 86400,
    "days": 86400,
    "kb": 1e3,
    "mb": 1e6,
    "gb": 1e9,
    "tb": 1e12,
    "%": 0.01,
  };
  const COMPARE = {
    ">": (a, b) => a > b,
    ">=": (a, b) => a >= b,
    "<": (a, b) => a < b,
    "<=": (a, b) => a <= b,
    "=": (a, b) => a === b,
    "!=": (a, b) => a !== b,
  };

  // `0.9`, `2min`, `40%`, `3 GB` as numbers; NaN for anything else.
  function amount(text) {
    const match = /^([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)\s*([a-zµ%]*)$/iu.exec(text);
    if (!match) return NaN;
    const unit = match[2].toLowerCase();
    return unit === "" ? Number(match[1]) : Number(match[1]) * (UNITS[unit] ?? NaN);
  }

  // The column that a word means: its key or its title, or the only one that begins so.
  function columnOf(word, columns) {
    const wanted = word.toLowerCase();
    const names = (column) => [column.key, column.title].map((name) => String(name).toLowerCase());
    const exact = columns.findIndex((column) => names(column).includes(wanted));
    if (exact >= 0) return exact;
    const begins = columns
      .map((_, i) => i)
      .filter((i) => names(columns[i]).some((name) => name.startsWith(wanted)));
    return begins.length === 1 ? begins[0] : -1;
  }

  function comparison(i, sign, text, format) {
    const wanted = text.toLowerCase(),
      size = amount(text);
    if (sign === "~") return (row) => written(row[i], format).includes(wanted);
    const compare = COMPARE[sign];
    return (row) => {
      const cell = row[i];
      if (typeof cell === "number" && !Number.isNaN(size)) return compare(cell, size);
      if (sign === "=" || sign === "!=")
        return (
          compare(written(cell, format), wanted) || (sign === "=" && String(cell).toLowerCase() === wanted)
        );
      return false;
    };
  }

  const written = (cell, format) => tw.format.show(cell, format).toLowerCase();

  const texts = new WeakMap();
  // Everything that a row shows, in small letters. Rows are never changed, only replaced.
  function textOf(row, columns) {
    if (!texts.has(row))
      texts.set(row, row.map((cell, i) => written(cell, (columns[i] || {}).format)).join("\n"));
    return texts.get(row);
  }

  // {matches(row), problem}: all words and comparisons must hold. A problem is said in words.
  function parse(text, columns) {
    const tests = [];
    let problem = "";
    for (const [, quoted, word, sign, quotedValue, value, phrase, plain] of text.matchAll(tokens(columns))) {
      if (sign) {
        const name = quoted ?? word,
          i = columnOf(name, columns);
        if (i < 0) problem = `No column is called “${tw.dom.brief(name, 40)}”.`;
        else tests.push(comparison(i, sign, quotedValue ?? value, columns[i].format));
      } else {
        const wanted = (phrase ?? plain).toLowerCase();
        tests.push((row) => textOf(row, columns).includes(wanted));
      }
    }
    return { matches: (row) => tests.every((test) => test(row)), problem };
  }

  tw.filter = { parse };
})((globalThis.tradewind = globalThis.tradewind || {}));
