// Numbers, times and words as the terminal writes them.

const words = (text) => String(text).replaceAll("_", " ");

const decimal = (value) =>
  Math.abs(value) >= 99.95 || Number.isInteger(value) ? value.toFixed(0) : tenth(value).toFixed(1);

// Halves are rounded to even digits, as in the terminal: 81.25 is 81.2. (Other ends in 5 are no exact halves.)
const rounded = (value) => Math.round(value) - (value % 2 === 0.5 ? 1 : 0);

const tenth = (value) => Number((Math.abs(value % 1) === 0.25 ? value - 0.05 * Math.sign(value) : value).toFixed(1));
const points = (share) => decimal(tenth(100 * share));
const signed = (share) => (share > 0 ? "+" : share < 0 ? "\u2212" : "") + points(Math.abs(share));
const count = (n, word) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;

function duration(seconds) {
  if (seconds < 1) return `${seconds.toFixed(2)} s`;
  if (seconds < 100) return `${seconds.toFixed(1)} s`;
  const minutes = seconds / 60;
  return minutes < 100 ? `${Math.round(minutes)} min` : `${(minutes / 60).toFixed(1)} h`;
}

const amount = (n) =>
  n < 1000 ? String(n) : n < 1e6 ? `${(n / 1e3).toFixed(n < 1e4 ? 1 : 0)}k` : `${(n / 1e6).toFixed(1)}M`;

const dollars = (usd) => `$${usd < 0.01 && usd > 0 ? usd.toFixed(4) : usd.toFixed(2)}`;
