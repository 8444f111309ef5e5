// The two questions behind the sliders, as positions from left to right: what a unit of cost is
// worth, and what may be spent. Which model answers was computed in Python; here it is looked up.
(function (tw) {
  "use strict";

  const { number, cost, significant } = tw.format;
  const GRID = 160; // positions of a slider, if every model has enough of them

  // The step with the largest `from` that is not above the value; null below all.
  function stepAt(steps, value) {
    if (value < steps[0].from) return null;
    let low = 0,
      high = steps.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (steps[middle].from <= value) low = middle;
      else high = middle - 1;
    }
    return steps[low];
  }

  // Round values between the marks, with equal ratios, and the marks themselves. Marks that are close
  // to each other have more of them, so that each model's part of the slider can be seen and hit.
  function positions(marks) {
    const exact = [...new Set(marks)].sort((a, b) => a - b);
    const whole = Math.log(exact[exact.length - 1] / exact[0]);
    const values = new Set(exact);
    exact.slice(1).forEach((to, i) => {
      const from = exact[i],
        ratio = Math.log(to / from);
      const count = Math.max(Math.ceil(GRID / (2 * exact.length)), Math.round((GRID * ratio) / whole));
      for (let k = 1; k < count; k += 1) {
        const value = significant(from * Math.exp((ratio * k) / count), ratio > 0.1 ? 3 : 6);
        if (value > from && value < to) values.add(value);
      }
    });
    return [...values].sort((a, b) => a - b);
  }

  const LENGTHS = [
    [1e-3, "millisecond"],
    [1, "second"],
    [60, "minute"],
    [3600, "hour"],
    [86400, "day"],
  ];
  const SIZES = [
    [1e6, "megabyte"],
    [1e9, "gigabyte"],
    [1e12, "terabyte"],
  ];

  function units(unit) {
    if (unit === "s") return LENGTHS;
    return unit === "bytes" ? SIZES : [[1, unit ? `unit of ${unit}` : "unit of cost"]];
  }

  // `One minute is worth 0.6 points of accuracy.`
  function worth(rate, { unit, reference }, { points, name }) {
    if (!(rate > 0)) return "Cost does not matter.";
    // the longest unit that is worth at most ten points, or no longer than the reference
    const suits = ([length]) => (points ? 100 * rate * length <= 10 : length <= reference);
    const known = units(unit);
    const [size, length] = [...known].reverse().find(suits) || known[0];
    const amount = number(rate * size * (points ? 100 : 1));
    const of = name === "value" ? "" : ` of ${name}`;
    const quality = points ? `${amount} point${amount === "1" ? "" : "s"}${of}` : `${amount} in ${name}`;
    return `One ${length} is worth ${quality}.`;
  }

  const article = (word) => (/^[aeiou]/.test(word) && !/^uni/.test(word) ? "an" : "a");

  // What the trade-off slider does.
  function tradeoff(given, scale) {
    const { steps, reference, unit, alpha, capped } = given;
    const marks = [...steps.map((step) => step.from), alpha ?? 0].filter((value) => value > 0);
    const highest = Math.max(given.max || 0, ...marks.map((value) => 1.5 * value)) || 1;
    const lowest = Math.max(highest * 1e-6, Math.min(highest / 100, ...marks.map((value) => value / 4)));
    const sigma = (amount) => (capped ? Math.min(1, amount / reference) : amount / reference);
    const unitName = { s: "second", bytes: "gigabyte" }[unit] || "unit of cost";
    return {
      kind: "tradeoff",
      question: `What is ${article(unitName)} ${unitName} worth?`,
      ends: ["only quality counts", "only cost counts"],
      positions: [0, ...positions([lowest, ...marks, highest])],
      steps,
      say: (value) => (value === alpha && given.said) || worth(value / reference, given, scale),
      code: (value) => {
        const more = `${given.by ? `, by=${tw.python(given.by)}` : ""}${capped ? ", capped=True" : ""}`;
        return `tw.Tradeoff(${value}, reference=${reference}${more})`;
      },
      start: alpha ?? null,
      sigma,
    };
  }

  // What the limit slider does.
  function limit(given) {
    const { steps, unit } = given;
    const froms = steps.map((step) => step.from).filter((value) => value > 0);
    const low = given.low > 0 ? given.low : Math.min(...froms, 1);
    const high = Math.max(given.high || 0, ...froms, low);
    const own = given.own ?? null;
    // a limit below all costs stands at the left end, where no model is chosen
    const marks = [low, ...froms, high, ...(own === null ? [] : [Math.max(own, low / 2)])];
    return {
      kind: "limit",
      question: unit === "s" ? "How long may training take?" : "How much may training cost?",
      ends: ["the cheapest model", "the best model"],
      positions: positions(marks),
      steps,
      say: (value) => (value === own && given.said) || `At most ${cost(value, unit)}.`,
      code: (value) => {
        const more = given.by ? `, by=${tw.python(given.by)}` : "";
        return `tw.BestUnder(${value}, confidence=${given.confidence}${more})`;
      },
      start: own,
    };
  }

  tw.steps = { stepAt, tradeoff, limit, worth };
})((globalThis.tradewind = globalThis.tradewind || {}));
