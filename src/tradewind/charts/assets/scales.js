// From values to pixels, and which values an axis is labelled with.
(function (tw) {
  "use strict";

  const { general, spoken, bytes, plain, day, time, two } = tw.format;
  const MINUTE = 60,
    HOUR = 3600,
    DAY = 86400;
  const LENGTHS = [
    1,
    2,
    5,
    10,
    15,
    30,
    MINUTE,
    2 * MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    2 * DAY,
    5 * DAY,
    10 * DAY,
    30 * DAY,
    100 * DAY,
    365 * DAY,
  ];

  // A scale: `at(value)` is a pixel, `value(pixel)` its inverse. `domain` may be turned around.
  function scale(kind, domain, range) {
    const [a, b] = kind === "log" ? domain.map(Math.log) : domain;
    const [from, to] = range;
    const slope = b === a ? 0 : (to - from) / (b - a);
    const middle = (from + to) / 2;
    const through = kind === "log" ? Math.log : Number;
    return {
      kind,
      domain,
      range,
      at: (value) => (slope === 0 ? middle : from + slope * (through(value) - a)),
      value: (pixel) => {
        const inside = slope === 0 ? a : a + (pixel - from) / slope;
        return kind === "log" ? Math.exp(inside) : inside;
      },
    };
  }

  // The limits of the axis, or the smallest and the largest value, with some room; at least something
  // if all are equal.
  function domain(values, axis, zero = false) {
    const log = axis.scale === "log";
    let low = Infinity,
      high = -Infinity;
    for (const value of axis.limits || values) {
      if (value === null || !Number.isFinite(value) || (log && value <= 0)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
    if (low > high) return log ? [0.1, 1] : [0, 1];
    if (log) {
      const range = Math.log(high) - Math.log(low); // high / low may be too large for a number
      const room = Math.max(0.04 * range, low === high ? Math.log(2) : 0.02);
      return [Math.max(low * Math.exp(-room), 1e-307), Math.min(high * Math.exp(room), 1e307)];
    }
    const amount = axis.format === "seconds" || axis.format === "bytes";
    const fromZero = zero && low >= 0;
    const toZero = zero && high <= 0;
    if (fromZero) low = 0;
    if (toZero) high = 0;
    const alone = axis.format === "count" ? 0.5 : 0.1 * Math.abs(low) || 1;
    const room = low === high ? alone : 0.04 * (high - low);
    const least = amount && low >= 0 ? 0 : -Infinity;
    return [fromZero ? 0 : Math.max(least, low - room), toZero ? 0 : high + room];
  }

  function niceStep(raw) {
    const power = 10 ** Math.floor(Math.log10(raw));
    const factor = [1, 2, 5, 10].find((f) => f * power >= raw * (1 - 1e-9)) || 10;
    return factor * power;
  }

  function multiples(low, high, step, offset = 0) {
    const found = [];
    const first = Math.ceil((low - offset) / step - 1e-9);
    for (let i = first; i * step + offset <= high + 1e-9 * step && found.length < 200; i += 1) {
      found.push(i === 0 ? offset : Number((i * step + offset).toPrecision(12)));
    }
    return found;
  }

  function shortNumber(value, step) {
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size >= 1e6 || size < 1e-4)
      return general(value, 3)
        .replace(/e([+-])0?(\d)/, "e$1$2")
        .replace("e+", "e");
    const decimals = step ? Math.max(0, Math.ceil(-Math.log10(step) - 1e-9)) : null;
    return decimals === null ? plain(value) : value.toFixed(Math.min(decimals, 12));
  }

  const UNITS = [
    ["days", DAY],
    ["h", HOUR],
    ["min", MINUTE],
    ["s", 1],
    ["ms", 1e-3],
    ["µs", 1e-6],
  ];

  // In the largest unit of which the step has whole or half ones: 0, 20, 40, 60 s, or 0, 30 s,
  // 1 min, 1.5 min.
  function secondsTicks(low, high, count) {
    const top = Math.max(Math.abs(low), Math.abs(high));
    const raw = (high - low) / count;
    let unit = UNITS.find(([, size]) => top >= 1.5 * size) || UNITS[5],
      step = niceStep(raw / unit[1]) * unit[1];
    if (unit[1] >= MINUTE) {
      step = LENGTHS.find((s) => s >= raw) || niceStep(raw / DAY) * DAY;
      unit = UNITS.slice(1, 3).find(([, size]) => step % (size / 2) === 0) || UNITS[3];
      if (step >= DAY / 2) unit = UNITS[0];
    }
    return multiples(low, high, step).map((at) => ({ at, text: duration(at, unit) }));
  }

  function duration(at, [unit, length]) {
    if (at === 0) return "0";
    if (length >= MINUTE && Math.abs(at) < length)
      return duration(at, UNITS[UNITS.findIndex(([, size]) => size === length) + 1]); // half a unit
    const count = Number((at / length).toPrecision(4));
    return `${plain(count)} ${unit === "days" && Math.abs(count) === 1 ? "day" : unit}`;
  }

  function clockTicks(low, high, count) {
    const raw = (high - low) / count;
    const step = LENGTHS.find((s) => s >= raw) || niceStep(raw / DAY) * DAY;
    const offset = new Date(1000 * low).getTimezoneOffset() * 60;
    return multiples(low, high, step, offset % step).map((at) => {
      const date = new Date(1000 * at);
      const midnight = date.getHours() === 0 && date.getMinutes() === 0 && date.getSeconds() === 0;
      if (step >= DAY || midnight) return { at, text: day(date) };
      return { at, text: step < MINUTE ? `${time(date)}:${two(date.getSeconds())}` : time(date) };
    });
  }

  function linearTicks(low, high, count, format) {
    if (format === "clock") return clockTicks(low, high, count);
    if (format === "seconds") return secondsTicks(low, high, count);
    if (format === "bytes") {
      const unit = [1e12, 1e9, 1e6, 1e3].find((size) => high >= size) || 1e3;
      return multiples(low, high, niceStep((high - low) / count / unit) * unit).map((at) => ({
        at,
        text: at === 0 ? "0" : bytes(at),
      }));
    }
    const step = Math.max(niceStep((high - low) / count), format === "count" ? 1 : 0);
    const percent = format === "percent";
    return multiples(low, high, step).map((at) => ({
      at,
      text: percent ? `${shortNumber(100 * at, 100 * step)}%` : shortNumber(at, step),
    }));
  }

  const ROUND = { [MINUTE]: "1 min", [HOUR]: "1 h", [DAY]: "1 day" };

  // Candidates for a logarithmic axis, finest first; the axis takes the first that fits.
  function logTicks(low, high, format) {
    const label = (at) => {
      if (format === "seconds") return ROUND[at] || spoken(at);
      if (format === "bytes") return bytes(at);
      return format === "percent" ? `${shortNumber(100 * at)}%` : shortNumber(at);
    };
    const decades = (marks, every = 1) => {
      const found = [];
      for (let p = Math.floor(Math.log10(low)); p <= Math.ceil(Math.log10(high)); p += 1) {
        if (p % every === 0) found.push(...marks.map((m) => Number(`${m}e${p}`)));
      }
      return found;
    };
    let levels = [[1, 2, 5], [1, 3], [1]].map((marks) => decades(marks));
    if (format === "seconds") levels = levels.map((level, i) => spokenTimes(level, i));
    levels.push(...[2, 3, 5, 10, 20, 50, 100, 200].map((every) => decades([1], every)));
    const inside = levels.map((level) =>
      level.filter((at) => at >= low * (1 - 1e-9) && at <= high * (1 + 1e-9)),
    );
    if (inside[0].length < 2) return [linearTicks(low, high, 4, format), linearTicks(low, high, 2, format)];
    return inside
      .filter((level) => level.length > 1)
      .map((level) => level.map((at) => ({ at, text: label(at) })));
  }

  // Above a second, minutes and hours are rounder than powers of ten.
  function spokenTimes(level, i) {
    const long = [
      [
        1,
        2,
        5,
        10,
        30,
        60,
        120,
        300,
        600,
        1800,
        HOUR,
        2 * HOUR,
        5 * HOUR,
        12 * HOUR,
        DAY,
        2 * DAY,
        5 * DAY,
        10 * DAY,
        30 * DAY,
        100 * DAY,
      ],
      [1, 10, 60, 600, HOUR, 6 * HOUR, DAY, 10 * DAY, 100 * DAY],
      [1, 60, HOUR, DAY, 30 * DAY],
    ][i];
    return [...level.filter((at) => at < 1), ...long];
  }

  // Sets of ticks for an axis, finest first.
  function ticks(axis, [low, high], pixels, spacing) {
    if (axis.scale === "log") return logTicks(low, high, axis.format);
    const most = Math.max(2, Math.floor(pixels / spacing));
    const counts = most <= 4 ? [most + 3, most + 2, most + 1, most, 2] : [most, Math.ceil(most / 2), 2];
    return counts.map((count) => linearTicks(low, high, count, axis.format));
  }

  tw.scales = { scale, domain, ticks };
})((globalThis.tradewind = globalThis.tradewind || {}));
