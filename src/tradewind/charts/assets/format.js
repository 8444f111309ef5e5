// Numbers as text: as in amounts.py, and the labels of axes and cells.
(function (tw) {
  "use strict";

  // `digits` digits that matter. A number half-way between two goes to the even one, as in Python.
  function significant(value, digits) {
    const text = Math.abs(value).toExponential(digits - 1);
    const tail = Math.abs(value).toExponential(60).replace(/e.*/, "").replace(".", "").slice(digits);
    const sign = value < 0 ? -1 : 1;
    const [mantissa, power] = text.split("e");
    if (/^50*$/.test(tail) && Number(mantissa.slice(-1)) % 2 === 1) {
      return sign * Number(`${mantissa.slice(0, -1)}${Number(mantissa.slice(-1)) - 1}e${power}`);
    }
    return sign * Number(text);
  }

  // Python's "g" format: an exponent of two digits or more, below 1e-4 and from 10^digits.
  function general(value, digits) {
    if (value === 0) return "0";
    const [mantissa, power] = significant(value, digits).toExponential().split("e");
    if (Number(power) < -4 || Number(power) >= digits) {
      const size = Math.abs(Number(power));
      return `${mantissa}e${Number(power) < 0 ? "-" : "+"}${String(size).padStart(2, "0")}`;
    }
    return plain(significant(value, digits));
  }

  // A number without an exponent.
  function plain(value) {
    if (!/e/.test(String(value))) return String(value);
    return value
      .toFixed(Math.min(100, Math.max(0, 15 - Math.floor(Math.log10(Math.abs(value))))))
      .replace(/\.?0+$/, "");
  }

  // Two digits that matter, or three from 10: `0.031`, `1.2`, `123`.
  function number(value) {
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size >= 1e6) return general(value, 2);
    const digits = size >= 1e-4 && size < 9.95 ? 2 : 3;
    return general(significant(value, digits), 12);
  }

  // A value as sentences write it.
  const value = (amount) => general(amount, 4);
  const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

  const percent = (share) => `${general(100 * share, 3)}%`;

  // A duration as people say it: `12 ms`, `45 s`, `3.2 min`, `5.1 h`, `2.3 days`.
  function spoken(seconds) {
    if (seconds < 0) return `-${spoken(-seconds)}`;
    if (seconds === 0) return "0 s";
    if (seconds < 1e-4) return `${number(1e6 * seconds)} µs`;
    if (seconds < 1) return `${number(1e3 * seconds)} ms`;
    for (const [unit, length] of [
      ["days", 86400],
      ["h", 3600],
      ["min", 60],
    ]) {
      if (seconds >= 1.5 * length) return `${number(seconds / length)} ${unit}`;
    }
    return `${number(seconds)} s`;
  }

  function bytes(amount) {
    for (const [unit, size] of [
      ["GB", 1e9],
      ["MB", 1e6],
    ]) {
      if (Math.abs(amount) >= 0.9995 * size) return `${general(amount / size, 3)} ${unit}`;
    }
    return `${general(amount / 1e3, 3)} kB`;
  }

  // A cost with its unit, as in sentences: `12 ms`, `190 MB`, `3.2 (money)`.
  function cost(amount, unit) {
    if (unit === "s") return spoken(amount);
    if (unit === "bytes") return bytes(amount);
    return unit ? `${number(amount)} (${unit})` : number(amount);
  }

  const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
  const two = (value) => String(value).padStart(2, "0");
  const day = (date) => `${date.getDate()} ${MONTHS[date.getMonth()]}`;
  const time = (date) => `${two(date.getHours())}:${two(date.getMinutes())}`;

  // A moment in the reader's own time zone.
  function clock(seconds) {
    const date = new Date(1000 * seconds);
    if (Number.isNaN(date.getTime())) return "unknown";
    return `${day(date)} ${date.getFullYear()} ${time(date)}:${two(date.getSeconds())}`;
  }

  // Numbers in cells and readouts: enough digits to tell trials apart.
  function exact(value) {
    if (Number.isInteger(value) && Math.abs(value) < 1e9) return String(value);
    return general(value, 5);
  }

  const WRITERS = {
    number: exact,
    count: String,
    percent: (share) => `${general(100 * share, 4)}%`,
    seconds: spoken,
    bytes,
    clock,
    text: String,
    state: String,
    category: String,
  };

  // A cell or coordinate as text; "–" where there is none.
  function show(value, format = "number") {
    if (value === null || value === undefined) return "–";
    if (typeof value === "boolean") return value ? "True" : "False";
    if (typeof value === "object") return JSON.stringify(value);
    if (typeof value !== "number") return String(value);
    return (WRITERS[format] || exact)(value);
  }

  const plural = (count, word) => `${count.toLocaleString("en-US")} ${word}${count === 1 ? "" : "s"}`;

  tw.format = {
    significant,
    general,
    plain,
    number,
    value,
    capital,
    percent,
    spoken,
    bytes,
    cost,
    clock,
    day,
    time,
    two,
    exact,
    show,
    plural,
  };
})((globalThis.tradewind = globalThis.tradewind || {}));
