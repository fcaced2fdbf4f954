// Elements. All text becomes text nodes; no HTML is built from data.

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

// A wide element in a box that scrolls, which the keyboard reaches and screen readers call `label`.
const scrollBox = (label, child) => el("div.scroll", { tabindex: "0", role: "region", "aria-label": label }, child);

// A table with a heading for each column; an empty heading is the corner above the headings of rows.
function headedTable(name, headings, rows) {
  const cells = headings.map((text) => (text ? el("th", { scope: "col" }, text) : el("td")));
  return el(name, {}, el("thead", {}, el("tr", {}, cells)), el("tbody", {}, rows));
}

const svg = (name, attributes, ...children) => fill(document.createElementNS(MARKUP, name), attributes, children);
