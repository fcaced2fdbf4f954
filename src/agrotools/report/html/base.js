// Elements, formats, and the data of the page. All text becomes text nodes; no HTML is built from data.

const byId = (id) => document.getElementById(id);
const MARKUP = "http://www.w3.org/2000/svg";
// Control characters and marks that change the direction of text could disguise what a model wrote.
const HARMFUL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
const harmless = (text) => String(text).replace(HARMFUL, "\ufffd");

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else if (name === "data") Object.assign(element.dataset, value);
    else element.setAttribute(name === "className" ? "class" : name, value === true ? "" : harmless(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false || child === "") continue;
    element.append(child instanceof Node ? child : harmless(child));
  }
  return element;
}

// el("p.dim", { title: "…" }, "text", child…)
function el(name, attributes, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag || "div");
  if (classes.length) element.className = classes.join(" ");
  return fill(element, attributes, children);
}

const svg = (name, attributes, ...children) => fill(document.createElementNS(MARKUP, name), attributes, children);

// --- formats --------------------------------------------------------------------------------------------------------

const words = (text) => String(text).replaceAll("_", " ");
const one = (value) => (Math.abs(value) >= 99.95 || Number.isInteger(value) ? value.toFixed(0) : tenth(value).toFixed(1));
// Halves are rounded to even digits, as in the terminal: 81.25 is 81.2. (Other ends in 5 are no exact halves.)
const rounded = (value) => Math.round(value) - (value % 2 === 0.5 ? 1 : 0);
const tenth = (value) => Number((Math.abs(value % 1) === 0.25 ? value - 0.05 * Math.sign(value) : value).toFixed(1));
const points = (share) => one(tenth(100 * share));
const signed = (share) => (share > 0 ? "+" : share < 0 ? "\u2212" : "") + points(Math.abs(share));
const count = (n, word) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;

function duration(seconds) {
  if (seconds < 1) return `${seconds.toFixed(2)} s`;
  if (seconds < 100) return `${seconds.toFixed(1)} s`;
  const minutes = seconds / 60;
  return minutes < 100 ? `${Math.round(minutes)} min` : `${(minutes / 60).toFixed(1)} h`;
}

const amount = (n) => (n < 1000 ? String(n) : n < 1e6 ? `${(n / 1e3).toFixed(n < 1e4 ? 1 : 0)}k` : `${(n / 1e6).toFixed(1)}M`);
const dollars = (usd) => `$${usd < 0.01 && usd > 0 ? usd.toFixed(4) : usd.toFixed(2)}`;
const stateOf = (value) => (value === null ? "invalid" : value >= 1 ? "right" : value > 0 ? "partial" : "wrong");
const MARKS = { right: "✓", partial: "≈", wrong: "✗", invalid: "!", unscored: "·" };

// Score with its sign: colour is never the only difference.
const badge = (value, title, state = stateOf(value)) => el(`span.score.${state}`, { title: title ?? state },
  el("i", { "aria-hidden": "true" }, MARKS[state]), value !== null ? rounded(100 * value) : state === "invalid" ? "inv" : "–");
const recordBadge = (record) => badge(record.value, undefined, record.state);

// --- data -----------------------------------------------------------------------------------------------------------

let head, runs;
function readHead(text) {
  head = JSON.parse(text);
  runs = head.runs;
}
readHead(byId("head").textContent);
const loaded = new Promise((done) => {
  if (document.readyState !== "loading") done();
  else document.addEventListener("DOMContentLoaded", done);
});

async function inflate(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

// Content that the page stores under a name: it may stand further down than the browser has read so far. A local server
// is asked for it.
async function stored(name) {
  if (head.live && name !== "index") return (await fetch(`${head.live.part}&name=${name}`)).text();
  if (!byId(name)) await loaded;
  return byId(name)?.textContent;
}

const blocks = new Map();
const KEPT_BLOCKS = 24;

// Lines of a block of details. The last blocks stay decoded.
function blockLines(number) {
  if (!blocks.has(number)) {
    const lines = stored(`b${number}`).then(inflate).then((text) => text.split("\n"));
    blocks.set(number, lines);
    if (blocks.size > KEPT_BLOCKS) blocks.delete(blocks.keys().next().value);
  }
  return blocks.get(number);
}

async function detailOf(record) {
  return record.block === null ? null : JSON.parse((await blockLines(record.block))[record.line]);
}

const textOf = async (text) => (typeof text === "number" ? inflate(await stored(`t${text}`)) : text);

async function showPicture(image, name) {
  image.decoding = "async";
  image.src = await stored(name);
}

// --- terms ----------------------------------------------------------------------------------------------------------

const term = (label, text = label) => (head.terms[label] ? el("abbr", { title: head.terms[label] }, text) : el("span", {}, text));

// --- address --------------------------------------------------------------------------------------------------------

// The address is #VIEW?NAME=VALUE&… ; what is not in it has its default.
function readAddress() {
  const [view, query = ""] = location.hash.slice(1).split("?");
  let parameters = new URLSearchParams();
  try { parameters = new URLSearchParams(query); } catch { /* a broken address shows the default */ }
  return { view, parameters };
}

function address(view, values = {}) {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) if (value !== "" && value !== undefined && value !== null) parameters.set(name, value);
  const query = parameters.toString().replaceAll("%2F", "/").replaceAll("%3A", ":");
  return `#${view}${query ? `?${query}` : ""}`;
}
